//! What the template of new pods asks of the nodes that they go to: the hard constraints of `placement`.

use super::hazard;
use crate::object::{Key, Object};
use crate::selector::Selector;
use crate::value::{Str, Val};

/// A constraint that relates a new pod to the pods in its topology domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) topology: Str,
    pub(super) selector: Selector,
    /// The largest difference of a spread constraint; `None` for anti-affinity.
    pub(super) max_skew: Option<i64>,
    /// Whether the selector is narrowed to one revision, so that old pods are not meant.
    pub(super) by_revision: bool,
    /// The labels whose values a pod shares with those that are meant (`matchLabelKeys`).
    pub(super) shared_keys: Vec<Str>,
    /// Whether a spread constraint passes over nodes whose taints the pod does not tolerate (`nodeTaintsPolicy: Honor`).
    pub(super) heeds_taints: bool,
    /// Whether a spread constraint passes over nodes that the pod does not select (not with `nodeAffinityPolicy: Ignore`).
    pub(super) heeds_selection: bool,
    /// With fewer domains than that, a spread constraint takes it that there is an empty one (`minDomains`).
    pub(super) min_domains: i64,
}

/// The template of new pods, with what decides where they may go.
#[derive(Clone, Debug)]
pub struct Template {
    pub(super) val: Val,
    pub(super) terms: Vec<Term>,
    pub(super) may_always_pend: bool,
    /// The claims that its pods share.
    pub(super) claims: Vec<Str>,
    /// Terms of required anti-affinity that may be about pods of other namespaces.
    pub(super) beyond: Vec<Val>,
    /// Whether its pods may wait for something beside nodes, for good.
    pub(super) waits: bool,
    pub(super) requests: Vec<(&'static str, i64)>,
    /// What it requests beside cpu and memory.
    pub(super) others: Vec<(Str, i64)>,
    pub(super) ports: Vec<HostPort>,
    pub(super) admitted: Vec<bool>,
    pub(super) room: Vec<Room>,
}

/// The resources of which the snapshot keeps what is taken of each node.
const COUNTED: [&str; 2] = ["cpu", "memory"];

/// How many pods of a template a place takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Room {
    /// At most, were the group's own pods all gone; `None` without a bound.
    pub(super) most: Option<i64>,
    /// For certain, were they all to stay.
    pub(super) least: Option<i64>,
}

impl Room {
    /// No more than either says.
    pub(super) fn tighter(self, other: Self) -> Self {
        let least = |a: Option<i64>, b: Option<i64>| a.into_iter().chain(b).min();
        Self { most: least(self.most, other.most), least: least(self.least, other.least) }
    }

    /// For no more than so many pods: what takes them all is without a bound.
    pub(super) fn of(self, number: i64) -> Self {
        Self { most: self.most.filter(|most| *most < number), least: self.least.filter(|least| *least < number) }
    }
}

impl Template {
    /// The template of this pod template value ({metadata, spec}), for pods in a namespace.
    pub fn new(val: &Val, ns: &str) -> Self {
        let spec = val.get("spec").cloned().unwrap_or_default();
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let pinned = pinned(&spec).is_some();
        // the kubelet looks at no other pods
        let affinity = |kind: &str| {
            let terms = if pinned { &[] } else { spec.items_at(&["affinity", kind, required]) };
            terms.to_vec()
        };
        let mut terms: Vec<Term> = affinity("podAntiAffinity").iter().filter_map(|t| term(t, ns, None)).collect();
        for spread in spec.items_at(&["topologySpreadConstraints"]).iter().filter(|_| !pinned) {
            let hard = spread.str_at(&["whenUnsatisfiable"]).is_none_or(|w| &**w == "DoNotSchedule");
            if hard {
                terms.extend(term(spread, ns, Some(spread.int_at(&["maxSkew"]).unwrap_or(1))));
            }
        }
        let apart = affinity("podAntiAffinity");
        let foreign = apart.iter().any(|t| term(t, ns, None).is_none());
        let volumes = || spec.items_at(&["volumes"]).iter();
        let claims = volumes().filter_map(|v| v.str_at(&["persistentVolumeClaim", "claimName"])).cloned().collect();
        let made_for_it = volumes().any(|v| v.at_some(&["ephemeral"]).is_some());
        let mut of_init = ports_of(&spec, "initContainers");
        let gated = !spec.items_at(&["schedulingGates"]).is_empty();
        let may_always_pend =
            foreign || gated || !affinity("podAffinity").is_empty() || made_for_it || of_init.next().is_some();
        let amount = |resource: &str| crate::navigate::requests(&spec, resource);
        let requests = COUNTED.map(|resource| (resource, amount(resource)));
        let others = crate::navigate::requested(&spec).into_iter().filter(|name| !COUNTED.contains(&&**name));
        let others = others.map(|name| (name.clone(), amount(&name))).filter(|(_, amount)| *amount > 0).collect();
        Self {
            val: val.clone(),
            terms,
            may_always_pend,
            claims,
            beyond: apart.into_iter().filter(|t| reaches_others(t, ns)).collect(),
            waits: false,
            requests: requests.into_iter().filter(|(_, amount)| *amount > 0).collect(),
            others,
            ports: host_ports(&spec),
            admitted: Vec::new(),
            room: Vec::new(),
        }
    }

