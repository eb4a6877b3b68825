//! Judges one request on a worker's thread: the cluster as the watch shows it, what is in flight, the engine, the answer.
//!
//! No call leaves the process here, except that a replica that shares the cluster with others announces the request
//! first ([`super::announce`]).

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use suture_checker::decision::{Decision, Finding, Verdict};
use suture_checker::engine::{Engine, Input, Settings};
use suture_checker::solve::Budget;
use suture_encode::relevance::{Relevance, Relevant};
use suture_model::apply::apply;
use suture_model::change::{Change, Operation, Request};
use suture_model::state::State;
use suture_specs::compile::CompiledInvariant;

use super::announce::Announcer;
use super::answer::{Answer, Label};
use super::book::Book;
use super::feed::now as now_instant;
use super::inert::writes;
use super::lease::Active;
use super::resources;
use super::review::Asked;
use super::store::{Store, View};
use super::workers::{Decider, Deciders};
use crate::grants::{self, History, Spent};
use crate::ledger::Entry;
use crate::suite::clock::Clock;

/// How often a request is judged again because another one was admitted meanwhile, before it is judged alone.
const TRIES_MAX: usize = 4;
/// How many changes in flight that matter are told apart in a webhook: each doubles the work.
const RELEVANT_MAX: usize = 6;
/// The pause before looking again whether fewer are in flight: watches show a write within a few milliseconds.
const CROWDED_PAUSE: Duration = Duration::from_millis(4);
/// What of the time until the deadline may be spent waiting, in parts of a hundred; the rest is for deciding.
const WAIT_PERCENT: u32 = 50;
/// What a client is told that may try again: `kubectl drain` tries evictions again on this code
/// (`kubectl/pkg/drain/drain.go`, `evictPods`).
const TRY_AGAIN: u16 = 429;

/// How replicas keep out of each other's way.
#[derive(Clone)]
pub enum Replicas {
    /// One of them decides at a time, by a Lease.
    Single(Active),
    /// All decide; each announces a request before it decides.
    Announced(Arc<Announcer>),
    /// All decide, none denies.
    Audit,
}

/// What all judges of a process share.
pub struct Court {
    /// What the watch shows.
    pub store: Arc<Store>,
    /// What is in flight, where it is not announced.
    pub book: Arc<Book>,
    /// How replicas share the work.
    pub replicas: Replicas,
}

/// The court, as workers get their judges from it.
pub struct Bench(pub Arc<Court>);

impl Deciders for Bench {
    fn decider(&self) -> Box<dyn Decider> {
        Box::new(Judge::new(self.0.clone()))
    }
}

/// Judges requests, one at a time.
pub struct Judge {
    court: Arc<Court>,
    /// The engine of a generation of the policy.
    engine: Option<(u64, Engine)>,
}

/// A judgement, and what it rests on.
struct Judged {
    answer: Answer,
    view: Arc<View>,
    /// The request as it was judged.
    request: Request,
    /// The changes in flight that were taken into account; none where nothing was in flight.
    relevant: Option<Relevant>,
    /// What it takes of budgets.
    spent: Vec<Spent>,
    /// Whether no decision can change by the request.
    inert: bool,
}

impl Judged {
    /// Whether any of these, admitted since, would have been taken into account.
    fn concerned(&mut self, since: &[Entry]) -> bool {
        let relevance = relevance(&self.view);
        let relevant = self.relevant.get_or_insert_with(|| relevance.select(&[], &self.request));
        since.iter().any(|entry| relevance.concerns(relevant, &entry.request))
    }
}

/// What a decision rests on beside the request and what in flight matters to it.
#[derive(Clone, Copy)]
struct Facts<'f> {
    view: &'f View,
    /// All that is in flight: budgets count it.
    in_flight: &'f [Request],
    history: &'f History,
    now: Clock,
}

/// What is known of what came before.
struct Past<'p> {
    entries: &'p [Entry],
    history: &'p Arc<History>,
}

