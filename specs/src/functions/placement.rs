//! The functions that ask whether pods find a place, and whom they preempt.

use std::sync::Arc;

use suture_model::kinds::KindTraits;
use suture_model::object::Object;
use suture_model::placement::{self, Question, TooHard};
use suture_model::state::State;

use super::Func;
use super::answer::{Answer, no_overload};
use super::known::{adapter, all_known, makers_known, told_by_all, with_known};
use super::pure::label_selector;
use crate::error::EvalError;
use crate::value::Value;

/// How many pods find no place, and why.
pub(super) fn placement(func: Func, o: &Arc<Object>, args: &[Value], state: &State) -> Answer {
    places_known(state, o)?;
    let strings = |found: Vec<String>| Value::list(found.into_iter().map(Value::str).collect());
    match (func, args) {
        (Func::RolloutObstacles, [growing]) => {
            let growing = label_selector(growing);
            Ok(strings(placement::blocked_rollout(state, o, growing.as_ref()).map_err(too_hard)?))
        }
        (Func::Unplaced | Func::Obstacles, [Value::Int(wanted), Value::Int(failures), growing]) => {
            let growing = label_selector(growing);
            let question = Question { wanted: *wanted, failures: *failures, growing: growing.as_ref() };
            match func {
                Func::Unplaced => Ok(Value::Int(placement::unplaced(state, o, &question).map_err(too_hard)?)),
                _ => Ok(strings(placement::obstacles(state, o, &question).map_err(too_hard)?)),
            }
        }
        _ => {
            let mut all = vec![Value::Object(o.clone())];
            all.extend_from_slice(args);
            Err(no_overload(func, &all))
        }
    }
}

/// How important an object's pods are, which of them others preempt, and who does.
pub(super) fn priorities(func: Func, o: &Arc<Object>, state: &State) -> Answer {
    adapter(state, o)?;
    all_known(state, &["Pod", "PriorityClass"])?;
    makers_known(state)?;
    if func == Func::Priority {
        return Ok(Value::Int(placement::priority(state, o)));
    }
    places_known(state, o)?;
    all_known(state, &["PodDisruptionBudget"])?;
    let found = placement::preemption(state, o).map_err(too_hard)?;
    Ok(Value::objects(if func == Func::Preempted { &found.pods } else { &found.by }))
}

/// The error of the first kind that decides about places and was not read.
fn places_known(state: &State, o: &Object) -> Result<(), EvalError> {
    adapter(state, o)?;
    all_known(state, &["Pod"])?;
    with_known(state, KindTraits::decides_room)?;
    makers_known(state)?;
    told_by_all(state, &o.key, &["selector", "template"])
}

fn too_hard(error: TooHard) -> EvalError {
    EvalError::invalid(error.to_string())
}
