//! The pods that a change of an object may touch: those it is, runs, holds or selects, and whatever the same workloads
//! run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suture_model::controllers::daemonset::is_settled;
use suture_model::effects::{Memo, View, group, group_name, namesake, ordinal_labels};
use suture_model::fields;
use suture_model::futures::{Fate, Remains};
use suture_model::kinds::{Kind, KindTraits};
use suture_model::navigate;
use suture_model::object::{Body, Key, Object};
use suture_model::state::State;
use suture_model::steps;
use suture_model::value::{Str, Val};

use super::domains::{self, Spreading};
use super::seeds::Seeds;

/// What pods have in common that differ in their header only: namespace and body, and whether they live.
pub type PodClass = (Str, *const Body, bool);

/// What this pod has in common with others.
pub fn pod_class(pod: &Object) -> PodClass {
    (pod.key.ns.clone(), Arc::as_ptr(&pod.body), pod.live())
}

/// Collects the pods that changes may touch, and what they are found by.
#[derive(Default)]
pub(crate) struct Touch {
    /// The labels of such pods, and of templates of such, with their namespaces.
    pub labels: BTreeSet<(Str, Val)>,
    /// What makes them, and all controllers above.
    pub controllers: BTreeSet<Key>,
    /// The pods, each of them once, as each state has it.
    pub pods: Vec<Arc<Object>>,
    /// Where they are in memory.
    known: BTreeSet<*const Object>,
    groups: BTreeSet<Key>,
    /// Which workloads may make pods, as far as it was asked.
    making: BTreeMap<Key, bool>,
    /// What was worked out about the scenario that was asked.
    memo: Memo,
    /// The DaemonSets of which the pods of one node were looked at, by node.
    on_nodes: BTreeSet<(Key, Str)>,
    /// Pods that were looked at, up to those that differ in their header only, by state.
    followed: BTreeSet<Equals>,
    labelled: BTreeSet<Equals>,
    last: Option<Equals>,
    /// How many nodes may fail where it was looked which spread constraints count otherwise; `u32::MAX` once there are no more.
    spread: Option<u32>,
    /// The custom resources of a namespace whose adapter lists what their operator makes, by state.
    listing: BTreeMap<(usize, Str), Vec<Listing>>,
}

/// A custom resource, and what its operator makes.
type Listing = (Arc<Object>, Vec<Key>);

/// Pods of one body in a namespace of a state.
type Equals = (usize, Str, *const Body);

fn equals(state: &State<'_>, pod: &Arc<Object>) -> Equals {
    (std::ptr::from_ref(state) as usize, pod.key.ns.clone(), Arc::as_ptr(&pod.body))
}

impl Touch {
    /// The pods that the change may touch, existing or to be made, and the controllers above them.
    pub(super) fn of(seeds: &Seeds<'_, '_>) -> Self {
        let mut touch = Self::default();
        // where a scenario differs in pods and nodes only, the same workloads and selectors decide about every pod; all
        // versions of those that changed are looked at as the cluster was
        let decides = |key: &Key| !(key.kind.is("Pod") || key.kind.is("Node"));
        let others = seeds.scenarios().filter(|state| state.delta().keys().any(decides));
        for state in std::iter::once(seeds.before).chain(others) {
            for (key, versions) in &seeds.changed {
                if key.kind.is("Node") {
                    touch.node(state, seeds, key);
                    continue;
                }
                for (at, object) in versions.iter().enumerate() {
                    // a mark alone makes no difference
                    let known = |v: &&Arc<Object>| Arc::ptr_eq(&v.body, &object.body) && v.node == object.node;
                    if !versions.iter().take(at).any(|v| known(&v)) {
                        touch.object(state, object);
                    }
                }
            }
            for object in seeds.followers.iter().filter_map(|key| state.get(key)) {
                match object.key.kind.is("Node") {
                    true => touch.node(state, seeds, &object.key),
                    false => touch.object(state, object),
                }
            }
        }
        touch.spreading(seeds, 0);
        touch
    }

    /// Touches the pods of workloads whose spread constraints count otherwise where so many nodes may fail; whether any were looked
    /// for that were not before.
    pub(super) fn spreading(&mut self, seeds: &Seeds<'_, '_>, failing: u32) -> bool {
        if self.spread.is_some_and(|looked| looked >= failing) || !seeds.moves_places() {
            return false;
        }
        let mut open = Spreading::all(seeds);
        let all = open.is_empty() || seeds.changes_classes() || !domains::has_others(seeds, failing);
        let looked = self.spread.replace(if all { u32::MAX } else { failing });
        if open.is_empty() || (!all && looked.is_some()) {
            return false;
        }
        let pods = seeds.in_flight().flat_map(|key| seeds.versions(key)).filter(|pod| pod.key.kind.is("Pod"));
        let in_flight: BTreeSet<(Str, Val)> = pods.map(|pod| (pod.key.ns.clone(), pod.labels().clone())).collect();
        loop {
            let counts = |one: &Spreading<'_>| one.counts(&self.labels) || one.counts(&in_flight);
            let (counting, others): (Vec<_>, Vec<_>) =
                open.into_iter().partition(|one| all || one.by_node || counts(one));
            if counting.is_empty() {
                return true;
            }
            counting.iter().for_each(|one| self.placing(seeds, seeds.before, one.workload));
            open = others;
        }
    }