impl Decider for Judge {
    fn decide(&mut self, asked: &Asked) -> Answer {
        let request = match Request::from_review(&asked.review) {
            Ok(request) => request,
            Err(error) => return Answer::refused(Label::Invalid, 400, error.to_string()),
        };
        if &*request.target.kind.group == resources::GROUP {
            // any replica can tell whether it compiles, and no invariant is about it
            let policy = self.court.store.read().loaded.policy.clone();
            return match resources::admission::admit(&asked.review, &policy.documents) {
                Some(why) => Answer::refused(Label::Denied, 422, why),
                None => Answer::allowed(),
            };
        }
        let answer = match self.court.replicas.clone() {
            Replicas::Single(active) => match active.check() {
                Ok(()) => self.alone(request, asked),
                Err(why) => return Answer::refused(Label::Undecided, 503, why),
            },
            Replicas::Audit => return audited(self.alone(request, asked)),
            Replicas::Announced(announcer) => self.announced(request, &announcer, asked),
        };
        // the lease may have run out while this was judged
        match &self.court.replicas {
            Replicas::Single(active) if answer.allowed => match active.check() {
                Ok(()) => answer,
                Err(why) => Answer::refused(Label::Undecided, 503, why),
            },
            _ => answer,
        }
    }
}

impl Judge {
    /// A judge without an engine yet.
    pub fn new(court: Arc<Court>) -> Self {
        Self { court, engine: None }
    }

    /// Judges with what this process admitted, and enters what it admits.
    fn alone(&mut self, request: Request, asked: &Asked) -> Answer {
        let court = self.court.clone();
        let records = !request.dry_run && writes(&request);
        for attempt in 0..=TRIES_MAX {
            let (together, alone) = match attempt {
                TRIES_MAX => (None, Some(court.book.alone())),
                _ => (Some(court.book.together()), None),
            };
            let mut page = court.book.read();
            let repeated = |entries: &[Entry]| entries.iter().any(|entry| same_call(&entry.request, &request));
            if repeated(&page.entries) {
                // the API server asks again about what was admitted and is in flight
                return Answer::allowed().annotated("repeated", "true");
            }
            let mut judged = self.judge(&request, &Past { entries: &page.entries, history: &page.history }, asked);
            if !records || !(judged.answer.allowed || matches!(court.replicas, Replicas::Audit)) {
                return judged.answer;
            }
            let landing = landing(&request, &judged.view);
            if judged.spent.is_empty() && (judged.inert || !matters(&landing, &judged.view)) {
                return judged.answer;
            }
            loop {
                if court.book.enter(&page, &landing, &judged.spent, &judged.view.snapshot, Clock::now()).is_ok() {
                    return judged.answer;
                }
                let next = court.book.read();
                match next.since(&page) {
                    Some(new) if !repeated(new) && !judged.concerned(new) => {}
                    _ => break,
                }
                page = next;
            }
            drop((together, alone));
        }
        refusal("other requests were admitted again and again while this one was judged")
    }

    /// Announces, and judges with all that was announced before. Budgets over time count what this replica admitted, and
    /// what is in flight of the others'.
    fn announced(&mut self, request: Request, announcer: &Announcer, asked: &Asked) -> Answer {
        let view = self.court.store.read();
        let landing = landing(&request, &view);
        let inert = view.loaded.readers.pass_over(&landing, &view.loaded.policy);
        let silent = request.dry_run || !writes(&request) || inert || !matters(&landing, &view);
        drop(view);
        let announced = if silent { Ok(None) } else { announcer.announce(&landing, asked.deadline).map(Some) };
        let order = match announced {
            Ok(order) => order,
            Err(why) => return refusal(&why),
        };
        let entries = announcer.before(order.unwrap_or(u64::MAX));
        let history = self.court.book.read().history;
        let judged = self.judge(&request, &Past { entries: &entries, history: &history }, asked);
        if let Some(order) = order {
            if judged.answer.allowed {
                self.court.book.spend(&judged.spent, Clock::now());
            } else {
                announcer.withdraw(order);
            }
        }
        judged.answer
    }

