//! The manifests of the generated cluster, one function for each kind, as an API server would return them.

use suture_model::value::{Str, Val};

/// When every generated object was made.
const CREATED: &str = "2026-01-01T00:00:00Z";
/// The label of the pods of one workload.
pub const APP: &str = "app";
/// The API group of the generated custom resources.
pub const GROUP: &str = "bench.suture.dev";
/// The node label that some Deployments select by.
pub const POOL: &str = "pool";
/// The pool that is nearly full, and the taint of its nodes.
pub const TIGHT: &str = "tight";
/// The class of important pods.
pub const CRITICAL: &str = "critical";
/// What a pod of the pool `tight` asks for: a node takes 26, and has 25.
const TIGHT_CPU: &str = "600m";
/// The label of nodes that says their zone.
pub const ZONE: &str = "topology.kubernetes.io/zone";

/// Gives out uids and resourceVersions in the order in which objects are made.
#[derive(Clone, Debug, Default)]
pub struct Ids {
    next: u64,
}

impl Ids {
    /// The metadata of one more object. An empty namespace is none.
    pub fn meta(&mut self, ns: &str, name: &str) -> Val {
        self.next += 1;
        let mut entries = vec![
            ("name", Val::str(name)),
            ("uid", Val::str(format!("{:08x}-5b1d-4c6e-8f00-{:012x}", self.next >> 16, self.next))),
            ("resourceVersion", Val::str(format!("{}", 100_000 + self.next))),
            ("creationTimestamp", Val::str(CREATED)),
        ];
        if !ns.is_empty() {
            entries.push(("namespace", Val::str(ns)));
        }
        Val::map(entries.into_iter().map(|(key, value)| (Str::from(key), value)).collect())
    }

    /// How many objects were made.
    pub fn made(&self) -> u64 {
        self.next
    }
}

/// An object without spec and status.
pub fn object(api_version: &str, kind: &str, meta: Val) -> Val {
    Val::object([("apiVersion", Val::str(api_version)), ("kind", Val::str(kind)), ("metadata", meta)])
}

/// A map with one entry.
pub fn one(key: &str, value: impl Into<Str>) -> Val {
    Val::object([(key, Val::str(value))])
}

/// A map of texts.
pub fn texts<const N: usize>(fields: [(&str, &str); N]) -> Val {
    Val::object(fields.map(|(field, text)| (field, Val::str(text))))
}

/// A list of texts.
pub fn list(texts: &[&str]) -> Val {
    Val::list(texts.iter().map(|text| Val::str(*text)).collect())
}

/// The taint of the pool that is nearly full, and what tolerates it.
pub fn tight() -> Val {
    texts([("key", POOL), ("value", TIGHT), ("effect", "NoSchedule")])
}

/// Metadata with these labels.
pub fn labelled(meta: &Val, labels: Val) -> Val {
    meta.with("labels", labels)
}

/// Metadata that names the object as managing controller.
pub fn controlled(meta: &Val, owner: &Val) -> Val {
    let field = |path: &[&str]| owner.at(path).cloned().unwrap_or_default();
    let reference = Val::object([
        ("apiVersion", field(&["apiVersion"])),
        ("kind", field(&["kind"])),
        ("name", field(&["metadata", "name"])),
        ("uid", field(&["metadata", "uid"])),
        ("controller", Val::Bool(true)),
        ("blockOwnerDeletion", Val::Bool(true)),
    ]);
    meta.with("ownerReferences", Val::list(vec![reference]))
}

/// The condition that makes nodes and pods ready.
fn ready() -> Val {
    Val::list(vec![Val::object([("type", Val::str("Ready")), ("status", Val::str("True"))])])
}

/// A Node of a zone and a pool, with room for twice its pods.
pub fn node(ids: &mut Ids, name: &str, zone: &str, pool: &str) -> Val {
    let labels = Val::object([
        ("kubernetes.io/hostname", Val::str(name)),
        ("kubernetes.io/os", Val::str("linux")),
        (ZONE, Val::str(zone)),
        (POOL, Val::str(pool)),
    ]);
    let allocatable = Val::object([("cpu", Val::str("16")), ("memory", Val::str("64Gi")), ("pods", Val::str("110"))]);
    let taints = if pool == TIGHT { vec![tight()] } else { vec![] };
    object("v1", "Node", labelled(&ids.meta("", name), labels))
        .with("spec", Val::object([("taints", Val::list(taints))]))
        .with("status", Val::object([("conditions", ready()), ("allocatable", allocatable)]))
}

