//! Random large and deep objects, from eight clients at once: each gets its answer by its deadline, and no decision goes on
//! for long after that, whatever it is about. In a fixed time (`SUTURE_HOSTILE_SECONDS`), as the webhook decides. The clients
//! make them in a process of their own, so that the memory of this one is that of decisions.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what the test itself gets wrong may end it")]
#![expect(clippy::disallowed_methods, reason = "the test is about time")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use suture_model::kinds::Kind;
use suture_service::bench::measure::{resident_kib, resident_peak_kib};
use suture_service::bench::prng::Prng;
use suture_service::serve::answer::Answer;
use suture_service::serve::in_flight_log::InFlightLog;
use suture_service::serve::judge::{JudgePool, Replicas, SharedState};
use suture_service::serve::metrics::Metrics;
use suture_service::serve::paths;
use suture_service::serve::policies::Policies;
use suture_service::serve::review::AdmissionCall;
use suture_service::serve::router::{Terms, router};
use suture_service::serve::store::{Change, Reading, Store};
use suture_service::serve::workers::{Decider, Deciders, Limits, Workers};
use suture_specs::spec::{OnUndecided, Profile};

/// As the command has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod lists;

use lists::{Long, cluster, merge};

/// How long it lasts when `SUTURE_HOSTILE_SECONDS` does not say.
const SECONDS: u64 = 10;
/// Clients at once.
const CLIENTS: u64 = 8;
/// Threads that decide.
const WORKERS: usize = 2;
/// When an answer is due, as `suture serve` has it.
const DEADLINE: Duration = Duration::from_millis(1_500);
/// How much later an answer, and the end of its decision, may be.
const LATE_MAX: Duration = Duration::from_millis(50);
/// Items of the longest lists.
const ITEMS_MAX: f64 = 10_000.0;
/// The most that may be resident.
const RESIDENT_KIB_MAX: u64 = 256 << 10;
/// Bytes of the largest objects: what an API server takes.
const BYTES_MAX: usize = 3 << 20;

/// What decisions were, and how late the latest one ended.
#[derive(Default)]
struct Decided {
    late: Duration,
    /// What that was about.
    latest: String,
    /// The most time of a processor that one took after its deadline, and what that was about.
    busy: (Duration, String),
    /// The most that was resident when one ended, in KiB, and what that was about.
    largest: (u64, String),
    labels: BTreeMap<&'static str, usize>,
    /// Why something was undecided.
    reasons: BTreeMap<&'static str, usize>,
    /// How many were abandoned.
    abandoned: usize,
}

/// The threads that decide, each with its deadline, and the processor's time that it had had when that passed.
#[derive(Default)]
struct Threads(Mutex<Vec<(PathBuf, Instant, Option<Duration>)>>);

impl Threads {
    /// Looks at those whose deadline has passed.
    fn look(&self) {
        for (thread, deadline, had) in self.0.lock().unwrap().iter_mut() {
            if had.is_none() && Instant::now() >= *deadline {
                *had = Some(processor_time(thread));
            }
        }
    }

    /// The time of a processor that a thread, which ends its decision, took after the deadline.
    fn taken(&self, thread: &Path) -> Duration {
        let mut threads = self.0.lock().unwrap();
        let at = threads.iter().position(|(known, ..)| known == thread).unwrap();
        let (_, _, had) = threads.swap_remove(at);
        had.map_or(Duration::ZERO, |had| processor_time(thread).saturating_sub(had))
    }
}

/// How long a thread was on a processor.
fn processor_time(thread: &Path) -> Duration {
    let told = fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
    Duration::from_nanos(told.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

/// Judges, and notes what came of it.
struct Noted {
    judges: Arc<JudgePool>,
    decided: Arc<Mutex<Decided>>,
    threads: Arc<Threads>,
}

struct NotedJudge {
    judge: Box<dyn Decider>,
    decided: Arc<Mutex<Decided>>,
    threads: Arc<Threads>,
}

impl Deciders for Noted {
    fn decider(&self) -> Box<dyn Decider> {
        Box::new(NotedJudge {
            judge: self.judges.decider(),
            decided: self.decided.clone(),
            threads: self.threads.clone(),
        })
    }
}

/// A decision that goes on, noted however it ends: one that is abandoned has no answer.
struct Deciding<'a> {
    asked: &'a AdmissionCall,
    decided: &'a Mutex<Decided>,
    threads: &'a Threads,
    thread: PathBuf,
}

impl Drop for Deciding<'_> {
    fn drop(&mut self) {
        let late = Instant::now().saturating_duration_since(self.asked.deadline);
        let mut decided = self.decided.lock().unwrap();
        decided.abandoned += usize::from(thread::panicking());
        let about = || {
            let text = |path: &[&str]| self.asked.text(path).to_owned();
            let [operation, kind, name] = [&["operation"][..], &["kind", "kind"], &["name"]].map(text);
            format!("{operation} {kind}/{name}, {} bytes", self.asked.bytes)
        };
        let busy = self.threads.taken(&self.thread);
        if busy > decided.busy.0 {
            decided.busy = (busy, about());
        }
        if late > decided.late {
            (decided.late, decided.latest) = (late, about());
        }
        let resident = resident_kib().unwrap_or(0);
        if resident > decided.largest.0 {
            decided.largest = (resident, about());
        }
    }
}

