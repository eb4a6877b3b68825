//! Nodes by what pods see of them, the hostname aside: labels, taints, room, readiness. Where new pods may go is worked
//! out for each pool instead of each node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::facts::{Fact, Journal, note};
use super::usage::Usage;
use crate::fields::{HOSTNAME, names_nodes, node_constraint, node_matches};
use crate::object::Object;
use crate::value::{Str, Val};

/// So many lists of nodes are kept; a few workloads' constraints make a few.
const JOINED_MAX: usize = 64;
/// After so many nodes were written lists are found anew.
const WRITTEN_MAX: usize = 128;

/// Lists that were worked out; snapshots share them until one of them differs.
type Known<K, T> = Arc<Mutex<BTreeMap<K, Arc<[T]>>>>;

/// The pools of a snapshot. Its copies share what has not changed since.
#[derive(Clone, Debug, Default)]
pub struct Pools {
    pools: Vec<Arc<Pool>>,
    by_shape: Arc<BTreeMap<Val, usize>>,
    of_node: Arc<BTreeMap<Str, usize>>,
    /// The names of the nodes of several pools; of another allocation once a node comes or goes.
    joined: Known<Vec<usize>, Str>,
    /// The nodes that came, went or changed last, each with the number of the event, the last one last.
    written: Arc<Vec<(u64, Str)>>,
    /// The nodes that match a constraint, as they were after an event. All copies have one: events have one number each.
    admitted: Arc<Mutex<Admitted>>,
}

/// By constraint.
type Admitted = BTreeMap<Val, (u64, Arc<[Arc<Object>]>)>;

/// Nodes that pods do not tell apart but by their names and by what runs on them.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    shape: Val,
    calm: bool,
    nodes: Arc<BTreeSet<Str>>,
    /// What was worked out belongs to one snapshot: a copy that differs in what runs there has another pool.
    busiest: OnceLock<Usage>,
}

impl Pool {
    /// The names of its nodes, in order.
    pub fn nodes(&self) -> &BTreeSet<Str> {
        &self.nodes
    }

    /// Whether its nodes are Ready, stay, and have no taint that removes pods.
    pub fn is_calm(&self) -> bool {
        self.calm
    }

    /// No less than what is taken of any of its nodes, by what is taken of each.
    pub fn busiest(&self, usage: impl Fn(&Str) -> Usage) -> Usage {
        note(Fact::Busy);
        *self.busiest.get_or_init(|| {
            self.nodes.iter().map(usage).fold(Usage::default(), |most, one| Usage {
                pods: most.pods.max(one.pods),
                cpu: most.cpu.max(one.cpu),
                memory: most.memory.max(one.memory),
            })
        })
    }
}

