//! Which workloads lack pods: no change of nodes or of what others take is of any matter to the others.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::asked::{is_kept, pods_of, surge, tolerated};
use super::cluster::Cluster;
use crate::navigate;
use crate::object::{Body, Key, Object};
use crate::snapshot::{Lack, Lacks, Mark, lacking_kinds, marks};
use crate::state::State;
use crate::steps;
use crate::value::{Str, Val};

/// So many objects are few.
const FEW_MAX: usize = 64;

/// What wants more pods than it has placed as it asks, those of its rollout among them, in one state.
pub struct Lacking<'s, 'a> {
    cluster: Cluster<'s, 'a>,
    /// Those of the kinds of which the snapshot keeps them.
    kept: OnceCell<Lacks>,
}

impl<'s, 'a> Lacking<'s, 'a> {
    /// In this state.
    pub fn new(state: &'s State<'a>) -> Self {
        Self { cluster: Cluster::new(state, BTreeSet::new()), kept: OnceCell::new() }
    }

    /// Those of some objects of this state that may want more pods than they have. A few are looked at one by one: then it is of
    /// no matter to whoever asks what else lacks pods, or may soon.
    pub fn wanting_among(&self, mut objects: Vec<&'s Arc<Object>>) -> Vec<&'s Arc<Object>> {
        let are_few = objects.len() <= FEW_MAX;
        objects.retain(|object| if are_few { self.lacks(object) } else { self.of(object) } == Some(Lack::Now));
        objects
    }

    /// Whether an object of this state may be one of them; a DaemonSet always may.
    pub fn has(&self, object: &Object) -> bool {
        self.of(object).is_some()
    }

    fn of(&self, object: &Object) -> Option<Lack> {
        match lacking_kinds().contains(&object.key.kind) {
            true => self.kept().get(&object.key).copied(),
            false => self.lacks(object),
        }
    }

    /// Those of the kinds of which the snapshot keeps them that want more pods than they have.
    pub fn wanting(&self) -> impl Iterator<Item = &Key> {
        self.kept().iter().filter(|(_, lack)| **lack == Lack::Now).map(|(key, _)| key)
    }

    /// Those of the kinds of which the snapshot keeps them ([`lacking_kinds`]).
    pub fn kept(&self) -> &Lacks {
        self.kept.get_or_init(|| {
            let (state, base) = (self.cluster.state, self.cluster.state.base());
            let known = base.lacking(|before, marks| Lacking::new(&State::new(base)).since(before, marks));
            let adapters = base.adapters().as_ref();
            let mut changes = BTreeSet::new();
            for (key, new) in state.delta() {
                let (old, new) = (base.get(key).map(|old| &**old), new.as_deref());
                // what goes along with a deletion may be there still, and is marked only
                let apart = [(old, None), (None, new)];
                let apart = if key.kind.is("Namespace") { [(old, new), (None, None)] } else { apart };
                let owns = |uid: &str| !state.owned_by(uid).is_empty();
                changes.extend(apart.into_iter().flat_map(|(old, new)| marks(old, new, adapters, owns)));
            }
            self.since(Some(&**known), &changes)
        })
    }

    /// Those that lack some now, by those that did before some changes.
    fn since(&self, before: Option<&Lacks>, marks: &BTreeSet<Mark>) -> Lacks {
        let state = self.cluster.state;
        let (mut found, looked) = match before.filter(|_| !marks.contains(&Mark::All)) {
            Some(before) => (before.clone(), marked(state, marks)),
            None => {
                let all = lacking_kinds().iter().flat_map(|kind| state.list(kind, None));
                (Lacks::new(), all.map(|object| object.key.clone()).collect())
            }
        };
        for key in looked {
            match state.get(&key).and_then(|object| self.lacks(object)) {
                Some(lack) => found.insert(key, lack),
                None => found.remove(&key),
            };
        }
        found
    }

    fn lacks(&self, object: &Object) -> Option<Lack> {
        let state = self.cluster.state;
        if object.key.kind.is("DaemonSet") {
            return Some(Lack::Now);
        }
        let spec = navigate::pod_spec(state, object)?;
        let pods = pods_of(state, object);
        steps::count_items(pods.len());
        let wanted = navigate::wanted_replicas(state, object).unwrap_or(0);
        let are_fewer = |pods: usize, than: i64| i64::try_from(pods).unwrap_or(i64::MAX) < than;
        if are_fewer(pods.len(), wanted) {
            return Some(Lack::Now);
        }
        let wanted = wanted.saturating_add(surge(&self.cluster, object, &pods, wanted));
        let mut known: BTreeMap<(*const Body, Option<&Str>), bool> = BTreeMap::new();
        let mut alike = |pod: &'s Arc<Object>| {
            // pods of one revision ask for the same
            let revision = pod.label("controller-revision-hash");
            let body = if revision.is_some() { std::ptr::null() } else { Arc::as_ptr(&pod.body) };
            *known.entry((body, revision)).or_insert_with(|| is_kept(object, pod) || is_like(&spec, pod))
        };
        let placed = pods.into_iter().filter(|pod| alike(pod) && self.cluster.stays(pod)).count();
        if are_fewer(placed, wanted) {
            return Some(Lack::Now);
        }
        are_fewer(placed, navigate::most_wanted(state, object)).then_some(Lack::Later)
    }
}

