//! The manifests of what stands beside the workloads of the generated cluster: quotas, autoscalers, roles, webhooks,
//! certificates, what runs on every node.

use suture_model::value::Val;

use super::manifests::{self, APP, Ids, labelled, list, match_labels, object, one, texts};

/// Invariants of those templates that judge nothing without parameters: what tenants lease, and where labelled data belongs.
pub const POLICY: &str = "
apiVersion: suture.dev/v1alpha1
kind: Invariant
metadata: {name: tenant-lease-kept}
spec:
  template: tenant-lease-kept
  params: {leases: {t0: {cpu: 20000}, t1: {cpu: 20000}, t2: {cpu: 2000}, t3: {cpu: 20000, memory: 64Ti}, t4: {pods: 100000}}}
---
apiVersion: suture.dev/v1alpha1
kind: Invariant
metadata: {name: data-stays-resident}
spec:
  template: data-stays-resident
  params: {zones: {eu: [zone-]}}
";

/// How many tenants there are, and every how many namespaces one has a quota.
pub const TENANTS: usize = 5;
const QUOTAS: usize = 3;
/// CronJobs of a namespace.
const CRON_JOBS: usize = 5;

/// A Namespace with what rules over it: its tenant, in some a quota, who issues its certificates, who may read in it, jobs
/// that run by night.
pub fn namespace(ids: &mut Ids, ns: &str, index: usize, pods: usize) -> Vec<Val> {
    let mut made = vec![
        manifests::namespace(ids, ns, &format!("t{}", index % TENANTS)),
        manifests::custom(ids, "Tenant", ns, "tenant"),
        object("cert-manager.io/v1", "Issuer", ids.meta(ns, "ca"))
            .with("spec", Val::object([("selfSigned", Val::object([]))])),
        role(ids, ns),
        leaving(ids, ns),
    ];
    if index.is_multiple_of(QUOTAS) {
        let most = i64::try_from(pods).unwrap_or(i64::MAX).saturating_mul(3);
        let hard = [("pods", most.to_string()), ("requests.cpu", most.to_string())];
        let hard = Val::object(hard.map(|(resource, most)| (resource, Val::str(most))));
        made.push(object("v1", "ResourceQuota", ids.meta(ns, "quota")).with("spec", Val::object([("hard", hard)])));
        let limit = Val::object([
            ("type", Val::str("Container")),
            ("defaultRequest", Val::object([("cpu", Val::str("50m")), ("memory", Val::str("64Mi"))])),
        ]);
        let spec = Val::object([("limits", Val::list(vec![limit]))]);
        made.push(object("v1", "LimitRange", ids.meta(ns, "defaults")).with("spec", spec));
    }
    made.extend((0..CRON_JOBS).map(|number| cron_job(ids, ns, &format!("nightly-{number}"))));
    made
}

/// A PriorityClass.
pub fn priority_class(ids: &mut Ids, name: &str, value: i64) -> Val {
    object("scheduling.k8s.io/v1", "PriorityClass", ids.meta("", name)).with("value", Val::Int(value))
}

fn role(ids: &mut Ids, ns: &str) -> Val {
    let rule = Val::object([
        ("apiGroups", list(&[""])),
        ("resources", list(&["configmaps", "secrets"])),
        ("verbs", list(&["get", "list", "watch"])),
    ]);
    object("rbac.authorization.k8s.io/v1", "Role", ids.meta(ns, "reader")).with("rules", Val::list(vec![rule]))
}

/// Lets an account read in its namespace.
pub fn role_binding(ids: &mut Ids, ns: &str, account: &str) -> Val {
    let group = "rbac.authorization.k8s.io";
    let subject = [("kind", "ServiceAccount"), ("name", account), ("namespace", ns)];
    let role = [("apiGroup", group), ("kind", "Role"), ("name", "reader")];
    object(&format!("{group}/v1"), "RoleBinding", ids.meta(ns, account))
        .with("subjects", Val::list(vec![texts(subject)]))
        .with("roleRef", texts(role))
}

fn cron_job(ids: &mut Ids, ns: &str, name: &str) -> Val {
    let container = Val::object([("name", Val::str("main")), ("image", Val::str("registry.example.com/nightly:1.0"))]);
    let spec = Val::object([("containers", Val::list(vec![container])), ("restartPolicy", Val::str("Never"))]);
    let job = Val::object([("spec", Val::object([("template", manifests::template(one(APP, name), spec))]))]);
    object("batch/v1", "CronJob", ids.meta(ns, name))
        .with("spec", Val::object([("schedule", Val::str("0 3 * * *")), ("jobTemplate", job)]))
}

/// An autoscaler of a Deployment, which it has scaled.
pub fn autoscaler(ids: &mut Ids, ns: &str, app: &str, least: i64, most: i64) -> Val {
    object("autoscaling/v2", "HorizontalPodAutoscaler", ids.meta(ns, app))
        .with("spec", autoscaler_spec(app, least, most))
}

/// Its spec.
pub fn autoscaler_spec(app: &str, least: i64, most: i64) -> Val {
    Val::object([
        ("scaleTargetRef", texts([("apiVersion", "apps/v1"), ("kind", "Deployment"), ("name", app)])),
        ("minReplicas", Val::Int(least)),
        ("maxReplicas", Val::Int(most)),
    ])
}

