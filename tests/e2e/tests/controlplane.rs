//! The control plane for tests is a real one: its controllers act, RBAC refuses, its parts fail and come back, nothing of it stays.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test may stop where it fails")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use suture_e2e::{Cluster, Kubectl, Nodes, Options, Part, User, wait};

/// Far more than any controller takes, so that only what never comes about fails.
const SETTLED_MAX: Duration = Duration::from_secs(60);

const REPLICAS: u64 = 6;

#[test]
fn controllers_scheduler_and_nodes_work_and_rbac_refuses() {
    let users = vec![User::new("alice", &["developers"]), User::service_account("default", "operator")];
    let options = Options { users, nodes: Nodes::new(5), ..Options::default() };
    let (cluster, took) = wait::timed(|| Cluster::start(&options));
    let cluster = cluster.expect("cluster");
    println!("Kubernetes {} with 5 nodes ready in {:.1} s", cluster.version(), took.as_secs_f64());
    let admin = cluster.kubectl("admin").expect("admin");
    let version = admin.json(&["version"]).expect("version");
    assert_eq!(version["serverVersion"]["gitVersion"], cluster.version());

    let (_, took) = wait::timed(|| deploy(&admin));
    println!("Deployment of {REPLICAS} ready in {:.1} s", took.as_secs_f64());
    let pods = admin.json(&["get", "pods", "--selector=app=web"]).expect("pods");
    let pods = pods["items"].as_array().expect("items");
    let placed =
        pods.iter().filter_map(|pod| pod["spec"]["nodeName"].as_str()).filter(|node| node.starts_with("node-"));
    assert_eq!(placed.count(), pods.len());
    assert_eq!(json!(pods.len()), json!(REPLICAS));

    // 4 of 6 must stay: the budget allows two, as the controller computes it
    settled("budget's status", || budget(&admin), &json!([REPLICAS, 4, 2]));
    admin.text(&["scale", "deployment", "web", "--replicas=5"]).expect("scale");
    settled("budget's status after the scale-down", || budget(&admin), &json!([5, 4, 1]));

    for name in ["alice", "system:serviceaccount:default:operator"] {
        let refused = cluster.kubectl(name).expect("user").run(&["get", "pods"]).expect("kubectl");
        assert!(!refused.success, "{name} must not read pods: {}", refused.stdout);
        assert!(
            refused.stderr.contains(&format!("User \"{name}\" cannot list resource \"pods\"")),
            "{}",
            refused.stderr
        );
    }
    admin
        .text(&["create", "clusterrolebinding", "alice", "--clusterrole=view", "--group=developers"])
        .expect("binding");
    let alice = cluster.kubectl("alice").expect("user");
    settled("alice's right", || alice.run(&["get", "pods"]).expect("kubectl").success, &true);
    assert!(!alice.run(&["delete", "deployment", "web"]).expect("kubectl").success, "to view is not to delete");
    let audit = fs::read_to_string(cluster.audit_log()).expect("audit log");
    let mut events = audit.lines().map(|line| serde_json::from_str::<Value>(line).expect("event"));
    let refused = events.any(|event| event["user"]["username"] == "alice" && event["responseStatus"]["code"] == 403);
    assert!(refused, "alice's refusal is audited");

    admin.text(&["delete", "namespace", "shop", "--timeout=60s"]).expect("the namespace controller empties it");
    admin.text(&["delete", "deployment", "web"]).expect("delete");
    settled("garbage", || names(&admin, "pods,replicasets"), &json!([]));
    for part in Part::ALL {
        let bytes = cluster.process(part).expect("part").resident_bytes().expect("resident");
        println!("{part}: {} MB resident", bytes / 1_000_000);
    }
}

