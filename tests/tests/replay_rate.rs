//! How fast a log of ordinary traffic is replayed: printed, of `SUTURE_REPLAY_ENTRIES` entries [4000]; and that the writes of
//! such a log are judged at all.
//!
//! Ordinary is what API servers log of a cluster at work: most entries are reads, leases, events and reports of nodes and
//! controllers; one in twenty is a write that is judged.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may stop where it fails")]

use std::env;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use suture_checker::engine::{Engine, Settings};
use suture_model::kinds::Kind;
use suture_model::snapshot::Snapshot;
use suture_service::bench::cluster::{Inventory, Size};
use suture_service::bench::manifests::GROUP;
use suture_service::bench::measure::load;
use suture_service::bench::prng::Prng;
use suture_service::output::progress::Progress;
use suture_service::policy::Documents;
use suture_service::replay::Replay;
use suture_service::replay::log::{LogEntry, Text};
use suture_service::replay::report::{Found, Inputs, Left, Replayed};
use suture_service::replay::shard::Shard;
use suture_specs::spec::Profile;

const ENTRIES: &str = "SUTURE_REPLAY_ENTRIES";
const SMALL: usize = 4_000;

#[test]
#[expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures")]
fn ordinary_traffic_is_replayed() {
    let entries = env::var(ENTRIES).ok().map_or(SMALL, |text| text.parse().unwrap());
    let nodes = if entries > SMALL { 1_000 } else { 100 };
    let (snapshot, inventory, _) =
        load(Snapshot::default(), Size { nodes, pods: nodes * 30, seed: 1 }, &Progress::hidden());
    let lines = Traffic::new(&snapshot, &inventory).lines(entries);
    let bytes: usize = lines.iter().map(Vec::len).sum();
    let mut documents = Documents::default();
    documents.add_profile(Some(Profile::Baseline)).unwrap();
    let policy = Arc::new(documents.compile().unwrap());
    let engine = Engine::new(policy.invariants.clone(), Settings::default()).unwrap();
    let report = Replayed::begun(Inputs::default(), Shard::WHOLE);
    let mut replay = Replay::new(policy, engine, snapshot, None, Shard::WHOLE, report);
    let began = Instant::now();
    for (number, line) in lines.into_iter().enumerate() {
        replay.take(LogEntry { place: format!("log:{number}"), text: Text::Line(line) });
    }
    let report = std::mem::take(replay.settled());
    let took = began.elapsed();
    let rate = entries as u128 * 1_000 / took.as_millis().max(1);
    println!(
        "replay: {entries} entries ({} MiB) on {} pods in {:.1} s: {rate} entries/s; {} writes judged, {} denied, {} undecided",
        bytes >> 20,
        nodes * 30,
        took.as_secs_f64(),
        report.judged(),
        report.outcomes.denied,
        report.outcomes.undecided
    );
    let refused = |found: &&Found| found.refused;
    for Found { entry, request, broken, .. } in report.findings.iter().filter(refused) {
        println!("  entry {entry} is refused: {request}, by {broken:?}");
    }
    for (left, count) in &report.left {
        println!("  {count} {}", left.words());
    }
    assert_eq!(report.not_judged.len(), 0, "{:?}", report.not_judged);
    assert!(report.judged() * 40 > entries as u64, "{} writes were judged", report.judged());
    assert!(report.left[&Left::Read] > report.judged());
    assert!(report.outcomes.allowed * 10 > report.judged() * 9, "everyday work is let through: {:?}", report.outcomes);
}

/// Writes a log.
struct Traffic<'t> {
    inventory: &'t Inventory,
    pods: Vec<Value>,
    deployments: Vec<Value>,
    nodes: Vec<Value>,
    maps: Vec<Value>,
    customs: Vec<Value>,
    prng: Prng,
    version: u64,
    micros: u64,
    lines: Vec<Vec<u8>>,
}

