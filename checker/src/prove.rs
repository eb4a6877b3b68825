//! One instance in one scenario: whether some future violates it.
//!
//! Every outage that the invariant must survive is a problem. Most fold to a constant or have a plain witness; the others
//! go to the solver by way of a cache that isomorphic problems share. A witness counts only when the concrete interpreter
//! reaches the same violation ([`Undecided::ReplayMismatch`] otherwise).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::iter::successors;
use std::rc::Rc;

use suture_encode::class::Class;
use suture_encode::evictions::{EVICTIONS_MAX, TooManyEvictions, evictable};
use suture_encode::outage::outages;
use suture_encode::problem::{Label, Problem};
use suture_encode::question::{Judged, Question};
use suture_encode::term::{Assignment, Bool};
use suture_model::futures::{Fate, FateKind, Moment, Outage};
use suture_model::interpret::broken_limit;
use suture_model::navigate::UnknownKind;
use suture_model::object::Key;
use suture_model::scenario::Scenario;

use crate::answer::{Answer, Budget};
use crate::cache::Verdicts;
use crate::clock::Stopwatch;
use crate::decision::Effort;
use crate::instance::{Instance, Undecided, Violation};
use crate::symmetry_memo::InstanceClass;

/// What one scenario says about an instance.
pub(crate) enum Examined<'s, 'a> {
    Holds,
    Breaks(Box<Violation<'s, 'a>>),
    Unclear(Undecided),
}

/// The questions about one instance.
pub(crate) struct Proof<'p, 's, 'a> {
    pub instance: Instance<'s, 'a>,
    /// Who is judged with it: whom no question so far tells from it.
    pub class: InstanceClass<'s>,
    /// What the proofs so far rely on.
    pub assumed: BTreeSet<String>,
    /// The questions in more futures than there are that were asked, by where the scenario is in memory and whether the rest
    /// is open: only the goal depends on the degree.
    in_more_futures: BTreeMap<(usize, bool), Rc<Question<'s, 'a>>>,
    verdicts: &'p mut Verdicts,
    budget: Budget,
    effort: &'p mut Effort,
}

impl<'p, 's, 'a> Proof<'p, 's, 'a> {
    /// Nothing was asked yet about an instance that stands for this class.
    pub fn new(
        instance: Instance<'s, 'a>,
        class: InstanceClass<'s>,
        verdicts: &'p mut Verdicts,
        budget: Budget,
        effort: &'p mut Effort,
    ) -> Self {
        Self { instance, class, assumed: BTreeSet::new(), in_more_futures: BTreeMap::new(), verdicts, budget, effort }
    }

    /// Whether some future of one scenario, under some outage or beside evictions, violates it; with `worse_than`, by more than
    /// this degree.
    pub fn examine(&mut self, scenario: &'s Scenario<'a>, worse_than: Option<i64>) -> Examined<'s, 'a> {
        match self.under_outages(scenario, worse_than) {
            Examined::Holds if self.instance.run.compiled().faults.evictions > 0 => {
                self.beside_evictions(scenario, worse_than)
            }
            examined => examined,
        }
    }

    /// Whether some future of a scenario in which somebody evicts pods as well violates it, of one that holds without.
    fn beside_evictions(&mut self, scenario: &'s Scenario<'a>, worse_than: Option<i64>) -> Examined<'s, 'a> {
        let provable = !self.instance.faults(scenario).lose_nodes() && self.holds_in_more_futures(scenario, worse_than);
        match provable.then(|| self.each_eviction(scenario, worse_than, true)) {
            Some(Examined::Holds) => Examined::Holds,
            Some(Examined::Breaks(_) | Examined::Unclear(_)) | None => self.each_eviction(scenario, worse_than, false),
        }
    }