/// A Namespace of a tenant.
pub fn namespace(ids: &mut Ids, name: &str, tenant: &str) -> Val {
    let labels = one("kubernetes.io/metadata.name", name).with("tenant", Val::str(tenant));
    object("v1", "Namespace", labelled(&ids.meta("", name), labels)).with("status", one("phase", "Active"))
}

/// A ConfigMap with one key.
pub fn config_map(ids: &mut Ids, ns: &str, name: &str) -> Val {
    object("v1", "ConfigMap", ids.meta(ns, name)).with("data", one("config.yaml", "x: 1"))
}

/// A Secret with one key.
pub fn secret(ids: &mut Ids, ns: &str, name: &str) -> Val {
    object("v1", "Secret", ids.meta(ns, name)).with("type", Val::str("Opaque")).with("data", one("password", "eA=="))
}

/// A ServiceAccount.
pub fn service_account(ids: &mut Ids, ns: &str, name: &str) -> Val {
    object("v1", "ServiceAccount", ids.meta(ns, name))
}

/// What a Deployment's pods ask of nodes and of one another, besides room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Places {
    /// Nothing.
    Any,
    /// A node of the pool `batch`.
    Batch,
    /// A node of the pool `tight`, spread over zones.
    Tight,
    /// To be spread over zones.
    Spread,
    /// A node for each.
    Apart,
}

/// What a pod template needs besides its labels.
#[derive(Clone, Debug)]
pub struct Needs<'a> {
    /// The ServiceAccount.
    pub account: &'a str,
    /// The ConfigMap it mounts.
    pub config: &'a str,
    /// The Secret it reads.
    pub secret: &'a str,
    /// Where its pods may be.
    pub places: Places,
    /// Whether its pods are important.
    pub critical: bool,
}

/// The spec of a workload's pods.
pub fn pod_spec(app: &str, needs: &Needs) -> Val {
    let cpu = if needs.places == Places::Tight { TIGHT_CPU } else { "100m" };
    let container = Val::object([
        ("name", Val::str("main")),
        ("image", Val::str(format!("registry.example.com/{app}:1.0"))),
        (
            "resources",
            Val::object([("requests", Val::object([("cpu", Val::str(cpu)), ("memory", Val::str("128Mi"))]))]),
        ),
        ("envFrom", Val::list(vec![Val::object([("secretRef", one("name", needs.secret))])])),
        (
            "volumeMounts",
            Val::list(vec![Val::object([("name", Val::str("config")), ("mountPath", Val::str("/etc/app"))])]),
        ),
    ]);
    let volume = Val::object([("name", Val::str("config")), ("configMap", one("name", needs.config))]);
    let spec = Val::object([
        ("containers", Val::list(vec![container])),
        ("volumes", Val::list(vec![volume])),
        ("serviceAccountName", Val::str(needs.account)),
        ("terminationGracePeriodSeconds", Val::Int(30)),
    ]);
    let spec = if needs.critical { spec.with("priorityClassName", Val::str(CRITICAL)) } else { spec };
    match needs.places {
        Places::Any => spec,
        Places::Batch => spec.with("nodeSelector", one(POOL, "batch")),
        Places::Spread => spec.with("topologySpreadConstraints", Val::list(vec![spread(ZONE, app)])),
        Places::Tight => spec
            .with("nodeSelector", one(POOL, TIGHT))
            .with("tolerations", Val::list(vec![tight()]))
            .with("topologySpreadConstraints", Val::list(vec![spread(ZONE, app)])),
        Places::Apart => {
            let selector = match_labels(one(APP, app));
            let term = Val::object([("topologyKey", Val::str("kubernetes.io/hostname")), ("labelSelector", selector)]);
            let required = Val::object([("requiredDuringSchedulingIgnoredDuringExecution", Val::list(vec![term]))]);
            spec.with("affinity", Val::object([("podAntiAffinity", required)]))
        }
    }
}

/// A spread constraint over the pods of one workload.
pub fn spread(topology: &str, app: &str) -> Val {
    Val::object([
        ("maxSkew", Val::Int(1)),
        ("topologyKey", Val::str(topology)),
        ("whenUnsatisfiable", Val::str("DoNotSchedule")),
        ("labelSelector", match_labels(one(APP, app))),
    ])
}

/// A pod template.
pub fn template(labels: Val, spec: Val) -> Val {
    Val::object([("metadata", Val::object([("labels", labels)])), ("spec", spec)])
}

