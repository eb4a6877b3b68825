//! What Suture costs: latency and requests per second against one API server without a webhook, with one that allows
//! everything, and with Suture and all shipped templates, in one run and interleaved; memory; time to ready.
//!
//! `SUTURE_LOAD_OBJECTS` \[10000\], `SUTURE_LOAD_SECONDS` of each measurement \[4\], `SUTURE_LOAD_ROUNDS` \[3\],
//! `SUTURE_LOAD_CLIENTS` at once \[1,8,32\].
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test may stop where it fails")]
#![expect(clippy::disallowed_methods, reason = "how long things take is the point")]

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use suture_e2e::authority::{Authority, HOST};
use suture_e2e::objects::{self, ingress, list, pod_spec, service, workload};
use suture_e2e::ports::Port;
use suture_e2e::process::Process;
use suture_e2e::table::Table;
use suture_e2e::{Api, Cluster, Kubectl, Nodes, Options, Part, Plan, Suture, suture, wait};

/// How many send requests at once, one after the other.
const CLIENTS: &str = "1,8,32";
/// Threads that make the objects.
const MAKERS: usize = 8;
/// Pods of each workload.
const PODS: usize = 5;
/// Objects that come with each workload: Service, Deployment, ReplicaSet, ConfigMap, Ingress, and its pods.
const OBJECTS: usize = 5 + PODS;
/// Nodes that the pods are on.
const NODES: usize = 20;
/// Requests that come in turn.
const TURNS: usize = 10;
/// Until the API server has heard of another configuration from its watch.
const SWITCHED: Duration = Duration::from_millis(1_500);
/// Far more than it takes, so that only what never comes about fails.
const SETTLED_MAX: Duration = Duration::from_secs(120);

/// Who is asked by the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    Nobody,
    AllowEverything,
    Suture,
}

/// Latencies in milliseconds, sorted, and requests per second.
#[derive(Default)]
struct Figures {
    millis: Vec<f64>,
    /// The latencies by turn, see [`request`].
    turns: [Vec<f64>; TURNS],
    seconds: f64,
    /// What Suture says itself: decisions, and the seconds from arrival to turn and to answer.
    decisions: f64,
    waiting: f64,
    answering: f64,
}

impl Figures {
    fn take(&mut self, all: impl IntoIterator<Item = [Vec<f64>; TURNS]>) {
        for (turn, millis) in all.into_iter().flat_map(|turns| turns.into_iter().enumerate()) {
            self.millis.extend_from_slice(&millis);
            self.turns[turn].extend(millis);
        }
    }

    fn percentile(&self, part: f64) -> f64 {
        percentile(&self.millis, part)
    }

    fn per_second(&self) -> f64 {
        self.millis.len() as f64 / self.seconds.max(f64::EPSILON)
    }
}

fn percentile(sorted: &[f64], part: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * part).round() as usize).copied().unwrap_or_default()
}

