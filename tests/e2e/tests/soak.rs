//! Minutes of churn: memory stays flat, and decisions are right when they are made again from scratch.
//!
//! `SUTURE_SOAK_MINUTES` \[20\]; `SUTURE_SOAK_SAMPLES` decisions in all \[1000\] are dry runs, made while the churn holds
//! its breath, and compared with what `suture check` says about the same request in the same state.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test may stop where it fails")]
#![expect(clippy::disallowed_methods, reason = "how long it lasts is the point")]

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::process::Command;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use suture_e2e::objects::{self, eviction, ingress, list, pod_spec, service, workload};
use suture_e2e::table::Table;
use suture_e2e::{Api, Cluster, Nodes, Options, Plan, Suture, suture, wait};

/// Workloads that the churn is about.
const WORKLOADS: usize = 40;
/// Namespaces that they are in.
const PLACES: usize = 4;
/// Threads that churn.
const CHURNERS: usize = 3;
/// Decisions that are compared for one dump of the state.
const BATCH: usize = 25;
/// How often a dump may have been out of date by the time that the decisions were made.
const TRIES_MAX: usize = 40;
/// Far more than anything takes, so that only what never comes about fails.
const SETTLED_MAX: Duration = Duration::from_secs(240);
/// Memory after the first minutes, and what it may become: allocators keep what they once had.
const GROWTH_MAX: f64 = 1.5;

/// What a state consists of: where, and what its objects are.
const KINDS: [(&str, &str, &str); 17] = [
    ("/api/v1/namespaces", "v1", "Namespace"),
    ("/api/v1/nodes", "v1", "Node"),
    ("/api/v1/pods", "v1", "Pod"),
    ("/api/v1/services", "v1", "Service"),
    ("/api/v1/configmaps", "v1", "ConfigMap"),
    ("/api/v1/secrets", "v1", "Secret"),
    ("/api/v1/serviceaccounts", "v1", "ServiceAccount"),
    ("/api/v1/persistentvolumes", "v1", "PersistentVolume"),
    ("/api/v1/persistentvolumeclaims", "v1", "PersistentVolumeClaim"),
    ("/apis/apps/v1/deployments", "apps/v1", "Deployment"),
    ("/apis/apps/v1/replicasets", "apps/v1", "ReplicaSet"),
    ("/apis/apps/v1/statefulsets", "apps/v1", "StatefulSet"),
    ("/apis/apps/v1/daemonsets", "apps/v1", "DaemonSet"),
    ("/apis/policy/v1/poddisruptionbudgets", "policy/v1", "PodDisruptionBudget"),
    ("/apis/networking.k8s.io/v1/ingresses", "networking.k8s.io/v1", "Ingress"),
    ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", "scheduling.k8s.io/v1", "PriorityClass"),
];

