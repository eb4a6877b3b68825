//! Objects with one list that a client can make long, and the cluster that they are written to.
#![allow(dead_code, reason = "each suite uses the part it needs")]
#![allow(clippy::expect_used, reason = "a helper of tests that fails fails the test")]

use std::sync::Arc;

use serde_json::{Value, json};
use suture_model::adapter::Adapters;
use suture_model::object::Object;
use suture_model::snapshot::Snapshot;
use suture_model::value::Val;

/// An object with one long list.
pub struct Long {
    /// What it is called where what it costs is printed.
    pub list: &'static str,
    /// The object with so many items.
    pub of: fn(usize) -> Value,
}

/// All of them.
pub fn all() -> Vec<Long> {
    [of_objects(), of_cluster_objects(), of_a_deployment(), of_other_workloads()].into_iter().flatten().collect()
}

const fn list(list: &'static str, of: fn(usize) -> Value) -> Long {
    Long { list, of }
}

fn each(length: usize, item: impl Fn(usize) -> Value) -> Value {
    (0..length).map(item).collect()
}

pub fn object(api: &str, kind: &str, name: &str, more: Value) -> Value {
    let mut object = json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "a"}});
    merge(&mut object, more);
    object
}

pub fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            more.into_iter().for_each(|(key, value)| merge(into.entry(key).or_insert(Value::Null), value));
        }
        (into, more) => *into = more,
    }
}

pub fn deployment(pod_spec: Value) -> Value {
    let mut spec = json!({"containers": [{"name": "c", "image": "i"}]});
    merge(&mut spec, pod_spec);
    let template = json!({"metadata": {"labels": {"app": "x"}}, "spec": spec});
    let spec = json!({"replicas": 3, "selector": {"matchLabels": {"app": "x"}}, "template": template});
    object("apps/v1", "Deployment", "d", json!({"metadata": {"uid": "d"}, "spec": spec}))
}

fn ingress(rules: Value) -> Value {
    object("networking.k8s.io/v1", "Ingress", "long", json!({"spec": {"ingressClassName": "c", "rules": rules}}))
}

fn backend(path: usize) -> Value {
    json!({"path": format!("/{path}"), "backend": {"service": {"name": format!("s{path}"), "port": {"number": 80}}}})
}

fn environment(length: usize, from: impl Fn(usize) -> Value) -> Value {
    let env = each(length, |at| json!({"name": format!("E{at}"), "valueFrom": {"secretKeyRef": from(at)}}));
    deployment(json!({"containers": [{"name": "c", "image": "i", "env": env}]}))
}

fn labels(length: usize) -> Value {
    (0..length).map(|at| (format!("l{at}"), json!("v"))).collect::<serde_json::Map<_, _>>().into()
}

/// The lists of objects that run no pods.
fn of_objects() -> Vec<Long> {
    vec![
        list("ownerReferences", |length| {
            let owner =
                |at| json!({"apiVersion": "v1", "kind": "Pod", "name": format!("o{at}"), "uid": format!("o{at}")});
            object("v1", "ConfigMap", "long", json!({"metadata": {"ownerReferences": each(length, owner)}}))
        }),
        list("Ingress: rules", |length| {
            ingress(each(length, |at| json!({"host": format!("h{at}.x"), "http": {"paths": [backend(at)]}})))
        }),
        list("Ingress: paths", |length| ingress(json!([{"host": "h.x", "http": {"paths": each(length, backend)}}]))),
        list("HTTPRoute: hostnames", |length| {
            let matches = each(4, |at| json!({"path": {"value": format!("/{at}")}}));
            let spec = json!({"parentRefs": [{"name": "g"}], "hostnames": each(length, |at| json!(format!("h{at}.x"))),
            "rules": [{"matches": matches}]});
            object("gateway.networking.k8s.io/v1", "HTTPRoute", "long", json!({"spec": spec}))
        }),
        list("Service: selector", |length| {
            object("v1", "Service", "web", json!({"metadata": {"uid": "s"}, "spec": {"selector": labels(length)}}))
        }),
        list("PodDisruptionBudget: values", |length| {
            let values = each(length, |at| json!(format!("v{at}")));
            object(
                "policy/v1",
                "PodDisruptionBudget",
                "long",
                json!({"spec": {"minAvailable": 1, "selector":
                {"matchExpressions": [{"key": "app", "operator": "In", "values": values}]}}}),
            )
        }),
        list("NetworkPolicy: peers", |length| {
            let peer = |at| json!({"podSelector": {"matchLabels": {format!("l{at}"): "v"}}});
            object(
                "networking.k8s.io/v1",
                "NetworkPolicy",
                "long",
                json!({"spec": {"podSelector": {"matchLabels":
                {"app": "x"}}, "ingress": [{"from": each(length, peer)}]}}),
            )
        }),
        list("webhooks", |length| {
            let webhook = |at| {
                json!({"name": format!("w{at}.x.io"), "failurePolicy": "Fail", "clientConfig":
                {"service": {"name": format!("s{at}"), "namespace": "a"}}})
            };
            let mut long =
                object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "long", json!({}));
            merge(&mut long, json!({"metadata": {"namespace": ""}, "webhooks": each(length, webhook)}));
            long
        }),
        list("finalizers", |length| {
            let finalizers = each(length, |at| json!(format!("x.io/f{at}")));
            object("v1", "ConfigMap", "long", json!({"metadata": {"finalizers": finalizers}}))
        }),
    ]
}

