//! Two requests that are harmless alone and harmful together, sent at the same moment: never are both admitted.
//!
//! `SUTURE_RACE_PAIRS` pairs \[500\] against one replica, and as many against two behind a balancer; then as many
//! drains at once as `SUTURE_RACE_DRAINS` says \[50\], two of them at the last endpoints of each Service.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test may stop where it fails")]

use std::env;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use suture_e2e::api::Reply;
use suture_e2e::objects::{claim, eviction, ingress, invariant, list, place, pod, pod_spec, serves, service, workload};
use suture_e2e::table::Table;
use suture_e2e::{Api, Cluster, Kubectl, Nodes, Options, Plan, Suture, suture, wait};

/// Far more than any controller takes, so that only what never comes about fails.
const SETTLED_MAX: Duration = Duration::from_secs(240);
/// How long a drain tries: it looks again after 5 s (`kubectl/pkg/drain/drain.go`, `evictPods`).
const DRAIN_MAX: &str = "--timeout=12s";
/// Nodes that the pods of pairs are on.
const NODES: usize = 5;

/// What the two requests are, and what is left when both come through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Conflict {
    /// Both of two endpoints are evicted.
    Evictions,
    /// Both of two endpoints are deleted.
    Deletions,
    /// Of two Deployments with an endpoint each, both are scaled to none.
    Scales,
    /// One of two endpoints loses its label, the other one is evicted.
    LabelAndEviction,
    /// A host is claimed in two namespaces.
    Hosts,
    /// A claim is deleted, a pod that mounts it is created.
    ClaimAndPod,
    /// A Secret is deleted, a Deployment that needs it is created.
    SecretAndDeployment,
}

const CONFLICTS: [Conflict; 7] = [
    Conflict::Evictions,
    Conflict::Deletions,
    Conflict::Scales,
    Conflict::LabelAndEviction,
    Conflict::Hosts,
    Conflict::ClaimAndPod,
    Conflict::SecretAndDeployment,
];

