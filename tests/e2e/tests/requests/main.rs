//! Requests as people send them, with kubectl, to a real API server that asks Suture with all shipped templates: for each
//! template one that is denied and one that is allowed; what controllers do goes on to its end.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test may stop where it fails")]

use std::time::Duration;

use serde_json::{Value, json};
use suture_e2e::kubectl::Output;
use suture_e2e::objects::{
    apart, bound_claim, definition, eviction, ingress, list, place, pod, pod_spec, serves, service, workload,
};
use suture_e2e::table::Table;
use suture_e2e::{Api, Cluster, Kubectl, Nodes, Options, Plan, Suture, suture, wait};

/// Far more than any controller takes, so that only what never comes about fails.
const SETTLED_MAX: Duration = Duration::from_secs(120);

/// A cluster with Suture in front, and the table of what was asked.
struct Bench {
    cluster: Cluster,
    suture: Option<Suture>,
    admin: Kubectl,
    table: Table,
}

/// What kubectl is run with.
enum Ask<'a> {
    /// Only arguments.
    Run(&'a [&'a str]),
    /// With something to read.
    Read(&'a [&'a str], String),
}

impl Bench {
    fn start() -> Self {
        let options = Options { users: vec![suture::user()], nodes: Nodes::new(5), ..Options::default() };
        let cluster = Cluster::start(&options).expect("cluster");
        let admin = cluster.kubectl("admin").expect("admin");
        Self { cluster, suture: None, admin, table: Table::new(&["template", "request", "verdict", "ms"]) }
    }

    fn ask(&self, ask: &Ask) -> (Output, Duration) {
        let (output, took) = wait::timed(|| match ask {
            Ask::Run(arguments) => self.admin.run(arguments),
            Ask::Read(arguments, text) => self.admin.run_with(arguments, text),
        });
        (output.expect("kubectl"), took)
    }

    /// Asks for what breaks an invariant; the refusal names the invariant, and the object.
    #[track_caller]
    fn denied(&mut self, invariant: &str, object: &str, what: &str, ask: Ask) {
        let (output, took) = self.ask(&ask);
        let said = format!("{}{}", output.stdout, output.stderr);
        assert!(!output.success, "{invariant}: {what} is to be denied: {said}");
        assert!(said.contains("denied the request"), "{invariant}: {what}: {said}");
        assert!(said.contains(invariant) && said.contains(object), "{invariant}, {object}: {what}: {said}");
        self.note(invariant, what, "denied", took);
    }

    /// Asks for what breaks nothing.
    #[track_caller]
    fn allowed(&mut self, invariant: &str, what: &str, ask: Ask) {
        let (output, took) = self.ask(&ask);
        assert!(output.success, "{invariant}: {what} is to be allowed: {}{}", output.stdout, output.stderr);
        self.note(invariant, what, "allowed", took);
    }

    fn note(&mut self, invariant: &str, what: &str, verdict: &str, took: Duration) {
        self.table.row([invariant.to_owned(), what.to_owned(), verdict.to_owned(), took.as_millis().to_string()]);
    }

    /// Waits until so many pods of an app serve.
    fn serving(&self, place: &str, app: &str, count: usize) {
        let selector = format!("--selector=app={app}");
        settled(
            &format!("pods of {place}/{app}"),
            || {
                let list = self.admin.json(&["get", "pods", "--namespace", place, &selector]).expect("pods");
                list["items"].as_array().map_or(0, |pods| pods.iter().filter(|pod| serves(pod)).count())
            },
            &count,
        );
    }

    /// Makes what a part of the suite is about, before Suture judges.
    fn make(&self, places: &[&str], objects: Vec<Value>) {
        self.admin.apply(&list(places.iter().flat_map(|name| place(name)).collect())).expect("namespaces");
        for place in places {
            settled(
                "service account",
                || {
                    self.admin
                        .run(&["get", "serviceaccount", "default", "--namespace", place])
                        .expect("kubectl")
                        .success
                },
                &true,
            );
        }
        self.admin.create(&list(objects)).expect("objects");
    }

