//! Verdicts in words: what happens on the way to the violation, and what breaks.
//!
//! Facts arrive as data (steps, choices, labels) and become text here, once.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suture_model::deletion::why_expected;
use suture_model::effects::at_risk;
use suture_model::fields::has_deadline;
use suture_model::futures::{FateKind, Group, Step};
use suture_model::interpret::{Choice, realize};
use suture_model::kinds::KindTraits;
use suture_model::land::describe;
use suture_model::navigate;
use suture_model::node_names::NodeNames;
use suture_model::object::{Key, Object};
use suture_model::scenario::Scenario;
use suture_model::state::State;
use suture_specs::compile::CompiledInvariant;
use suture_specs::spec::Action;

use crate::decision::{Counterexample, Finding, StepReport, Verdict};
use crate::instance::{Instance, Undecided, Violation};
use crate::involved::ViolatingFuture;
use crate::request::DecisionContext;
use crate::written::describe_changes;

/// How many steps a message tells at most: beside them a denial has its promise, and what would be allowed.
const STEPS_MAX: usize = 6;
/// How many nodes that are alike are named.
const NODES_MAX: usize = 3;

fn bare(compiled: &CompiledInvariant, instance: &Key, outcome: Finding) -> Verdict {
    about(compiled.name.to_string(), instance.to_string(), compiled.action, outcome)
}

fn about(invariant: String, instance: String, action: Action, outcome: Finding) -> Verdict {
    Verdict {
        invariant,
        instance,
        outcome,
        action,
        reason: None,
        message: String::new(),
        counterexample: None,
        assumptions: Vec::new(),
        proved_against: Arc::default(),
        nearest_allowed: Vec::new(),
        awaits_landing: false,
        requests: Vec::new(),
    }
}

/// The verdict on a proved instance.
pub fn proved(compiled: &CompiledInvariant, instance: &Key, assumptions: Vec<String>) -> Verdict {
    Verdict { assumptions, ..bare(compiled, instance, Finding::Proved) }
}

/// The verdict on an undecided instance.
pub fn undecided(compiled: &CompiledInvariant, instance: &Key, why: &Undecided) -> Verdict {
    undecided_instead(&bare(compiled, instance, Finding::Undecided), why)
}

/// The verdict on the same instance where it is undecided.
pub fn undecided_instead(verdict: &Verdict, why: &Undecided) -> Verdict {
    let Verdict { invariant, instance, action, .. } = verdict;
    let message = format!("{instance} could not be decided: {why}");
    let bare = about(invariant.clone(), instance.clone(), *action, Finding::Undecided);
    Verdict { reason: Some(why.to_string()), message, ..bare }
}

/// The verdict on an instance that is violated in the cluster as it is.
pub fn violated_now(compiled: &CompiledInvariant, object: &Arc<Object>, clause: usize, message: &str) -> Verdict {
    let source = compiled.require.get(clause).map(|c| c.source.to_string()).unwrap_or_default();
    let future = ViolatingFuture::present(object.key.clone());
    let counterexample = Counterexample::new(Vec::new(), broken(&source, message), future);
    Verdict {
        message: message.to_owned(),
        counterexample: Some(Arc::new(counterexample)),
        proved_against: Arc::new(versions(std::slice::from_ref(object))),
        ..bare(compiled, &object.key, Finding::Refuted)
    }
}

/// What the verdicts of one decision have in common, by scenario: told once. Valid as long as the scenarios stay where
/// they are.
#[derive(Debug, Default)]
pub(crate) struct StepCache {
    steps: RefCell<BTreeMap<usize, Vec<Arc<StepReport>>>>,
    versions: RefCell<BTreeMap<usize, Arc<BTreeMap<String, String>>>>,
}

