//! What fails around Suture, with traffic running: nothing wrong is admitted, no request is stuck, and all of it recovers.
//!
//! | traffic | is right when |
//! |---|---|
//! | harmless requests | they are admitted, once there is somebody to judge them |
//! | harmful requests | they are never admitted |
//! | duels: both of two endpoints are evicted at once | one of the two is still there at the end |
//!
//! Too many requests at once, and the end of the replica that decides among many, are in `overload`.
//!
//! With `SUTURE_FAULTS=short` only Suture, the API server, the connections between them, and etcd fail, and saturation is
//! shorter.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test may stop where it fails")]
#![expect(clippy::disallowed_methods, reason = "how long things take is the point")]

mod overload;

use std::env;
use std::fmt::Write;
use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use suture_e2e::balancer::Balancer;
use suture_e2e::objects::{definition, eviction, ingress, invariant, list, place, pod, serves, service};
use suture_e2e::table::Table;
use suture_e2e::{Api, Cluster, Nodes, Options, Part, Plan, Suture, suture, wait};

/// Far more than any recovery takes, so that only what never comes about fails.
const RECOVERED_MAX: Duration = Duration::from_secs(90);
/// How long etcd stands still.
const PAUSE: Duration = Duration::from_secs(5);
/// How often in a row connections are cut.
const CUTS: usize = 4;
/// The time between two cuts.
const CUT_EVERY: Duration = Duration::from_millis(150);
/// What the API server may take for a request beside the webhook, on a machine that does much else.
const BESIDE_MAX: Duration = Duration::from_secs(8);
/// Traffic before a fault, and after the recovery.
const CALM: Duration = Duration::from_secs(2);
/// The namespace of the traffic.
const PLACE: &str = "traffic";
/// An object that harmful requests are about: its group and kind.
const GROUP: &str = "e2e.example";

/// One request of the traffic.
struct Sample {
    began: Instant,
    ended: Instant,
    harmful: bool,
    outcome: Outcome,
    what: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Done,
    Denied(String),
    Failed(String),
}

/// Two endpoints, both evicted at once.
struct Duel {
    app: String,
    /// Whether either eviction was admitted.
    admitted: usize,
}

/// A cluster, Suture, and what was found so far.
struct Scene {
    cluster: Cluster,
    /// Between Suture and the API server.
    way: Balancer,
    suture: Suture,
    table: Table,
    wrong: Vec<String>,
    duels: AtomicUsize,
}

#[test]
fn nothing_wrong_is_admitted_whatever_fails() {
    let short = short();
    let mut scene = Scene::start(1);
    scene.under("suture killed, started again", Duration::ZERO, |scene| {
        scene.suture.replicas[0].process.kill().expect("kill");
        scene.suture.replicas[0].process.launch().expect("launch");
    });
    scene.under("API server killed, started again", Duration::ZERO, |scene| {
        scene.cluster.kill(Part::ApiServer).expect("kill");
        scene.cluster.launch(Part::ApiServer).expect("launch");
    });
    scene.under("connections to the API server cut", Duration::ZERO, Scene::cut_connections);
    scene.under("etcd paused 5 s", PAUSE, |scene| {
        scene.cluster.pause(Part::Etcd).expect("pause");
        thread::sleep(PAUSE);
        scene.cluster.resume(Part::Etcd).expect("resume");
    });
    if !short {
        scene.under("watches cut, their place compacted (410)", PAUSE, Scene::cut_watches);
        scene.under("certificate rotated", Duration::ZERO, |scene| {
            let swaps = || scene.suture.counted("suture_certificate_swaps_total");
            let before = swaps();
            scene.suture.rotate().expect("rotate");
            until("the new certificate", || swaps() > before);
        });
        scene.under("definition that an adapter reads removed, brought back", Duration::ZERO, Scene::redefine);
    }
    scene.end();
    let mut scene = Scene::start(2);
    scene.under("one of two replicas killed", Duration::ZERO, |scene| {
        scene.suture.replicas[0].process.kill().expect("kill");
    });
    scene.under("it comes back", Duration::ZERO, |scene| {
        scene.suture.replicas[0].process.launch().expect("launch");
        scene.suture.wait_ready().expect("ready");
    });
    scene.under("connections to the API server cut", Duration::ZERO, Scene::cut_connections);
    scene.end();
    println!("no wrong admission, no request stuck");
}

