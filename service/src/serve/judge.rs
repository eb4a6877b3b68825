//! Judges one request on a worker's thread: the cluster as the watch shows it, what is in flight, the engine, the answer.
//!
//! No call leaves the process here, except that a replica that shares the cluster with others announces the request
//! first ([`super::announce`]).

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use suture_checker::decision::{Decision, Outcome, Verdict};
use suture_checker::engine::{Engine, Settings};
use suture_model::access::Access;
use suture_model::change::{Change, Request};
use suture_model::object::Object;
use suture_model::snapshot::Facts;
use suture_model::state::State;
use suture_model::steps::{self, Abandoned};
use suture_model::value::Str;
use suture_specs::spec::OnUndecided;

use self::landing::{effective, is_eviction, landing, same_call};
use super::active::Active;
use super::announce::{Announcement, Announcer};
use super::answer::{Answer, Label, TRY_AGAIN, Unanswered};
use super::costs::Costs;
use super::in_flight_log::{Basis, InFlightLog, NotEntered, Reader, Spending};
use super::last_reads::LastReads;
use super::overruns::Overruns;
use super::pauses::Pauses;
use super::reports::{Reports, Told, is_kept};
use super::resources::{self, ResourceName};
use super::review::AdmissionCall;
use super::store::{Reading, Store, View};
use super::workers::{Decider, Deciders};
use crate::clock::{Clock, now};
use crate::decide::{self, Consequence, Decided, Question, Unread, decide, target_facts};
use crate::grants::Spent;
use crate::ledger::Entry;
use crate::no_op::writes;
use crate::policy::Policy;

/// How often a request is judged again because another one was admitted meanwhile, before it is judged alone.
const TRIES_MAX: usize = 4;
/// In how many ways changes in flight that matter may have landed in a webhook: each is judged.
const WAYS_MAX: usize = 64;
/// In how many ways they may have landed as long as it is hoped that the watch shows some of them soon: to wait costs
/// nothing, and to judge more ways than these costs more than most watches lag.
const WAYS_SOON_MAX: usize = 8;
/// How long that is hoped for.
const SOON_WAIT_MAX: Duration = Duration::from_millis(24);
/// How long a denial waits for what is in flight to land, where it would be none then: a client that has the answer to one
/// request sends the next at once, and a watch shows the first a little later.
const LANDING_WAIT_MAX: Duration = Duration::from_millis(250);
/// The pause before looking again whether fewer are in flight: watches show a write within a few milliseconds.
const IN_FLIGHT_PAUSE: Duration = Duration::from_millis(4);
/// What of the time until the deadline may be spent waiting, in parts of a hundred; the rest is for deciding.
const WAIT_PERCENT: u32 = 50;

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
    /// Whether what was seen still counts.
    pub pauses: Pauses,
    /// What becomes of a request that touches a custom resource which no adapter explains.
    pub unmodelled: OnUndecided,
    /// Who keeps reports, if anybody does.
    pub reports: Option<Reports>,
    /// What the last decisions about objects read.
    last_reads: LastReads,
    /// Which invariants overran of late.
    pub overruns: Arc<Overruns>,
    /// What each invariant took.
    pub costs: Arc<Costs>,
    /// The engine of the latest generation of the policy that was asked for: its clones share what they keep.
    engine: Mutex<Option<(u64, Engine)>>,
}

/// Makes judges for workers.
pub struct JudgePool(pub Arc<SharedState>);

impl Deciders for JudgePool {
    fn decider(&self) -> Box<dyn Decider> {
        Box::new(Judge::new(self.0.clone()))
    }
}

/// Judges requests, one at a time.
pub struct Judge {
    shared: Arc<SharedState>,
    /// The engine of a generation of the policy.
    engine: Option<(u64, Engine)>,
    /// What the last decision was made from, if it is one that a report is kept of.
    told: Option<Told>,
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
}

/// A judgement, and what it rests on.
struct Judged {
    answer: Answer,
    basis: Basis,
    /// Whether no decision can change by the request.
    no_op: bool,
}

/// What a judgement would be another one after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// Fewer that matter are in flight: too many are for an answer.
    ForFewer,
    /// What is in flight has landed: the request is denied since it may not have.
    ForLanding,
}

