//! What is decided about one change: the invariants that bind its authors, what grants say of it, exemptions, and what
//! follows for the request. The command line, suites and `serve` all ask here.
//!
//! Nothing is read and no clock is looked at: whoever asks brings both.

use std::collections::BTreeSet;
use std::sync::Arc;

use suture_checker::decision::{Decision, Finding, Outcome, Verdict};
use suture_checker::engine::{Engine, Input};
use suture_model::annotations::CONFIRM_DELETE;
use suture_model::change::{Change, Request};
use suture_model::land::{SCENARIOS_MAX, TooManyInFlight, ways_to_land};
use suture_model::snapshot::{Facts, Snapshot};
use suture_model::steps;
use suture_model::value::{Str, Val};
use suture_specs::compile::CompiledInvariant;
use suture_specs::spec::{Action, OnUndecided};

use crate::clock::Clock;
use crate::grants::{GrantQuestion, History, Spent};
use crate::ledger::Entry;
use crate::policy::Policy;

/// In how many ways requests in flight may have landed at most where invariants are judged together, unless as much is in flight
/// about the object itself: each is judged in all of these, and mostly much in flight matters to few of them.
const WAYS_TOGETHER_MAX: usize = 8;

/// An invariant that reads kinds of which nothing certain is known, and why not.
pub type Unread = (Arc<CompiledInvariant>, String);

/// A change, and all that the decision about it rests on.
#[derive(Clone, Copy)]
pub struct Question<'q> {
    /// What the watch, or the files, show.
    pub snapshot: &'q Snapshot,
    /// The change.
    pub change: &'q Change,
    /// Of the requests in flight, all that may change one of these facts, oldest first: each may have landed or not.
    pub writers: &'q dyn Fn(&Facts) -> Vec<Entry>,
    /// In how many ways these may have landed at most; more leave it undecided.
    pub ways_max: usize,
    /// Whether it is hoped that they may soon have landed in fewer ways: then it is left undecided as a whole for now.
    pub hopes: bool,
    /// What is likely to be read, which says whom to begin with: it decides nothing but how long this takes.
    pub likely_reads: &'q Facts,
    /// All requests in flight, oldest first: grants count them.
    pub counted: &'q [&'q Request],
    /// What was admitted before, as far as budgets reach.
    pub history: &'q History,
    /// The time, if it is known. Without it no exemption is in force.
    pub time: Option<Clock>,
    /// The invariants that cannot be judged, since something that they read is not known.
    pub unread: &'q [Unread],
}

/// A decision, and what it rests on.
#[derive(Clone, Debug)]
pub struct Decided {
    /// The decision.
    pub decision: Decision,
    /// What the change takes of budgets, to be recorded in the history should it be admitted.
    pub spent: Vec<Spent>,
    /// Whether more requests in flight matter than are told apart.
    pub crowded: bool,
}

/// Decides a change: by the invariants that bind its authors, and by their grants. Without an engine no invariant is
/// judged: for a change that leaves every fact as it is.
pub fn decide(policy: &Policy, engine: Option<&mut Engine>, question: &Question<'_>) -> Decided {
    let (mut decision, crowded) = match engine {
        Some(engine) => by_invariants(policy, engine, question),
        None => (Decision::of(uid(question), []), false),
    };
    decision.add(question.change.requests.iter().filter_map(idle_confirmation));
    if policy.grants.is_empty() {
        return Decided { decision, spent: Vec::new(), crowded };
    }
    let judged = policy.grants.judge(&GrantQuestion {
        snapshot: question.snapshot,
        change: question.change,
        in_flight: question.counted,
        history: question.history,
        now: question.time.map(Clock::nanos),
        exemptions: &policy.exemptions,
    });
    decision.add(judged.verdicts.into_iter().map(Into::into));
    decision.exempted.extend(judged.exempted);
    Decided { decision, spent: judged.spent, crowded }
}

/// A warning that a request writes a confirmation which confirms nothing, since it is not the uid of its object. That of an
/// owner is a copy: the Deployment controller copies annotations to ReplicaSets (`pkg/controller/deployment/util/
/// deployment_util.go`, `SetNewReplicaSetAnnotations`).
fn idle_confirmation(request: &Request) -> Option<Verdict> {
    let (new, old) = (request.object.as_ref()?, request.old.as_ref());
    let confirmation = |object: &Val| object.str_at(&["metadata", "annotations", CONFIRM_DELETE]).cloned();
    let written =
        confirmation(new).filter(|uid| !uid.is_empty() && old.and_then(confirmation).as_ref() != Some(uid))?;
    let uid = new.str_at(&["metadata", "uid"]).or_else(|| old?.str_at(&["metadata", "uid"]));
    let owners = new.items_at(&["metadata", "ownerReferences"]).iter();
    let is_copy = owners.filter_map(|owner| owner.str_at(&["uid"])).any(|owner| *owner == written);
    if !request.subresource.is_empty() || uid == Some(&written) || is_copy {
        return None;
    }
    let text = match uid {
        Some(uid) => format!("{CONFIRM_DELETE}={written} confirms nothing: its uid is {uid}"),
        None => format!("{CONFIRM_DELETE}={written} confirms nothing: it has no uid yet"),
    };
    let invariant = "confirm-delete".to_owned();
    let bare = Verdict { invariant, outcome: Finding::Refuted, action: Action::Warn, reason: None, ..blank() };
    Some(Verdict { instance: request.target.to_string(), message: text, ..bare })
}