#[test]
fn memory_stays_flat_and_decisions_are_right() {
    let [minutes, samples] = [("SUTURE_SOAK_MINUTES", 20), ("SUTURE_SOAK_SAMPLES", 1_000)]
        .map(|(name, default)| env::var(name).ok().map_or(default, |text| text.parse::<usize>().expect("a number")));
    let options = Options { users: vec![suture::user()], nodes: Nodes::new(6), ..Options::default() };
    let cluster = Cluster::start(&options).expect("cluster");
    let admin = cluster.kubectl("admin").expect("admin");
    let places = (0..PLACES).flat_map(|number| objects::place(&format!("soak-{number}")));
    admin.create(&list(places.collect())).expect("places");
    let suture = Suture::start(&cluster, &Plan::shipped()).expect("suture");
    suture.register(&admin).expect("register");
    let (done, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
    // readers churn; whoever writes has the cluster for itself
    let breath = RwLock::new(());
    let mut table = Table::new(&["minute", "resident MiB", "requests", "compared", "denied among them"]);
    let (mut compared, mut denied, mut wrong) = (0, 0, Vec::new());
    let mut resident = Vec::new();
    thread::scope(|scope| {
        let ends = Ends(&done);
        for churner in 0..CHURNERS {
            let (cluster, done, sent, breath) = (&cluster, &done, &sent, &breath);
            scope.spawn(move || churn(cluster, churner, done, sent, breath));
        }
        let start = Instant::now();
        for minute in 1..=minutes {
            let due = samples * minute / minutes;
            let end = Duration::from_secs(60) * u32::try_from(minute).expect("minutes");
            while compared < due {
                let _still = breath.write().expect("breath");
                let verdicts = sample(&cluster, &suture, compared, BATCH.min(due - compared));
                compared += verdicts.len();
                denied += verdicts.iter().filter(|verdict| verdict.denied).count();
                wrong.extend(verdicts.into_iter().filter_map(|verdict| verdict.wrong));
            }
            thread::sleep(end.saturating_sub(start.elapsed()));
            let bytes = suture.replicas[0].process.resident_bytes().expect("resident");
            let mib = bytes as f64 / f64::from(1 << 20);
            resident.push(mib);
            let requests = sent.load(Ordering::Relaxed);
            println!("  minute {minute}: {mib:.1} MiB resident, {requests} requests, {compared} decisions compared");
            table.row([
                minute.to_string(),
                format!("{mib:.1}"),
                requests.to_string(),
                compared.to_string(),
                denied.to_string(),
            ]);
        }
        drop(ends);
    });
    table.print();
    println!("soak: {compared} decisions made again from scratch, {denied} of them denials; {} differ", wrong.len());
    assert_eq!(wrong, Vec::<String>::new());
    assert!(denied > 0 && denied < compared, "both verdicts are among what was compared");
    let (first, last) = (resident[resident.len() / 4], resident[resident.len() - 1]);
    println!("memory: {first:.1} MiB after a quarter of the time, {last:.1} MiB at the end");
    assert!(last < first * GROWTH_MAX, "memory grows");
}

/// Ends the churn, also when something fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A generator of numbers: the same ones in each run.
struct Dice(u64);

impl Dice {
    /// One of `0..sides` (splitmix64).
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % sides.max(1) as u64).unwrap_or(0)
    }
}

type Request = (&'static str, String, Option<Value>);

/// Requests of all sorts, some of them harmful.
fn request(dice: &mut Dice, pods: &[(String, String)], number: usize) -> Request {
    let (place, app) = (format!("soak-{}", number % PLACES), format!("web-{number}"));
    let core = |plural: &str| format!("/api/v1/namespaces/{place}/{plural}");
    let deployments = format!("/apis/apps/v1/namespaces/{place}/deployments");
    let hosts = format!("/apis/networking.k8s.io/v1/namespaces/{place}/ingresses");
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": app}});
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": app},
        "spec": {"maxUnavailable": dice.roll(2), "selector": {"matchLabels": {"app": app}}}});
    let mut spec = pod_spec();
    spec["containers"][0]["envFrom"] = json!([{"configMapRef": {"name": app}}]);
    match dice.roll(12) {
        0 => ("POST", core("configmaps"), Some(config)),
        1 => ("DELETE", format!("{}/{app}", core("configmaps")), None),
        2 => ("POST", core("services"), Some(service(&place, &app))),
        3 => ("DELETE", format!("{}/{app}", core("services")), None),
        4 => ("POST", deployments, Some(workload("Deployment", &place, &app, 2, &spec))),
        5 => ("DELETE", format!("{deployments}/{app}"), None),
        6 => ("PATCH", format!("{deployments}/{app}/scale"), Some(json!({"spec": {"replicas": dice.roll(4)}}))),
        7 => ("POST", hosts, Some(ingress(&place, &app, &format!("host-{}.example", dice.roll(WORKLOADS))))),
        8 => ("DELETE", format!("{hosts}/{app}"), None),
        9 => ("POST", format!("/apis/policy/v1/namespaces/{place}/poddisruptionbudgets"), Some(budget)),
        sort => match pods.get(dice.roll(pods.len())) {
            Some((place, pod)) if sort == 10 => {
                let body = eviction(place, pod);
                ("POST", format!("/api/v1/namespaces/{place}/pods/{pod}/eviction"), Some(body))
            }
            Some((place, pod)) => ("DELETE", format!("/api/v1/namespaces/{place}/pods/{pod}"), None),
            None => ("POST", core("configmaps"), Some(config)),
        },
    }
}

