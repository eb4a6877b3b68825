//! A release of fifty objects, and what controllers do afterwards.

use serde_json::{Value, json};
use suture_e2e::objects::{ingress, pod_spec, service, workload};
use suture_e2e::wait;

use super::bench::{Bench, settled};

/// A rollout, a scale-down, a drain, and deletions go on to their ends.
pub(super) fn controllers_finish(bench: &Bench) {
    let ended = |what: &str, arguments: &[&str]| {
        let (_, took) = wait::timed(|| bench.admin.text(arguments).expect(what));
        println!("{what}: ended after {:.1} s", took.as_secs_f64());
    };
    ended("rollout restart", &["rollout", "restart", "deployment", "web", "--namespace=shop"]);
    ended("rollout", &["rollout", "status", "deployment", "web", "--namespace=shop", "--timeout=120s"]);
    ended("scale-down", &["scale", "deployment", "web", "--namespace=shop", "--replicas=3"]);
    bench.serving("shop", "web", 3);
    settled(
        "pods",
        || {
            let pods = bench.admin.json(&["get", "pods", "--namespace=shop", "--selector=app=web"]).expect("pods");
            pods["items"].as_array().map_or(0, Vec::len)
        },
        &3,
    );
    let pod = bench.pod_of("shop", "web");
    let node = bench.admin.json(&["get", "pod", &pod, "--namespace=shop"]).expect("pod");
    let node = node["spec"]["nodeName"].as_str().expect("node").to_owned();
    ended(
        "drain",
        &[
            "drain",
            &node,
            "--ignore-daemonsets",
            "--delete-emptydir-data",
            "--timeout=120s",
            "--pod-selector=app=web",
            "--force",
        ],
    );
    bench.serving("shop", "web", 3);
    let doomed = bench.admin.json(&["get", "namespace", "doomed"]).expect("namespace");
    let confirmed = format!("suture.dev/confirm-delete={}", doomed["metadata"]["uid"].as_str().expect("uid"));
    ended("confirmation", &["annotate", "namespace", "doomed", &confirmed]);
    ended("namespace deletion", &["delete", "namespace", "doomed", "--timeout=120s"]);
    ended("garbage collection", &["delete", "deployment", "tool", "--namespace=release"]);
    settled(
        "what the Deployment owned",
        || {
            let left = bench
                .admin
                .json(&["get", "replicasets,pods", "--namespace=release", "--selector=app=tool"])
                .expect("left");
            left["items"].as_array().map_or(0, Vec::len)
        },
        &0,
    );
}

/// A dry run is judged and not remembered: what it asked for is not in flight for the next request.
pub(super) fn dry_runs_leave_nothing(bench: &Bench) {
    let scale = |replicas: &'static str, dry: &'static [&'static str]| {
        let arguments = ["scale", "deployment", "web", "--namespace=shop", replicas];
        bench.admin.text(&[&arguments, dry].concat()).expect("scale");
    };
    let in_flight = || bench.counted("suture_ledger_entries");
    settled("an empty ledger", || in_flight().to_string(), &"0".to_owned());
    for _ in 0..3 {
        scale("--replicas=3", &["--dry-run=server"]);
    }
    assert!(in_flight() < 1.0, "dry runs are not remembered");
    let web = bench.admin.json(&["get", "deployment", "web", "--namespace=shop"]).expect("web");
    assert_eq!(web["spec"]["replicas"], 4);
}

/// Fifty objects, as a chart has them.
pub(super) fn release(name: &str) -> Vec<Value> {
    let place = "release";
    let named = |kind: &str, version: &str, number: usize| {
        json!({"apiVersion": version, "kind": kind,
        "metadata": {"name": format!("{name}-{number}"), "namespace": place}})
    };
    let mut all = Vec::new();
    for number in 0..10 {
        let app = format!("{name}-{number}");
        all.push(named("ServiceAccount", "v1", number));
        all.push(named("ConfigMap", "v1", number));
        let mut spec = pod_spec();
        spec["serviceAccountName"] = json!(app);
        spec["containers"][0]["envFrom"] = json!([{"configMapRef": {"name": app}}]);
        all.push(service(place, &app));
        all.push(workload("Deployment", place, &app, 1, &spec));
        all.push(ingress(place, &app, &format!("{app}.example")));
    }
    all
}

/// Where an object of a release is created.
pub(super) fn collection(object: &Value) -> String {
    let version = object["apiVersion"].as_str().expect("version");
    let (root, plural) = match object["kind"].as_str().expect("kind") {
        "Ingress" => ("/apis/", "ingresses".to_owned()),
        kind => (if version == "v1" { "/api/" } else { "/apis/" }, format!("{}s", kind.to_lowercase())),
    };
    format!("{root}{version}/namespaces/release/{plural}")
}