#[test]
fn latency_and_throughput_beside_no_webhook_and_one_that_allows_everything() {
    let [objects, seconds, rounds] =
        [("SUTURE_LOAD_OBJECTS", 10_000), ("SUTURE_LOAD_SECONDS", 4), ("SUTURE_LOAD_ROUNDS", 3)]
            .map(|(name, default)| env::var(name).ok().map_or(default, |text| text.parse().expect("a number")));
    let clients = env::var("SUTURE_LOAD_CLIENTS").unwrap_or_else(|_| CLIENTS.to_owned());
    let clients: Vec<usize> = clients.split(',').map(|number| number.parse().expect("a number")).collect();
    let workloads = objects / OBJECTS;
    let options = Options { users: vec![suture::user()], nodes: Nodes::new(NODES), ..Options::default() };
    let cluster = Cluster::start(&options).expect("cluster");
    // whatever they do would be measured with it, and is the same in all three
    for part in [Part::Kwok, Part::Scheduler, Part::ControllerManager] {
        cluster.stop(part).expect("stop");
    }
    let admin = cluster.kubectl("admin").expect("admin");
    let (_, took) = wait::timed(|| fill(&cluster, &admin, workloads));
    println!("{} objects made in {:.0} s", workloads * OBJECTS, took.as_secs_f64());
    let (suture, took) = wait::timed(|| Suture::start(&cluster, &Plan::shipped()).expect("suture"));
    println!("first ready after {:.2} s", took.as_secs_f64());
    let (allow, url, bundle) = allow(&cluster);

    let mut figures: BTreeMap<(usize, Asked), Figures> = BTreeMap::new();
    let mut resident_max = 0;
    for _ in 0..rounds {
        for asked in [Asked::Nobody, Asked::AllowEverything, Asked::Suture] {
            switch(&admin, &suture, asked, &url, &bundle);
            for &clients in &clients {
                let said = || {
                    ["decision_duration_seconds_count", "queue_wait_seconds_sum", "decision_duration_seconds_sum"]
                        .map(|name| suture.counted(&format!("suture_{name}")))
                };
                let before = said();
                let run = run(&cluster, clients, workloads, Duration::from_secs(seconds as u64));
                let after = said();
                let [judged, waiting, answering] = [0, 1, 2].map(|at| after[at] - before[at]);
                if asked == Asked::Suture {
                    assert!(judged >= run.millis.len() as f64, "suture judged {judged} of {}", run.millis.len());
                } else {
                    assert!(judged < 1.0, "nobody asks suture, which judged {judged}");
                }
                let all = figures.entry((clients, asked)).or_default();
                all.take([run.turns]);
                all.seconds += run.seconds;
                all.decisions += judged;
                all.waiting += waiting;
                all.answering += answering;
            }
            resident_max = resident_max.max(suture.replicas[0].process.resident_bytes().expect("resident"));
        }
    }
    report(&mut figures, &clients);
    println!("  resident memory of suture: {:.1} MiB", resident_max as f64 / f64::from(1 << 20));
    let process = &suture.replicas[0].process;
    for _ in 0..rounds {
        process.kill().expect("kill");
        let (_, took) = wait::timed(|| {
            process.launch().expect("launch");
            suture.wait_ready().expect("ready");
        });
        println!("  ready {:.2} s after a restart", took.as_secs_f64());
    }
    drop(allow);
    println!(
        "load: {} requests, all answered as without a webhook",
        figures.values().map(|f| f.millis.len()).sum::<usize>()
    );
}

/// Workloads whose pods are ready.
fn fill(cluster: &Cluster, admin: &Kubectl, workloads: usize) {
    let places: Vec<String> = (0..workloads.div_ceil(50)).map(|number| format!("load-{number}")).collect();
    let all = places.iter().map(String::as_str).chain(["default"]).flat_map(objects::place);
    admin.apply(&list(all.collect())).expect("namespaces");
    let accounts = places.iter().map(|place| {
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": place}})
    });
    // their controller is down, and admission wants them there
    admin.apply(&list(accounts.collect())).expect("accounts");
    thread::scope(|scope| {
        for maker in 0..MAKERS {
            scope.spawn(move || {
                let api = Api::new(cluster, "admin").expect("api");
                (maker..workloads).step_by(MAKERS).for_each(|number| make(&api, number));
            });
        }
    });
}

fn place(number: usize) -> (String, String) {
    (format!("load-{}", number / 50), format!("web-{number}"))
}

