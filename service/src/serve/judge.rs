//! Judges one request on a worker's thread: the cluster as the watch shows it, what is in flight, the engine, the answer.
//!
//! No call leaves the process here, except that a replica that shares the cluster with others announces the request
//! first ([`super::announce`]).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use suture_checker::engine::{Engine, Settings};
use suture_checker::solve::Budget;
use suture_encode::relevance::{Relevance, Relevant};
use suture_model::apply::apply;
use suture_model::change::{Change, Operation, Request};
use suture_model::kinds::KindTraits;
use suture_model::object::Object;
use suture_model::state::State;
use suture_model::value::Str;

use super::announce::Announcer;
use super::answer::{Answer, Label};
use super::in_flight_log::{InFlightLog, LogSnapshot};
use super::lease::Active;
use super::no_op::{may_be_no_op, writes};
use super::resources;
use super::review::AdmissionCall;
use super::store::{Reading, Store, View};
use super::workers::{Decider, Deciders};
use crate::clock::{Clock, now};
use crate::decide::{self, Decided, Question, Unread, decide, decide_at_once};
use crate::grants::{History, Spent};
use crate::ledger::Entry;

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
pub struct SharedState {
    /// What the watch shows.
    pub store: Arc<Store>,
    /// What is in flight, where it is not announced.
    pub in_flight_log: Arc<InFlightLog>,
    /// How replicas share the work.
    pub replicas: Replicas,
}

/// Makes judges for workers, and keeps those of what is decided at once.
pub struct JudgePool {
    shared: Arc<SharedState>,
    /// Judges of what is decided at once, as many as ever were needed at a time.
    free: Mutex<Vec<Judge>>,
}

impl JudgePool {
    /// A pool of judges that share this.
    pub fn new(shared: Arc<SharedState>) -> Self {
        Self { shared, free: Mutex::default() }
    }

    fn free(&self) -> MutexGuard<'_, Vec<Judge>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deciders for JudgePool {
    fn decider(&self) -> Box<dyn Decider> {
        Box::new(Judge::new(self.shared.clone(), Budget::WEBHOOK))
    }

    fn at_once(&self, asked: &AdmissionCall) -> Option<Answer> {
        let free = self.free().pop();
        let mut judge = free.unwrap_or_else(|| Judge::new(self.shared.clone(), Budget::AT_ONCE));
        let answer = judge.at_once(asked);
        self.free().push(judge);
        answer
    }
}

/// Judges requests, one at a time.
pub struct Judge {
    shared: Arc<SharedState>,
    /// What a question may cost.
    budget: Budget,
    /// The engine of a generation of the policy.
    engine: Option<(u64, Engine)>,
}

/// A request before a view of the cluster.
struct RequestInView {
    view: Arc<View>,
    now: Clock,
    /// The request, with what the view tells of its object.
    request: Request,
    /// The request as it is judged.
    effective: Request,
    /// Whether no decision can change by it.
    no_op: bool,
    /// All that is in flight: budgets count it.
    in_flight: Vec<Arc<Request>>,
    /// What of it matters, once that is [`related`](Self::related); none where nothing is in flight, or the request is no_op.
    relevant: Option<Relevant>,
    matter: Vec<Request>,
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
    no_op: bool,
}

impl Judged {
    /// Whether any of these, admitted since, would have been taken into account.
    fn concerned(&mut self, since: &[Entry]) -> bool {
        let relevance = relevance(&self.view);
        let relevant = self.relevant.get_or_insert_with(|| relevance.select([], &self.request));
        since.iter().any(|entry| relevance.concerns(relevant, &entry.request))
    }
}

/// What is known of what came before.
struct Past<'p> {
    entries: &'p [Entry],
    history: &'p Arc<History>,
}