impl Decider for Judge {
    fn decide(&mut self, asked: &AdmissionCall) -> Answer {
        self.told = None;
        match catch_unwind(AssertUnwindSafe(|| self.answer(asked))) {
            Ok(answer) => self.reported(answer, asked),
            Err(with) => {
                if with.is::<Abandoned>() {
                    // none of this is abandoned once more
                    steps::aside(|| {
                        let left_in = self.engine.as_mut().and_then(|(_, engine)| engine.left_in());
                        if let (Some(invariant), Ok(request)) = (left_in, Request::from_review(&asked.review)) {
                            self.shared.overruns.note(&request, &BTreeSet::from([invariant]), now());
                        }
                        // who asked was answered so
                        self.reported(Answer::unjudged(Unanswered::Overrun, OnUndecided::Deny), asked)
                    });
                }
                resume_unwind(with)
            }
        }
    }
}

impl Judge {
    fn answer(&mut self, asked: &AdmissionCall) -> Answer {
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
        if let Err(why) = self.shared.pauses.check() {
            return Answer::idle(why);
        }
        match self.shared.replicas.clone() {
            Replicas::Single(active) => match active.check() {
                Ok(term) => {
                    let answer = Answer { term: Some(term), ..self.alone(request, asked) };
                    // the lease may have run out while this was judged
                    let held = if answer.allowed { active.still(term) } else { Ok(()) };
                    held.map_or_else(Answer::idle, |()| answer)
                }
                Err(why) => Answer::idle(why),
            },
            Replicas::Audit => audited(self.alone(request, asked)),
            Replicas::Announced(announcer) => self.announced(request, &announcer, asked),
        }
    }
}

impl SharedState {
    /// What judges share before anything was decided.
    pub fn new(store: Arc<Store>, in_flight_log: Arc<InFlightLog>, replicas: Replicas) -> Self {
        let (unmodelled, last_reads, engine) = (OnUndecided::Allow, LastReads::default(), Mutex::default());
        let (pauses, overruns, costs) = (Pauses::default(), Arc::default(), Arc::default());
        Self { store, in_flight_log, replicas, pauses, unmodelled, reports: None, last_reads, overruns, costs, engine }
    }

    /// An engine for the policy of a view.
    fn engine(&self, view: &View) -> Result<Engine, String> {
        let generation = view.loaded.generation;
        let mut known = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, engine)) = known.as_ref()
            && *of == generation
        {
            return Ok(engine.clone());
        }
        let unsure = matches!(self.replicas, Replicas::Announced(_));
        let settings = Settings { unsure, unmodelled: self.unmodelled, ..Settings::webhook() };
        let engine = Engine::of(view.loaded.analyses.clone(), settings).map_err(|error| error.to_string())?;
        *known = Some((generation, engine.clone()));
        Ok(engine)
    }

    /// Enters what is admitted, and says what is answered. `None` when something was entered meanwhile that matters.
    fn enter(&self, reader: &Reader<'_>, request: &Request, judged: Judged) -> Option<Answer> {
        let Judged { answer, mut basis, no_op } = judged;
        let admits = answer.allowed || matches!(self.replicas, Replicas::Audit);
        let passes = basis.spent.is_empty() && no_op;
        if passes || !admits || request.dry_run || !writes(request) {
            return Some(answer);
        }
        let landing = landing(request, &reader.view);
        let access = reader.access(&landing);
        if basis.spent.is_empty() && !matters(&landing, &reader.view, || access.clone()) {
            return Some(answer);
        }
        basis.reads.extend(&access.reads);
        match reader.enter(&landing, access, &basis) {
            Ok(order) => Some(Answer { spends: spendings(basis.spent, reader, Some(order)), ..answer }),
            Err(NotEntered::Overtaken) => None,
            // nothing is refused for the sake of an audit
            Err(NotEntered::Full) if matches!(self.replicas, Replicas::Audit) => Some(answer),
            Err(NotEntered::Full) => Some(Answer::try_again(FULL)),
        }
    }
}