impl Scene {
    fn start(replicas: usize) -> Self {
        let options = Options { users: vec![suture::user()], nodes: Nodes::new(4), ..Options::default() };
        let cluster = Cluster::start(&options).expect("cluster");
        let admin = cluster.kubectl("admin").expect("admin");
        admin.create(&list([PLACE, "rival"].map(place).concat())).expect("namespaces");
        until("service account", || {
            admin.run(&["get", "serviceaccount", "default", "--namespace", PLACE]).expect("kubectl").success
        });
        let mut needing = pod(PLACE, "single", "single", "node-0");
        needing["spec"]["containers"][0]["envFrom"] = json!([{"configMapRef": {"name": "settings"}}]);
        let settings =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": PLACE}});
        let objects = [
            settings,
            service(PLACE, "single"),
            needing,
            ingress("rival", "host", "taken.example"),
            definition(GROUP, "Widget"),
        ];
        admin.create(&list(objects.to_vec())).expect("objects");
        let api = Api::new(&cluster, "admin").expect("api");
        until("ready pods", || serving(&api, "single") == 1);
        make_members(&api);
        let templates = ["service-keeps-endpoints", "references-resolve", "unique-host", "quorum-kept"];
        let adapter = json!({"apiVersion": "suture.dev/v1alpha1", "kind": "ResourceAdapter", "metadata": {"name": "widgets"},
            "spec": {"group": GROUP, "kind": "Widget", "replicas": "self.spec.replicas", "quorum": "true",
                     "selector": "{'app': self.metadata.name}"}});
        let way = Balancer::start(vec![cluster.api_server_port()]).expect("a way");
        let server = Some(way.port());
        let mode = if replicas > 1 { "announced" } else { "single" };
        let policy = templates.map(invariant).to_vec();
        let plan = Plan { replicas, mode, adapters: vec![adapter], server, ..Plan::of(policy) };
        let suture = Suture::start(&cluster, &plan).expect("suture");
        suture.register(&admin).expect("register");
        until("the webhook", || matches!(ask(&api, &harmful()[0]), Outcome::Denied(_)));
        let head = ["fault", "requests", "admitted", "denied", "failed", "longest s", "outage s", "recovered s"];
        println!("\nfaults, replicas: {replicas}");
        Self { cluster, way, suture, table: Table::new(&head), wrong: Vec::new(), duels: AtomicUsize::new(0) }
    }

    /// Runs traffic, lets something fail in it, and goes on until all is well again.
    fn under(&mut self, name: &str, standstill: Duration, fault: impl FnOnce(&Self)) {
        let (samples, duels) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let done = AtomicBool::new(false);
        let (began, ended) = thread::scope(|scope| {
            // also when the fault itself fails
            let _ends = Ends(&done);
            let this: &Self = self;
            let (samples, done, duels) = (&samples, &done, &duels);
            scope.spawn(move || this.traffic(samples, done, harmless));
            scope.spawn(move || this.traffic(samples, done, harmful_turn));
            scope.spawn(move || this.fight(duels, done));
            thread::sleep(CALM);
            let began = Instant::now();
            fault(this);
            let ended = Instant::now();
            until("recovery", || {
                let samples = samples.lock().expect("samples");
                let well = |harmful: bool, outcome: fn(&Outcome) -> bool| {
                    samples
                        .iter()
                        .rev()
                        .find(|sample: &&Sample| sample.harmful == harmful)
                        .is_some_and(|last| last.began > ended && outcome(&last.outcome))
                };
                well(false, |outcome| *outcome == Outcome::Done)
                    && well(true, |outcome| matches!(outcome, Outcome::Denied(_)))
            });
            thread::sleep(CALM);
            (began, ended)
        });
        let samples = samples.into_inner().expect("samples");
        self.check(name, &samples, suture_timeout() + standstill + BESIDE_MAX);
        self.check_duels(name, duels.into_inner().expect("duels"));
        self.report(name, &samples, began, ended);
    }

    /// Nothing harmful was admitted, nothing was stuck.
    fn check(&mut self, name: &str, samples: &[Sample], limit: Duration) {
        for sample in samples {
            let took = sample.ended - sample.began;
            if sample.harmful && sample.outcome == Outcome::Done {
                self.wrong.push(format!("{name}: {} was admitted", sample.what));
            }
            if took > limit {
                self.wrong.push(format!("{name}: {} was stuck for {:.1} s", sample.what, took.as_secs_f64()));
            }
        }
    }

    /// Of each pair of endpoints one is left.
    fn check_duels(&mut self, name: &str, duels: Vec<Duel>) {
        let api = Api::new(&self.cluster, "admin").expect("api");
        let mut admitted = 0;
        for Duel { app, admitted: of_both } in duels {
            if serving(&api, &app) == 0 {
                self.wrong.push(format!("{name}: {app} has lost its last endpoint ({of_both} evictions admitted)"));
            }
            admitted += usize::from(of_both > 0);
            self.duels.fetch_add(1, Ordering::Relaxed);
        }
        assert!(admitted > 0, "{name}: no duel was decided");
    }

