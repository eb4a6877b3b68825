//! Random requests against a cluster: deletions, scaling, template and label edits, evictions, node and claim changes.

use std::sync::Arc;

use serde_json::{Value, json};
use suture_model::change::{Preconditions, Propagation, Request, User};
use suture_model::object::{Key, Object};
use suture_model::state::State;
use suture_model::value::Val;

use super::capacity;
use super::cluster;
use super::focus::Focus;
use super::random::Random;
use super::rights;
use super::room;

/// How often a kind of request is tried anew when the cluster has nothing for it.
const TRIES: usize = 20;

/// A request against this cluster.
pub fn request(random: &mut Random, state: &State<'_>, focus: Focus) -> Request {
    for _ in 0..TRIES {
        if let Some(request) = attempt(random, state, focus) {
            return request;
        }
    }
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain", "namespace": "a"}});
    create(random, state, &manifest).unwrap_or_else(|| Request::evict(User::admin(), Key::of("Pod", "a", "none")))
}

/// A kind of request.
type Make = fn(&mut Random, &State<'_>, Focus) -> Option<Request>;

/// The kinds of requests, each as often as its weight says.
const KINDS: &[(usize, Make)] = &[
    (22, delete),
    (12, |random, state, _| scale(random, state)),
    (15, |random, state, _| template(random, state)),
    (6, |random, state, _| evict(random, state)),
    (15, labels),
    (8, |random, state, _| node(random, state)),
    (9, creation),
    (7, fields),
    (6, |random, state, _| pods(random, state)),
];

/// What is most likely to matter to an invariant.
fn relevant(focus: Focus) -> &'static [(usize, Make)] {
    match focus {
        Focus::Services | Focus::Quorum | Focus::Pods => &[
            (20, |random, state, focus| delete_one(random, state, favourites(focus))),
            (25, |random, state, _| scale(random, state)),
            (25, |random, state, _| template(random, state)),
            (12, |random, state, _| evict(random, state)),
            (12, labels),
            (6, |random, state, _| pods(random, state)),
        ],
        Focus::Faults => &[
            (25, |random, state, _| scale(random, state)),
            (35, |random, state, _| template(random, state)),
            (15, |random, state, _| evict(random, state)),
            (15, |random, state, _| node(random, state)),
            (10, labels),
        ],
        Focus::Budgets => &[
            (25, |random, state, _| scale(random, state)),
            (20, |random, state, _| pods(random, state)),
            (20, labels),
            (20, fields),
            (15, |random, state, focus| delete_one(random, state, favourites(focus))),
        ],
        Focus::Capacity => &[
            (45, |random, state, _| capacity::request(random, state)),
            (25, |random, state, _| scale(random, state)),
            (10, |random, state, _| template(random, state)),
            (20, |random, state, focus| delete_one(random, state, favourites(focus))),
        ],
        Focus::Room => &[
            (25, |random, state, _| scale(random, state)),
            (25, |random, state, _| template(random, state)),
            (20, |random, state, _| node(random, state)),
            (10, |random, state, _| evict(random, state)),
            (10, |random, state, _| room::request(random, state)),
            (10, |random, state, focus| delete_one(random, state, favourites(focus))),
        ],
        Focus::Rights => &[
            (60, |random, state, _| rights::request(random, state)),
            (40, |random, state, focus| delete_one(random, state, favourites(focus))),
        ],
        Focus::Writers => &[
            (70, |random, state, _| capacity::writer(random, state)),
            (30, |random, state, focus| delete_one(random, state, favourites(focus))),
        ],
        Focus::Hosts => &[(60, creation), (40, fields)],
        Focus::Selectors => &[(50, labels), (30, |random, state, _| node(random, state)), (20, delete)],
        Focus::References => &[
            (40, |random, state, focus| delete_one(random, state, favourites(focus))),
            (30, |random, state, _| template(random, state)),
            (20, fields),
            (10, creation),
        ],
        Focus::Claims | Focus::Owners | Focus::Definitions | Focus::Namespaces => &[
            (60, |random, state, focus| delete_one(random, state, favourites(focus))),
            (20, fields),
            (10, |random, state, _| scale(random, state)),
            (10, creation),
        ],
    }
}

fn attempt(random: &mut Random, state: &State<'_>, focus: Focus) -> Option<Request> {
    let kinds = if random.chance(60) { relevant(focus) } else { KINDS };
    let mut left = random.below(kinds.iter().map(|(weight, _)| weight).sum());
    for (weight, make) in kinds {
        if left < *weight {
            return make(random, state, focus);
        }
        left -= weight;
    }
    None
}