#[test]
fn parts_fail_and_come_back_with_their_data() {
    let cluster = Cluster::start(&Options { nodes: Nodes::new(2), ..Options::default() }).expect("cluster");
    let admin = cluster.kubectl("admin").expect("admin");

    cluster.pause(Part::Etcd).expect("pause");
    let written = admin.run(&["create", "configmap", "during", "--request-timeout=2s"]).expect("kubectl");
    assert!(!written.success, "nothing is stored while etcd is paused: {}", written.stdout);
    cluster.resume(Part::Etcd).expect("resume");
    settled("writes", || admin.run(&["create", "configmap", "after"]).expect("kubectl").success, &true);

    let before = admin.json(&["get", "configmap", "after"]).expect("configmap");
    cluster.kill(Part::ApiServer).expect("kill");
    assert!(!admin.run(&["get", "--raw=/readyz"]).expect("kubectl").success, "nobody answers");
    let (_, took) = wait::timed(|| {
        cluster.launch(Part::ApiServer).expect("launch");
        cluster.wait_ready().expect("ready");
    });
    println!("API server ready {:.1} s after a kill", took.as_secs_f64());
    assert_eq!(admin.json(&["get", "configmap", "after"]).expect("configmap"), before);
    deploy(&admin);

    cluster.stop(Part::ControllerManager).expect("stop");
    cluster.kill(Part::Scheduler).expect("kill");
    cluster.kill(Part::Kwok).expect("kill");
    cluster.kill(Part::Etcd).expect("kill");
    assert!(cluster.kill(Part::Etcd).is_err(), "what is down cannot be killed");
    for part in [Part::Etcd, Part::ControllerManager, Part::Scheduler, Part::Kwok] {
        cluster.launch(part).expect("launch");
    }
    assert!(cluster.launch(Part::Kwok).is_err(), "what is up cannot be launched");
    cluster.wait_ready().expect("ready");
    let configmap = || admin.json(&["get", "configmap", "after"]).ok();
    settled("the data that etcd had", configmap, &Some(before));
    let scaled = || admin.run(&["scale", "deployment", "web", "--replicas=8"]).expect("kubectl").success;
    settled("a scale-up", scaled, &true);
    settled("ready pods", || ready_replicas(&admin), &json!(8));
}

#[test]
fn a_part_that_cannot_start_is_told_with_its_log() {
    let flags = [(Part::ApiServer, vec!["--no-such-flag".to_owned()])].into();
    let error = Cluster::start(&Options { flags, ..Options::default() }).expect_err("it cannot start").to_string();
    assert!(error.contains("kube-apiserver ended by itself") && error.contains("no-such-flag"), "{error}");
}

#[test]
fn the_api_server_reads_the_admission_configuration() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("admission.json");
    let defaults = json!({"apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration",
                          "defaults": {"enforce": "baseline", "enforce-version": "latest"}});
    let configuration = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
                               "plugins": [{"name": "PodSecurity", "configuration": defaults}]});
    fs::write(&path, configuration.to_string()).expect("configuration");
    let options = Options { admission_configuration: Some(path), ..Options::default() };
    let admin = Cluster::start(&options).and_then(|cluster| Ok((cluster.kubectl("admin")?, cluster)));
    let (admin, _cluster) = admin.expect("cluster");
    let plain = admin.run(&["run", "plain", "--image=web"]).expect("kubectl");
    assert!(plain.success, "{}", plain.stderr);
    let privileged = admin.run(&["run", "privileged", "--image=web", "--privileged"]).expect("kubectl");
    assert!(privileged.stderr.contains("violates PodSecurity"), "{}{}", privileged.stdout, privileged.stderr);
}

#[test]
fn two_clusters_run_side_by_side_and_leave_nothing_behind() {
    let clusters = [(), ()].map(|()| Cluster::start(&Options::default()).expect("cluster"));
    let (mut traces, mut webhooks) = (Vec::new(), Vec::new());
    for cluster in &clusters {
        cluster.pause(Part::Scheduler).expect("pause");
        let webhook = cluster.attach("webhook", Path::new("sleep"), vec!["600".to_owned()]);
        webhook.launch().expect("launch");
        let parts = Part::ALL.map(|part| cluster.process(part).expect("part").pid());
        let pids: Vec<u32> = parts.into_iter().chain([webhook.pid()]).map(|pid| pid.expect("up")).collect();
        assert!(pids.iter().all(|pid| is_up(*pid)), "{pids:?}");
        traces.push((cluster.folder().to_owned(), pids));
        webhooks.push(webhook);
    }
    drop(clusters);
    drop(webhooks);
    for (folder, pids) in traces {
        assert_eq!(left(&folder, &pids), Vec::<String>::new());
    }
}