    /// Judges with what is in flight.
    fn judge(&mut self, request: &Request, past: &Past<'_>, asked: &Asked) -> Judged {
        let patience = patience(asked);
        loop {
            let view = self.court.store.read();
            let request = request.clone().resolve(&State::new(&view.snapshot));
            let now = Clock::now();
            let effective = effective(&request, &view);
            let inert = view.loaded.readers.pass_over(&effective, &view.loaded.policy);
            let in_flight = open(&request, past.entries, &view, now);
            let requests: Vec<Request> = in_flight.into_iter().map(|entry| entry.request.clone()).collect();
            let relevant = match requests.as_slice() {
                [] => None,
                _ if inert => None,
                _ => Some(relevance(&view).select(&requests, &effective)),
            };
            let places = relevant.iter().flat_map(|relevant| &relevant.places);
            let matter: Vec<Request> = places.filter_map(|at| requests.get(*at)).cloned().collect();
            if matter.len() > RELEVANT_MAX && patience > now_instant() {
                drop(view);
                thread::sleep(CROWDED_PAUSE);
                continue;
            }
            let (answer, spent) = if matter.len() > RELEVANT_MAX {
                let count = matter.len();
                let reason = format!(
                    "{count} changes in flight touch the same instances, more than the {RELEVANT_MAX} told apart"
                );
                (undecided(&reason, &request, &view), Vec::new())
            } else {
                let facts = Facts { view: &view, in_flight: &requests, history: past.history, now };
                let (mut answer, spent) = self.decide_on(&facts, &effective, &matter, inert);
                if !answer.allowed && is_eviction(&request) {
                    answer.code = TRY_AGAIN;
                }
                (answer, spent)
            };
            return Judged { answer, view, request: effective, relevant, spent, inert };
        }
    }

    fn decide_on(
        &mut self,
        facts: &Facts<'_>,
        request: &Request,
        matter: &[Request],
        inert: bool,
    ) -> (Answer, Vec<Spent>) {
        let Facts { view, in_flight, history, now } = *facts;
        let policy = &view.loaded.policy;
        let change = Change::from(request.clone());
        let mut decision = if inert {
            Decision::of(&request.uid, [])
        } else {
            let engine = match self.engine(view) {
                Ok(engine) => engine,
                Err(why) => return (refusal(&why), Vec::new()),
            };
            let time = now.to_string();
            let input = Input {
                snapshot: &view.snapshot,
                in_flight: matter,
                change: &change,
                time: Some(&time),
                exemptions: &policy.exemptions,
            };
            let unbound = policy.grants.unbound(&change, &policy.invariants);
            let mut blind = view.blind();
            blind.retain(|(invariant, _)| !unbound.contains(&invariant.name));
            let skipped =
                unbound.into_iter().chain(blind.iter().map(|(invariant, _)| invariant.name.clone())).collect();
            let mut decision = engine.decide_except(&input, skipped);
            decision.add(blind.iter().map(|(invariant, why)| unclear(invariant, request, why)));
            decision
        };
        let mut spent = Vec::new();
        if !policy.grants.is_empty() {
            let now = Some(now.nanos());
            let asked = grants::Asked { snapshot: &view.snapshot, change: &change, in_flight, history, now };
            let judged = policy.grants.judge(&asked);
            decision.add(judged.verdicts.into_iter().map(Into::into));
            spent = judged.spent;
        }
        (Answer::from_decision(&decision, policy), spent)
    }

    fn engine(&mut self, view: &View) -> Result<&mut Engine, String> {
        let generation = view.loaded.generation;
        if self.engine.as_ref().is_none_or(|(of, _)| *of != generation) {
            let settings = Settings { budget: Budget::WEBHOOK, ..Settings::default() };
            let engine = Engine::new(view.loaded.policy.invariants.clone(), settings);
            self.engine = Some((generation, engine.map_err(|error| error.to_string())?));
        }
        self.engine.as_mut().map(|(_, engine)| engine).ok_or_else(|| "no engine".to_owned())
    }
}

/// What is in flight for this request: nothing that the watch has shown meanwhile, no repetitions, not itself.
fn open<'e>(request: &Request, entries: &'e [Entry], view: &View, now: Clock) -> Vec<&'e Entry> {
    let mut open: Vec<&Entry> = Vec::new();
    for entry in entries.iter().filter(|entry| !entry.ended(view.sight(), Some(now))) {
        if !same_call(&entry.request, request) && !open.iter().any(|known| known.repeated_by(entry)) {
            open.push(entry);
        }
    }
    open
}