/// A selector of these labels.
pub fn match_labels(labels: Val) -> Val {
    Val::object([("matchLabels", labels)])
}

fn counts(replicas: i64) -> Val {
    Val::object([
        ("observedGeneration", Val::Int(1)),
        ("replicas", Val::Int(replicas)),
        ("readyReplicas", Val::Int(replicas)),
        ("availableReplicas", Val::Int(replicas)),
        ("updatedReplicas", Val::Int(replicas)),
    ])
}

/// A Deployment whose rollout is done.
pub fn deployment(meta: Val, app: &str, replicas: i64, spec: &Val) -> Val {
    let bound = Val::object([("maxUnavailable", Val::str("25%")), ("maxSurge", Val::str("25%"))]);
    let strategy = Val::object([("type", Val::str("RollingUpdate")), ("rollingUpdate", bound)]);
    object("apps/v1", "Deployment", labelled(&meta, one(APP, app)).with("generation", Val::Int(1)))
        .with(
            "spec",
            Val::object([
                ("replicas", Val::Int(replicas)),
                ("selector", match_labels(one(APP, app))),
                ("strategy", strategy),
                ("template", template(one(APP, app), spec.clone())),
            ]),
        )
        .with("status", counts(replicas))
}

/// The one ReplicaSet of a Deployment.
pub fn replica_set(meta: &Val, deployment: &Val, app: &str, hash: &str, replicas: i64, spec: &Val) -> Val {
    let labels = Val::object([(APP, Val::str(app)), ("pod-template-hash", Val::str(hash))]);
    let meta = controlled(&labelled(meta, labels.clone()), deployment).with("generation", Val::Int(1));
    let meta = meta.with("annotations", one("deployment.kubernetes.io/revision", "1"));
    object("apps/v1", "ReplicaSet", meta)
        .with(
            "spec",
            Val::object([
                ("replicas", Val::Int(replicas)),
                ("selector", match_labels(labels.clone())),
                ("template", template(labels, spec.clone())),
            ]),
        )
        .with("status", counts(replicas))
}

/// A ready pod on a node.
pub fn pod(meta: &Val, labels: Val, owner: &Val, spec: &Val, node: &str) -> Val {
    object("v1", "Pod", controlled(&labelled(meta, labels), owner))
        .with("spec", spec.with("nodeName", Val::str(node)))
        .with("status", Val::object([("phase", Val::str("Running")), ("conditions", ready())]))
}

/// The same pod while it starts.
pub fn not_ready(pod: &Val) -> Val {
    let condition = Val::object([("type", Val::str("Ready")), ("status", Val::str("False"))]);
    pod.with_at(&["status", "conditions"], Val::list(vec![condition]))
}

/// A StatefulSet of which every member has a claim.
pub fn stateful_set(meta: Val, app: &str, replicas: i64, quorum: bool, spec: &Val) -> Val {
    let labels = one(APP, app);
    let own = if quorum { labels.with("suture.dev/quorum", Val::str("true")) } else { labels.clone() };
    let claim = Val::object([("metadata", one("name", "data")), ("spec", claim_spec(None))]);
    object("apps/v1", "StatefulSet", labelled(&meta, own).with("generation", Val::Int(1)))
        .with(
            "spec",
            Val::object([
                ("replicas", Val::Int(replicas)),
                ("serviceName", Val::str(app)),
                ("selector", match_labels(labels.clone())),
                ("template", template(labels, spec.clone())),
                ("volumeClaimTemplates", Val::list(vec![claim])),
            ]),
        )
        .with("status", counts(replicas))
}

/// The spec of a member's pod, which mounts its claim.
pub fn member_spec(spec: &Val, claim: &str) -> Val {
    let source = Val::object([("claimName", Val::str(claim))]);
    let volume = Val::object([("name", Val::str("data")), ("persistentVolumeClaim", source)]);
    let mut volumes = spec.items_at(&["volumes"]).to_vec();
    volumes.push(volume);
    spec.with("volumes", Val::list(volumes))
}

fn claim_spec(volume: Option<&str>) -> Val {
    let spec = Val::object([
        ("accessModes", Val::list(vec![Val::str("ReadWriteOnce")])),
        ("storageClassName", Val::str("fast")),
        ("resources", Val::object([("requests", one("storage", "20Gi"))])),
    ]);
    match volume {
        Some(volume) => spec.with("volumeName", Val::str(volume)),
        None => spec,
    }
}

