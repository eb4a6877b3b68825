//! Each edge from both ends: what a deletion takes along is expected to go once it is under way.

use super::*;
use crate::adapter::AdapterFacts;
use crate::change::Propagation;
use crate::kinds::Kind;
use crate::object::Key;
use crate::selector::Selector;
use crate::snapshot::Supposition;
use crate::state::State;
use crate::steps;
use crate::testing::{Adapter, adapted, key};
use crate::value::Val;

const CLUSTER: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: a, uid: n}}
---
{apiVersion: v1, kind: Node, metadata: {name: n1, uid: n1}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: b, uid: p}, spec: {nodeName: n1}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: inside, namespace: a, uid: i}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: sa, namespace: b, uid: sa}}
---
apiVersion: v1
kind: Secret
type: kubernetes.io/service-account-token
metadata: {name: token, namespace: b, uid: t, annotations: {kubernetes.io/service-account.name: sa}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: dbs.example.com, uid: crd}
spec: {group: example.com, names: {kind: Db, plural: dbs}}
---
{apiVersion: example.com/v1, kind: Db, metadata: {name: db, namespace: b, uid: db}}
---
{apiVersion: v1, kind: Service, metadata: {name: child, namespace: b, uid: c}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: kept, namespace: b, uid: k, labels: {app: db}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: set, namespace: b, uid: s}
spec:
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}
  volumeClaimTemplates: [{metadata: {name: data}}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data-set-0, namespace: b, uid: d}
spec: {volumeName: pv}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv, uid: pv}
spec: {persistentVolumeReclaimPolicy: Delete, claimRef: {namespace: b, name: data-set-0, uid: d}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: early, namespace: b, uid: e}, spec: {volumeName: unbound}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: unbound, uid: u}, spec: {persistentVolumeReclaimPolicy: Delete}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: owned, namespace: b, uid: o, ownerReferences: [{apiVersion: v1, kind: Service, name: child, uid: c}]}
";

fn db_adapter() -> Vec<Adapter> {
    vec![(Kind::new("example.com", "Db"), |_| AdapterFacts {
        claim_selector: Some(Selector::from_pairs(&Val::object([("app", Val::str("db"))]))),
        children: Some(vec![key("Service/b/child")]),
        cascades: true,
        deletes_volumes: true,
        ..AdapterFacts::default()
    })]
}

#[test]
fn an_edge_is_the_same_from_both_ends() {
    let db = Key::new(Kind::new("example.com", "Db"), "b", "db");
    let edges = [
        (key("Namespace/a"), Cause::Namespace, key("ConfigMap/a/inside")),
        (key("CustomResourceDefinition/dbs.example.com"), Cause::Definition, db.clone()),
        (key("ServiceAccount/b/sa"), Cause::Token, key("Secret/b/token")),
        (db.clone(), Cause::Operator, key("Service/b/child")),
        (db, Cause::Operator, key("PersistentVolumeClaim/b/kept")),
        (key("StatefulSet/b/set"), Cause::Retention, key("PersistentVolumeClaim/b/data-set-0")),
        (key("PersistentVolumeClaim/b/data-set-0"), Cause::Reclaimed, key("PersistentVolume/pv")),
        (key("PersistentVolumeClaim/b/early"), Cause::Reclaimed, key("PersistentVolume/unbound")),
        (key("Service/b/child"), Cause::Collected, key("ConfigMap/b/owned")),
    ];
    let mut snapshot = adapted(CLUSTER, db_adapter());
    for (leader, cause, follower) in &edges {
        let mut state = State::new(&snapshot);
        let mut found = DeletionClosure::new();
        assert!(!expected_to_go(&state, state.get(follower).unwrap()), "{follower} before");
        assert!(followers(&state, state.get(leader).unwrap()).contains(follower), "{leader}");
        assert!(cascade(&mut state, &[(leader.clone(), Propagation::Background)], &[], &mut found, usize::MAX));
        assert_eq!(found.get(follower), Some(&(*cause, leader.clone())));
    }
    // on a node, it is the pod that tells
    let (node, pod) = (key("Node/n1"), key("Pod/b/p"));
    assert_eq!(followers(&State::new(&snapshot), State::new(&snapshot).get(&node).unwrap()), [pod]);
    for (leader, _, follower) in &edges {
        let before = snapshot.get(leader).unwrap().clone();
        snapshot.insert(before.with_deletion("2026-01-01T00:00:00Z"));
        let state = State::new(&snapshot);
        assert!(expected_to_go(&state, state.get(follower).unwrap()), "{follower} after {leader}");
        snapshot.insert((*before).clone());
    }
}