impl Decider for Judge {
    fn decide(&mut self, asked: &AdmissionCall) -> Answer {
        let request = match Request::from_review(&asked.review) {
            Ok(request) => request,
            Err(error) => return Answer::refused(Label::Invalid, 400, error.to_string()),
        };
        if &*request.target.kind.group == resources::GROUP {
            // any replica can tell whether it compiles, and no invariant is about it
            let policy = self.shared.store.read().loaded.policy.clone();
            return match resources::admission::admit(&asked.review, &policy.documents) {
                Some(why) => Answer::refused(Label::Denied, 422, why),
                None => Answer::allowed(),
            };
        }
        let answer = match self.shared.replicas.clone() {
            Replicas::Single(active) => match active.check() {
                Ok(()) => self.alone(request, asked),
                Err(why) => return idle(why),
            },
            Replicas::Audit => return audited(self.alone(request, asked)),
            Replicas::Announced(announcer) => self.announced(request, &announcer, asked),
        };
        // the lease may have run out while this was judged
        match &self.shared.replicas {
            Replicas::Single(active) if answer.allowed => active.check().map_or_else(idle, |()| answer),
            _ => answer,
        }
    }
}

impl SharedState {
    /// Enters what is admitted, and says what is answered. `None` when something was entered meanwhile that matters.
    fn enter(&self, mut log_snapshot: LogSnapshot, request: &Request, mut judged: Judged) -> Option<Answer> {
        let admits = judged.answer.allowed || matches!(self.replicas, Replicas::Audit);
        let passes = judged.spent.is_empty() && judged.no_op;
        if passes || !admits || request.dry_run || !writes(request) {
            return Some(judged.answer);
        }
        let landing = landing(request, &judged.view);
        if judged.spent.is_empty() && !matters(&landing, &judged.view) {
            return Some(judged.answer);
        }
        loop {
            if self
                .in_flight_log
                .enter(&log_snapshot, &landing, &judged.spent, &judged.view.snapshot, Clock::now())
                .is_ok()
            {
                return Some(judged.answer);
            }
            let next = self.in_flight_log.read();
            match next.since(&log_snapshot) {
                Some(new) if !repeats(new, request) && !judged.concerned(new) => {}
                _ => return None,
            }
            log_snapshot = next;
        }
    }
}

impl RequestInView {
    fn of(request: &Request, entries: &[Entry], view: Arc<View>) -> Self {
        let request = request.clone().resolve(&State::new(&view.snapshot));
        let now = Clock::now();
        let effective = effective(&request, &view);
        let no_op = view.loaded.relevant_fields.is_no_op(&effective, &view.loaded.policy);
        let newer = if no_op { None } else { newer(&request, &view) };
        let view = match newer {
            Some(object) => Arc::new(view.showing(object)),
            None => view,
        };
        let in_flight: Vec<Arc<Request>> =
            open(&request, entries, &view, now).into_iter().map(|entry| entry.request.clone()).collect();
        Self { view, now, request, effective, no_op, in_flight, relevant: None, matter: Vec::new() }
    }

    /// With what of all that is in flight matters.
    fn related(mut self) -> Self {
        if !self.in_flight.is_empty() && !self.no_op {
            let relevant = relevance(&self.view).select(self.in_flight.iter().map(Arc::as_ref), &self.effective);
            let matter = relevant.places.iter().filter_map(|at| self.in_flight.get(*at));
            self.matter = matter.map(|request| Request::clone(request)).collect();
            self.relevant = Some(relevant);
        }
        self
    }

    /// The invariants that cannot be judged; those that the request does not change stay as they are.
    fn unread(&self) -> Vec<Unread> {
        if self.no_op { Vec::new() } else { self.view.blind() }
    }

    /// Why nothing can be said yet; none if something can. The watch has to be behind where it does not show the pod of
    /// an eviction, which is there when that comes to admission (`pkg/registry/core/pod/storage/eviction.go`): its
    /// creation may be in flight, but not how it has fared since.
    fn unclear(&self) -> Option<String> {
        let (crowd, key) = (self.matter.len(), &self.request.target);
        if crowd > RELEVANT_MAX {
            return Some(format!(
                "{crowd} changes in flight touch the same instances, more than the {RELEVANT_MAX} told apart"
            ));
        }
        let unseen = is_eviction(&self.request)
            && self.view.readings.get(&key.kind) == Some(&Reading::Known)
            && self.view.snapshot.get(key).is_none();
        unseen.then(|| format!("{key} is not shown by the watch yet"))
    }

