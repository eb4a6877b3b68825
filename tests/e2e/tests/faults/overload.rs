//! More requests than can be decided, and the end of the replica that decides while many ask.
//!
//! Each client makes, changes and deletes objects that nothing is wrong with; beside them, two at a time ask for the same
//! host in two namespaces, of which one at most may get it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use suture_e2e::objects::{ingress, invariant, list, place, service};
use suture_e2e::table::Table;
use suture_e2e::{Api, Cluster, Kubectl, Nodes, Options, Plan, Suture, suture};

use super::{Ends, Outcome, Request, ask, short, until};

/// Clients that ask at once, for so long; not so long where only some faults are tried.
const MANY: usize = 128;
const SATURATED: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(10)];
/// Clients that ask while a replica ends.
const SOME: usize = 16;
/// Traffic before and after that.
const CALM: Duration = Duration::from_secs(4);
/// Namespaces of the clients.
const PLACES: usize = 8;
/// Between two looks at whether it is ready.
const LOOK: Duration = Duration::from_millis(100);

/// No name comes twice: what could not be deleted stays.
static NAMES: AtomicUsize = AtomicUsize::new(0);

/// What clients saw.
#[derive(Default)]
struct Seen {
    /// How often each outcome came; denials by their reason.
    outcomes: Mutex<BTreeMap<String, usize>>,
    /// When requests were admitted.
    admitted: Mutex<Vec<Instant>>,
    longest: Mutex<Duration>,
    /// Pairs of which both were admitted, and all pairs.
    both: AtomicUsize,
    pairs: AtomicUsize,
}

struct Scene {
    cluster: Cluster,
    admin: Kubectl,
    suture: Suture,
}

#[test]
fn too_many_requests_are_shed_and_the_lease_is_kept() {
    let scene = Scene::start(1);
    let [long, brief] = SATURATED;
    let length = if short() { brief } else { long };
    println!("\n{MANY} clients for {} s:", length.as_secs());
    let (seen, done) = (Seen::default(), AtomicBool::new(false));
    let before = scene.lease();
    let not_ready = thread::scope(|scope| {
        let _ends = Ends(&done);
        (0..MANY).for_each(|client| {
            drop(scope.spawn({
                let (scene, seen, done) = (&scene, &seen, &done);
                move || scene.send(client, seen, done)
            }))
        });
        let began = Instant::now();
        let mut not_ready = 0;
        while began.elapsed() < length {
            not_ready += usize::from(!scene.suture.replicas[0].is_ready());
            thread::sleep(LOOK);
        }
        not_ready
    });
    let over = Instant::now();
    let api = Api::new(&scene.cluster, "admin").expect("api");
    until("a decision", || ask(&api, &note("load-0")) == Outcome::Done);
    println!("  decided again after {:.2} s", over.elapsed().as_secs_f64());
    seen.print();
    assert_eq!(scene.lease(), before, "the lease was lost");
    assert_eq!(not_ready, 0, "it was not ready");
    let outcomes = seen.outcomes.into_inner().expect("outcomes");
    // what the webhook does not answer within its timeout fails with another message
    let wrong: Vec<_> = outcomes.keys().filter(|why| !["admitted", "shed", "late"].contains(&why.as_str())).collect();
    assert_eq!(wrong, Vec::<&String>::new());
    assert!(outcomes["admitted"] > 0);
}

#[test]
fn another_replica_takes_over_under_load_and_nothing_is_forgotten() {
    let scene = Scene::start(2);
    println!("\nthe replica that decides ends, {SOME} clients:");
    let mut table =
        Table::new(&["it is", "admitted", "pairs", "both admitted", "longest s", "no answer \"yes\" for s"]);
    let mut both = 0;
    for (how, end) in [("killed", true), ("asked to leave", false)] {
        let holder = scene.stands_by();
        let (seen, done) = (Seen::default(), AtomicBool::new(false));
        let process = &scene.suture.replicas.iter().find(|r| r.process.name() == holder).expect("holder").process;
        thread::scope(|scope| {
            let _ends = Ends(&done);
            for client in 0..SOME {
                let (scene, seen, done) = (&scene, &seen, &done);
                scope.spawn(
                    move || {
                        if client % 4 == 0 { scene.pairs(seen, done) } else { scene.send(client, seen, done) }
                    },
                );
            }
            thread::sleep(CALM);
            if end {
                process.kill().expect("kill")
            } else {
                process.stop().expect("stop")
            }
            let ended = Instant::now();
            until("an answer", || seen.admitted.lock().expect("admitted").last().is_some_and(|last| *last > ended));
            thread::sleep(CALM);
        });
        process.launch().expect("launch");
        seen.print();
        both += seen.both.load(Ordering::Relaxed);
        table.row(seen.row(how));
    }
    table.print();
    assert_eq!(both, 0, "two that exclude each other were admitted");
}

impl Scene {
    fn start(replicas: usize) -> Self {
        let options = Options { users: vec![suture::user()], nodes: Nodes::new(1), ..Options::default() };
        let cluster = Cluster::start(&options).expect("cluster");
        let admin = cluster.kubectl("admin").expect("admin");
        let places: Vec<String> = (0..PLACES).map(|number| format!("load-{number}")).collect();
        admin.create(&list(places.iter().flat_map(|name| place(name)).collect())).expect("namespaces");
        let templates = ["service-keeps-endpoints", "references-resolve", "unique-host"];
        let plan = Plan { replicas, ..Plan::of(templates.map(invariant).to_vec()) };
        let suture = Suture::start(&cluster, &plan).expect("suture");
        suture.register(&admin).expect("register");
        let api = Api::new(&cluster, "admin").expect("api");
        assert_eq!(ask(&api, &create("load-0", &ingress("load-0", "taken", "taken.example"))), Outcome::Done);
        let stolen = create("load-1", &ingress("load-1", "stolen", "taken.example"));
        until("the webhook", || matches!(ask(&api, &stolen), Outcome::Denied(_)));
        Self { cluster, admin, suture }
    }