/// The lists of a Deployment.
fn of_a_deployment() -> Vec<Long> {
    vec![
        list("volumes", |length| {
            let secret = |at| json!({"name": format!("v{at}"), "secret": {"secretName": format!("s{at}")}});
            deployment(json!({"volumes": each(length, secret)}))
        }),
        list("env: Secrets", |length| environment(length, |at| json!({"name": format!("s{at}"), "key": "k"}))),
        list("env: keys", |length| environment(length, |at| json!({"name": "s", "key": format!("k{at}")}))),
        list("containers", |length| {
            let container = |at| json!({"name": format!("c{at}"), "image": "i", "ports": [{"hostPort": at + 1}]});
            deployment(json!({"containers": each(length, container)}))
        }),
        list("tolerations", |length| {
            deployment(
                json!({"tolerations": each(length, |at| json!({"key": format!("k{at}"), "operator": "Exists"}))}),
            )
        }),
        list("nodeSelectorTerms", |length| {
            let term = |at| json!({"matchExpressions": [{"key": format!("k{at}"), "operator": "Exists"}]});
            deployment(json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": each(length, term)}}}}))
        }),
        list("podAntiAffinity", |length| {
            let term = |at| json!({"topologyKey": format!("k{at}"), "labelSelector": {"matchLabels": {"app": "x"}}});
            deployment(json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                each(length, term)}}}))
        }),
        list("topologySpreadConstraints", |length| {
            let spread = |at| {
                json!({"topologyKey": format!("k{at}"), "maxSkew": 1, "labelSelector":
            {"matchLabels": {"app": "x"}}})
            };
            deployment(json!({"topologySpreadConstraints": each(length, spread)}))
        }),
        list("replicas", |length| {
            let mut long = deployment(json!({}));
            merge(&mut long, json!({"spec": {"replicas": length * 1_000}}));
            long
        }),
    ]
}

