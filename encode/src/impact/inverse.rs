//! The inverse of each navigation: what leads to a touched object or pod.

use std::collections::BTreeSet;
use std::sync::Arc;

use suture_model::fields::{self, NodeConstraint};
use suture_model::kinds::{Kind, KindTraits, TakesAlong};
use suture_model::navigate::{self, HostClaim};
use suture_model::object::{Body, Key, Object};
use suture_model::references::references;
use suture_model::state::State;
use suture_model::value::Str;

use super::pods::Touch;
use super::seeds::Seeds;
use crate::analysis::footprint::Footprint;

/// Whatever selects a touched pod or template. An object that selects otherwise than before is changed itself.
pub(super) fn selecting(seeds: &Seeds<'_, '_>, touch: &Touch) -> BTreeSet<Key> {
    let mut found = touch.controllers.clone();
    let mut kinds: Vec<Kind> = Kind::with(KindTraits::selects_pods).collect();
    kinds.extend(seeds.before.base().adapters().kinds());
    for (ns, labels) in &touch.labels {
        for object in seeds.before.selecting_any(&kinds, ns, labels) {
            if navigate::selector_of(seeds.before, object).is_some_and(|s| s.matches(labels)) {
                found.insert(object.key.clone());
            }
        }
    }
    found
}

/// What the selectors of changed objects mean: pods, and what makes them.
pub(super) fn selected(seeds: &Seeds<'_, '_>) -> BTreeSet<Key> {
    let mut makers: Vec<Kind> = Kind::with(KindTraits::makes_pods).collect();
    makers.extend(seeds.before.base().adapters().kinds());
    let mut found = BTreeSet::new();
    for state in seeds.states() {
        for object in seeds.touched_versions() {
            let Some(selector) = navigate::selector_of(state, object) else { continue };
            found.extend(state.pods_matching(&object.key.ns, &selector).into_iter().map(|o| o.key.clone()));
            found.extend(state.making(&makers, &object.key.ns, &selector).into_iter().map(|o| o.key.clone()));
        }
    }
    found
}

/// The custom resources whose operator may delete a touched object or pod with them: those that list it, and, of those that
/// delete claims, which they select or have below them, all in the namespaces of touched objects and in none; all there are, if
/// what is touched takes along what does not name it.
pub(super) fn deleting(seeds: &Seeds<'_, '_>, touch: &Touch) -> BTreeSet<Key> {
    let takes = |traits: &KindTraits| matches!(traits.takes_along, TakesAlong::Contents | TakesAlong::Instances);
    let takes_all = seeds.touched().any(|key| key.kind.has(takes));
    let places: BTreeSet<Option<&str>> = match takes_all {
        true => [None].into(),
        false => seeds.touched().map(|key| Some(&*key.ns)).chain([Some("")]).collect(),
    };
    let kinds = seeds.before.base().adapters().kinds();
    let listed: BTreeSet<&Key> = seeds.touched().chain(touch.pods.iter().map(|pod| &pod.key)).collect();
    let mut found = BTreeSet::new();
    for state in seeds.states() {
        let here = places.iter().flat_map(|place| kinds.iter().flat_map(|kind| state.list(kind, *place)));
        let here = here.filter(|o| takes_all || state.adapter(o).is_some_and(|facts| facts.deletes_volumes));
        let listing = listed.iter().flat_map(|key| state.listing(key));
        found.extend(here.chain(listing).map(|o| o.key.clone()));
    }
    found
}

/// What refers to a touched object, and who else writes what one writes, whether that is there or not.
pub(super) fn referrers(seeds: &Seeds<'_, '_>) -> BTreeSet<Key> {
    let written: BTreeSet<Key> = writes(seeds).collect();
    let targets = seeds.touched().chain(&written);
    targets.flat_map(|key| seeds.states().flat_map(|state| state.referrers(key))).map(|o| o.key.clone()).collect()
}