    /// Starts Suture, which keeps its certificates and the webhook's configuration by itself.
    fn judge(&mut self) {
        let plan = Plan { by_itself: true, ..Plan::shipped() };
        self.suture = Some(Suture::start(&self.cluster, &plan).expect("suture"));
        let probe = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "probe", "namespace": "shop"},
            "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}}});
        let arguments = ["create", "--dry-run=server", "--filename=-"];
        settled(
            "the webhook",
            || !self.admin.run_with(&arguments, &probe.to_string()).expect("kubectl").success,
            &true,
        );
    }
}

#[test]
fn every_template_denies_and_allows_what_kubectl_asks() {
    let mut bench = Bench::start();
    let places = ["shop", "rival", "data", "quorum", "lone", "empty", "doomed"];
    bench.make(&places, objects());
    bench.serving("shop", "web", 3);
    bench.serving("shop", "single", 1);
    bench.serving("quorum", "kv", 3);
    bench.serving("lone", "duo", 2);
    settled(
        "bound claims",
        || {
            let claims = bench.admin.json(&["get", "pvc", "--namespace=data"]).expect("claims");
            claims["items"].as_array().map_or(0, |all| all.iter().filter(|c| c["status"]["phase"] == "Bound").count())
        },
        &4,
    );
    bench.judge();
    workloads(&mut bench);
    objects_and_references(&mut bench);
    whole_sets(&mut bench);
    bench.table.print();
    let counted = |outcome: &str| bench.counted(&format!("suture_decisions_total{{outcome=\"{outcome}\"}}"));
    println!(
        "  decided: {} allowed, {} denied, {} undecided",
        counted("allowed"),
        counted("denied"),
        counted("undecided")
    );
    println!("15 templates: each denied and allowed as it should");
}

/// What the requests are about.
fn objects() -> Vec<Value> {
    let mut web = workload("Deployment", "shop", "web", 3, &apart("web"));
    web["spec"]["template"]["spec"]["containers"][0]["envFrom"] = json!([{"configMapRef": {"name": "settings"}}]);
    web["spec"]["strategy"] = json!({"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}});
    let mut kv = workload("StatefulSet", "quorum", "kv", 3, &apart("kv"));
    kv["metadata"]["labels"] = json!({"suture.dev/quorum": "true"});
    let mut mounting = pod("data", "reader", "reader", "node-0");
    mounting["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "mounted"}}]);
    let policy = json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": "to-web", "namespace": "shop"},
        "spec": {"podSelector": {"matchLabels": {"app": "web"}}, "ingress": [{}]}});
    let config = |place: &str, name: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": place, "labels": {"made": "for-test"}}, "data": {"key": "value"}})
    };
    let mut all = vec![
        service("shop", "web"),
        web,
        config("shop", "settings"),
        config("shop", "unused"),
        policy,
        service("shop", "single"),
        pod("shop", "single", "single", "node-1"),
        service("shop", "idle"),
        ingress("shop", "shop", "shop.example"),
        service("quorum", "kv"),
        kv,
        service("lone", "duo"),
        pod("lone", "duo-0", "duo", "node-2"),
        pod("lone", "duo-1", "duo", "node-3"),
        mounting,
        config("empty", "nothing"),
        definition("e2e.example", "Widget"),
        definition("e2e.example", "Gadget"),
        service("doomed", "web"),
        workload("Deployment", "doomed", "web", 1, &pod_spec()),
    ];
    for (name, reclaim) in [("deleted", "Delete"), ("retained", "Retain"), ("mounted", "Retain"), ("free", "Retain")] {
        all.extend(bound_claim("data", name, reclaim));
    }
    all
}

