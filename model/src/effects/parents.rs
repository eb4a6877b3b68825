//! Custom resources that want pods, as their adapters say: which pods and which workloads are theirs.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::adapter::AdapterFacts;
use crate::controllers::replicas::ReplicaRange;
use crate::navigate;
use crate::object::{Key, Object};
use crate::selector::Selector;
use crate::state::State;
use crate::value::{Str, Val};

/// How deep a chain of controllers is followed.
pub const CONTROLLER_DEPTH_MAX: usize = 8;

/// A live custom resource that wants a number of pods, with what its adapter says.
pub struct Parent {
    /// The custom resource.
    pub object: Arc<Object>,
    facts: Arc<AdapterFacts>,
    /// How many pods it wants.
    pub desired_replicas: ReplicaRange,
    /// How many it wants as the watch shows it, if that is known.
    pub before: Option<i64>,
}

impl Parent {
    /// This object, if it is one.
    pub fn of(state: &State<'_>, object: &Arc<Object>) -> Option<Self> {
        let facts = state.adapter(object).filter(|_| object.live())?;
        let observed = state.base().get(&object.key).filter(|observed| observed.uid == object.uid);
        let before = observed.and_then(|observed| match Arc::ptr_eq(observed, object) {
            true => facts.replicas,
            false => state.adapter(observed)?.replicas,
        });
        let before = before.map(|replicas| replicas.max(0));
        let desired_replicas = match (facts.replicas, before) {
            (Some(replicas), _) => ReplicaRange::of(replicas.max(0)),
            // what its operator makes of a number that is not there any more is not known
            (None, Some(before)) => ReplicaRange { least: 0, most: before },
            (None, None) => return None,
        };
        Some(Self { object: object.clone(), facts, desired_replicas, before })
    }

    /// The same, which wants whatever its autoscalers set as well.
    #[must_use]
    pub fn autoscaled(self, state: &State<'_>) -> Self {
        match autoscaled(state, &self.object) {
            Some(range) => Self { desired_replicas: self.desired_replicas.hull(range), ..self },
            None => self,
        }
    }

    fn selector(&self) -> Option<&Selector> {
        self.facts.selector.as_ref().filter(|s| !s.is_empty())
    }

    /// A live custom resource by what its adapter says, whatever number of pods it wants.
    pub fn by_facts(object: &Arc<Object>, facts: Arc<AdapterFacts>) -> Self {
        Self { object: object.clone(), facts, desired_replicas: ReplicaRange { least: 0, most: 0 }, before: None }
    }

    /// The one workload that runs its pods and that it owns or lists as its child, if there is just one: that decides
    /// which of them go.
    pub fn managed_workload(&self, state: &State<'_>) -> Option<Key> {
        let selector = self.selector()?;
        let listed = self.facts.children.iter().flatten().filter_map(|key| state.resolve(key));
        let own = state.owned_by(&self.object.uid).into_iter().chain(listed);
        let running: BTreeSet<&Key> = own.filter(|o| runs(state, o, selector)).map(|o| &o.key).collect();
        running.first().filter(|_| running.len() == 1).map(|key| (*key).clone())
    }

    /// That workload, where it is all that runs its pods: beside pods that the custom resource runs itself it may be a
    /// helper that bears the label too.
    pub fn sole_workload(&self, state: &State<'_>) -> Option<Key> {
        let itself = |pod: &Arc<Object>| pod.live() && pod.controller().is_some() && self.runs_itself(state, pod);
        self.managed_workload(state).filter(|_| !self.pods(state).iter().any(itself))
    }

    /// The pods that it controls or selects.
    pub fn pods(&self, state: &State<'_>) -> Vec<Arc<Object>> {
        let owned = state.owned_by(&self.object.uid).into_iter().filter(|o| o.key.kind.is("Pod"));
        let selected = self.selector().map(|s| state.pods_matching(&self.object.key.ns, s)).unwrap_or_default();
        let mut pods: Vec<Arc<Object>> = owned.chain(selected).cloned().collect();
        pods.sort_by(|a, b| a.key.cmp(&b.key));
        pods.dedup_by(|a, b| a.key == b.key);
        pods
    }

