//! The question about one instance in one scene: SAT means that a future violates it, UNSAT that none does.

use std::borrow::Cow;
use std::cell::RefCell;

use suture_model::futures::{Faults, LimitLabel};
use suture_model::interpret::{Choice, realize};
use suture_model::object::Object;
use suture_model::state::State;
use suture_model::value::Str;
use suture_specs::about_locals::AboutLocals;
use suture_specs::compile::{Clause, CompiledInvariant};
use suture_specs::error::EvalError;
use suture_specs::eval::Env;
use suture_specs::functions::Worlds;
use suture_specs::value::Value;

use crate::eval::{Evaluator, Refusal};
use crate::outage::lost_max;
use crate::problem::{Label, Problem};
use crate::scene::{Grain, Scene};
use crate::sym::{Sym, Truth};
use crate::term::{Assignment, Bool, Int, TermError, Vars};

/// What an expression may read besides the worlds and the instance.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// The request, as `request` shows it: the first one of a batch.
    pub request: Value,
    /// All requests of the change, as `requests` lists them.
    pub requests: Value,
    /// The clock; an expression that reads it fails when it is not known.
    pub time: Result<Value, EvalError>,
}

/// An encoded question.
pub struct Question<'s, 'a> {
    /// The problem: assertions are the limits, the goal is that the instance is violated.
    pub problem: Problem,
    /// When evaluating the invariant fails instead.
    pub fails: Bool,
    /// How badly it is broken, where the invariant says so and it can be.
    pub degree: Option<Degree>,
    /// The scene, to decode a solution with.
    pub scene: Scene<'s, 'a>,
}

/// How badly an instance is broken: one of these, by guards that exclude one another and leave nothing out.
#[derive(Clone, Debug)]
pub struct Degree(Vec<(Bool, Option<Int>)>);

impl Degree {
    fn of(value: Sym) -> Self {
        match value {
            Sym::Choice(alternatives) => {
                let flat = alternatives.into_iter().flat_map(|(guard, value)| {
                    let within = |(inner, degree)| (Bool::and([guard.clone(), inner]), degree);
                    Self::of(value).0.into_iter().map(within).collect::<Vec<_>>()
                });
                Self(flat.collect())
            }
            value => Self(vec![(Bool::truth(true), value.as_int())]),
        }
    }

    /// When it is more than a bound; one that has no value is more than any.
    ///
    /// # Errors
    /// When the difference does not fit.
    pub fn exceeds(&self, bound: i64, vars: &Vars) -> Result<Bool, TermError> {
        let bound = Int::constant(bound);
        let each = self.0.iter().map(|(guard, degree)| match degree {
            Some(degree) => Ok(Bool::and([guard.clone(), Bool::gt(degree, &bound, vars)?])),
            None => Ok(guard.clone()),
        });
        Ok(Bool::or(each.collect::<Result<Vec<_>, TermError>>()?))
    }
}

/// The variables of an evaluation over these worlds.
pub fn environment<'w>(
    compiled: &'w CompiledInvariant,
    instance: &Value,
    inputs: &Inputs,
    worlds: Worlds<'w>,
) -> Env<'w> {
    let mut env = Env::new(worlds);
    env.bind(&compiled.for_each.var, Ok(instance.clone()));
    env.bind("request", Ok(inputs.request.clone()));
    env.bind("requests", Ok(inputs.requests.clone()));
    env.bind("params", Ok(Value::from(&compiled.params)));
    env.bind("time", inputs.time.clone());
    env
}

/// Encodes whether the instance can be violated in this scene, refining the scene's grain where the invariant needs it.
///
/// # Errors
/// When the invariant relates what is not linear, or reads what was not read from the cluster.
pub fn encode<'s, 'a>(
    compiled: &CompiledInvariant,
    instance: &std::sync::Arc<Object>,
    inputs: &Inputs,
    start: &dyn Fn(Grain) -> Scene<'s, 'a>,
) -> Result<Question<'s, 'a>, Refusal> {
    let mut grain = Grain { instance_key: Some(instance.key.clone()), ..Grain::default() };
    loop {
        match encode_at(compiled, instance, inputs, start(grain.clone())) {
            // whatever tells objects apart may tell them by their nodes
            Err(Refusal::FinerIdentity) if !grain.identity => {
                grain.identity = true;
                grain.nodes = true;
            }
            Err(Refusal::FinerNodes) if !grain.nodes => {
                grain.nodes = true;
            }
            other => return other,
        }
    }
}

fn encode_at<'s, 'a>(
    compiled: &CompiledInvariant,
    instance: &std::sync::Arc<Object>,
    inputs: &Inputs,
    mut scene: Scene<'s, 'a>,
) -> Result<Question<'s, 'a>, Refusal> {
    if scene.grain.nodes {
        scene.view.places = true;
        scene.view.merge_equivalent_nodes = false;
        scene.view.coarse = false;
    }
    let worlds = Worlds { before: scene.before, now: scene.state() };
    let env = environment(compiled, &Value::Object(instance.clone()), inputs, worlds);
    let (violated, fails, degree) = judge(compiled, env, &mut scene)?;
    let problem = Problem { vars: scene.vars.clone(), assertions: scene.assertions.clone(), goal: violated };
    problem.check()?;
    Ok(Question { problem, fails, degree, scene })
}