/// What a touched object, or a pod that a touched workload makes, refers to.
pub(super) fn referred_to(seeds: &Seeds<'_, '_>, touch: &Touch) -> BTreeSet<Key> {
    let mut found = BTreeSet::new();
    let makers = touch.controllers.iter().filter_map(|key| seeds.states().find_map(|state| state.get(key)));
    let mut seen: BTreeSet<(&Str, *const Body)> = BTreeSet::new();
    for object in seeds.touched_versions().chain(touch.distinct_pods()).chain(makers) {
        // a pod's own name tells nothing of what it refers to
        if !object.key.kind.is("Pod") || seen.insert((&object.key.ns, Arc::as_ptr(&object.body))) {
            found.extend(referred(seeds.before, object));
        }
    }
    found
}

/// What a touched object writes.
pub(super) fn written(seeds: &Seeds<'_, '_>) -> BTreeSet<Key> {
    let there = |key: &Key| seeds.before.resolve(key).map(|object| object.key.clone());
    writes(seeds).flat_map(|key| [there(&key), Some(key)]).flatten().collect()
}

/// By which names touched objects write others: nothing but an adapter says that of a reference.
fn writes(seeds: &Seeds<'_, '_>) -> impl Iterator<Item = Key> {
    let adapters = seeds.before.base().adapters();
    let facts = seeds.touched_versions().filter_map(|object| adapters.facts(object));
    let references = facts.flat_map(|facts| facts.references.clone());
    references.filter(|reference| reference.write).map(|reference| reference.target)
}

/// What an object, or a pod that it makes, refers to.
pub(crate) fn referred(state: &State<'_>, object: &Object) -> BTreeSet<Key> {
    let claims = Kind::new("", "PersistentVolumeClaim");
    let references = references(object, state.base().adapters().as_ref());
    let resolve = |key: &Key| state.resolve(key).map(|o| o.key.clone());
    let mut found: BTreeSet<Key> = references.iter().filter_map(|r| resolve(&r.target)).collect();
    found.extend(references.into_iter().map(|r| r.target));
    // an adapter's target is no reference
    found.extend(navigate::scale_target(state, object).as_ref().and_then(resolve));
    if object.key.kind.is("StatefulSet") {
        let here = state.list(&claims, Some(&object.key.ns));
        let made = here.into_iter().filter(|c| fields::claim_ordinal(object, &c.key.name).is_some());
        found.extend(made.map(|c| c.key.clone()));
    }
    if let Some(selector) = state.adapter(object).and_then(|f| f.claim_selector.clone()) {
        let kept = state.matching(&claims, &object.key.ns, &selector);
        found.extend(kept.into_iter().map(|c| c.key.clone()));
    }
    found
}

/// What these pods own in some state, and all below it.
pub(super) fn below(seeds: &Seeds<'_, '_>, pods: &[Arc<Object>]) -> BTreeSet<Key> {
    let of_state = |state: &State<'_>| {
        let (mut found, mut open) = (BTreeSet::new(), pods.iter().map(|pod| pod.uid.clone()).collect::<Vec<_>>());
        while let Some(owner) = open.pop() {
            let owned = state.owned_by(&owner).into_iter();
            open.extend(owned.filter(|object| found.insert(object.key.clone())).map(|object| object.uid.clone()));
        }
        found
    };
    seeds.states().flat_map(of_state).collect()
}

/// Dependents of touched objects.
pub(super) fn dependents(seeds: &Seeds<'_, '_>, touch: &Touch) -> BTreeSet<Key> {
    let mut found = BTreeSet::new();
    for state in seeds.states() {
        for object in seeds.touched_versions() {
            let children = state.adapter(object).and_then(|f| f.children.clone()).unwrap_or_default();
            found.extend(children.iter().filter_map(|c| state.resolve(c)).map(|c| c.key.clone()));
            found.extend(children);
        }
        let pods = if state.owns(&Kind::new("", "Pod")) { touch.pods.as_slice() } else { &[] };
        for object in seeds.touched_versions().chain(pods) {
            found.extend(state.owned_by(&object.uid).into_iter().map(|o| o.key.clone()));
        }
    }
    if seeds.changed.keys().any(|key| key.kind.is("Node")) {
        // a DaemonSet wants as many pods as there are nodes for it; its pods are touched themselves
        let sets = touch.controllers.iter().filter(|key| key.kind.is("DaemonSet"));
        let owned = sets.filter_map(|key| seeds.before.get(key)).flat_map(|set| seeds.before.owned_by(&set.uid));
        found.extend(owned.filter(|o| !o.key.kind.is("Pod")).map(|o| o.key.clone()));
    }
    found
}