    /// The template's value.
    pub fn val(&self) -> &Val {
        &self.val
    }

    /// Takes a pod of this template to be admitted everywhere.
    pub fn anywhere(&mut self, places: usize) {
        self.admitted = vec![true; places];
        self.room = vec![Room::default(); places];
    }

    /// Whether a pod of this template may be placed there.
    pub fn admits(&self, place: usize) -> bool {
        self.admitted.get(place).copied().unwrap_or(false)
    }

    /// Whether a pod of this template may be placed anywhere.
    pub fn admits_any(&self) -> bool {
        self.admitted.contains(&true)
    }

    /// A pod made from the template by `maker`, with the labels that it adds: not placed, not ready.
    pub fn pod(&self, maker: &Key, owner: Option<&Object>, name: &str, labels: &[(&str, &Val)]) -> Object {
        let status = Val::object([("phase", Val::str("Pending"))]);
        let val = Val::object([("apiVersion", Val::str("v1")), ("kind", Val::str("Pod"))])
            .with("metadata", self.val.get("metadata").cloned().unwrap_or_default())
            .with_at(&["metadata", "name"], Val::str(name))
            .with_at(&["metadata", "namespace"], Val::Str(maker.ns.clone()))
            .with("spec", self.val.get("spec").cloned().unwrap_or_default())
            .with("status", status);
        let val = match owner.filter(|o| !o.uid.is_empty()) {
            Some(owner) => val.with_at(&["metadata", "ownerReferences"], Val::list(vec![controller_reference(owner)])),
            None => val,
        };
        let val = val.with_at(&["metadata", "uid"], Val::str(format!("new:{}/{name}", maker.ns)));
        let labelled =
            |val: Val, (key, value): &(&str, &Val)| val.with_at(&["metadata", "labels", key], (*value).clone());
        let val = labels.iter().fold(val, labelled);
        Object::from_val(&val).unwrap_or_else(|_| Object::bare(Key::of("Pod", &maker.ns, name)))
    }

    /// Whether a node that a pod is on has no port for one of this template.
    pub(super) fn wants_port_of(&self, pod: &Object) -> bool {
        let taken = || pod.val().get("spec").map(host_ports).unwrap_or_default();
        !self.ports.is_empty()
            && !hazard::finished(pod)
            && taken().iter().any(|taken| self.ports.iter().any(|port| port.excludes(taken)))
    }

    /// The node that its pods name themselves.
    pub(super) fn pinned(&self) -> Option<&Str> {
        pinned(self.spec())
    }

    pub(super) fn labels(&self) -> &Val {
        self.val.at(&["metadata", "labels"]).unwrap_or(&Val::Null)
    }

    pub(super) fn spec(&self) -> &Val {
        self.val.get("spec").unwrap_or(&Val::Null)
    }
}

/// The node that a pod spec names: its kubelet takes the pod without asking the scheduler, if it has room and ports for it
/// and the node is one that the pod selects (`pkg/kubelet/lifecycle/predicate.go`, `generalFilter`).
fn pinned(spec: &Val) -> Option<&Str> {
    spec.str_at(&["nodeName"]).filter(|name| !name.is_empty())
}

fn controller_reference(owner: &Object) -> Val {
    let group = &owner.key.kind.group;
    let api_version = if group.is_empty() { owner.version.to_string() } else { format!("{group}/{}", owner.version) };
    Val::object([
        ("apiVersion", Val::str(api_version)),
        ("kind", Val::Str(owner.key.kind.kind.clone())),
        ("name", Val::Str(owner.key.name.clone())),
        ("uid", Val::Str(owner.uid.clone())),
        ("controller", Val::Bool(true)),
    ])
}

/// A port that a pod takes of its node, which one pod has at a time (`pkg/scheduler/framework/plugins/nodeports/
/// node_ports.go`; with `hostNetwork` every port is one: `pkg/apis/core/v1/defaults.go`, `defaultHostNetworkPorts`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostPort {
    number: i64,
    protocol: Str,
    /// Of one address; `None` for all.
    address: Option<Str>,
}