    /// Whether no workload makes this pod, but this custom resource, or another one that it has for that, or nobody.
    pub fn runs_itself(&self, state: &State<'_>, pod: &Object) -> bool {
        let mut at = navigate::controller_of(state, pod);
        for _ in 0..CONTROLLER_DEPTH_MAX {
            let Some(owner) = at.filter(|owner| owner.key.kind.builtin_namespaced().is_none()) else { break };
            if owner.uid == self.object.uid || self.lists(&owner.key) {
                return true;
            }
            at = navigate::controller_of(state, owner);
        }
        pod.controller().is_none()
    }

    fn lists(&self, key: &Key) -> bool {
        self.facts.children.iter().flatten().any(|child| child.means(key))
    }

    /// The one of these that has this one for its pods, the nearest.
    pub fn above(&self, state: &State<'_>, all: &[Self]) -> Option<usize> {
        let mut at = Some(&self.object);
        for _ in 0..CONTROLLER_DEPTH_MAX {
            let below = at?;
            let owner = below.controller().map(|owner| &owner.uid);
            let has =
                |p: &Self| p.object.key != self.object.key && (Some(&p.object.uid) == owner || p.lists(&below.key));
            if let Some(found) = all.iter().position(has) {
                return Some(found);
            }
            at = navigate::controller_of(state, below);
        }
        None
    }
}

/// Whether the pods of this workload are among those that the selector means.
fn runs(state: &State<'_>, workload: &Object, selector: &Selector) -> bool {
    let labels = ["metadata", "labels"];
    !workload.key.kind.is("Pod")
        && navigate::template_of(state, workload).is_some_and(|t| selector.matches(t.at(&labels).unwrap_or(&Val::Null)))
}

/// The custom resources that select pods with these labels, in the order of their keys.
pub fn parents(state: &State<'_>, ns: &Str, labels: &Val) -> Vec<Parent> {
    let selecting = state.selecting_any(&state.base().adapters().kinds(), ns, labels).into_iter();
    let found = selecting.filter_map(|object| Parent::of(state, object));
    found.filter(|parent| parent.selector().is_some_and(|selector| selector.matches(labels))).collect()
}

/// How many pods the autoscalers of a workload, or of a ReplicaSet that it controls, may ask for, whatever becomes of them.
pub fn autoscaled(state: &State<'_>, workload: &Object) -> Option<ReplicaRange> {
    let sets = workload.key.kind.is("Deployment").then(|| state.owned_by(&workload.uid)).into_iter().flatten();
    let sets = sets.filter(|set| set.key.kind.is("ReplicaSet")).map(|set| &**set);
    let ranges = std::iter::once(workload).chain(sets).filter_map(|one| navigate::autoscaled_range(state, one));
    let ranges = ranges.map(|(low, high)| ReplicaRange { least: low.max(0), most: high.max(0) });
    ranges.reduce(ReplicaRange::hull)
}

/// Whether what is requested has to do with a custom resource that selects the pods of a workload which can be scaled, or
/// with an autoscaler.
pub fn is_asked(state: &State<'_>, workload: &Object) -> bool {
    if workload.key.kind.is("DaemonSet") {
        return false;
    }
    let before = State::new(state.base());
    let scaled = [state, &before].map(|state| navigate::autoscalers(state, &workload.key));
    if scaled.iter().flatten().any(|scaler| state.delta().contains_key(&scaler.key)) {
        return true;
    }
    let labels = navigate::template_labels(state, workload).unwrap_or_default();
    let is_changed = |parent: &Parent| state.delta().contains_key(&parent.object.key);
    parents(state, &workload.key.ns, &labels).iter().any(is_changed)
}

/// Whether a custom resource has a say in how many pods there are.
pub fn decides(state: &State<'_>, object: &Arc<Object>) -> bool {
    Parent::of(state, object).is_some()
}

/// The custom resource that decides about a pod for which no workload does.
pub fn decider(state: &State<'_>, pod: &Object) -> Option<Key> {
    parents(state, &pod.key.ns, pod.labels()).into_iter().next().map(|parent| parent.object.key.clone())
}
