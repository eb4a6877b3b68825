//! Verdicts in words: what happens on the way to the violation, what breaks, and what would have been allowed.
//!
//! Facts arrive as data (steps, choices, labels) and become text here, once.

use std::collections::BTreeMap;
use std::sync::Arc;

use suture_encode::question::Question;
use suture_encode::scene::Class;
use suture_encode::term::Assignment;
use suture_model::change::{Operation, Propagation, Request};
use suture_model::futures::{FateKind, Group};
use suture_model::interpret::Choice;
use suture_model::object::{Key, Object};
use suture_model::scenario::Scenario;
use suture_model::state::State;
use suture_model::value::Val;
use suture_specs::compile::CompiledInvariant;

use crate::decision::{Counterexample, Finding, StepReport, Verdict};
use crate::engine::{Input, Instance, Undecided, Violation, names, versions};

/// How many lines a message has at most.
const LINES_MAX: usize = 10;
/// How many variants of a refused request are tried.
const VARIANTS_MAX: i64 = 6;

fn bare(compiled: &CompiledInvariant, instance: &Key, outcome: Finding) -> Verdict {
    Verdict {
        invariant: compiled.name.to_string(),
        instance: instance.to_string(),
        outcome,
        action: compiled.action,
        reason: None,
        message: String::new(),
        counterexample: None,
        assumptions: Vec::new(),
        proved_against: BTreeMap::new(),
        nearest_allowed: Vec::new(),
    }
}

/// The verdict on a proved instance.
pub fn proved(compiled: &CompiledInvariant, instance: &Key, assumptions: Vec<String>) -> Verdict {
    Verdict { assumptions, ..bare(compiled, instance, Finding::Proved) }
}

/// The verdict on an undecided instance.
pub fn undecided(compiled: &CompiledInvariant, instance: &Key, why: &Undecided) -> Verdict {
    let message = format!("{instance} could not be decided: {why}");
    Verdict { reason: Some(why.to_string()), message, ..bare(compiled, instance, Finding::Undecided) }
}

/// The verdict on an instance that is violated in the cluster as it is.
pub fn violated_now(compiled: &CompiledInvariant, object: &Arc<Object>, clause: usize, message: &str) -> Verdict {
    let source = compiled.require.get(clause).map(|c| c.source.to_string()).unwrap_or_default();
    let counterexample = Counterexample { steps: Vec::new(), broken: broken(&source, message), replayed: true };
    Verdict {
        message: message.to_owned(),
        counterexample: Some(counterexample),
        proved_against: versions(std::slice::from_ref(object)),
        ..bare(compiled, &object.key, Finding::Refuted)
    }
}

/// The verdict on a refuted instance.
pub(crate) fn refuted(instance: &Instance<'_, '_>, violation: &Violation<'_, '_>) -> Verdict {
    let steps = steps(violation);
    let mut message = vec![violation.message.clone()];
    message.extend(steps.iter().map(|step| format!("- {}", step.text())));
    if message.len() > LINES_MAX {
        let left = message.len() - LINES_MAX + 1;
        message.truncate(LINES_MAX - 1);
        message.push(format!("- and {left} more steps"));
    }
    let source = instance.compiled.require.get(violation.clause).map(|c| c.source.to_string()).unwrap_or_default();
    let scenario = violation.question.scene.scenario;
    let mut read: Vec<Arc<Object>> = vec![instance.object.clone()];
    read.extend(scenario.state.delta().keys().filter_map(|k| instance.before.get(k).cloned()));
    Verdict {
        message: message.join("\n"),
        counterexample: Some(Counterexample { steps, broken: broken(&source, &violation.message), replayed: true }),
        proved_against: versions(&read),
        ..bare(instance.compiled, &instance.object.key, Finding::Refuted)
    }
}