impl<'t> Traffic<'t> {
    fn new(snapshot: &Snapshot, inventory: &'t Inventory) -> Self {
        let of = |group: &str, kind: &str| -> Vec<Value> {
            let found = snapshot.list(&Kind::new(group, kind), None);
            found.iter().map(|object| serde_json::to_value(object.to_val()).unwrap()).collect()
        };
        let customs = of(GROUP, "App");
        let (pods, nodes, maps) = (of("", "Pod"), of("", "Node"), of("", "ConfigMap"));
        let deployments = of("apps", "Deployment");
        Self {
            inventory,
            pods,
            deployments,
            nodes,
            maps,
            customs,
            prng: Prng::new(7),
            version: 10_000_000,
            micros: 0,
            lines: Vec::new(),
        }
    }

    fn lines(mut self, count: usize) -> Vec<Vec<u8>> {
        while self.lines.len() < count {
            match self.prng.below(100) {
                0..45 => self.read(),
                45..63 => self.lease(),
                63..68 => self.report("nodes", ""),
                68..77 => self.happened(),
                77..86 => self.report("pods", ""),
                86..90 => self.report("deployments", "apps"),
                90..93 => self.conflict(),
                93..96 => self.renewed(),
                _ => self.work(),
            }
        }
        self.lines.truncate(count);
        self.lines
    }

