//! Decides changes by a set of invariants.
//!
//! A decision judges every instance that the change reaches in every scenario (subsets of what is in flight, prefixes of a
//! batch): `judge` finds the instances, `prove` asks about one in one scenario, `blame` compares with what would break
//! without the change, `symmetry_memo` shares verdicts. What was decided before, from facts that are the same, is not
//! decided again.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suture_encode::analysis::Analysis;
use suture_model::change::Change;
use suture_model::object::Key;
use suture_model::snapshot::{Facts, Snapshot};
use suture_model::steps;
use suture_model::value::Str;
use suture_specs::compile::CompiledInvariant;
use suture_specs::spec::OnUndecided;

use crate::audit::{Audit, Audits};
use crate::cache::Verdicts;
use crate::causes::narrow;
use crate::clock::Stopwatch;
use crate::decision::{Decision, Duration, Effort, Finding, Outcome, Verdict};
use crate::decision_cache::{CacheKey, DecisionCache, repeatable};
use crate::judge::{Findings, Instances, Judge, Scope};
use crate::suggest::suggest;
use crate::suppose::judge_all;
use crate::version::{VersionError, z3_version};

pub use crate::instance::Undecided;
pub use crate::request::{Input, STEPS_WEBHOOK, Settings};

/// So many instances are judged at most to find what would have been allowed: each suggestion is a decision of its own.
const SUGGEST_INSTANCES_MAX: u64 = 2048;
/// One of so many parts of the steps of a decision may be taken for that: whoever is denied waits for it.
const SUGGEST_SHARES: u64 = 20;

/// Decides changes against a set of invariants. A clone shares what is kept from one decision to the next.
#[derive(Clone)]
pub struct Engine {
    /// The invariants, and what is known of each.
    analyses: Arc<[Analysis]>,
    settings: Settings,
    verdicts: Verdicts,
    decisions: DecisionCache,
    /// Whether no invariant can tell a request from its repetition.
    repeatable: bool,
    solver: &'static str,
    /// The invariants that do not bind the authors of the change at hand.
    unbound: BTreeSet<Str>,
    /// The invariants that get a small share of the steps.
    hurried: BTreeSet<Str>,
    /// The invariant that is being judged.
    running: RefCell<Option<Str>>,
}

impl Engine {
    /// An engine for these invariants.
    ///
    /// # Errors
    /// When the linked Z3 is too old.
    pub fn new(invariants: Vec<Arc<CompiledInvariant>>, settings: Settings) -> Result<Self, VersionError> {
        Self::of(Analysis::of_all(invariants).into(), settings)
    }

    /// An engine for invariants of which all is known that can be; engines share that.
    ///
    /// # Errors
    /// When the linked Z3 is too old.
    pub fn of(analyses: Arc<[Analysis]>, settings: Settings) -> Result<Self, VersionError> {
        let verdicts = Verdicts::new(settings.cache_bytes);
        Ok(Self {
            repeatable: repeatable(&analyses),
            analyses,
            decisions: DecisionCache::new(settings.cache_bytes),
            settings,
            verdicts,
            solver: z3_version()?,
            unbound: BTreeSet::new(),
            hurried: BTreeSet::new(),
            running: RefCell::default(),
        })
    }

    /// How many steps a decision may take.
    pub fn steps(&self) -> u64 {
        self.settings.steps
    }

    /// From now on, gives these invariants a small share of the steps of a decision, and all others theirs: those that have
    /// overrun of late. What is decided within it is decided as ever; the rest is undecided sooner.
    pub fn hurry(&mut self, invariants: BTreeSet<Str>) {
        self.hurried = invariants;
    }

    /// The invariant that a decision was left in the middle of: whoever [abandons](steps::End::abandon) one finds here what took
    /// the time.
    pub fn left_in(&mut self) -> Option<Str> {
        self.running.take()
    }

    /// Decides a change that all invariants but those named bind: the ones that a grant leaves its subjects free of.
    pub fn decide_except(&mut self, input: &Input<'_>, unbound: BTreeSet<Str>) -> Decision {
        self.unbound = unbound;
        let decision = self.decide(input);
        self.unbound.clear();
        decision
    }

    /// Decides a change. What was decided before, from facts that are the same, is not found out again.
    pub fn decide(&mut self, input: &Input<'_>) -> Decision {
        if !self.repeatable || !input.exemptions.is_empty() {
            return self.decide_anew(input);
        }
        let watch = Stopwatch::start();
        let asked = CacheKey::of(input, &self.unbound);
        if let Some(known) = self.decisions.find(&asked, input.snapshot) {
            let duration = Some(Duration { total_micros: watch.micros(), solver_micros: 0 });
            let effort = Effort { known: true, ..Effort::default() };
            return Decision { uid: input.uid(), duration, effort, ..known };
        }
        let (mut decision, facts) = Facts::read_by(|| self.decide_anew(input));
        let taken = std::mem::take(&mut decision.taken);
        // one that was ended from outside might have said more
        if !steps::ended() {
            self.decisions.keep(asked, facts, input.snapshot, &decision);
        }
        Decision { taken, ..decision }
    }