/// Requests on pods and what keeps them.
fn workloads(bench: &mut Bench) {
    let raw = |pod: &str| format!("--raw=/api/v1/namespaces/{pod}/eviction");
    let (single, web) = (raw("shop/pods/single"), bench.pod_of("shop", "web"));
    let of_web = raw(&format!("shop/pods/{web}"));
    let create = |path| vec!["create", path, "--filename=-"];
    let body = |place: &str, pod: &str| eviction(place, pod).to_string();
    bench.denied(
        "service-keeps-endpoints",
        "single",
        "evict the last endpoint",
        Ask::Read(&create(&single), body("shop", "single")),
    );
    bench.denied(
        "service-keeps-endpoints",
        "single",
        "delete it, dry run",
        Ask::Run(&["delete", "pod", "single", "--namespace=shop", "--dry-run=server"]),
    );
    let unready = r#"{"status":{"conditions":[{"type":"Ready","status":"False"}]}}"#;
    bench.denied(
        "service-keeps-endpoints",
        "single",
        "write its /status: not ready",
        Ask::Run(&[
            "patch",
            "pod",
            "single",
            "--namespace=shop",
            "--subresource=status",
            "--type=strategic",
            "--patch",
            unready,
        ]),
    );
    bench.allowed("service-keeps-endpoints", "evict one of three", Ask::Read(&create(&of_web), body("shop", &web)));
    bench.serving("shop", "web", 3);

    bench.denied(
        "service-survives-fault",
        "duo",
        "delete one of two, which are on two nodes",
        Ask::Run(&["delete", "pod", "duo-0", "--namespace=lone"]),
    );
    bench.allowed(
        "service-survives-fault",
        "the same of three on three nodes",
        Ask::Run(&["delete", "pod", &bench.pod_of("shop", "web"), "--namespace=shop"]),
    );
    bench.serving("shop", "web", 3);

    bench.denied(
        "quorum-kept",
        "kv",
        "scale a quorum of 3 to 1",
        Ask::Run(&["scale", "statefulset", "kv", "--namespace=quorum", "--replicas=1"]),
    );
    bench.allowed(
        "quorum-kept",
        "scale it to 5",
        Ask::Run(&["scale", "statefulset", "kv", "--namespace=quorum", "--replicas=5"]),
    );
    bench.serving("quorum", "kv", 5);

    let quorum = |app: &str, spec: &Value| {
        let mut set = workload("StatefulSet", "quorum", app, 3, spec);
        set["metadata"]["labels"] = json!({"suture.dev/quorum": "true"});
        set.to_string()
    };
    let apply = ["apply", "--server-side", "--filename=-"];
    bench.denied(
        "quorum-survives-fault",
        "crowded",
        "server-side apply of a quorum that may share a node",
        Ask::Read(&apply, quorum("crowded", &pod_spec())),
    );
    bench.allowed(
        "quorum-survives-fault",
        "server-side apply of one that is kept apart",
        Ask::Read(&apply, quorum("spread", &apart("spread"))),
    );

    let budget = |max: u32| {
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"maxUnavailable": max, "selector": {"matchLabels": {"app": "web"}}}})
        .to_string()
    };
    bench.denied(
        "pdb-allows-disruption",
        "web",
        "create a budget of none",
        Ask::Read(&["create", "--filename=-"], budget(0)),
    );
    bench.allowed("pdb-allows-disruption", "create a budget of one", Ask::Read(&["create", "--filename=-"], budget(1)));
}

impl Bench {
    fn counted(&self, series: &str) -> f64 {
        self.suture.as_ref().map_or(0.0, |suture| suture.counted(series))
    }

    fn pod_of(&self, place: &str, app: &str) -> String {
        let selector = format!("--selector=app={app}");
        let list = self.admin.json(&["get", "pods", "--namespace", place, &selector]).expect("pods");
        let pods = list["items"].as_array().expect("items");
        let serving = pods.iter().find(|pod| serves(pod)).expect("a pod that serves");
        serving["metadata"]["name"].as_str().expect("name").to_owned()
    }
}