/// Until when it may be waited for fewer changes in flight.
fn patience(asked: &Asked) -> Instant {
    let left = asked.deadline.saturating_duration_since(now_instant());
    now_instant() + left * WAIT_PERCENT / 100
}

/// Whether anything that is known may depend on it: it is of a kind that is watched, or takes such a thing along.
fn matters(request: &Request, view: &View) -> bool {
    if view.readings.contains_key(&request.target.kind) {
        return true;
    }
    let reach = relevance(view).reach(&[], request);
    reach.instances() > 0 || reach.objects().any(|key| *key != request.target)
}

fn relevance(view: &View) -> Relevance<'_> {
    Relevance::new(&view.snapshot, &view.loaded.analyses)
}

/// Whether the API server asks again about the same request.
fn same_call(known: &Request, request: &Request) -> bool {
    !request.uid.is_empty()
        && known.uid == request.uid
        && known.target.name == request.target.name
        && known.target.ns == request.target.ns
}

fn is_eviction(request: &Request) -> bool {
    request.operation == Operation::Create && request.subresource == "eviction"
}

/// The request as it is judged: an eviction that its budget refuses, by what the watch shows, is judged as if the budget
/// let it pass. The budget's status may be newer in the API server than here. A pod that is not seen here, perhaps since
/// nothing reads pods, is still there to be evicted.
fn effective(request: &Request, view: &View) -> Request {
    let seen = view.snapshot.get(&request.target).is_some();
    if is_eviction(request) && seen && !apply(&mut State::new(&view.snapshot), request).effective {
        return deletion(request);
    }
    request.clone()
}

/// The request as others have to reckon with it: once an eviction is admitted here, the budget's status shows it as
/// spent before the pod shows it as gone, and must not seem to refuse it.
fn landing(request: &Request, view: &View) -> Request {
    let request = request.clone().resolve(&State::new(&view.snapshot));
    if is_eviction(&request) { deletion(&request) } else { request }
}

fn deletion(eviction: &Request) -> Request {
    Request { operation: Operation::Delete, subresource: String::new(), object: None, ..eviction.clone() }
}

/// The answer of a judge that never denies.
fn audited(mut answer: Answer) -> Answer {
    if !answer.allowed {
        answer = answer.clone().annotated("would-deny", &answer.message);
        answer.allowed = true;
        answer.code = 200;
        answer.message = String::new();
    }
    answer.warnings.clear();
    answer
}

/// Nothing is decided, and it is worth trying again.
fn refusal(why: &str) -> Answer {
    let mut answer = Answer::refused(Label::Undecided, TRY_AGAIN, format!("undecided: {why}; try again"));
    answer.retry_after_secs = Some(1);
    answer.undecided.insert("in-flight");
    answer
}

/// An invariant about which nothing can be said; the instance is what the request is about.
fn unclear(invariant: &CompiledInvariant, request: &Request, reason: &str) -> Verdict {
    Verdict {
        invariant: invariant.name.to_string(),
        instance: request.target.to_string(),
        outcome: Finding::Undecided,
        action: invariant.action,
        reason: Some(reason.to_owned()),
        message: format!("undecided: {reason}"),
        counterexample: None,
        assumptions: Vec::new(),
        proved_against: Arc::default(),
        nearest_allowed: Vec::new(),
    }
}

/// Undecided for every invariant, each of which says what follows.
fn undecided(reason: &str, request: &Request, view: &View) -> Answer {
    let invariants = &view.loaded.policy.invariants;
    let decision = Decision::of(&request.uid, invariants.iter().map(|invariant| unclear(invariant, request, reason)));
    let mut answer = Answer::from_decision(&decision, &view.loaded.policy);
    if !answer.allowed {
        answer.code = TRY_AGAIN;
        answer.retry_after_secs = Some(1);
    }
    answer
}

#[cfg(test)]
mod tests;
