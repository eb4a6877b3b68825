//! Who sends what is expensive to decide: is told so, and takes no more of the machine than others can spare.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use suture_e2e::objects::{list, place};
use suture_e2e::{Api, Cluster};

use super::honest::{MEMORY_MAX_BYTES, WAIT_MAX, honest};
use super::{launched, prepared, seconds, table};

/// How long each attack lasts.
const LASTS: Duration = Duration::from_secs(10);
/// Attackers at once.
const ATTACKERS: [usize; 2] = [1, 4];

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

/// Who ask the same, until they are told to stop.
struct Attackers {
    done: Arc<AtomicBool>,
    answers: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Attackers {
    fn start(cluster: &Cluster, attack: &Attack, count: usize) -> Self {
        let (done, answers) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let path = format!("{}?dryRun=All", attack.collection);
        let attacker = |_| {
            let (api, object, path) = (Api::new(cluster, "admin").expect("api"), attack.object.clone(), path.clone());
            let (done, answers) = (done.clone(), answers.clone());
            thread::spawn(move || {
                while !done.load(Ordering::Acquire) {
                    let answered = api.call("POST", &path, Some(&object)).is_ok();
                    answers.fetch_add(u64::from(answered), Ordering::AcqRel);
                }
            })
        };
        let threads = (0..count).map(attacker).collect();
        Self { done, answers, threads }
    }

    /// How many answers they got.
    fn stop(self) -> u64 {
        self.done.store(true, Ordering::Release);
        self.threads.into_iter().for_each(|thread| thread.join().expect("attacker"));
        self.answers.load(Ordering::Acquire)
    }
}

fn millis(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1_000.0)
}

#[test]
fn what_is_expensive_to_decide_stops_nobody_else() {
    let (cluster, admin) = prepared(0);
    admin.create(&list(place("shop").into_iter().chain(place("mall")).collect())).expect("namespaces");
    let suture = launched(&cluster, &["--profile=strict"]);
    let alone = honest(&cluster, LASTS);
    println!("  an honest client alone: p99 {} ms, {} s at most", millis(alone.p99()), seconds(alone.longest()));
    let mut table = table();
    for attack in attacks() {
        for count in ATTACKERS {
            let attackers = Attackers::start(&cluster, &attack, count);
            let waits = honest(&cluster, LASTS);
            let began = Instant::now();
            let answers = attackers.stop();
            honest(&cluster, Duration::ZERO);
            let recovery = seconds(began.elapsed());
            let times = waits.p99().as_secs_f64() / alone.p99().as_secs_f64();
            let (p99, longest) = (millis(waits.p99()), waits.longest());
            let saw = format!("p99 {p99} ms, {times:.1} times that alone; at most {} s", seconds(longest));
            let row = format!("{}, {count} at once, {answers} answers", attack.name);
            table.row([row, "write in its namespace".to_owned(), saw, recovery]);
            assert!(answers > 0, "{}: no attacker was answered", attack.name);
            assert!(longest < WAIT_MAX, "{}: an honest client waited for {longest:?}", attack.name);
        }
    }
    table.print();
    let most = suture.process.resident_max_bytes().expect("memory");
    println!("  Suture took {} MiB at most", most >> 20);
    assert!(most < MEMORY_MAX_BYTES, "{} MiB", most >> 20);
}
