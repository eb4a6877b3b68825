//! Which changes in flight can matter to a decision: those that reach an instance which the change reaches too.
//!
//! Every subset of what is in flight is a scenario of its own, so whatever cannot matter is left out first. What a
//! request reaches depends on what landed before it (a Service that is made first is reached by a pod that is labelled
//! after), therefore each pair is looked at in both orders, and what matters to something that matters is kept too.
//! A request that changes a Node is kept always: nodes carry pods of every namespace.
//!
//! | what landed before | what another request reaches after it |
//! |---|---|
//! | only the replicas of a built-in workload changed | the same: no object is related to others than before |
//! | what kept a request from having any effect went (a budget that refuses its eviction) | something, so that it matters |
//! | a ConfigMap or Secret without owners was written | the same, unless the other request's objects refer to it, and then the opposite order shows it |
//!
//! What a request reaches takes a while to find. Where it can be told without, it is: of what reaches nothing but itself
//! (`relevance/lone.rs`), and of scalings that have nothing around them in common (`relevance/neighbourhood.rs`).

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use suture_model::change::{Operation, Request, substance};
use suture_model::kinds::KindTraits;
use suture_model::object::Key;
use suture_model::scenario::Scenario;
use suture_model::snapshot::Snapshot;
use suture_model::value::Val;

use crate::analysis::Analysis;
use crate::impact::Impact;

mod lone;
mod neighbourhood;

use neighbourhood::{Neighbourhood, ScaleScope};

/// Kinds that others refer to by name, and that neither refer to anything nor are selected.
const REFERENTS: [&str; 2] = ["ConfigMap", "Secret"];

/// Finds what in flight matters to changes against one snapshot.
pub struct Relevance<'a> {
    snapshot: &'a Snapshot,
    invariants: &'a [Analysis],
    scale_scope: OnceCell<Option<ScaleScope>>,
}

/// What a request reaches: the objects that it changes, and the instances whose readings it changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    objects: BTreeSet<Key>,
    /// By the place of the invariant; none is empty.
    instances: BTreeMap<usize, BTreeSet<Key>>,
}

/// What in flight matters to a request.
#[derive(Clone, Debug, Default)]
pub struct Relevant {
    /// The places of those that do, in order.
    pub places: Vec<usize>,
    /// The request and those that matter.
    known: Vec<Known>,
}

/// A request that others are compared with.
#[derive(Clone, Debug)]
struct Known {
    request: Request,
    /// Whether it reaches nothing but its own object ([`lone`]).
    lone: bool,
    /// What is around the workload that it scales, once that was asked for; none where that cannot be said.
    neighbourhood: OnceCell<Option<Neighbourhood>>,
    /// What it reaches alone, once that was asked for.
    reach: OnceCell<Reach>,
}

impl Reach {
    /// Whether it changes nothing at all.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The objects that it changes.
    pub fn objects(&self) -> impl Iterator<Item = &Key> {
        self.objects.iter()
    }

    /// How many instances are reached.
    pub fn instances(&self) -> usize {
        self.instances.values().map(BTreeSet::len).sum()
    }

    fn wide(&self) -> bool {
        self.objects.iter().any(|key| key.kind.is("Node"))
    }

    /// Whether something is reached by both.
    pub fn meets(&self, other: &Self) -> bool {
        let also = |(at, keys): (&usize, &BTreeSet<Key>)| {
            other.instances.get(at).is_some_and(|others| !keys.is_disjoint(others))
        };
        !self.objects.is_disjoint(&other.objects) || self.instances.iter().any(also)
    }

    fn add(&mut self, other: Self) {
        self.objects.extend(other.objects);
        for (at, keys) in other.instances {
            self.instances.entry(at).or_default().extend(keys);
        }
    }
}

impl<'a> Relevance<'a> {
    /// Against what the watch shows, for these invariants.
    pub fn new(snapshot: &'a Snapshot, invariants: &'a [Analysis]) -> Self {
        Self { snapshot, invariants, scale_scope: OnceCell::new() }
    }

    /// What a request reaches where some others have landed before it.
    pub fn reach(&self, landed: &[&Request], request: &Request) -> Reach {
        self.look(landed, request, |impact| {
            let mut reach = Reach { objects: impact.changed().cloned().collect(), ..Reach::default() };
            if reach.is_empty() {
                return reach;
            }
            for (at, analysis) in self.invariants.iter().enumerate() {
                let keys = impact.instances(analysis);
                if !keys.is_empty() {
                    reach.instances.insert(at, keys);
                }
            }
            reach
        })
    }

    /// Looks at what a request touches where some others have landed before it.
    fn look<T>(&self, landed: &[&Request], request: &Request, at: impl FnOnce(&mut Impact<'_, '_>) -> T) -> T {
        let mut start = Scenario::observed(self.snapshot);
        for request in landed {
            start.land(request);
        }
        let mut end = start.clone();
        end.land(request);
        at(&mut Impact::new(&start.state, [&end]))
    }