impl RequestInView {
    fn of(request: &Request, view: Arc<View>) -> Self {
        let request = request.clone().resolve(&State::new(&view.snapshot));
        let now = Clock::now();
        let effective = effective(&request, &view);
        let no_op = view.loaded.relevant_fields.is_no_op(&effective, &view.loaded.policy);
        let newer = if no_op { None } else { newer(&request, &view) };
        let view = match newer {
            Some(object) => Arc::new(view.showing(object)),
            None => view,
        };
        Self { view, now, request, effective, no_op }
    }

    /// Those of these entries that are in flight for this request: no repetitions, and not itself.
    fn open(&self, entries: Vec<Entry>) -> Vec<Entry> {
        let mut open: Vec<Entry> = Vec::new();
        for entry in entries.into_iter().filter(|entry| !is_over(entry, &self.request, &self.view, self.now)) {
            if !open.iter().any(|known| known.repeated_by(&entry)) {
                open.push(entry);
            }
        }
        open
    }

    /// The invariants that cannot be judged; those that the request does not change stay as they are.
    fn unread(&self) -> Vec<Unread> {
        if self.no_op { Vec::new() } else { self.view.unclear(&self.request.target.ns) }
    }

    /// Why nothing can be said yet; none if something can. The watch has to be behind where it does not show the pod of
    /// an eviction, which is there when that comes to admission (`pkg/registry/core/pod/storage/eviction.go`): its
    /// creation may be in flight, but not how it has fared since.
    fn unclear(&self) -> Option<String> {
        let key = &self.request.target;
        let unseen = is_eviction(&self.request)
            && self.view.readings.get(&key.kind) == Some(&Reading::Known)
            && self.view.snapshot.get(key).is_none();
        unseen.then(|| format!("{key} is not shown by the watch yet"))
    }
}

impl Judge {
    /// A judge without an engine yet.
    pub fn new(shared: Arc<SharedState>) -> Self {
        Self { shared, engine: None, told: None }
    }

    /// Hands over what a report is kept of, and says in the answer how it is opened.
    fn reported(&mut self, mut answer: Answer, asked: &AdmissionCall) -> Answer {
        let told = self.told.take();
        let Some(reports) = &self.shared.reports else { return answer };
        if answer.label == Label::Allowed && answer.warnings.is_empty() {
            return answer;
        }
        let Some(mut told) = told.or_else(|| self.undecided(&answer, asked)) else { return answer };
        if !answer.allowed && told.decision.decision < Outcome::Undecided {
            told.decision.decision = Outcome::Undecided;
        }
        told.message.clone_from(&answer.message);
        if let Some(id) = reports.hand_over(told) {
            answer.report = Some(format!("report {id}: {}", reports.opening(id)));
            answer = answer.annotated("report", &id.to_string());
        }
        answer
    }

    /// What is told of a request that was refused without a decision; nothing where another replica decides about it.
    fn undecided(&self, answer: &Answer, asked: &AdmissionCall) -> Option<Told> {
        if answer.code == StatusCode::SERVICE_UNAVAILABLE.as_u16() {
            return None;
        }
        let change = Change::from(Request::from_review(&asked.review).ok()?);
        let mut decision = Decision::of(&asked.uid, []);
        decision.decision = if answer.label == Label::Denied { Outcome::Denied } else { Outcome::Undecided };
        Some(Told { decision, change, view: self.shared.store.read(), message: String::new() })
    }

    /// Judges with what this process admitted, and enters what it admits.
    fn alone(&mut self, request: Request, asked: &AdmissionCall) -> Answer {
        let shared = self.shared.clone();
        for attempt in 0..=TRIES_MAX {
            let (together, alone) = match attempt {
                TRIES_MAX => (None, Some(shared.in_flight_log.alone())),
                _ => (Some(shared.in_flight_log.together()), None),
            };
            let begin = || shared.in_flight_log.begin(&shared.store, u64::MAX);
            let (reader, judged) = self.judge(&request, begin, asked);
            if let Some(answer) = shared.enter(&reader, &request, judged) {
                return answer;
            }
            drop((together, alone));
        }
        Answer::try_again("other requests were admitted again and again while this one was judged")
    }