    fn report(&mut self, name: &str, samples: &[Sample], began: Instant, ended: Instant) {
        let of = |harmful: bool, wanted: fn(&Outcome) -> bool| {
            samples.iter().filter(|s| s.harmful == harmful && wanted(&s.outcome)).count()
        };
        let admitted = of(false, |outcome| *outcome == Outcome::Done);
        let denied = of(true, |outcome| matches!(outcome, Outcome::Denied(_)));
        // harmless requests that did not come through, for whatever reason
        let failures: Vec<&Sample> = samples.iter().filter(|s| !s.harmful && s.outcome != Outcome::Done).collect();
        let longest = samples.iter().map(|s| s.ended - s.began).max().unwrap_or_default();
        let seconds = |time: Duration| format!("{:.1}", time.as_secs_f64());
        let last = failures.iter().map(|s| s.ended).max();
        // until the first one that came through after the last one that did not
        let well = |after: Instant| {
            samples
                .iter()
                .filter(|s| !s.harmful && s.outcome == Outcome::Done && s.ended > after)
                .map(|s| s.ended)
                .min()
        };
        let well = last.and_then(well);
        let outage = well.map_or(Duration::ZERO, |well| well.saturating_duration_since(began));
        let recovered = well.map_or(Duration::ZERO, |well| well.saturating_duration_since(ended));
        self.table.row([
            name.to_owned(),
            samples.len().to_string(),
            admitted.to_string(),
            denied.to_string(),
            failures.len().to_string(),
            seconds(longest),
            seconds(outage),
            seconds(recovered),
        ]);
        let mut reasons: Vec<String> = failures
            .iter()
            .map(|s| match &s.outcome {
                Outcome::Denied(why) => format!("denied: {why}"),
                Outcome::Failed(why) => why.clone(),
                Outcome::Done => String::new(),
            })
            .map(|why| why.chars().take(160).collect::<String>().replace('\n', " "))
            .collect();
        reasons.sort();
        reasons.dedup();
        for reason in reasons.iter().take(3) {
            println!("    {name}: a harmless request failed: {reason}");
        }
    }

    fn end(self) {
        self.table.print();
        assert_eq!(self.wrong, Vec::<String>::new());
        println!("  duels: {}, each with an endpoint left", self.duels.load(Ordering::Relaxed));
    }

