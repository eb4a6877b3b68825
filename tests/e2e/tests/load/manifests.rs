//! The objects that the mixed traffic and the cluster that it meets are made of.

use serde_json::{Value, json};
use suture_e2e::objects::{self, apart, pod_spec, workload};

/// The namespace of what all share.
pub const HUB: &str = "hub";
/// What is shared there.
pub const SHARED: &str = "shared";
/// Pods of a workload at first; one that fails with its node and one that goes leave one.
pub const PODS: usize = 3;

/// The status of a pod that serves.
pub fn ready() -> Value {
    json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
}

/// What all pods of the workload need by name, by `envFrom`.
fn env_from(config: &str, secret: Option<&str>) -> Value {
    let secret = secret.map(|secret| json!({"secretRef": {"name": secret}}));
    Value::Array([json!({"configMapRef": {"name": config}})].into_iter().chain(secret).collect())
}

/// A Deployment that needs its configuration, secret and claim, and spreads over nodes.
pub fn web(place: &str, name: &str) -> Value {
    let mut spec = pod_spec();
    spec["containers"][0]["envFrom"] = env_from(name, Some(name));
    spec["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": name}}]);
    spec["topologySpreadConstraints"] = json!([{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": name}}}]);
    workload("Deployment", place, name, PODS as u32, &spec)
}

/// A StatefulSet with a claim for each pod, and each pod on a node of its own.
pub fn store(place: &str, name: &str) -> Value {
    let mut set = workload("StatefulSet", place, name, PODS as u32, &apart(name));
    let claim = objects::claim(place, "data");
    set["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": claim["spec"]}]);
    set
}

/// A Deployment of the hub, whose pods the shared Service selects.
pub fn member(name: &str) -> Value {
    let mut spec = pod_spec();
    spec["containers"][0]["envFrom"] = env_from(SHARED, None);
    let mut deployment = workload("Deployment", HUB, name, 1, &spec);
    deployment["spec"]["template"]["metadata"]["labels"]["part-of"] = json!(SHARED);
    deployment
}

/// The ReplicaSet that a Deployment's controller makes of it.
pub fn set_of(deployment: &Value) -> Value {
    let mut set = deployment.clone();
    let hash = json!({"pod-template-hash": "1"});
    set["kind"] = json!("ReplicaSet");
    set["metadata"]["annotations"] = json!({"deployment.kubernetes.io/revision": "1"});
    for at in ["/spec/selector/matchLabels", "/spec/template/metadata/labels"] {
        let labels = set.pointer_mut(at).and_then(Value::as_object_mut).expect("labels");
        labels.extend(hash.as_object().cloned().expect("labels"));
    }
    set["metadata"]["labels"] = set["spec"]["template"]["metadata"]["labels"].clone();
    set
}

/// A CronJob.
pub fn cron(name: &str) -> Value {
    let mut spec = pod_spec();
    spec["restartPolicy"] = json!("Never");
    json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name},
        "spec": {"schedule": "0 * * * *", "concurrencyPolicy": "Forbid",
            "jobTemplate": {"spec": {"template": {"spec": spec}}}}})
}

/// A budget that lets one pod of an app go at a time.
pub fn budget(name: &str) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}}})
}

/// A policy for the pods of an app.
pub fn policy(name: &str) -> Value {
    json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": name},
        "spec": {"podSelector": {"matchLabels": {"app": name}}, "policyTypes": ["Ingress"]}})
}

/// An Ingress for one path of a host, with a Service as its backend.
pub fn host(place: &str, name: &str, host: &str, path: &str, backend: &str) -> Value {
    let mut ingress = objects::ingress(place, name, host);
    let rule = &mut ingress["spec"]["rules"][0]["http"]["paths"][0];
    rule["path"] = json!(path);
    rule["backend"]["service"]["name"] = json!(backend);
    ingress
}
