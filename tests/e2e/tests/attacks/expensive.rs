//! Who sends what is expensive to decide: is told so, and takes no more of the machine than others can spare.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use suture_e2e::objects::{list, place};
use suture_e2e::{Api, Cluster};

use super::attackers::Attackers;
use super::honest::{MEMORY_MAX_BYTES, WAIT_MAX, Waits, honest};
use super::{launched, prepared, seconds, table};

/// How long each attack lasts, and how long an honest client is alone before it: by turns, since nothing else makes the two
/// comparable on a machine that does other things as well.
const LASTS: Duration = Duration::from_secs(3);
/// So many turns.
const TURNS: usize = 4;
/// Attackers at once.
const ATTACKERS: [usize; 2] = [1, 4];

/// What an attacker asks again and again.
struct Attack {
    name: &'static str,
    collection: &'static str,
    object: Value,
}

impl Attack {
    /// So many who ask it at once, and how many answers they have.
    fn start(&self, cluster: &Cluster, count: usize) -> (Attackers, Arc<AtomicU64>) {
        let (path, answers) = (format!("{}?dryRun=All", self.collection), Arc::new(AtomicU64::new(0)));
        let attackers = Attackers::start(count, |_| {
            let api = Api::new(cluster, "admin").expect("api");
            let (path, object, answers) = (path.clone(), self.object.clone(), answers.clone());
            move || {
                let answered = api.call("POST", &path, Some(&object)).is_ok();
                answers.fetch_add(u64::from(answered), Ordering::AcqRel);
            }
        });
        (attackers, answers)
    }
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

fn millis(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1_000.0)
}

/// What an honest client waited for beside some attackers and alone, and what the attackers had of it.
struct Seen {
    beside: Waits,
    alone: Waits,
    answers: u64,
    recovery: Duration,
}

impl Seen {
    fn of(cluster: &Cluster, attack: &Attack, count: usize) -> Self {
        let (mut alone, mut beside) = (Waits::default(), Waits::default());
        let (mut answers, mut recovery) = (0, Duration::ZERO);
        for _ in 0..TURNS {
            alone.add(honest(cluster, LASTS));
            let (attackers, answered) = attack.start(cluster, count);
            beside.add(honest(cluster, LASTS));
            let began = Instant::now();
            attackers.stop();
            answers += answered.load(Ordering::Acquire);
            honest(cluster, Duration::ZERO);
            recovery = recovery.max(began.elapsed());
        }
        assert!(answers > 0, "{}: no attacker was answered", attack.name);
        Self { beside, alone, answers, recovery }
    }

    /// What the client saw: how many times longer its requests take.
    fn text(&self) -> String {
        let Self { beside, alone, .. } = self;
        let times = beside.p99().as_secs_f64() / alone.p99().as_secs_f64();
        let (p99, usual) = (millis(beside.p99()), millis(alone.p99()));
        format!("p99 {p99} ms, {times:.1} times {usual} ms alone; at most {} s", seconds(beside.longest()))
    }
}

#[test]
fn what_is_expensive_to_decide_stops_nobody_else() {
    let (cluster, admin) = prepared(0);
    admin.create(&list(place("shop").into_iter().chain(place("mall")).collect())).expect("namespaces");
    let mut table = table();
    // what the API server itself takes for it
    let without = attacks().map(|attack| (Seen::of(&cluster, &attack, 1), attack.name));
    let suture = launched(&cluster, &["--profile=strict"]);
    honest(&cluster, LASTS);
    let mut row = |name: String, seen: &Seen| {
        let row = format!("{name}, {} answers", seen.answers);
        table.row([row, "write in its namespace".to_owned(), seen.text(), seconds(seen.recovery)]);
    };
    for (seen, name) in &without {
        row(format!("{name}, 1 at once, no webhook"), seen);
    }
    for attack in attacks() {
        for count in ATTACKERS {
            let seen = Seen::of(&cluster, &attack, count);
            row(format!("{}, {count} at once", attack.name), &seen);
            let longest = seen.beside.longest();
            assert!(longest < WAIT_MAX, "{}: an honest client waited for {longest:?}", attack.name);
        }
    }
    table.print();
    let most = suture.process.resident_max_bytes().expect("memory");
    println!("  Suture took {} MiB at most", most >> 20);
    assert!(most < MEMORY_MAX_BYTES, "{} MiB", most >> 20);
}
