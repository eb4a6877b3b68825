//! How important the pods of an object are in a future: the lowest priority of those that are there, and of those that it makes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suture_model::navigate as model;
use suture_model::object::Object;
use suture_model::placement::{made_priority, pod_priority};
use suture_model::state::State;
use suture_specs::functions::Func;
use suture_specs::value::Value;

use crate::eval::{Evaluator, Refusal};
use crate::sym::Sym;
use crate::term::{Bool, Int};

impl<'e, 's, 'a> Evaluator<'e, 's, 'a>
where
    's: 'e,
    'a: 'e,
{
    /// The lowest priority of an object's pods in each future: that of those which may not be there counts where they are. A pod
    /// has its own as long as it is there.
    pub(crate) fn priority(&mut self, func: Func, values: &[Value], object: &Arc<Object>) -> Result<Sym, Refusal> {
        let known = self.concretely(func, values)?;
        let state = self.scene.state();
        let made = made_priority(state, object);
        let is_lowest = |lowest: i64| made_below(state, object).is_none_or(|below| below >= lowest);
        match known.value().and_then(|value| value.as_int()) {
            None => return Ok(known),
            // none that goes, or comes, is of a lower one
            Some(lowest) if made == Some(lowest) && is_lowest(lowest) => return Ok(known),
            Some(_) if object.key.kind.is("Pod") => return Ok(known),
            Some(_) => {}
        }
        let mut pods = vec![self.owned(func, values, object)?];
        if state.adapter(object).is_some() {
            pods.push(self.selected(&object.key.ns, model::selector_of(state, object), &|_| true)?);
        }
        let (mut certain, mut open) = (made, BTreeMap::<i64, Vec<Int>>::new());
        for found in pods {
            let Sym::Bag(items) = found else { return Err(Refusal::NotLinear(func.name().to_owned())) };
            for item in items {
                let Some(Value::Object(pod)) = item.value.value() else {
                    return Err(Refusal::NotLinear(func.name().to_owned()));
                };
                let priority = pod_priority(state, &pod);
                match item.count.as_constant() {
                    _ if !pod.live() || pod.finished() => {}
                    Some(0) => {}
                    Some(_) => certain = Some(certain.map_or(priority, |lowest| lowest.min(priority))),
                    None => open.entry(priority).or_default().push(item.count),
                }
            }
        }
        let (mut alternatives, mut none) = (Vec::new(), Bool::truth(true));
        for (priority, counts) in
            open.into_iter().filter(|(priority, _)| certain.is_none_or(|lowest| *priority < lowest))
        {
            let some = Bool::ge(&Int::sum(&counts)?, &Int::constant(1), &self.scene.vars)?;
            alternatives.push((Bool::and([none.clone(), some.clone()]), Sym::int(Int::constant(priority))));
            none = Bool::and([none, some.not()]);
        }
        alternatives.push((none, Sym::int(Int::constant(certain.unwrap_or(0)))));
        Ok(Sym::choice(alternatives, &self.scene.vars)?)
    }
}

/// The lowest priority of the pods that are made by what an object has, as what is left of older templates.
fn made_below(state: &State<'_>, object: &Object) -> Option<i64> {
    let (mut lowest, mut seen) = (None, BTreeSet::new());
    let mut open = vec![&object.uid];
    while let Some(owner) = open.pop() {
        for child in state.owned_by(owner).into_iter().filter(|child| !child.key.kind.is("Pod")) {
            if seen.insert(&child.key) {
                lowest = lowest.into_iter().chain(made_priority(state, child)).min();
                open.push(&child.uid);
            }
        }
    }
    lowest
}
