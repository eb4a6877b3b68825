//! A rule of the scheduler, declared once: what it rejects, how it tells nodes apart, what it limits, what it keeps waiting.
//!
//! Source: `pkg/scheduler/framework/plugins`, one implementation for each plugin whose rule is hard. Preferences are ignored:
//! the scheduler may break every one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::foreign_pods::{Staying, has_gone};
use super::node_classes::Demand;
use super::room::Room;
use super::template::Template;
use super::topology::Topology;
use super::usage::NodeUsage;
use crate::effects::builder::{Asked, Described};
use crate::effects::linear::{STAY, always, at_least, at_most, count, placed_at};
use crate::effects::survival::Survivals;
use crate::futures::{FateKind, LimitLabel, Linear, SetId};
use crate::object::{Key, Object};
use crate::scenario::Scenario;
use crate::selector::Selector;
use crate::value::Str;

/// One plugin of the scheduler.
pub trait Constraint {
    /// What a node is to new pods of a template.
    fn filter(&self, own: &Template, node: &NodeView<'_>) -> Fit;

    /// What tells nodes apart that are alike otherwise.
    fn distinguishes<'t>(&self, around: &Around<'t, '_>, found: &mut Differences<'t>);

    /// Writes down the limits on where new pods go, and what may keep one off a place.
    fn limits(&self, placing: &mut Placing<'_, '_, '_>);

    /// Whether it may leave a new pod pending for good, whatever nodes there are.
    fn may_block(&self, waiting: &Waiting<'_, '_, '_>) -> bool;

    /// Whether it lets a pod of a template onto a node that its controller chose, beside these pods on it, for certain.
    fn is_sure(&self, own: &Template, node: &Object, others: &[&Arc<Object>]) -> bool;
}

/// What a node is to new pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// None that they select: it is no place for them.
    NotSelected,
    /// One that they select, and that takes none.
    Rejected,
    /// One that takes so many.
    Takes(Room),
}

/// A node as new pods find it.
pub struct NodeView<'n> {
    /// The node.
    pub node: &'n Object,
    /// The node once it is well.
    pub well: &'n Object,
    /// What is taken of nodes.
    pub usage: &'n NodeUsage<'n, 'n>,
    /// How many new pods there are at most.
    pub number: i64,
}

/// The new pods for which nodes are told apart.
pub struct Around<'t, 'a> {
    /// What becomes of existing objects.
    pub survivals: &'t Survivals<'t, 'a>,
    /// Their namespace.
    pub ns: &'t Str,
    /// Their templates.
    pub templates: &'t [Template],
    /// What else decides.
    pub demand: &'t Demand,
}

/// What tells nodes apart.
#[derive(Default)]
pub struct Differences<'t> {
    /// Names: each node by itself.
    pub by_name: bool,
    /// Labels of these keys, beside the hostname.
    pub topologies: BTreeSet<Str>,
    /// Pods of the namespace that one of these selectors means: their nodes stand alone.
    pub selectors: Vec<&'t Selector>,
    /// Nodes that stand alone.
    pub alone: BTreeSet<Str>,
    /// Nodes where a port that is wanted is taken.
    pub taken: BTreeSet<Str>,
}

/// New pods that may wait for something.
pub struct Waiting<'p, 's, 'a> {
    /// The scenario.
    pub scenario: &'s Scenario<'a>,
    /// What makes them.
    pub maker: &'p Key,
    /// Their template.
    pub own: &'p Template,
}

/// New pods of one set, for which limits are written down.
pub struct Placing<'p, 's, 'a> {
    /// The group, all of whose entities are known.
    pub builder: &'p mut Described<'s, 'a>,
    /// Its places and pods by topology domain.
    pub topology: &'p Topology,
    /// Pods of other workloads that stay.
    pub staying: &'p Staying<'p>,
    /// All new pods of the group.
    pub asked: &'p [Asked],
    /// What makes these.
    pub maker: &'p Key,
    /// These.
    pub set: SetId,
    /// Their template.
    pub own: &'p Template,
    /// For each place, what may keep one of them off it.
    pub blocked: BTreeMap<usize, Vec<Linear>>,
}

impl<'s> Placing<'_, 's, '_> {
    /// Adds a limit.
    pub fn limit(&mut self, label: LimitLabel, any_of: Vec<Linear>) {
        self.builder.limit(label, any_of);
    }

    /// Each of these places may be closed to a pod where this holds.
    pub fn block(&mut self, places: &[usize], where_it_holds: &Linear) {
        for place in places {
            self.blocked.entry(*place).or_default().push(where_it_holds.clone());
        }
    }

    /// None of the new pods comes to these places.
    pub fn none_at(&self, places: &[usize]) -> Linear {
        at_most(vec![placed_at(self.set, places)], 0)
    }

    /// The sets of new pods that a selector means.
    pub fn selected_new(&self, selector: &Selector) -> Vec<SetId> {
        let means = |at: usize| self.builder.templates.get(at).is_some_and(|t| selector.matches(t.labels()));
        let mut sets: Vec<SetId> =
            self.asked.iter().filter(|(_, _, template)| means(*template)).map(|(_, set, _)| *set).collect();
        sets.dedup();
        sets
    }

    /// None of these new pods comes to places where one of these existing pods stays; there they may be stuck for as long as
    /// one is still on its way out.
    pub fn yield_to(&mut self, label: LimitLabel, places: &[usize], existing: SetId) {
        self.limit(label, vec![self.none_at(places), at_most(vec![count(existing, &STAY)], 0)]);
        let held = vec![count(existing, &STAY), count(existing, &[FateKind::Terminating])];
        self.block(places, &at_least(held, 1));
    }

    /// Pods of others, there already, keep new ones off these places: for certain (`keeps`), or they may.
    pub fn keep_off(&mut self, topology: &Str, places: &[usize], keeps: bool) {
        self.block(places, &always());
        if keeps {
            let label = LimitLabel::AntiAffinity { workload: self.maker.clone(), topology: topology.clone() };
            self.limit(label, vec![self.none_at(places)]);
        }
    }

    /// Whether a pod of another workload stays whatever happens, once all has settled.
    pub fn stays(&self, pod: &Object) -> bool {
        self.builder.group.quiescent && self.staying.has(self.builder.state(), pod)
    }

    /// Whether a pod of another workload may be there still.
    pub fn may_be_there(&self, pod: &Object) -> bool {
        !self.builder.group.quiescent || !has_gone(&self.builder.survivals, pod)
    }

    /// The pods outside the group that a selector means in a domain.
    pub fn foreign_pods_in(&self, key: &str, value: &Str, selector: &Selector) -> Vec<&'s Arc<Object>> {
        let (state, inside) = (self.builder.state(), self.topology.inside());
        let pods = state.pods_matching(&self.builder.name.ns, selector).into_iter();
        let here = pods.filter(|pod| {
            !inside.contains(&pod.key)
                && !pod.finished()
                && self.topology.domain_of(state, pod, key).as_ref() == Some(value)
                && self.may_be_there(pod)
        });
        here.collect()
    }
}
