//! Which instances a change can reach: the inverse of every navigation that an invariant uses in the future state.
//!
//! An instance whose readings are the same with and without the change has the same verdict; only the others are
//! judged. Each navigation is inverted over the objects that some scenario changes:
//!
//! | navigation | reached from a changed object |
//! |---|---|
//! | the object itself | itself |
//! | `selects`, `endpoints`, budgets | whatever selects a pod that the change touches, or a template that it may use |
//! | `podsOwnedBy` | the controllers above such a pod |
//! | `referrers`, `resolvesIn` | what it refers to, what refers to it |
//! | `ownersIn`, `wantedBy`, … | its owners and its dependents |
//! | `hostClaims`, `hostClaimants` | who claims what it claims |
//! | `instances` | the definition of its kind |
//! | `volume` | claim and volume of each other |
//! | `admittedNodes` | workloads whose node constraints match a changed node |
//! | lists of the state | every instance, if the list's kind changed |
//!
//! A node that changes reaches the workloads that have pods on it; a rollout elsewhere, under way before, that could
//! use the node as well is not judged again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suture_model::kinds::Kind;
use suture_model::navigate;
use suture_model::object::{Key, Object};
use suture_model::references::references;
use suture_model::scenario::Scenario;
use suture_model::state::State;
use suture_model::value::{Str, Val};
use suture_specs::compile::CompiledInvariant;
use suture_specs::functions::{Func, world_field};
use suture_specs::ir::{Expr, Node};
use suture_specs::value::{Value, World};

/// Kinds that select pods, beside custom resources with an adapter.
const SELECTING: [&str; 8] = [
    "Service",
    "PodDisruptionBudget",
    "NetworkPolicy",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "Job",
];

/// An object before and after.
struct Changed {
    key: Key,
    versions: Vec<Arc<Object>>,
}

/// What a change touches, worked out once for all invariants.
pub struct Surface<'s, 'a> {
    before: &'s State<'a>,
    scenarios: &'s [Scenario<'a>],
    changed: Vec<Changed>,
    pod_labels: BTreeSet<(Str, Val)>,
    controllers: BTreeSet<Key>,
    selecting: Option<BTreeSet<Key>>,
    nodes: Option<BTreeSet<Key>>,
}

