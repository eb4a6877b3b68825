//! What is kept of a history is what would be found anew, and so is what a state makes of it.

use super::*;
use crate::ingest::objects;
use crate::snapshot::Snapshot;
use crate::testing::{numbers, val};

/// Versions of objects that decide which workloads lack pods.
const VERSIONS: [&str; 29] = [
    "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: a, uid: d}, spec: {replicas: 2, template: {spec: {containers: [{name: c}]}}}}",
    "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: a, uid: d}, spec: {replicas: 1, template: {spec: {containers: [{name: c}]}}}}",
    "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: a, uid: d}, spec: {replicas: 1, template: {spec: {nodeSelector: {x: y}, containers: [{name: c}]}}}}",
    "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: a, uid: d, deletionTimestamp: x, finalizers: [foregroundDeletion]}, spec: {replicas: 1, template: {spec: {containers: [{name: c}]}}}}",
    "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r, namespace: a, uid: r, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: d, uid: d, controller: true}]}, spec: {replicas: 1, template: {spec: {containers: [{name: c}]}}}}",
    "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r, namespace: a, uid: r}, spec: {replicas: 2, template: {spec: {containers: [{name: c}]}}}}",
    "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a, uid: p, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: r, controller: true}]}, spec: {nodeName: n, containers: [{name: c}]}, status: {phase: Running}}",
    "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a, uid: p, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: r, controller: true}]}, spec: {nodeName: n, containers: [{name: c}]}, status: {phase: Succeeded}}",
    "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a, uid: p, deletionTimestamp: x, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: r, controller: true}]}, spec: {nodeName: n, containers: [{name: c}]}}",
    "{apiVersion: v1, kind: Pod, metadata: {name: q, namespace: a, uid: q, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: r, controller: true}]}, spec: {nodeName: m, containers: [{name: c}]}}",
    "{apiVersion: v1, kind: Pod, metadata: {name: q, namespace: a, uid: q}, spec: {nodeName: m, containers: [{name: c}]}}",
    "{apiVersion: v1, kind: Node, metadata: {name: n}}",
    "{apiVersion: v1, kind: Node, metadata: {name: n}, spec: {taints: [{key: k, effect: NoExecute}]}}",
    "{apiVersion: v1, kind: Node, metadata: {name: n}, status: {conditions: [{type: Ready, status: 'False'}]}}",
    "{apiVersion: v1, kind: Node, metadata: {name: n, deletionTimestamp: x, finalizers: [example.org/drain]}}",
    "{apiVersion: v1, kind: Node, metadata: {name: m}}",
    "{apiVersion: v1, kind: Namespace, metadata: {name: a, uid: a}}",
    "{apiVersion: v1, kind: Namespace, metadata: {name: a, uid: a, deletionTimestamp: x}}",
    "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h, namespace: a, uid: h}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}}}",
    "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h, namespace: a, uid: h}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: ReplicaSet, name: r}}}",
    "{apiVersion: example.org/v1, kind: Widget, metadata: {name: w, namespace: a, uid: w}}",
    "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r, namespace: a, uid: r, ownerReferences: [{apiVersion: example.org/v1, kind: Widget, name: w, uid: w, controller: true}]}, spec: {replicas: 1, template: {spec: {containers: [{name: c}]}}}}",
    "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: a, uid: d, generation: 2, resourceVersion: '1'}, spec: {replicas: 1, template: {spec: {containers: [{name: c}]}}}, status: {observedGeneration: 1}}",
    "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: a, uid: d, generation: 2, resourceVersion: '2'}, spec: {replicas: 1, template: {spec: {containers: [{name: c}]}}}, status: {observedGeneration: 2, replicas: 1}}",
    "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: a, uid: d2, generation: 2, resourceVersion: '3'}, spec: {replicas: 1, template: {spec: {containers: [{name: c}]}}}, status: {observedGeneration: 2, replicas: 1}}",
    "{apiVersion: v1, kind: Pod, metadata: {name: q, namespace: a, uid: q, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: c, uid: c}, {apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: r, controller: true}]}, spec: {nodeName: m, containers: [{name: c}]}}",
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: a, uid: c}}",
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: a, uid: c, deletionTimestamp: x, finalizers: [foregroundDeletion]}}",
    "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: v, namespace: a, uid: v, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: c, uid: c}]}}",
];