/// A webhook that a Service answers, about workloads.
pub fn webhook(ids: &mut Ids, ns: &str, service: &str) -> Val {
    let rule = Val::object([
        ("apiGroups", list(&["apps"])),
        ("apiVersions", list(&["v1"])),
        ("operations", list(&["CREATE", "UPDATE"])),
        ("resources", list(&["deployments"])),
    ]);
    let backend = Val::object([("namespace", Val::str(ns)), ("name", Val::str(service)), ("port", Val::Int(80))]);
    let elsewhere = Val::object([
        ("key", Val::str("kubernetes.io/metadata.name")),
        ("operator", Val::str("NotIn")),
        ("values", list(&[ns])),
    ]);
    let webhook = Val::object([
        ("name", Val::str(format!("{service}.example.com"))),
        ("clientConfig", Val::object([("service", backend)])),
        ("rules", Val::list(vec![rule])),
        ("namespaceSelector", Val::object([("matchExpressions", Val::list(vec![elsewhere]))])),
        ("failurePolicy", Val::str("Fail")),
        ("sideEffects", Val::str("None")),
        ("admissionReviewVersions", list(&["v1"])),
    ]);
    object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", ids.meta("", service))
        .with("webhooks", Val::list(vec![webhook]))
}

/// A certificate with the Secret that it is written to.
pub fn certificate(ids: &mut Ids, ns: &str, app: &str) -> [Val; 2] {
    let secret = format!("{app}-tls");
    let spec = Val::object([
        ("secretName", Val::str(secret.as_str())),
        ("dnsNames", Val::list(vec![Val::str(format!("{app}.{ns}.example.com"))])),
        ("issuerRef", texts([("kind", "Issuer"), ("name", "ca")])),
    ]);
    let certificate = object("cert-manager.io/v1", "Certificate", ids.meta(ns, app)).with("spec", spec);
    [manifests::secret(ids, ns, &secret), certificate]
}

/// A certificate that is being deleted, and that its operator has not finished with.
fn leaving(ids: &mut Ids, ns: &str) -> Val {
    let meta = ids.meta(ns, "leaving").with("deletionTimestamp", Val::str("2026-01-02T00:00:00Z"));
    let meta = meta.with("finalizers", Val::list(vec![Val::str("example.com/revoke")]));
    let spec = Val::object([
        ("secretName", Val::str("leaving-tls")),
        ("issuerRef", texts([("kind", "Issuer"), ("name", "ca")])),
    ]);
    object("cert-manager.io/v1", "Certificate", meta).with("spec", spec)
}

/// What runs on every node, whatever keeps others off.
pub fn daemon_set(ids: &mut Ids, ns: &str, name: &str, nodes: usize) -> Val {
    let nodes = Val::Int(i64::try_from(nodes).unwrap_or(i64::MAX));
    let requests = Val::object([("cpu", Val::str("100m")), ("memory", Val::str("64Mi"))]);
    let container = Val::object([
        ("name", Val::str("main")),
        ("image", Val::str("registry.example.com/agent:1.0")),
        ("resources", Val::object([("requests", requests)])),
    ]);
    let spec = Val::object([
        ("containers", Val::list(vec![container])),
        ("priorityClassName", Val::str("system-node-critical")),
        ("tolerations", Val::list(vec![manifests::tight()])),
    ]);
    let labels = one(APP, name);
    let bound = Val::object([("maxUnavailable", Val::str("10%"))]);
    let strategy = Val::object([("type", Val::str("RollingUpdate")), ("rollingUpdate", bound)]);
    let counts = ["desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled"];
    object("apps/v1", "DaemonSet", labelled(&ids.meta(ns, name), labels.clone()).with("generation", Val::Int(1)))
        .with(
            "spec",
            Val::object([
                ("selector", match_labels(labels.clone())),
                ("updateStrategy", strategy),
                ("template", manifests::template(labels, spec)),
            ]),
        )
        .with("status", Val::object(counts.map(|count| (count, nodes.clone()))).with("observedGeneration", Val::Int(1)))
}

/// The spec of its pod on a node: with the affinity by which it is placed there, and what its controller tolerates.
pub fn daemon_spec(spec: &Val, node: &str) -> Val {
    let field = Val::object([
        ("key", Val::str("metadata.name")),
        ("operator", Val::str("In")),
        ("values", Val::list(vec![Val::str(node)])),
    ]);
    let terms =
        Val::object([("nodeSelectorTerms", Val::list(vec![Val::object([("matchFields", Val::list(vec![field]))])]))]);
    let required = Val::object([("requiredDuringSchedulingIgnoredDuringExecution", terms)]);
    let by_controller = [
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ];
    let tolerated = by_controller.map(|(condition, effect)| {
        Val::object([
            ("key", Val::str(format!("node.kubernetes.io/{condition}"))),
            ("operator", Val::str("Exists")),
            ("effect", Val::str(effect)),
        ])
    });
    let tolerated = spec.items_at(&["tolerations"]).iter().cloned().chain(tolerated).collect();
    spec.with("affinity", Val::object([("nodeAffinity", required)])).with("tolerations", Val::list(tolerated))
}