impl<'s, 'a> Surface<'s, 'a> {
    /// The surface of a change that leads to these scenarios.
    pub fn new(before: &'s State<'a>, scenarios: &'s [Scenario<'a>]) -> Self {
        let mut versions: BTreeMap<Key, Vec<Arc<Object>>> = BTreeMap::new();
        for scenario in scenarios {
            for (key, now) in scenario.state.delta() {
                let all = versions.entry(key.clone()).or_insert_with(|| before.get(key).into_iter().cloned().collect());
                if let Some(now) = now {
                    if !all.iter().any(|known| Arc::ptr_eq(known, now)) {
                        all.push(now.clone());
                    }
                }
            }
        }
        let changed: Vec<Changed> = versions.into_iter().map(|(key, versions)| Changed { key, versions }).collect();
        let mut surface = Self {
            before,
            scenarios,
            changed,
            pod_labels: BTreeSet::new(),
            controllers: BTreeSet::new(),
            selecting: None,
            nodes: None,
        };
        surface.touch_pods();
        surface
    }

    /// The keys of all changed objects.
    pub fn changed(&self) -> impl Iterator<Item = &Key> {
        self.changed.iter().map(|c| &c.key)
    }

    /// The states to look in: what the watch shows, and every scenario.
    fn states(&self) -> impl Iterator<Item = &State<'a>> {
        std::iter::once(self.before).chain(self.scenarios.iter().map(|s| &s.state))
    }

    /// The labels of pods that the change may touch, existing or to be made, and the controllers above them.
    fn touch_pods(&mut self) {
        let mut labels = BTreeSet::new();
        let mut controllers = BTreeSet::new();
        let mut bodies: BTreeSet<(Str, *const suture_model::object::Body)> = BTreeSet::new();
        for state in self.states().take(2).chain(self.scenarios.iter().skip(1).map(|s| &s.state)) {
            for changed in &self.changed {
                for object in &changed.versions {
                    touch(state, object, &mut labels, &mut controllers, &mut bodies);
                }
            }
        }
        self.pod_labels = labels;
        self.controllers = controllers;
    }

    /// The instances of an invariant that the change can reach, in the order of their names.
    pub fn instances(&mut self, compiled: &CompiledInvariant) -> BTreeSet<Key> {
        let uses = Uses::of(compiled);
        let mut reached: BTreeSet<Key> = self.changed.iter().map(|c| c.key.clone()).collect();
        let any = |funcs: &[Func]| funcs.iter().any(|f| uses.funcs.contains(f));
        if any(&[Func::Selects, Func::Endpoints, Func::DisruptionsWhenSettled, Func::WantedReplicas]) {
            reached.extend(self.selecting().iter().cloned());
        }
        if any(&[Func::PodsOwnedBy]) {
            reached.extend(self.controllers.iter().cloned());
        }
        if any(&[Func::Referrers, Func::ResolvesIn, Func::References, Func::HasObject]) {
            reached.extend(self.referring());
        }
        if any(&[Func::OwnersIn, Func::UnresolvedOwners, Func::WantedBy]) {
            reached.extend(self.kin());
        }
        if any(&[Func::HostClaims, Func::HostClaimants]) {
            reached.extend(self.claimants());
        }
        if any(&[Func::Instances]) {
            let defined = self.changed.iter().filter_map(|c| navigate::definition_of(self.before, &c.key.kind));
            reached.extend(defined.map(|d| d.key.clone()));
        }
        if any(&[Func::Volume]) {
            reached.extend(self.volumes());
        }
        if any(&[Func::AdmittedNodes]) {
            reached.extend(self.admitting().iter().cloned());
        }
        if any(&[Func::PodsMatching]) {
            let namespaces = self.pod_labels.iter().map(|(ns, _)| ns.clone()).collect::<BTreeSet<_>>();
            for ns in namespaces {
                reached.insert(Key::of("Namespace", "", &ns));
                if !uses.only_namespaces {
                    reached.extend(self.of_kinds(compiled, Some(&ns)));
                }
            }
        }
        let touched = |kind: &Kind| {
            (kind.is("Pod") && !self.pod_labels.is_empty()) || self.changed.iter().any(|c| c.key.kind == *kind)
        };
        let named = |kind: &str| touched(&Kind::builtin(kind).unwrap_or_else(|| Kind::new("", kind)))
            || self.changed.iter().any(|c| *c.key.kind.kind == *kind);
        if uses.everything || uses.lists.iter().any(touched) || uses.named.iter().any(|k| named(k)) {
            reached.extend(self.of_kinds(compiled, None));
        }
        for kind in &uses.in_namespace {
            let places: BTreeSet<Str> = self
                .changed
                .iter()
                .filter(|c| *c.key.kind.kind == **kind || (&**kind == "Pod" && !self.pod_labels.is_empty()))
                .map(|c| c.key.ns.clone())
                .collect();
            for ns in places {
                reached.insert(Key::of("Namespace", "", &ns));
                reached.extend(self.of_kinds(compiled, Some(&ns)));
            }
        }
        let adapters = self.before.base().adapters();
        reached.retain(|key| {
            self.versions(key).iter().any(|object| compiled.for_each.matches(object, adapters.as_ref()))
        });
        reached
    }

    /// All objects of the invariant's kinds.
    pub fn of_kinds(&self, compiled: &CompiledInvariant, ns: Option<&str>) -> BTreeSet<Key> {
        let adapters = self.before.base().adapters();
        let mut found = BTreeSet::new();
        for state in self.states() {
            for kind in state.kinds() {
                let instances = state.list(&kind, ns).into_iter();
                let instances = instances.filter(|o| compiled.for_each.matches(o, adapters.as_ref()));
                found.extend(instances.map(|o| o.key.clone()));
            }
        }
        found
    }

    /// An object as each state has it, as far as they differ.
    fn versions(&self, key: &Key) -> Vec<&Arc<Object>> {
        match self.changed.iter().find(|c| c.key == *key) {
            Some(changed) => changed.versions.iter().collect(),
            None => self.before.get(key).into_iter().collect(),
        }
    }

    /// Whatever selects a touched pod or template.
    fn selecting(&mut self) -> &BTreeSet<Key> {
        if self.selecting.is_none() {
            let mut found = BTreeSet::new();
            let namespaces: BTreeSet<&Str> = self.pod_labels.iter().map(|(ns, _)| ns).collect();
            let mut kinds: Vec<Kind> = SELECTING.iter().filter_map(|k| Kind::builtin(k)).collect();
            kinds.extend(self.before.base().adapters().kinds());
            for ns in namespaces {
                let labels: Vec<&Val> = self.pod_labels.iter().filter(|(n, _)| n == ns).map(|(_, l)| l).collect();
                for kind in &kinds {
                    for state in self.states() {
                        for object in state.list(kind, Some(ns)) {
                            if found.contains(&object.key) {
                                continue;
                            }
                            let selector = navigate::selector_of(state, object);
                            if selector.is_some_and(|s| labels.iter().any(|l| s.matches(l))) {
                                found.insert(object.key.clone());
                            }
                        }
                        if state.delta().keys().all(|k| k.kind != *kind) && !std::ptr::eq(state, self.before) {
                            // nothing of this kind differs from what was looked at already
                            continue;
                        }
                    }
                }
            }
            found.extend(self.controllers.iter().cloned());
            self.selecting = Some(found);
        }
        self.selecting.get_or_insert_with(BTreeSet::new)
    }

    /// What refers to a changed object, and what a changed object refers to.
    fn referring(&self) -> BTreeSet<Key> {
        let adapters = self.before.base().adapters().as_ref();
        let mut found = BTreeSet::new();
        for changed in &self.changed {
            for state in self.states() {
                found.extend(state.referrers(&changed.key).into_iter().map(|o| o.key.clone()));
            }
            for object in &changed.versions {
                found.extend(references(object, adapters).into_iter().map(|r| r.target));
                let claims = Kind::new("", "PersistentVolumeClaim");
                if object.key.kind.is("StatefulSet") {
                    let here = self.before.list(&claims, Some(&object.key.ns));
                    let made = here.into_iter().filter(|c| navigate::claim_ordinal(object, &c.key.name).is_some());
                    found.extend(made.map(|c| c.key.clone()));
                }
                if let Some(selector) = self.before.adapter(object).and_then(|f| f.claim_selector.clone()) {
                    let kept = self.before.matching(&claims, &object.key.ns, &selector);
                    found.extend(kept.into_iter().map(|c| c.key.clone()));
                }
            }
        }
        found
    }

    /// Owners and dependents of changed objects.
    fn kin(&self) -> BTreeSet<Key> {
        let mut found = BTreeSet::new();
        for changed in &self.changed {
            for object in &changed.versions {
                for state in self.states() {
                    found.extend(state.owned_by(&object.uid).into_iter().map(|o| o.key.clone()));
                    let owners = object.owners().iter().filter_map(|o| navigate::owner_object(state, object, o));
                    found.extend(owners.map(|o| o.key.clone()));
                    found.extend(state.adapter(object).and_then(|f| f.children.clone()).unwrap_or_default());
                }
            }
        }
        found
    }

    /// Who claims a host that a changed object claims.
    fn claimants(&self) -> BTreeSet<Key> {
        let mut found = BTreeSet::new();
        let relevant = ["Ingress", "HTTPRoute", "Gateway", "IngressClass"];
        for changed in self.changed.iter().filter(|c| relevant.iter().any(|k| c.key.kind.is(k))) {
            let routes = changed.key.kind.is("Ingress") || changed.key.kind.is("HTTPRoute");
            for state in self.states() {
                if !routes {
                    // a class or gateway changes what its routes claim
                    for kind in ["Ingress", "HTTPRoute"].iter().filter_map(|k| Kind::builtin(k)) {
                        found.extend(state.list(&kind, None).into_iter().map(|o| o.key.clone()));
                    }
                    continue;
                }
                for object in &changed.versions {
                    for claim in navigate::host_claims(state, object) {
                        let others = navigate::host_claimants(state, &claim);
                        found.extend(others.into_iter().map(|o| o.key.clone()));
                    }
                }
            }
        }
        found
    }

    fn volumes(&self) -> BTreeSet<Key> {
        let mut found = BTreeSet::new();
        for object in self.changed.iter().flat_map(|c| &c.versions) {
            if object.key.kind.is("PersistentVolumeClaim") {
                found.extend(navigate::volume(self.before, object).map(|v| v.key.clone()));
            } else if object.key.kind.is("PersistentVolume") {
                found.extend(navigate::claim_of(self.before, object).map(|c| c.key.clone()));
            }
        }
        found
    }

    /// Workloads whose node constraints match a changed node, before or after.
    fn admitting(&mut self) -> &BTreeSet<Key> {
        if self.nodes.is_none() {
            let mut found = BTreeSet::new();
            let nodes: Vec<&Arc<Object>> = self
                .changed
                .iter()
                .filter(|c| c.key.kind.is("Node") && relabelled(&c.versions))
                .flat_map(|c| &c.versions)
                .collect();
            if !nodes.is_empty() {
                let mut kinds: Vec<Kind> = ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "Pod"]
                    .iter()
                    .filter_map(|k| Kind::builtin(k))
                    .collect();
                kinds.extend(self.before.base().adapters().kinds());
                for object in kinds.iter().flat_map(|k| self.before.list(k, None)) {
                    let Some(spec) = navigate::pod_spec(self.before, object) else { continue };
                    let restricted = navigate::restricts_nodes(&spec);
                    if restricted && nodes.iter().any(|n| suture_model::selector::node_matches(&spec, n)) {
                        found.insert(object.key.clone());
                    }
                }
            }
            self.nodes = Some(found);
        }
        self.nodes.get_or_insert_with(BTreeSet::new)
    }
}

