//! Runs suites: each case from the suite's state, its steps in order, what is admitted in flight until it is observed.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use suture_checker::decision::{Decision, Finding, Verdict};
use suture_checker::engine::{Engine, Settings};
use suture_model::apply::apply;
use suture_model::change::Change;
use suture_model::land::SCENARIOS_MAX;
use suture_model::object::Key;
use suture_model::snapshot::Facts;
use suture_model::state::State;
use suture_specs::spec::{Case, Observation, Step, Suite, Verb};

use super::documents::{self, place};
use super::expect;
use super::report::{CaseFailure, CaseReport, Report, SuiteReport};
use super::steps::{self, Built};
use crate::clock::{Clock, now};
use crate::decide::{Decided, Question, admits, decide};
use crate::failure::Failure;
use crate::grants::History;
use crate::ledger::{Ledger, Progress as Shown, Sight};
use crate::output::decision::{About, text};
use crate::output::progress::Progress;
use crate::output::terminal::Paint;
use crate::policy::{Policy, diagnosed};
use crate::recorded::{Place, RecordedCluster};

/// The clauses of invariants, and whether a step found them broken.
type Clauses = BTreeMap<String, bool>;

/// Runs suites, as many side by side as there are processors.
///
/// With `coverage`, also says which clauses of their invariants a step found broken.
///
/// # Errors
/// When a document that a suite names cannot be read or is wrong: what is wrong in the first such suite.
pub fn run(suites: &[Suite], coverage: bool, progress: &Progress) -> Result<Report, Failure> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(suite) = suites.get(at) else { return done };
            progress.say(&suite.name);
            let mut clauses = Clauses::new();
            let mut saw = |seen: &Seen<'_>| cover(&mut clauses, seen);
            let ran = if coverage { run_watched(suite, Some(&mut saw)) } else { run_suite(suite) };
            if ran.is_err() {
                // no other is begun; all before this one are
                next.store(suites.len(), Ordering::Relaxed);
            }
            done.push((at, ran.map(|ran| (ran, clauses))));
        }
    };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let mut done = thread::scope(|scope| {
        let threads: Vec<_> = (0..processors.min(suites.len())).map(|_| scope.spawn(work)).collect();
        let ended = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        ended.flatten().collect::<Vec<_>>()
    });
    done.sort_by_key(|(at, _)| *at);
    let (mut report, mut all) = (Report::default(), Clauses::new());
    for (_, ran) in done {
        let (ran, clauses) = ran?;
        report.add(ran);
        clauses.into_iter().for_each(|(clause, is_broken)| *all.entry(clause).or_default() |= is_broken);
    }
    report.coverage = coverage.then_some(all);
    Ok(report)
}

/// Notes the clauses of all invariants, and those that a step found broken: a counterexample begins with its clause.
fn cover(clauses: &mut Clauses, seen: &Seen<'_>) {
    for invariant in &seen.policy.invariants {
        let of = |verdict: &&Verdict| verdict.invariant == *invariant.name && verdict.outcome == Finding::Refuted;
        let broken: Vec<&str> = seen
            .decision
            .verdicts
            .iter()
            .filter(of)
            .filter_map(|v| Some(&*v.counterexample.as_ref()?.broken))
            .collect();
        for clause in &invariant.require {
            let source = clause.source.split_whitespace().collect::<Vec<_>>().join(" ");
            let is_broken =
                broken.iter().any(|text| text.strip_prefix(&*source).is_some_and(|rest| rest.starts_with(" (")));
            *clauses.entry(format!("{}: {source}", invariant.name)).or_default() |= is_broken;
        }
    }
}

/// Runs one suite. What this version does not support fails each of its cases.
///
/// # Errors
/// When a document that it names cannot be read or is wrong.
pub fn run_suite(suite: &Suite) -> Result<SuiteReport, Failure> {
    run_watched(suite, None)
}

/// What a step asked, and what was decided.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The suite.
    pub suite: &'a Suite,
    /// What it is decided by.
    pub policy: &'a Policy,
    /// The requests.
    pub change: &'a Change,
    /// The decision.
    pub decision: &'a Decision,
}

/// [`run_suite`], which shows every step to `saw`, with what is proved and why.
///
/// # Errors
/// When a document that it names cannot be read or is wrong.
pub fn run_watched(suite: &Suite, saw: Option<&mut dyn FnMut(&Seen<'_>)>) -> Result<SuiteReport, Failure> {
    let documents = documents::documents(suite)?;
    let cases = match documents::unsupported(&documents) {
        Some(reason) => suite.spec.cases.iter().map(|case| failed(case, &reason)).collect(),
        None => {
            let mut policy = documents.compile().map_err(diagnosed)?;
            let settings = Settings { verbose: saw.is_some(), ..Settings::default() };
            let engine = Engine::new(policy.invariants.clone(), settings).map_err(Failure::invalid)?;
            let mut base = documents::state(RecordedCluster::new(policy.adapters.clone()), suite)?;
            policy.read_definitions(&mut base.snapshot);
            let mut runner = Runner { engine, policy, base, suite, folder: documents::folder(suite), saw };
            suite.spec.cases.iter().enumerate().map(|(at, case)| runner.timed(at, case)).collect()
        }
    };
    Ok(SuiteReport { name: suite.name.to_string(), file: suite.origin.file.to_string(), cases })
}

fn failed(case: &Case, reason: &str) -> CaseReport {
    CaseReport { name: case.name.clone(), micros: Some(0), failure: Some(CaseFailure::new(None, reason)) }
}

struct Runner<'s, 'o> {
    engine: Engine,
    policy: Policy,
    base: RecordedCluster,
    suite: &'s Suite,
    folder: PathBuf,
    saw: Option<&'o mut dyn FnMut(&Seen<'_>)>,
}

