//! What new pods of a workload ask for, and how many are missing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::cluster::Cluster;
use crate::controllers::deployment::max_surge;
use crate::controllers::statefulset::{first_ordinal, pod_ordinal};
use crate::effects::not_ready;
use crate::effects::scheduling::template::Template;
use crate::fields::{
    SCHEDULING, Tolerance, class_named, daemon_pod_spec, node_constraint, node_matches, same_template, tolerance,
    volume_admits,
};
use crate::kinds::{Kind, KindTraits};
use crate::navigate;
use crate::object::{Body, Key, Object};
use crate::state::State;
use crate::value::{Str, Val};

/// New pods that are alike.
pub struct Asked {
    /// Their template, with what admission adds to it.
    pub template: Template,
    /// The volumes that they use.
    pub volumes: Vec<Arc<Object>>,
    /// The nodes where volumes for claims of theirs that are not bound may be had; `None` for any.
    pub provided: Option<BTreeSet<Str>>,
    /// The only node that they may be on, as a DaemonSet's pod.
    pub only: Option<Str>,
    /// How many there are.
    pub number: i64,
}

/// The pods of a workload.
#[derive(Default)]
pub struct Wants {
    /// Those that are to be placed.
    pub new: Vec<Asked>,
    /// How many there are on each node of those that are placed as the workload asks; not told of a DaemonSet.
    pub placed: BTreeMap<Str, i64>,
    /// Those pods of the state that are of the new ones' revision, as far as can be told.
    pub alike: BTreeSet<*const Object>,
    /// Those that are replaced, since they ask for something else.
    pub leaving: BTreeSet<Key>,
}

impl Wants {
    /// How many are to be placed.
    pub fn missing(&self) -> i64 {
        self.new.iter().map(|asked| asked.number).fold(0, i64::saturating_add)
    }
}

impl Asked {
    /// Whether a node is one that they may be on, whatever pods are there; why not.
    pub fn rejects(&self, node: &Object) -> Option<&'static str> {
        // of the pods of a DaemonSet a node is one of thousands
        if self.only.as_ref().is_some_and(|name| *name != node.key.name) {
            return Some("not selected");
        }
        let spec = self.template.spec();
        let pinned = self.template.pinned();
        if pinned.is_some_and(|name| *name != node.key.name) || !node_matches(spec, node) {
            return Some("not selected");
        }
        // a kubelet heeds only what evicts
        let heeded = if pinned.is_some() { &["NoExecute"][..] } else { SCHEDULING };
        match tolerance(spec, node, heeded) {
            Tolerance::Never => return Some("taint not tolerated"),
            Tolerance::Limited => return Some("taint tolerated for some time only"),
            Tolerance::Forever => {}
        }
        if self.only.is_none() && not_ready(node) == Some(true) {
            return Some("not ready");
        }
        let reachable = self.volumes.iter().all(|volume| volume_admits(volume, node))
            && self.provided.as_ref().is_none_or(|nodes| nodes.contains(&node.key.name));
        (!reachable).then_some("volume not usable there")
    }
}

/// The nodes where a volume for a claim that is not bound may be had; `None` for any: where its class provides some, or, if
/// nothing does, where a free one is that was made by hand.
fn provided(state: &State, claim: &Object) -> Option<BTreeSet<Str>> {
    let named = class_named(claim.val());
    let class = named.and_then(|name| state.get(&Key::of("StorageClass", "", name)))?;
    let by_hand = class.val().str_at(&["provisioner"]).is_some_and(|name| &**name == "kubernetes.io/no-provisioner");
    if !by_hand {
        let is_free = class.val().items_at(&["allowedTopologies"]).is_empty();
        let nodes = || navigate::possible_nodes(state, claim).into_iter().map(|node| node.key.name.clone()).collect();
        return (!is_free).then(nodes);
    }
    let volumes = state.list(&Kind::new("", "PersistentVolume"), None).into_iter();
    let is_free = |volume: &&Arc<Object>| {
        let of = volume.val().str_at(&["spec", "storageClassName"]).map(|name| &**name);
        volume.live() && volume.val().at_some(&["spec", "claimRef"]).is_none() && of == named
    };
    let volumes: Vec<&Arc<Object>> = volumes.filter(is_free).collect();
    let nodes = state.list(&Kind::new("", "Node"), None).into_iter();
    let reached = nodes.filter(|node| volumes.iter().any(|volume| volume_admits(volume, node)));
    Some(reached.map(|node| node.key.name.clone()).collect())
}