    /// [`Self::beside_evictions`], choice by choice; in more futures than there are (`coarse`) it says that it holds, or nothing.
    /// Which pods matter next is told by what the question with those evicted so far read: what was left open there, and
    /// whoever is told apart by places only, matters to no proof in more futures.
    fn each_eviction(&mut self, scenario: &'s Scenario<'a>, worse_than: Option<i64>, coarse: bool) -> Examined<'s, 'a> {
        let context = self.instance.run.context;
        let most = self.instance.run.compiled().faults.evictions as usize;
        let budgets_are_unread = scenario.state.base().unknown().contains("PodDisruptionBudget");
        let mut unclear = None;
        let mut open: VecDeque<(BTreeSet<Key>, &'s Scenario<'a>)> = [(BTreeSet::new(), scenario)].into();
        let mut seen: BTreeSet<BTreeSet<Key>> = BTreeSet::new();
        while let Some((evicted, now)) = open.pop_front() {
            let next = match self.evictable(now, coarse) {
                Ok(next) => next,
                Err(why) => return Examined::Unclear(why),
            };
            for pod in next {
                let mut pods = evicted.clone();
                pods.insert(pod);
                if !seen.insert(pods.clone()) {
                    continue;
                }
                if seen.len() > EVICTIONS_MAX {
                    return Examined::Unclear(Undecided::Refused(TooManyEvictions.to_string()));
                }
                let Some(now) = context.evicted.from(scenario, &pods) else { continue };
                let examined = match coarse {
                    true if self.holds_in_more_futures(now, worse_than) => Examined::Holds,
                    true => return Examined::Unclear(places_matter()),
                    false => self.under_outages(now, worse_than),
                };
                match examined {
                    // a budget may be in the way
                    Examined::Breaks(_) if budgets_are_unread => {
                        let why = UnknownKind("PodDisruptionBudget".into()).to_string();
                        return Examined::Unclear(Undecided::Refused(why));
                    }
                    breaks @ Examined::Breaks(_) => return breaks,
                    Examined::Unclear(why) => unclear = unclear.or(Some(why)),
                    Examined::Holds => {}
                }
                if pods.len() < most {
                    open.push_back((pods, now));
                }
            }
        }
        unclear.map_or(Examined::Holds, Examined::Unclear)
    }

    /// The pods of which each may be evicted next so that it matters to the instance, or to the proof in more futures that there
    /// is of it.
    fn evictable(&self, scenario: &'s Scenario<'a>, coarse: bool) -> Result<BTreeSet<Key>, Undecided> {
        let proof = self.in_more_futures.get(&(std::ptr::from_ref(scenario) as usize, true));
        match proof.filter(|_| coarse) {
            Some(question) => Ok(evictable(&question.scene)),
            // where pods are told apart by what their places are to new ones
            None => Ok(evictable(&self.question(scenario, Outage::default(), false)?.scene)),
        }
    }

    /// Whether some future of one scenario, under some outage, violates it.
    fn under_outages(&mut self, scenario: &'s Scenario<'a>, worse_than: Option<i64>) -> Examined<'s, 'a> {
        if self.holds_in_more_futures(scenario, worse_than) {
            return Examined::Holds;
        }
        // where new pods are placed does not always matter: most proofs hold wherever they are
        match self.outages(scenario, worse_than, true) {
            Examined::Unclear(Undecided::ReplayMismatch(why)) => Examined::Unclear(Undecided::ReplayMismatch(why)),
            Examined::Unclear(_) => self.outages(scenario, worse_than, false),
            examined => examined,
        }
    }

    fn question(
        &self,
        scenario: &'s Scenario<'a>,
        outage: Outage,
        coarse: bool,
    ) -> Result<Rc<Question<'s, 'a>>, Undecided> {
        self.instance.question(scenario, outage, coarse).map(Rc::new)
    }

    /// The question without an outage: the one in more futures, where it has none beyond those that there are.
    fn first_question(&self, scenario: &'s Scenario<'a>, coarse: bool) -> Result<Rc<Question<'s, 'a>>, Undecided> {
        let may_fail = self.instance.faults(scenario).lose_nodes();
        let known = self.in_more_futures.get(&(std::ptr::from_ref(scenario) as usize, true));
        match known.filter(|question| coarse && !may_fail && !question.scene.left_open) {
            Some(question) => Ok(question.clone()),
            None => self.question(scenario, Outage::default(), coarse),
        }
    }

    /// Whether a proof needs only some of the pods, and covers every outage.
    fn holds_in_more_futures(&mut self, scenario: &'s Scenario<'a>, worse_than: Option<i64>) -> bool {
        let may_fail = self.instance.faults(scenario).lose_nodes();
        // where no nodes fail, the question with all pods is the next one anyway
        for rest_open in if may_fail { &[true, false][..] } else { &[true] } {
            let at = (std::ptr::from_ref(scenario) as usize, *rest_open);
            let known = self.in_more_futures.get(&at).cloned();
            let Some(question) = known.or_else(|| self.instance.in_more_futures(scenario, *rest_open).map(Rc::new))
            else {
                continue;
            };
            self.class.narrow(&question.scene);
            if lacks_nodes(&question) || (may_fail && nodes_are_unread(&question)) {
                return false;
            }
            let holds = matches!(self.proves(&question, worse_than), Examined::Holds);
            let left_open = question.scene.left_open;
            self.in_more_futures.insert(at, question);
            if holds || !left_open {
                return holds;
            }
        }
        false
    }

