//! Functions of the future state that are not about one object at a time: evaluated concretely for every way in which the
//! few objects that they depend on may be in it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suture_model::fields;
use suture_model::futures::Group;
use suture_model::kinds::KindTraits;
use suture_model::navigate as model;
use suture_model::object::{Key, Object};
use suture_model::state::State;
use suture_specs::functions::{Func, Worlds, call_nav, label_selector};
use suture_specs::value::Value;

use crate::class::{Class, ClassId};
use crate::eval::{Evaluator, Refusal, check_absence};
use crate::relations::{Lift, relations};
use crate::sym::Sym;
use crate::term::{Bool, Int};

type Answer = Result<Sym, Refusal>;

/// How many ways for objects to exist are told apart where a function is evaluated for each.
const CASES_MAX: usize = 256;

impl<'e, 's, 'a> Evaluator<'e, 's, 'a>
where
    's: 'e,
    'a: 'e,
{
    /// Every way in which these objects, and all pods of these groups, may be in the future state: when it is so, and
    /// the concrete cluster with just them as they then are.
    pub(crate) fn cases(
        &mut self,
        func: Func,
        objects: Vec<Arc<Object>>,
        groups: &BTreeSet<Key>,
    ) -> Result<Vec<(Bool, State<'a>)>, Refusal> {
        let outcome = |o: Option<&Arc<Object>>| {
            o.map(|o| (o.live(), fields::finished(o), o.controller().cloned(), o.labels().clone()))
        };
        let counts = |object: &Arc<Object>| counts(func, object);
        let mut by_class: BTreeMap<ClassId, BTreeSet<Key>> = BTreeMap::new();
        for object in objects {
            if let Some(class) = self.scene.class_of(&object)? {
                by_class.entry(class).or_default().insert(object.key.clone());
            }
        }
        for name in groups {
            let group = self.scene.add_group(name)?;
            let Some(encoded) = self.scene.encoded_groups().get(group) else { continue };
            for (at, class) in encoded.classes.iter().enumerate() {
                by_class.entry((group, at)).or_default().extend(members(&encoded.group, class));
            }
        }
        let mut cases: Vec<(Bool, State<'a>)> = vec![(Bool::truth(true), self.scene.state().clone())];
        for (id, members) in by_class {
            let Some(class) = self.scene.class(id) else { continue };
            if class.total as usize != members.len() {
                return Err(Refusal::FinerIdentity);
            }
            // fates that make no difference to the function count together
            let mut outcomes: BTreeMap<_, (Option<Arc<Object>>, Vec<Int>)> = BTreeMap::new();
            for (fate, count) in class.fates.iter().zip(&class.counts) {
                let object = class.object_in(fate).filter(counts);
                let slot = outcomes.entry(outcome(object.as_ref())).or_insert((object, Vec::new()));
                slot.1.push(count.clone());
            }
            if number_of_compositions(members.len(), outcomes.len()) > CASES_MAX {
                return Err(Refusal::NotLinear(func.name().to_owned()));
            }
            let mut longer = Vec::new();
            for numbers in compositions(members.len(), outcomes.len()) {
                let mut guard = Vec::new();
                let mut changes = Vec::new();
                let mut left = members.iter();
                for ((shape, counts), number) in outcomes.values().zip(&numbers) {
                    let sum = Int::sum(counts)?;
                    guard.push(Bool::eq(
                        &sum,
                        &Int::constant(i64::try_from(*number).unwrap_or(i64::MAX)),
                        &self.scene.vars,
                    )?);
                    for member in left.by_ref().take(*number) {
                        changes.push((member.clone(), shape.as_ref().map(|o| with_name(o, member))));
                    }
                }
                let guard = Bool::and(guard);
                if guard.is_false() {
                    continue;
                }
                for (before, state) in &cases {
                    let mut state = state.clone();
                    for (key, object) in &changes {
                        match object {
                            Some(object) => state.put(object.clone()),
                            None => state.take(key),
                        }
                    }
                    longer.push((Bool::and([before.clone(), guard.clone()]), state));
                }
                if longer.len() > CASES_MAX {
                    return Err(Refusal::NotLinear(func.name().to_owned()));
                }
            }
            cases = longer;
        }
        Ok(cases)
    }

    /// A function of the future state by every way in which what decides about it may be there.
    pub(crate) fn by_deciding(&mut self, func: Func, values: &[Value]) -> Answer {
        let state = self.scene.state();
        let mut objects: Vec<Arc<Object>> = match (relations(func).lift, values) {
            (Lift::Counted, [_, Value::String(ns), selector]) => {
                let counted = label_selector(selector).map(|selector| model::counted(state, ns, &selector));
                counted.into_iter().flatten().cloned().collect()
            }
            (Lift::Deciding, [Value::Object(o), ..]) => living(model::deciding(state, o)),
            (Lift::Admission, [Value::Object(o), ..]) => living(model::admitting(state, &o.key.ns).iter()),
            // one that is going is listed until it is gone
            (Lift::Slices, [Value::Object(o), ..]) => model::endpoint_slices(state, o).into_iter().cloned().collect(),
            (Lift::Rights, [Value::Object(o), ..]) => living(model::granting(state, o)),
            _ => return Err(Refusal::NotLinear(func.name().to_owned())),
        };
        objects.retain(|o| self.scene.may_go(o));
        objects.sort_by(|a, b| a.key.cmp(&b.key));
        objects.dedup_by(|a, b| a.key == b.key);
        self.by_cases(func, values, objects, &BTreeSet::new())
    }

    /// The nodes that are possible places of an object: what it stores, or its pods do, decides with them, and may go.
    pub(crate) fn places(&mut self, func: Func, values: &[Value], object: &Object) -> Answer {
        let mut deciding: Vec<_> = model::placing(self.scene.state(), object).into_iter().cloned().collect();
        deciding.retain(|o| self.scene.may_go(o));
        if deciding.is_empty() {
            return self.listed(func, values, &Object::live);
        }
        let places = self.by_cases(func, values, deciding, &BTreeSet::new())?;
        self.over(places, |e, list| e.living(list))
    }

    /// When an object is meant to go, by the objects that confirm it.
    pub(crate) fn meant(&mut self, func: Func, values: &[Value], object: &Object) -> Answer {
        let state = self.scene.state();
        let confirming = model::confirming(self.scene.before, state, object);
        let there = confirming.iter().filter_map(|found| state.get(&found.key)).cloned().collect();
        self.by_cases(func, values, there, &BTreeSet::new())
    }

    /// A function of the future state by every such way.
    pub(crate) fn by_cases(
        &mut self,
        func: Func,
        values: &[Value],
        objects: Vec<Arc<Object>>,
        groups: &BTreeSet<Key>,
    ) -> Answer {
        // what is found out about the state itself is found once for all who ask
        if objects.is_empty() && groups.is_empty() {
            return self.concretely(func, values);
        }
        let cases = self.cases(func, objects, groups)?;
        let mut alternatives = Vec::with_capacity(cases.len());
        for (guard, state) in cases {
            let value = match call_nav(func, values, &Worlds { before: self.scene.before, now: &state }) {
                Ok(value) => Sym::Known(value),
                Err(error) => {
                    check_absence(&error)?;
                    Sym::Error(error)
                }
            };
            alternatives.push((guard, value));
        }
        Ok(Sym::choice(alternatives, &self.scene.vars)?)
    }
}

/// Whether a function may count an object: a budget counts no pod that goes or has finished; where only what has no scale is
/// asked for, none without a controller that has none.
fn counts(func: Func, object: &Object) -> bool {
    let is_told =
        || func != Func::Unscaled || object.controller().is_some_and(|owner| !owner.kind.has(KindTraits::has_scale));
    let counted = || object.live() && !fields::finished(object) && is_told();
    relations(func).lift != Lift::Budget || !object.key.kind.is("Pod") || counted()
}

/// Those of these objects that live: what a deletion takes decides nothing any more.
fn living<'o>(objects: impl IntoIterator<Item = &'o Arc<Object>>) -> Vec<Arc<Object>> {
    objects.into_iter().filter(|o| o.live()).cloned().collect()
}