#[test]
fn a_claim_follows_the_pod_that_took_it_along_when_that_is_gone() {
    let scaled = "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: set, namespace: b, uid: s}
spec:
  replicas: 1
  persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}
  volumeClaimTemplates: [{metadata: {name: data}}]
---
apiVersion: v1
kind: Pod
metadata: {name: set-1, namespace: b, uid: p, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: set, uid: s, controller: true}]}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-set-1, namespace: b, uid: d1}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-set-2, namespace: b, uid: d2}}
";
    let snapshot = adapted(scaled, Vec::new());
    let mut state = State::new(&snapshot);
    state.take(&key("Pod/b/set-1"));
    let goes = |name: &str| expected_to_go(&state, state.get(&key(name)).unwrap());
    assert!(goes("PersistentVolumeClaim/b/data-set-1"));
    // no pod of it was there to take it along
    assert!(!goes("PersistentVolumeClaim/b/data-set-2"));
}

#[test]
fn what_nothing_keeps_is_collected_once_its_owner_is_gone() {
    let surely = |kind: &str, metadata: &str| {
        let owner = format!("{{apiVersion: v1, kind: {kind}, metadata: {{name: o, namespace: a, uid: o{metadata}}}}}");
        let owned = format!(
            "{{apiVersion: v1, kind: Secret, metadata: {{name: s, namespace: a, uid: s, ownerReferences: [{{apiVersion: v1, \
             kind: {kind}, name: o, uid: o}}]}}}}"
        );
        let snapshot = adapted(&format!("{owner}\n---\n{owned}"), Vec::new());
        let state = State::new(&snapshot);
        Expected::new(&state).surely_goes(state.get(&key("Secret/a/s")).unwrap())
    };
    assert!(!surely("ConfigMap", ""));
    assert!(surely("ConfigMap", ", deletionTimestamp: x"));
    assert!(!surely("ConfigMap", ", deletionTimestamp: x, finalizers: [foregroundDeletion]"), "it may wait for ever");
    assert!(!surely("Pod", ", deletionTimestamp: x"), "its node may be gone");
}

#[test]
fn what_goes_unseen_is_looked_for_once_in_a_namespace() {
    let cost = |maps: usize| {
        let owner = "{apiVersion: x.io/v1, kind: Widget, name: w, uid: w}";
        let map = |at| {
            format!(
                "---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: m{at}, namespace: a, uid: m{at}, \
                 ownerReferences: [{owner}]}}}}\n"
            )
        };
        let maps: String = (0..maps).map(map).collect();
        let mut snapshot =
            adapted(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: a}}}}\n{maps}"), vec![]);
        snapshot.set_unknown(["Widget".into()].into());
        let snapshot = snapshot.supposing([Supposition::OwnersTaken(Kind::new("x.io", "Widget"))].into());
        let (mut state, mut found) = (State::new(&snapshot), DeletionClosure::new());
        steps::within(1_000_000, || {
            assert!(cascade(&mut state, &[(key("Namespace/a"), Propagation::Background)], &[], &mut found, usize::MAX));
            1_000_000 - steps::left()
        })
    };
    let (few, many) = (cost(50), cost(500));
    assert!(few > 0 && many < few * 12, "{few} steps for 50, {many} for 500");
}
