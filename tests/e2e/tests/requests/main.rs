//! Requests as people send them, with kubectl, to a real API server that asks Suture with all shipped templates: for each
//! template one that is denied and one that is allowed; what controllers do goes on to its end.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test may stop where it fails")]

use std::time::Duration;

use serde_json::{Value, json};
use suture_e2e::kubectl::Output;
use suture_e2e::objects::{apart, bound_claim, ingress, list, place, pod_spec, serves, service, workload};
use suture_e2e::table::Table;
use suture_e2e::{Api, Cluster, Kubectl, Nodes, Options, Plan, Suture, suture, wait};

mod release;
mod templates;

use release::{collection, controllers_finish, dry_runs_leave_nothing, release};

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

#[test]
fn every_template_denies_and_allows_what_kubectl_asks() {
    let mut bench = Bench::start();
    let places = ["shop", "rival", "data", "quorum", "lone", "empty", "doomed"];
    bench.make(&places, templates::objects());
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
    templates::endpoints(&mut bench);
    templates::quorums_and_budgets(&mut bench);
    templates::data_and_owners(&mut bench);
    templates::references_and_hosts(&mut bench);
    templates::whole_sets(&mut bench);
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

    controllers_finish(&bench);
    println!("controllers, scheduler and garbage collector keep working");
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
