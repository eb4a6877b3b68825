//! What a tenant leaves behind: objects that cannot be read, and writes in flight that the API server refuses after Suture
//! admitted them. None of it keeps others from being decided.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use suture_e2e::objects::{definition, ingress, list, place, pod_spec, workload};
use suture_e2e::{Api, Kubectl};

use super::attackers::{Attackers, GROUP, denied, rights, tenant};
use super::honest::{MEMORY_MAX_BYTES, WAIT_MAX, honest};
use super::{launched, prepared, seconds, table, until};

/// How deep an object is that cannot be read: deeper than JSON is read by default.
const DEPTH: usize = 200;
/// How long each attack lasts.
const LASTS: Duration = Duration::from_secs(10);
/// Who write at once, each objects that are about as large as the API server takes.
const WRITERS: usize = 4;
const LARGE_BYTES: usize = 1_000_000;

/// Suture may read kinds of this group by these names.
fn granted(admin: &Kubectl, resource: &str) {
    let role = format!("suture-read-{resource}");
    let resource = format!("--resource={resource}.{GROUP}");
    admin.text(&["create", "clusterrole", &role, "--verb=get,list,watch", &resource]).expect("role");
    admin.text(&["label", "clusterrole", &role, "suture.dev/aggregate-to-read=true"]).expect("label");
}

fn owner(name: &str, depth: usize) -> Value {
    let spec = (0..depth).fold(json!({}), |inner, _| json!({"a": inner}));
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Owner", "metadata": {"name": name}, "spec": spec})
}

#[test]
fn what_cannot_be_read_blinds_nobody() {
    let (cluster, admin) = prepared(0);
    let taken = ingress("shop", "taken", "taken.example");
    let places = place("shop").into_iter().chain(place("mall"));
    admin
        .create(&list(places.chain([definition(GROUP, "Owner")]).chain([taken]).chain(rights()).collect()))
        .expect("objects");
    granted(&admin, "owners");
    let tenant = tenant(&cluster);
    let owners = format!("/apis/{GROUP}/v1/namespaces/mall/owners");
    for (name, depth) in [("deep", DEPTH), ("plain", 1)] {
        until("the owner", || tenant.create(&owners, &owner(name, depth)).map(drop).map_err(|error| error.to_string()));
        let uid = ["get", "owner", name, "-n", "mall", "-o", "jsonpath={.metadata.uid}"];
        let uid = admin.text(&uid).expect("its uid");
        let reference = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Owner", "name": name, "uid": uid});
        let owned = json!({"apiVersion": "v1", "kind": "ConfigMap",
                           "metadata": {"name": format!("of-{name}"), "ownerReferences": [reference]}});
        tenant.create("/api/v1/namespaces/mall/configmaps", &owned).expect("owned");
    }
    let suture = launched(&cluster, &["--profile=strict"]);
    denied(&tenant);
    let longest = honest(&cluster, LASTS).longest();
    // what is owned by another object of the kind is decided
    let map = "/api/v1/namespaces/mall/configmaps/of-plain?dryRun=All";
    until("a change of what is owned", || {
        let patch = json!({"metadata": {"labels": {"a": "b"}}}).to_string();
        let reply = tenant.send("PATCH", map, "application/merge-patch+json", patch).map_err(|e| e.to_string())?;
        if reply.done() { Ok(()) } else { Err(reply.message().to_owned()) }
    });
    suture.process.stop().expect("stop");
    suture.process.launch().expect("launch");
    let began = Instant::now();
    suture.wait_ready().expect("ready with an object that cannot be read");
    denied(&tenant);
    let recovery = began.elapsed();
    let reply = tenant.call("DELETE", &format!("{owners}/deep"), None).expect("answer");
    assert!(reply.done(), "it can be deleted: {}", reply.message());
    let saw = format!("longest wait {} s; what is harmful is denied", seconds(longest));
    let mut table = table();
    let attack = format!("a custom resource of {DEPTH} levels, and a restart");
    table.row([attack, "write its custom resources".to_owned(), saw, seconds(recovery)]);
    table.print();
    assert!(longest < WAIT_MAX, "an honest client waited for {longest:?}");
}