impl StepCache {
    /// The requests and their closures.
    fn steps(&self, scenario: &Scenario<'_>, context: &DecisionContext<'_, '_>) -> Vec<Arc<StepReport>> {
        let mut known = self.steps.borrow_mut();
        let told = || requested_and_closed(scenario, context);
        known.entry(std::ptr::from_ref(scenario) as usize).or_insert_with(told).clone()
    }

    /// The resourceVersions of an instance and of all that changes.
    fn versions(&self, scenario: &Scenario<'_>, before: &State<'_>, object: &Object) -> Arc<BTreeMap<String, String>> {
        let reported = || {
            let changed = scenario.state.delta().keys().filter_map(|k| before.get(k).cloned());
            Arc::new(versions(&changed.collect::<Vec<_>>()))
        };
        let mut known = self.versions.borrow_mut();
        let mut shared = known.entry(std::ptr::from_ref(scenario) as usize).or_insert_with(reported).clone();
        if !object.resource_version.is_empty() && !scenario.state.delta().contains_key(&object.key) {
            Arc::make_mut(&mut shared).insert(object.key.to_string(), object.resource_version.to_string());
        }
        shared
    }
}

/// The verdict on a refuted instance.
pub(crate) fn refuted(instance: &Instance<'_, '_>, violation: &Violation<'_, '_>, cache: &StepCache) -> Verdict {
    let compiled = instance.run.compiled();
    let steps = steps(violation, instance.run.context, cache);
    let mut message = vec![violation.message.clone()];
    message.extend(in_short(&steps));
    let source = compiled.require.get(violation.clause).map(|c| c.source.to_string()).unwrap_or_default();
    let counterexample = Counterexample::new(steps, broken(&source, &violation.message), future(instance, violation));
    Verdict {
        message: message.join("\n"),
        counterexample: Some(Arc::new(counterexample)),
        proved_against: cache.versions(violation.question.scene.scenario, instance.run.context.before, instance.object),
        awaits_landing: !violation.open.is_empty(),
        ..bare(compiled, &instance.object.key, Finding::Refuted)
    }
}

/// The verdict on an instance that can break without the change too, and no worse with it. Where its class does not share
/// what is told of it, only that is told.
pub(crate) fn not_worse(instance: &Instance<'_, '_>, violation: &Violation<'_, '_>, shared: bool) -> Verdict {
    let compiled = instance.run.compiled();
    let alone = "it can break without the change too, and no worse with it";
    let message = if shared { format!("{alone}: {}", violation.message) } else { alone.to_owned() };
    Verdict { message, ..bare(compiled, &instance.object.key, Finding::NotWorse) }
}

/// The verdict on an instance, of this resourceVersion, that fares as the one of another verdict does, for the same reason.
pub(crate) fn same_as(verdict: &Verdict, instance: &Key, version: &str) -> Verdict {
    let mut proved_against = verdict.proved_against.clone();
    let name = instance.to_string();
    if !version.is_empty() && !proved_against.contains_key(&name) {
        let others = Arc::make_mut(&mut proved_against);
        others.remove(&verdict.instance);
        others.insert(name.clone(), version.to_owned());
    }
    Verdict { instance: name, proved_against, ..verdict.clone() }
}

/// Whether what happens on the way to a violation names none of these objects but as part of what is asked for.
pub(crate) fn names_none(violation: &Violation<'_, '_>, objects: &BTreeSet<Key>) -> bool {
    let scene = &violation.question.scene;
    let mut groups = scene.encoded_groups().iter().zip(&violation.choices);
    groups.all(|(encoded, choice)| {
        events(&encoded.group, choice, scene.scenario).values().flatten().all(|key| !objects.contains(key))
    })
}