    /// Announces, and judges with all that was announced before. Budgets over time count what this replica admitted, and
    /// what is in flight of the others'.
    fn announced(&mut self, request: Request, announcer: &Announcer, asked: &AdmissionCall) -> Answer {
        let shared = self.shared.clone();
        let view = shared.store.read();
        let landing = landing(&request, &view);
        let no_op = view.loaded.relevant_fields.is_no_op(&landing, &view.loaded.policy);
        let alone = || Access::of(&view.snapshot, &landing, |_| Vec::new());
        let silent = request.dry_run || !writes(&request) || no_op || !matters(&landing, &view, alone);
        drop(view);
        let announced = match silent {
            true => Ok(None),
            false if !shared.in_flight_log.has_room(&landing) => Err(FULL.to_owned()),
            false => announcer.announce(&landing, asked.deadline).map(Some),
        };
        let order = match announced {
            Ok(order) => order,
            Err(why) => return Answer::try_again(&why),
        };
        let mut announcement = Announcement { announcer, order };
        let begin = || shared.in_flight_log.begin(&shared.store, order.unwrap_or(u64::MAX));
        let (reader, Judged { answer, basis, .. }) = self.judge(&request, begin, asked);
        if answer.allowed && announcement.order.take().is_some() {
            shared.in_flight_log.spend(&basis.spent, Clock::now());
            return Answer { spends: spendings(basis.spent, &reader, None), ..answer };
        }
        answer
    }

    /// Judges beside what is in flight for a reader. Where fewer of these would make another judgement of it, it begins again
    /// once there are fewer, for some time.
    fn judge<'l>(
        &mut self,
        request: &Request,
        begin: impl Fn() -> Reader<'l>,
        asked: &AdmissionCall,
    ) -> (Reader<'l>, Judged) {
        let patience = patience(asked);
        let landing_patience = patience.min(now() + LANDING_WAIT_MAX);
        let soon = patience.min(now() + SOON_WAIT_MAX);
        loop {
            let reader = begin();
            let is_soon = soon > now();
            let ((mut judged, waits), reads) = Facts::read_by(|| self.judge_beside(request, &reader, is_soon));
            let until = match waits {
                Some(Waits::ForFewer) if is_soon => soon,
                Some(Waits::ForFewer) => patience,
                Some(Waits::ForLanding) => landing_patience,
                None => now(),
            };
            let hopes = is_soon && matches!(waits, Some(Waits::ForFewer));
            if hopes || (waits.is_some() && until > now()) {
                let matter = reader.writers(&reads).len();
                drop(reader);
                while until > now() {
                    thread::sleep(IN_FLIGHT_PAUSE);
                    if begin().writers(&reads).len() < matter {
                        break;
                    }
                }
                continue;
            }
            self.shared.last_reads.note(request, &reads);
            judged.basis.reads = reads;
            // it lands, so that others have to reckon with it
            judged.answer = judged.answer.if_essential(asked.essential);
            return (reader, judged);
        }
    }

    /// Judges beside what is in flight for a reader, and says whether fewer of these would make another judgement of it. As
    /// long as it `hopes` for fewer, it is not judged beside many.
    fn judge_beside(&mut self, request: &Request, reader: &Reader<'_>, hopes: bool) -> (Judged, Option<Waits>) {
        let case = RequestInView::of(request, reader.view.clone());
        let judged = |answer, basis| Judged { answer, basis, no_op: case.no_op };
        let (view, policy) = (&case.view, &case.view.loaded.policy);
        let counts = !policy.grants.is_empty();
        let all = if counts {
            reader.entries()
        } else {
            reader.writers(&target_facts(&view.snapshot, slice::from_ref(request)))
        };
        if all.iter().any(|entry| same_call(&entry.request, &case.request)) {
            // the API server asks again about what was admitted and is in flight
            return (
                Judged {
                    answer: Answer::allowed().annotated("repeated", "true"),
                    basis: Basis::default(),
                    no_op: true,
                },
                None,
            );
        }
        if let Some(reason) = case.unclear() {
            return (judged(undecided(&reason, &case.request, view), Basis::default()), None);
        }
        let shared = self.shared.clone();
        let likely_reads = shared.last_reads.likely(&case.request);
        let hurried = self.shared.overruns.hurried(&case.request, now());
        let engine = if case.no_op { Ok(None) } else { self.engine(view, hurried).map(Some) };
        let engine = match engine {
            Ok(engine) => engine,
            Err(why) => return (judged(Answer::try_again(&why), Basis::default()), None),
        };
        let change = Change::from(case.effective.clone());
        let counted = if counts { case.open(all) } else { Vec::new() };
        let seen = RefCell::new(BTreeSet::new());
        let question = Question {
            snapshot: &view.snapshot,
            change: &change,
            writers: &|facts| {
                let found = reader.writers(facts);
                seen.borrow_mut().extend(found.iter().map(|entry| entry.order));
                case.open(found)
            },
            ways_max: if hopes { WAYS_SOON_MAX } else { WAYS_MAX },
            hopes,
            likely_reads: &likely_reads,
            counted: &counted.iter().map(|entry| &*entry.request).collect::<Vec<_>>(),
            history: &reader.history,
            time: Some(case.now),
            unread: &case.unread(),
        };
        let Decided { decision, spent, crowded } = decide(policy, engine, &question);
        shared.overruns.note(&case.request, &decision.overran, now());
        shared.costs.note(&decision.taken);
        let mut answer = Answer::from_decision(&decision, policy);
        if !answer.allowed && (crowded || is_eviction(&case.request)) {
            answer.code = TRY_AGAIN;
            answer.retry_after_secs = crowded.then_some(1);
        }
        let basis = Basis { reads: Facts::default(), taken: seen.into_inner(), spent, counts };
        answer.in_flight = Some(basis.taken.len());
        let waits = match crowded {
            true => Some(Waits::ForFewer),
            false => awaits_landing(&decision, policy).then_some(Waits::ForLanding),
        };
        let judged = judged(answer, basis);
        self.told = (shared.reports.is_some() && is_kept(&decision)).then(|| Told {
            decision,
            change,
            view: case.view.clone(),
            message: String::new(),
        });
        (judged, waits)
    }

    /// The engine for the policy of a view, that hurries these invariants.
    fn engine(&mut self, view: &View, hurried: BTreeSet<Str>) -> Result<&mut Engine, String> {
        let generation = view.loaded.generation;
        if self.engine.as_ref().is_none_or(|(of, _)| *of != generation) {
            self.engine = Some((generation, self.shared.engine(view)?));
        }
        let engine = self.engine.as_mut().map(|(_, engine)| engine).ok_or_else(|| "no engine".to_owned())?;
        engine.hurry(hurried);
        Ok(engine)
    }
}

