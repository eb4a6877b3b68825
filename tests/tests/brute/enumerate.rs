//! Every future, one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use suture_encode::question::{Inputs, Judged, replay};
use suture_model::change::Request;
use suture_model::effects::{DELETION_TIME, Memo, View, group, group_name};
use suture_model::fields::node_zone;
use suture_model::futures::{Entity, Fate, FateKind, Faults, Group, Moment, Outage, Remains};
use suture_model::interpret::{Choice, realize, worlds};
use suture_model::kinds::Kind;
use suture_model::land::{scenarios, without};
use suture_model::object::{Key, Object, Owner};
use suture_model::scenario::Scenario;
use suture_model::state::State;
use suture_model::value::{Str, Val};
use suture_specs::compile::CompiledInvariant;
use suture_specs::functions::Worlds;
use suture_specs::spec::Violations;
use suture_specs::time::parse_timestamp;
use suture_specs::value::Value;

use super::truth::{TIME, Truth, Unfit};
use crate::universe::Case;

/// What became of one instance over many worlds.
#[derive(Clone, Debug, Default)]
struct Seen {
    broken: bool,
    /// The greatest degree over the violating worlds.
    worst: Option<i64>,
    fails: bool,
}

/// The instances of an invariant, as brute force sees them: all objects of its kinds, now, after the change, or by what is
/// in flight.
fn instances(
    compiled: &CompiledInvariant,
    before: &State<'_>,
    during: &[Scenario<'_>],
    with: &[Scenario<'_>],
    baseline: &[Scenario<'_>],
) -> Vec<Arc<Object>> {
    let adapters = before.base().adapters().as_ref();
    let states = || std::iter::once(before).chain(during.iter().chain(baseline).map(|s| &s.state));
    let keys: BTreeSet<Key> = states()
        .flat_map(State::iter)
        .filter(|o| compiled.for_each.matches(o, adapters))
        .map(|o| o.key.clone())
        .collect();
    let first = |key: &Key| before.get(key).or_else(|| with.iter().find_map(|s| s.state.get(key))).cloned();
    keys.iter().filter_map(first).filter(|o| compiled.matches.admits(o)).collect()
}

/// What is so without the change, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// It can break.
    pub broken: bool,
    /// In some future it has no value.
    pub fails: bool,
}

/// The verdict on every instance, and what is so of it without the change, too.
pub fn truth(
    case: &Case,
    compiled: &CompiledInvariant,
    worlds_max: u64,
) -> Result<BTreeMap<String, (Truth, Before)>, Unfit> {
    let snapshot = case.snapshot();
    let before = State::new(&snapshot);
    let in_flight: Vec<&Request> = case.in_flight.iter().collect();
    let of = |moment| scenarios(&snapshot, &in_flight, Some(&case.change), moment).expect("few changes are in flight");
    let with = of(compiled.hold);
    let during = of(Moment::During);
    let (baseline, _) = without(&snapshot, &in_flight, &case.change, usize::MAX).expect("few changes are in flight");
    let all = instances(compiled, &before, &during, &with, &baseline);
    let inputs = inputs(&case.change.requests);
    let judge = Judge { compiled, before: &before, inputs: &inputs, worlds_max };
    let mut verdicts: BTreeMap<String, (Truth, Before)> = BTreeMap::new();
    let landed: BTreeSet<u32> = with.iter().map(|scenario| scenario.landed).collect();
    for landed in landed {
        let seen = judge.all(&landing(&with, landed), &all, compiled.degree.is_none())?;
        let suspects: Vec<Arc<Object>> =
            all.iter().zip(&seen).filter(|(_, s)| s.broken || s.fails).map(|(o, _)| o.clone()).collect();
        let without = judge.all(&landing(&baseline, landed), &suspects, compiled.degree.is_none())?;
        for (object, seen) in all.iter().zip(&seen) {
            let base = suspects.iter().position(|s| s.key == object.key).and_then(|at| without.get(at));
            let (found, base) = (verdict(compiled, seen, base), base.cloned().unwrap_or_default());
            let (known, before) = verdicts.entry(object.key.to_string()).or_insert((Truth::Proved, Before::default()));
            *known = worse(*known, found);
            before.broken |= base.broken;
            before.fails |= base.fails;
        }
    }
    Ok(verdicts)
}

/// The scenarios in which these changes in flight have landed.
fn landing<'s, 'a>(scenarios: &'s [Scenario<'a>], landed: u32) -> Vec<&'s Scenario<'a>> {
    scenarios.iter().filter(|scenario| scenario.landed == landed).collect()
}

/// What two sets of changes in flight that may have landed say together: one that refutes suffices.
fn worse(one: Truth, other: Truth) -> Truth {
    match (one, other) {
        (Truth::Refuted, _) | (_, Truth::Refuted) => Truth::Refuted,
        (Truth::Fails, _) | (_, Truth::Fails) => Truth::Fails,
        (Truth::NotWorse, _) | (_, Truth::NotWorse) => Truth::NotWorse,
        _ => Truth::Proved,
    }
}

/// Blame, as DESIGN says it.
fn verdict(compiled: &CompiledInvariant, with: &Seen, without: Option<&Seen>) -> Truth {
    if !with.broken {
        return if with.fails { Truth::Fails } else { Truth::Proved };
    }
    let Some(without) = without else { return Truth::Refuted };
    if compiled.violations == Violations::Strict {
        return Truth::Refuted;
    }
    if !without.broken {
        return if without.fails { Truth::Fails } else { Truth::Refuted };
    }
    let worse = compiled.degree.is_some() && with.worst > without.worst;
    if worse { Truth::Refuted } else { Truth::NotWorse }
}

struct Judge<'j, 'a> {
    compiled: &'j CompiledInvariant,
    before: &'j State<'a>,
    inputs: &'j Inputs,
    worlds_max: u64,
}

impl Judge<'_, '_> {
    /// What becomes of these instances over all worlds of these scenarios. With `settle`, an instance that was seen
    /// broken is not looked at again.
    fn all(&self, scenarios: &[&Scenario<'_>], instances: &[Arc<Object>], settle: bool) -> Result<Vec<Seen>, Unfit> {
        let mut seen = vec![Seen::default(); instances.len()];
        let mut left = self.worlds_max;
        if instances.is_empty() {
            return Ok(seen);
        }
        let evicted: Vec<Scenario<'_>> =
            scenarios.iter().flat_map(|scenario| evictions(scenario, self.compiled.faults)).collect();
        let faults = self.compiled.faults;
        let all = scenarios.iter().map(|s| (*s, faults)).chain(evicted.iter().map(|s| (s, Faults::default())));
        for (scenario, faults) in all {
            for outage in outages(&scenario.state, faults) {
                let groups = groups(scenario, self.compiled, &outage, left)?;
                let number = groups.iter().try_fold(1_u64, |n, (_, choices)| n.checked_mul(choices.len() as u64));
                left = number.and_then(|n| left.checked_sub(n)).ok_or(Unfit::TooLarge)?;
                self.product(scenario, &outage, &groups, instances, settle, &mut seen);
            }
        }
        Ok(seen)
    }

    /// Every combination of the groups' choices.
    fn product(
        &self,
        scenario: &Scenario<'_>,
        outage: &Outage,
        groups: &[(Group, Vec<Choice>)],
        instances: &[Arc<Object>],
        settle: bool,
        seen: &mut [Seen],
    ) {
        let mut at = vec![0_usize; groups.len()];
        loop {
            if settle && seen.iter().all(|s| s.broken) {
                return;
            }
            let chosen: Vec<(&Group, &Choice)> = groups.iter().zip(&at).map(|((g, c), i)| (g, &c[*i])).collect();
            let world = realize(scenario, outage, &chosen);
            for (object, seen) in instances.iter().zip(seen.iter_mut()) {
                if settle && seen.broken {
                    continue;
                }
                // what was never made in a scenario is no instance there
                if !scenario.ever_existed(&object.key) {
                    continue;
                }
                match replay(self.compiled, object, self.inputs, Worlds { before: self.before, now: &world }, None) {
                    Judged::Holds => {}
                    Judged::Fails(_) => seen.fails = true,
                    Judged::Violated { degree, .. } => {
                        seen.broken = true;
                        seen.worst = seen.worst.max(degree);
                    }
                }
            }
            let Some(next) = (0..at.len()).find(|g| at[*g] + 1 < groups[*g].1.len()) else { return };
            at[next] += 1;
            at[..next].fill(0);
        }
    }
}

/// Every choice of failing nodes, and of failing zones.
fn outages(state: &State<'_>, faults: Faults) -> BTreeSet<Outage> {
    let nodes: Vec<&Arc<Object>> = state.list(&Kind::new("", "Node"), None);
    let zones: BTreeSet<Str> = nodes.iter().filter_map(|n| node_zone(n)).collect();
    let zones: Vec<Str> = zones.into_iter().collect();
    let mut found = BTreeMap::new();
    for lost in subsets(nodes.len(), faults.nodes) {
        let down: BTreeSet<Str> = lost.iter().map(|at| nodes[*at].key.name.clone()).collect();
        found.entry(down.clone()).or_insert(Outage { nodes: down, zones: BTreeSet::new() });
    }
    for lost in subsets(zones.len(), faults.zones) {
        let zones: BTreeSet<Str> = lost.iter().map(|at| zones[*at].clone()).collect();
        let zonal = nodes.iter().filter(|n| node_zone(n).is_some_and(|z| zones.contains(&z)));
        let down: BTreeSet<Str> = zonal.map(|n| n.key.name.clone()).collect();
        // which zones failed is for the report only
        found.entry(down.clone()).or_insert(Outage { nodes: down, zones });
    }
    found.into_values().collect()
}

/// The scenario with every choice of pods that somebody evicts, as far as that is admitted.
fn evictions<'a>(scenario: &Scenario<'a>, faults: Faults) -> Vec<Scenario<'a>> {
    let pods: Vec<&Key> = scenario.state.iter().into_iter().map(|o| &o.key).filter(|key| key.kind.is("Pod")).collect();
    let chosen = subsets(pods.len(), faults.evictions).into_iter().filter(|chosen| !chosen.is_empty());
    let chosen = chosen.map(|chosen| chosen.iter().map(|at| pods[*at].clone()).collect());
    chosen.filter_map(|chosen: BTreeSet<Key>| scenario.beside_evictions(&chosen)).collect()
}

