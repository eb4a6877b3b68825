//! Applying a manifest, with and without what was applied last.

use super::*;

fn yaml(text: &str) -> Val {
    serde_saphyr::from_str(text).unwrap()
}

const LIVE: &str = "
metadata: {name: web, uid: u, resourceVersion: '7', finalizers: [f], labels: {app: web, added: x}}
spec:
  replicas: 3
  paused: true
  revisionHistoryLimit: 10
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}
  template:
    spec:
      containers:
      - {name: web, image: 'web:1', imagePullPolicy: IfNotPresent, terminationMessagePath: /dev/termination-log}
      - {name: injected, image: 'proxy:1'}
      dnsPolicy: ClusterFirst
status: {replicas: 3}
";

const MANIFEST: &str = "
metadata: {name: web, labels: {app: web}}
spec:
  template: {spec: {containers: [{name: web, image: 'web:2'}]}}
";

#[test]
fn without_what_was_applied_last_the_manifest_is_the_whole_truth() {
    let expected = "
metadata: {name: web, uid: u, resourceVersion: '7', finalizers: [f], labels: {app: web}}
spec:
  revisionHistoryLimit: 10
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}
  template:
    spec:
      containers:
      - {name: web, image: 'web:2', imagePullPolicy: IfNotPresent, terminationMessagePath: /dev/termination-log}
      dnsPolicy: ClusterFirst
status: {replicas: 3}
";
    assert_eq!(applied(&yaml(LIVE), &yaml(MANIFEST), None), yaml(expected), "replicas are dropped, defaults are not");
}

#[test]
fn with_it_only_what_was_applied_is_taken_away() {
    let last = yaml(
        "
metadata: {name: web, labels: {app: web}}
spec: {replicas: 3, template: {spec: {containers: [{name: web, image: 'web:1'}, {name: injected}]}}}
",
    );
    let merged = applied(&yaml(LIVE), &yaml(MANIFEST), Some(&last));
    assert_eq!(merged.at(&["spec", "replicas"]), None, "it was applied, it is not any more");
    assert_eq!(merged.bool_at(&["spec", "paused"]), Some(true), "somebody else's field");
    assert_eq!(merged.str_at(&["metadata", "labels", "added"]).map(|v| &**v), Some("x"));
    let containers = merged.items_at(&["spec", "template", "spec", "containers"]);
    assert_eq!(containers.len(), 1, "the other one was applied and is not any more");

    let last = yaml("metadata: {name: web}\nspec: {template: {spec: {containers: [{name: web, image: 'web:1'}]}}}");
    let merged = applied(&yaml(LIVE), &yaml(MANIFEST), Some(&last));
    assert_eq!(merged.int_at(&["spec", "replicas"]), Some(3), "never applied: an autoscaler's");
    let containers = merged.items_at(&["spec", "template", "spec", "containers"]);
    let images: Vec<_> = containers.iter().filter_map(|c| c.str_at(&["image"])).map(|v| &**v).collect();
    assert_eq!(images, ["web:2", "proxy:1"], "a container that a webhook injected stays");
}

#[test]
fn the_same_manifest_changes_nothing() {
    let live = yaml(LIVE);
    assert_eq!(applied(&live, &live, None), live);
    assert_eq!(applied(&live, &live, Some(&live)), live);
    let claim = yaml("spec: {volumeName: pv, accessModes: [ReadWriteOnce], volumeMode: Filesystem}");
    assert_eq!(applied(&claim, &yaml("spec: {accessModes: [ReadWriteOnce]}"), None), claim);
}

#[test]
fn what_was_applied_last_is_in_an_annotation() {
    let annotation = Val::object([(LAST_APPLIED, Val::str(r#"{"spec":{"replicas":3}}"#))]);
    let object = Val::object([("metadata", Val::object([("annotations", annotation)]))]);
    assert_eq!(last_applied(&object).and_then(|last| last.int_at(&["spec", "replicas"])), Some(3));
    assert_eq!(last_applied(&yaml("metadata: {name: a}")), None);
}