fn make(api: &Api, number: usize) {
    let (place, app) = place(number);
    let core = |plural: &str| format!("/api/v1/namespaces/{place}/{plural}");
    let apps = |plural: &str| format!("/apis/apps/v1/namespaces/{place}/{plural}");
    api.create(&core("services"), &service(&place, &app)).expect("service");
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": app}, "data": {"key": "value"}});
    api.create(&core("configmaps"), &config).expect("config");
    let hosts = format!("/apis/networking.k8s.io/v1/namespaces/{place}/ingresses");
    api.create(&hosts, &ingress(&place, &app, &format!("{app}.example"))).expect("ingress");
    let mut spec = pod_spec();
    spec["containers"][0]["envFrom"] = json!([{"configMapRef": {"name": app}}]);
    let made = api
        .create(&apps("deployments"), &workload("Deployment", &place, &app, PODS as u32, &spec))
        .expect("deployment");
    let owner = |kind: &str, object: &Value| {
        json!([{"apiVersion": "apps/v1", "kind": kind, "controller": true,
        "blockOwnerDeletion": true, "name": object["metadata"]["name"], "uid": object["metadata"]["uid"]}])
    };
    let hash = json!({"app": app, "pod-template-hash": "1"});
    let mut set = workload("ReplicaSet", &place, &app, PODS as u32, &spec);
    set["metadata"]["ownerReferences"] = owner("Deployment", &made);
    set["metadata"]["labels"] = hash.clone();
    set["metadata"]["annotations"] = json!({"deployment.kubernetes.io/revision": "1"});
    set["spec"]["selector"]["matchLabels"] = hash.clone();
    set["spec"]["template"]["metadata"]["labels"] = hash.clone();
    let set = api.create(&apps("replicasets"), &set).expect("set");
    let counts = json!({"replicas": PODS, "readyReplicas": PODS, "availableReplicas": PODS, "observedGeneration": 1});
    let mut of_deployment = counts.clone();
    of_deployment["updatedReplicas"] = json!(PODS);
    let patch = |path: String, status: &Value| {
        let reply = api.call("PATCH", &format!("{path}/status"), Some(&json!({"status": status}))).expect("status");
        assert!(reply.done(), "{}", reply.message());
    };
    patch(format!("{}/{app}", apps("deployments")), &of_deployment);
    patch(format!("{}/{app}", apps("replicasets")), &counts);
    for pod in 0..PODS {
        let name = format!("{app}-{pod}");
        let mut spec = spec.clone();
        spec["nodeName"] = json!(format!("node-{}", (number + pod * 3) % NODES));
        let object = json!({"apiVersion": "v1", "kind": "Pod", "spec": spec,
            "metadata": {"name": name, "labels": hash, "ownerReferences": owner("ReplicaSet", &set)}});
        api.create(&core("pods"), &object).expect("pod");
        let status = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        patch(format!("{}/{name}", core("pods")), &status);
    }
}

/// The webhook that allows everything, where it is, and the certificate to trust it by.
fn allow(cluster: &Cluster) -> (Process, String, String) {
    let authority = Authority::new().expect("authority");
    let identity = authority.identity().expect("identity");
    let file = |name: &str, text: &str| {
        let path = cluster.folder().join(name);
        fs::write(&path, text).expect("file");
        path.display().to_string()
    };
    let bundle = file("allow-authority.pem", authority.certificate());
    let port = Port::reserve().expect("port");
    let arguments =
        vec![port.number().to_string(), file("allow.crt", &identity.certificate), file("allow.key", &identity.key)];
    let process = cluster.attach("allow", Path::new(env!("CARGO_BIN_EXE_allow")), arguments);
    process.launch().expect("launch");
    let url = format!("https://{}:{}", HOST, port.number());
    // its reservation must outlive this function
    Box::leak(Box::new(port));
    (process, url, bundle)
}

/// Has the API server ask somebody else.
fn switch(admin: &Kubectl, suture: &Suture, asked: Asked, url: &str, bundle: &str) {
    match asked {
        Asked::Nobody => suture.unregister(admin).expect("unregister"),
        Asked::Suture => suture.register(admin).expect("register"),
        Asked::AllowEverything => {
            // the same rules and conditions
            let manifest =
                suture::run(&["manifests", "webhook", "--url", url, "--ca-bundle", bundle]).expect("manifest");
            admin.apply(&manifest).expect("register");
        }
    }
    thread::sleep(SWITCHED);
    // an Ingress that takes a host: only Suture says no
    let probe = ingress("default", "probe", "web-0.example").to_string();
    let reached = wait::until("the switch", SETTLED_MAX, || {
        let output = admin
            .run_with(&["create", "--dry-run=server", "--filename=-"], &probe)
            .map_err(|error| error.to_string())?;
        if output.success == (asked != Asked::Suture) { Ok(()) } else { Err(output.stderr) }
    });
    reached.expect("switched");
}

fn run(cluster: &Cluster, clients: usize, workloads: usize, length: Duration) -> Figures {
    let start = Instant::now();
    let all: Vec<[Vec<f64>; TURNS]> = thread::scope(|scope| {
        let threads: Vec<_> =
            (0..clients).map(|client| scope.spawn(move || send(cluster, client, clients, workloads, length))).collect();
        threads.into_iter().map(|thread| thread.join().expect("thread")).collect()
    });
    let mut figures = Figures { seconds: start.elapsed().as_secs_f64(), ..Figures::default() };
    figures.take(all);
    figures
}