    /// Those in flight that matter to the request.
    pub fn select<'r>(&self, in_flight: impl IntoIterator<Item = &'r Request>, request: &Request) -> Relevant {
        let mut open: Vec<Known> = vec![self.known(request)];
        let mut rest: Vec<(usize, &Request)> = in_flight.into_iter().enumerate().collect();
        let mut relevant = Relevant::default();
        while let Some(known) = open.pop() {
            rest.retain(|(at, other)| {
                let meets = self.meet(&known, other);
                if meets {
                    relevant.places.push(*at);
                    open.push(self.known(other));
                }
                !meets
            });
            relevant.known.push(known);
        }
        relevant.places.sort_unstable();
        relevant
    }

    /// Whether another one, admitted since, would have been among those that matter.
    pub fn concerns(&self, relevant: &Relevant, other: &Request) -> bool {
        relevant.known.iter().any(|known| self.meet(known, other))
    }

    /// Whether two requests are seen at once to reach nothing in common, alone or after one another.
    pub fn apart(&self, a: &Request, b: &Request) -> bool {
        self.known(a).is_apart(b, self)
    }

    fn known(&self, request: &Request) -> Known {
        let (neighbourhood, reach) = (OnceCell::new(), OnceCell::new());
        Known { request: request.clone(), lone: self.is_lone(request), neighbourhood, reach }
    }

    /// Whether two requests reach something in common, alone or after one another.
    fn meet(&self, known: &Known, b: &Request) -> bool {
        let a = &known.request;
        if a.target == b.target {
            return true;
        }
        if known.is_apart(b, self) {
            return false;
        }
        let alone = known.reach.get_or_init(|| self.reach(&[], a));
        if alone.wide() || self.look(&[], b, |impact| self.shares(alone, impact)) {
            return true;
        }
        if !relates(a) && !relates(b) {
            return false;
        }
        let after = |first: &Request, second: &Request| relates(first).then(|| self.reach(&[first], second));
        let (after_b, alone_b, after_a) = (after(b, a), self.reach(&[], b), after(a, b));
        // an eviction that a budget refuses reaches nothing until the budget is gone
        let wakes =
            |after: &Option<Reach>, alone: &Reach| alone.is_empty() && after.as_ref().is_some_and(|r| !r.is_empty());
        if wakes(&after_b, alone) || wakes(&after_a, &alone_b) {
            return true;
        }
        let both = |alone: &Reach, after: Option<Reach>| {
            let mut reach = alone.clone();
            after.into_iter().for_each(|after| reach.add(after));
            reach
        };
        let (reach_a, reach_b) = (both(alone, after_b), both(&alone_b, after_a));
        reach_a.wide() || reach_b.wide() || reach_a.meets(&reach_b)
    }

    /// Whether a request that touches this is wide, or reaches something of what was reached: only the invariants that
    /// were are asked.
    fn shares(&self, reach: &Reach, impact: &mut Impact<'_, '_>) -> bool {
        if impact.changed().any(|key| key.kind.is("Node") || reach.objects.contains(key)) {
            return true;
        }
        reach.instances.iter().any(|(at, keys)| {
            let analysis = self.invariants.get(*at);
            analysis.is_some_and(|analysis| !impact.instances(analysis).is_disjoint(keys))
        })
    }
}

impl Known {
    fn is_apart(&self, other: &Request, relevance: &Relevance<'_>) -> bool {
        let Self { request, lone, .. } = self;
        if request.target == other.target {
            return false;
        }
        match (lone::scales(request), lone::scales(other)) {
            (true, true) => {
                let neighbourhood = |request: &Request| relevance.neighbourhood(&request.target);
                let here = self.neighbourhood.get_or_init(|| neighbourhood(request));
                here.as_ref().is_some_and(|here| neighbourhood(other).is_some_and(|there| !here.meets(&there)))
            }
            (_, scales) if *lone => scales || relevance.is_lone(other),
            (scales, _) => scales && relevance.is_lone(other),
        }
    }
}

/// Whether a request may relate objects to others than before, so that what another one reaches after it has to be
/// looked at.
fn relates(request: &Request) -> bool {
    let kind = &request.target.kind;
    let owned = |object: &Val| !object.items_at(&["metadata", "ownerReferences"]).is_empty();
    if REFERENTS.iter().any(|name| kind.is(name)) {
        return [&request.object, &request.old].into_iter().flatten().any(owned);
    }
    if !kind.has(KindTraits::has_scale) || request.operation != Operation::Update {
        return true;
    }
    match (&*request.subresource, &request.old, &request.object) {
        ("scale", ..) => false,
        ("", Some(old), Some(new)) => unscaled(old) != unscaled(new),
        _ => true,
    }
}

/// What is written of a workload, its replicas aside.
fn unscaled(object: &Val) -> Val {
    substance(object).without_at(&["spec", "replicas"])
}