type Call = (&'static str, String, Option<Value>);

/// A pair of requests of one kind on objects of its own.
struct Pair {
    conflict: Conflict,
    namespace: String,
    app: String,
}

impl Pair {
    fn new(namespace: &str, number: usize) -> Self {
        let conflict = CONFLICTS[number % CONFLICTS.len()];
        Self { conflict, namespace: namespace.to_owned(), app: format!("pair-{number}") }
    }

    /// What must be there before.
    fn objects(&self) -> Vec<Value> {
        let Self { namespace, app, .. } = self;
        let bare = |side: &str, node: usize| pod(namespace, &format!("{app}-{side}"), app, &format!("node-{node}"));
        match self.conflict {
            Conflict::Evictions | Conflict::Deletions | Conflict::LabelAndEviction => {
                vec![service(namespace, app), bare("a", 0), bare("b", 1)]
            }
            Conflict::Scales => {
                let half = |side: &str| {
                    let name = format!("{app}-{side}");
                    let mut half = workload("Deployment", namespace, &name, 1, &pod_spec());
                    half["spec"]["template"]["metadata"]["labels"] = json!({"app": name, "pair": app});
                    half
                };
                let mut both = service(namespace, app);
                both["spec"]["selector"] = json!({"pair": app});
                vec![both, half("a"), half("b")]
            }
            Conflict::Hosts => Vec::new(),
            Conflict::ClaimAndPod => vec![claim(namespace, app)],
            Conflict::SecretAndDeployment => {
                vec![json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": app, "namespace": namespace}})]
            }
        }
    }

    /// How many endpoints it starts with.
    fn endpoints(&self) -> usize {
        match self.conflict {
            Conflict::Hosts | Conflict::ClaimAndPod | Conflict::SecretAndDeployment => 0,
            _ => 2,
        }
    }

    fn calls(&self) -> [Call; 2] {
        let Self { namespace, app, .. } = self;
        let core = format!("/api/v1/namespaces/{namespace}");
        let apps = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
        let pod_path = |side: &str| format!("{core}/pods/{app}-{side}");
        let evict = |side: &str| -> Call {
            let body = eviction(namespace, &format!("{app}-{side}"));
            ("POST", format!("{}/eviction", pod_path(side)), Some(body))
        };
        match self.conflict {
            Conflict::Evictions => [evict("a"), evict("b")],
            Conflict::Deletions => [("DELETE", pod_path("a"), None), ("DELETE", pod_path("b"), None)],
            Conflict::Scales => ["a", "b"].map(|side| -> Call {
                ("PATCH", format!("{apps}/{app}-{side}/scale"), Some(json!({"spec": {"replicas": 0}})))
            }),
            Conflict::LabelAndEviction => {
                let other = json!({"metadata": {"labels": {"app": "other"}}});
                [("PATCH", pod_path("a"), Some(other)), evict("b")]
            }
            Conflict::Hosts => ["left", "right"].map(|side| -> Call {
                let place = format!("{namespace}-{side}");
                let object = ingress(&place, app, &format!("{app}.{namespace}.example"));
                ("POST", format!("/apis/networking.k8s.io/v1/namespaces/{place}/ingresses"), Some(object))
            }),
            Conflict::ClaimAndPod => {
                let mut user = pod(namespace, app, "user", "node-2");
                user["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": app}}]);
                let deletion = ("DELETE", format!("{core}/persistentvolumeclaims/{app}"), None);
                [deletion, ("POST", format!("{core}/pods"), Some(user))]
            }
            Conflict::SecretAndDeployment => {
                let mut spec = pod_spec();
                spec["containers"][0]["envFrom"] = json!([{"secretRef": {"name": app}}]);
                let object = workload("Deployment", namespace, app, 1, &spec);
                [("DELETE", format!("{core}/secrets/{app}"), None), ("POST", apps, Some(object))]
            }
        }
    }

    fn pods(&self, api: &Api) -> Vec<Value> {
        let Self { namespace, app, .. } = self;
        let label = if self.conflict == Conflict::Scales { "pair" } else { "app" };
        let list =
            api.get(&format!("/api/v1/namespaces/{namespace}/pods?labelSelector={label}%3D{app}")).expect("pods");
        list["items"].as_array().expect("items").clone()
    }

    /// What the cluster shows that must never be, whatever was answered.
    fn damage(&self, api: &Api) -> Option<String> {
        let Self { namespace, app, conflict } = self;
        let exists = |path: String| api.call("GET", &path, None).expect("answer").done();
        let harm = match conflict {
            Conflict::Hosts => ["left", "right"].iter().all(|side| {
                exists(format!("/apis/networking.k8s.io/v1/namespaces/{namespace}-{side}/ingresses/{app}"))
            }),
            Conflict::ClaimAndPod => {
                let path = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{app}");
                let claim = api.call("GET", &path, None).expect("answer");
                let leaves = !claim.done() || claim.body.pointer("/metadata/deletionTimestamp").is_some();
                leaves && exists(format!("/api/v1/namespaces/{namespace}/pods/{app}"))
            }
            Conflict::SecretAndDeployment => {
                !exists(format!("/api/v1/namespaces/{namespace}/secrets/{app}"))
                    && exists(format!("/apis/apps/v1/namespaces/{namespace}/deployments/{app}"))
            }
            _ => !self.pods(api).iter().any(serves),
        };
        harm.then(|| format!("{conflict:?} {namespace}/{app}"))
    }
}

/// How the pairs of one kind ended.
#[derive(Default, Clone, Copy)]
struct Count {
    pairs: usize,
    both: usize,
    one: usize,
    neither: usize,
}

#[test]
fn conflicting_requests_are_never_both_admitted() {
    let pairs = number("SUTURE_RACE_PAIRS", 500);
    let drains = number("SUTURE_RACE_DRAINS", 50);
    let options = Options { users: vec![suture::user()], nodes: Nodes::new(NODES.max(drains)), ..Options::default() };
    let cluster = Cluster::start(&options).expect("cluster");
    let (mut both, mut all) = (0, 0);
    for replicas in [1, 2] {
        let mode = if replicas > 1 { "announced" } else { "single" };
        let plan = Plan { replicas, mode, ..policy() };
        let suture = Suture::start(&cluster, &plan).expect("suture");
        println!("\n{pairs} pairs of conflicting requests, replicas: {replicas}");
        let (admitted, damage) = race(&cluster, &suture, &format!("pairs-{replicas}"), pairs);
        both += admitted;
        all += pairs;
        assert_eq!(damage, Vec::<String>::new());
        for replica in &suture.replicas {
            let [allowed, denied] = ["allowed", "denied"]
                .map(|outcome| replica.counted(&format!("suture_decisions_total{{outcome=\"{outcome}\"}}")));
            println!("  decided by {}: {allowed} allowed, {denied} denied", replica.process.name());
            assert!(allowed + denied > 0.0, "each replica has decided");
        }
        println!("\n{drains} drains at once, replicas: {replicas}");
        let (admitted, services) = drain(&cluster, &suture, &format!("drains-{replicas}"), drains);
        both += admitted;
        all += services;
        suture.unregister(&cluster.kubectl("admin").expect("admin")).expect("unregister");
    }
    println!("\nboth admitted: {both} of {all}");
    assert_eq!(both, 0);
}