    /// A workload if it may make pods, to which it matters what nodes take: those that it has stay where they are. A spread
    /// constraint counts the domains of all nodes; to other pods that no request has to do with all nodes are the same
    /// (`effects/scheduling/classifier.rs`, `judged`). What makes pods in one scenario only is touched by what makes the
    /// difference.
    fn placing(&mut self, seeds: &Seeds<'_, '_>, state: &State<'_>, object: &Object) {
        let Some(scenario) = seeds.first() else { return };
        let name = group_name(&scenario.state, object);
        if self.groups.contains(&name) {
            return;
        }
        let is_new = |fate: &Fate| matches!(fate.remains, Remains::New(_));
        let makes = |name: &Key| {
            let view = View { coarse: true, merge_equivalent_nodes: true, ..View::default() };
            let found = group(scenario, &self.memo, name, &view);
            found.entities.iter().any(|entity| entity.fates.iter().any(is_new))
        };
        if *self.making.entry(name).or_insert_with_key(makes) {
            self.group(state, object);
        }
    }

    /// Touches the pods of budgets that change, and of those over what is touched so far. Where others may take pods than before,
    /// whoever is evicted comes back elsewhere: from a node that changes, or where a spread constraint counts it.
    pub(super) fn budgets(&mut self, seeds: &Seeds<'_, '_>) {
        if seeds.moves_places() {
            for (state, (node, _)) in seeds.states().flat_map(|state| seeds.nodes().map(move |node| (state, node))) {
                state.pods_on(&node.name).into_iter().for_each(|pod| self.pod(state, pod));
            }
            for workload in seeds.before.base().spreading() {
                self.group(seeds.before, workload);
            }
        }
        let kind = Kind::new("policy", "PodDisruptionBudget");
        let changed = seeds.changed.iter().filter(|(key, _)| key.kind == kind).flat_map(|(_, versions)| versions);
        let changed: Vec<&Arc<Object>> = changed.collect();
        let labels: Vec<(Str, Val)> = self.labels.iter().cloned().collect();
        for state in seeds.states() {
            let over = labels.iter().flat_map(|(ns, labels)| state.selecting(&kind, ns, labels));
            let mut budgets: Vec<&Arc<Object>> = over.chain(changed.iter().copied()).collect();
            budgets.sort_by(|a, b| a.key.cmp(&b.key));
            budgets.dedup_by(|a, b| Arc::ptr_eq(a, b));
            for pod in budgets.into_iter().flat_map(|budget| navigate::selected(state, budget)) {
                self.pod(state, pod);
            }
        }
    }

    /// One of the pods for all that differ in their header only.
    pub(super) fn distinct_pods(&self) -> impl Iterator<Item = &Arc<Object>> {
        let mut seen: BTreeSet<(&Str, *const Body)> = BTreeSet::new();
        self.pods.iter().filter(move |pod| seen.insert((&pod.key.ns, Arc::as_ptr(&pod.body))))
    }

    /// Notes the pods that a change of `object` may touch in `state`: those it is, runs, holds or selects, with all
    /// that the same workload runs.
    pub fn object(&mut self, state: &State<'_>, object: &Arc<Object>) {
        if object.key.kind.is("Pod") {
            return self.pod(state, object);
        }
        let makes = fields::template_path(object).is_some();
        self.template(state, object);
        if makes || state.adapter(object).is_some() {
            self.selecting(state, object);
        }
        if makes {
            // what makes the pods of a custom resource depends on whether it has a workload for that
            for parent in self.parents(state, object) {
                self.template(state, &parent);
                self.selecting(state, &parent);
            }
        }
        self.children(state, object);
        if let Some(workload) = navigate::scaled(state, object) {
            self.template(state, workload);
            self.selecting(state, workload);
            self.children(state, workload);
        }
    }