/// A bound claim and its volume.
pub fn claim_and_volume(ids: &mut Ids, ns: &str, name: &str, app: &str, retain: bool) -> [Val; 2] {
    let labels = one(APP, app);
    let labels = if retain { labels.with("suture.dev/retain", Val::str("true")) } else { labels };
    let meta = labelled(&ids.meta(ns, name), labels);
    let volume = format!("pvc-{ns}-{name}");
    let uid = meta.get("uid").cloned().unwrap_or_default();
    let claim = object("v1", "PersistentVolumeClaim", meta)
        .with("spec", claim_spec(Some(&volume)))
        .with("status", one("phase", "Bound"));
    let claim_ref = Val::object([
        ("kind", Val::str("PersistentVolumeClaim")),
        ("namespace", Val::str(ns)),
        ("name", Val::str(name)),
        ("uid", uid),
    ]);
    let spec = Val::object([
        ("claimRef", claim_ref),
        ("persistentVolumeReclaimPolicy", Val::str(if retain { "Retain" } else { "Delete" })),
        ("storageClassName", Val::str("fast")),
    ]);
    let volume = object("v1", "PersistentVolume", ids.meta("", &volume))
        .with("spec", spec)
        .with("status", one("phase", "Bound"));
    [claim, volume]
}

/// A StorageClass.
pub fn storage_class(ids: &mut Ids, name: &str) -> Val {
    object("storage.k8s.io/v1", "StorageClass", ids.meta("", name))
        .with("provisioner", Val::str("csi.example.com"))
        .with("reclaimPolicy", Val::str("Delete"))
}

/// A Service that selects the pods of one workload; some are reached from outside, on nodes that have a pod.
pub fn service(ids: &mut Ids, ns: &str, app: &str, local: bool) -> Val {
    let port = Val::object([("port", Val::Int(80)), ("protocol", Val::str("TCP"))]);
    let spec = Val::object([("selector", one(APP, app)), ("ports", Val::list(vec![port]))]);
    let outside =
        |spec: Val| spec.with("type", Val::str("LoadBalancer")).with("externalTrafficPolicy", Val::str("Local"));
    let spec = if local { outside(spec) } else { spec };
    object("v1", "Service", ids.meta(ns, app)).with("spec", spec)
}

/// A PodDisruptionBudget over the pods of one workload.
pub fn budget(ids: &mut Ids, ns: &str, app: &str, max_unavailable: Val, allowed: i64) -> Val {
    let spec = Val::object([("maxUnavailable", max_unavailable), ("selector", match_labels(one(APP, app)))]);
    let status = Val::object([("disruptionsAllowed", Val::Int(allowed))]);
    object("policy/v1", "PodDisruptionBudget", ids.meta(ns, app)).with("spec", spec).with("status", status)
}

/// An Ingress of one host.
pub fn ingress(ids: &mut Ids, ns: &str, name: &str, host: &str, service: &str) -> Val {
    let backend = Val::object([(
        "service",
        Val::object([("name", Val::str(service)), ("port", Val::object([("number", Val::Int(80))]))]),
    )]);
    let path = Val::object([("path", Val::str("/")), ("pathType", Val::str("Prefix")), ("backend", backend)]);
    let rule = Val::object([("host", Val::str(host)), ("http", Val::object([("paths", Val::list(vec![path]))]))]);
    let spec = Val::object([("ingressClassName", Val::str("nginx")), ("rules", Val::list(vec![rule]))]);
    object("networking.k8s.io/v1", "Ingress", ids.meta(ns, name)).with("spec", spec)
}

/// A definition of a namespaced kind.
pub fn definition(ids: &mut Ids, kind: &str) -> Val {
    let plural = format!("{}s", kind.to_lowercase());
    let names = Val::object([("kind", Val::str(kind)), ("plural", Val::str(plural.clone()))]);
    let version = Val::object([("name", Val::str("v1")), ("served", Val::Bool(true)), ("storage", Val::Bool(true))]);
    let spec = Val::object([
        ("group", Val::str(GROUP)),
        ("names", names),
        ("scope", Val::str("Namespaced")),
        ("versions", Val::list(vec![version])),
    ]);
    let meta = ids.meta("", &format!("{plural}.{GROUP}"));
    object("apiextensions.k8s.io/v1", "CustomResourceDefinition", meta).with("spec", spec)
}

/// A custom resource.
pub fn custom(ids: &mut Ids, kind: &str, ns: &str, name: &str) -> Val {
    object(&format!("{GROUP}/v1"), kind, ids.meta(ns, name)).with("spec", Val::object([("size", Val::Int(1))]))
}
