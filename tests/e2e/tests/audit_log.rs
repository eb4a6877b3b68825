//! `suture replay` over the audit log that a real API server wrote, and objects of OpenReports in a real API server.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test may stop where it fails, and says what it measured"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use suture_e2e::installed::install_open_reports;
use suture_e2e::kubectl::Kubectl;
use suture_e2e::objects::{list, namespace, pod_spec, service, workload};
use suture_e2e::parts::Part;
use suture_e2e::suture::program;
use suture_e2e::{Cluster, Nodes, Options, User};

/// What is written with its bodies, and what is read without.
const POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n\
    - {level: Metadata, verbs: [get, list, watch]}\n- {level: RequestResponse}\n";
const INVARIANT: &str = "apiVersion: suture.dev/v1alpha1\nkind: Invariant\nmetadata: {name: serves}\n\
    spec: {template: service-keeps-endpoints}\n";
/// Who works in the namespace.
const ANA: &str = "ana";
const JOB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/replay-job.yaml");

struct Scene {
    folder: tempfile::TempDir,
    cluster: Cluster,
    admin: Kubectl,
}

impl Scene {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("folder");
        let policy = folder.path().join("audit.yaml");
        fs::write(&policy, POLICY).expect("policy");
        fs::write(folder.path().join("invariants.yaml"), INVARIANT).expect("invariants");
        let flags = BTreeMap::from([(Part::ApiServer, vec![format!("--audit-policy-file={}", policy.display())])]);
        let users = vec![User::new(ANA, &["developers"])];
        let cluster =
            Cluster::start(&Options { users, nodes: Nodes::new(3), flags, ..Options::default() }).expect("cluster");
        let admin = cluster.kubectl("admin").expect("admin");
        admin
            .text(&["create", "clusterrolebinding", ANA, "--clusterrole=cluster-admin", "--user=ana"])
            .expect("rights");
        Self { folder, cluster, admin }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn suture(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let kubeconfig = self.cluster.kubeconfig("admin").expect("kubeconfig");
        let output = Command::new(program()).args(arguments).env("KUBECONFIG", kubeconfig).output();
        let Output { status, stdout, stderr } = output.expect("suture runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (status.code(), text(stdout), text(stderr))
    }

    fn rolled_out(&self, replicas: u32) {
        self.admin.text(&["--namespace=shop", "rollout", "status", "deployment/web", "--timeout=60s"]).expect("ready");
        let ready = || self.admin.json(&["--namespace=shop", "get", "pods", "--selector=app=web"]).expect("pods");
        suture_e2e::wait::until("pods", std::time::Duration::from_secs(60), || {
            let count = ready()["items"].as_array().map_or(0, Vec::len);
            if count == replicas as usize { Ok(()) } else { Err(format!("{count} pods")) }
        })
        .expect("as many pods as are wanted");
    }
}

#[test]
fn what_happened_is_replayed_and_reported() {
    let scene = Scene::start();
    let (code, state, said) = scene.suture(&["snapshot"]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    fs::write(scene.path("state.yaml"), state).expect("state");
    let ana = scene.cluster.kubectl(ANA).expect("ana");
    let web = workload("Deployment", "shop", "web", 3, &pod_spec());
    ana.apply(&list(vec![namespace("shop"), service("shop", "web"), web])).expect("objects");
    scene.rolled_out(3);
    let in_shop = |arguments: &[&str]| ana.text(&[&["--namespace=shop"], arguments].concat()).expect("is done");
    in_shop(&["scale", "deployment/web", "--replicas=2"]);
    scene.rolled_out(2);
    in_shop(&["set", "image", "deployment/web", "c=web:2"]);
    scene.rolled_out(2);
    in_shop(&["annotate", "deployment/web", "note=x"]);
    in_shop(&["scale", "deployment/web", "--replicas=0"]);
    scene.rolled_out(0);
    in_shop(&["scale", "deployment/web", "--replicas=2"]);
    scene.rolled_out(2);
    in_shop(&["delete", "pod", "--selector=app=web", "--wait=true"]);
    scene.rolled_out(2);
    in_shop(&["delete", "deployment/web", "--wait=true"]);

    replayed(&scene);
    reported(&scene);
    // the manifest of the shards is one that the API server takes
    scene
        .admin
        .text(&["apply", "--server-side", "--dry-run=server", "--validate=strict", "--filename", JOB])
        .expect("the Job");
}

fn replayed(scene: &Scene) {
    let log = scene.cluster.audit_log().display().to_string();
    let (state, invariants) = (scene.path("state.yaml"), scene.path("invariants.yaml"));
    let flags = ["replay", "--log", &log, "--state", &state, "--profile", "none", "--invariants", &invariants];
    let (code, found, said) = scene.suture(&[&flags[..], &["-o", "json"]].concat());
    assert_eq!(code, Some(1), "{said}");
    let found: Value = serde_json::from_str(&found).expect("JSON");
    let (_, text, _) = scene.suture(&flags);
    println!("{text}");
    let findings = found["findings"].as_array().expect("a list");
    let denied: Vec<&str> = findings.iter().filter_map(|found| found["request"].as_str()).collect();
    let has = |what: &str| denied.contains(&what);
    assert!(has("ana scales Deployment/shop/web from 2 to 0"), "{denied:?}");
    assert!(denied.iter().any(|request| request.starts_with("ana deletes Deployment/shop/web")), "{denied:?}");
    assert!(findings.iter().all(|found| found["user"] == ANA), "{denied:?}");
    assert!(!denied.iter().any(|request| request.contains("to 2") || request.contains("from 3")), "{denied:?}");
    assert_eq!(found["notJudged"], serde_json::json!({}), "all of it was recorded with its bodies: {text}");
}

/// OpenReports' own definitions take what is found.
fn reported(scene: &Scene) {
    install_open_reports(&scene.admin).expect("definitions");
    let (state, invariants) = (scene.path("state.yaml"), scene.path("invariants.yaml"));
    let log = scene.cluster.audit_log().display().to_string();
    let policy = ["--profile", "none", "--invariants", &invariants];
    let commands: [(&str, Vec<&str>); 3] = [
        ("audit", vec!["audit", "--state", "cluster"]),
        ("check", vec!["check", "--state", "cluster", "--delete", "service/shop/web"]),
        ("replay", vec!["replay", "--log", &log, "--state", &state]),
    ];
    for (name, command) in commands {
        let (code, objects, said) =
            scene.suture(&[&command[..], &policy, &["--verbose", "-o", "openreports"]].concat());
        assert!(code.is_some_and(|code| code < 2), "{name}: {said}");
        accepted(scene, name, &objects);
    }
    let report =
        scene.admin.json(&["--namespace=shop", "get", "reports.openreports.io", "suture-replay"]).expect("report");
    assert!(report["summary"]["fail"].as_u64().expect("a number") >= 2, "{report}");
    assert_eq!(report["results"][0]["policy"], "serves");
    assert_eq!(report["results"][0]["resources"][0]["kind"], "Service");
    assert_eq!(report["scope"]["name"], "shop");
    // what is over goes by its label, with the command of the README
    let kinds = "reports.openreports.io,clusterreports.openreports.io";
    let delete = ["delete", kinds, "--all-namespaces", "-l", "suture.dev/report=replay"];
    scene.admin.text(&delete).expect("is deleted");
    let left =
        scene.admin.run(&["--namespace=shop", "get", "reports.openreports.io", "suture-replay"]).expect("kubectl");
    assert!(!left.success, "it is gone: {}", left.stdout);
}

/// Applies objects, whose every field the definitions must know.
fn accepted(scene: &Scene, name: &str, objects: &str) {
    let path = scene.path(name);
    fs::write(Path::new(&path), objects).expect("objects");
    assert!(objects.contains("openreports.io/v1alpha1"), "{name} has something to report: {objects}");
    let apply = ["apply", "--server-side", "--validate=strict", "--filename", &path];
    let applied = scene.admin.run(&apply).expect("kubectl");
    assert!(applied.success, "{name}: {}\n{objects}", applied.stderr);
}