    fn event(&mut self, user: &str, groups: &[&str], verb: &str, reference: Value, more: Value) {
        self.micros += 1_000;
        let (seconds, micros) = (self.micros / 1_000_000, self.micros % 1_000_000);
        let time =
            format!("2026-11-01T{:02}:{:02}:{:02}.{micros:06}Z", seconds / 3600, seconds / 60 % 60, seconds % 60);
        let id = format!("{:016x}-0000-4000-8000-{:012x}", self.prng.bits(), self.lines.len());
        let groups = [groups, &["system:authenticated"]].concat();
        let mut event = json!({"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": id,
            "stage": "ResponseComplete", "requestURI": "/api", "verb": verb,
            "user": {"username": user, "groups": groups}, "sourceIPs": ["10.0.0.1"],
            "userAgent": "client/v1.35 (linux/amd64)", "objectRef": reference, "responseStatus": {"metadata": {}, "code": 200},
            "requestReceivedTimestamp": time, "stageTimestamp": time,
            "annotations": {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": "RBAC: allowed by ClusterRoleBinding"}});
        for (field, value) in more.as_object().unwrap() {
            event[field] = value.clone();
        }
        self.lines.push(event.to_string().into_bytes());
    }

    /// The next version of one of these objects.
    fn next(&mut self, of: &str, change: impl FnOnce(&mut Value, u64)) -> Value {
        let all = match of {
            "pods" => &mut self.pods,
            "deployments" => &mut self.deployments,
            "nodes" => &mut self.nodes,
            "configmaps" => &mut self.maps,
            _ => &mut self.customs,
        };
        let at = self.prng.below(all.len());
        self.version += 1;
        let object = &mut all[at];
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        change(object, self.version);
        object.clone()
    }

    fn reference(resource: &str, group: &str, object: &Value, subresource: &str) -> Value {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        json!({"resource": resource, "apiGroup": group, "apiVersion": "v1", "namespace": text("namespace"), "name": text("name"),
            "uid": text("uid"), "subresource": subresource})
    }

    fn read(&mut self) {
        let at = self.prng.below(self.pods.len());
        let pod = self.pods[at].clone();
        let verb = ["get", "list", "watch"][self.prng.below(3)];
        let body = if verb == "get" { json!({"responseObject": pod}) } else { json!({}) };
        self.event("system:serviceaccount:monitoring:agent", &[], verb, Self::reference("pods", "", &pod, ""), body);
    }

    fn lease(&mut self) {
        let node = self.prng.pick(&self.inventory.nodes).unwrap().clone();
        let lease = json!({"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": node, "namespace": "kube-node-lease"},
            "spec": {"renewTime": "2026-11-01T12:00:00.000000Z"}});
        let reference = json!({"resource": "leases", "apiGroup": "coordination.k8s.io", "namespace": "kube-node-lease", "name": node});
        let bodies = json!({"requestObject": lease, "responseObject": lease});
        self.event(&format!("system:node:{node}"), &["system:nodes"], "update", reference, bodies);
    }

    fn happened(&mut self) {
        let event = json!({"kind": "Event", "apiVersion": "v1", "reason": "Pulled", "message": "Container image is already present"});
        let reference = json!({"resource": "events", "namespace": "load-000", "name": "e"});
        self.event(
            "system:node:node-00000",
            &["system:nodes"],
            "create",
            reference,
            json!({"requestObject": event, "responseObject": event}),
        );
    }

    fn conflict(&mut self) {
        let at = self.prng.below(self.deployments.len());
        let reference = Self::reference("deployments", "apps", &self.deployments[at], "");
        self.event(
            "system:serviceaccount:ops:deployer",
            &[],
            "update",
            reference,
            json!({"responseStatus": {"code": 409}}),
        );
    }

    /// A node or a controller reports a status.
    fn report(&mut self, resource: &str, group: &str) {
        let object = self.next(resource, |object, version| object["status"]["observed"] = json!(version));
        let (user, groups): (&str, &[&str]) = match resource {
            "deployments" => ("system:serviceaccount:kube-system:deployment-controller", &["system:serviceaccounts"]),
            _ => ("system:node:node-00001", &["system:nodes"]),
        };
        let reference = Self::reference(resource, group, &object, "status");
        let body = json!({"requestObject": {"status": object["status"]}, "responseObject": object});
        self.event(user, groups, "patch", reference, body);
    }

    /// A controller puts a new pod in place of one.
    fn renewed(&mut self) {
        let at = self.prng.below(self.pods.len());
        let controller = "system:serviceaccount:kube-system:replicaset-controller";
        let old = self.pods[at].clone();
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Success"});
        let reference = Self::reference("pods", "", &old, "");
        self.event(
            "system:node:node-00001",
            &["system:nodes"],
            "delete",
            reference.clone(),
            json!({"responseObject": status}),
        );
        self.version += 1;
        let new = &mut self.pods[at];
        new["metadata"]["name"] = json!(format!(
            "{}-{}",
            old["metadata"]["name"].as_str().unwrap().split("-r").next().unwrap(),
            format!("r{}", self.version)
        ));
        new["metadata"]["uid"] = json!(format!("uid-{}", self.version));
        new["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let new = new.clone();
        self.event(
            controller,
            &[],
            "create",
            json!({"resource": "pods", "namespace": new["metadata"]["namespace"]}),
            json!({"responseObject": new}),
        );
    }

    /// An operator, a pipeline or an autoscaler writes.
    fn work(&mut self) {
        match self.prng.below(4) {
            0 => {
                let map = self.next("configmaps", |map, version| {
                    map["metadata"]["labels"] = json!({"edition": version.to_string()})
                });
                let reference = Self::reference("configmaps", "", &map, "");
                self.event(
                    "system:serviceaccount:ops:deployer",
                    &[],
                    "patch",
                    reference,
                    json!({"responseObject": map}),
                );
            }
            1 => {
                let app = self.next("apps", |app, version| app["status"] = json!({"observed": version}));
                let group = app["apiVersion"].as_str().unwrap().split('/').next().unwrap().to_owned();
                let reference = Self::reference("apps", &group, &app, "status");
                self.event(
                    "system:serviceaccount:ops:operator",
                    &[],
                    "update",
                    reference,
                    json!({"responseObject": app}),
                );
            }
            2 => {
                let deployment = self.next("deployments", |deployment, version| {
                    deployment["metadata"]["annotations"] = json!({"edition": version.to_string()});
                });
                let reference = Self::reference("deployments", "apps", &deployment, "");
                self.event(
                    "system:serviceaccount:ops:deployer",
                    &[],
                    "patch",
                    reference,
                    json!({"responseObject": deployment}),
                );
            }
            _ => {
                let deployment = self.next("deployments", |deployment, version| {
                    let replicas = deployment["spec"]["replicas"].as_i64().unwrap();
                    deployment["spec"]["replicas"] =
                        json!(if version % 2 == 0 { replicas + 1 } else { (replicas - 1).max(2) });
                });
                let scale = json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": deployment["metadata"], "spec": {"replicas": deployment["spec"]["replicas"]}});
                let reference = Self::reference("deployments", "apps", &deployment, "scale");
                let user = "system:serviceaccount:kube-system:horizontal-pod-autoscaler";
                self.event(user, &[], "update", reference, json!({"requestObject": scale, "responseObject": scale}));
            }
        }
    }
}