/// A workload of a kind that selects `app: APP` in its template.
fn workload(api: &str, kind: &str, app: &str, spec: Value) -> Value {
    let template = json!({"metadata": {"labels": {"app": app, "suture.dev/residency": "eu"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let mut all = json!({"replicas": 3, "selector": {"matchLabels": {"app": app}}, "template": template});
    merge(&mut all, spec);
    object(api, kind, app, json!({"metadata": {"uid": app, "labels": {"suture.dev/quorum": "true"}}, "spec": all}))
}

fn claim(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast",
        "resources": {"requests": {"storage": "1Gi"}}}})
}

/// A quorum group of three members.
fn database(spec: Value) -> Value {
    let mut all = json!({"serviceName": "db", "volumeClaimTemplates": [claim("data")]});
    merge(&mut all, spec);
    workload("apps/v1", "StatefulSet", "db", all)
}

/// The lists of other workloads, of pods, and of custom resources that make such.
fn of_other_workloads() -> Vec<Long> {
    vec![
        list("StatefulSet: claims", |length| {
            database(json!({"volumeClaimTemplates": each(length, |at| claim(&format!("c{at}")))}))
        }),
        // whether they find a place is the same for all lengths: what has none is looked at once more
        list("StatefulSet: containers", |length| database(containers_asking(length, json!({"memory": "1Ki"})))),
        list("StatefulSet: unplaceable", |length| database(containers_asking(length, json!({"cpu": "9"})))),
        list("DaemonSet: tolerations", |length| {
            let tolerations = each(length, |at| json!({"key": format!("k{at}"), "operator": "Exists"}));
            workload("apps/v1", "DaemonSet", "agent", json!({"template": {"spec": {"tolerations": tolerations}}}))
        }),
        list("CronJob: minutes", |length| {
            let minutes: Vec<String> = (0..length).map(|at| (at % 60).to_string()).collect();
            let job = json!({"spec": {"activeDeadlineSeconds": 86_400, "template": {"spec": {"containers": []}}}});
            let spec = json!({"schedule": format!("{} * * * *", minutes.join(",")), "jobTemplate": job});
            object("batch/v1", "CronJob", "long", json!({"spec": spec}))
        }),
        list("Pod: labels", |length| {
            let mut long = object("v1", "Pod", "long", json!({"spec": {"containers": [{"name": "c", "image": "i"}]}}));
            merge(&mut long, json!({"metadata": {"labels": labels(length)}}));
            merge(&mut long, json!({"metadata": {"labels": {"app": "x"}}}));
            long
        }),
        list("Pod: volumes", |length| {
            let volume = |at| {
                let claim = json!({"claimName": format!("v{at}")});
                json!({"name": format!("v{at}"), "persistentVolumeClaim": claim})
            };
            object("v1", "Pod", "long", json!({"spec": {"volumes": each(length, volume)}}))
        }),
        list("template's labels", |length| {
            let mut long = deployment(json!({}));
            merge(&mut long, json!({"spec": {"template": {"metadata": {"labels": labels(length)}}}}));
            long
        }),
        list("labels", |length| {
            let mut long = deployment(json!({}));
            merge(&mut long, json!({"metadata": {"labels": labels(length), "annotations": labels(length)}}));
            long
        }),
        list("envFrom", |length| {
            let from = each(length, |at| json!({"configMapRef": {"name": format!("m{at}")}}));
            deployment(json!({"containers": [{"name": "c", "image": "i", "envFrom": from}]}))
        }),
        list("projected volumes", |length| {
            let source =
                |at| json!({"secret": {"name": format!("s{at}"), "items": [{"key": format!("k{at}"), "path": "p"}]}});
            deployment(json!({"volumes": [{"name": "v", "projected": {"sources": each(length, source)}}]}))
        }),
        list("matchExpressions", |length| {
            let mut long = deployment(json!({}));
            let expressions = each(length, |at| json!({"key": format!("l{at}"), "operator": "DoesNotExist"}));
            merge(&mut long, json!({"spec": {"selector": {"matchExpressions": expressions}}}));
            long
        }),
        list("Certificate: dnsNames", |length| {
            let names = each(length, |at| json!(format!("h{at}.x")));
            let issuer = json!({"name": "i", "kind": "Issuer"});
            let spec = json!({"secretName": "s", "issuerRef": issuer, "dnsNames": names});
            object("cert-manager.io/v1", "Certificate", "long", json!({"spec": spec}))
        }),
        list("Elasticsearch: nodeSets", |length| {
            let sets = each(length, |at| json!({"name": format!("n{at}"), "count": 1}));
            let spec = json!({"version": "9.0.0", "nodeSets": sets});
            object("elasticsearch.k8s.elastic.co/v1", "Elasticsearch", "long", json!({"spec": spec}))
        }),
    ]
}

/// An object that lives in no namespace.
fn global(api: &str, kind: &str, name: &str, more: Value) -> Value {
    let mut object = json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}});
    merge(&mut object, more);
    object
}

/// The lists of what nodes, volumes, rights, budgets and names of the cluster are made of.
fn of_cluster_objects() -> Vec<Long> {
    [of_nodes_and_volumes(), of_rights_and_bounds(), of_names()].into_iter().flatten().collect()
}