fn user(random: &mut Random) -> User {
    if random.chance(70) { User::admin() } else { User::named("system:serviceaccount:a:operator") }
}

/// The kinds that a deletion is most interesting of.
fn favourites(focus: Focus) -> &'static [&'static str] {
    match focus {
        Focus::Services => &["Service", "Pod", "Deployment", "StatefulSet", "HorizontalPodAutoscaler"],
        Focus::Quorum | Focus::Faults => &["Pod", "StatefulSet", "Deployment", "Node"],
        Focus::Claims => &["PersistentVolumeClaim", "PersistentVolume", "StatefulSet", "Db", "VolumeSnapshot"],
        Focus::References => &["Secret", "ConfigMap", "ServiceAccount", "Service", "PriorityClass"],
        Focus::Owners => &["Db", "ConfigMap", "Secret", "StatefulSet", "ReplicaSet", "Deployment"],
        Focus::Definitions => &["CustomResourceDefinition", "Db"],
        Focus::Namespaces => &["Namespace"],
        Focus::Hosts => &["Ingress", "Namespace", "IngressClass", "Service", "HTTPRoute", "Gateway"],
        Focus::Budgets => &["PodDisruptionBudget", "Deployment", "Pod", "HorizontalPodAutoscaler"],
        Focus::Selectors => &["Pod", "Node", "Namespace", "DaemonSet"],
        Focus::Pods => &["Pod", "Node", "ReplicaSet", "DaemonSet"],
        Focus::Capacity => {
            &["LimitRange", "ResourceQuota", "CronJob", "Job", "HorizontalPodAutoscaler", "Deployment", "Namespace"]
        }
        Focus::Room => &["Node", "Pod", "Deployment", "PersistentVolumeClaim", "PriorityClass"],
        Focus::Writers => &["Db", "Secret", "ConfigMap", "Namespace"],
        Focus::Rights => &["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "Deployment", "ConfigMap"],
    }
}

fn any(random: &mut Random, state: &State<'_>, kinds: &[&str]) -> Option<Arc<Object>> {
    let found: Vec<_> =
        state.iter().into_iter().filter(|o| kinds.is_empty() || kinds.contains(&&*o.key.kind.kind)).cloned().collect();
    if found.is_empty() { None } else { Some(random.pick(&found).clone()) }
}

fn delete(random: &mut Random, state: &State<'_>, focus: Focus) -> Option<Request> {
    let kinds = if random.chance(55) { favourites(focus) } else { &[] };
    delete_one(random, state, kinds)
}

fn delete_one(random: &mut Random, state: &State<'_>, kinds: &[&str]) -> Option<Request> {
    let target = any(random, state, kinds)?;
    let propagation = *random.pick(&[
        None,
        None,
        Some(Propagation::Background),
        Some(Propagation::Foreground),
        Some(Propagation::Orphan),
    ]);
    let uid = random.chance(12).then(|| if random.chance(60) { target.uid.clone() } else { "another".into() });
    let preconditions = Preconditions { uid, resource_version: None };
    Some(Request::delete(user(random), state, target.key.clone(), propagation, preconditions))
}

fn scale(random: &mut Random, state: &State<'_>) -> Option<Request> {
    let target = any(random, state, &["Deployment", "StatefulSet", "ReplicaSet", "Db"])?;
    let replicas = random.range(0, 3);
    if random.chance(25) {
        return patch(random, state, &target, &json!({"spec": {"replicas": replicas}}));
    }
    Some(Request::scale(user(random), state, target.key.clone(), replicas))
}

fn patch(random: &mut Random, state: &State<'_>, target: &Object, with: &Value) -> Option<Request> {
    Request::patch(user(random), state, target.key.clone(), &Val::from(with), "").ok()
}

fn template(random: &mut Random, state: &State<'_>) -> Option<Request> {
    let target = any(random, state, &["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"])?;
    let path = if target.val().at(&["spec", "template"]).is_some() { "template" } else { "none" };
    let inner = match random.below(16) {
        0..=4 => json!({"spec": {"containers": [{"name": "c", "image": "i:2"}]}}),
        5..=6 => json!({"metadata": {"labels": {"ver": *random.pick(&["v1", "v2"])}}}),
        7 => json!({"metadata": {"labels": {"app": *random.pick(&["x", "y"])}}}),
        8 => {
            json!({"spec": {"containers": [{"name": "c", "image": "i:2", "envFrom": [{"secretRef": {"name": *random.pick(&["s1", "s2"])}}]}]}})
        }
        9 => json!({"spec": {"nodeSelector": {"disk": *random.pick(&["ssd", "tape"])}}}),
        10 => json!({"spec": {"nodeSelector": null, "affinity": null}}),
        11 => json!({"spec": {"serviceAccountName": *random.pick(&["sa", "default", "sb"])}}),
        12 => {
            json!({"spec": {"containers": [{"name": "c", "image": "i:2", "resources": {"requests": {"cpu": *random.pick(&["500m", "1", "4"])}}}]}})
        }
        13 => {
            let topology = *random.pick(&["kubernetes.io/hostname", "topology.kubernetes.io/zone"]);
            json!({"spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                [{"topologyKey": topology, "labelSelector": {"matchLabels": {"app": *random.pick(&["x", "y"])}}}]}}}})
        }
        14 => {
            let topology = *random.pick(&["kubernetes.io/hostname", "topology.kubernetes.io/zone"]);
            json!({"spec": {"topologySpreadConstraints": [{"topologyKey": topology, "maxSkew": random.range(1, 2),
                "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": *random.pick(&["x", "y"])}}}]}})
        }
        _ => {
            json!({"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": *random.pick(&["loose", "new"])}}]}})
        }
    };
    patch(random, state, &target, &json!({"spec": {path: inner}}))
}

