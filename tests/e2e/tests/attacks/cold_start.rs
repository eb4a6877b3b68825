//! Every machine of the cluster is gone at once. It comes up with other nodes and without Suture, whose pod is the last one:
//! nothing of that waits for Suture, though nothing else passes without it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use suture_e2e::installed::Installed;
use suture_e2e::objects::{list, namespace, pod, pod_spec, serves, service, workload};
use suture_e2e::suture::{NAMESPACE, run};
use suture_e2e::{Api, Cluster, Part};

use super::{launched, prepared, seconds, table, until};

/// A machine that is gone answers nobody; the API server waits one second for Suture where a request is essential.
const ESSENTIAL_MAX: Duration = Duration::from_millis(1_900);
const CLOUD: &str = "system:serviceaccount:kube-system:cloud-controller-manager";
const NETWORK: &str = "system:serviceaccount:kube-system:cni";
const VOLUMES: &str = "system:serviceaccount:kube-system:csi-provisioner";
const AUTOSCALER: &str = "system:serviceaccount:kube-system:horizontal-pod-autoscaler";
/// What says that a node is not set up by its cloud yet (`k8s.io/cloud-provider/api/well_known_taints.go`).
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

struct Scene {
    cluster: Cluster,
    suture: Installed,
}

#[test]
fn a_cluster_comes_up_with_suture_last() {
    let scene = Scene::start();
    scene.go_down();
    let began = Instant::now();
    scene.cluster.launch(Part::Etcd).expect("etcd");
    scene.cluster.launch(Part::ApiServer).expect("API server");
    scene.cluster.wait_ready().expect("ready");
    for part in [Part::ControllerManager, Part::Scheduler, Part::Kwok] {
        scene.cluster.launch(part).expect("launch");
    }
    scene.refused("what no cluster needs to come up");
    scene.nodes_come();
    for app in [("kube-system", "coredns"), (NAMESPACE, "suture")] {
        until(&format!("pods of {app:?}"), || scene.serving(app.0, app.1));
    }
    scene.system_works();
    scene.refused("what no cluster needs to come up");
    let up = began.elapsed();
    // the last of all
    scene.suture.process.launch().expect("launch");
    scene.suture.wait_ready().expect("ready");
    let decides = until("a decision", || scene.decides());
    let mut table = table();
    let cold = "the whole cluster is gone, Suture comes last (Fail)";
    table.row([cold.to_owned(), "nothing".to_owned(), "all came up without Suture".to_owned(), seconds(up)]);
    // and one that neither answers nor refuses a connection
    scene.suture.process.pause().expect("pause");
    let began = Instant::now();
    scene.admitted("a write of DNS", "admin", "PATCH", DNS, &json!({"metadata": {"annotations": {"a": "2"}}}));
    let longest = began.elapsed();
    scene.suture.process.resume().expect("resume");
    let resumed = until("a decision", || scene.decides());
    let saw = format!("a write of DNS took {} s", seconds(longest));
    table.row(["Suture's machine hangs (Fail)".to_owned(), "nothing".to_owned(), saw, seconds(resumed)]);
    table.print();
    println!("  Suture decides {} s after it was ready", seconds(decides));
    assert!(longest < ESSENTIAL_MAX, "a write of DNS waited for {longest:?}");
}

const DNS: &str = "/apis/apps/v1/namespaces/kube-system/deployments/coredns";