impl Decider for NotedJudge {
    fn decide(&mut self, asked: &AdmissionCall) -> Answer {
        let thread = Path::new("/proc").join(fs::read_link("/proc/thread-self").unwrap());
        self.threads.0.lock().unwrap().push((thread.clone(), asked.deadline, None));
        let deciding = Deciding { asked, decided: &self.decided, threads: &self.threads, thread };
        let answer = self.judge.decide(asked);
        drop(deciding);
        let mut decided = self.decided.lock().unwrap();
        *decided.labels.entry(answer.label.as_str()).or_default() += 1;
        for reason in &answer.undecided {
            *decided.reasons.entry(reason).or_default() += 1;
        }
        answer
    }
}

/// The strict profile before a cluster of which everything was read.
fn judges() -> JudgePool {
    let mut policies = Policies::of_files(Some(Profile::Strict), &[], &[]).unwrap();
    let loaded = policies.load();
    let snapshot = cluster(loaded.policy.adapters.clone());
    let kinds: Vec<Kind> = loaded.wanted.kinds.iter().cloned().collect();
    let store = Arc::new(Store::new(Arc::new(loaded)));
    let known = kinds.iter().map(|kind| Change::Read(kind.clone(), Reading::Known));
    let objects: Vec<Change> = snapshot.iter().map(|object| Change::Put(object.clone())).collect();
    store.write(known.chain(objects).chain([Change::Every]).collect());
    let shared = SharedState::new(store, Arc::new(InFlightLog::lasting(60)), Replicas::Audit);
    // nothing is decided where nobody notices pauses
    shared.pauses.watch(|| ());
    JudgePool(Arc::new(shared))
}

/// An object with one or two long lists, some of it nested deep.
fn object(lists: &[Long], prng: &mut Prng) -> Value {
    let long = |prng: &mut Prng| {
        let length = ITEMS_MAX.powf(prng.below(1_000) as f64 / 1_000.0).round() as usize;
        let long = prng.pick(lists).unwrap();
        (long.of)(length)
    };
    let mut object = long(prng);
    if prng.one_in(2) {
        let other = long(prng);
        if other["kind"] == object["kind"] {
            merge(&mut object, other);
        }
    }
    for _ in 0..prng.below(3) {
        let part = *prng.pick(&["spec", "metadata", "status", "data", "rules", "webhooks", "x"]).unwrap();
        // most are as deep as can be read
        let most = if prng.one_in(4) { 400 } else { 100 };
        let deep = nested(prng.below(most), prng);
        match object.get_mut(part).and_then(Value::as_object_mut) {
            Some(map) => {
                drop(map.insert(
                    prng.pick(&["x", "labels", "template", "selector", "containers"]).unwrap().to_string(),
                    deep,
                ))
            }
            None => object[part] = deep,
        }
    }
    object
}

fn nested(depth: usize, prng: &mut Prng) -> Value {
    let wide = prng.below(20);
    (0..depth).fold(json!("x"), |inner, level| match level % 3 {
        0 => json!([inner]),
        1 => json!({"a": inner}),
        _ => json!({"a": inner, "b": vec![level; wide]}),
    })
}