fn churn(cluster: &Cluster, churner: usize, done: &AtomicBool, sent: &AtomicUsize, breath: &RwLock<()>) {
    let api = Api::new(cluster, "admin").expect("api");
    let mut dice = Dice(churner as u64);
    let mut pods = Vec::new();
    for turn in 0.. {
        if done.load(Ordering::Relaxed) {
            return;
        }
        let _moving = breath.read().expect("breath");
        if turn % 50 == 0 {
            pods = pods_of(&api.get("/api/v1/pods").expect("pods"));
        }
        // each of its own: what another one makes meanwhile would be admitted here and stored by nobody
        let number = CHURNERS * dice.roll(WORKLOADS / CHURNERS) + churner;
        let (method, path, body) = request(&mut dice, &pods, number);
        let name = body.as_ref().and_then(|object| object.pointer("/metadata/name")?.as_str());
        if let ("POST", false, Some(name)) = (method, path.ends_with("/eviction"), name)
            && api.call("GET", &format!("{path}/{name}"), None).expect("an answer").done()
        {
            // it would be remembered until its time is up
            continue;
        }
        api.call(method, &path, body.as_ref()).expect("an answer");
        sent.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(10));
    }
}

fn pods_of(list: &Value) -> Vec<(String, String)> {
    let all = list["items"].as_array().into_iter().flatten();
    all.filter_map(|pod| {
        Some((pod["metadata"]["namespace"].as_str()?.to_owned(), pod["metadata"]["name"].as_str()?.to_owned()))
    })
    .collect()
}

/// One decision and what is wrong with it.
struct Verdict {
    denied: bool,
    wrong: Option<String>,
}

/// Asks for some dry runs in a state that stands still, and again from scratch.
fn sample(cluster: &Cluster, suture: &Suture, seed: usize, count: usize) -> Vec<Verdict> {
    let api = Api::new(cluster, "admin").expect("api");
    for attempt in 0..TRIES_MAX {
        // controllers come to rest, and the ledger is empty
        let rest = wait::until("an empty ledger", SETTLED_MAX, || {
            let entries = suture.counted("suture_ledger_entries");
            if entries < 1.0 { Ok(()) } else { Err(entries.to_string()) }
        });
        rest.expect("rest");
        thread::sleep(Duration::from_millis(500));
        let before = dump(&api);
        let mut dice = Dice((seed * 31 + attempt) as u64 ^ 0xdead_beef);
        let pods =
            pods_of(&json!({"items": before.iter().filter(|object| object["kind"] == "Pod").collect::<Vec<_>>()}));
        let mut asked = Vec::new();
        while asked.len() < count {
            let number = dice.roll(WORKLOADS);
            let (method, path, body) = request(&mut dice, &pods, number);
            let reply = api.call(method, &format!("{path}?dryRun=All"), body.as_ref()).expect("an answer");
            let refused = reply.message().contains("denied the request");
            // what the API server refuses itself was judged by nobody, nor what a replica does not decide now
            if reply.done() || (refused && reply.code != 503) {
                asked.push((method, path, body, refused, reply.message().to_owned()));
            }
        }
        if versions(&before) != versions(&dump(&api)) {
            continue;
        }
        let state = cluster.folder().join("soak-state.json");
        fs::write(&state, list(before.clone())).expect("state");
        return asked
            .into_iter()
            .map(|(method, path, body, refused, message)| {
                let again = again(cluster, &state, &before, method, &path, body.as_ref());
                let wrong = (again != refused).then(|| {
                    format!("{method} {path} was {} and is {} from scratch: {message}", word(refused), word(again))
                });
                Verdict { denied: refused, wrong }
            })
            .collect();
    }
    panic_late()
}

#[expect(clippy::panic, reason = "a test may stop where it fails")]
fn panic_late() -> Vec<Verdict> {
    panic!("the cluster does not come to rest")
}