impl Pools {
    /// The pools with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Pool)> {
        self.pools.iter().map(|pool| &**pool).enumerate().filter(|(_, pool)| !pool.nodes.is_empty())
    }

    /// The live nodes that match the node constraint of a pod spec, in the order of their names; `node` finds one.
    pub fn admitted<'o>(&self, spec: &Val, node: impl Fn(&Str) -> Option<&'o Arc<Object>>) -> Arc<[Arc<Object>]> {
        let constraint = node_constraint(spec);
        let matches = |name: &Str| node(name).filter(|node| node.live() && node_matches(spec, node));
        let mut lists = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, known) = (self.written.last().map(|(event, _)| *event), lists.get(&constraint));
        // what another copy saw in between is unknown here
        let since = known.and_then(|(as_of, found)| {
            Some((found, self.written.binary_search_by(|(event, _)| event.cmp(as_of)).ok()?))
        });
        let found: Arc<[Arc<Object>]> = match since {
            Some((found, at)) if at + 1 == self.written.len() => return found.clone(),
            Some((found, at)) => {
                let mut found = found.to_vec();
                for name in self.written.iter().skip(at + 1).map(|(_, name)| name).collect::<BTreeSet<_>>() {
                    let at = found.binary_search_by(|node| node.key.name.cmp(name));
                    let at = at.map_or_else(|at| at..at, |at| at..at + 1);
                    found.splice(at, matches(name).cloned());
                }
                found.into()
            }
            None => self.matching(spec, matches, &node).into(),
        };
        let is_newer = known.is_none_or(|(as_of, _)| last > Some(*as_of));
        if let Some(last) = last.filter(|_| is_newer) {
            if lists.len() >= JOINED_MAX {
                lists.clear();
            }
            lists.insert(constraint, (last, found.clone()));
        }
        found
    }

    /// The nodes for which `matches` gives one, in the order of their names; those of a pool are alike unless the spec names some.
    fn matching<'o>(
        &self,
        spec: &Val,
        matches: impl Fn(&Str) -> Option<&'o Arc<Object>>,
        node: impl Fn(&Str) -> Option<&'o Arc<Object>>,
    ) -> Vec<Arc<Object>> {
        let by_name = names_nodes(spec);
        let mut found: Vec<Arc<Object>> = Vec::new();
        for (_, pool) in self.iter() {
            if by_name {
                found.extend(pool.nodes.iter().filter_map(&matches).cloned());
            } else if pool.nodes.first().and_then(&matches).is_some() {
                found.extend(pool.nodes.iter().filter_map(&node).cloned());
            }
        }
        found.sort_by(|a, b| a.key.cmp(&b.key));
        found
    }

    /// Notes that a node came, went or is another one.
    fn written(&mut self, node: &Str) {
        let written = Arc::make_mut(&mut self.written);
        if written.len() >= WRITTEN_MAX {
            written.drain(..WRITTEN_MAX / 2);
        }
        written.push((Journal::event(), node.clone()));
    }

    /// The names of all nodes of these pools, in order.
    pub fn joined(&self, pools: &[usize]) -> Arc<[Str]> {
        let mut known = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(pools) {
            return found.clone();
        }
        let all = pools.iter().filter_map(|at| self.pools.get(*at)).flat_map(|pool| &*pool.nodes);
        let mut names: Vec<Str> = all.cloned().collect();
        names.sort();
        let names: Arc<[Str]> = names.into();
        if known.len() >= JOINED_MAX {
            known.clear();
        }
        known.insert(pools.to_vec(), names.clone());
        names
    }

    pub(super) fn insert(&mut self, node: &Object) {
        let shape = shape(node);
        let at = *Arc::make_mut(&mut self.by_shape).entry(shape.clone()).or_insert_with(|| {
            self.pools.iter().position(|pool| pool.nodes.is_empty()).unwrap_or_else(|| {
                self.pools.push(Arc::default());
                self.pools.len() - 1
            })
        });
        if let Some(pool) = self.pools.get_mut(at).map(Arc::make_mut) {
            pool.calm = is_calm(node);
            pool.shape = shape;
            Arc::make_mut(&mut pool.nodes).insert(node.key.name.clone());
            pool.busiest = OnceLock::new();
        }
        Arc::make_mut(&mut self.of_node).insert(node.key.name.clone(), at);
        self.joined = Arc::default();
        self.written(&node.key.name);
    }

    pub(super) fn remove(&mut self, node: &Str) {
        let at = Arc::make_mut(&mut self.of_node).remove(node);
        let Some(pool) = at.and_then(|at| self.pools.get_mut(at)).map(Arc::make_mut) else { return };
        Arc::make_mut(&mut pool.nodes).remove(node);
        pool.busiest = OnceLock::new();
        if pool.nodes.is_empty() {
            Arc::make_mut(&mut self.by_shape).remove(&pool.shape);
        }
        self.joined = Arc::default();
        self.written(node);
    }

    /// Notes that something else runs on a node.
    pub(super) fn touch(&mut self, node: &str) {
        if let Some(pool) = self.of_node.get(node).and_then(|at| self.pools.get_mut(*at)).map(Arc::make_mut) {
            pool.busiest = OnceLock::new();
        }
    }
}

fn is_calm(node: &Object) -> bool {
    let conditions = node.val().items_at(&["status", "conditions"]).iter();
    let mut ready = conditions.filter(|c| c.str_at(&["type"]).is_some_and(|t| &**t == "Ready"));
    let removes = |taint: &Val| taint.str_at(&["effect"]).is_none_or(|effect| &**effect == "NoExecute");
    node.live()
        && ready.all(|c| c.str_at(&["status"]).is_some_and(|s| &**s == "True"))
        && !node.val().items_at(&["spec", "taints"]).iter().any(removes)
}