fn policy() -> Plan {
    let templates = ["service-keeps-endpoints", "unique-host", "volume-in-use-kept", "references-resolve"];
    Plan::of(templates.map(invariant).to_vec())
}

/// Sends pairs, one after the other; how many were both admitted, and what should never be.
fn race(cluster: &Cluster, suture: &Suture, place: &str, count: usize) -> (usize, Vec<String>) {
    let admin = cluster.kubectl("admin").expect("admin");
    let pairs: Vec<Pair> = (0..count).map(|number| Pair::new(place, number)).collect();
    let objects: Vec<Value> = pairs.iter().flat_map(Pair::objects).collect();
    let places = [place.to_owned(), format!("{place}-left"), format!("{place}-right")];
    let endpoints = pairs.iter().map(Pair::endpoints).sum();
    settle(cluster, &places, &objects, endpoints);
    suture.register(&admin).expect("register");
    let api = Api::new(cluster, "admin").expect("api");
    judged(&api);
    let calls: Vec<[Call; 2]> = pairs.iter().map(Pair::calls).collect();
    let start = Barrier::new(2);
    let (replies, took) = wait::timed(|| {
        thread::scope(|scope| {
            let sides = [0, 1].map(|side| {
                let (start, calls) = (&start, &calls);
                scope.spawn(move || send(cluster, start, calls, side))
            });
            sides.map(|side| side.join().expect("thread"))
        })
    });
    let mut counts = [Count::default(); CONFLICTS.len()];
    let mut total = Count::default();
    for (number, pair) in pairs.iter().enumerate() {
        let answers = [&replies[0][number], &replies[1][number]];
        for answer in answers.iter().filter(|answer| !answer.done()) {
            let denied = answer.message().contains("denied the request");
            assert!(denied, "{:?}: {} {}", pair.conflict, answer.code, answer.body);
        }
        let admitted = answers.iter().filter(|answer| answer.done()).count();
        for count in [&mut counts[pair.conflict as usize], &mut total] {
            count.pairs += 1;
            match admitted {
                2 => count.both += 1,
                1 => count.one += 1,
                _ => count.neither += 1,
            }
        }
    }
    let mut table = Table::new(&["conflict", "pairs", "both admitted", "one", "neither"]);
    let rows = CONFLICTS.iter().map(|conflict| format!("{conflict:?}")).zip(counts);
    for (name, count) in rows.chain([("all".to_owned(), total)]) {
        let Count { pairs, both, one, neither } = count;
        table.row([name, pairs.to_string(), both.to_string(), one.to_string(), neither.to_string()]);
    }
    table.print();
    println!("  {:.1} ms for each pair", took.as_secs_f64() * 1e3 / count.max(1) as f64);
    let damage = pairs.iter().filter_map(|pair| pair.damage(&api)).collect();
    (total.both, damage)
}

fn send(cluster: &Cluster, start: &Barrier, calls: &[[Call; 2]], side: usize) -> Vec<Reply> {
    let api = Api::new(cluster, "admin").expect("api");
    let sent = calls.iter().map(|pair| {
        let (method, path, body) = &pair[side];
        start.wait();
        api.call(method, path, body.as_ref()).expect("an answer")
    });
    sent.collect()
}

