//! A cluster that Suture judges: how kubectl asks it for something, and how to wait for what controllers do.

use std::time::Duration;

use serde_json::{Value, json};
use suture_e2e::kubectl::Output;
use suture_e2e::objects::{list, place, serves};
use suture_e2e::table::Table;
use suture_e2e::{Cluster, Kubectl, Nodes, Options, Plan, Suture, suture, wait};

/// Far more than any controller takes, so that only what never comes about fails.
const SETTLED_MAX: Duration = Duration::from_secs(120);

/// A cluster with Suture in front, and the table of what was asked.
pub(super) struct Bench {
    pub(super) cluster: Cluster,
    suture: Option<Suture>,
    pub(super) admin: Kubectl,
    pub(super) table: Table,
}

/// What kubectl is run with.
pub(super) enum Ask<'a> {
    /// Only arguments.
    Run(&'a [&'a str]),
    /// With something to read.
    Read(&'a [&'a str], String),
}

impl Bench {
    pub(super) fn start() -> Self {
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
    pub(super) fn denied(&mut self, invariant: &str, object: &str, what: &str, ask: Ask) {
        let (output, took) = self.ask(&ask);
        let said = format!("{}{}", output.stdout, output.stderr);
        assert!(!output.success, "{invariant}: {what} is to be denied: {said}");
        assert!(said.contains("denied the request"), "{invariant}: {what}: {said}");
        assert!(said.contains(invariant) && said.contains(object), "{invariant}, {object}: {what}: {said}");
        self.note(invariant, what, "denied", took);
    }

    /// Asks for what breaks nothing.
    #[track_caller]
    pub(super) fn allowed(&mut self, invariant: &str, what: &str, ask: Ask) {
        let (output, took) = self.ask(&ask);
        assert!(output.success, "{invariant}: {what} is to be allowed: {}{}", output.stdout, output.stderr);
        self.note(invariant, what, "allowed", took);
    }

    fn note(&mut self, invariant: &str, what: &str, verdict: &str, took: Duration) {
        self.table.row([invariant.to_owned(), what.to_owned(), verdict.to_owned(), took.as_millis().to_string()]);
    }

    /// Waits until so many pods of an app serve.
    pub(super) fn serving(&self, place: &str, app: &str, count: usize) {
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
    pub(super) fn make(&self, places: &[&str], objects: Vec<Value>) {
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
    pub(super) fn judge(&mut self, plan: Plan) {
        let plan = Plan { by_itself: true, ..plan };
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

    pub(super) fn counted(&self, series: &str) -> f64 {
        self.suture.as_ref().map_or(0.0, |suture| suture.counted(series))
    }

    pub(super) fn pod_of(&self, place: &str, app: &str) -> String {
        let selector = format!("--selector=app={app}");
        let list = self.admin.json(&["get", "pods", "--namespace", place, &selector]).expect("pods");
        let pods = list["items"].as_array().expect("items");
        let serving = pods.iter().find(|pod| serves(pod)).expect("a pod that serves");
        serving["metadata"]["name"].as_str().expect("name").to_owned()
    }
}

/// Waits until something is as expected.
#[track_caller]
pub(super) fn settled<T: PartialEq + std::fmt::Debug>(what: &str, actual: impl Fn() -> T, expected: &T) {
    let reached = wait::until(what, SETTLED_MAX, || {
        let actual = actual();
        if actual == *expected { Ok(()) } else { Err(format!("{actual:?} instead of {expected:?}")) }
    });
    reached.expect("settled");
}
