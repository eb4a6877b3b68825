//! In how many ways changes in flight may have landed.

use super::*;
use crate::change::{Preconditions, User};
use crate::testing::cluster;

/// ConfigMaps of the names `0` to `9`.
fn ten() -> Snapshot {
    let map = |name: u32| format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: '{name}', namespace: n}}}}\n");
    cluster(&(0..10).map(map).collect::<Vec<_>>().join("---\n"))
}

fn deletion(snapshot: &Snapshot, name: usize) -> Request {
    let key = Key::of("ConfigMap", "n", &name.to_string());
    Request::delete(User::admin(), &State::new(snapshot), key, None, Preconditions::default())
}

/// In how many ways deletions of the ConfigMaps of these names may have landed, of which there are ten.
fn ways(names: impl IntoIterator<Item = usize>) -> Result<usize, TooManyInFlight> {
    ways_within(usize::MAX, names)
}

fn ways_within(most: usize, names: impl IntoIterator<Item = usize>) -> Result<usize, TooManyInFlight> {
    let snapshot = ten();
    let in_flight: Vec<Request> = names.into_iter().map(|name| deletion(&snapshot, name)).collect();
    let in_flight: Vec<&Request> = in_flight.iter().collect();
    ways_to_land(&snapshot, &in_flight, &Change::from(deletion(&snapshot, 0)), most)
}

#[test]
fn a_change_without_effect_is_not_told_from_one_that_has_not_landed() {
    assert_eq!(ways([]), Ok(1));
    assert_eq!(ways([0, 1, 2]), Ok(8));
    assert_eq!(ways([0, 77, 1, 78, 2]), Ok(8), "two are not there");
    assert_eq!(ways(80..100), Ok(1), "twenty that do nothing");
}

#[test]
fn more_ways_than_are_judged_are_refused() {
    assert_eq!(ways(0..10), Ok(SCENARIOS_MAX));
    assert_eq!(ways((0..10).chain([0])), Err(TooManyInFlight { count: 11, max: SCENARIOS_MAX }));
    assert_eq!(ways(80..=80 + IN_FLIGHT_MAX), Err(TooManyInFlight { count: 25, max: SCENARIOS_MAX }));
    assert_eq!(ways_within(8, 0..3), Ok(8));
    assert_eq!(ways_within(7, 0..3), Err(TooManyInFlight { count: 3, max: 7 }));
}

#[test]
fn more_changes_than_there_are_bits_are_refused() {
    let snapshot = ten();
    let manifest = |name: usize| {
        let text = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"new-{name}","namespace":"n","uid":"u-{name}",
                "ownerReferences":[{{"apiVersion":"v1","kind":"ConfigMap","name":"new-40","uid":"u-40"}}]}}}}"#
        );
        serde_json::from_str::<Val>(&text).unwrap()
    };
    let create = |name| Request::create(User::admin(), &State::new(&snapshot), &manifest(name)).unwrap();
    let in_flight: Vec<Request> = (0..41).map(create).collect();
    let in_flight: Vec<&Request> = in_flight.iter().collect();
    // names the last of them as its owner
    let change = Change::from(create(41));
    let ways = ways_to_land(&snapshot, &in_flight, &change, SCENARIOS_MAX);
    assert_eq!(ways, Err(TooManyInFlight { count: 41, max: SCENARIOS_MAX }));
}

#[test]
fn the_ways_are_the_subsets_that_have_an_effect() {
    let snapshot = ten();
    let in_flight = [0, 77, 1].map(|name| deletion(&snapshot, name));
    let in_flight: Vec<&Request> = in_flight.iter().collect();
    let found = scenarios(&snapshot, &in_flight, None, Moment::During).unwrap();
    let landed: BTreeSet<u32> = found.iter().map(|scenario| scenario.landed).collect();
    assert_eq!(landed, [0b000, 0b001, 0b100, 0b101].into());
    assert_eq!(found.len(), landed.len());
    for scenario in &found {
        let goes = |name: &str| scenario.in_deletion_closure.contains_key(&Key::of("ConfigMap", "n", name));
        assert_eq!((goes("0"), goes("1")), (scenario.landed & 1 != 0, scenario.landed & 4 != 0));
    }
}

