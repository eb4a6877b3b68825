//! The concrete interpreter: enumerates the worlds of a group one entity at a time, checks one against the limits, and
//! makes the cluster that a world is.
//!
//! It shares no code with crate `encode`: it is what counterexamples are replayed on, and the oracle in tests.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::futures::{FateKind, Group, Limit, Linear, Outage};
use crate::object::{Key, Object};
use crate::scenario::Scenario;
use crate::state::State;
use crate::value::{Str, Val};

/// For each entity of a group, how many of it met each of its fates. The numbers of one entity add up to its count.
pub type Choice = Vec<Vec<u32>>;

/// The first limit that a choice breaks, if any.
pub fn broken_limit<'g>(group: &'g Group, choice: &Choice) -> Option<&'g Limit> {
    group.limits.iter().find(|limit| !limit.any_of.iter().any(|linear| holds(group, linear, choice)))
}

/// Whether the numbers fit the entities: as many as there are, each with a fate it may meet.
pub fn well_formed(group: &Group, choice: &Choice) -> bool {
    group.entities.len() == choice.len()
        && group.entities.iter().zip(choice).all(|(entity, numbers)| {
            entity.fates.len() == numbers.len()
                && numbers.iter().map(|n| u64::from(*n)).sum::<u64>() == u64::from(entity.count)
        })
}

fn holds(group: &Group, linear: &Linear, choice: &Choice) -> bool {
    let total: i128 = linear
        .terms
        .iter()
        .map(|(coefficient, counted)| {
            let mut number = 0_i128;
            for (entity, numbers) in group.entities.iter().zip(choice) {
                let times = entity.sets.iter().filter(|s| **s == counted.set).count();
                for (fate, n) in entity.fates.iter().zip(numbers) {
                    let here = counted.places.as_ref().is_none_or(|p| fate.place.is_some_and(|at| p.contains(&at)));
                    if here && counted.fates.contains(&fate.kind) && times > 0 {
                        number += i128::from(*n);
                    }
                }
            }
            i128::from(*coefficient) * number
        })
        .sum();
    total <= i128::from(linear.at_most)
}

/// Visits every choice within the limits, in a fixed order, until the visitor stops.
pub fn worlds(group: &Group, visit: &mut dyn FnMut(&Choice) -> ControlFlow<()>) -> ControlFlow<()> {
    let mut choice: Choice = Vec::with_capacity(group.entities.len());
    descend(group, &mut choice, visit)
}

fn descend(group: &Group, choice: &mut Choice, visit: &mut dyn FnMut(&Choice) -> ControlFlow<()>) -> ControlFlow<()> {
    let Some(entity) = group.entities.get(choice.len()) else {
        return if broken_limit(group, choice).is_none() { visit(choice) } else { ControlFlow::Continue(()) };
    };
    let mut numbers = vec![0; entity.fates.len()];
    split(entity.count, 0, &mut numbers, &mut |numbers| {
        choice.push(numbers.to_vec());
        let flow = descend(group, choice, visit);
        choice.pop();
        flow
    })
}

/// Every way to deal `left` over the fates from `at` on.
fn split(
    left: u32,
    at: usize,
    numbers: &mut Vec<u32>,
    visit: &mut dyn FnMut(&[u32]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if at + 1 >= numbers.len() {
        if let Some(last) = numbers.last_mut() {
            *last = left;
            return visit(numbers);
        }
        return ControlFlow::Continue(());
    }
    for here in (0..=left).rev() {
        if let Some(number) = numbers.get_mut(at) {
            *number = here;
        }
        split(left - here, at + 1, numbers, visit)?;
    }
    ControlFlow::Continue(())
}

/// The cluster of a world: the scenario's, with every entity of these groups in the fate that it met. It is the scenario's own
/// where nothing is otherwise.
pub fn realize<'s, 'a>(
    scenario: &'s Scenario<'a>,
    outage: &Outage,
    groups: &[(&Group, &Choice)],
) -> Cow<'s, State<'a>> {
    let mut world = Cow::Borrowed(&scenario.state);
    let mut decided: BTreeMap<Key, ()> = BTreeMap::new();
    let mut new: Vec<Arc<Object>> = Vec::new();
    for (group, choice) in groups {
        for (entity, numbers) in group.entities.iter().zip(choice.iter()) {
            for (fate, number) in entity.fates.iter().zip(numbers) {
                for _ in 0..*number {
                    match (entity.key(), entity.object_in(fate)) {
                        (Some(key), Some(object)) if fate.kind < FateKind::NotMade => {
                            decided.insert(key.clone(), ());
                            if !scenario.state.get(key).is_some_and(|here| Arc::ptr_eq(here, &object)) {
                                world.to_mut().put_shared(object);
                            }
                        }
                        (Some(key), None) => {
                            decided.insert(key.clone(), ());
                            world.to_mut().take(key);
                        }
                        (Some(key), Some(object)) => {
                            // replaced by a new pod of the same name
                            decided.insert(key.clone(), ());
                            world.to_mut().put(Object { uid: made_uid(key), ..(*object).clone() });
                        }
                        (None, Some(object)) => new.push(object),
                        (None, None) => {}
                    }
                }
            }
        }
    }
    // once all that goes has gone, whose names they may have
    let mut numbers: BTreeMap<Key, u32> = BTreeMap::new();
    for pod in new {
        let is_of_set = pod.controller().is_some_and(|owner| owner.kind.is("StatefulSet"));
        let number = numbers.entry(pod.key.clone()).or_default();
        let mut key = pod.key.clone();
        // another group may make pods for an owner of the same name
        while (*number == 0 && !is_of_set) || world.get(&key).is_some() {
            *number += 1;
            key = Key { name: format!("{}-{number}", pod.key.name).into(), ..pod.key.clone() };
        }
        world.to_mut().put(Object { uid: made_uid(&key), key, ..(*pod).clone() });
    }
    for node in &outage.nodes {
        let bystanders: Vec<Object> = world
            .pods_on(node)
            .into_iter()
            .filter(|p| !decided.contains_key(&p.key) && p.ready())
            .map(|p| p.with_ready(false))
            .collect();
        for pod in bystanders {
            world.to_mut().put(pod);
        }
        if let Some(object) = world.get(&Key::global("Node", node)).cloned() {
            world.to_mut().put(failed_node(&object));
        }
    }
    world
}

/// The uid of a pod that a controller makes: no object has it yet, nor one that a request created.
fn made_uid(key: &Key) -> Str {
    format!("made:{key}").into()
}

/// A node that is down.
pub fn failed_node(node: &Object) -> Object {
    let down = Val::object([("type", Val::str("Ready")), ("status", Val::str("Unknown"))]);
    node.map_body(|val| val.with_at(&["status", "conditions"], Val::list(vec![down])))
}