fn anew(state: &State<'_>) -> Lacks {
    Lacking::new(state).since(None, &BTreeSet::new())
}

#[test]
fn what_one_copy_is_asked_the_others_know() {
    let [deployment, set] = [0, 4].map(|at: usize| objects(&val(VERSIONS[at])).unwrap().remove(0));
    let (key, uid) = (set.key.clone(), deployment.uid.clone());
    let named = |number: i32| Key { name: format!("d{number}").as_str().into(), ..deployment.key.clone() };
    let mut snapshot = Snapshot::default();
    snapshot.insert(deployment.clone());
    let copy = snapshot.clone();
    snapshot.insert(set);
    // asked while others have changed already
    let found = copy.lacking(|before, _| {
        assert_eq!(before, None);
        Lacks::from([(deployment.key.clone(), Lack::Now)])
    });
    let later = snapshot.lacking(|before, marks| {
        assert_eq!(before, Some(&**found));
        assert!(marks.contains(&Mark::Itself(key.clone())) && marks.contains(&Mark::Above(uid.clone())), "{marks:?}");
        assert!(!marks.contains(&Mark::All), "{marks:?}");
        Lacks::from([(key.clone(), Lack::Later)])
    });
    assert_eq!(snapshot.clone().lacking(|_, _| unreachable!()), later);
    // more copies than there are versions kept
    let (mut last, mut copies) = (snapshot.clone(), Vec::new());
    for number in 0..200 {
        last.insert(Object { key: named(number), ..deployment.clone() });
        copies.push(last.clone());
    }
    let all = copies[199].lacking(|before, marks| {
        assert_eq!(before, Some(&**later));
        assert!((0..200).all(|number| marks.contains(&Mark::Itself(named(number)))), "{marks:?}");
        Lacks::new()
    });
    assert_eq!(last.lacking(|_, _| unreachable!()), all);
}

#[test]
fn what_is_kept_is_what_would_be_found_anew() {
    let (mut some, mut changed) = (0, 0);
    let versions = VERSIONS.map(|text| objects(&val(text)).unwrap().remove(0));
    for seed in 0..200 {
        let mut number = numbers(seed);
        let mut snapshot = Snapshot::default();
        let (mut last, mut copies) = (Lacks::new(), Vec::new());
        for _ in 0..60 {
            let object = versions[number(VERSIONS.len())].clone();
            // copies go their own ways, and are asked late
            copies.push(snapshot.clone());
            match number(4) {
                0 => drop(snapshot.remove(&object.key)),
                _ => snapshot.insert(object),
            }
            if number(3) == 0 {
                let copy = copies.swap_remove(number(copies.len()));
                let state = State::new(&copy);
                assert_eq!(*Lacking::new(&state).kept(), anew(&state), "seed {seed}: of a copy");
                continue;
            }
            let state = State::new(&snapshot);
            let kept = Lacking::new(&state).kept().clone();
            assert_eq!(kept, anew(&state), "seed {seed}: of a snapshot");
            some += usize::from(!kept.is_empty());
            changed += usize::from(kept != last);
            last = kept;
            let mut state = State::new(&snapshot);
            for _ in 0..=number(3) {
                let object = versions[number(VERSIONS.len())].clone();
                match number(3) {
                    0 => state.take(&object.key),
                    _ => state.put(object),
                }
            }
            assert_eq!(*Lacking::new(&state).kept(), anew(&state), "seed {seed}: of a state");
        }
    }
    assert!(some > 1_000 && changed > 1_000, "{some} {changed}");
}