/// A ReplicaSet with a pod in namespace `n`, owned by a ConfigMap, which owns another one; beside them others and ConfigMaps, in the
/// same namespace and in another.
const OWNED: &str = "
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r, namespace: n, uid: r,
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: top, uid: top}]}, spec: {replicas: 1, selector: {matchLabels: {app: r}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: n, uid: p, labels: {app: r},
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: r, controller: true}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: top, namespace: n, uid: top}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: n}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: elsewhere}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: top, namespace: elsewhere, uid: top-elsewhere}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: beside, namespace: n, uid: b,
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: top, uid: top}]}, spec: {replicas: 1, selector: {matchLabels: {app: b}}}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: other, namespace: n, uid: s}, spec: {replicas: 0, selector: {matchLabels: {app: s}}}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: other, namespace: elsewhere, uid: t}, spec: {replicas: 0, selector: {matchLabels: {app: s}}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: n}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: elsewhere}}
";

#[test]
fn a_controller_is_told_by_what_may_move_its_pods_or_take_them_along() {
    let snapshot = cluster(OWNED);
    let (state, pod) = (State::new(&snapshot), Key::of("Pod", "n", "p"));
    let labels = Val::object([("metadata", Val::object([("labels", Val::object([("app", Val::str("other"))]))]))]);
    let writes = Request::patch(User::admin(), &state, pod.clone(), &labels, "").unwrap();
    let owned_after = |key: Key| {
        let mut scenario = Scenario::observed(&snapshot);
        scenario.land(&writes);
        let is_owned = |scenario: &Scenario<'_>| scenario.state.get(&pod).unwrap().controller().is_some();
        assert!(!is_owned(&scenario), "its ReplicaSet releases it");
        scenario.land(&Request::delete(User::admin(), &state, key, None, Preconditions::default()));
        is_owned(&scenario)
    };
    assert!(owned_after(Key::of("ReplicaSet", "n", "r")), "it may not have come to that");
    assert!(owned_after(Key::of("ReplicaSet", "n", "beside")), "what is above both may scale one for the other");
    assert!(!owned_after(Key::of("ReplicaSet", "n", "other")));
    assert!(!owned_after(Key::of("ReplicaSet", "elsewhere", "other")));
    assert!(owned_after(Key::of("ConfigMap", "n", "top")));
    assert!(!owned_after(Key::of("ConfigMap", "elsewhere", "top")));
    assert!(!owned_after(Key::of("ConfigMap", "n", "m")));
    assert!(!owned_after(Key::of("ConfigMap", "elsewhere", "m")));
    assert!(owned_after(Key::of("Namespace", "", "n")));
    assert!(!owned_after(Key::of("Namespace", "", "elsewhere")));
}

#[test]
fn a_controller_is_told_by_a_deployment_that_adopts_it() {
    let snapshot = cluster(
        "
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r, namespace: n, uid: r, labels: {app: r}},
  spec: {replicas: 1, selector: {matchLabels: {app: r}}, template: {metadata: {labels: {app: r}}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: n, uid: p, labels: {app: r},
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: r, controller: true}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: over, namespace: n, uid: d}, spec: {replicas: 1, selector: {matchLabels: {app: r}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: other, namespace: n, uid: o}, spec: {replicas: 1, selector: {matchLabels: {app: o}}}}
",
    );
    let (state, pod) = (State::new(&snapshot), Key::of("Pod", "n", "p"));
    let patch = |key: Key, changes: &str| {
        let changes = serde_json::from_str::<Val>(changes).unwrap();
        Request::patch(User::admin(), &state, key, &changes, "").unwrap()
    };
    let is_owned_after = |name: &str| {
        let mut scenario = Scenario::observed(&snapshot);
        scenario.land(&patch(pod.clone(), r#"{"metadata":{"labels":{"app":"x"}}}"#));
        scenario.land(&patch(Key::of("Deployment", "n", name), r#"{"spec":{"replicas":2}}"#));
        scenario.state.get(&pod).unwrap().controller().is_some()
    };
    assert!(is_owned_after("over"), "it scales the ReplicaSet that it adopts");
    assert!(!is_owned_after("other"));
}

#[test]
fn what_gives_a_pod_to_a_controller_that_releases_it_changes_what_that_has() {
    let snapshot = cluster(OWNED);
    let (state, pod) = (State::new(&snapshot), Key::of("Pod", "n", "p"));
    let owners = serde_json::from_str::<Val>(
        r#"{"metadata":{"labels":{"app":"other"},
            "ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"r","controller":true}]}}"#,
    );
    let writes = Request::patch(User::admin(), &state, pod, &owners.unwrap(), "").unwrap();
    let owned = |object: &Option<Arc<Object>>| object.as_ref().is_some_and(|pod| pod.controller().is_some());
    let changed = changes(&snapshot, &[], &writes).unwrap();
    assert!(changed.iter().any(|(_, after)| owned(after)), "it may be told of something before it releases the pod");
    assert!(changed.iter().any(|(_, after)| !owned(after)));
}