/// Where a case stands.
struct Running {
    recorded: RecordedCluster,
    /// The time, if the suite or its state tells any.
    now: Option<Clock>,
    /// What has passed, on a clock that starts anywhere where the time is not told.
    passed: Clock,
    ledger: Ledger,
    history: History,
}

impl Runner<'_, '_> {
    /// Runs the case at this place among those of its suite.
    fn timed(&mut self, at: usize, case: &Case) -> CaseReport {
        let clock = now();
        let failure = self.case(case).err().map(|failure| {
            let step = failure.step.map_or_else(String::new, |step| format!(".steps[{}]", step - 1));
            let line = Some(place(self.suite, &format!("spec.cases[{at}]{step}")).line).filter(|line| *line > 0);
            CaseFailure { line, ..failure }
        });
        let micros = u64::try_from(clock.elapsed().as_micros()).unwrap_or(u64::MAX);
        CaseReport { name: case.name.clone(), micros: Some(micros), failure }
    }

    fn case(&mut self, case: &Case) -> Result<(), CaseFailure> {
        let mut running = self.start(case).map_err(|error| CaseFailure::new(None, error))?;
        for (number, step) in (1..).zip(&case.steps) {
            self.step(&mut running, step).map_err(|failure| CaseFailure { step: Some(number), ..failure })?;
        }
        Ok(())
    }

    fn start(&self, case: &Case) -> Result<Running, String> {
        let mut recorded = self.base.clone();
        let place = place(self.suite, "");
        let observation = Observation { set: case.set.clone(), unset: case.unset.clone(), after: None };
        show(&mut recorded, &observation, &place)?;
        let now = match &self.suite.spec.time {
            Some(time) => Some(Clock::parse(time)?),
            None => recorded.newest,
        };
        let passed = now.unwrap_or(Clock::ANY);
        Ok(Running { recorded, now, passed, ledger: Ledger::default(), history: self.policy.grants.recorded().clone() })
    }

    fn step(&mut self, running: &mut Running, step: &Step) -> Result<(), CaseFailure> {
        let fail = |error: String| CaseFailure::new(None, error);
        if let Verb::Observe(observation) = step.verb().map_err(fail)? {
            return self.observe(running, observation).map_err(fail);
        }
        let in_flight = running.ledger.requests();
        let mut stored = State::new(&running.recorded.snapshot);
        for request in &in_flight {
            apply(&mut stored, request);
        }
        let Built { change, effective } = steps::build(step, stored, &self.folder).map_err(fail)?;
        let snapshot = &running.recorded.snapshot;
        let question = Question {
            snapshot,
            change: &change,
            writers: &|facts| running.ledger.writers(facts, snapshot.last_event()).cloned().collect(),
            ways_max: SCENARIOS_MAX,
            hopes: false,
            likely_reads: &Facts::default(),
            counted: &in_flight.iter().collect::<Vec<_>>(),
            history: &running.history,
            time: running.now,
            unread: &[],
        };
        let Decided { decision, spent, .. } = decide(&self.policy, Some(&mut self.engine), &question);
        if let Some(saw) = &mut self.saw {
            saw(&Seen { suite: self.suite, policy: &self.policy, change: &change, decision: &decision });
        }
        if let Some(reason) = expect::mismatch(step, &decision) {
            let details = text(&decision, About::Change, Paint::PLAIN, false);
            return Err(CaseFailure { details: details.lines().map(str::to_owned).collect(), ..fail(reason) });
        }
        if admits(&decision, &self.policy) {
            for (request, _) in change.requests.iter().zip(effective).filter(|(_, effective)| *effective) {
                running.ledger.record(request, &running.recorded.snapshot, Some(running.passed));
            }
            spent.iter().for_each(|spent| running.history.record(spent, running.now.map(Clock::nanos)));
        }
        Ok(())
    }

    fn observe(&self, running: &mut Running, observation: &Observation) -> Result<(), String> {
        let shown = show(&mut running.recorded, observation, &place(self.suite, ""))?;
        if let Some(after) = &observation.after {
            running.now = running.now.map(|now| now.later(after)).transpose()?;
            running.passed = running.passed.later(after)?;
        }
        let sight = Sight { snapshot: &running.recorded.snapshot, progress: Shown::Written(&shown) };
        running.ledger.observe(sight, Some(running.passed));
        Ok(())
    }
}

/// Lets the watch show an observation, and says which objects it wrote.
fn show(recorded: &mut RecordedCluster, observation: &Observation, place: &Place) -> Result<Vec<Key>, String> {
    let mut shown = Vec::new();
    for manifest in &observation.set {
        shown.extend(recorded.put(manifest, place).map_err(|error| error.to_string())?);
    }
    let mut gone = Vec::new();
    for object in &observation.unset {
        let key = steps::key(object, &State::new(&recorded.snapshot))?;
        if recorded.snapshot.remove(&key).is_none() {
            return Err(format!("`{key}`, which is to be taken out, is not in the state"));
        }
        gone.push(key);
    }
    recorded.snapshot.complete();
    // a Node that was taken out is gone, even while pods still name it
    for key in &gone {
        recorded.snapshot.remove(key);
    }
    Ok(shown)
}