fn evict(random: &mut Random, state: &State<'_>) -> Option<Request> {
    let target = any(random, state, &["Pod"])?;
    Some(Request::evict(user(random), target.key.clone()))
}

fn labels(random: &mut Random, state: &State<'_>, focus: Focus) -> Option<Request> {
    let app = random.pick(&[Value::from("x"), Value::from("y"), Value::Null]).clone();
    match random.below(12) {
        0..=3 => {
            let target = any(random, state, &["Pod"])?;
            let key = *random.pick(&["app", "app", "ver", "role", "controller-revision-hash", "pod-template-hash"]);
            patch(random, state, &target, &json!({"metadata": {"labels": {key: app}}}))
        }
        4..=5 => {
            let target = any(random, state, &["Service"])?;
            let selector = random
                .pick(&[
                    json!({"app": "x"}),
                    json!({"app": "y"}),
                    json!({"ver": "v2"}),
                    json!({"app": null, "ver": null}),
                    Value::Null,
                ])
                .clone();
            patch(random, state, &target, &json!({"spec": {"selector": selector}}))
        }
        6 => {
            let target = any(random, state, &["PodDisruptionBudget", "NetworkPolicy"])?;
            let field = if target.key.kind.is("NetworkPolicy") { "podSelector" } else { "selector" };
            patch(random, state, &target, &json!({"spec": {field: {"matchLabels": {"app": app}}}}))
        }
        7 => {
            let target = any(random, state, &["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"])?;
            let quorum = if random.chance(50) { json!("true") } else { Value::Null };
            patch(random, state, &target, &json!({"metadata": {"labels": {"suture.dev/quorum": quorum}}}))
        }
        8 => {
            let target = any(random, state, &["PersistentVolumeClaim"])?;
            let value = if random.chance(50) { json!("true") } else { Value::Null };
            patch(random, state, &target, &json!({"metadata": {"labels": {"suture.dev/disposable": value}}}))
        }
        9 => {
            let target = any(random, state, &["Db"])?;
            patch(random, state, &target, &json!({"spec": {"app": app}}))
        }
        10 => {
            let target = any(random, state, &["ReplicaSet", "StatefulSet", "DaemonSet"])?;
            patch(random, state, &target, &json!({"spec": {"selector": {"matchLabels": {"app": app}}}}))
        }
        _ => {
            let kinds: &[&str] = match focus {
                Focus::Namespaces => &["Namespace"],
                Focus::Owners | Focus::References => {
                    &["Namespace", "Secret", "Service", "Deployment", "StatefulSet", "Db"]
                }
                _ => &["Ingress", "Namespace"],
            };
            let target = any(random, state, kinds)?;
            let value = if random.chance(60) { json!(&*target.uid) } else { Value::Null };
            patch(random, state, &target, &json!({"metadata": {"annotations": {"suture.dev/confirm-delete": value}}}))
        }
    }
}