/// A review of a write of it, after what it is about; `None` where an API server would not take its length.
fn asked(uid: u64, lists: &[Long], prng: &mut Prng) -> Option<(String, String)> {
    let object = object(lists, prng);
    let old = if prng.one_in(3) { self::object(lists, prng) } else { object.clone() };
    let text = |part: &str| object[part].as_str().map(str::to_owned);
    let (api, kind) = (text("apiVersion")?, text("kind")?);
    let (group, version) = api.split_once('/').unwrap_or(("", &api));
    let mut old = old;
    // of what is asked for, whatever it was
    for part in ["apiVersion", "kind"] {
        old[part] = object[part].clone();
    }
    old["metadata"]["name"] = object["metadata"]["name"].clone();
    let (operation, object, old) = match prng.below(4) {
        0 => ("DELETE", Value::Null, old),
        1 => ("CREATE", object, Value::Null),
        _ => ("UPDATE", object, old),
    };
    let known = if object.is_null() { &old } else { &object };
    let about = format!("{operation} {kind}/{}", known["metadata"]["name"].as_str().unwrap_or_default());
    let request = json!({"uid": uid.to_string(), "operation": operation, "dryRun": true,
        "kind": {"group": group, "version": version, "kind": kind},
        "resource": {"group": group, "version": version, "resource": format!("{}s", kind.to_lowercase())},
        "name": known["metadata"]["name"], "namespace": known["metadata"].get("namespace").unwrap_or(&Value::Null),
        "userInfo": {"username": format!("eve-{}", prng.below(3))}, "object": object, "oldObject": old});
    let review =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string();
    (review.len() <= 2 * BYTES_MAX).then(|| (format!("{about}, {} bytes", review.len()), review))
}

/// How much later than it asked for a thread wakes up that has nothing to do: what the machine does beside this.
/// It looks meanwhile at the threads that decide.
fn oversleeping(done: Arc<AtomicBool>, threads: Arc<Threads>) -> thread::JoinHandle<Duration> {
    const NAP: Duration = Duration::from_millis(1);
    thread::spawn(move || {
        let mut most = Duration::ZERO;
        while !done.load(Ordering::Acquire) {
            let began = Instant::now();
            thread::sleep(NAP);
            most = most.max(began.elapsed().saturating_sub(NAP));
            threads.look();
        }
        most
    })
}

/// Where the clients, in a process of their own, find the webhook, and for how many seconds they ask.
const ADDRESS: &str = "SUTURE_HOSTILE_ADDRESS";
const LASTING: &str = "SUTURE_HOSTILE_LASTING";
/// What comes before what the clients saw, in what their process prints.
const SEEN: &str = "seen: ";

/// What a client saw of the answers.
#[derive(Default)]
struct Seen {
    micros: Vec<u64>,
    /// How long the slowest one took, and what it was about.
    slowest: (u64, String),
    /// How often which code was answered.
    codes: BTreeMap<u64, usize>,
}

impl Seen {
    fn add(&mut self, took: Duration, about: String, code: u64) {
        let micros = u64::try_from(took.as_micros()).unwrap();
        if micros > self.slowest.0 {
            self.slowest = (micros, about);
        }
        self.micros.push(micros);
        *self.codes.entry(code).or_default() += 1;
    }

    fn join(mut self, other: Self) -> Self {
        self.slowest = self.slowest.max(other.slowest);
        self.micros.extend(other.micros);
        other.codes.into_iter().for_each(|(code, count)| *self.codes.entry(code).or_default() += count);
        self
    }
}

/// Posts a review, and gives the code of its answer.
fn post(stream: &mut TcpStream, body: &str) -> u64 {
    write!(stream, "POST {} HTTP/1.1\r\nHost: suture\r\nContent-Length: {}\r\n\r\n", paths::PATH, body.len()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    for line in reader.by_ref().lines().map(Result::unwrap).take_while(|line| !line.is_empty()) {
        if let Some(("content-length", value)) = line.to_lowercase().split_once(": ") {
            length = value.parse().unwrap();
        }
    }
    let mut answer = vec![0; length];
    reader.read_exact(&mut answer).unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    let response = &answer["response"];
    if response["allowed"] == true { 200 } else { response["status"]["code"].as_u64().unwrap() }
}

/// The process of the clients.
fn send(address: &str) {
    let seconds = std::env::var(LASTING).unwrap();
    let end = Instant::now() + Duration::from_secs(seconds.parse().unwrap());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let mut stream = TcpStream::connect(address).unwrap();
            thread::spawn(move || {
                let (lists, mut prng, mut seen) = (lists::all(), Prng::new(0x5eed ^ client), Seen::default());
                for turn in 0.. {
                    if Instant::now() >= end {
                        break;
                    }
                    let Some((about, body)) = asked(turn * CLIENTS + client, &lists, &mut prng) else { continue };
                    let began = Instant::now();
                    let code = post(&mut stream, &body);
                    seen.add(began.elapsed(), about, code);
                }
                seen
            })
        })
        .collect();
    let seen = clients.into_iter().map(|client| client.join().unwrap()).fold(Seen::default(), Seen::join);
    let Seen { mut micros, slowest, codes } = seen;
    micros.sort_unstable();
    println!("{SEEN}{}", json!({"micros": micros, "slowest": slowest.1, "codes": codes}));
}