    /// [`Self::examine`] with new pods placed precisely, or (`coarse`) anywhere: then [`Self::coarsely`].
    fn outages(&mut self, scenario: &'s Scenario<'a>, worse_than: Option<i64>, coarse: bool) -> Examined<'s, 'a> {
        let question = match self.first_question(scenario, coarse) {
            Ok(question) => question,
            Err(why) => return Examined::Unclear(why),
        };
        self.class.narrow(&question.scene);
        let faults = self.instance.faults(scenario);
        // what is read of its owners tells these from others
        let mut owners = self.instance.object.owners().iter();
        let lone_alike = !self.instance.run.analysis.footprint.tells_equals_apart()
            && !owners.any(|owner| owner.kind.is("Pod") || owner.kind.is("Node"));
        let possible = match outages(&question.scene, faults, lone_alike) {
            Ok(possible) => possible,
            Err(error) => return Examined::Unclear(Undecided::Refused(error.to_string())),
        };
        // nodes that were not read may fail as well
        let mut unclear = (faults.lose_nodes() && nodes_are_unread(&question)).then(unread_nodes);
        let mut first = Some(question);
        for outage in possible {
            let question = match first.take_if(|_| outage == Outage::default()) {
                Some(question) => Ok(question),
                None => self.question(scenario, outage, coarse),
            };
            let examined = match question {
                Ok(question) if lacks_nodes(&question) => Examined::Unclear(unread_nodes()),
                Ok(question) if coarse => self.coarsely(question, worse_than),
                Ok(question) => self.answer(question, worse_than),
                Err(why) => Examined::Unclear(why),
            };
            match examined {
                Examined::Holds => {}
                Examined::Unclear(why) if coarse => return Examined::Unclear(why),
                Examined::Unclear(why) => unclear = unclear.or(Some(why)),
                breaks @ Examined::Breaks(_) => return breaks,
            }
        }
        unclear.map_or(Examined::Holds, Examined::Unclear)
    }

    /// Answers a question about more futures than there are: a proof counts, and so does a violation that is among those
    /// that there are. Once all has settled none is known to be: new pods are ready then wherever they can be.
    fn coarsely(&mut self, question: Rc<Question<'s, 'a>>, worse_than: Option<i64>) -> Examined<'s, 'a> {
        if self.instance.run.compiled().hold == Moment::After {
            return self.proves(&question, worse_than);
        }
        match self.answer(question, worse_than) {
            Examined::Breaks(violation) if violation.ignores_places() => Examined::Unclear(places_matter()),
            examined => examined,
        }
    }

    /// Whether a question about more futures than there are has no violation among them.
    fn proves(&mut self, question: &Question<'s, 'a>, worse_than: Option<i64>) -> Examined<'s, 'a> {
        let violated = match violates(question, worse_than) {
            Ok(Some(violated)) => violated,
            Ok(None) => return Examined::Holds,
            Err(why) => return Examined::Unclear(why),
        };
        match self.solve(&question.with_goal(Bool::or([violated, question.fails.clone()]))) {
            Answer::Unsat { core } => {
                self.rely(question, &core);
                Examined::Holds
            }
            Answer::Sat(_) | Answer::Unknown(_) => Examined::Unclear(places_matter()),
        }
    }

    /// Notes what a proof relies on.
    fn rely(&mut self, question: &Question<'_, '_>, core: &[Label]) {
        let relied = core.iter().filter_map(|label| question.meaning(*label));
        self.assumed.extend(relied.map(ToString::to_string));
    }

    /// Answers one question, and replays what the solver found.
    fn answer(&mut self, question: Rc<Question<'s, 'a>>, worse_than: Option<i64>) -> Examined<'s, 'a> {
        let problem = match violates(&question, worse_than) {
            Ok(Some(violated)) => question.with_goal(violated),
            Ok(None) => return Examined::Holds,
            Err(why) => return Examined::Unclear(why),
        };
        match self.solve(&problem) {
            Answer::Sat(solution) => self.confirm(question, &problem, &solution),
            Answer::Unknown(reason) => Examined::Unclear(Undecided::Solver(reason.to_string())),
            Answer::Unsat { core } => {
                self.rely(&question, &core);
                if question.fails.is_false() {
                    return Examined::Holds;
                }
                match self.solve(&question.with_goal(question.fails.clone())) {
                    Answer::Unsat { .. } => Examined::Holds,
                    Answer::Unknown(reason) => Examined::Unclear(Undecided::Solver(reason.to_string())),
                    Answer::Sat(solution) => Examined::Unclear(self.instance.failure(&question, &solution)),
                }
            }
        }
    }