impl HostPort {
    /// Whether not both can be had of a node (`pkg/scheduler/framework/types.go`, `HostPortInfo.CheckConflict`).
    fn excludes(&self, other: &Self) -> bool {
        let at_one = self.address.is_none() || other.address.is_none() || self.address == other.address;
        at_one && self.number == other.number && self.protocol == other.protocol
    }
}

/// The ports of its node that a pod takes for as long as it runs: those of init containers are left out.
pub(super) fn host_ports(spec: &Val) -> Vec<HostPort> {
    ports_of(spec, "containers").collect()
}

fn ports_of<'v>(spec: &'v Val, part: &str) -> impl Iterator<Item = HostPort> + use<'v> {
    let on_host = spec.bool_at(&["hostNetwork"]).unwrap_or(false);
    let ports = spec.items_at(&[part]).iter().flat_map(|container| container.items_at(&["ports"]));
    ports.filter_map(move |port| {
        let stated = port.int_at(&["hostPort"]).filter(|number| *number > 0);
        let number = stated.or_else(|| port.int_at(&["containerPort"]).filter(|_| on_host))?;
        let address = port.str_at(&["hostIP"]).filter(|ip| !matches!(&***ip, "" | "0.0.0.0"));
        let protocol = port.str_at(&["protocol"]).cloned().unwrap_or_else(|| "TCP".into());
        Some(HostPort { number, protocol, address: address.cloned() })
    })
}

/// A constraint, as far as it is about pods of the pod's own namespace: that it keeps pods of others apart, too, is not
/// relied on.
pub(super) fn term(val: &Val, ns: &str, max_skew: Option<i64>) -> Option<Term> {
    if !reaches_own(val, ns) {
        return None;
    }
    let selector = val.get("labelSelector").filter(|s| !s.is_null())?;
    let by_revision = val.items_at(&["matchLabelKeys"]).len() + val.items_at(&["mismatchLabelKeys"]).len() > 0;
    let policy = |field: &str, name: &str| val.str_at(&[field]).is_some_and(|policy| **policy == *name);
    Some(Term {
        topology: val.str_at(&["topologyKey"])?.clone(),
        selector: Selector::from_label_selector(selector),
        max_skew,
        by_revision,
        shared_keys: val.items_at(&["matchLabelKeys"]).iter().filter_map(Val::as_str).cloned().collect(),
        heeds_taints: policy("nodeTaintsPolicy", "Honor"),
        heeds_selection: !policy("nodeAffinityPolicy", "Ignore"),
        min_domains: val.int_at(&["minDomains"]).unwrap_or(1),
    })
}

impl Term {
    /// Whether an existing pod may be of the revision that new pods of a template are of. A Deployment's template lacks the
    /// hash only where it is that of no ReplicaSet yet.
    pub(super) fn may_share(&self, own: &Template, pod: &Object) -> bool {
        self.shared_keys.iter().all(|key| match own.labels().get(key) {
            Some(value) => pod.labels().get(key) == Some(value),
            None => &**key != "pod-template-hash",
        })
    }
}

/// Whether a term of pod affinity of a pod in one namespace may be about pods of another one, or of the same.
pub(super) fn reaches(term: &Val, own: &str, ns: &str) -> bool {
    let listed = term.items_at(&["namespaces"]);
    let selects = term.at_some(&["namespaceSelector"]).is_some();
    selects
        || listed.iter().any(|name| name.as_str().is_some_and(|name| **name == *ns))
        || (listed.is_empty() && own == ns)
}

/// Whether a term of pod affinity is about pods of the pod's own namespace (`interpodaffinity/plugin.go`,
/// `GetNamespaceLabelsSnapshot`; `core/v1/types.go`, `PodAffinityTerm`): it lists it, selects it, or says nothing of any.
fn reaches_own(term: &Val, ns: &str) -> bool {
    let listed = term.items_at(&["namespaces"]);
    let Some(selector) = term.at_some(&["namespaceSelector"]) else {
        return listed.is_empty() || listed.iter().any(|name| name.as_str().is_some_and(|name| **name == *ns));
    };
    // every namespace bears its name
    let named = Val::object([("kubernetes.io/metadata.name", Val::str(ns))]);
    let by_name = selector.items_at(&["matchExpressions"]).is_empty()
        && selector.at(&["matchLabels"]).is_none_or(|labels| labels.entries().all(|(key, _)| named.get(key).is_some()));
    let listed = listed.iter().any(|name| name.as_str().is_some_and(|name| **name == *ns));
    listed || (by_name && Selector::from_label_selector(selector).matches(&named))
}