    fn judged(self, answer: Answer, spent: Vec<Spent>) -> Judged {
        let Self { view, effective, relevant, no_op, .. } = self;
        Judged { answer, view, request: effective, relevant, spent, no_op }
    }
}

impl Judge {
    /// A judge without an engine yet, whose questions may cost so much.
    pub fn new(shared: Arc<SharedState>, budget: Budget) -> Self {
        Self { shared, budget, engine: None }
    }

    /// Allows a request that changes nothing which is read, or that hardly anything depends on: on the thread of its
    /// connection, which saves two changes of threads. `None` when there is more to it.
    fn at_once(&mut self, asked: &AdmissionCall) -> Option<Answer> {
        let shared = self.shared.clone();
        let Replicas::Single(active) = &shared.replicas else { return None };
        active.check().ok()?;
        let request = Request::from_review(&asked.review).ok()?;
        // what a worker has to look at anyway is not looked at twice
        let more = request.target.kind.has(KindTraits::concerns_pods);
        if &*request.target.kind.group == resources::GROUP || is_eviction(&request) || (more && !may_be_no_op(&request))
        {
            return None;
        }
        let _together = shared.in_flight_log.try_together()?;
        let log_snapshot = shared.in_flight_log.read();
        if repeats(&log_snapshot.entries, &request) {
            return None;
        }
        let case = RequestInView::of(&request, &log_snapshot.entries, shared.store.read());
        if (more && !case.no_op) || !case.view.loaded.policy.grants.is_empty() {
            return None;
        }
        let case = case.related();
        if !case.matter.is_empty() {
            return None;
        }
        let policy = &case.view.loaded.policy;
        let change = Change::from(case.effective.clone());
        let question = Question {
            snapshot: &case.view.snapshot,
            change: &change,
            in_flight: &[],
            counted: &[],
            history: &log_snapshot.history,
            time: Some(case.now),
            unread: &case.unread(),
        };
        let engine = if case.no_op { None } else { Some(self.engine(&case.view).ok()?) };
        let decision = decide_at_once(policy, engine, &question)?;
        let answer = Answer::from_decision(&decision, policy);
        let entered = shared.enter(log_snapshot, &request, case.judged(answer, Vec::new()))?;
        Some(active.check().map_or_else(idle, |()| entered))
    }

    /// Judges with what this process admitted, and enters what it admits.
    fn alone(&mut self, request: Request, asked: &AdmissionCall) -> Answer {
        let shared = self.shared.clone();
        for attempt in 0..=TRIES_MAX {
            let (together, alone) = match attempt {
                TRIES_MAX => (None, Some(shared.in_flight_log.alone())),
                _ => (Some(shared.in_flight_log.together()), None),
            };
            let log_snapshot = shared.in_flight_log.read();
            if repeats(&log_snapshot.entries, &request) {
                // the API server asks again about what was admitted and is in flight
                return Answer::allowed().annotated("repeated", "true");
            }
            let judged =
                self.judge(&request, &Past { entries: &log_snapshot.entries, history: &log_snapshot.history }, asked);
            if let Some(answer) = shared.enter(log_snapshot, &request, judged) {
                return answer;
            }
            drop((together, alone));
        }
        refusal("other requests were admitted again and again while this one was judged")
    }

    /// Announces, and judges with all that was announced before. Budgets over time count what this replica admitted, and
    /// what is in flight of the others'.
    fn announced(&mut self, request: Request, announcer: &Announcer, asked: &AdmissionCall) -> Answer {
        let view = self.shared.store.read();
        let landing = landing(&request, &view);
        let no_op = view.loaded.relevant_fields.is_no_op(&landing, &view.loaded.policy);
        let silent = request.dry_run || !writes(&request) || no_op || !matters(&landing, &view);
        drop(view);
        let announced = if silent { Ok(None) } else { announcer.announce(&landing, asked.deadline).map(Some) };
        let order = match announced {
            Ok(order) => order,
            Err(why) => return refusal(&why),
        };
        let entries = announcer.before(order.unwrap_or(u64::MAX));
        let history = self.shared.in_flight_log.read().history;
        let judged = self.judge(&request, &Past { entries: &entries, history: &history }, asked);
        if let Some(order) = order {
            if judged.answer.allowed {
                self.shared.in_flight_log.spend(&judged.spent, Clock::now());
            } else {
                announcer.withdraw(order);
            }
        }
        judged.answer
    }

