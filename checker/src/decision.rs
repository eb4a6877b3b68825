//! What is decided about a request, as data: the verdict of every invariant instance, with its counterexample.
//!
//! The serialized form is the report of FORMATS (`check -o json`); texts are made once, in `explain`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use suture_model::snapshot::Snapshot;
use suture_model::value::Str;
use suture_specs::spec::{Action, Exemption, ExemptionSpec};

use crate::involved::{InvolvedEdge, InvolvedObject, ViolatingFuture, involve};

/// The strictest outcome over all instances that a change touches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Outcome {
    /// No instance can break, or only ones that are audited.
    #[default]
    Allowed,
    /// An instance whose invariant warns can break.
    Warned,
    /// Some instance could not be decided; what follows is what its invariant declares (`onUndecided`).
    Undecided,
    /// An instance whose invariant denies can break.
    Denied,
}

/// What was found out about one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Finding {
    /// It holds in every future (the violating problem is UNSAT).
    Proved,
    /// A future breaks it, with the change or without, and with it no worse: the change is not to blame.
    NotWorse,
    /// A future breaks it and the change is to blame; the counterexample replays.
    Refuted,
    /// Neither.
    Undecided,
}

impl Finding {
    /// Whether the instance stands in the way of nothing, and is only counted unless all of them are asked for.
    pub fn is_passed(self) -> bool {
        matches!(self, Self::Proved | Self::NotWorse)
    }
}

/// One thing that happens on the way into the violating future.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepReport {
    /// What happens.
    pub effect: String,
    /// To which objects.
    pub objects: Vec<String>,
}

/// How many objects the text of a step names.
const NAMED_MAX: usize = 3;

impl StepReport {
    /// The step in one line; objects that the effect names already are not repeated.
    pub fn text(&self) -> String {
        let is_named = |object: &str| self.effect.split([' ', ':', ',']).any(|word| word == object);
        let others: Vec<&str> = self.objects.iter().map(String::as_str).filter(|o| !is_named(o)).collect();
        let named = others.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
        match others.len() {
            0 => self.effect.clone(),
            n if n > NAMED_MAX => format!("{}: {named} and {} more", self.effect, n - NAMED_MAX),
            _ => format!("{}: {named}", self.effect),
        }
    }
}

/// A violating future.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counterexample {
    /// What happens, in order.
    pub steps: Vec<Arc<StepReport>>,
    /// The clause that fails, with its values.
    pub broken: String,
    /// Whether the concrete interpreter reaches the same violation. A refutation is only reported when it does.
    pub replayed: bool,
    /// The objects that it is about, where they were asked for ([`Decision::involve`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<InvolvedObject>,
    /// What these are to each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<InvolvedEdge>,
    /// The future itself, as far as it is kept.
    #[serde(skip)]
    pub future: ViolatingFuture,
}

impl Counterexample {
    /// A violating future that was replayed; its objects are looked up by [`Decision::involve`].
    pub fn new(steps: Vec<Arc<StepReport>>, broken: String, future: ViolatingFuture) -> Self {
        Self { steps, broken, replayed: true, objects: Vec::new(), edges: Vec::new(), future }
    }
}

/// The verdict on one instance.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// The invariant's name.
    pub invariant: String,
    /// The instance: `Kind/namespace/name`.
    pub instance: String,
    /// What was found.
    pub outcome: Finding,
    /// What the invariant does about a refutation.
    pub action: Action,
    /// Why it is undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// At most ten lines for the engineer on call; empty when proved.
    pub message: String,
    /// The violating future of a refutation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counterexample: Option<Arc<Counterexample>>,
    /// What the verdict relies on.
    pub assumptions: Vec<String>,
    /// The resourceVersions of the objects it was judged against, by their names.
    pub proved_against: Arc<BTreeMap<String, String>>,
    /// What would have been allowed instead.
    pub nearest_allowed: Vec<String>,
    /// Whether it is refuted only for as long as something in flight may not have landed.
    #[serde(skip)]
    pub awaits_landing: bool,
    /// Which requests of a batch, from 0, break it on their own; none where it is not told.
    #[serde(skip)]
    pub requests: Vec<usize>,
}

