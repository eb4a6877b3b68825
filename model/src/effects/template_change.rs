//! What a write changes in the `template` of a custom resource: its operator hands it on to the one workload that runs its
//! pods. Where there is none or several, a new template is not followed.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::parents::Parent;
use crate::fields;
use crate::kinds::KindTraits;
use crate::object::Object;
use crate::state::State;
use crate::value::{Str, Val};

/// The one workload that runs the pods of a custom resource, once its operator has handed on what a write changed in the
/// adapter's `template`: what else the operator put there stays.
pub fn propagate_template(state: &State<'_>, old: &Object, new: &Arc<Object>) -> Option<Object> {
    let (before, facts) = (state.adapter(old)?, state.adapter(new).filter(|_| new.live())?);
    let (before, after) = (before.template.clone()?, facts.template.clone()?);
    if before == after {
        return None;
    }
    let parent = Parent::by_facts(new, facts);
    // in the place of any other workload, an operator makes a new one
    let rolls_out = |o: &&Arc<Object>| o.key.kind.has(KindTraits::rolls_out);
    let workload = state.get(&parent.managed_workload(state)?).filter(rolls_out)?;
    let path = fields::template_path(workload)?;
    let own = workload.val().at_some(path)?;
    let next = carried(own, &before, &after);
    (next != *own).then(|| workload.map_body(|val| val.with_at(path, next.clone())))
}

/// A value with what differs between two others; of lists whose items have names, item by item.
fn carried(own: &Val, before: &Val, after: &Val) -> Val {
    match (own, before, after) {
        _ if before == after => own.clone(),
        (Val::Map(_), Val::Map(_), Val::Map(_)) => {
            let keys: BTreeSet<&Str> = before.entries().chain(after.entries()).map(|(key, _)| key).collect();
            keys.into_iter().fold(own.clone(), |own, key| match (before.get(key), after.get(key)) {
                (was, Some(now)) if was == Some(now) => own,
                (_, None) => own.without_at(&[key]),
                (was, Some(now)) => {
                    let (mine, was) = (own.get(key).unwrap_or(&Val::Null), was.unwrap_or(&Val::Null));
                    let next = carried(mine, was, now);
                    own.with(key, next)
                }
            })
        }
        (Val::List(_), Val::List(_), Val::List(_)) => match (by_name(own), by_name(before), by_name(after)) {
            (Some(own), Some(before), Some(after)) => {
                let next = |(name, mine): &(&Str, &Val)| match (find(&before, name), find(&after, name)) {
                    (Some(_), None) => None,
                    (was, Some(now)) => Some(carried(mine, was.unwrap_or(&Val::Null), now)),
                    (None, None) => Some((*mine).clone()),
                };
                let kept = own.iter().filter_map(next);
                let made = after.iter().filter(|(name, _)| find(&own, name).is_none()).map(|(_, val)| (*val).clone());
                Val::list(kept.chain(made).collect())
            }
            _ => after.clone(),
        },
        _ => after.clone(),
    }
}

/// The items of a list by their names, if each has one.
fn by_name(list: &Val) -> Option<Vec<(&Str, &Val)>> {
    list.items().iter().map(|item| Some((item.str_at(&["name"])?, item))).collect()
}

fn find<'v>(items: &[(&Str, &'v Val)], name: &Str) -> Option<&'v Val> {
    items.iter().find(|(known, _)| *known == name).map(|(_, item)| *item)
}
