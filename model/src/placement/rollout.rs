//! Whether the first new pod of a rollout finds a place.
//!
//! Sources: `pkg/controller/deployment/rolling.go` (a surge first, then as many old pods go as may be unavailable),
//! `recreate.go`; `pkg/controller/statefulset/stateful_set_control.go` (the highest ordinal goes first);
//! `pkg/controller/daemon/update.go` (on each node the old pod goes first, or after the new one with `maxSurge`).
//! Over-approximation: which old pods a Deployment removes first is left open.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::asked::{Asked, Wants, alike, pods_of, template};
use super::cluster::{Cluster, Leaving};
use super::too_hard::TooHard;
use super::unplaced::{reasons, short_of};
use crate::controllers::deployment::{is_recreate, max_surge, max_unavailable};
use crate::controllers::statefulset::{first_ordinal, pod_ordinal};
use crate::controllers::{daemonset, replicas};
use crate::effects::scheduling::template::Template;
use crate::navigate;
use crate::object::{Key, Object};
use crate::selector::Selector;
use crate::state::State;
use crate::value::Str;

/// Why the first new pod that a rollout makes finds no place; empty where it finds one, or nothing is rolled out.
///
/// # Errors
/// When that was not found within the budget.
pub fn blocked_rollout(state: &State<'_>, object: &Object, growing: Option<&Selector>) -> Result<Vec<String>, TooHard> {
    let cluster = Cluster::new(state, BTreeSet::new());
    let strategy = object.val().str_at(&["spec", "updateStrategy", "type"]);
    let on_delete = strategy.is_some_and(|kind| &**kind == "OnDelete");
    // what a group grows by is told by the nodes that it has
    let untold = growing.is_some() && cluster.nodes().is_empty();
    let Some(own) = template(state, object).filter(|_| !on_delete && !untold) else { return Ok(Vec::new()) };
    let mut old = pods_of(state, object);
    old.retain(|pod| cluster.stays(pod));
    let rollout = Rollout { cluster, object, own, growing };
    match &*object.key.kind.kind {
        "Deployment" if object.key.kind.is("Deployment") => rollout.deployment(&old),
        "StatefulSet" if object.key.kind.is("StatefulSet") => rollout.stateful_set(&old),
        "DaemonSet" if object.key.kind.is("DaemonSet") => Ok(rollout.daemon_set(&old)),
        _ => Ok(Vec::new()),
    }
}

struct Rollout<'s, 'a, 'o> {
    cluster: Cluster<'s, 'a>,
    object: &'o Object,
    own: Template,
    growing: Option<&'o Selector>,
}

impl Rollout<'_, '_, '_> {
    /// One new pod, once these have gone.
    fn one(&self, ordinal: Option<i64>, leaving: BTreeSet<Key>) -> Wants {
        let new = vec![alike(self.cluster.state, self.object, &self.own, ordinal, 1)];
        Wants { new, placed: BTreeMap::new(), alike: BTreeSet::new(), leaving }
    }

    /// Why it finds no place.
    fn obstacles(&self, wants: &Wants) -> Result<Vec<String>, TooHard> {
        let full = short_of(&self.cluster, self.object, wants, self.growing)?;
        Ok(full.map_or_else(Vec::new, |full| reasons(&self.cluster, wants, &full)))
    }

    fn deployment(&self, old: &[&Arc<Object>]) -> Result<Vec<String>, TooHard> {
        let wanted = replicas::replicas(self.object);
        if wanted == 0 {
            return Ok(Vec::new());
        }
        if is_recreate(self.object) {
            return self.obstacles(&self.one(None, old.iter().map(|pod| pod.key.clone()).collect()));
        }
        let surge = max_surge(self.object, wanted);
        let beside = self.obstacles(&self.one(None, BTreeSet::new()))?;
        if beside.is_empty() && (surge > 0 || old.is_empty()) {
            return Ok(beside);
        }
        let going = max_unavailable(self.object, wanted, surge).min(i64::try_from(old.len()).unwrap_or(i64::MAX));
        let by_node = by_node(old);
        // how many old pods may go of each node without making room
        let (mut useless, mut why) = (0_i64, beside);
        for pods in by_node.values() {
            for number in 1..=pods.len().min(usize::try_from(going).unwrap_or(0)) {
                let leaving = pods.iter().take(number).map(|key| (*key).clone()).collect();
                let obstacles = self.obstacles(&self.one(None, leaving))?;
                if obstacles.is_empty() {
                    break;
                }
                (useless, why) = (useless + 1, obstacles);
            }
        }
        Ok(if useless >= going { why } else { Vec::new() })
    }

    fn stateful_set(&self, old: &[&Arc<Object>]) -> Result<Vec<String>, TooHard> {
        let first = first_ordinal(self.object);
        let partition = self.object.val().int_at(&["spec", "updateStrategy", "rollingUpdate", "partition"]);
        let rolled = partition.unwrap_or(0).max(first)..first.saturating_add(replicas::replicas(self.object));
        let numbered = old.iter().filter_map(|pod| Some((pod_ordinal(self.object, &pod.key.name)?, &pod.key)));
        let Some((ordinal, pod)) = numbered.filter(|(ordinal, _)| rolled.contains(ordinal)).max() else {
            return Ok(Vec::new());
        };
        self.obstacles(&self.one(Some(ordinal), BTreeSet::from([pod.clone()])))
    }

    fn daemon_set(&self, old: &[&Arc<Object>]) -> Vec<String> {
        let nodes = navigate::daemon_nodes(self.cluster.state, self.object);
        let surges = daemonset::max_surge(self.object, i64::try_from(nodes.len()).unwrap_or(i64::MAX)) > 0;
        let (mut found, by_node) = (Vec::new(), by_node(old));
        for node in nodes {
            let Some(here) = by_node.get(&node.key.name) else { continue };
            let leaving: BTreeSet<Key> = here.iter().map(|key| (*key).clone()).collect();
            let new = alike(self.cluster.state, self.object, &self.own, None, 1);
            let new = Asked { only: Some(node.key.name.clone()), ..new };
            let leaving = if surges { BTreeSet::new() } else { leaving };
            if let Some(reason) = new.rejects(node) {
                found.push(format!("{reason} on {}", node.key.name));
            } else if self.cluster.room(node, &self.own, 1, &Leaving::of(&self.cluster, &leaving)) == 0 {
                found.push(format!("no room on {}", node.key.name));
            }
        }
        found
    }
}

/// The pods on each node.
fn by_node<'p>(pods: &[&'p Arc<Object>]) -> BTreeMap<&'p Str, Vec<&'p Key>> {
    let mut found: BTreeMap<&Str, Vec<&Key>> = BTreeMap::new();
    for pod in pods {
        found.entry(&pod.node).or_default().push(&pod.key);
    }
    found
}