impl Verdict {
    /// What this verdict alone makes of the request.
    pub fn decides(&self) -> Outcome {
        match (self.outcome, self.action) {
            (Finding::Proved | Finding::NotWorse, _) | (Finding::Refuted, Action::Audit) => Outcome::Allowed,
            (Finding::Refuted, Action::Deny) => Outcome::Denied,
            (Finding::Refuted, Action::Warn) => Outcome::Warned,
            (Finding::Undecided, _) => Outcome::Undecided,
        }
    }
}

/// An instance that an exemption lets whoever asks break.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Exempted {
    /// The invariant's name.
    pub invariant: String,
    /// The instance: `Kind/namespace/name`.
    pub instance: String,
    /// The exemption's name.
    pub exemption: String,
    /// When it ends, RFC 3339.
    pub expires: String,
    /// Why it was made.
    pub reason: String,
}

impl Exempted {
    /// That this exemption covers an instance.
    pub fn of(invariant: &str, instance: &str, exemption: &Exemption) -> Self {
        let ExemptionSpec { expires, reason, .. } = &exemption.spec;
        Self {
            invariant: invariant.to_owned(),
            instance: instance.to_owned(),
            exemption: exemption.name.to_string(),
            expires: expires.clone(),
            reason: reason.clone(),
        }
    }
}

/// How long a decision took. The only part of a report that differs between two runs on the same input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Duration {
    /// In all, in microseconds.
    pub total_micros: u64,
    /// In the solver, in microseconds.
    pub solver_micros: u64,
}

/// Counters of one decision, for benchmarks and metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Instances judged.
    pub instances: u64,
    /// Problems that folded to a constant or had a plain witness.
    pub folded: u64,
    /// Problems given to the solver.
    pub solved: u64,
    /// Problems answered by the cache of verdicts.
    pub cached: u64,
    /// Resource units that the solver spent.
    pub rlimit: u64,
    /// Steps that the decision took ([`suture_model::steps`]).
    pub steps: u64,
    /// Microseconds in folding, caching and solving problems.
    pub solver_micros: u64,
    /// Whether the whole decision was made before: then all else counts nothing.
    pub known: bool,
}

impl Effort {
    /// Adds that of another decision.
    fn add(&mut self, other: Self) {
        // of several decisions not the whole was made before
        let Self { instances, folded, solved, cached, rlimit, steps, solver_micros, known: _ } = other;
        self.instances += instances;
        self.folded += folded;
        self.solved += solved;
        self.cached += cached;
        self.rlimit += rlimit;
        self.steps += steps;
        self.solver_micros += solver_micros;
    }
}

/// The decision on one request, or on a batch judged together.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The strictest outcome.
    pub decision: Outcome,
    /// The request's uid.
    pub uid: String,
    /// How long it took; none where that is not to be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,
    /// The version of the solver.
    pub solver: String,
    /// How many instances were proved.
    pub proved: u64,
    /// How many instances can break without the change too, and no worse with it.
    pub not_worse: u64,
    /// Every instance that stands in the way (all of them when asked for), by invariant and instance.
    pub verdicts: Vec<Verdict>,
    /// The instances that were not judged, since an exemption lets whoever asks break them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exempted: Vec<Exempted>,
    /// The kinds that were looked for and of which the recorded cluster has no object: they are taken as none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_as_none: Vec<String>,
    /// The kinds of the custom resources that the change touches and whose operators no adapter explains: what these do is not
    /// modelled, which every proof relies on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmodelled: Vec<String>,
    /// What they make of the change, whatever the verdicts are.
    #[serde(skip)]
    pub unmodelled_outcome: Outcome,
    /// The invariants that took all the steps that they may take of one decision, and are undecided for that.
    #[serde(skip)]
    pub overran: BTreeSet<Str>,
    /// How many steps each invariant took; nothing of a decision that was known.
    #[serde(skip)]
    pub taken: BTreeMap<Str, u64>,
    /// Whether more instances may break than are listed: the change was denied already, and they were not judged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
    /// The effort.
    #[serde(skip)]
    pub effort: Effort,
}