/// Whose number of pods may be another one: of a touched workload, custom resource or autoscaler, what owns or wants it, what it
/// scales, and what these own and want. A DaemonSet wants as many pods as there are nodes for it.
pub(super) fn wanting(seeds: &Seeds<'_, '_>) -> BTreeSet<Key> {
    let mut found = BTreeSet::new();
    let touched: Vec<&Arc<Object>> = seeds.touched_versions().filter(|object| !object.key.kind.is("Pod")).collect();
    for state in seeds.states() {
        let mut near: Vec<Arc<Object>> = Vec::new();
        for object in &touched {
            near.extend([(*object).clone()].into_iter().chain(navigate::scaled(state, object).cloned()));
        }
        let mut above: Vec<Arc<Object>> = Vec::new();
        for object in &near {
            above.extend(navigate::directly_above(state, object).into_iter().cloned());
        }
        for object in near.iter().chain(&above) {
            let children = state.adapter(object).and_then(|facts| facts.children.clone()).unwrap_or_default();
            let children = children.iter().filter_map(|child| state.resolve(child));
            let below = state.owned_by(&object.uid).into_iter().chain(children);
            found.extend(below.filter(|child| !child.key.kind.is("Pod")).map(|child| child.key.clone()));
            found.insert(object.key.clone());
        }
        if seeds.moves_daemons() {
            let sets = state.list(&Kind::new("apps", "DaemonSet"), None);
            found.extend(sets.into_iter().map(|set| set.key.clone()));
        }
    }
    found
}

/// Who claims a host that a touched object claims, or may claim once its class or a Gateway of it is gone.
pub(super) fn claimants(seeds: &Seeds<'_, '_>) -> BTreeSet<Key> {
    let mut found = BTreeSet::new();
    for object in seeds.touched_versions() {
        let as_named = navigate::host_claims_as_named(object);
        for state in seeds.states() {
            let claims = || {
                let now = navigate::host_claims(state, object)?.into_iter();
                // who takes the same is found whatever its class is
                let classless = now.map(|claim| HostClaim { class: "".into(), ..claim });
                Some(classless.chain(as_named.clone()?).collect::<BTreeSet<_>>())
            };
            // a class or gateway changes what its routes claim
            match claims().filter(|_| !object.key.kind.has(KindTraits::is_route_class)) {
                Some(claims) => {
                    let rivals = claims.iter().flat_map(|claim| navigate::host_rivals(state, claim));
                    found.extend(rivals.map(|o| o.key.clone()));
                }
                None => {
                    let routes = Kind::with(KindTraits::is_route);
                    found.extend(routes.flat_map(|kind| state.list(&kind, None)).map(|o| o.key.clone()));
                }
            }
        }
    }
    found
}

/// The definitions of the kinds of touched objects.
pub(super) fn definitions(seeds: &Seeds<'_, '_>) -> BTreeSet<Key> {
    let kinds: BTreeSet<&Kind> = seeds.touched().map(|k| &k.kind).collect();
    let defined = kinds.iter().flat_map(|k| seeds.states().filter_map(|s| navigate::definition_of(s, k)));
    defined.map(|d| d.key.clone()).collect()
}

/// Claims and volumes of each other.
pub(super) fn volumes(seeds: &Seeds<'_, '_>) -> BTreeSet<Key> {
    let mut found = BTreeSet::new();
    for object in seeds.touched_versions() {
        for state in seeds.states() {
            if object.key.kind.is("PersistentVolumeClaim") {
                found.extend(navigate::volume(state, object).map(|v| v.key.clone()));
            } else if object.key.kind.is("PersistentVolume") {
                found.extend(navigate::claims_of(state, object).into_iter().map(|c| c.key.clone()));
                found.extend(state.referrers(&object.key).into_iter().map(|o| o.key.clone()));
            }
        }
    }
    found
}

