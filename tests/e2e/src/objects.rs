//! Objects that the suites are made of, as small as the API server takes them.

use serde_json::{Value, json};

/// A namespace.
pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// A pod's specification, with an image that nobody pulls.
pub fn pod_spec() -> Value {
    json!({"containers": [{"name": "c", "image": "web", "resources": {"requests": {"cpu": "10m"}}}]})
}

/// The specification of a pod that shares its node with no other pod of the same `app`.
pub fn apart(app: &str) -> Value {
    let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}});
    let mut spec = pod_spec();
    spec["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
    spec
}

/// A pod without a controller, on a node.
pub fn pod(namespace: &str, name: &str, app: &str, node: &str) -> Value {
    let mut spec = pod_spec();
    spec["nodeName"] = json!(node);
    json!({"apiVersion": "v1", "kind": "Pod", "spec": spec,
           "metadata": {"name": name, "namespace": namespace, "labels": {"app": app}}})
}

/// A Service for the pods of an app.
pub fn service(namespace: &str, app: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": app, "namespace": namespace},
           "spec": {"selector": {"app": app}, "ports": [{"port": 80}]}})
}

/// A Deployment, StatefulSet or DaemonSet of apps/v1 with pods of this specification.
pub fn workload(kind: &str, namespace: &str, app: &str, replicas: u32, spec: &Value) -> Value {
    let mut workload = json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": app, "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": app}},
                 "template": {"metadata": {"labels": {"app": app}}, "spec": spec}},
    });
    if kind != "DaemonSet" {
        workload["spec"]["replicas"] = json!(replicas);
    }
    if kind == "StatefulSet" {
        workload["spec"]["serviceName"] = json!(app);
    }
    workload
}

/// A namespace with a Service that Ingresses in it lead to.
pub fn place(name: &str) -> [Value; 2] {
    let backend = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "backend", "namespace": name},
        "spec": {"ports": [{"port": 80}]}});
    [namespace(name), backend]
}

/// An Ingress for one host, with the backend of its [`place`].
pub fn ingress(namespace: &str, name: &str, host: &str) -> Value {
    let backend = json!({"service": {"name": "backend", "port": {"number": 80}}});
    let paths = json!([{"path": "/", "pathType": "Prefix", "backend": backend}]);
    json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": name, "namespace": namespace},
           "spec": {"ingressClassName": "nginx", "rules": [{"host": host, "http": {"paths": paths}}]}})
}

/// A claim without a class: nothing is provisioned for it.
pub fn claim(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": namespace},
           "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "",
                    "resources": {"requests": {"storage": "1Gi"}}}})
}

/// A volume that is bound to a claim, and the claim.
pub fn bound_claim(namespace: &str, name: &str, reclaim: &str) -> [Value; 2] {
    let volume = format!("{namespace}-{name}");
    let mut claim = claim(namespace, name);
    claim["spec"]["volumeName"] = json!(volume);
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "",
                 "persistentVolumeReclaimPolicy": reclaim, "hostPath": {"path": "/tmp"},
                 "claimRef": {"namespace": namespace, "name": name}},
    });
    [volume, claim]
}

/// An eviction, to be posted to a pod.
pub fn eviction(namespace: &str, pod: &str) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}})
}

/// A definition of a custom resource whose fields are free.
pub fn definition(group: &str, kind: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced",
                 "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
                 "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]},
    })
}

/// An invariant of a shipped template, with its name.
pub fn invariant(template: &str) -> Value {
    json!({"apiVersion": "suture.dev/v1alpha1", "kind": "Invariant", "metadata": {"name": template},
           "spec": {"template": template}})
}

/// Several objects as one.
pub fn list(items: Vec<Value>) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

/// Whether a pod is ready and stays.
pub fn serves(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions.is_some_and(|all| all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"));
    ready && pod.pointer("/metadata/deletionTimestamp").is_none()
}
