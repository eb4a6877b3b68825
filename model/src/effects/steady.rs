//! Which nodes are told by what all of their pods request: on the others may be pods that go.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::controllers::replicas::stated_replicas;
use crate::deletion::cascaded;
use crate::kinds::{Kind, KindTraits};
use crate::navigate;
use crate::object::Object;
use crate::state::State;
use crate::value::Str;

/// The nodes on which a pod may be that does not stay: one that ends by itself, is on one of the `unhealthy` nodes, is changed, or
/// may go with what owns it. That an owner of another name has the uid which a pod names is not looked at.
pub(crate) fn unsteady(state: &State<'_>, unhealthy: &BTreeSet<Str>) -> BTreeSet<Str> {
    let base = state.base();
    let mut found = unhealthy.clone();
    found.extend(base.fleeting().into_iter().map(|pod| pod.node.clone()));
    let mut open: Vec<Str> = base.missing_owners().iter().cloned().collect();
    let mut going: Vec<&Arc<Object>> = base.leaving();
    let namespaces = state.list(&Kind::new("", "Namespace"), None).into_iter();
    let mut places: BTreeSet<&Str> = namespaces.filter(|ns| !ns.live()).map(|ns| &ns.key.name).collect();
    for (key, now) in state.delta() {
        let versions = || base.get(key).into_iter().chain(now);
        found.extend(versions().map(|object| object.node.clone()).filter(|node| !node.is_empty()));
        let is_owned_alike = |now: &Object| base.get(key).is_none_or(|old| old.owners() == now.owners());
        if now.as_ref().is_none_or(|now| !now.live() || !is_owned_alike(now)) {
            going.extend(versions());
            places.extend(key.kind.is("Namespace").then_some(&key.name));
        }
    }
    for object in going {
        open.push(object.uid.clone());
        if base.adapters().lists_children(&object.key.kind) {
            open.extend(cascaded(state, object).into_iter().map(|child| child.uid.clone()));
        }
        if object.key.kind.is("CustomResourceDefinition") {
            open.extend(navigate::instances(state, object).into_iter().map(|custom| custom.uid.clone()));
        }
    }
    let pod = Kind::new("", "Pod");
    found.extend(places.into_iter().flat_map(|ns| state.list(&pod, Some(ns))).map(|pod| pod.node.clone()));
    let mut seen: BTreeSet<Str> = BTreeSet::new();
    while let Some(uid) = open.pop() {
        if !uid.is_empty() && seen.insert(uid.clone()) {
            for object in state.owned_by(&uid) {
                found.insert(object.node.clone());
                open.push(object.uid.clone());
            }
        }
    }
    found
}