fn word(refused: bool) -> &'static str {
    if refused { "denied" } else { "allowed" }
}

/// All objects of the kinds that matter.
fn dump(api: &Api) -> Vec<Value> {
    let mut all = Vec::new();
    for (path, version, kind) in KINDS {
        for mut object in api.get(path).expect("list")["items"].as_array().cloned().unwrap_or_default() {
            object["apiVersion"] = json!(version);
            object["kind"] = json!(kind);
            all.push(object);
        }
    }
    all
}

fn versions(objects: &[Value]) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    objects
        .iter()
        .map(|object| (text(&object["metadata"]["uid"]), text(&object["metadata"]["resourceVersion"])))
        .collect()
}

/// Whether `suture check` refuses the same request in the same state.
fn again(
    cluster: &Cluster,
    state: &std::path::Path,
    objects: &[Value],
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> bool {
    let review = cluster.folder().join("soak-review.json");
    fs::write(&review, review_of(objects, method, path, body).to_string()).expect("review");
    let mut command = Command::new(suture::program());
    command.arg("check").arg("--state").arg(state).arg("--review").arg(&review);
    let output = command.output().expect("suture check");
    match output.status.code() {
        Some(0) => false,
        Some(1 | 3) => true,
        code => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(code, Some(0), "{method} {path}: {said}");
            false
        }
    }
}

/// The review that the API server would send.
fn review_of(objects: &[Value], method: &str, path: &str, body: Option<&Value>) -> Value {
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    // api/v1/namespaces/NS/PLURAL[/NAME[/SUB]] or apis/GROUP/VERSION/namespaces/NS/PLURAL[/NAME[/SUB]]
    let (group, rest) = if parts[0] == "api" { ("", &parts[2..]) } else { (parts[1], &parts[3..]) };
    let version = if parts[0] == "api" { parts[1] } else { parts[2] };
    let (namespace, plural) = (rest[1], rest[2]);
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let kind =
        KINDS.iter().find(|(path, of, _)| *of == api_version && path.ends_with(&format!("/{plural}"))).expect("kind").2;
    let name =
        rest.get(3).map_or_else(|| body.expect("object")["metadata"]["name"].as_str().expect("name"), |name| *name);
    let sub = rest.get(4).copied().unwrap_or_default();
    let found = objects
        .iter()
        .find(|o| o["kind"] == kind && o["metadata"]["namespace"] == namespace && o["metadata"]["name"] == name);
    let (operation, object, old) = match (method, sub) {
        ("POST", _) => ("CREATE", placed(body, namespace), Value::Null),
        ("DELETE", _) => ("DELETE", Value::Null, found.cloned().unwrap_or_default()),
        _ => {
            let scale = |replicas: &Value| {
                json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
                "metadata": {"name": name, "namespace": namespace}, "spec": {"replicas": replicas}})
            };
            let wanted = &body.expect("patch")["spec"]["replicas"];
            ("UPDATE", scale(wanted), scale(&found.map(|o| o["spec"]["replicas"].clone()).unwrap_or_default()))
        }
    };
    let asked_kind = match sub {
        "scale" => json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}),
        "eviction" => json!({"group": "policy", "version": "v1", "kind": "Eviction"}),
        _ => json!({"group": group, "version": version, "kind": kind}),
    };
    let mut request = json!({
        "uid": "soak", "kind": asked_kind, "requestKind": asked_kind,
        "resource": {"group": group, "version": version, "resource": plural},
        "requestResource": {"group": group, "version": version, "resource": plural},
        "name": name, "namespace": namespace, "operation": operation, "object": object, "oldObject": old, "dryRun": true,
        "userInfo": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
        "options": Value::Null,
    });
    if !sub.is_empty() {
        request["subResource"] = json!(sub);
        request["requestSubResource"] = json!(sub);
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
}

/// A new object with the namespace that its path says.
fn placed(body: Option<&Value>, namespace: &str) -> Value {
    let mut object = body.expect("object").clone();
    object["metadata"]["namespace"] = json!(namespace);
    object
}