impl Decision {
    /// Says of each counterexample which objects it is about and what they are to each other, before the change and in the
    /// violating future. It reads the snapshot that the decision was made about.
    pub fn involve(&mut self, snapshot: &Snapshot) {
        for verdict in &mut self.verdicts {
            if let Some(counterexample) = &mut verdict.counterexample {
                let counterexample = Arc::make_mut(counterexample);
                (counterexample.objects, counterexample.edges) =
                    involve(snapshot, &verdict.instance, &counterexample.future);
            }
        }
    }

    /// A decision that these verdicts make, none of them by a solver.
    pub fn of(uid: &str, verdicts: impl IntoIterator<Item = Verdict>) -> Self {
        let mut decision = Self {
            decision: Outcome::Allowed,
            uid: uid.to_owned(),
            duration: Some(Duration::default()),
            solver: String::new(),
            proved: 0,
            not_worse: 0,
            verdicts: Vec::new(),
            exempted: Vec::new(),
            taken_as_none: Vec::new(),
            unmodelled: Vec::new(),
            unmodelled_outcome: Outcome::Allowed,
            overran: BTreeSet::new(),
            taken: BTreeMap::new(),
            cut_short: false,
            effort: Effort::default(),
        };
        decision.add(verdicts);
        decision
    }

    /// How long its texts are, in bytes.
    pub(crate) fn text_bytes(&self) -> usize {
        let texts = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
        let of = |verdict: &Verdict| {
            let steps = verdict.counterexample.iter().flat_map(|c| &c.steps);
            let versions = verdict.proved_against.iter();
            size_of::<Verdict>()
                + verdict.instance.len()
                + verdict.message.len()
                + texts(&verdict.assumptions)
                + texts(&verdict.nearest_allowed)
                + steps.map(|step| step.effect.len() + texts(&step.objects)).sum::<usize>()
                + verdict.counterexample.iter().map(|c| c.future.bytes()).sum::<usize>()
                + versions.map(|(name, version)| name.len() + version.len()).sum::<usize>()
        };
        self.verdicts.iter().map(of).sum()
    }

    /// What each proof relies on since no adapter explains a custom resource.
    pub fn unmodelled_in_words(&self) -> impl Iterator<Item = String> {
        let words = |kind| format!("{kind} has no ResourceAdapter: what its operator does is not modelled");
        self.unmodelled.iter().map(words)
    }

    /// Adds what other invariants say of the same change.
    pub fn join(&mut self, other: Self) {
        let (took, more) = (self.duration.unwrap_or_default(), other.duration.unwrap_or_default());
        self.duration = Some(Duration {
            total_micros: took.total_micros + more.total_micros,
            solver_micros: took.solver_micros + more.solver_micros,
        });
        self.solver = other.solver;
        self.proved += other.proved;
        self.not_worse += other.not_worse;
        self.exempted.extend(other.exempted);
        self.exempted.sort();
        self.unmodelled.extend(other.unmodelled);
        self.unmodelled.sort();
        self.unmodelled.dedup();
        self.unmodelled_outcome = self.unmodelled_outcome.max(other.unmodelled_outcome);
        self.overran.extend(other.overran);
        for (invariant, steps) in other.taken {
            *self.taken.entry(invariant).or_default() += steps;
        }
        self.cut_short |= other.cut_short;
        self.effort.add(other.effort);
        self.add(other.verdicts);
    }

    /// Adds verdicts that were found elsewhere, such as those of grants: the strictest outcome decides.
    pub fn add(&mut self, verdicts: impl IntoIterator<Item = Verdict>) {
        self.verdicts.extend(verdicts);
        self.verdicts.sort_by(|a, b| (&a.invariant, &a.instance).cmp(&(&b.invariant, &b.instance)));
        let found = self.verdicts.iter().map(Verdict::decides);
        self.decision = found.fold(self.unmodelled_outcome, Outcome::max);
    }
}