    /// Who holds the Lease, and how often it has changed hands.
    fn lease(&self) -> (Value, Value) {
        let lease = self.admin.json(&["get", "lease", "suture", "--namespace", suture::NAMESPACE]).expect("lease");
        (lease["metadata"]["annotations"]["suture.dev/process"].clone(), lease["spec"]["leaseTransitions"].clone())
    }

    /// Waits until the other replica has a copy of what is in flight; gives the name of the one that decides.
    fn stands_by(&self) -> String {
        let mut holder = String::new();
        until("the other one stands by", || {
            let (name, copies) = suture::lease(&self.admin);
            holder = name;
            !copies.is_empty() && !copies.contains(&holder)
        });
        holder
    }

    /// One client's requests, one after the other.
    fn send(&self, client: usize, seen: &Seen, done: &AtomicBool) {
        let api = Api::new(&self.cluster, "admin").expect("api");
        let place = format!("load-{}", client % PLACES);
        loop {
            let name = format!("c{}", NAMES.fetch_add(1, Ordering::Relaxed));
            let made = [
                create(&place, &ingress(&place, &name, &format!("{name}.example"))),
                create(&place, &service(&place, &name)),
                create(&place, &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})),
            ];
            let changed = made.iter().flat_map(|(_, collection, _)| {
                let object = format!("{collection}/{name}");
                [
                    ("PATCH", object.clone(), Some(json!({"metadata": {"labels": {"turn": "1"}}}))),
                    ("DELETE", object, None),
                ]
            });
            for request in made.iter().cloned().chain(changed) {
                if done.load(Ordering::Relaxed) {
                    return;
                }
                seen.take(|| ask(&api, &request));
            }
        }
    }

    /// Two at once ask for a host that one of them may have.
    fn pairs(&self, seen: &Seen, done: &AtomicBool) {
        let apis = [(); 2].map(|()| Api::new(&self.cluster, "admin").expect("api"));
        while !done.load(Ordering::Relaxed) {
            let name = format!("p{}", NAMES.fetch_add(1, Ordering::Relaxed));
            let outcomes = thread::scope(|scope| {
                let sides = ["load-0", "load-1"].into_iter().zip(&apis).map(|(place, api)| {
                    let request = create(place, &ingress(place, &name, &format!("{name}.example")));
                    scope.spawn(move || seen.take(|| ask(api, &request)))
                });
                let sides: Vec<_> = sides.collect();
                sides.into_iter().map(|side| side.join().expect("thread")).collect::<Vec<_>>()
            });
            seen.pairs.fetch_add(1, Ordering::Relaxed);
            seen.both
                .fetch_add(usize::from(outcomes.iter().all(|outcome| *outcome == Outcome::Done)), Ordering::Relaxed);
        }
    }
}

impl Seen {
    fn take(&self, request: impl FnOnce() -> Outcome) -> Outcome {
        let began = Instant::now();
        let outcome = request();
        let ended = Instant::now();
        let mut longest = self.longest.lock().expect("longest");
        *longest = (*longest).max(ended - began);
        drop(longest);
        let name = match &outcome {
            Outcome::Done => {
                self.admitted.lock().expect("admitted").push(ended);
                "admitted".to_owned()
            }
            Outcome::Denied(why) if why.contains("too many requests wait") => "shed".to_owned(),
            Outcome::Denied(why) if why.contains("was not judged in time") => "late".to_owned(),
            // what was not made cannot be changed
            Outcome::Failed(why) if why.starts_with("404 ") => return outcome,
            Outcome::Denied(why) | Outcome::Failed(why) => {
                let text = why.chars().filter(|c| !c.is_ascii_digit()).map(|c| if c == '\n' { ' ' } else { c });
                text.take(200).collect()
            }
        };
        *self.outcomes.lock().expect("outcomes").entry(name).or_default() += 1;
        outcome
    }

    fn print(&self) {
        for (outcome, count) in &*self.outcomes.lock().expect("outcomes") {
            println!("  {count:7} {outcome}");
        }
        println!("  longest {:.2} s", self.longest.lock().expect("longest").as_secs_f64());
    }

    fn row(&self, how: &str) -> [String; 6] {
        let mut times = self.admitted.lock().expect("admitted").clone();
        times.sort();
        let gap = times.iter().zip(times.iter().skip(1)).map(|(one, next)| *next - *one).max().unwrap_or_default();
        [
            how.to_owned(),
            times.len().to_string(),
            self.pairs.load(Ordering::Relaxed).to_string(),
            self.both.load(Ordering::Relaxed).to_string(),
            format!("{:.2}", self.longest.lock().expect("longest").as_secs_f64()),
            format!("{:.2}", gap.as_secs_f64()),
        ]
    }
}

fn create(place: &str, object: &Value) -> Request {
    let collection = match object["kind"].as_str() {
        Some("Ingress") => format!("/apis/networking.k8s.io/v1/namespaces/{place}/ingresses"),
        Some("Service") => format!("/api/v1/namespaces/{place}/services"),
        _ => format!("/api/v1/namespaces/{place}/configmaps"),
    };
    ("POST", collection, Some(object.clone()))
}

/// A change of what is there from the beginning.
fn note(place: &str) -> Request {
    let path = format!("/apis/networking.k8s.io/v1/namespaces/{place}/ingresses/taken");
    ("PATCH", path, Some(json!({"metadata": {"labels": {"noted": "yes"}}})))
}