/// Decides by the invariants, together if that can be. Where too many requests in flight matter to some of them, these are
/// judged apart from the others, each beside those that matter to it; it is undecided alone if these are still too many.
/// Whether that says too little: it would be another decision beside fewer.
fn by_invariants(policy: &Policy, engine: &mut Engine, question: &Question<'_>) -> (Decision, bool) {
    let unbound = policy.grants.unbound(question.change, &policy.invariants);
    let bound = policy.invariants.iter().map(|invariant| &**invariant);
    let bound: Vec<&CompiledInvariant> = bound.filter(|invariant| !unbound.contains(&invariant.name)).collect();
    let of_target = requests(&(question.writers)(&target_facts(question.snapshot, &question.change.requests)));
    let few = question.ways_max.min(WAYS_TOGETHER_MAX);
    // what matters to all of them does so to each
    let ways_max = if in_few_ways(question, &of_target, few).is_ok() { few } else { question.ways_max };
    let together = Part { invariants: &bound, ways_max };
    let why = match beside_writers(policy, engine, question, together, question.likely_reads) {
        Ok(decision) => return (decision, false),
        Err(why) => why,
    };
    if question.hopes || in_few_ways(question, &of_target, question.ways_max).is_err() {
        let first = question.change.requests.first();
        let decision = first.map(|request| undecided(policy, request, &why.to_string()));
        return (decision.unwrap_or_else(|| Decision::of("", [])), true);
    }
    // all of them together take no more than one decision may
    steps::within(engine.steps(), || in_parts(policy, engine, question, together))
}

/// Invariants that are judged together, and in how many ways requests in flight may have landed for that.
#[derive(Clone, Copy)]
struct Part<'p> {
    invariants: &'p [&'p CompiledInvariant],
    ways_max: usize,
}

/// Invariants for which too much is in flight to be judged together: one half and the other, and so on, down to each beside
/// those in flight that matter to it.
fn in_parts(policy: &Policy, engine: &mut Engine, question: &Question<'_>, all: Part<'_>) -> (Decision, bool) {
    let (mut decision, mut crowded) = (Decision::of(uid(question), []), false);
    let mut open: Vec<&[&CompiledInvariant]> = halves(all.invariants).collect();
    while let Some(invariants) = open.pop() {
        let (alone, ways_max) = match *invariants {
            [one] => (Some(one), question.ways_max),
            _ => (None, all.ways_max),
        };
        let part = Part { invariants, ways_max };
        match (beside_writers(policy, engine, question, part, &Facts::default()), alone) {
            (Ok(found), _) => decision.join(found),
            (Err(_), None) => open.extend(halves(invariants)),
            (Err(why), Some(invariant)) => {
                crowded = true;
                decision.add([unclear(invariant, &instance(question), &why.to_string())]);
            }
        }
    }
    // it was tried with some invariants only
    decision.verdicts.iter_mut().for_each(|verdict| verdict.nearest_allowed.clear());
    let denies = |v: &Verdict| v.outcome == Finding::Refuted && consequence(v, policy) == Some(Consequence::Denies);
    let is_denied = decision.verdicts.iter().any(denies);
    (decision, crowded && !is_denied)
}

/// Both halves of a list, the first one last, as far as there is anything in them.
fn halves<T>(list: &[T]) -> impl Iterator<Item = &[T]> {
    let (first, second) = list.split_at(list.len() / 2);
    [second, first].into_iter().filter(|half| !half.is_empty())
}

/// Decides by some invariants, beside those in flight that may change what is read for it: these may make it read more, which
/// others may change. The writers of what is likely to be read are among them from the start, which saves a round; where these
/// are too many it begins without.
fn beside_writers(
    policy: &Policy,
    engine: &mut Engine,
    question: &Question<'_>,
    part: Part<'_>,
    likely: &Facts,
) -> Result<Decision, TooManyInFlight> {
    // what it is about is read in any case
    let mut begin = target_facts(question.snapshot, &question.change.requests);
    begin.extend(likely);
    let mut writers = (question.writers)(&begin);
    let mut read = Facts::default();
    loop {
        let in_flight = requests(&writers);
        match in_few_ways(question, &in_flight, part.ways_max) {
            Err(_) if !likely.is_empty() => {
                return beside_writers(policy, engine, question, part, &Facts::default());
            }
            few => few?,
        }
        let (decision, now_read) = Facts::read_by(|| judge_invariants(policy, engine, question, &in_flight, part));
        read.extend(&now_read);
        let found = (question.writers)(&read);
        let is_taken = |entry: &Entry| writers.iter().any(|known| known.order == entry.order);
        if found.iter().all(is_taken) {
            return Ok(decision);
        }
        writers.extend(found.into_iter().filter(|entry| !is_taken(entry)).collect::<Vec<_>>());
        writers.sort_by_key(|entry| entry.order);
    }
}