/// Whether a pod's spec says what a template says, word for word, in what decides about its place; admission may add to it.
fn is_like(own: &Val, pod: &Object) -> bool {
    let Some(spec) = pod.val().get("spec") else { return false };
    let asks = |container: &Val| {
        ["resources", "ports", "restartPolicy"].map(|part| container.get(part).filter(|val| !val.is_null()).cloned())
    };
    let containers = |of: &Val| -> Vec<_> {
        let parts = ["containers", "initContainers"].into_iter();
        parts.map(|part| of.items_at(&[part]).iter().map(asks).collect::<Vec<_>>()).collect()
    };
    let parts = ["overhead", "resources", "hostNetwork", "runtimeClassName", "nodeSelector", "affinity"];
    let mut same = parts.iter().chain(&["topologySpreadConstraints"]);
    same.all(|part| own.at_some(&[part]) == spec.at_some(&[part]))
        && containers(own) == containers(spec)
        && own.name_at(&["nodeName"]).is_none_or(|name| *name == *pod.node)
        && tolerated(own) == tolerated(spec)
}

/// The workloads that some marks are about.
fn marked(state: &State<'_>, marks: &BTreeSet<Mark>) -> BTreeSet<Key> {
    let mut marked = Marked { state, found: BTreeSet::new(), seen: BTreeSet::new() };
    for mark in marks {
        match mark {
            Mark::Itself(key) => {
                marked.add(key);
                let owners = state.get(key).into_iter().flat_map(|object| object.owners());
                owners.for_each(|owner| marked.above(&owner.uid));
            }
            Mark::Above(uid) => marked.above(uid),
            Mark::Below(uid) => marked.below(uid),
            Mark::On(node) => {
                let pods = state.pods_on(node).into_iter().chain(state.base().pods_on(node));
                pods.flat_map(|pod| pod.owners()).for_each(|owner| marked.above(&owner.uid));
            }
            Mark::In(ns) => {
                let here = lacking_kinds().iter().flat_map(|kind| state.list(kind, Some(ns)));
                here.for_each(|object| marked.add(&object.key));
            }
            Mark::All => {}
        }
    }
    marked.found
}

struct Marked<'s, 'a> {
    state: &'s State<'a>,
    found: BTreeSet<Key>,
    /// The uids that were followed, and whether downward.
    seen: BTreeSet<(Str, bool)>,
}

impl Marked<'_, '_> {
    fn add(&mut self, key: &Key) {
        if lacking_kinds().contains(&key.kind) {
            self.found.insert(key.clone());
        } else if key.is_partial() {
            let meant = lacking_kinds().iter().filter(|kind| kind.kind == key.kind.kind);
            self.found.extend(meant.map(|kind| Key::new(kind.clone(), &key.ns, &key.name)));
        }
    }

    fn above(&mut self, uid: &Str) {
        let mut open = vec![uid.clone()];
        while let Some(uid) = open.pop() {
            if self.seen.insert((uid.clone(), false))
                && let Some(object) = self.state.by_uid(&uid)
            {
                self.add(&object.key);
                open.extend(object.owners().iter().map(|owner| owner.uid.clone()));
            }
        }
    }

    fn below(&mut self, uid: &Str) {
        let mut open = vec![uid.clone()];
        while let Some(uid) = open.pop() {
            if !self.seen.insert((uid.clone(), true)) {
                continue;
            }
            for object in self.state.owned_by(&uid) {
                if object.key.kind.is("Pod") {
                    object.owners().iter().for_each(|owner| self.above(&owner.uid));
                } else {
                    self.add(&object.key);
                    open.push(object.uid.clone());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