/// Drains nodes at once, two of them with the last endpoints of each Service; how many Services lost both, of how many.
fn drain(cluster: &Cluster, suture: &Suture, place: &str, count: usize) -> (usize, usize) {
    let admin = cluster.kubectl("admin").expect("admin");
    suture.unregister(&admin).expect("unregister");
    // names of their own: what is left of other drains is theirs to keep
    let services: Vec<String> = (0..count / 2).map(|number| format!("{place}-{number}")).collect();
    let objects: Vec<Value> = services
        .iter()
        .enumerate()
        .flat_map(|(number, app)| {
            let bare = |side: usize| pod(place, &format!("{app}-{side}"), app, &format!("node-{}", 2 * number + side));
            [service(place, app), bare(0), bare(1)]
        })
        .collect();
    settle(cluster, &[place.to_owned()], &objects, 2 * services.len());
    suture.register(&admin).expect("register");
    let api = Api::new(cluster, "admin").expect("api");
    judged(&api);
    let selector = format!("--pod-selector=app in ({})", services.join(","));
    let outputs = thread::scope(|scope| {
        let drains: Vec<_> = (0..2 * services.len())
            .map(|number| {
                let (admin, selector) = (&admin, &selector);
                let node = format!("node-{number}");
                scope.spawn(move || admin.run(&["drain", &node, "--force", DRAIN_MAX, selector]).expect("kubectl"))
            })
            .collect();
        drains.into_iter().map(|drain| drain.join().expect("thread")).collect::<Vec<_>>()
    });
    let (mut both, mut one, mut neither) = (0, 0, 0);
    for (number, app) in services.iter().enumerate() {
        let done = outputs[2 * number..2 * number + 2].iter().filter(|output| output.success).count();
        match done {
            2 => both += 1,
            1 => one += 1,
            _ => {
                neither += 1;
                // allowed, and worth knowing
                outputs[2 * number..2 * number + 2]
                    .iter()
                    .for_each(|output| println!("  {app}: {}", output.stderr.trim()));
            }
        }
        let pods = api.get(&format!("/api/v1/namespaces/{place}/pods?labelSelector=app%3D{app}")).expect("pods");
        assert!(pods["items"].as_array().expect("items").iter().any(serves), "{app} has lost its last endpoint");
    }
    let mut table = Table::new(&["services", "both drained", "one", "neither"]);
    table.row([services.len().to_string(), both.to_string(), one.to_string(), neither.to_string()]);
    table.print();
    let failed = outputs.iter().filter(|output| !output.success);
    for output in failed.clone() {
        // by the invariant, since nobody had the time to judge, or while its pod was going
        let told = ["denied the request", "deadline exceeded", "timeout reached"];
        assert!(told.iter().any(|text| output.stderr.contains(text)), "{}{}", output.stdout, output.stderr);
    }
    for number in 0..2 * services.len() {
        admin.text(&["uncordon", &format!("node-{number}")]).expect("uncordon");
    }
    (both, services.len())
}

/// Creates objects and waits until all their endpoints are ready.
fn settle(cluster: &Cluster, places: &[String], objects: &[Value], endpoints: usize) {
    let admin = cluster.kubectl("admin").expect("admin");
    let probed = ["default", "kube-public"].map(str::to_owned);
    let all = places.iter().chain(&probed).flat_map(|name| place(name));
    admin.apply(&list(all.collect())).expect("namespaces");
    for place in places {
        wait::until("service account", SETTLED_MAX, || account(&admin, place)).expect("service account");
    }
    if !objects.is_empty() {
        admin.create(&list(objects.to_vec())).expect("objects");
    }
    let api = Api::new(cluster, "admin").expect("api");
    let path = format!("/api/v1/namespaces/{}/pods", places[0]);
    let ready = wait::until("ready pods", SETTLED_MAX, || {
        let list = api.get(&path).map_err(|error| error.to_string())?;
        let ready = list["items"].as_array().map_or(0, |pods| pods.iter().filter(|pod| serves(pod)).count());
        if ready >= endpoints { Ok(()) } else { Err(format!("{ready} of {endpoints}")) }
    });
    ready.expect("endpoints");
}

fn account(admin: &Kubectl, place: &str) -> Result<(), String> {
    let got = admin.text(&["get", "serviceaccount", "default", "--namespace", place]);
    got.map(drop).map_err(|error| error.to_string())
}

/// Waits until the API server calls the webhook: it reads its configuration from a watch.
fn judged(api: &Api) {
    let place = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
    // the same host twice in two namespaces
    let probes =
        [("default", "probe"), ("kube-public", "probe")].map(|(place, name)| ingress(place, name, "probe.example"));
    api.call("POST", place, Some(&probes[0])).expect("answer");
    let other = "/apis/networking.k8s.io/v1/namespaces/kube-public/ingresses?dryRun=All";
    let refused = wait::until("webhook", SETTLED_MAX, || {
        let reply = api.call("POST", other, Some(&probes[1])).map_err(|error| error.to_string())?;
        if reply.message().contains("unique-host") {
            Ok(())
        } else {
            Err(format!("{} {}", reply.code, reply.message()))
        }
    });
    refused.expect("the webhook is called");
}

fn number(name: &str, default: usize) -> usize {
    env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}