/// The names of a class's entities; of pods not made yet, names that nothing else has.
fn members(group: &Group, class: &Class) -> Vec<Key> {
    let mut names = Vec::new();
    for (at, entity) in class.entities.iter().filter_map(|at| Some((at, group.entities.get(*at)?))) {
        let shape = || entity.fates.iter().find_map(|f| entity.object_in(f)).map(|o| o.key.clone());
        match (entity.key(), shape()) {
            (Some(key), _) => names.push(key.clone()),
            (None, Some(key)) => {
                let numbered = |number| Key { name: format!("{}-{at}-{number}", key.name).into(), ..key.clone() };
                names.extend((0..entity.count).map(numbered));
            }
            (None, None) => {}
        }
    }
    names
}

/// An object of a class under the name of another one of it.
fn with_name(shape: &Object, name: &Key) -> Object {
    if shape.key == *name {
        return shape.clone();
    }
    Object { key: name.clone(), uid: format!("case:{name}").into(), ..shape.clone() }
}

/// How many ways there are to deal `things` over `places`.
fn number_of_compositions(things: usize, places: usize) -> usize {
    (1..places).fold(1_usize, |all, place| all.saturating_mul(things.saturating_add(place)) / place)
}

/// Every way to deal `things` over `places`.
fn compositions(things: usize, places: usize) -> Vec<Vec<usize>> {
    match places {
        0 => Vec::new(),
        1 => vec![vec![things]],
        _ => (0..=things)
            .flat_map(|here| {
                compositions(things - here, places - 1).into_iter().map(move |mut rest| {
                    rest.insert(0, here);
                    rest
                })
            })
            .collect(),
    }
}