fn of_nodes_and_volumes() -> Vec<Long> {
    vec![
        list("Namespace: labels", |length| {
            global("v1", "Namespace", "a", json!({"metadata": {"uid": "a", "labels": labels(length)}}))
        }),
        list("Node: taints", |length| {
            let taints = each(length, |at| json!({"key": format!("k{at}"), "effect": "NoSchedule"}));
            let mut long = node(0);
            merge(&mut long, json!({"spec": {"taints": taints}}));
            long
        }),
        list("Node: labels", |length| {
            let mut long = node(0);
            merge(&mut long, json!({"metadata": {"labels": labels(length)}}));
            long
        }),
        list("PersistentVolume: terms", |length| {
            let term = |at| {
                let values = [format!("n{at}")];
                json!({"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": values}]})
            };
            let affinity = json!({"required": {"nodeSelectorTerms": each(length, term)}});
            let spec = json!({"nodeAffinity": affinity});
            let mut long = volume();
            merge(&mut long, json!({"spec": spec, "metadata": {"labels": {"changed": "x"}}}));
            long
        }),
        list("StorageClass: topologies", |length| {
            let topology = |at| json!({"matchLabelExpressions": [{"key": "zone", "values": [format!("z{at}")]}]});
            global(
                "storage.k8s.io/v1",
                "StorageClass",
                "fast",
                json!({"provisioner": "p", "allowedTopologies": each(length, topology)}),
            )
        }),
        list("claim's finalizers", |length| {
            let mut long = bound_claim();
            merge(&mut long, json!({"metadata": {"finalizers": each(length, |at| json!(format!("x.io/f{at}")))}}));
            long
        }),
        list("ConfigMap: keys", |length| {
            object("v1", "ConfigMap", "settings", json!({"metadata": {"uid": "settings"}, "data": labels(length)}))
        }),
        list("CRD: versions", |length| {
            let version = |at| {
                let schema = json!({"openAPIV3Schema": {"type": "object"}});
                json!({"name": format!("v{at}"), "served": true, "storage": at == 0, "schema": schema})
            };
            definition(each(length, version))
        }),
    ]
}