/// Requests on single objects, and on what refers to them.
fn objects_and_references(bench: &mut Bench) {
    bench.denied(
        "data-recoverable",
        "deleted",
        "delete a claim whose volume goes with it",
        Ask::Run(&["delete", "pvc", "deleted", "--namespace=data"]),
    );
    bench.allowed(
        "data-recoverable",
        "delete one whose volume is retained",
        Ask::Run(&["delete", "pvc", "retained", "--namespace=data", "--wait=false"]),
    );
    bench.denied(
        "volume-in-use-kept",
        "mounted",
        "delete a claim that a pod mounts",
        Ask::Run(&["delete", "pvc", "mounted", "--namespace=data", "--wait=false"]),
    );
    bench.allowed(
        "volume-in-use-kept",
        "delete one that nobody mounts",
        Ask::Run(&["delete", "pvc", "free", "--namespace=data", "--wait=false"]),
    );

    let set = bench.admin.json(&["get", "replicasets", "--namespace=shop", "--selector=app=web"]).expect("sets");
    let set = set["items"][0]["metadata"]["name"].as_str().expect("name").to_owned();
    bench.denied(
        "live-child-kept",
        &set,
        "delete the ReplicaSet of a live Deployment",
        Ask::Run(&["delete", "replicaset", &set, "--namespace=shop"]),
    );
    let alone = workload("ReplicaSet", "empty", "alone", 0, &pod_spec());
    bench.admin.create(&alone.to_string()).expect("a ReplicaSet");
    bench.allowed(
        "live-child-kept",
        "delete a ReplicaSet that nobody owns",
        Ask::Run(&["delete", "replicaset", "alone", "--namespace=empty"]),
    );

    let owner = bench.admin.json(&["get", "deployment", "web", "--namespace=shop"]).expect("deployment");
    let owned = |uid: &Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned", "namespace": "shop",
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": uid}]}})
        .to_string()
    };
    bench.denied(
        "owner-references-resolve",
        "owned",
        "create an object that names an owner of another life",
        Ask::Read(&["create", "--filename=-"], owned(&json!("11111111-2222-3333-4444-555555555555"))),
    );
    bench.allowed(
        "owner-references-resolve",
        "create one that names the living owner",
        Ask::Read(&["create", "--filename=-"], owned(&owner["metadata"]["uid"])),
    );

    bench.denied(
        "references-resolve",
        "settings",
        "delete a ConfigMap that pods need",
        Ask::Run(&["delete", "configmap", "settings", "--namespace=shop"]),
    );
    bench.allowed(
        "references-resolve",
        "delete one that nobody needs",
        Ask::Run(&["delete", "configmap", "unused", "--namespace=shop"]),
    );
    let collection = "--raw=/api/v1/namespaces/shop/configmaps?labelSelector=made%3Dfor-test";
    bench.denied("references-resolve", "settings", "deletecollection of ConfigMaps", Ask::Run(&["delete", collection]));
    let collection = "--raw=/api/v1/namespaces/empty/configmaps?labelSelector=made%3Dfor-test";
    bench.allowed("references-resolve", "deletecollection where nobody needs any", Ask::Run(&["delete", collection]));

    let select = |app: &str| json!({"spec": {"podSelector": {"matchLabels": {"app": app}}}}).to_string();
    let patch = |with: &'static str| ["patch", "networkpolicy", "to-web", "--namespace=shop", "--type=merge", with];
    let (typo, same) = (format!("--patch={}", select("wep")), format!("--patch={}", select("single")));
    let (typo, same): (&'static str, &'static str) = (typo.leak(), same.leak());
    bench.denied("selector-keeps-matches", "to-web", "select pods that there are none of", Ask::Run(&patch(typo)));
    bench.allowed("selector-keeps-matches", "select other pods", Ask::Run(&patch(same)));

    bench.denied(
        "serving-service-kept",
        "single",
        "delete a Service with endpoints",
        Ask::Run(&["delete", "service", "single", "--namespace=shop"]),
    );
    bench.allowed(
        "serving-service-kept",
        "delete one without",
        Ask::Run(&["delete", "service", "idle", "--namespace=shop"]),
    );

    bench.denied(
        "unique-host",
        "stolen",
        "claim the host of another namespace",
        Ask::Read(&["create", "--filename=-"], ingress("rival", "stolen", "shop.example").to_string()),
    );
    bench.allowed(
        "unique-host",
        "claim one that is free",
        Ask::Read(&["create", "--filename=-"], ingress("rival", "own", "rival.example").to_string()),
    );
}