/// Whether a decision denies, and would not once what is in flight has landed.
fn awaits_landing(decision: &Decision, policy: &Policy) -> bool {
    let denies = |verdict: &&Verdict| decide::consequence(verdict, policy) == Some(Consequence::Denies);
    let mut denying = decision.verdicts.iter().filter(denies).peekable();
    denying.peek().is_some() && denying.all(|verdict| verdict.awaits_landing)
}

/// Whether an entry is not in flight for a request: the watch has shown it meanwhile, or it is the request itself.
fn is_over(entry: &Entry, request: &Request, view: &View, now: Clock) -> bool {
    entry.ended(view.sight(), Some(now)) || same_call(&entry.request, request)
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

/// Whether anything that is known may depend on it: it is of a kind that is watched, or changes another object.
fn matters(request: &Request, view: &View, access: impl FnOnce() -> Access) -> bool {
    view.readings.contains_key(&request.target.kind) || access().spreads
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
    // nothing is refused since it cannot be recorded
    answer.spends.clear();
    answer
}

/// What of this is to be recorded in the status of a grant: of those that come from the cluster.
fn spendings(spent: Vec<Spent>, Reader { view, history, .. }: &Reader<'_>, order: Option<u64>) -> Vec<Spending> {
    let has_status = |spent: &Spent| view.loaded.resources.contains_key(&ResourceName::of_grant(&spent.grant));
    let adopted = history.adopted();
    spent.into_iter().filter(has_status).map(|spent| Spending { spent, adopted, order }).collect()
}

/// Why a request is not entered for which there is no room.
const FULL: &str = "too many requests of this author, or in this namespace, are in flight, or too large ones";

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

mod landing;

#[cfg(test)]
mod tests;