    /// Notes the pods on a node that changes, and those of the DaemonSets to which it matters. What a node takes from now on
    /// concerns no pod that it has, but what may make others; to cordon it concerns no DaemonSet.
    fn node(&mut self, state: &State<'_>, seeds: &Seeds<'_, '_>, node: &Key) {
        let matters = |set: &Object| seeds.differs(node, |a, b| navigate::matters_to_daemon_set(state, set, a, b));
        let beyond_cordon = seeds.differs(node, navigate::differs_beyond_cordon);
        let beyond_scheduling = seeds.differs(node, navigate::differs_beyond_scheduling);
        for pod in state.pods_on(&node.name) {
            let name = group_name(state, pod);
            match state.get(&name).filter(|_| name.kind.is("DaemonSet")) {
                Some(_) if !beyond_cordon => {}
                Some(set) if !matters(set) => self.beside(state, pod),
                Some(_) => self.pod(state, pod),
                None if beyond_scheduling => self.pod(state, pod),
                None => self.placing(seeds, state, pod),
            }
        }
        // whatever makes pods may want one there, as soon as what is in flight about it lands
        state.base().read_kinds(Kind::with(KindTraits::decides_about_pods).chain(state.base().adapters().kinds()));
        for set in state.list(&Kind::new("apps", "DaemonSet"), None).into_iter().filter(|_| beyond_cordon) {
            if matters(set) {
                self.on_node(state, set, &node.name);
            }
        }
    }

    /// What the operator of a custom resource makes pods by.
    fn children(&mut self, state: &State<'_>, object: &Object) {
        let Some(facts) = state.adapter(object) else { return };
        let listed = facts.children.iter().flatten().filter_map(|key| state.resolve(key));
        for child in state.owned_by(&object.uid).into_iter().chain(listed) {
            self.template(state, child);
            self.group(state, child);
        }
        // workloads that have no pods yet may wait for some
        for selector in facts.selector.iter().filter(|selector| !selector.is_empty()) {
            for workload in state.making(Kind::deciding(), &object.key.ns, selector) {
                self.group(state, workload);
            }
        }
    }

    /// What an object runs, and the pods that it selects.
    fn selecting(&mut self, state: &State<'_>, object: &Object) {
        self.group(state, object);
        for pod in navigate::selected(state, object) {
            self.pod(state, pod);
        }
    }

    /// The custom resources that own an object, or whose adapter lists it.
    fn parents(&mut self, state: &State<'_>, object: &Object) -> Vec<Arc<Object>> {
        let owners = object.owners().iter().filter_map(|owner| navigate::owner_object(state, object, owner));
        let owners: Vec<Arc<Object>> = owners.filter(|owner| state.adapter(owner).is_some()).cloned().collect();
        let at = (std::ptr::from_ref(state) as usize, object.key.ns.clone());
        let listing = self.listing.entry(at).or_insert_with(|| {
            let adapters = state.base().adapters();
            let kinds: Vec<Kind> = adapters.kinds().into_iter().filter(|kind| adapters.lists_children(kind)).collect();
            let here = kinds.iter().flat_map(|kind| state.list(kind, Some(&object.key.ns)));
            here.filter_map(|custom| Some((custom.clone(), state.adapter(custom)?.children.clone()?))).collect()
        });
        let listing = listing.iter().filter(|(_, children)| children.iter().any(|c| c.means(&object.key)));
        owners.into_iter().chain(listing.map(|(custom, _)| custom.clone())).collect()
    }

    fn template(&mut self, state: &State<'_>, maker: &Object) {
        if let Some(template) = navigate::template_labels(state, maker) {
            self.labels.insert((maker.key.ns.clone(), template));
        }
    }

    fn pod(&mut self, state: &State<'_>, pod: &Arc<Object>) {
        self.beside(state, pod);
        // who adopts a pod depends on its name as well, and what a DaemonSet has beside it on its node
        let fares_as_equals = pod.controller().is_some_and(|owner| !owner.kind.is("DaemonSet"));
        if self.followed.insert(equals(state, pod)) || !fares_as_equals {
            self.on_node(state, pod, &pod.node);
        }
    }

    /// A pod without the others of its workload.
    fn beside(&mut self, state: &State<'_>, pod: &Arc<Object>) {
        if self.known.insert(Arc::as_ptr(pod)) {
            self.pods.push(pod.clone());
        }
        if let Some(set) = namesake(state, pod) {
            self.group(state, set);
        }
        let same = |(at, ns, body): &Equals| {
            *at == std::ptr::from_ref(state) as usize
                && Arc::ptr_eq(ns, &pod.key.ns)
                && std::ptr::eq(*body, Arc::as_ptr(&pod.body))
        };
        if self.last.as_ref().is_some_and(same) {
            return;
        }
        let this = equals(state, pod);
        self.last = Some(this.clone());
        if self.labelled.insert(this) {
            self.labels.insert((pod.key.ns.clone(), pod.labels().clone()));
            self.remade(state, pod);
            self.above(state, pod);
        }
    }