/// The spec of the pods that an object makes as they are admitted: with the defaults of LimitRanges, with what its
/// RuntimeClass adds (`plugin/pkg/admission/runtimeclass`; KEP-688 for the overhead), with what the DaemonSet controller
/// tolerates.
pub fn admitted(state: &State, object: &Object) -> Option<Val> {
    let mut spec = navigate::admitted_spec(state, object)?;
    let class = spec.name_at(&["runtimeClassName"]).map(|name| Key::of("RuntimeClass", "", name));
    if let Some(class) = class.and_then(|key| state.get(&key)).filter(|class| class.live() && !is_pod(object)) {
        if let Some(overhead) = class.val().at_some(&["overhead", "podFixed"]) {
            spec = spec.with("overhead", overhead.clone());
        }
        let selected = class.val().at_some(&["scheduling", "nodeSelector"]).cloned().unwrap_or_default();
        for (key, value) in selected.entries() {
            spec = spec.with_at(&["nodeSelector", key], value.clone());
        }
        let added = class.val().items_at(&["scheduling", "tolerations"]);
        if !added.is_empty() {
            let all = spec.items_at(&["tolerations"]).iter().chain(added).cloned().collect();
            spec = spec.with("tolerations", Val::list(all));
        }
    }
    Some(if object.key.kind.is("DaemonSet") { daemon_pod_spec(&spec) } else { spec })
}

fn is_pod(object: &Object) -> bool {
    object.key.kind.is("Pod")
}

/// The template of the pods that an object makes, as they are admitted.
pub fn template(state: &State, object: &Object) -> Option<Template> {
    let spec = admitted(state, object)?;
    let metadata = Val::object([("labels", navigate::template_labels(state, object).unwrap_or_default())]);
    Some(Template::new(&Val::object([("metadata", metadata), ("spec", spec)]), &object.key.ns))
}

/// The pods of an object: those that it controls; of a custom resource also those that its adapter selects.
pub fn pods_of<'s>(state: &'s State, object: &Object) -> Vec<&'s Arc<Object>> {
    if is_pod(object) {
        return state.get(&object.key).into_iter().collect();
    }
    let mut pods = navigate::pods_owned_by(state, object);
    if state.adapter(object).is_some() {
        pods.extend(navigate::selected(state, object));
        pods.sort_by(|a, b| a.key.cmp(&b.key));
        pods.dedup_by(|a, b| a.key == b.key);
    }
    pods
}

/// How many pods a rollout of a Deployment that is not done makes beside the old ones, which are among these pods of it.
pub fn surge(cluster: &Cluster<'_, '_>, object: &Object, pods: &[&Arc<Object>], wanted: i64) -> i64 {
    if !object.key.kind.is("Deployment") {
        return 0;
    }
    let staying = pods.iter().filter(|pod| cluster.stays(pod));
    // a pod of each owner
    let of_owners: BTreeMap<_, _> = staying.filter_map(|pod| Some((&pod.controller()?.uid, pod))).collect();
    let mut sets = of_owners.into_values().filter_map(|pod| navigate::controller_of(cluster.state, pod));
    let rolls = sets.any(|set| !same_template(set, object));
    if rolls { max_surge(object, wanted) } else { 0 }
}

/// What an object asks for so that it has `wanted` pods; a DaemonSet wants one on each of its nodes.
pub fn wants(cluster: &Cluster<'_, '_>, object: &Object, wanted: i64) -> Wants {
    let state = cluster.state;
    let mut found = Wants::default();
    let Some(template) = template(state, object) else { return found };
    let mut placed: Vec<&Arc<Object>> = Vec::new();
    let mut alike_ones = Alike { object, own: &template, known: BTreeMap::new() };
    for pod in pods_of(state, object).into_iter().filter(|pod| cluster.stays(pod)) {
        if alike_ones.has(pod) {
            placed.push(pod);
        } else {
            found.leaving.insert(pod.key.clone());
        }
    }
    found.alike = placed.iter().map(|pod| Arc::as_ptr(pod)).collect();
    found.new = if object.key.kind.is("DaemonSet") {
        let taken: BTreeSet<&Str> = placed.iter().map(|pod| &pod.node).collect();
        let nodes = navigate::daemon_nodes(state, object).into_iter().map(|node| &node.key.name);
        let open = nodes.filter(|name| !taken.contains(name) && !cluster.gone.contains(*name));
        open.map(|name| Asked { only: Some(name.clone()), ..alike(state, object, &template, None, 1) }).collect()
    } else if object.key.kind.is("StatefulSet") {
        let there: BTreeSet<i64> = placed.iter().filter_map(|pod| pod_ordinal(object, &pod.key.name)).collect();
        let first = first_ordinal(object);
        let open = (first..first.saturating_add(wanted.min(ORDINALS_MAX))).filter(|ordinal| !there.contains(ordinal));
        merged(open.map(|ordinal| alike(state, object, &template, Some(ordinal), 1)).collect())
    } else {
        let missing = wanted.saturating_sub(i64::try_from(placed.len()).unwrap_or(i64::MAX)).max(0);
        if missing == 0 { Vec::new() } else { vec![alike(state, object, &template, None, missing)] }
    };
    if !object.key.kind.is("DaemonSet") {
        placed.into_iter().for_each(|pod| *found.placed.entry(pod.node.clone()).or_default() += 1);
    }
    found
}

/// More members of a StatefulSet are not told apart.
const ORDINALS_MAX: i64 = 10_000;

