//! What room nodes have for new pods: what they can allocate, less what is on them and stays.
//!
//! Source: `pkg/scheduler/framework/plugins/noderesources/fit.go` (`fitsRequest`).
//! Over-approximation: pods that the labels of the templates mean, and those that leave or stop, may have gone or not.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::foreign_pods::has_gone;
use super::node_classes::Demand;
use super::room::Room;
use super::template::Template;
use crate::effects::memo::Settled;
use crate::effects::survival::Survivals;
use crate::fields;
use crate::kinds::Kind;
use crate::object::Object;
use crate::selector::Selector;
use crate::snapshot::Usage;
use crate::value::Str;

/// What the labels of the templates that have any mean.
pub fn selectors_of(templates: &[Template]) -> Vec<Selector> {
    let labels = templates.iter().map(Template::labels).filter(|labels| labels.entries().len() > 0);
    labels.map(Selector::from_pairs).collect()
}

/// What is taken of the nodes: by all pods, and by those that are certain to stay; before all has settled none are.
pub struct NodeUsage<'s, 'a> {
    /// Whether pods are relied on to keep what they take.
    pub quiescent: bool,
    survivals: &'s Survivals<'s, 'a>,
    ns: &'s Str,
    /// What the labels of the templates that have any mean.
    is_selected_by: Vec<Selector>,
    /// The live pods that they mean and that have not gone, by their nodes.
    selected: OnceCell<BTreeMap<Str, Usage>>,
    /// What the scenario's changed pods add to the snapshot's figures, where that is something.
    pub changed: BTreeMap<Str, Usage>,
}

impl<'s, 'a> NodeUsage<'s, 'a> {
    /// For new pods of these templates in a namespace.
    pub fn new(survivals: &'s Survivals<'s, 'a>, ns: &'s Str, templates: &'s [Template], demand: &Demand) -> Self {
        let quiescent = demand.quiescent;
        let state = survivals.state();
        let mut changed: BTreeMap<Str, Usage> = BTreeMap::new();
        for (key, now) in state.delta().iter().filter(|(key, _)| quiescent && key.kind.is("Pod")) {
            if let Some(before) = state.base().get(key).filter(|o| !o.node.is_empty()) {
                changed.entry(before.node.clone()).or_default().add(before, -1);
            }
            if let Some(now) = now.as_ref().filter(|o| !o.node.is_empty()) {
                changed.entry(now.node.clone()).or_default().add(now, 1);
            }
        }
        changed.retain(|_, usage| *usage != Usage::default());
        let is_selected_by = selectors_of(templates);
        Self { quiescent, survivals, ns, is_selected_by, selected: OnceCell::new(), changed }
    }

    /// Whether a pod may go: it leaves or stops, or is one that the labels of the templates mean.
    fn may_go(&self, pod: &Object) -> bool {
        !pod.live() || (pod.key.ns == *self.ns && self.means(pod))
    }

    fn means(&self, pod: &Object) -> bool {
        self.is_selected_by.iter().any(|selector| selector.matches(pod.labels()))
    }

    /// What the live pods that the labels of the templates mean take of a node once all has settled.
    fn taken_by_selected(&self, node: &Str) -> Usage {
        let by_node = self.selected.get_or_init(|| {
            let pods = self.survivals.state().list(&Kind::new("", "Pod"), Some(self.ns)).into_iter();
            let is_one = |pod: &&Arc<Object>| {
                !pod.node.is_empty() && pod.live() && self.means(pod) && !has_gone(self.survivals, pod)
            };
            let mut found: BTreeMap<Str, Usage> = BTreeMap::new();
            pods.filter(is_one).for_each(|pod| found.entry(pod.node.clone()).or_default().add(pod, 1));
            found
        });
        by_node.get(node).copied().unwrap_or_default()
    }

    /// What is taken of a node of which this is taken now, once all has settled.
    fn settled(&self, node: &Str, all: Usage) -> Settled {
        let state = self.survivals.state();
        self.survivals.memo.settled(state, node, all, || {
            let (mut taken, mut live) = (all, all);
            for pod in state.pods_on(node).into_iter().filter(|pod| !pod.finished()) {
                let gone = has_gone(self.survivals, pod);
                if gone {
                    taken.add(pod, -1);
                }
                if gone || !pod.live() {
                    live.add(pod, -1);
                }
            }
            Settled { taken, live }
        })
    }

    /// What is taken of another resource of a node: by all pods, and by those that are certain to stay.
    fn taken(&self, node: &Object, resource: &str) -> (i64, i64) {
        let (mut all, mut staying) = (0_i64, 0_i64);
        for pod in self.survivals.state().pods_on(&node.key.name) {
            let amount = takes(pod, resource);
            if amount == 0 || has_gone(self.survivals, pod) {
                continue;
            }
            all = all.saturating_add(amount);
            staying = staying.saturating_add(if self.may_go(pod) { 0 } else { amount });
        }
        (all, staying)
    }