/// Whether it may be about pods of another namespace.
fn reaches_others(term: &Val, ns: &str) -> bool {
    let other = |name: &Val| name.as_str().is_none_or(|name| **name != *ns);
    let beyond = |selector: &Val| selector.at(&["matchLabels", "kubernetes.io/metadata.name"]).is_none_or(other);
    term.at_some(&["namespaceSelector"]).is_some_and(beyond) || term.items_at(&["namespaces"]).iter().any(other)
}

/// What the API server fills in where a pod template says nothing (`pkg/apis/core/v1/zz_generated.defaults.go`,
/// `SetObjectDefaults_PodTemplate`), by the last part of a field's path.
const DEFAULTS: [(&str, Filled); 14] = [
    ("apiVersion", Filled::Text("v1")),
    ("defaultMode", Filled::Number(420)),
    ("dnsPolicy", Filled::Text("ClusterFirst")),
    ("enableServiceLinks", Filled::True),
    ("failureThreshold", Filled::Number(3)),
    ("periodSeconds", Filled::Number(10)),
    ("protocol", Filled::Text("TCP")),
    ("schedulerName", Filled::Text("default-scheduler")),
    ("scheme", Filled::Text("HTTP")),
    ("successThreshold", Filled::Number(1)),
    ("terminationGracePeriodSeconds", Filled::Number(30)),
    ("terminationMessagePath", Filled::Text("/dev/termination-log")),
    ("terminationMessagePolicy", Filled::Text("File")),
    ("timeoutSeconds", Filled::Number(1)),
];

enum Filled {
    Text(&'static str),
    Number(i64),
    True,
}

/// Whether two pod templates make the same pods: what means the same absent or empty, and what the API server fills in, is
/// left aside.
pub(super) fn same(a: &Val, b: &Val) -> bool {
    let metadata = |val: &Val| val.get("metadata").map(kept);
    let spec = |val: &Val| val.get("spec").map(filled);
    a == b || (metadata(a) == metadata(b) && spec(a) == spec(b))
}

/// Whether a workload makes the same pods as before.
pub(crate) fn is_kept(before: &Object, now: &Object) -> bool {
    let template = |o: &Object| o.val().at(&["spec", "template"]).cloned().unwrap_or_default();
    same(&template(before), &template(now))
}

/// A value without fields that mean the same absent or empty.
fn kept(val: &Val) -> Val {
    without(val, &|_, key, _| key == "creationTimestamp")
}

/// A pod spec without those fields, and without what the API server fills in.
fn filled(spec: &Val) -> Val {
    without(spec, &|within, key, value| match key {
        // another name of serviceAccountName
        "serviceAccount" => true,
        // of a container it means something else
        "restartPolicy" => within.get("containers").is_some() && value.as_str().is_some_and(|s| &**s == "Always"),
        "imagePullPolicy" => value.as_str().is_some_and(|policy| **policy == *pull_policy(within)),
        _ => DEFAULTS.iter().any(|(known, filled)| {
            *known == key
                && match filled {
                    Filled::Text(text) => value.as_str().is_some_and(|s| &**s == *text),
                    Filled::Number(number) => value.as_int() == Some(*number),
                    Filled::True => *value == Val::Bool(true),
                }
        }),
    })
}

/// When a container's image is pulled, if it does not say (`pkg/apis/core/v1/defaults.go`, `SetDefaults_Container`).
fn pull_policy(container: &Val) -> &'static str {
    let image = container.str_at(&["image"]).map_or("", |image| &**image);
    let (name, digest) = image.split_once('@').map_or((image, false), |(name, _)| (name, true));
    let tag = name.rsplit('/').next().and_then(|last| last.split_once(':')).map(|(_, tag)| tag);
    if tag == Some("latest") || (tag.is_none() && !digest) { "Always" } else { "IfNotPresent" }
}

/// A value without null and empty fields, and without those that `drops` says, which is given what they are in.
fn without(val: &Val, drops: &dyn Fn(&Val, &str, &Val) -> bool) -> Val {
    match val {
        Val::Map(map) => Val::map(
            map.iter()
                .filter(|(key, value)| !drops(val, key, value))
                .map(|(key, value)| (key.clone(), without(value, drops)))
                .filter(|(_, v)| !matches!(v, Val::Null) && !matches!(v, Val::Map(m) if m.is_empty()))
                .collect(),
        ),
        Val::List(items) => Val::list(items.iter().map(|item| without(item, drops)).collect()),
        other => other.clone(),
    }
}
