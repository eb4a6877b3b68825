//! One request of a client, and the ways to make one.

use serde_json::{Value, json};
use suture_e2e::objects;

/// What a request is counted under: the kind of its object, and what is done with it.
pub type Sort = (&'static str, &'static str);

/// A request that is still to be sent.
#[derive(Debug, Clone)]
pub struct Step {
    pub sort: Sort,
    pub method: &'static str,
    pub path: String,
    pub body: Option<Value>,
    /// The path of the object that the created one names as its controller; it was created earlier by the same client.
    pub owner: Option<String>,
    /// The path of the object whose uid the body has; it was created earlier by the same client.
    pub subject: Option<String>,
}

impl Step {
    fn new(sort: Sort, method: &'static str, path: String, body: Option<Value>) -> Self {
        Self { sort, method, path, body, owner: None, subject: None }
    }

    /// With a reference to a controller that the same client has created at this path.
    pub fn owned_by(mut self, path: &str) -> Self {
        self.owner = Some(path.to_owned());
        self
    }
}

/// The path of a collection in a namespace; its kind says which API it is of.
pub fn collection(kind: &str, place: &str) -> String {
    let (api, plural) = match kind {
        "Deployment" => ("apis/apps/v1", "deployments"),
        "ReplicaSet" => ("apis/apps/v1", "replicasets"),
        "StatefulSet" => ("apis/apps/v1", "statefulsets"),
        "DaemonSet" => ("apis/apps/v1", "daemonsets"),
        "CronJob" => ("apis/batch/v1", "cronjobs"),
        "Job" => ("apis/batch/v1", "jobs"),
        "PodDisruptionBudget" => ("apis/policy/v1", "poddisruptionbudgets"),
        "Ingress" => ("apis/networking.k8s.io/v1", "ingresses"),
        "NetworkPolicy" => ("apis/networking.k8s.io/v1", "networkpolicies"),
        "Service" => ("api/v1", "services"),
        "ConfigMap" => ("api/v1", "configmaps"),
        "Secret" => ("api/v1", "secrets"),
        "Pod" => ("api/v1", "pods"),
        "PersistentVolumeClaim" => ("api/v1", "persistentvolumeclaims"),
        other => unreachable!("{other} is no kind of this suite"),
    };
    format!("/{api}/namespaces/{place}/{plural}")
}

/// The path of an object.
pub fn object(kind: &str, place: &str, name: &str) -> String {
    format!("{}/{name}", collection(kind, place))
}

/// Creates an object, whose kind is as it says.
pub fn create(kind: &'static str, place: &str, object: Value) -> Step {
    Step::new((kind, "create"), "POST", collection(kind, place), Some(object))
}

/// Changes an object by a merge patch.
pub fn update(kind: &'static str, place: &str, name: &str, patch: Value) -> Step {
    Step::new((kind, "update"), "PATCH", object(kind, place, name), Some(patch))
}

/// Writes the status of an object.
pub fn status(kind: &'static str, place: &str, name: &str, status: &Value) -> Step {
    let path = format!("{}/status", object(kind, place, name));
    Step::new((kind, "status"), "PATCH", path, Some(json!({"status": status})))
}

/// Scales a workload.
pub fn scale(kind: &'static str, place: &str, name: &str, replicas: usize) -> Step {
    let path = format!("{}/scale", object(kind, place, name));
    Step::new((kind, "scale"), "PATCH", path, Some(json!({"spec": {"replicas": replicas}})))
}

/// Deletes an object.
pub fn delete(kind: &'static str, place: &str, name: &str) -> Step {
    Step::new((kind, "delete"), "DELETE", object(kind, place, name), None)
}

/// Puts a pod on a node, as a scheduler does, which names the pod by its uid (`DefaultBinder.Bind`).
pub fn bind(place: &str, pod: &str, node: &str) -> Step {
    let target = json!({"apiVersion": "v1", "kind": "Node", "name": node});
    let body = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target});
    let subject = object("Pod", place, pod);
    let step = Step::new(("Pod", "bind"), "POST", format!("{subject}/binding"), Some(body));
    Step { subject: Some(subject), ..step }
}

/// Evicts a pod, as somebody does who empties a node.
pub fn evict(place: &str, pod: &str) -> Step {
    let path = format!("{}/eviction", object("Pod", place, pod));
    Step::new(("Pod", "evict"), "POST", path, Some(objects::eviction(place, pod)))
}

/// Ends a pod that is terminating, as the agent of its node does.
pub fn end(place: &str, pod: &str) -> Step {
    let body = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
    Step::new(("Pod", "end"), "DELETE", object("Pod", place, pod), Some(body))
}