/// What the process of the clients saw of a webhook.
fn seen_by_clients(address: &str, seconds: u64) -> Value {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "no_decision_goes_on_beyond_its_deadline", "--nocapture"]);
    command.env(ADDRESS, address).env(LASTING, seconds.to_string());
    let ran = command.stderr(Stdio::inherit()).output().unwrap();
    let printed = String::from_utf8(ran.stdout).unwrap();
    let seen = printed.lines().find_map(|line| Some(line.split_once(SEEN)?.1));
    serde_json::from_str(seen.unwrap_or_else(|| unreachable!("{printed}"))).unwrap()
}

#[test]
fn no_decision_goes_on_beyond_its_deadline() {
    if let Ok(address) = std::env::var(ADDRESS) {
        return send(&address);
    }
    let told = std::env::var("SUTURE_HOSTILE_SECONDS").ok().and_then(|text| text.parse().ok());
    let seconds = told.unwrap_or(SECONDS);
    let (decided, metrics) = (Arc::<Mutex<Decided>>::default(), Metrics::default());
    let start = resident_kib().unwrap_or(0);
    let (judges, threads) = (Arc::new(judges()), Arc::<Threads>::default());
    let crews = [WORKERS, 1].map(|workers| {
        let noted = Noted { judges: judges.clone(), decided: decided.clone(), threads: threads.clone() };
        Workers::start(Arc::new(noted), Limits { workers, queue_len_max: 256 }, metrics.clone())
    });
    let terms = Terms { deadline: DEADLINE, margin: Duration::ZERO, on_overload: OnUndecided::Deny };
    let router = router(crews, terms, metrics, (None, None), paths::Segments::default(), None);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    runtime.spawn(async move { axum::serve(listener, router).await });
    let done = Arc::new(AtomicBool::new(false));
    let oversleeping = oversleeping(done.clone(), threads);
    let seen = seen_by_clients(&address, seconds);
    done.store(true, Ordering::Release);
    let overslept = oversleeping.join().unwrap();
    let took: Vec<Duration> =
        seen["micros"].as_array().unwrap().iter().map(|one| Duration::from_micros(one.as_u64().unwrap())).collect();
    let at = |part: usize| took.get(took.len().saturating_sub(1) * part / 100).copied().unwrap_or_default();
    let answered = at(100).saturating_sub(DEADLINE);
    let Decided { late, latest, busy, largest, labels, reasons, abandoned } =
        std::mem::take(&mut *decided.lock().unwrap());
    let (peak, count) = (resident_peak_kib().unwrap_or(0), took.len());
    println!("{count} requests in {seconds} s at {CLIENTS} clients, answered with {}", seen["codes"]);
    println!("decided: {labels:?}, {abandoned} abandoned, undecided for {reasons:?}");
    println!("took p50 {:?}, p99 {:?}, at most {:?}, of {DEADLINE:?}: {}", at(50), at(99), at(100), seen["slowest"]);
    println!("decisions ended {late:?} after their deadline at most: {latest}");
    println!("of which they were {:?} on a processor at most: {}", busy.0, busy.1);
    println!("a thread that slept woke up {overslept:?} late at most");
    let (after, of) = (largest.0 >> 10, largest.1);
    println!(
        "resident at the start {} MiB, at most {} MiB; after a decision {after} MiB: {of}",
        start >> 10,
        peak >> 10
    );
    assert!(!labels.contains_key("panicked"), "{labels:?}");
    // what is not decided costs nothing, and says nothing
    let judged = ["allowed", "denied"].iter().filter_map(|label| labels.get(label)).sum::<usize>();
    assert!(2 * judged > count, "{judged} of {count} were judged: {labels:?}");
    // where nobody asked for it the machine may do anything beside
    let most = if told.is_some() { LATE_MAX + overslept } else { Duration::MAX };
    assert!(answered <= most, "an answer was late by {answered:?}: {}", seen["slowest"]);
    assert!(late <= most, "a decision ended {late:?} after its deadline: {latest}");
    assert!(told.is_none() || peak < RESIDENT_KIB_MAX, "{} MiB were resident", peak >> 10);
}