fn node(random: &mut Random, state: &State<'_>) -> Option<Request> {
    let target = any(random, state, &["Node"])?;
    let with = match random.below(8) {
        0 => return Some(Request::delete(user(random), state, target.key.clone(), None, Preconditions::default())),
        1 => json!({"spec": {"unschedulable": random.chance(70)}}),
        2..=4 => json!({"spec": {"taints": [cluster::taint(random)]}}),
        5 => json!({"spec": {"taints": null}}),
        6 => json!({"metadata": {"labels": {"disk": random.pick(&[Value::Null, json!("ssd")]).clone()}}}),
        _ => {
            let ready = *random.pick(&["True", "False", "Unknown"]);
            let with = json!({"status": {"conditions": [{"type": "Ready", "status": ready}]}});
            return Request::patch(user(random), state, target.key.clone(), &Val::from(&with), "status").ok();
        }
    };
    patch(random, state, &target, &with)
}

fn create(random: &mut Random, state: &State<'_>, manifest: &Value) -> Option<Request> {
    Request::create(user(random), state, &Val::from(manifest)).ok()
}

fn creation(random: &mut Random, state: &State<'_>, focus: Focus) -> Option<Request> {
    let ns = if random.chance(70) { "a" } else { "b" };
    let labels = json!({"app": *random.pick(&["x", "y"])});
    let meta = |name: &str| json!({"name": name, "namespace": ns});
    let ingress = if focus == Focus::Hosts { 60 } else { 10 };
    if random.chance(ingress) {
        let name = format!("in{}", random.below(4));
        let route = cluster::route(random, ns, &name);
        return create(random, state, &route);
    }
    let spec = json!({"containers": [{"name": "c", "envFrom": [{"secretRef": {"name": "s1"}}]}]});
    let template = json!({"metadata": {"labels": labels}, "spec": spec});
    let manifest = match random.below(10) {
        0 => {
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "made", "namespace": ns, "labels": labels}, "spec": spec})
        }
        1 => json!({"apiVersion": "v1", "kind": "Service", "metadata": meta("svc0"), "spec": {"selector": labels}}),
        2 => json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("made"),
            "spec": {"replicas": random.range(0, 2), "selector": {"matchLabels": labels}, "template": template}}),
        3 => json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta("made"),
            "spec": {"replicas": random.range(0, 2), "selector": {"matchLabels": labels}, "template": template}}),
        4 => json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta("made"),
            "spec": {"minAvailable": random.range(0, 2), "selector": {"matchLabels": labels}}}),
        5 => json!({"apiVersion": "example.com/v1", "kind": "Db", "metadata": meta("made"),
            "spec": {"app": labels["app"], "secret": "s1", "children": [{"kind": "Secret", "name": "s1"}]}}),
        6 => json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta("made"),
            "spec": {"selector": {"matchLabels": labels}, "template": template}}),
        7 => {
            let target = any(random, state, &["Deployment", "StatefulSet", "ReplicaSet", "Db"])?;
            let api = json!(format!("{}/{}", target.key.kind.group, target.version));
            let kind = json!(&*target.key.kind.kind);
            let mut made = cluster::autoscaler(random, &kind, &api, &json!(&*target.key.name));
            made["metadata"] = json!({"name": "made", "namespace": &*target.key.ns});
            made
        }
        8 => {
            json!({"apiVersion": "v1", "kind": *random.pick(&["Secret", "ConfigMap"]), "metadata": meta("s1"), "data": {"k": "dg=="}})
        }
        _ => {
            let owner = any(random, state, &[])?;
            let uid = if random.chance(60) { owner.uid.to_string() } else { "none".to_owned() };
            let group = &owner.key.kind.group;
            let api = if group.is_empty() { owner.version.to_string() } else { format!("{group}/{}", owner.version) };
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made", "namespace": ns, "ownerReferences": [
                {"apiVersion": api, "kind": &*owner.key.kind.kind, "name": &*owner.key.name, "uid": uid, "controller": random.chance(50)}]}})
        }
    };
    create(random, state, &manifest)
}

