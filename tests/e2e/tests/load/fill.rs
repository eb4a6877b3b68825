//! The cluster before any client comes: what every cluster runs for itself, apps over the clients' namespaces, and the hub,
//! whose Service, ConfigMap and host every tenth app shares.

use std::thread;

use serde_json::{Value, json};
use suture_e2e::objects::{self, list, pod_spec, service, workload};
use suture_e2e::{Api, Cluster, Kubectl};

use crate::manifests::{self, HUB, SHARED, budget, cron, host, policy, ready, set_of};
use crate::step::{collection, object};

/// Pods of each app's Deployment.
pub const PODS: usize = 5;
/// Pods of each app's StatefulSet.
const MEMBERS: usize = 2;
/// Objects of each app: Deployment, ReplicaSet, two Services, ConfigMap, Secret, Ingress, PodDisruptionBudget,
/// NetworkPolicy, CronJob, StatefulSet, its claims, and all pods.
const OF_APP: usize = 11 + PODS + 2 * MEMBERS;
/// Objects of each app that has a part in the hub: Deployment, ReplicaSet, Ingress, Pod.
const OF_MEMBER: usize = 4;
/// One app in so many has a part in the hub.
const MEMBER_PERIOD: usize = 10;
/// Pods on each node: fewer than it takes, so that there is room for those to come.
const ON_NODE: usize = 80;
/// Fewer nodes would leave an app's pods nowhere to go.
const NODES_MIN: usize = 20;
/// Threads that make the objects.
const MAKERS: usize = 32;

/// The namespace of what the cluster runs for itself.
const SYSTEM: &str = "kube-system";

/// What all hosts end in.
pub const SUFFIX: &str = ".apps.example";

/// How large a cluster is.
#[derive(Debug, Clone, Copy)]
pub struct World {
    /// Apps that are there from the start.
    pub apps: usize,
    /// Namespaces that they are in, one for each client.
    pub places: usize,
    pub nodes: usize,
}

impl World {
    /// About so many objects, for so many clients.
    pub fn new(objects: usize, clients: usize) -> Self {
        let apps = (objects * MEMBER_PERIOD / (OF_APP * MEMBER_PERIOD + OF_MEMBER)).max(1);
        let nodes = (apps * (PODS + MEMBERS + 1) / ON_NODE).max(NODES_MIN);
        Self { apps, places: clients, nodes }
    }

    /// Objects that are made, without namespaces, nodes and the hub's own.
    pub fn objects(&self) -> usize {
        self.apps * OF_APP + self.apps.div_ceil(MEMBER_PERIOD) * OF_MEMBER
    }
}

/// The namespace of an app, or of a client.
pub fn place(world: &World, number: usize) -> String {
    format!("load-{}", number % world.places)
}

/// The name of an app.
pub fn app(number: usize) -> String {
    format!("web-{number}")
}

/// Makes all objects, with all pods ready.
pub fn fill(cluster: &Cluster, admin: &Kubectl, world: &World) {
    let places: Vec<String> = (0..world.places).map(|number| place(world, number)).chain([HUB.to_owned()]).collect();
    let all = places.iter().map(String::as_str).chain(["default"]).flat_map(objects::place);
    admin.apply(&list(all.collect())).expect("namespaces");
    // their controllers are down: admission wants the accounts there, and each pod's token comes with the certificate
    let accounts = places.iter().flat_map(|place| {
        let metadata = |name: &str| json!({"name": name, "namespace": place});
        [
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata("default")}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("kube-root-ca.crt"),
                   "data": {"ca.crt": ""}}),
        ]
    });
    admin.apply(&list(accounts.collect())).expect("accounts");
    let maker = Maker::new(cluster, world);
    maker.system();
    maker.hub();
    thread::scope(|scope| {
        for maker in 0..MAKERS {
            scope.spawn(move || {
                let make = Maker::new(cluster, world);
                (maker..world.apps).step_by(MAKERS).for_each(|number| {
                    make.app(number);
                    if number % MEMBER_PERIOD == 0 {
                        make.member(number);
                    }
                });
            });
        }
    });
}

/// One who makes objects.
struct Maker<'a> {
    api: Api,
    world: &'a World,
}

impl<'a> Maker<'a> {
    fn new(cluster: &Cluster, world: &'a World) -> Self {
        Self { api: Api::new(cluster, "admin").expect("api"), world }
    }

    fn create(&self, kind: &str, place: &str, object: &Value) -> Value {
        self.api.create(&collection(kind, place), object).expect(kind)
    }

    fn status(&self, kind: &str, place: &str, name: &str, status: &Value) {
        let path = format!("{}/status", object(kind, place, name));
        let reply = self.api.call("PATCH", &path, Some(&json!({"status": status}))).expect("status");
        assert!(reply.done(), "{}", reply.message());
    }