/// New pods of one kind; a StatefulSet's by their ordinal.
pub fn alike(state: &State, object: &Object, template: &Template, ordinal: Option<i64>, number: i64) -> Asked {
    let named = template.spec().items_at(&["volumes"]).iter();
    let shared = named.filter_map(|volume| volume.name_at(&["persistentVolumeClaim", "claimName"]).map(str::to_owned));
    let claims = object.val().items_at(&["spec", "volumeClaimTemplates"]).iter();
    let own = claims
        .filter_map(|claim| Some(format!("{}-{}-{}", claim.str_at(&["metadata", "name"])?, object.key.name, ordinal?)));
    let mut volumes = Vec::new();
    let mut nodes: Option<BTreeSet<Str>> = None;
    for name in shared.chain(own) {
        let key = Key::of("PersistentVolumeClaim", &object.key.ns, &name);
        let Some(claim) = state.get(&key).filter(|claim| claim.live()) else { continue };
        match navigate::volume(state, claim) {
            Some(volume) => volumes.push(volume.clone()),
            None => {
                let here = provided(state, claim);
                nodes = match (nodes, here) {
                    (Some(nodes), Some(here)) => Some(nodes.intersection(&here).cloned().collect()),
                    (nodes, here) => nodes.or(here),
                };
            }
        }
    }
    Asked { template: template.clone(), volumes, provided: nodes, only: None, number }
}

/// Those that are alike together, in the order of the first of each.
fn merged(each: Vec<Asked>) -> Vec<Asked> {
    let mut found: Vec<Asked> = Vec::new();
    for asked in each {
        let affinity = |asked: &Asked| -> Vec<Option<Val>> {
            asked.volumes.iter().map(|volume| crate::fields::volume_affinity(volume).cloned()).collect()
        };
        let same = |other: &&mut Asked| affinity(other) == affinity(&asked) && other.provided == asked.provided;
        match found.iter_mut().find(same) {
            Some(other) => other.number = other.number.saturating_add(1),
            None => found.push(asked),
        }
    }
    found
}

/// Whether a pod stays as it is although its template asks for something else: its controller replaces it only when it is
/// deleted, or its ordinal is below the partition.
pub fn is_kept(object: &Object, pod: &Object) -> bool {
    let strategy = |field: &[&str]| object.val().at(&[&["spec", "updateStrategy"], field].concat()).cloned();
    let is_rolled = object.key.kind.is("StatefulSet") || object.key.kind.is("DaemonSet");
    let on_delete = strategy(&["type"]).is_some_and(|kind| kind == Val::str("OnDelete"));
    let partition = || object.val().int_at(&["spec", "updateStrategy", "rollingUpdate", "partition"]).unwrap_or(0);
    let below = || pod_ordinal(object, &pod.key.name).is_some_and(|ordinal| ordinal < partition());
    object.key.kind.has(KindTraits::keeps_pods)
        || (is_rolled && on_delete)
        || (object.key.kind.is("StatefulSet") && below())
}

/// Whether a pod asks for what new ones ask for, so that its place is one for them.
fn asks_alike(object: &Object, own: &Template, pod: &Object) -> bool {
    let Some(spec) = pod.val().get("spec") else { return false };
    let theirs = Template::new(&Val::object([("spec", spec.clone())]), &pod.key.ns);
    let part = |of: &Val, path: &[&str]| of.at_some(path).cloned();
    // a DaemonSet's pod bears the affinity to its node, and what its controller tolerates
    let by_node = object.key.kind.is("DaemonSet");
    let pinned = own.pinned().is_some();
    own.requests == theirs.requests
        && own.others == theirs.others
        && own.ports == theirs.ports
        && (by_node || node_constraint(own.spec()) == node_constraint(spec))
        && own.pinned().is_none_or(|name| *name == pod.node)
        && (pinned
            || [&["affinity", "podAffinity"][..], &["affinity", "podAntiAffinity"], &["topologySpreadConstraints"]]
                .iter()
                .all(|path| part(own.spec(), path) == part(spec, path)))
        && (by_node || tolerated(own.spec()) == tolerated(spec))
}

/// The tolerations of a spec but for those of conditions of nodes, which admission adds.
pub fn tolerated(spec: &Val) -> BTreeSet<&Val> {
    let of_condition =
        |toleration: &&Val| toleration.str_at(&["key"]).is_some_and(|key| key.starts_with("node.kubernetes.io/"));
    spec.items_at(&["tolerations"]).iter().filter(|toleration| !of_condition(toleration)).collect()
}

/// Which pods ask for what new ones ask for, worked out once for those of a body.
struct Alike<'o> {
    object: &'o Object,
    own: &'o Template,
    known: BTreeMap<*const Body, bool>,
}

impl Alike<'_> {
    fn has(&mut self, pod: &Object) -> bool {
        let asks = || is_kept(self.object, pod) || asks_alike(self.object, self.own, pod);
        // a pod that names its node has to be there, and an ordinal decides about a partition
        let by_itself = self.own.pinned().is_some() || self.object.key.kind.is("StatefulSet");
        match by_itself {
            true => asks(),
            false => *self.known.entry(Arc::as_ptr(&pod.body)).or_insert_with(asks),
        }
    }
}