/// The violating future, and what is named on the way to it: the instance, what is asked for and what follows.
fn future(instance: &Instance<'_, '_>, violation: &Violation<'_, '_>) -> ViolatingFuture {
    let scene = &violation.question.scene;
    let groups: Vec<_> = scene.encoded_groups().iter().map(|c| &*c.group).zip(&violation.choices).collect();
    let world = realize(scene.scenario, &scene.view.outage, &groups);
    let asked = scene.scenario.steps.iter().flat_map(|step| step.objects.iter().cloned());
    let happens =
        groups.iter().flat_map(|(group, choice)| events(group, choice, scene.scenario).into_values().flatten());
    let failing = scene.view.outage.nodes.iter().map(|node| Key::of("Node", "", node));
    let named = [instance.object.key.clone()].into_iter().chain(asked).chain(happens).chain(failing);
    let is_told = |key: &Key| *key == instance.object.key || !key.kind.has(KindTraits::is_record);
    ViolatingFuture::of(named.filter(is_told), &world)
}

fn broken(source: &str, message: &str) -> String {
    format!("{} ({message})", source.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// What happens on the way: the requests and their closures, what controllers do, what fails.
fn steps(violation: &Violation<'_, '_>, context: &DecisionContext<'_, '_>, cache: &StepCache) -> Vec<Arc<StepReport>> {
    let scene = &violation.question.scene;
    let open = violation.open.iter().map(|what| format!("{what}: this is in flight and may not have landed"));
    let open = open.map(|effect| Arc::new(StepReport { effect, objects: Vec::new() }));
    let mut steps: Vec<Arc<StepReport>> = open.chain(cache.steps(scene.scenario, context)).collect();
    for (encoded, choice) in scene.encoded_groups().iter().zip(&violation.choices) {
        let events = events(&encoded.group, choice, scene.scenario).into_iter();
        steps.extend(events.map(|((_, effect), objects)| Arc::new(StepReport { effect, objects: names(objects) })));
    }
    let outage = &scene.view.outage;
    if !outage.nodes.is_empty() {
        let effect = if outage.zones.is_empty() {
            "these nodes fail".to_owned()
        } else {
            format!("zone {} fails", outage.zones.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", "))
        };
        let objects = names(outage.nodes.iter().map(|n| Key::of("Node", "", n)));
        steps.push(Arc::new(StepReport { effect, objects }));
    }
    let mut told = BTreeSet::new();
    steps.retain(|step| told.insert((step.effect.clone(), step.objects.clone())));
    steps
}

/// The requests that have landed, those of the change with what they change, and what follows from them. That records go
/// with their owners is not told.
fn requested_and_closed(scenario: &Scenario<'_>, context: &DecisionContext<'_, '_>) -> Vec<Arc<StepReport>> {
    let requests = &context.input.change.requests;
    let is_told =
        |key: &&Key| !key.kind.has(KindTraits::is_record) || requests.iter().any(|request| request.target == **key);
    let mut steps = Vec::new();
    for Step { effect, objects } in &scenario.steps {
        let mut same = requests.iter().filter(|request| describe(request) == *effect);
        // of requests that read alike, some of them perhaps in flight, it is not known which this step is
        let effect = match (same.next(), same.next()) {
            (Some(request), None) => describe_changes(request, context.before),
            _ => effect.clone(),
        };
        let told: Vec<Key> = objects.iter().filter(is_told).cloned().collect();
        if !told.is_empty() {
            steps.push(Arc::new(StepReport { effect, objects: names(told) }));
        }
    }
    steps
}

/// The steps in a few lines: where it begins, and what it ends with.
fn in_short(steps: &[Arc<StepReport>]) -> Vec<String> {
    let line = |step: &Arc<StepReport>| format!("- {}", step.text());
    if steps.len() <= STEPS_MAX {
        return steps.iter().map(line).collect();
    }
    let (last, left_out) = (2, steps.len() + 1 - STEPS_MAX);
    let first = steps.iter().take(STEPS_MAX - 1 - last).map(line);
    let more = format!("- and {left_out} more steps");
    first.chain([more]).chain(steps.iter().skip(steps.len() - last).map(line)).collect()
}

/// What becomes of the entities of one group, as far as it is an event.
fn events(group: &Group, choice: &Choice, scenario: &Scenario<'_>) -> BTreeMap<(FateKind, String), Vec<Key>> {
    let Some(name) = &group.name else { return BTreeMap::new() };
    let mut by_text: BTreeMap<(FateKind, String), Vec<Key>> = BTreeMap::new();
    let workload = scenario.state.get(name);
    let scaled = workload.and_then(|workload| navigate::autoscaled_range(&scenario.state, workload));
    for (entity, numbers) in group.entities.iter().zip(choice) {
        for (fate, number) in entity.fates.iter().zip(numbers) {
            if *number == 0 {
                continue;
            }
            let ends = || "activeDeadlineSeconds ends these pods".to_owned();
            let before = entity.key().and_then(|k| scenario.state.get(k));
            let expected = before.is_some_and(|o| o.in_deletion_closure);
            let text = match fate.kind {
                FateKind::Stays | FateKind::NotMade => continue,
                FateKind::Terminating | FateKind::Gone if expected => continue,
                FateKind::LosesReadiness if before.is_some_and(|o| !o.ready()) => continue,
                FateKind::Terminating | FateKind::Gone if before.is_some_and(|o| has_deadline(o)) => ends(),
                FateKind::Ends => ends(),
                FateKind::Terminating | FateKind::Gone if before.is_some_and(|o| at_risk(&scenario.state, o)) => {
                    format!("pods leave node {}", before.map_or("", |o| &o.node))
                }
                FateKind::Terminating | FateKind::Gone if entity.key() == Some(name) => {
                    before.map_or("it goes", |o| why_expected(&scenario.state, o)).to_owned()
                }
                FateKind::Terminating | FateKind::Gone => match scaled {
                    Some((low, high)) => {
                        format!("the controller of {name} removes pods: autoscalers ask for {low} to {high}")
                    }
                    None => format!("the controller of {name} removes pods"),
                },
                FateKind::BecomesReady => "these pods become ready".to_owned(),
                FateKind::LosesReadiness if before.is_some_and(|o| scenario.restarts(o)) => {
                    "what was changed in place restarts containers of these pods".to_owned()
                }
                FateKind::LosesReadiness => "these pods lose readiness".to_owned(),
                FateKind::NewUnready => format!("new pods of {name} are not ready"),
                FateKind::NewReady => match fate.place.and_then(|at| group.places.get(at)) {
                    Some(place) if *number == 1 => format!("a new pod of {name} is placed on {}", on(&place.nodes)),
                    Some(place) => format!("{number} new pods of {name} are placed on {}", on(&place.nodes)),
                    None => format!("new pods of {name} become ready"),
                },
            };
            let key = entity.key().cloned().or_else(|| entity.object_in(fate).map(|o| o.key.clone()));
            by_text.entry((fate.kind, text)).or_default().extend(key);
        }
    }
    by_text
}

/// Nodes that are alike, by their names.
fn on(nodes: &NodeNames) -> String {
    let named = nodes.iter().take(NODES_MAX).map(|node| &**node).collect::<Vec<_>>().join(", ");
    match (nodes.len(), nodes.len().saturating_sub(NODES_MAX)) {
        (1, _) => format!("node {named}"),
        (_, 0) => format!("nodes {named}"),
        (_, more) => format!("nodes {named} and {more} more"),
    }
}

/// The names of objects, in order, each once.
fn names(keys: impl IntoIterator<Item = Key>) -> Vec<String> {
    keys.into_iter().collect::<BTreeSet<_>>().into_iter().map(|k| k.to_string()).collect()
}

/// The resourceVersions of what a verdict rests on.
fn versions(objects: &[Arc<Object>]) -> BTreeMap<String, String> {
    let known = objects.iter().filter(|o| !o.resource_version.is_empty());
    known.map(|o| (o.key.to_string(), o.resource_version.to_string())).collect()
}
