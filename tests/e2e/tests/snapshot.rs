//! `suture snapshot` and `--state cluster` on a real API server: all that the policy reads, no value of a Secret, and a header
//! that names what the user may not read.
#![expect(clippy::expect_used, reason = "a test may stop where it fails")]

use std::path::Path;
use std::process::{Command, Output};
use std::{env, fs};

use suture_e2e::suture::program;
use suture_e2e::{Cluster, Nodes, Options, User};

const OBJECTS: &str = r#"
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: Secret, metadata: {name: login, namespace: shop}, stringData: {password: "hunter-2"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: words, namespace: shop}, data: {"yes": "on", "multi": "a: b\n---\nc"}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: web}, ports: [{port: 80}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {"on": "yes"}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1", envFrom: [{secretRef: {name: login}}]}]}
"#;

fn suture(kubeconfig: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(program()).args(arguments).env("KUBECONFIG", kubeconfig).output();
    let Output { status, stdout, stderr } = output.expect("suture runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn a_live_cluster_is_read_without_secrets() {
    let users = vec![User::new("alice", &["developers"])];
    let cluster = Cluster::start(&Options { users, nodes: Nodes::new(2), ..Options::default() }).expect("cluster");
    let admin = cluster.kubectl("admin").expect("admin");
    admin.apply(OBJECTS).expect("apply");
    admin.text(&["--namespace=shop", "rollout", "status", "deployment/web", "--timeout=60s"]).expect("ready");
    let kubeconfig = cluster.kubeconfig("admin").expect("kubeconfig");

    let (code, dump, said) = suture(&kubeconfig, &["snapshot"]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert!(dump.contains("kind: SnapshotHeader") && dump.contains("password"), "{dump}");
    assert!(!dump.contains("hunter-2") && !dump.contains("aHVudGVyLTI"), "a Secret's value is in the dump");
    let file = env::temp_dir().join(format!("suture-snapshot-{}.yaml", std::process::id()));
    fs::write(&file, &dump).expect("write");
    let recorded = file.to_str().expect("a path");
    let ask = |state: &str| {
        let flags = ["--delete", "secret/shop/login", "--no-timing", "-o", "json"];
        suture(&kubeconfig, &[&["check", "--state", state][..], &flags].concat())
    };
    let (code, live, said) = ask("cluster");
    assert_eq!(code, Some(1), "the Deployment's pods need it: {live}{said}");
    assert!(live.contains("references-resolve") && !live.contains("takenAsNone"), "all was read: {live}");
    let (code, from_dump, said) = ask(recorded);
    assert_eq!((code, said.as_str()), (Some(1), ""), "{from_dump}");
    assert!(!from_dump.contains("takenAsNone"), "the dump says what was read: {from_dump}");
    let all = admin.text(&["get", "all", "--all-namespaces", "-o", "yaml"]).expect("all");
    fs::write(&file, all).expect("write");
    let (code, lacking, said) = suture(&kubeconfig, &["check", "--state", recorded, "--delete", "svc/shop/web"]);
    assert_eq!(code, Some(1), "its endpoints are seen: {lacking}{said}");
    let none = lacking.lines().find(|line| line.starts_with("taken as none: ")).expect("what it lacks");
    assert!(none.contains("PersistentVolumeClaim") && none.contains("Ingress"), "{none}");
    fs::remove_file(&file).expect("remove");

    admin
        .text(&["create", "clusterrolebinding", "alice", "--clusterrole=view", "--group=developers"])
        .expect("binding");
    let alice = cluster.kubeconfig("alice").expect("kubeconfig");
    let (code, dump, said) = suture(&alice, &["snapshot"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("not read: Secret: ") && said.contains("not read: Node: "), "{said}");
    let header = dump.split("\n---").next().unwrap_or_default();
    assert!(header.contains("- Secret"), "{header}");
    let unread = suture(&alice, &["check", "--state", "cluster", "--delete", "secret/shop/login"]);
    assert_eq!(unread.0, Some(3), "what was not read is unknown: {unread:?}");
}