#[test]
fn nothing_is_left_behind_when_the_test_itself_is_killed() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_controlplane"));
    let mut holder = command.arg("1").stdout(Stdio::piped()).spawn().expect("controlplane");
    let (mut folder, mut pids) = (PathBuf::new(), Vec::new());
    for line in BufReader::new(holder.stdout.take().expect("stdout")).lines() {
        let line = line.expect("line");
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["folder", path] => folder = PathBuf::from(path),
            ["part", _, "pid", pid, ..] => pids.push(pid.parse::<u32>().expect("number")),
            ["ready", ..] => break,
            _ => {}
        }
    }
    assert_eq!(pids.len(), Part::ALL.len());
    assert!(folder.is_dir() && pids.iter().all(|pid| is_up(*pid)), "{folder:?} {pids:?}");
    holder.kill().expect("kill");
    holder.wait().expect("wait");
    settled("an end without a trace", || left(&folder, &pids), &Vec::new());
}

/// A Deployment in `default` with a budget, ready; and a namespace with something in it.
fn deploy(admin: &Kubectl) {
    let labels = json!({"app": "web"});
    let pod = json!({"containers": [{"name": "web", "image": "web", "resources": {"requests": {"cpu": "100m"}}}]});
    let template = json!({"metadata": {"labels": labels}, "spec": pod});
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
         "spec": {"replicas": REPLICAS, "selector": {"matchLabels": labels}, "template": template}},
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
         "spec": {"minAvailable": 4, "selector": {"matchLabels": labels}}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "prices", "namespace": "shop"}},
    ]});
    admin.apply(&objects.to_string()).expect("apply");
    settled("ready pods", || ready_replicas(admin), &json!(REPLICAS));
}

fn ready_replicas(admin: &Kubectl) -> Value {
    let deployment = admin.json(&["get", "deployment", "web"]).expect("deployment");
    deployment["status"]["readyReplicas"].clone()
}

/// Pods that the budget expects, that it wants healthy, and disruptions that it allows.
fn budget(admin: &Kubectl) -> Value {
    let status = &admin.json(&["get", "poddisruptionbudget", "web"]).expect("budget")["status"];
    json!([status["expectedPods"], status["desiredHealthy"], status["disruptionsAllowed"]])
}

fn names(admin: &Kubectl, kinds: &str) -> Value {
    let list = admin.json(&["get", kinds]).expect("list");
    list["items"].as_array().expect("items").iter().map(|object| object["metadata"]["name"].clone()).collect()
}

/// Waits until something is as expected.
#[track_caller]
fn settled<T: PartialEq + std::fmt::Debug>(what: &str, actual: impl Fn() -> T, expected: &T) {
    let reached = wait::until(what, SETTLED_MAX, || {
        let actual = actual();
        if actual == *expected { Ok(()) } else { Err(format!("{actual:?} instead of {expected:?}")) }
    });
    reached.expect("settled");
}

/// What is still there of a cluster.
fn left(folder: &Path, pids: &[u32]) -> Vec<String> {
    let up = pids.iter().filter(|pid| is_up(**pid)).map(|pid| format!("process {pid}"));
    up.chain(folder.exists().then(|| folder.display().to_string())).collect()
}

/// Whether a process runs, or is paused; one that has ended and waits for its parent to notice does not count.
fn is_up(pid: u32) -> bool {
    // proc_pid_stat(5): the state is the first field after the name, which is in parentheses
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