fn of_rights_and_bounds() -> Vec<Long> {
    vec![
        list("ResourceQuota: hard", |length| {
            let hard: serde_json::Map<_, _> =
                (0..length).map(|at| (format!("requests.x.io/r{at}"), json!("1"))).collect();
            object("v1", "ResourceQuota", "long", json!({"spec": {"hard": hard}}))
        }),
        list("LimitRange: limits", |length| {
            let limit = |_| json!({"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "500m"}});
            object("v1", "LimitRange", "long", json!({"spec": {"limits": each(length, limit)}}))
        }),
        list("Role: rules", |length| {
            let rule = |at| json!({"apiGroups": [""], "resources": [format!("r{at}")], "verbs": ["get"]});
            object(
                "rbac.authorization.k8s.io/v1",
                "Role",
                "reads",
                json!({"metadata": {"uid": "reads"}, "rules": each(length, rule)}),
            )
        }),
        list("Role: resourceNames", |length| {
            let names = each(length, |at| json!(format!("n{at}")));
            let rules =
                json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"], "resourceNames": names}]);
            object(
                "rbac.authorization.k8s.io/v1",
                "Role",
                "reads",
                json!({"metadata": {"uid": "reads"}, "rules": rules}),
            )
        }),
        list("RoleBinding: subjects", |length| {
            let subject = |at| json!({"kind": "ServiceAccount", "name": format!("s{at}"), "namespace": "a"});
            let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reads"});
            object(
                "rbac.authorization.k8s.io/v1",
                "RoleBinding",
                "reads",
                json!({"metadata": {"uid": "binding"}, "roleRef": role, "subjects": each(length, subject)}),
            )
        }),
        list("autoscaler: metrics", |length| {
            let metric = |at| {
                let target = json!({"type": "AverageValue", "averageValue": "1"});
                json!({"type": "Pods", "pods": {"metric": {"name": format!("m{at}")}, "target": target}})
            };
            autoscaler(json!({"metrics": each(length, metric)}))
        }),
        list("budget: expressions", |length| {
            let expressions = each(length, |at| json!({"key": format!("l{at}"), "operator": "DoesNotExist"}));
            let selector = json!({"matchLabels": {"app": "x"}, "matchExpressions": expressions});
            object("policy/v1", "PodDisruptionBudget", "x", json!({"spec": {"minAvailable": 1, "selector": selector}}))
        }),
    ]
}

fn of_names() -> Vec<Long> {
    vec![
        list("Service: ports", |length| {
            let ports =
                each(length, |at| json!({"name": format!("p{at}"), "port": at + 1, "targetPort": format!("t{at}")}));
            let spec = json!({"selector": {"app": "x"}, "ports": ports});
            object("v1", "Service", "web", json!({"metadata": {"uid": "s"}, "spec": spec}))
        }),
        list("EndpointSlice: endpoints", |length| {
            let endpoint =
                |at| json!({"addresses": [format!("10.0.{}.{}", at / 250, at % 250)], "conditions": {"ready": true}});
            let more = json!({"metadata": {"labels": {"kubernetes.io/service-name": "web"}}, "addressType": "IPv4",
                "endpoints": each(length, endpoint), "ports": [{"name": "", "port": 80}]});
            object("discovery.k8s.io/v1", "EndpointSlice", "long", more)
        }),
        list("Ingress: tls", |length| {
            let tls = each(length, |at| json!({"hosts": [format!("h{at}.x")], "secretName": format!("s{at}")}));
            let mut long = ingress(json!([{"host": "h.x", "http": {"paths": [backend(0)]}}]));
            merge(&mut long, json!({"spec": {"tls": tls}}));
            long
        }),
        list("HTTPRoute: rules", |length| {
            let rule = |at| {
                json!({"matches": [{"path": {"value": format!("/{at}")}}],
                    "backendRefs": [{"name": format!("s{at}"), "port": 80}]})
            };
            let spec = json!({"parentRefs": [{"name": "g"}], "hostnames": ["h.x"], "rules": each(length, rule)});
            object("gateway.networking.k8s.io/v1", "HTTPRoute", "long", json!({"spec": spec}))
        }),
        list("Gateway: listeners", |length| {
            let listener = |at| json!({"name": format!("l{at}"), "port": at + 1, "protocol": "HTTP", "hostname": format!("h{at}.x")});
            let spec = json!({"gatewayClassName": "c", "listeners": each(length, listener)});
            object("gateway.networking.k8s.io/v1", "Gateway", "g", json!({"spec": spec}))
        }),
        list("webhook: rules", |length| {
            let rule = |at| {
                json!({"operations": ["CREATE"], "apiGroups": ["x.io"], "apiVersions": ["v1"],
                    "resources": [format!("r{at}")]})
            };
            hooks(
                json!([{"name": "w.x.io", "failurePolicy": "Fail", "rules": each(length, rule), "clientConfig": {"service":
                {"name": "web", "namespace": "a"}}}]),
            )
        }),
        list("webhook: conditions", |length| {
            let conditions = each(length, |at| json!({"name": format!("c{at}"), "expression": "true"}));
            hooks(json!([{"name": "w.x.io", "failurePolicy": "Fail", "rules": [], "matchConditions": conditions,
                "clientConfig": {"service": {"name": "web", "namespace": "a"}}}]))
        }),
    ]
}

fn hooks(webhooks: Value) -> Value {
    global("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "long", json!({"webhooks": webhooks}))
}

/// The spec of a StatefulSet with so many containers that each request this.
fn containers_asking(length: usize, requests: Value) -> Value {
    let container = |at| json!({"name": format!("c{at}"), "image": "i", "resources": {"requests": requests}});
    json!({"template": {"spec": {"containers": each(length, container)}}})
}

fn node(at: usize) -> Value {
    let labels =
        json!({"kubernetes.io/hostname": format!("n{at}"), "topology.kubernetes.io/zone": format!("z{}", at % 3)});
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("n{at}"), "uid": format!("n{at}"),
        "labels": labels}, "status": {"conditions": [{"type": "Ready", "status": "True"}],
        "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"}}})
}

fn volume() -> Value {
    let claim = json!({"kind": "PersistentVolumeClaim", "namespace": "a", "name": "data-db-0", "uid": "data-db-0"});
    let spec = json!({"capacity": {"storage": "1Gi"}, "claimRef": claim, "persistentVolumeReclaimPolicy": "Delete"});
    global("v1", "PersistentVolume", "v", json!({"metadata": {"uid": "v"}, "spec": spec, "status": {"phase": "Bound"}}))
}

fn bound_claim() -> Value {
    let mut claim = claim("data-db-0");
    merge(
        &mut claim,
        json!({"metadata": {"uid": "data-db-0", "labels": {"suture.dev/retain": "true"}},
        "spec": {"volumeName": "v"}, "status": {"phase": "Bound"}}),
    );
    object("v1", "PersistentVolumeClaim", "data-db-0", claim)
}