    /// Solves a problem: by folding, by a plain witness, from the cache, or with the solver.
    fn solve(&mut self, problem: &Problem) -> Answer {
        let watch = Stopwatch::start();
        let answer = self.verdicts.solve(problem, self.budget, self.effort);
        self.effort.solver_micros = self.effort.solver_micros.saturating_add(watch.micros());
        answer
    }

    /// A violation, if the concrete interpreter sees one in the solution; the smallest one that can be had cheaply.
    fn confirm(&self, question: Rc<Question<'s, 'a>>, problem: &Problem, solution: &Assignment) -> Examined<'s, 'a> {
        let mismatch = |why: String| Examined::Unclear(Undecided::ReplayMismatch(why));
        let minimized = minimize_counterexample(&question, problem, solution);
        for solution in minimized.iter().chain([solution]) {
            let (choices, world) = match question.world(solution) {
                Ok(found) => found,
                Err(error) => return mismatch(error.to_string()),
            };
            for (encoded, choice) in question.scene.encoded_groups().iter().zip(&choices) {
                if let Some(limit) = broken_limit(&encoded.group, choice) {
                    return mismatch(format!("breaks the limit that {}", limit.label));
                }
            }
            if let Judged::Violated { clause, message, .. } = self.instance.replay(&world) {
                return Examined::Breaks(Box::new(Violation { open: Vec::new(), question, choices, message, clause }));
            }
        }
        mismatch("the concrete evaluator finds no violation".to_owned())
    }
}

/// When an instance is violated; with `worse_than`, by more than this degree: never without a violation, which alone has one.
fn violates(question: &Question<'_, '_>, worse_than: Option<i64>) -> Result<Option<Bool>, Undecided> {
    let violated = question.problem.goal.clone();
    let Some(bound) = worse_than else { return Ok(Some(violated)) };
    let worse = question.degree.as_ref().map(|degree| degree.exceeds(bound, &question.problem.vars)).transpose();
    let worse = worse.map_err(|error| Undecided::Refused(error.to_string()))?;
    Ok(worse.map(|worse| Bool::and([violated, worse])))
}

/// A solution with fewer events that is a violating future too, if a greedy search finds one.
fn minimize_counterexample(
    question: &Question<'_, '_>,
    problem: &Problem,
    solution: &Assignment,
) -> Option<Assignment> {
    let mut best = solution.clone();
    let mut changed = false;
    for class in question.scene.encoded_groups().iter().flat_map(|c| &c.classes) {
        for fate in 1..class.counts.len() {
            // as many at once as can be
            let moved = |best: &Assignment| {
                let all = class.counts.get(fate)?.eval(best).ok()?;
                let numbers = successors(Some(all), |number| Some(number / 2)).take_while(|number| *number > 0);
                let mut tried = numbers.filter_map(|number| shifted(class, fate, number, best));
                tried.find(|tried| problem.is_witness(tried) == Ok(true))
            };
            while let Some(fewer) = moved(&best) {
                best = fewer;
                changed = true;
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

/// Whether a question places new pods on nodes that were not read.
fn lacks_nodes(question: &Question<'_, '_>) -> bool {
    let scene = &question.scene;
    let is_new = |fate: &Fate| match fate.kind {
        FateKind::NewUnready | FateKind::NewReady => true,
        FateKind::Stays | FateKind::BecomesReady | FateKind::LosesReadiness | FateKind::Ends => false,
        FateKind::Terminating | FateKind::Gone | FateKind::NotMade => false,
    };
    let mut entities = scene.encoded_groups().iter().flat_map(|encoded| &encoded.group.entities);
    !scene.view.coarse && nodes_are_unread(question) && entities.any(|entity| entity.fates.iter().any(is_new))
}

fn nodes_are_unread(question: &Question<'_, '_>) -> bool {
    question.scene.state().base().unknown().contains("Node")
}

/// Why a question about more futures than there are decides nothing.
fn places_matter() -> Undecided {
    Undecided::Refused("new pods must be placed precisely".to_owned())
}

fn unread_nodes() -> Undecided {
    Undecided::Refused(UnknownKind("Node".into()).to_string())
}
