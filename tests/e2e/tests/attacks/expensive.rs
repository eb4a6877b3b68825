//! Who sends what is expensive to decide: is told so, and takes no more of the machine than others can spare.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use suture_e2e::Api;
use suture_e2e::objects::{list, place};

use super::strangers::{MEMORY_MAX_BYTES, WAIT_MAX, honest};
use super::{launched, prepared, seconds, table};

/// How long each attack lasts.
const LASTS: Duration = Duration::from_secs(10);
/// Attackers at once.
const ATTACKERS: usize = 4;
/// What an attacker asks again and again.
struct Attack {
    name: &'static str,
    collection: &'static str,
    object: Value,
}

fn named(api: &str, kind: &str, more: Value) -> Value {
    let mut object = json!({"apiVersion": api, "kind": kind, "metadata": {"generateName": "attack-"}});
    for (key, value) in more.as_object().expect("a map") {
        object[key] = value.clone();
    }
    object
}

fn attacks() -> [Attack; 2] {
    let owner = |at| json!({"apiVersion": "v1", "kind": "Pod", "name": format!("o{at}"), "uid": format!("o{at}")});
    let owners: Vec<Value> = (0..1_000).map(owner).collect();
    let backend =
        json!({"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "backend", "port": {"number": 80}}}});
    let rule = |at| json!({"host": format!("h{at}.mall.example"), "http": {"paths": [backend]}});
    let rules: Vec<Value> = (0..4_000).map(rule).collect();
    [
        Attack {
            name: "1,000 owners",
            collection: "/api/v1/namespaces/mall/configmaps",
            object: named(
                "v1",
                "ConfigMap",
                json!({"metadata": {"generateName": "attack-", "ownerReferences": owners}}),
            ),
        },
        Attack {
            name: "4,000 hosts",
            collection: "/apis/networking.k8s.io/v1/namespaces/mall/ingresses",
            object: named("networking.k8s.io/v1", "Ingress", json!({"spec": {"rules": rules}})),
        },
    ]
}

#[test]
fn what_is_expensive_to_decide_stops_nobody_else() {
    let (cluster, admin) = prepared(0);
    admin.create(&list(place("shop").into_iter().chain(place("mall")).collect())).expect("namespaces");
    let suture = launched(&cluster, &["--profile=strict"]);
    let alone = honest(&cluster, LASTS / 2);
    println!("  an honest client alone waits {} s at most", seconds(alone));
    let mut table = table();
    for Attack { name, collection, object } in attacks() {
        let (done, answers) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let attackers: Vec<_> = (0..ATTACKERS)
            .map(|_| {
                let (api, object) = (Api::new(&cluster, "admin").expect("api"), object.clone());
                let (done, answers) = (done.clone(), answers.clone());
                thread::spawn(move || {
                    while !done.load(Ordering::Acquire) {
                        let answered = api.call("POST", &format!("{collection}?dryRun=All"), Some(&object)).is_ok();
                        answers.fetch_add(u64::from(answered), Ordering::AcqRel);
                    }
                })
            })
            .collect();
        let longest = honest(&cluster, LASTS);
        done.store(true, Ordering::Release);
        let began = Instant::now();
        attackers.into_iter().for_each(|attacker| attacker.join().expect("attacker"));
        honest(&cluster, Duration::ZERO);
        let recovery = seconds(began.elapsed());
        let answers = answers.load(Ordering::Acquire);
        let saw = format!("longest wait {} s; {answers} answers to {ATTACKERS} attackers", seconds(longest));
        table.row([name.to_owned(), "write in its namespace".to_owned(), saw, recovery]);
        assert!(answers > 0, "{name}: no attacker was answered");
        assert!(longest < WAIT_MAX, "{name}: an honest client waited for {longest:?}");
    }
    table.print();
    let most = suture.process.resident_max_bytes().expect("memory");
    println!("  Suture took {} MiB at most", most >> 20);
    assert!(most < MEMORY_MAX_BYTES, "{} MiB", most >> 20);
}
