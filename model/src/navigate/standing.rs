//! What an object selects whatever software does with the labels of pods: a role that is moved from pod to pod is a label that
//! no template bears.

use std::sync::Arc;

use super::owners::controller_of;
use super::selection::selected;
use super::template::template_labels;
use crate::controllers::statefulset::ordinal_labels;
use crate::fields::selector_parts;
use crate::object::Object;
use crate::selector::text;
use crate::state::State;
use crate::steps;
use crate::value::{Str, Val};

/// The label selector of a Service, a budget or a policy without the labels that the pods which it selects did not get from
/// their controllers' templates; as it is where nothing would be left of it.
pub fn standing_selector(state: &State, object: &Object) -> Option<Val> {
    let (labels, expressions) = selector_parts(object)?;
    // pods of one controller and one body are alike
    let mut pods = selected(state, object);
    pods.dedup_by(|a, b| Arc::ptr_eq(&a.body, &b.body));
    let stand = |key: &Str| pods.iter().all(|pod| is_borne(state, pod, key));
    let standing: Vec<(Str, Val)> =
        labels.entries().filter(|(key, _)| stand(key)).map(|(key, value)| (key.clone(), value.clone())).collect();
    let labels = if standing.is_empty() { labels } else { Val::map(standing) };
    Some(Val::object([("matchLabels", labels), ("matchExpressions", expressions)]))
}

/// The objects in a namespace whose [standing selector](standing_selector) may match a pod with these labels, whatever the pods
/// bear that they select: they ask for one of these labels, or for none. As the snapshot has them; each once.
pub fn may_stand_for<'s>(state: &'s State, ns: &Str, labels: &Val) -> Vec<&'s Arc<Object>> {
    let asks = |object: &Object| {
        let bears = |(key, value): (&Str, &Val)| labels.get(key).is_some_and(|label| text(label) == text(value));
        selector_parts(object).is_some_and(|(asked, _)| asked.entries().len() == 0 || asked.entries().any(bears))
    };
    let base = state.base();
    let mut found: Vec<&Arc<Object>> = base.selecting(ns, labels).chain(base.asking_beside(ns, labels)).collect();
    found.sort_by(|a, b| a.key.cmp(&b.key));
    found.dedup_by(|a, b| a.key == b.key);
    found.retain(|object| {
        steps::walk();
        asks(object)
    });
    found
}

/// Whether a pod has a label from the template that it was made from, or for its place in a set. Where the template is not
/// known, a label is taken to be one that all pods of its controller have alike.
fn is_borne(state: &State, pod: &Object, key: &Str) -> bool {
    let Some(owner) = pod.controller() else { return true };
    let template = controller_of(state, pod).and_then(|controller| template_labels(state, controller));
    match template {
        Some(labels) => {
            labels.get(key).is_some()
                || ordinal_labels(pod.labels()).any(|(name, _)| *name == **key)
                || OF_CONTROLLERS.contains(&&**key)
        }
        None => {
            let siblings = state.owned_by(&owner.uid).into_iter();
            siblings.filter(|sibling| sibling.key.kind.is("Pod")).all(|sibling| sibling.label(key) == pod.label(key))
        }
    }
}

/// Labels by which controllers mark the revision of a pod (`pkg/controller/history`, `apps/v1/types.go`).
const OF_CONTROLLERS: [&str; 3] = ["controller-revision-hash", "pod-template-generation", "pod-template-hash"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::ingest;
    use crate::object::Key;
    use crate::selector::Selector;
    use crate::snapshot::Snapshot;

    /// A set of two whose members bear a role that no template has, and what selects them.
    const CLUSTER: &str = "
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: a, uid: s}, spec: {replicas: 2, selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: db-0, namespace: a, uid: p0, labels: {app: db, role: primary}, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: s, controller: true}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: db-1, namespace: a, uid: p1, labels: {app: db, role: replica}, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: s, controller: true}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: primary, namespace: a}, spec: {selector: {app: db, role: primary}}}
---
{apiVersion: v1, kind: Service, metadata: {name: role, namespace: a}, spec: {selector: {role: primary}}}
---
{apiVersion: v1, kind: Service, metadata: {name: other, namespace: a}, spec: {selector: {app: web}}}
---
{apiVersion: v1, kind: ReplicationController, metadata: {name: own, namespace: a}, spec: {selector: {app: db}}}
---
{apiVersion: v1, kind: ReplicationController, metadata: {name: other, namespace: a}, spec: {selector: {app: web}}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: by-expression, namespace: a}, spec: {selector: {matchExpressions: [{key: app, operator: In, values: [db]}]}}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: all, namespace: a}, spec: {selector: {}}}
";

    #[test]
    fn whatever_stands_for_a_pod_is_found_by_its_labels() {
        let mut snapshot = Snapshot::default();
        ingest(&mut snapshot, CLUSTER, "cluster").unwrap();
        let state = State::new(&snapshot);
        let mut means = 0;
        for pod in ["db-0", "db-1"].map(|name| snapshot.get(&Key::of("Pod", "a", name)).unwrap()) {
            let found = may_stand_for(&state, &"a".into(), pod.labels());
            for object in snapshot.iter().filter(|object| selector_parts(object).is_some()) {
                let standing = Selector::from_label_selector(&standing_selector(&state, object).unwrap());
                let is_meant = standing.matches(pod.labels());
                means += usize::from(is_meant);
                let is_found = found.iter().any(|known| known.key == object.key);
                assert!(!is_meant || is_found, "{} means {}", object.key, pod.key);
            }
            assert!(found.iter().all(|object| &*object.key.name != "other"), "it asks for none of its labels");
        }
        // both pods by the set, the first Service, which has no role any more, the first controller and the two budgets; one by
        // its role alone
        assert_eq!(means, 11);
    }
}