/// What new pods see of a node.
pub(super) fn shape(node: &Object) -> Val {
    let part = |path: &[&str]| node.val().at(path).cloned().unwrap_or_default();
    let conditions = node.val().items_at(&["status", "conditions"]).iter();
    let ready = conditions.filter(|c| c.str_at(&["type"]).is_some_and(|t| &**t == "Ready"));
    let ready = ready.map(|c| c.get("status").cloned().unwrap_or_default()).collect();
    Val::object([
        ("labels", node.labels().without_at(&[HOSTNAME])),
        ("taints", part(&["spec", "taints"])),
        ("unschedulable", part(&["spec", "unschedulable"])),
        ("allocatable", part(&["status", "allocatable"])),
        ("ready", Val::list(ready)),
        ("live", Val::Bool(node.live())),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Key;
    use crate::snapshot::Snapshot;

    fn node(name: &str, pool: &str, taint: bool) -> Object {
        let labels = Val::object([(HOSTNAME, Val::str(name)), ("pool", Val::str(pool))]);
        let meta = Val::object([("name", Val::str(name)), ("labels", labels)]);
        let removes = Val::object([("key", Val::str("gone")), ("effect", Val::str("NoExecute"))]);
        let taints = Val::list(if taint { vec![removes] } else { Vec::new() });
        Object::from_val(&Val::object([
            ("apiVersion", Val::str("v1")),
            ("kind", Val::str("Node")),
            ("metadata", meta),
            ("spec", Val::object([("taints", taints)])),
        ]))
        .unwrap()
    }

    fn pools(snapshot: &Snapshot) -> Vec<(Vec<&str>, bool)> {
        let mut found: Vec<_> =
            snapshot.pools().iter().map(|(_, p)| (p.nodes().iter().map(|n| &**n).collect(), p.is_calm())).collect();
        found.sort();
        found
    }

    fn admitted(snapshot: &Snapshot, spec: &Val) -> Vec<String> {
        snapshot.admitted(spec).iter().map(|n| n.key.name.to_string()).collect()
    }

    #[test]
    fn nodes_that_differ_in_their_hostname_only_share_a_pool() {
        let mut snapshot = Snapshot::default();
        for (name, pool, taint) in [("a", "x", false), ("b", "x", false), ("c", "y", false), ("d", "x", true)] {
            snapshot.insert(node(name, pool, taint));
        }
        assert_eq!(pools(&snapshot), [(vec!["a", "b"], true), (vec!["c"], true), (vec!["d"], false)]);
        snapshot.insert(node("b", "y", false));
        snapshot.remove(&Key::of("Node", "", "d"));
        assert_eq!(pools(&snapshot), [(vec!["a"], true), (vec!["b", "c"], true)]);
    }

    #[test]
    fn admitted_nodes_follow_the_nodes() {
        let mut snapshot = Snapshot::default();
        snapshot.insert(node("b", "x", false));
        snapshot.insert(node("a", "y", false));
        let selects = |key: &str, value: &str| Val::object([("nodeSelector", Val::object([(key, Val::str(value))]))]);
        assert_eq!(admitted(&snapshot, &Val::Null), ["a", "b"]);
        assert_eq!(admitted(&snapshot, &selects("pool", "x")), ["b"]);
        snapshot.insert(node("c", "x", false));
        assert_eq!(admitted(&snapshot, &selects("pool", "x")), ["b", "c"]);
        assert_eq!(admitted(&snapshot, &selects(HOSTNAME, "c")), ["c"]);
        let copy = snapshot.clone();
        snapshot.insert(node("c", "y", false));
        assert_eq!(admitted(&snapshot, &selects("pool", "x")), ["b"]);
        assert_eq!(admitted(&copy, &selects("pool", "x")), ["b", "c"], "a copy is as it was");
        snapshot.remove(&Key::of("Node", "", "a"));
        assert_eq!(admitted(&snapshot, &Val::Null), ["b", "c"]);
        for _ in 0..WRITTEN_MAX {
            snapshot.insert(node("b", "x", false));
        }
        snapshot.insert(node("d", "x", false));
        assert_eq!(admitted(&snapshot, &selects("pool", "x")), ["b", "d"]);
        assert_eq!(admitted(&snapshot, &selects(HOSTNAME, "c")), ["c"]);
    }
}
