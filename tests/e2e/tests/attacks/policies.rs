//! A tenant's own invariant takes all the time that it gets: it is set aside alone, and says so. Whatever it holds up, it may
//! be loosened and deleted at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use suture_e2e::objects::{ingress, list, place};
use suture_e2e::{Api, Kubectl};

use super::attackers::{Attackers, denied, rights, tenant};
use super::honest::{MEMORY_MAX_BYTES, WAIT_MAX, honest};
use super::{launched, prepared, seconds, table, until};

/// How many ConfigMaps there are: three loops over them take two million turns.
const MAPS: usize = 120;
/// Writers that ask about them, again and again.
const ATTACKERS: usize = 16;
/// How long they do before anything is mended.
const LASTS: Duration = Duration::from_secs(10);
const MAPS_PATH: &str = "/api/v1/namespaces/mall/configmaps";
const INVARIANTS_PATH: &str = "/apis/suture.dev/v1alpha1/namespaces/mall/namespacedinvariants";
/// The invariant as metrics name it.
const LABEL: &str = "NamespacedInvariant/mall/nested";

/// Three nested loops over the ConfigMaps of the namespace.
fn nested() -> Value {
    let maps = "now.inNamespace('mall', 'ConfigMap')";
    let inner = "x.metadata.name + y.metadata.name != z.metadata.name";
    let expression = format!("{maps}.all(x, {maps}.all(y, {maps}.all(z, {inner})))");
    json!({"apiVersion": "suture.dev/v1alpha1", "kind": "NamespacedInvariant",
           "metadata": {"name": "nested", "namespace": "mall"},
           "spec": {"forEach": {"var": "m", "kind": "ConfigMap"}, "require": [{"expression": expression}]}})
}

fn map(at: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("m{at}"), "namespace": "mall"}})
}

/// What a dry run of a write of a ConfigMap of the namespace comes to.
fn write(api: &Api, at: usize, label: u64) -> Result<(), String> {
    let mut object = map(at);
    object["metadata"]["labels"] = json!({"turn": format!("t{label}")});
    let reply = api.call("PUT", &format!("{MAPS_PATH}/m{at}?dryRun=All"), Some(&object));
    let reply = reply.map_err(|error| error.to_string())?;
    if reply.done() { Ok(()) } else { Err(reply.message().to_owned()) }
}

/// Does something that must be admitted at the first try; how long that took.
fn at_once(what: &str, call: impl FnOnce() -> suture_e2e::api::Reply) -> Duration {
    let began = Instant::now();
    let reply = call();
    let took = began.elapsed();
    assert!(reply.done(), "{what}: {}", reply.message());
    assert!(took < WAIT_MAX, "{what}: {took:?}");
    took
}

/// Whether the status of the tenant's invariant says that it overran.
fn told(admin: &Kubectl) -> Result<(), String> {
    let found = admin.json(&["get", "namespacedinvariant", "nested", "-n", "mall"]).map_err(|e| e.to_string())?;
    let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
    match conditions.iter().find(|condition| condition["type"] == "InTime") {
        Some(condition) if condition["status"] == "False" && condition["reason"] == "Overran" => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

#[test]
fn an_invariant_that_overruns_is_set_aside_alone() {
    let (cluster, admin) = prepared(0);
    let maps = (0..MAPS).map(map);
    let places = place("shop").into_iter().chain(place("mall"));
    let taken = ingress("shop", "taken", "taken.example");
    admin.create(&list(places.chain(maps).chain([taken]).chain(rights()).collect())).expect("objects");
    let suture = launched(&cluster, &["--profile=strict"]);
    let tenant = tenant(&cluster);
    let alone = honest(&cluster, LASTS / 2).longest();
    until("a write that is admitted", || write(&tenant, 0, 0));
    tenant.create(INVARIANTS_PATH, &nested()).expect("the invariant");
    until("the invariant overruns", || match write(&tenant, 0, 0) {
        Err(why) if why.contains("mall/nested could not be decided") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let refused = Arc::new(AtomicU64::new(0));
    let attackers = Attackers::start(ATTACKERS, |number| {
        let (api, refused, mut turn) = (self::tenant(&cluster), refused.clone(), 0);
        move || {
            refused.fetch_add(u64::from(write(&api, number % MAPS, turn).is_err()), Ordering::AcqRel);
            turn += 1;
        }
    });
    let longest = honest(&cluster, LASTS).longest();
    assert!(longest < WAIT_MAX, "an honest client waited for {longest:?}");
    // other invariants are decided in the same namespace as ever
    denied(&tenant);
    until("the condition", || told(&admin));
    let overruns = suture.counted(&format!("suture_invariant_overruns_total{{invariant=\"{LABEL}\"}}"));
    assert!(overruns > 0.0, "{}", suture.metrics().expect("metrics"));
    let refused = refused.load(Ordering::Acquire);
    assert!(refused > 0, "no attacker was refused");
    let loosened = json!({"spec": {"onUndecided": "Allow"}}).to_string();
    let merge = "application/merge-patch+json";
    let invariant = format!("{INVARIANTS_PATH}/nested");
    let loosened = at_once("loosening", || tenant.send("PATCH", &invariant, merge, loosened).expect("an answer"));
    until("the declared outcome", || write(&tenant, 1, 0));
    let deleted = at_once("deletion", || tenant.call("DELETE", &invariant, None).expect("an answer"));
    let began = Instant::now();
    attackers.stop();
    until("a write that is admitted", || write(&tenant, 0, 0));
    honest(&cluster, Duration::ZERO);
    let recovery = began.elapsed();
    let mut table = table();
    let saw = format!("longest wait {} s, {} s alone; 0 wrong answers", seconds(longest), seconds(alone));
    let may = "write in its namespace, and invariants there";
    table.row(["an invariant of three nested loops", may, &saw, &seconds(recovery)].map(str::to_owned));
    let saw = format!("admitted after {} s and {} s", seconds(loosened), seconds(deleted));
    table.row(["it is loosened, and deleted, meanwhile", may, &saw, "-"].map(str::to_owned));
    table.print();
    let most = suture.process.resident_max_bytes().expect("memory");
    println!("  Suture took {} MiB at most; {overruns} overruns, {refused} refusals", most >> 20);
    assert!(most < MEMORY_MAX_BYTES, "{} MiB", most >> 20);
}