/// Whether the versions of a node differ in labels, or in whether it stays.
fn relabelled(versions: &[Arc<Object>]) -> bool {
    let Some((first, rest)) = versions.split_first() else { return false };
    rest.is_empty() || rest.iter().any(|o| o.labels() != first.labels() || o.live() != first.live())
}

/// Notes the pods that a change of `object` may touch in `state`.
fn touch(
    state: &State<'_>,
    object: &Arc<Object>,
    labels: &mut BTreeSet<(Str, Val)>,
    controllers: &mut BTreeSet<Key>,
    bodies: &mut BTreeSet<(Str, *const suture_model::object::Body)>,
) {
    let mut pods: Vec<Arc<Object>> = Vec::new();
    if object.key.kind.is("Pod") {
        pods.push(object.clone());
    } else if object.key.kind.is("Node") {
        pods.extend(state.pods_on(&object.key.name).into_iter().cloned());
    } else {
        if let Some(template) = navigate::template_labels(state, object) {
            labels.insert((object.key.ns.clone(), template));
        }
        let adapted = state.adapter(object).is_some();
        if adapted || navigate::template_path(object).is_some() {
            pods.extend(navigate::pods_owned_by(state, object).into_iter().cloned());
            pods.extend(navigate::selected(state, object).into_iter().cloned());
        }
        if adapted {
            for child in state.owned_by(&object.uid) {
                if let Some(template) = navigate::template_labels(state, child) {
                    labels.insert((child.key.ns.clone(), template));
                }
            }
        }
        if object.key.kind.is("HorizontalPodAutoscaler") {
            let target = references(object, state.base().adapters().as_ref());
            for workload in target.iter().filter_map(|r| state.get(&r.target)) {
                if let Some(template) = navigate::template_labels(state, workload) {
                    labels.insert((workload.key.ns.clone(), template));
                }
            }
        }
    }
    for pod in pods {
        if !bodies.insert((pod.key.ns.clone(), Arc::as_ptr(&pod.body))) {
            continue;
        }
        labels.insert((pod.key.ns.clone(), pod.labels().clone()));
        let mut at = pod.clone();
        while let Some(next) = navigate::controller_of(state, &at).cloned() {
            if !controllers.insert(next.key.clone()) {
                break;
            }
            if let Some(template) = navigate::template_labels(state, &next) {
                labels.insert((next.key.ns.clone(), template));
            }
            at = next;
        }
    }
}

