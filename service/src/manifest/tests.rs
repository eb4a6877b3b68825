//! Applying a manifest, with and without what was applied last.

use suture_model::kinds::Kind;

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

fn deployment() -> Structure<'static> {
    Structure::of(&Kind::new("apps", "Deployment"), None, "v1")
}

fn server_side(live: &str, manifest: &str, owned: Option<&Owned>) -> Val {
    applied(&yaml(live), &yaml(manifest), owned, KUBECTL, &deployment())
}

#[test]
fn a_manifest_that_replaces_is_the_whole_truth() {
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
    assert_eq!(replaced(&yaml(LIVE), &yaml(MANIFEST)), yaml(expected), "replicas are dropped, defaults are not");
}

#[test]
fn what_is_applied_is_merged_and_all_else_stays() {
    let expected = LIVE.replace("image: 'web:1'", "image: 'web:2'");
    assert_eq!(server_side(LIVE, MANIFEST, None), yaml(&expected));
    let gone = server_side(LIVE, "spec: {replicas: null}", None);
    assert_eq!(gone.at(&["spec", "replicas"]), None, "null takes a field away");
}

#[test]
fn what_the_manager_alone_owns_and_leaves_out_goes() {
    let entry =
        |manager: &str, fields: &str| format!("- {{manager: {manager}, operation: Apply, fieldsV1: {fields}}}\n");
    let owned = |entries: &str| {
        let object = yaml(&format!("metadata:\n  managedFields:\n{}", entries.replace("- {", "  - {")));
        Owned::of(&object).unwrap()
    };
    let kubectl = entry(
        "kubectl",
        r#"{"f:metadata": {"f:labels": {"f:app": {}, "f:added": {}}}, "f:spec": {"f:replicas": {}, "f:paused": {},
    "f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {".": {}, "f:name": {}, "f:image": {}},
    'k:{"name":"injected"}': {".": {}, "f:name": {}, "f:image": {}}}}}}}"#,
    );
    let merged = server_side(LIVE, MANIFEST, Some(&owned(&kubectl)));
    assert_eq!(merged.at(&["spec", "replicas"]), None);
    assert_eq!(merged.at(&["spec", "paused"]), None);
    assert_eq!(merged.at(&["metadata", "labels"]), Some(&yaml("{app: web}")));
    assert_eq!(merged.int_at(&["spec", "revisionHistoryLimit"]), Some(10), "nobody's");
    let containers = |val: &Val| {
        let containers = val.items_at(&["spec", "template", "spec", "containers"]).to_vec();
        containers.iter().filter_map(|c| c.str_at(&["name"])).map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(containers(&merged), ["web"]);

    let others = entry("scaler", r#"{"f:spec": {"f:replicas": {}}}"#)
        + &entry(
            "injector",
            r#"{"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"injected"}': {".": {}, "f:image": {}}}}}}}"#,
        );
    let merged = server_side(LIVE, MANIFEST, Some(&owned(&(kubectl.clone() + &others))));
    assert_eq!(merged.int_at(&["spec", "replicas"]), Some(3), "another manager owns it too");
    assert_eq!(containers(&merged), ["web", "injected"]);

    let argo = entry("argocd", r#"{"f:spec": {"f:paused": {}}}"#);
    let merged = server_side(LIVE, MANIFEST, Some(&owned(&argo)));
    assert_eq!(merged.bool_at(&["spec", "paused"]), Some(true), "somebody else's field");
    let merged = applied(&yaml(LIVE), &yaml(MANIFEST), Some(&owned(&argo)), "argocd", &deployment());
    assert_eq!(merged.at(&["spec", "paused"]), None);
    let client = kubectl.replace("manager: kubectl", "manager: kubectl-client-side-apply");
    assert_eq!(server_side(LIVE, MANIFEST, Some(&owned(&client))).at(&["spec", "replicas"]), None, "taken over");
}

#[test]
fn what_client_side_apply_remembers_is_owned_where_no_owner_is_shown() {
    let remembering = |last: &str| {
        let annotation = Val::object([(LAST_APPLIED, Val::str(serde_json::to_string(&yaml(last)).unwrap()))]);
        Owned::of(&Val::object([("metadata", Val::object([("annotations", annotation)]))])).unwrap()
    };
    let last = remembering(
        "
metadata: {name: web, labels: {app: web}}
spec: {replicas: 3, template: {spec: {containers: [{name: web, image: 'web:1'}, {name: injected, image: p}]}}}
",
    );
    let merged = server_side(LIVE, MANIFEST, Some(&last));
    assert_eq!(merged.at(&["spec", "replicas"]), None, "it was applied, it is not any more");
    assert_eq!(merged.bool_at(&["spec", "paused"]), Some(true), "somebody else's field");
    assert_eq!(merged.str_at(&["metadata", "labels", "added"]).map(|v| &**v), Some("x"));
    assert_eq!(merged.items_at(&["spec", "template", "spec", "containers"]).len(), 1);

    let last =
        remembering("metadata: {name: web}\nspec: {template: {spec: {containers: [{name: web, image: 'web:1'}]}}}");
    let merged = server_side(LIVE, MANIFEST, Some(&last));
    assert_eq!(merged.int_at(&["spec", "replicas"]), Some(3), "never applied: an autoscaler's");
    assert_eq!(merged.items_at(&["spec", "template", "spec", "containers"]).len(), 2, "a webhook injected one");
    assert_eq!(Owned::of(&yaml("metadata: {name: a}")), None);
}

#[test]
fn lists_and_maps_are_merged_as_their_types_say() {
    let merged = |kind: &str, live: &str, manifest: &str| {
        let kind = Kind::builtin(kind).unwrap();
        applied(&yaml(live), &yaml(manifest), None, KUBECTL, &Structure::of(&kind, None, "v1"))
    };
    let selector = merged("Service", "spec: {selector: {app: a, tier: b}}", "spec: {selector: {app: c}}");
    assert_eq!(selector, yaml("spec: {selector: {app: c}}"), "an atomic map");
    let ports = merged(
        "Service",
        "spec: {ports: [{port: 80}, {port: 53, protocol: UDP}]}",
        "spec: {ports: [{port: 80, protocol: TCP, name: w}]}",
    );
    assert_eq!(ports.items_at(&["spec", "ports"]).len(), 2, "the protocol is TCP where none is named: {ports:?}");
    let subjects = merged("RoleBinding", "subjects: [{name: a}, {name: b}]", "subjects: [{name: a}]");
    assert_eq!(subjects.items_at(&["subjects"]).len(), 1, "an atomic list");
    let finalizers = merged("Pod", "metadata: {finalizers: [a]}", "metadata: {finalizers: [b]}");
    assert_eq!(finalizers, yaml("metadata: {finalizers: [a, b]}"), "a set");

    let definition = yaml(
        "
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              users: {x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {}}
              others: {items: {}}
",
    );
    let structure = Structure::of(&Kind::new("example.org", "Db"), Some(&definition), "v1");
    let live = yaml("spec: {users: [{id: a}, {id: b}], others: [{id: a}, {id: b}]}");
    let merged = applied(&live, &yaml("spec: {users: [{id: a}], others: [{id: a}]}"), None, KUBECTL, &structure);
    assert_eq!(merged, yaml("spec: {users: [{id: a}, {id: b}], others: [{id: a}]}"));
}

#[test]
fn patches_are_strategic_where_the_kind_has_a_strategy() {
    let patch = |patch: &str, custom: bool| strategic_patch(&yaml(LIVE), &yaml(patch), &deployment(), custom);
    let images = |val: &Val| {
        let containers = val.items_at(&["spec", "template", "spec", "containers"]).to_vec();
        containers.iter().filter_map(|c| c.str_at(&["image"])).map(ToString::to_string).collect::<Vec<_>>()
    };
    let image = "spec: {template: {spec: {containers: [{name: web, image: 'web:2'}]}}}";
    assert_eq!(images(&patch(image, false).unwrap()), ["web:2", "proxy:1"]);
    assert_eq!(images(&patch(image, true).unwrap()), ["web:2"], "a JSON merge patch replaces lists");
    let delete = "spec: {template: {spec: {containers: [{name: injected, $patch: delete}]}}}";
    assert_eq!(images(&patch(delete, false).unwrap()), ["web:1"]);
    assert_eq!(patch("spec: {replicas: null}", false).unwrap().at(&["spec", "replicas"]), None);
    assert!(patch("spec: {$retainKeys: [a]}", false).unwrap_err().contains("`$retainKeys`"));
}

#[test]
fn the_same_manifest_changes_nothing() {
    let live = yaml(LIVE);
    assert_eq!(replaced(&live, &live), live);
    assert_eq!(applied(&live, &live, None, KUBECTL, &deployment()), live);
    let claim = yaml("spec: {volumeName: pv, accessModes: [ReadWriteOnce], volumeMode: Filesystem}");
    assert_eq!(replaced(&claim, &yaml("spec: {accessModes: [ReadWriteOnce]}")), claim);
}
