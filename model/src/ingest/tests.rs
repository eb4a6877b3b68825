//! Texts, and what is read from them; hostile ones too.

use super::*;
use crate::kinds::Kind;
use crate::object::Key;
use crate::testing::{key, val};

/// What a text says, as one JSON line for each document; or its first error.
fn check(text: &str) -> String {
    match parse_documents(text, "f") {
        Ok(documents) => {
            let lines = documents.iter().map(|d| format!("{}: {}", d.line, serde_json::to_string(&d.val).unwrap()));
            lines.collect::<Vec<_>>().join("\n")
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn scalars_are_read_as_kubernetes_tools_read_them() {
    for (yaml, json) in [
        ("a: yes", r#"{"a":true}"#),
        ("[a: {b: [yes, \"no\", Off, y, n]}]", r#"{"a":{"b":[true,"no",false,"y","n"]}}"#),
        ("a: y", r#"{"a":"y"}"#),
        ("a: 'yes'", r#"{"a":"yes"}"#),
        ("a: 0755", r#"{"a":"0755"}"#),
        ("a: 1_000", r#"{"a":"1_000"}"#),
        ("a: 2026-11-01T12:00:00Z", r#"{"a":"2026-11-01T12:00:00Z"}"#),
        ("a: 0x1F", r#"{"a":31}"#),
        ("a: 9223372036854775808", r#"{"a":9.223372036854776e+18}"#),
        ("a: ~", r#"{"a":null}"#),
        ("1: b", r#"{"1":"b"}"#),
        ("a: !foo b", r#"{"a":"b"}"#),
    ] {
        assert_eq!(check(yaml), format!("1: {json}"), "{yaml}");
    }
}

#[test]
fn anchors_and_merge_keys_work() {
    let text = "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc: {<<: [*a, *b], x: 5}\nd: {<<: *a}\ne: *b\n";
    let merged = r#""c":{"x":5,"y":2,"z":4},"d":{"x":1,"y":2},"e":{"y":3,"z":4}"#;
    assert_eq!(check(text), format!(r#"1: {{"a":{{"x":1,"y":2}},"b":{{"y":3,"z":4}},{merged}}}"#));
}

#[test]
fn documents_keep_their_lines() {
    for (text, read) in [
        ("", ""),
        ("# nothing\n---\n---\n\n...\n", ""),
        ("null\n", ""),
        ("%YAML 1.2\n---\na: 1\n", "3: {\"a\":1}"),
        ("\u{feff}a: 1\r\n---\r\nb: 2\r\n", "1: {\"a\":1}\n3: {\"b\":2}"),
        ("--- {a: 1}\n--- # two\n\n# still\nb: 2\n", "1: {\"a\":1}\n5: {\"b\":2}"),
        ("a: |\n  ---\n  b\n", "1: {\"a\":\"---\\nb\\n\"}"),
        ("{\"a\": 1}\n\n{\"b\": 2}", "1: {\"a\":1}\n3: {\"b\":2}"),
        ("{a: 1}", "1: {\"a\":1}"),
        ("[{\"a\": 1}, null, {\"b\": 2}]", "1: {\"a\":1}\n1: {\"b\":2}"),
        ("- a: 1\n- b: 2\n", "1: {\"a\":1}\n1: {\"b\":2}"),
    ] {
        assert_eq!(check(text), read, "{text:?}");
    }
}

#[test]
fn errors_say_where() {
    for (text, error) in [
        ("a: 1\n---\nb: [1,\n", "f:3:4: unclosed bracket '['"),
        ("a: 1\na: 2", "f:2:1: duplicate key `a`"),
        ("{\"a\": 1,\n \"a\": 2}", "f:2:8: duplicate key `a`"),
        ("{\"a\" 1}", "f:1:6: expected `:`"),
        ("a: *x", "f:1:4: alias references unknown anchor"),
        ("a: &a\n  b: *a", "f:2:6: an alias stands within what it means"),
        ("a: .nan", "f:1:4: `.nan` is no number"),
        ("x", "f:1:1: expected a map, found a string"),
        ("a: 1\n---\n- 2", "f:3:1: expected a map, found a number"),
        ("[{\"a\": 1}, [2]]", "f:1:1: expected a map, found a list within a list"),
    ] {
        assert_eq!(check(text), error, "{text:?}");
    }
}

#[test]
fn hostile_texts_are_refused_at_once() {
    let bomb: String = (1..30).map(|i| format!("a{i}: &a{i} [{}]\n", format!("*a{},", i - 1).repeat(9))).collect();
    let bomb = format!("---\na0: &a0 [x,x,x,x,x,x,x,x,x]\n{bomb}");
    let long = format!("a: &x \"{}\"\nb: [{}]\n", "y".repeat(1_000_000), "*x, ".repeat(50_000));
    let anchored = (0..60).map(|i| format!("&a{i} [")).collect::<String>() + &"x,".repeat(10_000) + &"]".repeat(60);
    let tower: String = (1..100).map(|i| format!("a{i}: &a{i} {{<<: *a{}, k{i}: 1}}\n", i - 1)).collect();
    for (text, error) in [
        (bomb.repeat(100), "anchors and aliases expand to too much"),
        (long, "aliases expand to too much text"),
        (anchored, "anchors and aliases expand to too much"),
        (format!("a0: &a0 {{k0: 1}}\n{tower}"), "nested deeper than 64 levels"),
        ("[".repeat(10_000), "nested deeper than 64 levels"),
        ("{\"a\":".repeat(10_000), "nested deeper than 64 levels"),
        ("- ".repeat(10_000), "nested deeper than 64 levels"),
        ("\"".repeat(10_000), "invalid trailing content after double-quoted scalar"),
    ] {
        let found = check(&text);
        assert!(found.ends_with(error), "{found}");
    }
}

#[test]
fn lists_are_taken_apart() {
    let mut snapshot = Snapshot::default();
    let text = "apiVersion: v1\nkind: List\nitems:\n\
                - {apiVersion: apps/v1, kind: DeploymentList, items: [{metadata: {name: a}}]}\n\
                - {apiVersion: example.com/v1, kind: Odd, metadata: {name: b}}\n\
                ---\n{apiVersion: v1, kind: List, items: []}\n";
    assert_eq!(ingest(&mut snapshot, text, "f"), Ok(2));
    assert!(snapshot.get(&key("Deployment/default/a")).is_some());
    assert!(snapshot.get(&Key::new(Kind::new("example.com", "Odd"), "", "b")).is_some());
    let error = ingest(&mut snapshot, "a: 1\n---\napiVersion: v1\nkind: Pod\n", "f").unwrap_err();
    assert_eq!(error.to_string(), "f:1:1: not a Kubernetes object: `kind` is missing or not a string");
}

#[test]
fn a_dump_says_what_it_did_not_read() {
    let mut snapshot = Snapshot::default();
    let header = "apiVersion: suture.dev/v1alpha1\nkind: SnapshotHeader\nunknown: [Secret, Lease]\n";
    assert_eq!(ingest(&mut snapshot, header, "f"), Ok(0));
    assert_eq!(snapshot.unknown().iter().map(|k| &**k).collect::<Vec<_>>(), ["Lease", "Secret"]);
    assert!(
        ingest(&mut snapshot, "apiVersion: suture.dev/v1alpha1\nkind: SnapshotHeader\nunknown: [1]\n", "f").is_err()
    );
}

#[test]
fn secrets_are_not_kept() {
    let secret = val("{apiVersion: v1, kind: Secret, metadata: {name: s, annotations: \
                      {kubectl.kubernetes.io/last-applied-configuration: x}}, data: {k: aGk=}, stringData: {l: hi}}");
    let kept = "{\"apiVersion\":\"v1\",\"data\":{\"k\":\"(value not kept)\"},\"kind\":\"Secret\",\
                \"metadata\":{\"name\":\"s\"},\"stringData\":{\"l\":\"(value not kept)\"}}";
    assert_eq!(serde_json::to_string(&project(&secret)).unwrap(), kept);
    let odd = val("{apiVersion: v1, kind: Secret, metadata: {name: s}, data: hunter2}");
    assert!(!serde_json::to_string(&project(&odd)).unwrap().contains("hunter2"));
}

#[test]
fn pods_of_one_workload_share_a_body() {
    let pod = |i: u32| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: web-{i}, namespace: shop, uid: u-{i}, labels: {{app: web}},\
             annotations: {{cni.projectcalico.org/podIP: 10.0.0.{i}}}}}\n\
             spec:\n  nodeName: n{i}\n  volumes: [{{name: kube-api-access-{i}, projected: {{}}}}]\n\
             \x20 containers: [{{name: c, image: x, volumeMounts: [{{name: kube-api-access-{i}}}]}}]\n\
             status:\n  phase: Running\n  podIP: 10.0.0.{i}\n  startTime: 2026-11-01T12:00:0{i}Z\n\
             \x20 conditions: [{{type: Ready, status: 'True', lastTransitionTime: 2026-11-01T12:00:0{i}Z}}]\n\
             \x20 containerStatuses: [{{name: c, containerID: id-{i}}}]\n"
        )
    };
    let mut snapshot = Snapshot::default();
    assert_eq!(ingest(&mut snapshot, &(pod(1) + &pod(2)), "f"), Ok(2));
    let body = |name: &str| snapshot.get(&key(name)).unwrap().body.clone();
    assert!(std::sync::Arc::ptr_eq(&body("Pod/shop/web-1"), &body("Pod/shop/web-2")));
    assert!(snapshot.get(&key("Pod/shop/web-1")).unwrap().ready());
}

#[test]
fn pods_of_a_daemon_set_share_a_body_though_each_names_its_node() {
    let pod = |i: u32, owner: &str, node: &str, more: &str| {
        val(&format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: log-{i}, namespace: a, uid: u-{i}, \
             ownerReferences: [{{apiVersion: apps/v1, kind: {owner}, name: log, uid: d, controller: true}}]}}, \
             spec: {{nodeName: n{i}, affinity: {{{more}nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: \
             {{nodeSelectorTerms: [{{matchFields: [{{key: metadata.name, operator: In, values: [{node}]}}]}}]}}}}}}}}}}"
        ))
    };
    let mut interner = crate::intern::Interner::default();
    let mut read = |manifest: &Val| interner.object(Object::from_val(manifest).unwrap());
    for more in ["", "podAntiAffinity: {}, "] {
        let manifests = [pod(1, "DaemonSet", "n1", more), pod(2, "DaemonSet", "n2", more)];
        let [one, other] = [read(&manifests[0]), read(&manifests[1])];
        assert!(std::sync::Arc::ptr_eq(&one.body, &other.body));
        assert_ne!(one.at(&["spec", "affinity"]), other.at(&["spec", "affinity"]));
        assert_eq!([one.to_val(), other.to_val()], manifests, "nothing of them is lost");
    }
    for told in [pod(1, "ReplicaSet", "n1", ""), pod(1, "DaemonSet", "n2", ""), pod(1, "DaemonSet", "n1, n2", "")] {
        let read = read(&told);
        assert!(!read.names_own_node, "{told:?}");
        assert_eq!(read.to_val(), told);
    }
}