/// When the instance is violated, when that cannot be said, and how badly.
fn judge<'e, 's: 'e, 'a: 'e>(
    compiled: &'e CompiledInvariant,
    env: Env<'e>,
    scene: &'e mut Scene<'s, 'a>,
) -> Result<(Bool, Bool, Option<Degree>), Refusal> {
    let mut evaluator = Evaluator::new(scene, env, compiled);
    let applies = match &compiled.for_each.where_ {
        Some(expr) => evaluator.truth(expr)?,
        None => Truth::known(true),
    };
    // what is required where the invariant applies, and what is required anyway
    let (mut holds, mut stays) = (Truth::known(true), Truth::known(true));
    let mut unread = None;
    for clause in &compiled.require {
        // a clause that depends on what was not read hides no other that is violated whatever that is
        let mut required = || match evaluator.truth(&clause.expression) {
            Err(refusal @ Refusal::Unknown(_)) => {
                unread.get_or_insert(refusal);
                Ok(Truth::error())
            }
            truth => truth,
        };
        if clause.beyond_where {
            stays = stays.and(&required()?);
        } else if !applies.no.is_true() {
            holds = holds.and(&required()?);
        }
    }
    let violated = Bool::or([Bool::and([applies.yes.clone(), holds.no.clone()]), stays.no.clone()]);
    let unknown = [applies.fails(), Bool::and([applies.yes.clone(), holds.fails()]), stays.fails()];
    let fails = Bool::and([Bool::or(unknown), violated.not()]);
    if let Some(unread) = unread.filter(|_| violated.is_false()) {
        return Err(unread);
    }
    let degree = match &compiled.degree {
        Some(expr) if !violated.is_false() => Some(Degree::of(evaluator.eval(expr)?)),
        _ => None,
    };
    Ok((violated, fails, degree))
}

impl<'s, 'a> Question<'s, 'a> {
    /// The fates that a solution stands for, and the cluster that they make.
    ///
    /// # Errors
    /// When the assignment is not one of this problem's.
    pub fn world(&self, solution: &Assignment) -> Result<(Vec<Choice>, Cow<'s, State<'a>>), TermError> {
        let choices = self.scene.decode(solution)?;
        let groups: Vec<_> = self.scene.encoded_groups().iter().map(|c| &*c.group).zip(&choices).collect();
        let world = realize(self.scene.scenario, &self.scene.view.outage, &groups);
        Ok((choices, world))
    }

    /// Bounds how many pods are on the nodes that fail, where it is open which nodes do ([`Scene::whichever_fails`]). Without
    /// such a bound the answer is false: then a proof says nothing.
    ///
    /// # Errors
    /// When the numbers do not fit.
    pub fn bound_failing(&mut self, faults: Faults) -> Result<bool, TermError> {
        let state = self.scene.state();
        let bounded = self.scene.bound_failing(|on_node| lost_max(state, faults, on_node))?;
        self.problem.assertions.clone_from(&self.scene.assertions);
        Ok(bounded)
    }

    /// What a label of the problem means.
    pub fn meaning(&self, label: Label) -> Option<&LimitLabel> {
        self.scene.meaning(label)
    }

    /// The problem with another goal, over the same futures.
    pub fn with_goal(&self, goal: Bool) -> Problem {
        Problem { vars: self.problem.vars.clone(), assertions: self.problem.assertions.clone(), goal }
    }
}

/// How an instance fares in one concrete future.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// It holds, or the invariant does not apply to it.
    Holds,
    /// This clause (by its index) fails.
    Violated {
        /// Which clause.
        clause: usize,
        /// Its message, or its source.
        message: String,
        /// How badly, where the invariant says so.
        degree: Option<i64>,
    },
    /// Evaluating it fails.
    Fails(String),
}

/// Judges an instance on concrete states with the evaluator of `specs`: the replay of a counterexample, and the oracle. With
/// `kept`, what is the same for other instances in these states is kept there ([`Env::sharing`]).
pub fn replay(
    compiled: &CompiledInvariant,
    instance: &std::sync::Arc<Object>,
    inputs: &Inputs,
    worlds: Worlds<'_>,
    kept: Option<&RefCell<AboutLocals>>,
) -> Judged {
    let mut env = environment(compiled, &Value::Object(instance.clone()), inputs, worlds);
    if let Some(kept) = kept {
        env = env.sharing(compiled.instance_names(), kept);
    }
    for (name, expr) in &compiled.lets {
        let value = suture_specs::eval::eval(expr, &env);
        env.bind(name, value);
    }
    let applies = compiled.for_each.where_.as_ref().map_or(Ok(true), |expr| suture_specs::eval::eval_bool(expr, &env));
    let mut failure: Option<String> = applies.as_ref().err().map(ToString::to_string);
    let mut violated: Option<(usize, Vec<Str>)> = None;
    let required = |clause: &Clause| clause.beyond_where || matches!(applies, Ok(true));
    for (at, clause) in compiled.require.iter().enumerate().filter(|(_, clause)| required(clause)) {
        match suture_specs::eval::eval_bool(&clause.expression, &env) {
            Ok(true) => {}
            Ok(false) => {
                let said = clause.message.as_ref().map(|m| suture_specs::eval::eval(m, &env));
                let message = match said {
                    Some(Ok(Value::String(text))) => text,
                    _ => clause.text.clone().unwrap_or_else(|| clause.source.clone()),
                };
                violated.get_or_insert_with(|| (at, Vec::new())).1.push(message);
            }
            Err(error) => failure = failure.or(Some(error.to_string())),
        }
    }
    if let Some((clause, messages)) = violated {
        let degree = compiled.degree.as_ref().and_then(|d| suture_specs::eval::eval(d, &env).ok()?.as_int());
        return Judged::Violated { clause, message: messages.join("; "), degree };
    }
    failure.map_or(Judged::Holds, Judged::Fails)
}