/// The facts about the objects that requests name.
pub fn target_facts(snapshot: &Snapshot, requests: &[Request]) -> Facts {
    Facts::read_by(|| requests.iter().filter(|request| snapshot.get(&request.target).is_some()).count()).1
}

fn requests(entries: &[Entry]) -> Vec<Request> {
    entries.iter().map(|entry| (*entry.request).clone()).collect()
}

/// Whether requests in flight may have landed in no more ways than these, which are told apart.
fn in_few_ways(question: &Question<'_>, in_flight: &[Request], ways_max: usize) -> Result<(), TooManyInFlight> {
    // as if each had an effect
    let most = u32::try_from(in_flight.len()).ok().and_then(|count| 1_usize.checked_shl(count));
    if most.is_some_and(|count| count <= ways_max.min(SCENARIOS_MAX)) {
        return Ok(());
    }
    let in_flight: Vec<&Request> = in_flight.iter().collect();
    ways_to_land(question.snapshot, &in_flight, question.change, ways_max).map(drop)
}

/// Undecided for every invariant, for this reason: nothing can be said about the request yet.
pub fn undecided(policy: &Policy, request: &Request, reason: &str) -> Decision {
    let instance = request.target.to_string();
    Decision::of(&request.uid, policy.invariants.iter().map(|invariant| unclear(invariant, &instance, reason)))
}

/// Judges by some invariants.
fn judge_invariants(
    policy: &Policy,
    engine: &mut Engine,
    question: &Question<'_>,
    in_flight: &[Request],
    part: Part<'_>,
) -> Decision {
    let names: BTreeSet<&Str> = part.invariants.iter().map(|invariant| &invariant.name).collect();
    let left_out: Vec<&Unread> = question.unread.iter().filter(|(i, _)| names.contains(&i.name)).collect();
    let others = policy.invariants.iter().map(|invariant| &invariant.name).filter(|name| !names.contains(name));
    let skipped = others.chain(left_out.iter().map(|(i, _)| &i.name)).cloned().collect();
    let Question { snapshot, change, .. } = *question;
    let time = question.time.map(|time| time.to_string());
    let input = Input { snapshot, in_flight, change, time: time.as_deref(), exemptions: &policy.exemptions };
    let mut decision = engine.decide_except(&input, skipped);
    let instance = instance(question);
    decision.add(left_out.into_iter().map(|(invariant, why)| unclear(invariant, &instance, why)));
    decision
}

/// What is told where an invariant is undecided as a whole: what the change is about.
fn instance(question: &Question<'_>) -> String {
    question.change.requests.first().map_or_else(String::new, |request| request.target.to_string())
}

fn uid<'q>(question: &Question<'q>) -> &'q str {
    question.change.requests.first().map_or("", |request| &request.uid)
}

/// An invariant about which nothing can be said; the instance is what the request is about.
fn unclear(invariant: &CompiledInvariant, instance: &str, reason: &str) -> Verdict {
    Verdict {
        invariant: invariant.name.to_string(),
        instance: instance.to_owned(),
        outcome: Finding::Undecided,
        action: invariant.action,
        reason: Some(reason.to_owned()),
        message: format!("undecided: {reason}"),
        ..blank()
    }
}

/// A verdict that says nothing yet.
fn blank() -> Verdict {
    Verdict {
        invariant: String::new(),
        instance: String::new(),
        outcome: Finding::Undecided,
        action: Action::Deny,
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

/// What a verdict that is not proved does to the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consequence {
    /// It is refused.
    Denies,
    /// It is admitted with a warning.
    Warns,
    /// It is admitted; the audit log has it.
    Audits,
}

/// What follows from a verdict: its action, and where it is undecided what its invariant declares for that.
pub fn consequence(verdict: &Verdict, policy: &Policy) -> Option<Consequence> {
    let by_action = match verdict.action {
        Action::Deny => Consequence::Denies,
        Action::Warn => Consequence::Warns,
        Action::Audit => Consequence::Audits,
    };
    match (verdict.outcome, by_action) {
        (Finding::Proved | Finding::NotWorse, _) => None,
        (Finding::Refuted, _) | (Finding::Undecided, Consequence::Audits) => Some(by_action),
        (Finding::Undecided, _) => match declared(verdict, policy) {
            OnUndecided::Deny => Some(by_action),
            OnUndecided::Warn => Some(Consequence::Warns),
            OnUndecided::Allow => Some(Consequence::Audits),
        },
    }
}

/// Whether the webhook lets the request pass.
pub fn admits(decision: &Decision, policy: &Policy) -> bool {
    decision.unmodelled_outcome != Outcome::Denied
        && decision.verdicts.iter().all(|verdict| consequence(verdict, policy) != Some(Consequence::Denies))
}

/// The `onUndecided` of the invariant of that name.
fn declared(verdict: &Verdict, policy: &Policy) -> OnUndecided {
    let of_name = policy.invariants.iter().find(|invariant| *invariant.name == *verdict.invariant);
    of_name.map_or(OnUndecided::Deny, |invariant| invariant.on_undecided)
}

#[cfg(test)]
mod tests;