fn definition(versions: Value) -> Value {
    let names = json!({"plural": "things", "kind": "Thing"});
    global(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "things.x.io",
        json!({"metadata": {"uid": "crd"}, "spec": {"group": "x.io", "scope": "Namespaced", "names": names, "versions": versions}}),
    )
}

fn autoscaler(more: Value) -> Value {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"});
    let mut spec = json!({"scaleTargetRef": target, "minReplicas": 3, "maxReplicas": 9});
    merge(&mut spec, more);
    object("autoscaling/v2", "HorizontalPodAutoscaler", "d", json!({"metadata": {"uid": "hpa"}, "spec": spec}))
}

/// What stands beside the Deployment: a quorum group with its volume, a budget, an autoscaler, rights, and settings.
fn others() -> Vec<Value> {
    let budget = json!({"spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "db"}}}});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reads"});
    let member = |at: usize| {
        let owner =
            json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "db", "controller": true}]);
        let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": format!("data-db-{at}")}}]);
        let labels = json!({"app": "db", "statefulset.kubernetes.io/pod-name": format!("db-{at}")});
        object(
            "v1",
            "Pod",
            &format!("db-{at}"),
            json!({"metadata": {"uid": format!("db-{at}"), "labels": labels,
            "ownerReferences": owner}, "spec": {"nodeName": format!("n{at}"), "volumes": volumes}, "status":
            {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
        )
    };
    let thing = object("x.io/v1", "Thing", "one", json!({"metadata": {"uid": "thing"}}));
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]);
    let subjects = json!([{"kind": "ServiceAccount", "name": "default", "namespace": "a"}]);
    let rbac = "rbac.authorization.k8s.io/v1";
    let all = [
        database(json!({})),
        object(
            "v1",
            "Service",
            "db",
            json!({"metadata": {"uid": "sdb"}, "spec": {"clusterIP": "None", "selector": {"app": "db"}}}),
        ),
        object("policy/v1", "PodDisruptionBudget", "db", budget),
        autoscaler(json!({})),
        volume(),
        bound_claim(),
        global("storage.k8s.io/v1", "StorageClass", "fast", json!({"provisioner": "p"})),
        object("v1", "ConfigMap", "settings", json!({"metadata": {"uid": "settings"}, "data": {"k": "v"}})),
        object("v1", "ServiceAccount", "default", json!({"metadata": {"uid": "sa"}})),
        object(rbac, "Role", "reads", json!({"metadata": {"uid": "reads"}, "rules": rules})),
        object(
            rbac,
            "RoleBinding",
            "reads",
            json!({"metadata": {"uid": "binding"}, "roleRef": role, "subjects": subjects}),
        ),
        workload("apps/v1", "DaemonSet", "agent", json!({})),
        definition(json!([{"name": "v1", "served": true, "storage": true}])),
        thing,
    ];
    all.into_iter().chain((0..3).map(member)).collect()
}

/// A Deployment of three pods on five nodes, a Service for it, and an Ingress.
pub fn cluster(adapters: Arc<dyn Adapters>) -> Snapshot {
    let owned = |kind: &str, name: &str| {
        json!({"metadata": {"uid": format!("{kind}-{name}"), "labels": {"app": "x"},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": true}]}})
    };
    let mut set = object("apps/v1", "ReplicaSet", "r", owned("Deployment", "d"));
    merge(&mut set, json!({"metadata": {"uid": "r"}, "spec": deployment(json!({}))["spec"]}));
    let pod = |at| {
        let mut pod = object("v1", "Pod", &format!("p{at}"), owned("ReplicaSet", "r"));
        merge(
            &mut pod,
            json!({"metadata": {"uid": format!("p{at}")}, "spec": {"nodeName": format!("n{at}")}, "status":
            {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
        );
        pod
    };
    let service = object("v1", "Service", "web", json!({"metadata": {"uid": "s"}, "spec": {"selector": {"app": "x"}}}));
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "uid": "a",
        "labels": {"tenant": "shop"}}});
    let all = [namespace, service, deployment(json!({})), set, ingress(json!([{"host": "other.x"}]))];
    let mut snapshot = Snapshot::new(adapters);
    for value in all.into_iter().chain(others()).chain((0..5).map(node)).chain((0..3).map(pod)) {
        snapshot.insert(Object::from_val(&Val::from(&value)).expect("it is an object"));
    }
    snapshot.complete();
    snapshot
}