/// Which navigation of the future state an invariant uses.
#[derive(Default)]
struct Uses {
    funcs: BTreeSet<Func>,
    lists: BTreeSet<Kind>,
    named: BTreeSet<Str>,
    in_namespace: BTreeSet<Str>,
    everything: bool,
    only_namespaces: bool,
}

impl Uses {
    fn of(compiled: &CompiledInvariant) -> Self {
        let mut uses = Self {
            only_namespaces: true,
            ..Self::default()
        };
        let clauses = compiled.require.iter().map(|c| &c.expression);
        let all = clauses
            .chain(compiled.lets.iter().map(|(_, e)| e))
            .chain(compiled.for_each.where_.as_ref())
            .chain(compiled.degree.as_ref());
        for expr in all {
            expr.walk(&mut |part| uses.note(part));
        }
        uses
    }

    fn note(&mut self, expr: &Expr) {
        match &expr.node {
            Node::Select { base, field } if is_now(base) => match world_field(field) {
                Some(kind) => {
                    self.lists.insert(kind);
                }
                None => self.everything = true,
            },
            Node::Call { func, args } if args.iter().any(is_now) || *func == Func::References => match func {
                Func::InNamespace | Func::Objects => {
                    let kind = args.iter().rev().find_map(|a| match &a.node {
                        Node::Const(Value::String(kind)) => Some(kind.clone()),
                        _ => None,
                    });
                    match (kind, *func == Func::InNamespace) {
                        (Some(kind), true) => {
                            self.in_namespace.insert(kind);
                        }
                        (Some(kind), false) => {
                            self.named.insert(kind);
                        }
                        (None, _) => self.everything = true,
                    }
                }
                other => {
                    self.funcs.insert(*other);
                }
            },
            _ => {}
        }
    }
}

fn is_now(expr: &Expr) -> bool {
    matches!(&expr.node, Node::Var(name) if &**name == World::Now.name())
}