/// Sends requests for a while, each client about workloads of its own.
fn send(cluster: &Cluster, client: usize, clients: usize, workloads: usize, length: Duration) -> [Vec<f64>; TURNS] {
    let api = Api::new(cluster, "admin").expect("api");
    let mut millis: [Vec<f64>; TURNS] = Default::default();
    let start = Instant::now();
    let mut turn = 0;
    while start.elapsed() < length || turn % TURNS != 0 {
        let mine = (client + (turn / TURNS) * clients) % workloads.max(1);
        let (method, path, body) = request(client, turn, mine);
        let (reply, took) = wait::timed(|| api.call(method, &path, body.as_ref()).expect("an answer"));
        assert!(reply.done(), "{method} {path}: {} {}", reply.code, reply.message());
        millis[turn % TURNS].push(took.as_secs_f64() * 1e3);
        turn += 1;
    }
    millis
}

/// What people and controllers ask all day, none of it harmful: half of it about ConfigMaps, the rest about workloads.
fn request(client: usize, turn: usize, number: usize) -> (&'static str, String, Option<Value>) {
    let (place, app) = place(number);
    let configs = format!("/api/v1/namespaces/{place}/configmaps");
    let deployment = format!("/apis/apps/v1/namespaces/{place}/deployments/{app}");
    let note = |turn: usize| Some(json!({"metadata": {"annotations": {"turn": format!("{client}-{turn}")}}}));
    let name = format!("made-{client}-{}", turn / 2);
    match turn % TURNS {
        0 | 2 => ("POST", configs, Some(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}))),
        1 | 3 => ("DELETE", format!("{configs}/{name}"), None),
        4 => ("PATCH", deployment, note(turn)),
        5 => ("PATCH", format!("/api/v1/namespaces/{place}/pods/{app}-0"), note(turn)),
        6 => ("PATCH", format!("/api/v1/namespaces/{place}/services/{app}"), note(turn)),
        7 => ("PATCH", format!("{deployment}/scale"), Some(json!({"spec": {"replicas": PODS + 1}}))),
        8 => ("PATCH", format!("{deployment}/scale"), Some(json!({"spec": {"replicas": PODS}}))),
        _ => ("PATCH", format!("{configs}/{app}"), note(turn)),
    }
}

fn report(figures: &mut BTreeMap<(usize, Asked), Figures>, clients: &[usize]) {
    for all in figures.values_mut() {
        all.millis.sort_by(f64::total_cmp);
        all.turns.iter_mut().for_each(|turn| turn.sort_by(f64::total_cmp));
    }
    let mut table = Table::new(&["clients", "webhook", "p50 ms", "p99 ms", "requests/s"]);
    for ((clients, asked), all) in figures.iter() {
        let millis = |part| format!("{:.2}", all.percentile(part));
        table.row([
            clients.to_string(),
            format!("{asked:?}"),
            millis(0.5),
            millis(0.99),
            format!("{:.0}", all.per_second()),
        ]);
    }
    table.print();
    for &clients in clients {
        let [allow, suture] = [Asked::AllowEverything, Asked::Suture].map(|asked| &figures[&(clients, asked)]);
        println!(
            "  {clients} clients, suture over allow-everything: p50 {:+.2} ms, p99 {:+.2} ms, requests/s {:.2} of it",
            suture.percentile(0.5) - allow.percentile(0.5),
            suture.percentile(0.99) - allow.percentile(0.99),
            suture.per_second() / allow.per_second(),
        );
        let mean = |seconds: f64| seconds * 1e3 / suture.decisions.max(1.0);
        println!(
            "    by its own count a decision took {:.2} ms on average, {:.2} ms of it waiting for a thread",
            mean(suture.answering),
            mean(suture.waiting)
        );
        let added = suture
            .turns
            .iter()
            .zip(&allow.turns)
            .map(|(suture, allow)| format!("{:+.2}", percentile(suture, 0.5) - percentile(allow, 0.5)));
        println!("    added p50 by request, ms: {}", added.collect::<Vec<_>>().join(" "));
    }
}