    /// A workload, and if it is a Deployment its ReplicaSet, and so many pods that are ready.
    fn workload(&self, place: &str, workload: &Value, pods: usize, number: usize) {
        let kind = workload["kind"].as_str().unwrap_or_default();
        let name = workload["metadata"]["name"].as_str().unwrap_or_default();
        let counts =
            json!({"replicas": pods, "readyReplicas": pods, "availableReplicas": pods, "observedGeneration": 1});
        let mut made = self.create(kind, place, workload);
        let mut template = workload["spec"]["template"].clone();
        let mut of_workload = counts.clone();
        of_workload["updatedReplicas"] = json!(pods);
        if kind == "DaemonSet" {
            of_workload = json!({"currentNumberScheduled": pods, "desiredNumberScheduled": pods, "numberReady": pods,
                "numberAvailable": pods, "updatedNumberScheduled": pods, "numberMisscheduled": 0, "observedGeneration": 1});
        }
        self.status(kind, place, name, &of_workload);
        let claimed = workload["spec"]["volumeClaimTemplates"].is_array();
        if kind == "Deployment" {
            let mut set = set_of(workload);
            set["metadata"]["ownerReferences"] = owner(&made);
            template = set["spec"]["template"].clone();
            made = self.create("ReplicaSet", place, &set);
            self.status("ReplicaSet", place, name, &counts);
        }
        for index in 0..pods {
            let pod = format!("{name}-{index}");
            let mut spec = template["spec"].clone();
            // one of a DaemonSet on each node
            let apart = if kind == "DaemonSet" { 1 } else { 3 };
            spec["nodeName"] = json!(format!("node-{}", (number + index * apart) % self.world.nodes));
            if claimed {
                let claim = format!("data-{pod}");
                self.create("PersistentVolumeClaim", place, &objects::claim(place, &claim));
                spec["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]);
            }
            let labels = &template["metadata"]["labels"];
            let object = json!({"apiVersion": "v1", "kind": "Pod", "spec": spec,
                "metadata": {"name": pod, "labels": labels, "ownerReferences": owner(&made)}});
            self.create("Pod", place, &object);
            self.status("Pod", place, &pod, &ready());
        }
    }

    fn app(&self, number: usize) {
        let (place, app) = (place(self.world, number), app(number));
        let (place, app) = (place.as_str(), app.as_str());
        let store = format!("store-{number}");
        let config =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": app}, "data": {"key": "value"}});
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": app}, "stringData": {"key": "value"}});
        let mut governing = service(place, &store);
        governing["spec"]["clusterIP"] = json!("None");
        let all = [
            ("Service", service(place, app)),
            ("Service", governing),
            ("ConfigMap", config),
            ("Secret", secret),
            ("Ingress", host(place, app, &format!("{app}{SUFFIX}"), "/", app)),
            ("PodDisruptionBudget", budget(app)),
            ("NetworkPolicy", policy(app)),
            ("CronJob", cron(app)),
        ];
        for (kind, object) in all {
            self.create(kind, place, &object);
        }
        let mut spec = pod_spec();
        spec["containers"][0]["envFrom"] = json!([{"configMapRef": {"name": app}}, {"secretRef": {"name": app}}]);
        self.workload(place, &workload("Deployment", place, app, PODS as u32, &spec), PODS, number);
        let mut set = manifests::store(place, &store);
        set["spec"]["replicas"] = json!(MEMBERS);
        self.workload(place, &set, MEMBERS, number + 1);
    }

    /// An app's part in the hub.
    fn member(&self, number: usize) {
        let name = format!("member-{number}");
        let ingress = host(HUB, &name, &format!("www{SUFFIX}"), &format!("/{name}"), SHARED);
        self.create("Ingress", HUB, &ingress);
        self.workload(HUB, &manifests::member(&name), 1, number);
    }

    /// What the cluster runs for itself: pods above all others, on each node and on two.
    fn system(&self) {
        let spec = |class: &str| {
            let mut spec = pod_spec();
            spec["priorityClassName"] = json!(class);
            spec
        };
        let of_nodes = ["proxy", "network", "storage"];
        for (number, name) in of_nodes.into_iter().enumerate() {
            let mut set = workload("DaemonSet", SYSTEM, name, 0, &spec("system-node-critical"));
            set["spec"]["template"]["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
            self.workload(SYSTEM, &set, self.world.nodes, number);
        }
        for (number, name) in ["dns", "metrics", "autoscaler", "ingress"].into_iter().enumerate() {
            let deployment = workload("Deployment", SYSTEM, name, 2, &spec("system-cluster-critical"));
            self.workload(SYSTEM, &deployment, 2, number);
        }
    }

    /// What all parts in the hub share.
    fn hub(&self) {
        let config =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": SHARED}, "data": {"key": "value"}});
        self.create("ConfigMap", HUB, &config);
        let mut shared = service(HUB, SHARED);
        shared["spec"]["selector"] = json!({"part-of": SHARED});
        self.create("Service", HUB, &shared);
        let mut first = manifests::member(SHARED);
        first["spec"]["replicas"] = json!(PODS);
        self.workload(HUB, &first, PODS, 0);
    }
}

/// The reference of what a controller makes to what made it.
pub fn owner(object: &Value) -> Value {
    json!([{"apiVersion": object["apiVersion"], "kind": object["kind"], "controller": true,
        "blockOwnerDeletion": true, "name": object["metadata"]["name"], "uid": object["metadata"]["uid"]}])
}