    /// Forgets what was decided, so that a measurement of the same decision is one of all the work; what the solver
    /// answered is kept.
    pub fn forget(&mut self) {
        self.decisions = DecisionCache::new(self.settings.cache_bytes);
    }

    fn decide_anew(&mut self, input: &Input<'_>) -> Decision {
        let watch = Stopwatch::start();
        let (found, effort, taken) = steps::within(self.settings.steps, || {
            let began = steps::left();
            let mut judge = self.judge();
            let mut found = judge_all(&mut judge, input, Scope::default());
            let (mut effort, taken) = (judge.effort, judge.taken);
            if self.settings.suggest && !found.cut_short {
                let trials = SUGGEST_INSTANCES_MAX / effort.instances.max(1);
                narrow(input, &mut found.verdicts, trials, |input, scope| judge_all(&mut self.judge(), input, scope));
                let share = self.settings.steps / SUGGEST_SHARES;
                steps::within(share, || self.suggest(input, &mut found.verdicts, trials));
            }
            effort.steps = began.saturating_sub(steps::left());
            (found, effort, taken)
        });
        Decision { taken, ..self.decision(&input.uid(), found, effort, &watch) }
    }

    /// Adds what would have been allowed, found in so many trials for each cause.
    fn suggest(&mut self, input: &Input<'_>, verdicts: &mut [Verdict], trials: u64) {
        let analyses = self.analyses.clone();
        let places = |name: &str| analyses.iter().any(|a| *a.compiled.name == *name && a.is_about_places());
        suggest(input, verdicts, trials, places, |input, scope| judge_all(&mut self.judge(), input, scope));
    }

    /// What is violated in the cluster as it is.
    pub fn audit(&mut self, snapshot: &Snapshot, time: Option<&str>) -> Decision {
        let watch = Stopwatch::start();
        let mut audits = Audits::of(self.analyses.iter().map(|analysis| analysis.compiled.clone()));
        audits.audit(snapshot, time, self.settings.steps, |_| true);
        let verdicts = audits.each().flat_map(|audit| audit.verdicts().cloned()).collect();
        let proved = audits.each().map(Audit::proved).sum();
        let found = Findings { verdicts, proved, ..Findings::default() };
        self.decision("", found, Effort::default(), &watch)
    }

    /// What can break in the cluster as it is without any request: by what may happen next, under the faults that each
    /// invariant must survive. Only an invariant with `violations: Strict` has nobody to excuse.
    pub fn foresee(&mut self, snapshot: &Snapshot, time: Option<&str>) -> Decision {
        self.foresee_of(snapshot, time, Instances::All)
    }

    /// The same of one object, of whichever invariants it is an instance.
    pub fn foresee_one(&mut self, snapshot: &Snapshot, time: Option<&str>, key: &Key) -> Decision {
        self.foresee_of(snapshot, time, Instances::Of(key))
    }

    fn foresee_of(&mut self, snapshot: &Snapshot, time: Option<&str>, instances: Instances<'_>) -> Decision {
        let (watch, change) = (Stopwatch::start(), Change::default());
        let input = Input { snapshot, in_flight: &[], change: &change, time, exemptions: &[] };
        let (found, effort) = steps::within(self.settings.steps, || {
            let mut judge = self.judge();
            let found = judge_all(&mut judge, &input, Scope { instances, ..Scope::default() });
            (found, judge.effort)
        });
        self.decision("", found, effort, &watch)
    }

    fn judge(&mut self) -> Judge<'_> {
        Judge {
            analyses: &self.analyses,
            settings: &self.settings,
            unbound: &self.unbound,
            hurried: &self.hurried,
            running: &self.running,
            verdicts: &mut self.verdicts,
            effort: Effort::default(),
            taken: BTreeMap::new(),
        }
    }

    /// What was found, as it is told.
    fn decision(&self, uid: &str, found: Findings, effort: Effort, watch: &Stopwatch) -> Decision {
        let Findings { verdicts, proved, not_worse, mut exempted, operators, overran, cut_short } = found;
        exempted.sort();
        let unmodelled: Vec<String> = operators.unmodelled.iter().map(ToString::to_string).collect();
        let unmodelled_outcome = match self.settings.unmodelled {
            _ if unmodelled.is_empty() => Outcome::Allowed,
            OnUndecided::Deny => Outcome::Denied,
            OnUndecided::Warn => Outcome::Warned,
            OnUndecided::Allow => Outcome::Allowed,
        };
        let mut decision = Decision { unmodelled, unmodelled_outcome, ..Decision::of(uid, []) };
        decision.add(verdicts);
        let assumed: Vec<String> = decision.unmodelled_in_words().chain(operators.assumed).collect();
        for verdict in decision.verdicts.iter_mut().filter(|verdict| verdict.outcome == Finding::Proved) {
            verdict.assumptions.extend(assumed.iter().cloned());
        }
        if !self.settings.verbose {
            decision.verdicts.retain(|v| !v.outcome.is_passed());
        }
        let duration = Some(Duration { total_micros: watch.micros(), solver_micros: effort.solver_micros });
        Decision {
            duration,
            solver: self.solver.to_owned(),
            proved,
            not_worse,
            exempted,
            overran,
            cut_short,
            effort,
            ..decision
        }
    }
}