fn broken(source: &str, message: &str) -> String {
    format!("{} ({message})", source.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Puts verdicts in order: by invariant, then instance.
pub fn finish(verdicts: &mut [Verdict]) {
    verdicts.sort_by(|a, b| (&a.invariant, &a.instance).cmp(&(&b.invariant, &b.instance)));
}

/// What happens on the way: the requests and their closures, what controllers do, what fails.
fn steps(violation: &Violation<'_, '_>) -> Vec<StepReport> {
    let scene = &violation.question.scene;
    let mut steps: Vec<StepReport> = Vec::new();
    for step in &scene.scenario.steps {
        steps.push(StepReport { effect: step.effect.clone(), objects: names(step.objects.iter().cloned()) });
    }
    for (coded, choice) in scene.coded().iter().zip(&violation.choices) {
        steps.extend(group_steps(&coded.group, choice, scene.scenario));
    }
    let outage = &scene.view.outage;
    if !outage.nodes.is_empty() {
        let effect = if outage.zones.is_empty() {
            "these nodes fail".to_owned()
        } else {
            format!("zone {} fails", outage.zones.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", "))
        };
        steps.push(StepReport { effect, objects: names(outage.nodes.iter().map(|n| Key::of("Node", "", n))) });
    }
    steps
}

/// What becomes of the entities of one group, as far as it is an event.
fn group_steps(group: &Group, choice: &Choice, scenario: &Scenario<'_>) -> Vec<StepReport> {
    let Some(name) = &group.name else { return Vec::new() };
    let mut by_text: BTreeMap<(FateKind, String), Vec<Key>> = BTreeMap::new();
    for (entity, numbers) in group.entities.iter().zip(choice) {
        for (fate, number) in entity.fates.iter().zip(numbers) {
            if *number == 0 {
                continue;
            }
            let before = entity.key.as_ref().and_then(|k| scenario.state.get(k));
            let expected = before.is_some_and(|o| o.leaving);
            let text = match fate.kind {
                FateKind::Stays | FateKind::NotMade => continue,
                FateKind::Terminating | FateKind::Gone if expected => continue,
                FateKind::LosesReadiness if before.is_some_and(|o| !o.ready()) => continue,
                FateKind::Terminating | FateKind::Gone if entity.key.as_ref() == Some(name) => "it goes".to_owned(),
                FateKind::Terminating | FateKind::Gone => format!("the controller of {name} removes pods"),
                FateKind::BecomesReady => "these pods become ready".to_owned(),
                FateKind::LosesReadiness => "these pods lose readiness".to_owned(),
                FateKind::NewUnready => format!("new pods of {name} are not ready"),
                FateKind::NewReady => match fate.object.as_ref().filter(|o| !o.node.is_empty()) {
                    Some(pod) => format!("{number} new pods of {name} are placed on node {}", pod.node),
                    None => format!("new pods of {name} become ready"),
                },
            };
            let key = entity.key.clone().or_else(|| fate.object.as_ref().map(|o| o.key.clone()));
            by_text.entry((fate.kind, text)).or_default().extend(key);
        }
    }
    by_text.into_iter().map(|((_, effect), objects)| StepReport { effect, objects: names(objects) }).collect()
}

/// A solution with fewer events that is a violating future too, if a greedy search finds one.
pub fn calmer(question: &Question<'_, '_>, solution: &Assignment) -> Option<Assignment> {
    let problem = &question.problem;
    let mut best = solution.clone();
    let mut changed = false;
    for class in question.scene.coded().iter().flat_map(|c| &c.classes) {
        for fate in 1..class.counts.len() {
            loop {
                let here = class.counts.get(fate).and_then(|c| c.eval(&best).ok()).unwrap_or(0);
                let mut step = here;
                let mut moved = None;
                while step > 0 {
                    let tried = shifted(class, fate, step, &best);
                    if let Some(tried) = tried.filter(|t| problem.is_witness(t).unwrap_or(false)) {
                        moved = Some(tried);
                        break;
                    }
                    step /= 2;
                }
                match moved {
                    Some(tried) => {
                        best = tried;
                        changed = true;
                    }
                    None => break,
                }
            }
        }
    }
    changed.then_some(best)
}

/// `number` entities of a class moved from one fate to the first, the least eventful.
fn shifted(class: &Class, fate: usize, number: i64, from: &Assignment) -> Option<Assignment> {
    let mut to = from.clone();
    let variable = |at: usize| match class.counts.get(at)?.as_lin()?.terms() {
        [(var, 1)] => Some(*var),
        _ => None,
    };
    let first = variable(0)?;
    to.set(first, from.get(first).ok()? + number).ok()?;
    if let Some(var) = variable(fate).filter(|_| fate + 1 < class.counts.len()) {
        to.set(var, from.get(var).ok()? - number).ok()?;
    }
    Some(to)
}

/// Requests near a refused one, nearest first, each with what to say if it is allowed.
pub fn variants(input: &Input<'_>) -> Vec<(String, Request)> {
    let [request] = input.change.requests.as_slice() else { return Vec::new() };
    let mut found = Vec::new();
    if request.operation == Operation::Delete && request.propagation != Some(Propagation::Orphan) {
        let state = State::new(input.snapshot);
        let owns = state.get(&request.target).is_some_and(|o| !state.owned_by(&o.uid).is_empty());
        if owns {
            let orphan = Request { propagation: Some(Propagation::Orphan), ..request.clone() };
            found.push(("delete it with propagationPolicy Orphan".to_owned(), orphan));
        }
    }
    if request.subresource == "scale" {
        let asked = request.object.as_ref().and_then(|o| o.int_at(&["spec", "replicas"])).unwrap_or(0);
        for replicas in asked + 1..=asked + VARIANTS_MAX {
            let object = request.object.clone().unwrap_or_default().with_at(&["spec", "replicas"], Val::Int(replicas));
            found.push((format!("scale it to {replicas}"), Request { object: Some(object), ..request.clone() }));
        }
    }
    found
}