/// Requests that take much along.
fn whole_sets(bench: &mut Bench) {
    let widget =
        json!({"apiVersion": "e2e.example/v1", "kind": "Widget", "metadata": {"name": "one", "namespace": "shop"}});
    settled(
        "the definition",
        || bench.admin.run_with(&["apply", "--filename=-"], &widget.to_string()).expect("kubectl").success,
        &true,
    );
    settled(
        "the watch of the definition's objects",
        || bench.counted("suture_objects{kind=\"Widget\"}").to_string(),
        &"1".to_owned(),
    );
    bench.denied(
        "crd-without-instances",
        "widgets.e2e.example",
        "delete a definition in use",
        Ask::Run(&["delete", "crd", "widgets.e2e.example"]),
    );
    bench.allowed(
        "crd-without-instances",
        "delete one without objects",
        Ask::Run(&["delete", "crd", "gadgets.e2e.example"]),
    );

    bench.denied(
        "serving-namespace-kept",
        "shop",
        "delete a namespace that serves",
        Ask::Run(&["delete", "namespace", "shop"]),
    );
    bench.allowed(
        "serving-namespace-kept",
        "delete one that does not",
        Ask::Run(&["delete", "namespace", "empty", "--timeout=60s"]),
    );
}

#[test]
fn a_release_of_fifty_objects_and_the_work_of_controllers_go_through() {
    let mut bench = Bench::start();
    let mut web = workload("Deployment", "shop", "web", 4, &apart("web"));
    web["spec"]["strategy"] = json!({"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}});
    let [volume, claim] = bound_claim("doomed", "data", "Retain");
    let mut spec = pod_spec();
    spec["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    let storing = workload("Deployment", "doomed", "web", 2, &spec);
    bench.make(
        &["shop", "rival", "release", "doomed"],
        vec![
            service("shop", "web"),
            web,
            ingress("rival", "rival", "rival.example"), // nothing sends it requests
            workload("Deployment", "release", "tool", 1, &pod_spec()),
            volume,
            claim,
            storing,
        ],
    );
    bench.serving("shop", "web", 4);
    bench.serving("doomed", "web", 2);
    bench.judge();

    // as Helm sends a release: one request after the other, as fast as they are answered
    let (_, took) = wait::timed(|| bench.admin.create(&list(release("one"))).expect("the release"));
    println!("a release of {} objects in {:.0} ms", release("one").len(), took.as_secs_f64() * 1e3);
    let api = Api::new(&bench.cluster, "admin").expect("api");
    let (answers, took) = wait::timed(|| {
        release("two")
            .iter()
            .map(|object| api.call("POST", &collection(object), Some(object)).expect("answer").code)
            .collect::<Vec<u16>>()
    });
    assert_eq!(answers, vec![201; answers.len()]);
    println!("another one over one connection in {:.0} ms", took.as_secs_f64() * 1e3);
    let mut bad = release("three");
    bad.push(ingress("release", "stolen", "rival.example"));
    let output = bench.admin.run_with(&["create", "--filename=-"], &list(bad)).expect("kubectl");
    assert!(!output.success && output.stderr.matches("denied the request").count() == 1, "{}", output.stderr);
    assert!(output.stderr.contains("unique-host"), "{}", output.stderr);

    dry_runs_leave_nothing(&bench);

    let ended = |what: &str, arguments: &[&str]| {
        let (_, took) = wait::timed(|| bench.admin.text(arguments).expect(what));
        println!("{what}: ended after {:.1} s", took.as_secs_f64());
    };
    ended("rollout restart", &["rollout", "restart", "deployment", "web", "--namespace=shop"]);
    ended("rollout", &["rollout", "status", "deployment", "web", "--namespace=shop", "--timeout=120s"]);
    ended("scale-down", &["scale", "deployment", "web", "--namespace=shop", "--replicas=3"]);
    bench.serving("shop", "web", 3);
    settled(
        "pods",
        || {
            let pods = bench.admin.json(&["get", "pods", "--namespace=shop", "--selector=app=web"]).expect("pods");
            pods["items"].as_array().map_or(0, Vec::len)
        },
        &3,
    );
    let pod = bench.pod_of("shop", "web");
    let node = bench.admin.json(&["get", "pod", &pod, "--namespace=shop"]).expect("pod");
    let node = node["spec"]["nodeName"].as_str().expect("node").to_owned();
    ended(
        "drain",
        &[
            "drain",
            &node,
            "--ignore-daemonsets",
            "--delete-emptydir-data",
            "--timeout=120s",
            "--pod-selector=app=web",
            "--force",
        ],
    );
    bench.serving("shop", "web", 3);
    let doomed = bench.admin.json(&["get", "namespace", "doomed"]).expect("namespace");
    let confirmed = format!("suture.dev/confirm-delete={}", doomed["metadata"]["uid"].as_str().expect("uid"));
    ended("confirmation", &["annotate", "namespace", "doomed", &confirmed]);
    ended("namespace deletion", &["delete", "namespace", "doomed", "--timeout=120s"]);
    ended("garbage collection", &["delete", "deployment", "tool", "--namespace=release"]);
    settled(
        "what the Deployment owned",
        || {
            let left = bench
                .admin
                .json(&["get", "replicasets,pods", "--namespace=release", "--selector=app=tool"])
                .expect("left");
            left["items"].as_array().map_or(0, Vec::len)
        },
        &0,
    );
    println!("controllers, scheduler and garbage collector keep working");
}

/// A dry run is judged and not remembered: what it asked for is not in flight for the next request.
fn dry_runs_leave_nothing(bench: &Bench) {
    let scale = |replicas: &'static str, dry: &'static [&'static str]| {
        let arguments = ["scale", "deployment", "web", "--namespace=shop", replicas];
        bench.admin.text(&[&arguments, dry].concat()).expect("scale");
    };
    let in_flight = || bench.counted("suture_ledger_entries");
    settled("an empty ledger", || in_flight().to_string(), &"0".to_owned());
    for _ in 0..3 {
        scale("--replicas=3", &["--dry-run=server"]);
    }
    assert!(in_flight() < 1.0, "dry runs are not remembered");
    let web = bench.admin.json(&["get", "deployment", "web", "--namespace=shop"]).expect("web");
    assert_eq!(web["spec"]["replicas"], 4);
}

/// Fifty objects, as a chart has them.
fn release(name: &str) -> Vec<Value> {
    let place = "release";
    let named = |kind: &str, version: &str, number: usize| {
        json!({"apiVersion": version, "kind": kind,
        "metadata": {"name": format!("{name}-{number}"), "namespace": place}})
    };
    let mut all = Vec::new();
    for number in 0..10 {
        let app = format!("{name}-{number}");
        all.push(named("ServiceAccount", "v1", number));
        all.push(named("ConfigMap", "v1", number));
        let mut spec = pod_spec();
        spec["serviceAccountName"] = json!(app);
        spec["containers"][0]["envFrom"] = json!([{"configMapRef": {"name": app}}]);
        all.push(service(place, &app));
        all.push(workload("Deployment", place, &app, 1, &spec));
        all.push(ingress(place, &app, &format!("{app}.example")));
    }
    all
}

/// Where an object of a release is created.
fn collection(object: &Value) -> String {
    let version = object["apiVersion"].as_str().expect("version");
    let (root, plural) = match object["kind"].as_str().expect("kind") {
        "Ingress" => ("/apis/", "ingresses".to_owned()),
        kind => (if version == "v1" { "/api/" } else { "/apis/" }, format!("{}s", kind.to_lowercase())),
    };
    format!("{root}{version}/namespaces/release/{plural}")
}

/// Waits until something is as expected.
#[track_caller]
fn settled<T: PartialEq + std::fmt::Debug>(what: &str, actual: impl Fn() -> T, expected: &T) {
    let reached = wait::until(what, SETTLED_MAX, || {
        let actual = actual();
        if actual == *expected { Ok(()) } else { Err(format!("{actual:?} instead of {expected:?}")) }
    });
    reached.expect("settled");
}