/// The namespaces of the accounts that a changed role or binding may mean; `None` among them stands for all.
pub(super) fn entitled(seeds: &Seeds<'_, '_>) -> BTreeSet<Option<Str>> {
    let mut found = BTreeSet::new();
    let is_rbac = |o: &&Arc<Object>| &*o.key.kind.group == "rbac.authorization.k8s.io";
    for object in seeds.touched_versions().filter(is_rbac) {
        for state in seeds.states() {
            match navigate::entitled(state, object) {
                Some(namespaces) => found.extend(namespaces.into_iter().map(Some)),
                None => drop(found.insert(None)),
            }
        }
    }
    found
}

/// The namespaces in which pods are made by custom resources whose definition changes, and with it their scale.
pub(super) fn scaled(seeds: &Seeds<'_, '_>) -> BTreeSet<Str> {
    let definitions = seeds.changed.iter().filter(|(key, _)| key.kind.is("CustomResourceDefinition"));
    let kinds: BTreeSet<Kind> = definitions.flat_map(|(_, v)| v).filter_map(|d| fields::defined_kind(d)).collect();
    let mut found = BTreeSet::new();
    for state in seeds.states() {
        for custom in kinds.iter().flat_map(|kind| state.list(kind, None)) {
            let pods = state.owned_by(&custom.uid).into_iter().filter(|o| o.key.kind.is("Pod"));
            found.extend(pods.map(|pod| pod.key.ns.clone()));
            found.extend(state.adapter(custom).is_some().then(|| custom.key.ns.clone()));
        }
    }
    found
}

/// What other nodes admit in one state than in another.
#[derive(Default)]
pub(super) struct Admitting {
    /// The constraints on nodes of objects of built-in kinds.
    constraints: Vec<NodeConstraint>,
    /// Those of them that admit nodes in one state and none in another.
    emptied: Vec<NodeConstraint>,
    /// Custom resources.
    pub adapted: BTreeSet<Key>,
}

impl Admitting {
    /// All that a change of nodes reaches so; objects that are changed themselves aside.
    pub fn of(seeds: &Seeds<'_, '_>) -> Self {
        if !seeds.relabels_nodes() {
            return Self::default();
        }
        let base = seeds.before.base();
        let reaches = |constraint: &NodeConstraint| seeds.differs_in_nodes(|node| constraint.admits(node));
        let restricting = base.node_constraints().filter(|constraint| reaches(constraint)).cloned();
        let constraints: Vec<NodeConstraint> =
            restricting.chain(NodeConstraint::FREE.into_iter().filter(reaches)).collect();
        let nodes = Kind::new("", "Node");
        let admits_any = |state: &State<'_>, constraint: &NodeConstraint| {
            !state.first(&nodes, 1, &|node| node.live() && constraint.admits(node)).is_empty()
        };
        let is_emptied = |constraint: &&NodeConstraint| {
            let before = admits_any(seeds.before, constraint);
            seeds.scenarios().any(|state| admits_any(state, constraint) != before)
        };
        let emptied = constraints.iter().filter(is_emptied).cloned().collect();
        let kinds = base.adapters().kinds();
        let customs = kinds.iter().flat_map(|kind| seeds.before.list(kind, None));
        let is_reached = |object: &Object| {
            navigate::pod_spec(seeds.before, object).is_some_and(|spec| reaches(&NodeConstraint::of_spec(&spec)))
        };
        let adapted = customs.filter(|object| is_reached(object)).map(|object| object.key.clone()).collect();
        Self { constraints, emptied, adapted }
    }

    /// The constraints by which an invariant may fare differently.
    pub fn constraints(&self, footprint: &Footprint) -> Vec<NodeConstraint> {
        let all = if footprint.asks_for_any_node { &self.emptied } else { &self.constraints };
        let matters = |constraint: &&NodeConstraint| !footprint.asks_if_restricted || constraint.restricts();
        all.iter().filter(matters).cloned().collect()
    }

    /// The claims of the volumes among these constraints.
    pub fn claims(&self, state: &State<'_>, footprint: &Footprint) -> BTreeSet<Key> {
        let volumes = |constraint: &_| state.base().constrained(constraint, |kind| kind.is("PersistentVolume"));
        let constraints = self.constraints(footprint);
        let volumes = constraints.iter().flat_map(volumes).flatten();
        volumes.flat_map(|volume| navigate::claims_of(state, volume)).map(|claim| claim.key.clone()).collect()
    }
}