/// Every subset of so many things with at most so many members.
fn subsets(of: usize, most: u32) -> Vec<Vec<usize>> {
    let all = (0_u32..1 << of).filter(|bits| bits.count_ones() <= most);
    all.map(|bits| (0..of).filter(|at| bits & (1 << at) != 0).collect()).collect()
}

/// Everything in a scenario that may have more than one fate, or another one than to stay as it is, with all its choices.
fn groups(
    scenario: &Scenario<'_>,
    compiled: &CompiledInvariant,
    outage: &Outage,
    most: u64,
) -> Result<Vec<(Group, Vec<Choice>)>, Unfit> {
    let state = &scenario.state;
    let (moment, remade) = (compiled.hold, compiled.remade);
    let outage = outage.clone();
    let view = View { moment, outage, places: true, merge_equivalent_nodes: false, coarse: false, remade };
    let (memo, mut found) = (Memo::default(), Vec::new());
    for name in names(state) {
        found.push(group(scenario, &memo, &name, &view));
    }
    let mut described: BTreeSet<Key> = BTreeSet::new();
    for key in found.iter().flat_map(|g| &g.entities).filter_map(|e| e.key().cloned()) {
        if !described.insert(key) {
            return Err(Unfit::Overlap);
        }
    }
    let may_go = |e: &&Entity| {
        e.fates.iter().any(|f| {
            !matches!(f.kind, FateKind::Stays | FateKind::BecomesReady | FateKind::LosesReadiness | FateKind::Ends)
        })
    };
    let gone = found.iter().flat_map(|g| &g.entities).filter(may_go).filter_map(|e| e.object.as_ref());
    let gone: BTreeSet<Str> = gone.map(|pod| pod.uid.clone()).collect();
    for object in state.iter() {
        if !object.key.kind.is("Pod") && !described.contains(&object.key) {
            found.extend(leaving(state, object, moment, &gone));
        }
    }
    let mut with_choices = Vec::new();
    for group in found {
        let changes = |e: &Entity| e.fates.len() != 1 || e.object.is_none() || e.fates[0].kind != FateKind::Stays;
        if !group.entities.iter().any(changes) {
            continue;
        }
        if combinations(&group) > u128::from(most).saturating_mul(8) {
            return Err(Unfit::TooLarge);
        }
        let mut choices = Vec::new();
        let _ = worlds(&group, &mut |choice| {
            choices.push(choice.clone());
            if choices.len() as u64 > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if choices.len() as u64 > most {
            return Err(Unfit::TooLarge);
        }
        if choices.is_empty() {
            return Err(Unfit::NoFuture);
        }
        with_choices.push((group, choices));
    }
    Ok(with_choices)
}

/// The names of all groups of pods, and of what leaves by itself.
fn names(state: &State<'_>) -> BTreeSet<Key> {
    let mut names = BTreeSet::new();
    for object in state.iter() {
        let maker = ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"].iter().any(|k| object.key.kind.is(k));
        if object.key.kind.is("Pod") || maker {
            names.insert(group_name(state, object));
        }
    }
    names
}

/// The fates of an object, not a pod, that is being deleted or will be: it may be as it is, bear a deletionTimestamp, or
/// be gone; once settled, only a finalizer keeps it.
fn leaving(state: &State<'_>, object: &Arc<Object>, moment: Moment, gone: &BTreeSet<Str>) -> Option<Group> {
    let is_gone = |owner: &Owner| {
        owner.kind.is("Pod")
            && (gone.contains(&owner.uid) || suture_model::navigate::owner_object(state, object, owner).is_none())
    };
    let with_pods = !object.owners().is_empty() && object.owners().iter().all(is_gone);
    let expected = with_pods || suture_model::deletion::expected_to_go(state, object);
    if (!object.in_deletion_closure && !object.terminating() && !expected)
        || suture_model::deletion::is_protected(state, object)
    {
        return None;
    }
    let after = moment == Moment::After;
    let held = object.finalizers().next().is_some();
    let collected = suture_model::deletion::Expected::new(state).surely_goes(object);
    let mut fates = Vec::new();
    let fate = |kind, remains| Fate { kind, place: None, remains };
    if !(after && (object.in_deletion_closure || object.terminating() || collected)) {
        fates.push(fate(FateKind::Stays, Remains::Itself));
    }
    if !object.terminating() && (!after || held) {
        fates.push(fate(FateKind::Terminating, Remains::Changed(object.with_deletion(DELETION_TIME).body)));
    }
    fates.push(fate(FateKind::Gone, Remains::Nothing));
    let entity = Entity { object: Some(object.clone()), ..Entity::new(1, Vec::new(), fates) };
    Some(Group { name: Some(object.key.clone()), entities: vec![entity], ..Group::default() })
}

/// How many choices a group has before its limits.
fn combinations(group: &Group) -> u128 {
    let of = |e: &Entity| {
        let (n, k) = (u128::from(e.count), e.fates.len().saturating_sub(1) as u128);
        (1..=k).fold(1_u128, |all, i| all.saturating_mul(n + i) / i)
    };
    group.entities.iter().map(of).fold(1, u128::saturating_mul)
}

/// `request`, `requests` and `time`, as an expression reads them.
fn inputs(requests: &[Request]) -> Inputs {
    let all = requests.iter().map(|request| request_fields(Some(request))).collect();
    let request = Value::from(&request_fields(requests.first()));
    Inputs { request, requests: Value::from(&Val::list(all)), time: parse_timestamp(TIME).map(Value::Timestamp) }
}

fn request_fields(request: Option<&Request>) -> Val {
    let text = |s: &str| Val::str(s);
    let user = request.map(|r| &r.user);
    let groups = user.map(|u| u.groups.iter().map(|g| text(g)).collect()).unwrap_or_default();
    let user = Val::object([
        ("username", text(user.map_or("", |u| &u.username))),
        ("groups", Val::list(groups)),
        ("uid", text(user.map_or("", |u| &u.uid))),
    ]);
    let kind = request.map(|r| &r.target.kind);
    let kind = [("group", kind.map_or("", |k| &k.group)), ("kind", kind.map_or("", |k| &k.kind))];
    Val::object([
        ("user", user),
        ("uid", text(request.map_or("", |r| &r.uid))),
        ("operation", text(request.map_or("", |r| r.operation.as_str()))),
        ("subresource", text(request.map_or("", |r| &r.subresource))),
        ("kind", Val::object(kind.map(|(field, value)| (field, text(value))))),
        ("namespace", text(request.map_or("", |r| &r.target.ns))),
        ("name", text(request.map_or("", |r| &r.target.name))),
        ("dryRun", Val::Bool(request.is_some_and(|r| r.dry_run))),
        ("options", request.map_or(Val::Null, Request::told_options)),
    ])
}