    fn traffic(&self, samples: &Mutex<Vec<Sample>>, done: &AtomicBool, next: fn(usize) -> (bool, Request)) {
        let api = Api::new(&self.cluster, "admin").expect("api");
        for turn in 0.. {
            if done.load(Ordering::Relaxed) {
                return;
            }
            let (harmful, request) = next(turn);
            let began = Instant::now();
            let outcome = ask(&api, &request);
            let mut what = String::new();
            _ = write!(what, "{} {}", request.0, request.1);
            // a creation that was answered late may have come through all the same
            let refused =
                matches!(&outcome, Outcome::Failed(why) if why.contains("already exists") || why.contains("not found"));
            if harmful || !refused {
                samples.lock().expect("samples").push(Sample { began, ended: Instant::now(), harmful, outcome, what });
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Makes pairs of endpoints, and has both of each evicted at once.
    fn fight(&self, duels: &Mutex<Vec<Duel>>, done: &AtomicBool) {
        let apis = [(); 2].map(|()| Api::new(&self.cluster, "admin").expect("api"));
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        while !done.load(Ordering::Relaxed) {
            let app = format!("duel-{}", NEXT.fetch_add(1, Ordering::Relaxed));
            let names = ["a", "b"].map(|side| format!("{app}-{side}"));
            let core = |kind: &str| format!("/api/v1/namespaces/{PLACE}/{kind}");
            let made = [
                ("POST", core("services"), service(PLACE, &app)),
                ("POST", core("pods"), pod(PLACE, &names[0], &app, "node-1")),
                ("POST", core("pods"), pod(PLACE, &names[1], &app, "node-2")),
            ];
            if made
                .iter()
                .any(|(method, path, body)| !apis[0].call(method, path, Some(body)).is_ok_and(|reply| reply.done()))
            {
                continue;
            }
            let ready = wait::until("a pair", Duration::from_secs(10), || {
                if done.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                let path = format!("{}?labelSelector=app%3D{app}", core("pods"));
                let list = apis[0].call("GET", &path, None).map_err(|error| error.to_string())?;
                let count =
                    list.body["items"].as_array().map_or(0, |pods| pods.iter().filter(|pod| serves(pod)).count());
                if count == 2 { Ok(true) } else { Err(format!("{count}")) }
            });
            if !matches!(ready, Ok(true)) {
                continue;
            }
            let calls = names
                .each_ref()
                .map(|name| ("POST", format!("{}/{name}/eviction", core("pods")), Some(eviction(PLACE, name))));
            let outcomes = thread::scope(|scope| {
                let sides: Vec<_> = apis
                    .iter()
                    .zip(&calls)
                    .map(|(api, call)| {
                        let cluster = &self.cluster;
                        _ = api;
                        scope.spawn(move || ask(&Api::new(cluster, "admin").expect("api"), call))
                    })
                    .collect();
                sides.into_iter().map(|side| side.join().expect("thread")).collect::<Vec<_>>()
            });
            let admitted = outcomes.iter().filter(|outcome| **outcome == Outcome::Done).count();
            duels.lock().expect("duels").push(Duel { app, admitted });
        }
    }

    /// Some watches are there again before the next cut, some are not.
    fn cut_connections(&self) {
        for _ in 0..CUTS {
            self.way.cut();
            thread::sleep(CUT_EVERY);
        }
    }

    /// Suture sleeps while something happens that it is not asked about; the API server forgets what it has not seen.
    fn cut_watches(&self) {
        let own = Api::new(&self.cluster, &suture::user().name).expect("api");
        let [left, gone] = ["cut-a", "cut-b"];
        let core = format!("/api/v1/namespaces/{PLACE}");
        own.create(&format!("{core}/services"), &service(PLACE, "cut")).expect("service");
        for (name, node) in [(left, "node-1"), (gone, "node-2")] {
            own.create(&format!("{core}/pods"), &pod(PLACE, name, "cut", node)).expect("pod");
        }
        until("ready pods", || serving(&own, "cut") == 2);
        let asleep = &self.suture.replicas[0].process;
        asleep.pause().expect("pause");
        own.call("DELETE", &format!("{core}/pods/{gone}?gracePeriodSeconds=0"), None).expect("deletion");
        self.cluster.kill(Part::ApiServer).expect("kill");
        self.compact();
        self.cluster.launch(Part::ApiServer).expect("launch");
        self.cluster.wait_ready().expect("ready");
        asleep.resume().expect("resume");
        let api = Api::new(&self.cluster, "admin").expect("api");
        // the other one was there when Suture fell asleep
        until("a verdict about what is left", || {
            let outcome = ask(&api, &("POST", format!("{core}/pods/{left}/eviction"), Some(eviction(PLACE, left))));
            assert_ne!(outcome, Outcome::Done, "the last endpoint was evicted");
            matches!(outcome, Outcome::Denied(why) if why.contains("would break") || why.contains("service-keeps-endpoints"))
        });
    }

    /// Has etcd forget all but the present, by its JSON gateway (etcd's `api/etcdserverpb/gw`).
    fn compact(&self) {
        let call = |path: &str, body: &Value| {
            let mut stream = TcpStream::connect(("127.0.0.1", self.cluster.etcd_port())).expect("etcd");
            let body = body.to_string();
            write!(
                stream,
                "POST {path} HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
            .expect("request");
            let mut text = String::new();
            stream.read_to_string(&mut text).expect("answer");
            let (_, answer) = text.split_once("\r\n\r\n").expect("body");
            serde_json::from_str::<Value>(answer).unwrap_or_default()
        };
        let status = call("/v3/maintenance/status", &json!({}));
        let revision = status["header"]["revision"].as_str().expect("revision").to_owned();
        let answer = call("/v3/kv/compaction", &json!({"revision": revision, "physical": true}));
        assert!(answer["header"].is_object(), "{answer}");
    }

    /// The definition goes with its object and comes back; what the adapter says about it counts again.
    fn redefine(&self) {
        let api = Api::new(&self.cluster, "admin").expect("api");
        let shrink = ("PATCH", widgets("/members"), Some(json!({"spec": {"replicas": 1}})));
        let refused = |outcome: Outcome| matches!(outcome, Outcome::Denied(why) if why.contains("quorum-kept"));
        until("a verdict by the adapter", || {
            let outcome = ask(&api, &shrink);
            assert_ne!(outcome, Outcome::Done, "a quorum was scaled to a minority");
            refused(outcome)
        });
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{GROUP}");
        until("the deletion of the definition", || ask(&api, &("DELETE", path.clone(), None)) == Outcome::Done);
        until("its end", || api.call("GET", &path, None).is_ok_and(|reply| reply.code == 404));
        let definition = definition(GROUP, "Widget");
        let all = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned();
        until("the definition", || ask(&api, &("POST", all.clone(), Some(definition.clone()))) == Outcome::Done);
        // the garbage collector takes what the object had
        until("the end of its pods", || serving(&api, "members") == 0);
        make_members(&api);
        until("a verdict by the adapter", || {
            let outcome = ask(&api, &shrink);
            assert_ne!(outcome, Outcome::Done, "a quorum was scaled to a minority");
            refused(outcome)
        });
        let grow = ("PATCH", widgets("/members"), Some(json!({"spec": {"replicas": 3, "more": true}})));
        until("an allowance by the adapter", || ask(&api, &grow) == Outcome::Done);
    }
}

/// Whether only some faults are tried.
fn short() -> bool {
    env::var("SUTURE_FAULTS").is_ok_and(|form| form == "short")
}

/// Ends the traffic.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

type Request = (&'static str, String, Option<Value>);

/// Requests that must not be admitted, ever.
fn harmful() -> [Request; 4] {
    let core = format!("/api/v1/namespaces/{PLACE}");
    [
        (
            "POST",
            format!("/apis/networking.k8s.io/v1/namespaces/{PLACE}/ingresses"),
            Some(ingress(PLACE, "stolen", "taken.example")),
        ),
        ("POST", format!("{core}/pods/single/eviction"), Some(eviction(PLACE, "single"))),
        ("DELETE", format!("{core}/configmaps/settings"), None),
        ("PATCH", format!("{core}/pods/single"), Some(json!({"metadata": {"labels": {"app": "other"}}}))),
    ]
}

fn harmful_turn(turn: usize) -> (bool, Request) {
    (true, harmful()[turn % 4].clone())
}

/// Requests that nothing is wrong with.
fn harmless(turn: usize) -> (bool, Request) {
    let all = format!("/api/v1/namespaces/{PLACE}/configmaps");
    let name = format!("harmless-{}", turn / 3);
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let request = match turn % 3 {
        0 => ("POST", all, Some(object)),
        1 => (
            "PATCH",
            format!("/api/v1/namespaces/{PLACE}/pods/single"),
            Some(json!({"metadata": {"annotations": {"turn": turn.to_string()}}})),
        ),
        _ => ("DELETE", format!("{all}/{name}"), None),
    };
    (false, request)
}

fn widgets(rest: &str) -> String {
    format!("/apis/{GROUP}/v1/namespaces/{PLACE}/widgets{rest}")
}

fn widget(replicas: u32) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Widget", "metadata": {"name": "members", "namespace": PLACE},
           "spec": {"replicas": replicas}})
}

/// Makes a custom resource and the pods that it runs, once its definition is served.
fn make_members(api: &Api) {
    until("the custom resource", || ask(api, &("POST", widgets(""), Some(widget(3)))) == Outcome::Done);
    let uid = api.get(&widgets("/members")).expect("widget")["metadata"]["uid"].clone();
    for number in 0..3 {
        let mut member = pod(PLACE, &format!("member-{number}"), "members", &format!("node-{number}"));
        member["metadata"]["ownerReferences"] = json!([{"apiVersion": format!("{GROUP}/v1"), "kind": "Widget",
            "name": "members", "uid": uid, "controller": true}]);
        let request = ("POST", format!("/api/v1/namespaces/{PLACE}/pods"), Some(member));
        until("a member", || ask(api, &request) == Outcome::Done);
    }
    until("ready members", || serving(api, "members") == 3);
}

fn ask(api: &Api, (method, path, body): &Request) -> Outcome {
    match api.call(method, path, body.as_ref()) {
        Ok(reply) if reply.done() => Outcome::Done,
        Ok(reply) if reply.message().contains("denied the request") => Outcome::Denied(reply.message().to_owned()),
        Ok(reply) => Outcome::Failed(format!("{} {}", reply.code, reply.message())),
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

/// How many pods of an app serve.
fn serving(api: &Api, app: &str) -> usize {
    let list = api.get(&format!("/api/v1/namespaces/{PLACE}/pods?labelSelector=app%3D{app}")).expect("pods");
    list["items"].as_array().map_or(0, |pods| pods.iter().filter(|pod| serves(pod)).count())
}

fn suture_timeout() -> Duration {
    Duration::from_secs(suture::TIMEOUT_SECS)
}

#[track_caller]
fn until(what: &str, mut attempt: impl FnMut() -> bool) {
    let reached = wait::until(what, RECOVERED_MAX, || if attempt() { Ok(()) } else { Err("not yet".to_owned()) });
    reached.expect("reached");
}