    /// The room of a node for a template.
    pub fn room(&self, template: &Template, node: &Object, most: i64) -> Room {
        if !self.quiescent {
            let none = Usage::default();
            let empty = room(template, node, most, none, none);
            return Room { least: None, ..empty.tighter(room_of_others(template, node, most, |_| (0, 0))) };
        }
        let others = room_of_others(template, node, most, |resource| self.taken(node, resource));
        self.room_counted(template, node, &node.key.name, most).tighter(others)
    }

    /// [`Self::room`] by the resources that are counted and the number of pods, of a node of this name that is like another one.
    pub fn room_counted(&self, template: &Template, node: &Object, name: &Str, most: i64) -> Room {
        let base = self.survivals.state().base().usage(name);
        let changed = self.changed.get(name).copied().unwrap_or_default();
        let all = base.plus(changed, 1);
        // where all pods have room beside all that is there, it does not matter what goes
        let plain = room(template, node, most, all, all);
        if plain == Room::default() {
            return plain;
        }
        let Settled { taken, live } = self.settled(name, all);
        room(template, node, most, taken, live.plus(self.taken_by_selected(name), -1))
    }
}

/// The room of a node of which so much is taken, and so much for certain, by requests and by the number of pods; more
/// than `most` is without a bound.
pub fn room(template: &Template, node: &Object, most: i64, all: Usage, staying: Usage) -> Room {
    let mut room = Room::default();
    let Some(allocatable) = fields::allocatable(node) else { return room };
    let mut bound = |total: Option<i64>, each: i64, pick: fn(&Usage) -> i64| {
        let Some(total) = total else { return };
        let fits = |used: i64| total.saturating_sub(used).max(0) / each.max(1);
        let tighter = |known: Option<i64>, now: i64| known.map_or(now, |k| k.min(now));
        room.most = Some(tighter(room.most, fits(pick(&staying))));
        room.least = Some(tighter(room.least, fits(pick(&all))));
    };
    bound(allocatable.pods, 1, |u| u.pods);
    for (resource, each) in &template.requests {
        match *resource {
            "cpu" => bound(allocatable.cpu, *each, |u| u.cpu),
            _ => bound(allocatable.memory, *each, |u| u.memory),
        }
    }
    room.of(most)
}

/// The room of a node for a template by the resources that are not counted, where so much is taken of each: by all, and
/// for certain. Of an extended resource and of huge pages a node has none that it does not state
/// (`noderesources/fit.go`, `fitsRequest`).
pub fn room_of_others(template: &Template, node: &Object, most: i64, taken: impl Fn(&str) -> (i64, i64)) -> Room {
    let mut room = Room::default();
    let Some(allocatable) = node.val().at(&["status", "allocatable"]) else { return room };
    for (resource, each) in &template.others {
        let stated = allocatable.get(resource).and_then(|amount| fields::amount(amount, resource));
        let total = stated.or_else(|| (&**resource != "ephemeral-storage").then_some(0));
        let Some(total) = total else { continue };
        let (all, staying) = if total > 0 { taken(resource) } else { (0, 0) };
        let fits = |used: i64| Some(total.saturating_sub(used).max(0) / (*each).max(1));
        room = room.tighter(Room { most: fits(staying), least: fits(all) });
    }
    room.of(most)
}

/// What a pod takes of a resource of its node.
fn takes(pod: &Object, resource: &str) -> i64 {
    let spec = pod.val().get("spec").filter(|_| !pod.finished());
    spec.map_or(0, |spec| fields::requests(spec, resource))
}

/// How many pods of a template a node takes, were it empty.
pub fn room_when_empty(template: &Template, node: &Object, most: i64) -> Room {
    let none = Usage::default();
    let by_resources = room(template, node, most, none, none).tighter(room_of_others(template, node, most, |_| (0, 0)));
    by_resources.tighter(template.room_by_ports(most))
}

/// Whether a node has the resources of one more pod for certain, beside these pods on it.
pub fn is_sure_to_have_room(template: &Template, node: &Object, others: &[&Arc<Object>]) -> bool {
    let mut used = Usage::default();
    others.iter().for_each(|pod| used.add(pod, 1));
    let taken = |resource: &str| {
        let all = others.iter().fold(0_i64, |sum, pod| sum.saturating_add(takes(pod, resource)));
        (all, all)
    };
    // room for one of two
    let room = room(template, node, 2, used, used).tighter(room_of_others(template, node, 2, taken));
    room.least != Some(0)
}