/// The nodes with pods of what wants none and may not have taken them away yet.
pub(crate) fn unwanted(state: &State<'_>) -> BTreeSet<Str> {
    let makers = Kind::with(KindTraits::has_scale).flat_map(|kind| state.list(&kind, None));
    // of the ReplicaSets of a Deployment that one says how many pods there are
    let decides = |maker: &Object| maker.controller().is_none() || maker.key.kind.is("Deployment");
    let unwanting = makers.filter(|maker| stated_replicas(maker) == 0 && decides(maker));
    unwanting.flat_map(|maker| navigate::pods_owned_by(state, maker)).map(|pod| pod.node.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effects::Memo;
    use crate::effects::scheduling::foreign_pods::has_gone;
    use crate::effects::survival::Survivals;
    use crate::ingest::objects;
    use crate::scenario::Scenario;
    use crate::snapshot::Snapshot;
    use crate::testing::{numbers, val};

    /// Versions of objects by which pods go.
    const VERSIONS: [&str; 24] = [
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: a, uid: d}, spec: {replicas: 2}}",
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: a, uid: d}, spec: {replicas: 0}}",
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: a, uid: d, deletionTimestamp: x}, spec: {replicas: 2}}",
        "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r, namespace: a, uid: r, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: d, uid: d, controller: true}]}, spec: {replicas: 0}}",
        "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r, namespace: a, uid: r}, spec: {replicas: 0}}",
        "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r, namespace: a, uid: r, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: c, uid: c}]}, spec: {replicas: 1}}",
        "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r, namespace: a, uid: r}, spec: {replicas: 1}}",
        "{apiVersion: v1, kind: ReplicationController, metadata: {name: o, namespace: a, uid: o}, spec: {replicas: 0}}",
        "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s, namespace: b, uid: s}, spec: {replicas: 0}}",
        "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s, namespace: b, uid: s}, spec: {replicas: 1}}",
        "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a, uid: p, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: r, controller: true}]}, spec: {nodeName: n}}",
        "{apiVersion: v1, kind: Pod, metadata: {name: q, namespace: a, uid: q, ownerReferences: [{apiVersion: v1, kind: ReplicationController, name: o, uid: o, controller: true}]}, spec: {nodeName: m}}",
        "{apiVersion: v1, kind: Pod, metadata: {name: q, namespace: a, uid: q}, spec: {nodeName: m}}",
        "{apiVersion: v1, kind: Pod, metadata: {name: q, namespace: a, uid: q, deletionTimestamp: x}, spec: {nodeName: m}}",
        "{apiVersion: v1, kind: Pod, metadata: {name: q, namespace: a, uid: q}, spec: {nodeName: m, activeDeadlineSeconds: 5}}",
        "{apiVersion: v1, kind: Pod, metadata: {name: s-0, namespace: b, uid: s0, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: s, uid: s, controller: true}]}, spec: {nodeName: n}}",
        "{apiVersion: v1, kind: Node, metadata: {name: n}, status: {conditions: [{type: Ready, status: 'True'}]}}",
        "{apiVersion: v1, kind: Node, metadata: {name: n}, spec: {taints: [{key: k, effect: NoExecute}]}}",
        "{apiVersion: v1, kind: Node, metadata: {name: m}, status: {conditions: [{type: Ready, status: 'True'}]}}",
        "{apiVersion: v1, kind: Namespace, metadata: {name: a, uid: a}}",
        "{apiVersion: v1, kind: Namespace, metadata: {name: a, uid: a, deletionTimestamp: x}}",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: a, uid: c}}",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: a, uid: c, deletionTimestamp: x, finalizers: [foregroundDeletion]}}",
        "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r, namespace: a, uid: r, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: d, uid: d9}]}, spec: {replicas: 1}}",
    ];

    #[test]
    fn no_pod_goes_on_other_nodes() {
        let versions = VERSIONS.map(|text| objects(&val(text)).unwrap().remove(0));
        let mut number = numbers(1);
        let (mut gone, mut steady) = (0, 0);
        for _ in 0..2_000 {
            let mut snapshot = Snapshot::default();
            for _ in 0..20 {
                snapshot.insert(versions[number(versions.len())].clone());
            }
            snapshot.complete();
            let mut scenario = Scenario::observed(&snapshot);
            for _ in 0..number(3) {
                let object = versions[number(versions.len())].clone();
                match number(3) {
                    0 => scenario.state.take(&object.key),
                    _ => scenario.state.put(object),
                }
            }
            let memo = Memo::default();
            let mut emptied = unsteady(&scenario.state, memo.unhealthy(&scenario.state));
            emptied.extend(unwanted(&scenario.state));
            let survivals = Survivals::new(&scenario, &memo);
            for pod in scenario.state.list(&Kind::new("", "Pod"), None) {
                let goes = !pod.live() || has_gone(&survivals, pod);
                assert!(!goes || emptied.contains(&pod.node), "{} in {:?}", pod.key, scenario.state);
                gone += usize::from(goes);
                steady += usize::from(!emptied.contains(&pod.node));
            }
        }
        assert!(gone > 500 && steady > 200, "{gone} {steady}");
    }
}