    /// The labels of the pod that a StatefulSet makes in the place of this one.
    fn remade(&mut self, state: &State<'_>, pod: &Object) {
        let controller = navigate::controller_of(state, pod).filter(|set| set.key.kind.is("StatefulSet"));
        let Some(template) = controller.and_then(|set| navigate::template_labels(state, set)) else { return };
        let own: Vec<(&str, &Val)> = ordinal_labels(pod.labels()).collect();
        if !own.is_empty() {
            let labels = own.into_iter().fold(template, |labels, (name, value)| labels.with(name, value.clone()));
            self.labels.insert((pod.key.ns.clone(), labels));
        }
    }

    /// The controllers above an object.
    pub fn above(&mut self, state: &State<'_>, object: &Arc<Object>) {
        let mut at = object.clone();
        while let Some(next) = navigate::controller_of(state, &at).cloned() {
            if !self.controllers.insert(next.key.clone()) {
                break;
            }
            self.template(state, &next);
            at = next;
        }
    }

    /// What the workload runs that decides about an object of which the change is nothing but what is on a node. A DaemonSet has
    /// no limit on all of its pods as long as none is outdated: those of that node are looked at, and those that have none.
    fn on_node(&mut self, state: &State<'_>, object: &Object, node: &Str) {
        let name = group_name(state, object);
        let stands_alone = |set: &&Arc<Object>| name.kind.is("DaemonSet") && !state.may_differ(set) && is_settled(set);
        match state.get(&name).filter(stands_alone) {
            Some(set) if !self.groups.contains(&name) => {
                if self.on_nodes.insert((name, node.clone())) {
                    self.workload(state, set, |pod| pod.node == *node || pod.node.is_empty());
                }
            }
            Some(_) | None => self.group(state, object),
        }
    }

    /// What the workload runs that decides about an object: its pods are not told from one another by its limits.
    fn group(&mut self, state: &State<'_>, object: &Object) {
        let name = group_name(state, object);
        if self.groups.insert(name.clone())
            && let Some(workload) = state.get(&name).filter(|o| !o.key.kind.is("Pod"))
        {
            self.workload(state, workload, |_| true);
        }
    }

    /// A workload, and some of what it runs.
    fn workload(&mut self, state: &State<'_>, workload: &Arc<Object>, some: impl Fn(&Object) -> bool) {
        self.controllers.insert(workload.key.clone());
        self.template(state, workload);
        self.above(state, workload);
        for child in state.owned_by(&workload.uid) {
            self.template(state, child);
        }
        // pods of one body have one controller
        let owned = navigate::pods_owned_by(state, workload);
        let bodies: BTreeSet<*const Body> = owned.iter().map(|pod| Arc::as_ptr(&pod.body)).collect();
        for pod in owned.into_iter().filter(|pod| some(pod)) {
            self.beside(state, pod);
        }
        for pod in navigate::selected(state, workload).into_iter().filter(|pod| some(pod)) {
            if !bodies.contains(&Arc::as_ptr(&pod.body)) {
                self.beside(state, pod);
            }
        }
    }
}

/// The pods that may meet other fates.
#[derive(Default)]
pub(super) struct TouchedPods<'s> {
    /// Those of the cluster before that no scenario changes, each once and in the order of their keys.
    pub unchanged: Vec<&'s Arc<Object>>,
    /// The others.
    pub changed: BTreeSet<Key>,
}

impl<'s> TouchedPods<'s> {
    /// Of these, each of which is there once.
    pub fn of(seeds: &Seeds<'s, '_>, pods: &[Arc<Object>]) -> Self {
        let mut found = Self::default();
        for pod in pods {
            match seeds.before.get(&pod.key).filter(|here| Arc::ptr_eq(here, pod) && !seeds.may_differ(here)) {
                Some(here) => found.unchanged.push(here),
                None => drop(found.changed.insert(pod.key.clone())),
            }
        }
        found.unchanged.sort_by(|a, b| a.key.cmp(&b.key));
        found
    }
}

/// Those of some pods that match; pods of a body do or do not.
pub(super) fn matching<'s>(pods: &[&'s Arc<Object>], matches: impl Fn(&Arc<Object>) -> bool) -> Vec<&'s Arc<Object>> {
    let mut last: Option<(&Arc<Object>, bool)> = None;
    let mut is_one = |pod: &&'s Arc<Object>| {
        steps::count(1);
        let known = last.filter(|(of, _)| Arc::ptr_eq(&of.body, &pod.body) && of.key.ns == pod.key.ns);
        let is_one = known.map_or_else(|| matches(pod), |(_, is_one)| is_one);
        last = Some((*pod, is_one));
        is_one
    };
    pods.iter().filter(|pod| is_one(pod)).copied().collect()
}