impl Scene {
    fn start() -> Self {
        let (cluster, admin) = prepared(2);
        admin.create(&list(vec![namespace("shop")])).expect("namespace");
        let settings =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "shop"}});
        let zone = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "coredns", "namespace": "kube-system"},
            "data": {"Corefile": ". {}"}});
        let mut needing = pod_spec();
        needing["containers"][0]["envFrom"] = json!([{"configMapRef": {"name": "settings"}}]);
        let objects = vec![
            settings,
            zone,
            service("kube-system", "coredns"),
            workload("Deployment", "kube-system", "coredns", 2, &pod_spec()),
            workload("Deployment", NAMESPACE, "suture", 1, &pod_spec()),
            workload("Deployment", "shop", "web", 2, &needing),
        ];
        admin.create(&list(objects)).expect("objects");
        let suture = launched(&cluster, &["--profile=strict"]);
        let scene = Self { cluster, suture };
        for (ns, app) in [("kube-system", "coredns"), (NAMESPACE, "suture"), ("shop", "web")] {
            until(app, || scene.serving(ns, app));
        }
        until("a decision", || scene.decides());
        scene
    }

    fn go_down(&self) {
        self.suture.process.kill().expect("kill");
        for part in Part::ALL.into_iter().rev() {
            self.cluster.kill(part).expect("kill");
        }
    }

    fn api(&self, user: &str) -> Api {
        let mut api = Api::new(&self.cluster, "admin").expect("api");
        if user != "admin" {
            api.impersonate(user, &["system:masters", "system:authenticated"]);
        }
        api
    }

    fn serving(&self, ns: &str, app: &str) -> Result<(), String> {
        let path = format!("/api/v1/namespaces/{ns}/pods?labelSelector=app%3D{app}");
        let list = self.api("admin").get(&path).map_err(|error| error.to_string())?;
        let pods = list["items"].as_array().cloned().unwrap_or_default();
        // pods of the nodes that were are none
        let count = pods.iter().filter(|pod| serves(pod) && self.runs(pod)).count();
        if count > 0 { Ok(()) } else { Err(format!("none of {} pods of {app} serves", pods.len())) }
    }

    fn runs(&self, pod: &Value) -> bool {
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        self.api("admin").get(&format!("/api/v1/nodes/{node}")).is_ok()
    }

    /// Suture refuses what breaks something, and lets pass what does not.
    fn decides(&self) -> Result<(), String> {
        let api = self.api("admin");
        let settings = "/api/v1/namespaces/shop/configmaps/settings?dryRun=All";
        let harmful = api.call("DELETE", settings, None).map_err(|error| error.to_string())?;
        assert!(!harmful.done(), "what breaks a reference was admitted");
        let told = harmful.message().contains("references-resolve");
        let spare = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "spare"}});
        let harmless = api.call("POST", "/api/v1/namespaces/shop/configmaps?dryRun=All", Some(&spare));
        let harmless = harmless.map_err(|error| error.to_string())?;
        if told && harmless.done() { Ok(()) } else { Err(format!("{}; {}", harmful.message(), harmless.message())) }
    }

    fn refused(&self, what: &str) {
        let reply = self.api("admin").call("DELETE", "/api/v1/namespaces/shop/configmaps/settings?dryRun=All", None);
        let reply = reply.expect("answer");
        assert!(!reply.done() && reply.message().contains("failed calling webhook"), "{what}: {}", reply.message());
    }

    #[track_caller]
    fn admitted(&self, what: &str, user: &str, method: &str, path: &str, body: &Value) {
        let reply = self.api(user).call(method, path, Some(body)).expect("answer");
        assert!(reply.done(), "{what}: {} {}", reply.code, reply.message());
    }

    /// The old nodes are gone; others join, and are set up by their cloud and their network.
    fn nodes_come(&self) {
        for index in 0..2 {
            let gone = format!("/api/v1/nodes/node-{index}");
            self.admitted("a node that is gone", CLOUD, "DELETE", &gone, &json!({}));
            let name = format!("new-{index}");
            let room = json!({"cpu": "16", "memory": "64Gi", "pods": "110"});
            let taint = json!({"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"});
            let node = json!({"apiVersion": "v1", "kind": "Node", "spec": {"taints": [taint]},
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}},
                "status": {"capacity": room, "allocatable": room}});
            let kubelet = format!("system:node:{name}");
            let mut api = Api::new(&self.cluster, "admin").expect("api");
            api.impersonate(&kubelet, &["system:nodes", "system:masters"]);
            let reply = api.call("POST", "/api/v1/nodes", Some(&node)).expect("answer");
            assert!(reply.done(), "a node joins: {}", reply.message());
            let path = format!("/api/v1/nodes/{name}");
            let usable =
                json!({"spec": {"taints": null}, "metadata": {"labels": {"topology.kubernetes.io/zone": "z"}}});
            // the controllers add and take taints of their own meanwhile
            until("a node is set up", || {
                let reply = self.api(CLOUD).call("PATCH", &path, Some(&usable)).map_err(|error| error.to_string())?;
                if reply.done() { Ok(()) } else { Err(reply.message().to_owned()) }
            });
            let condition = json!({"type": "NetworkUnavailable", "status": "False", "reason": "Up", "message": ""});
            let body = json!({"status": {"conditions": [condition]}});
            let path = format!("{path}/status");
            let body = body.to_string();
            let reply = self.api(NETWORK).send("PATCH", &path, "application/strategic-merge-patch+json", body);
            let reply = reply.expect("answer");
            assert!(reply.done(), "a network is up: {}", reply.message());
        }
    }

    /// What lives in kube-system does its work.
    fn system_works(&self) {
        let restart = json!({"spec": {"template": {"metadata": {"annotations": {"restarted": "1"}}}}});
        self.admitted("DNS is rolled out", "admin", "PATCH", DNS, &restart);
        let scale = json!({"spec": {"replicas": 3}});
        self.admitted("DNS is scaled", AUTOSCALER, "PATCH", &format!("{DNS}/scale"), &scale);
        let zone = "/api/v1/namespaces/kube-system/configmaps/coredns";
        self.admitted("DNS is configured", "admin", "PATCH", zone, &json!({"data": {"Corefile": ". {errors}"}}));
        let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "provided"},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp"}}});
        self.admitted("a volume is provided", VOLUMES, "POST", "/api/v1/persistentvolumes", &volume);
        let report = pod("shop", "report", "report", "new-0");
        let web = "/apis/apps/v1/namespaces/shop/deployments/web/scale";
        let reply = self.api(AUTOSCALER).call("PATCH", web, Some(&scale)).expect("answer");
        assert!(!reply.done(), "an autoscaler of another namespace does not wait");
        let reply = self.api("admin").call("POST", "/api/v1/namespaces/shop/pods", Some(&report)).expect("answer");
        assert!(!reply.done(), "a person's pod does not wait");
        let admin = self.cluster.kubectl("admin").expect("admin");
        admin.apply(&run(&["manifests", "crds"]).expect("definitions")).expect("Suture is installed again");
        let rights = run(&["manifests", "rbac", "--namespace", NAMESPACE, "--profile", "strict"]).expect("rights");
        admin.apply(&rights).expect("Suture is installed again");
    }
}
