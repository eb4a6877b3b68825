//! The closure of the deletions that a request asks for: forward over the [edges](super::edges), a concrete fixpoint.
//!
//! Everything in it is marked `in_deletion_closure`: some future no longer has it, and no future keeps it.

use std::collections::{BTreeMap, VecDeque};

use super::edges::{After, Cause, Going, OWNED, Unseen, beside_owned, keeps};
use crate::change::Propagation;
use crate::navigate;
use crate::object::{Key, Object};
use crate::state::State;

/// Objects that are leaving, each with its reason and the object that it follows.
pub type DeletionClosure = BTreeMap<Key, (Cause, Key)>;

/// Marks in `state` everything that these deletions take along, and what follows from these claims that a StatefulSet
/// gave up ([`given_up`](super::given_up)), and adds it to `in_deletion_closure`; but no more than `most` objects beside
/// those deleted. False when there are more.
///
/// What is left unmarked stays: such a state is one on the way, before the controllers have come so far. Nothing is left
/// out where dependents are orphaned, since they stay only once that is done.
pub fn cascade(
    state: &mut State<'_>,
    deletions: &[(Key, Propagation)],
    released: &[(Key, Key)],
    in_deletion_closure: &mut DeletionClosure,
    most: usize,
) -> bool {
    let orphans = deletions.iter().any(|(_, propagation)| *propagation == Propagation::Orphan);
    let mut left = if orphans { usize::MAX } else { most };
    let mut queue: VecDeque<(Key, Propagation)> = VecDeque::new();
    for (key, propagation) in deletions {
        mark(state, in_deletion_closure, key, Cause::Requested, key);
        queue.push_back((key.clone(), *propagation));
    }
    for (claim, set) in released {
        if mark(state, in_deletion_closure, claim, Cause::Retention, set) {
            queue.push_back((claim.clone(), Propagation::Background));
        }
    }
    let mut unseen = Unseen::default();
    while let Some((key, propagation)) = queue.pop_front() {
        if left == 0 {
            return false;
        }
        // an object whose last finalizer was taken is gone already; what followed it follows still
        let Some(object) = state.get(&key).or_else(|| state.base().get(&key)).cloned() else { continue };
        let found = follow(state, &object, propagation, &mut unseen);
        // more than are left, whichever of them are marked already
        if found.len() > left.saturating_add(in_deletion_closure.len()) {
            return false;
        }
        for (next, cause) in found {
            if left == 0 {
                return false;
            }
            if mark(state, in_deletion_closure, &next, cause, &key) {
                queue.push_back((next, Propagation::Background));
                left -= 1;
            }
        }
    }
    true
}

/// Marks one object as leaving; false when it is gone or was marked before.
fn mark(
    state: &mut State<'_>,
    in_deletion_closure: &mut DeletionClosure,
    key: &Key,
    cause: Cause,
    because: &Key,
) -> bool {
    let Some(object) = state.get(key) else { return false };
    if object.in_deletion_closure {
        return false;
    }
    let marked = Object { in_deletion_closure: true, ..(**object).clone() };
    state.put(marked);
    in_deletion_closure.insert(key.clone(), (cause, because.clone()));
    true
}

/// What goes along with an object that is deleted. Those of its dependents that stay lose it as an owner.
fn follow(state: &mut State<'_>, object: &Object, propagation: Propagation, unseen: &mut Unseen) -> Vec<(Key, Cause)> {
    let going = Going::new(state, object, propagation);
    let mut found: Vec<(Key, Cause)> = Vec::new();
    for edge in beside_owned().filter(|edge| edge.after != After::ScaleDown) {
        let dependents = edge.dependents(state, &going).into_iter();
        found.extend(dependents.map(|dependent| (dependent.key.clone(), edge.cause)));
    }
    if propagation != Propagation::Orphan {
        found.extend(unseen.after(state, object).into_iter().map(|key| (key, OWNED.cause)));
    }
    let owned: Vec<_> = OWNED.dependents(state, &going).into_iter().cloned().collect();
    for dependent in owned {
        if dependent.in_deletion_closure || navigate::is_never_collected(state, &dependent) {
            continue;
        }
        let kept = keeps(state, &dependent, dependent.owners().iter().filter(|owner| owner.uid != object.uid));
        if propagation == Propagation::Orphan || kept {
            state.put(dependent.without_owner(&object.uid));
        } else {
            found.push((dependent.key.clone(), OWNED.cause));
        }
    }
    found
}