    /// Judges with what is in flight.
    fn judge(&mut self, request: &Request, past: &Past<'_>, asked: &AdmissionCall) -> Judged {
        let patience = patience(asked);
        loop {
            let case = RequestInView::of(request, past.entries, self.shared.store.read()).related();
            let crowd = case.matter.len();
            if crowd > RELEVANT_MAX && patience > now() {
                drop(case);
                thread::sleep(CROWDED_PAUSE);
                continue;
            }
            if let Some(reason) = case.unclear() {
                let answer = undecided(&reason, &case.request, &case.view);
                return case.judged(answer, Vec::new());
            }
            let (mut answer, spent) = self.decide_on(&case, past.history);
            if !answer.allowed && is_eviction(&case.request) {
                answer.code = TRY_AGAIN;
            }
            return case.judged(answer, spent);
        }
    }

    fn decide_on(&mut self, case: &RequestInView, history: &History) -> (Answer, Vec<Spent>) {
        let (view, policy) = (&case.view, &case.view.loaded.policy);
        let engine = if case.no_op { Ok(None) } else { self.engine(view).map(Some) };
        let engine = match engine {
            Ok(engine) => engine,
            Err(why) => return (refusal(&why), Vec::new()),
        };
        let change = Change::from(case.effective.clone());
        let question = Question {
            snapshot: &view.snapshot,
            change: &change,
            in_flight: &case.matter,
            counted: &case.in_flight.iter().map(Arc::as_ref).collect::<Vec<_>>(),
            history,
            time: Some(case.now),
            unread: &case.unread(),
        };
        let Decided { decision, spent } = decide(policy, engine, &question);
        (Answer::from_decision(&decision, policy), spent)
    }

    fn engine(&mut self, view: &View) -> Result<&mut Engine, String> {
        let generation = view.loaded.generation;
        if self.engine.as_ref().is_none_or(|(of, _)| *of != generation) {
            let unsure = matches!(self.shared.replicas, Replicas::Announced(_));
            let settings = Settings { budget: self.budget, unsure, ..Settings::default() };
            let engine = Engine::of(view.loaded.analyses.clone(), settings);
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

/// The object of a request, where that shows a later version of it than the watch does.
fn newer(request: &Request, view: &View) -> Option<Object> {
    let old = request.old.as_ref()?;
    let version = |text: &Str| text.parse::<u64>().ok();
    let shown = old.str_at(&["metadata", "resourceVersion"]).and_then(version)?;
    let known = match view.snapshot.get(&request.target) {
        Some(known) => version(&known.resource_version)?,
        // it has been deleted since, unless the watch has not come so far
        None => view.positions.get(&request.target.kind).copied()?,
    };
    if shown > known { request.shown() } else { None }
}

/// Until when it may be waited for fewer changes in flight.
fn patience(asked: &AdmissionCall) -> Instant {
    let left = asked.deadline.saturating_duration_since(now());
    now() + left * WAIT_PERCENT / 100
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

/// Whether the API server asks again about one of these.
fn repeats(entries: &[Entry], request: &Request) -> bool {
    entries.iter().any(|entry| same_call(&entry.request, request))
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

/// Another replica decides, or none does yet.
fn idle(why: String) -> Answer {
    Answer::refused(Label::Undecided, 503, why)
}

/// Nothing is decided, and it is worth trying again.
fn refusal(why: &str) -> Answer {
    let mut answer = Answer::refused(Label::Undecided, TRY_AGAIN, format!("undecided: {why}; try again"));
    answer.retry_after_secs = Some(1);
    answer.undecided.insert("in-flight");
    answer
}

/// Undecided for every invariant, each of which says what follows.
fn undecided(reason: &str, request: &Request, view: &View) -> Answer {
    let policy = &view.loaded.policy;
    let mut answer = Answer::from_decision(&decide::undecided(policy, request, reason), policy);
    if !answer.allowed {
        answer.code = TRY_AGAIN;
        answer.retry_after_secs = Some(1);
    }
    answer
}

#[cfg(test)]
mod tests;