/// Objects that Suture admits, and that the quota refuses. Every other pod is on the node from the start.
fn refused_later(turn: u64, node: &str) -> (&'static str, Value) {
    let name = format!("refused-{turn}");
    match turn % 3 {
        0 => {
            let data = json!({"a": "x".repeat(LARGE_BYTES)});
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
            ("/api/v1/namespaces/mall/configmaps", map)
        }
        1 => ("/apis/apps/v1/namespaces/mall/deployments", workload("Deployment", "mall", &name, 3, &pod_spec())),
        _ => {
            let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": pod_spec(),
                                 "metadata": {"name": name, "labels": {"app": "web"}}});
            if turn.is_multiple_of(2) {
                pod["spec"]["nodeName"] = json!(node);
            }
            ("/api/v1/namespaces/mall/pods", pod)
        }
    }
}

#[test]
fn what_is_admitted_and_refused_then_stands_in_nobodys_way() {
    let (cluster, admin) = prepared(1);
    let hard = json!({"count/configmaps": "0", "count/deployments.apps": "0", "count/pods": "0"});
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "nothing", "namespace": "mall"},
                       "spec": {"hard": hard}});
    admin
        .create(&list(place("shop").into_iter().chain(place("mall")).chain([quota]).chain(rights()).collect()))
        .expect("objects");
    let suture = launched(&cluster, &["--profile=strict"]);
    let (nodes, api) = ("/api/v1/nodes", Api::new(&cluster, "admin").expect("api"));
    let node = api.get(nodes).expect("nodes")["items"][0]["metadata"]["name"].as_str().expect("a node").to_owned();
    let (turns, refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let writers = Attackers::start(WRITERS, |_| {
        let (api, turns, refused, node) = (tenant(&cluster), turns.clone(), refused.clone(), node.clone());
        move || {
            let (path, object) = refused_later(turns.fetch_add(1, Ordering::AcqRel), &node);
            let reply = api.call("POST", path, Some(&object)).expect("answer");
            let by_quota = reply.message().contains("exceeded quota");
            refused.fetch_add(u64::from(by_quota), Ordering::AcqRel);
        }
    });
    let longest = honest(&cluster, LASTS).longest();
    let node = format!("{nodes}/{node}?dryRun=All");
    let cordon = json!({"spec": {"unschedulable": true}}).to_string();
    let cordoned = api.send("PATCH", &node, "application/merge-patch+json", cordon).expect("answer");
    let deleted = api.call("DELETE", &node, None).expect("answer");
    let began = Instant::now();
    writers.stop();
    honest(&cluster, Duration::ZERO);
    let recovery = began.elapsed();
    let forgotten = until("it is forgotten", || match suture.counted("suture_ledger_entries") {
        0.0 => Ok(()),
        left => Err(format!("{left} entries")),
    });
    let refused = refused.load(Ordering::Acquire);
    let mut table = table();
    let saw = format!("longest wait {} s, cordon and deletion of a node decided", seconds(longest));
    let attack = format!("{refused} writes that a quota refuses after Suture");
    table.row([attack, "write in its namespace".to_owned(), saw, seconds(recovery)]);
    table.print();
    let most = suture.process.resident_max_bytes().expect("memory");
    println!("  Suture took {} MiB at most; forgotten after {} s", most >> 20, seconds(forgotten));
    assert!(cordoned.done() && deleted.done(), "{} {}", cordoned.message(), deleted.message());
    assert!(refused > 60, "{refused} of {} writes were refused by the quota", turns.load(Ordering::Acquire));
    assert!(longest < WAIT_MAX, "an honest client waited for {longest:?}");
    assert!(most < MEMORY_MAX_BYTES, "{} MiB", most >> 20);
}