/// Edits of single fields that some invariant reads.
fn fields(random: &mut Random, state: &State<'_>, focus: Focus) -> Option<Request> {
    let kinds: &[&str] = match random.below(8) {
        0 => favourites(focus),
        1 => &["StatefulSet"],
        2 => &["Deployment"],
        3 => &["PersistentVolume", "PersistentVolumeClaim"],
        4 => &["Db"],
        5 => &["CustomResourceDefinition", "HorizontalPodAutoscaler", "PodDisruptionBudget"],
        6 => &["Ingress", "HTTPRoute", "IngressClass", "Gateway"],
        _ => &[],
    };
    let target = any(random, state, kinds)?;
    if random.chance(12) && target.finalizers().next().is_some() {
        return patch(random, state, &target, &json!({"metadata": {"finalizers": null}}));
    }
    if random.chance(15) {
        let owners = if random.chance(50) { Value::Null } else { json!([]) };
        return patch(random, state, &target, &json!({"metadata": {"ownerReferences": owners}}));
    }
    let with = match &*target.key.kind.kind {
        "StatefulSet" => random
            .pick(&[
                json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}}),
                json!({"spec": {"podManagementPolicy": "Parallel"}}),
                json!({"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}}}),
                json!({"spec": {"replicas": null}}),
            ])
            .clone(),
        "Deployment" => random
            .pick(&[
                json!({"spec": {"strategy": {"type": "Recreate", "rollingUpdate": null}}}),
                json!({"spec": {"paused": true}}),
                json!({"spec": {"replicas": null}}),
                json!({"spec": {"strategy": {"rollingUpdate": {"maxUnavailable": 2}}}}),
            ])
            .clone(),
        "PersistentVolume" => json!({"spec": {"persistentVolumeReclaimPolicy": *random.pick(&["Delete", "Retain"])}}),
        "PersistentVolumeClaim" => json!({"spec": {"volumeName": *random.pick(&["pv-a-loose", "pv-a-data-db0-0"])}}),
        "Db" => random
            .pick(&[
                json!({"spec": {"children": []}}),
                json!({"spec": {"children": null}}),
                json!({"spec": {"claims": true}}),
                json!({"spec": {"quorum": null}}),
                json!({"spec": {"secret": "s2"}}),
                json!({"spec": {"replicas": null}}),
            ])
            .clone(),
        "CustomResourceDefinition" => {
            json!({"spec": {"versions": [{"name": "v1", "served": random.chance(50), "storage": true}]}})
        }
        "HorizontalPodAutoscaler" => match random.below(6) {
            0 => json!({"spec": {"scaleTargetRef": {"name": *random.pick(&["web0", "db0", "gone"])}}}),
            _ => json!({"spec": {"minReplicas": random.range(0, 3), "maxReplicas": 3}}),
        },
        "PodDisruptionBudget" => json!({"spec": {"minAvailable": random.range(0, 3), "maxUnavailable": null}}),
        "Ingress" => json!({"spec": {"ingressClassName": *random.pick(&["nginx", "other"])}}),
        "HTTPRoute" => json!({"spec": {"hostnames": random.pick(&[json!(["h1"]), json!(["h2"]), Value::Null])}}),
        "Gateway" => json!({"spec": {"listeners": cluster::listeners(random)}}),
        "IngressClass" => {
            json!({"metadata": {"annotations": {"ingressclass.kubernetes.io/is-default-class": "false"}}})
        }
        "Secret" | "ConfigMap" => json!({"data": random.pick(&[json!({"k": "dg=="}), Value::Null]).clone()}),
        _ => json!({"metadata": {"annotations": {"note": "n"}}}),
    };
    patch(random, state, &target, &with)
}

/// What kubelets and the scheduler write, and single pods.
fn pods(random: &mut Random, state: &State<'_>) -> Option<Request> {
    let target = any(random, state, &["Pod"])?;
    match random.below(5) {
        4 => {
            let container = json!([{"name": "c", "image": *random.pick(&["i:0", "i:1", "i:9"])}]);
            let deadline = if random.chance(50) { json!(60) } else { Value::Null };
            let both =
                [json!({"spec": {"containers": container}}), json!({"spec": {"activeDeadlineSeconds": deadline}})];
            let change = random.pick(&both).clone();
            patch(random, state, &target, &change)
        }
        0 => Some(Request::bind(user(random), target.key.clone(), &format!("n{}", 1 + random.below(3)))),
        1 | 2 => {
            let ready = *random.pick(&["True", "False"]);
            let phase = *random.pick(&["Running", "Running", "Failed"]);
            let with = json!({"status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}});
            Request::patch(user(random), state, target.key.clone(), &Val::from(&with), "status").ok()
        }
        _ => {
            let controller = any(random, state, &["ReplicaSet", "StatefulSet", "Db"])?;
            let api = format!("{}/{}", controller.key.kind.group, controller.version);
            let owner = json!([{"apiVersion": api, "kind": &*controller.key.kind.kind, "name": &*controller.key.name,
                "uid": &*controller.uid, "controller": true}]);
            let owner = if random.chance(50) { owner } else { Value::Null };
            patch(random, state, &target, &json!({"metadata": {"ownerReferences": owner}}))
        }
    }
}
