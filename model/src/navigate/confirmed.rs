//! Which objects are meant to go: those whose deletion somebody confirmed, and what exists for them only.

use std::cell::RefCell;
use std::sync::Arc;

use super::claims::claims_of;
use super::definitions::definition_of;
use super::owners::{owner_object, parents};
use super::selection::selected;
use super::users::users;
use crate::annotations::CONFIRM_DELETE;
use crate::fields::claim_ordinal;
use crate::kinds::{Kind, KindTraits};
use crate::object::{Key, Object};
use crate::state::State;

/// Owners, claims and what selects pods nest no deeper than this; a longer chain is a cycle.
const DEPTH_MAX: usize = 8;

/// Whether an object is meant to go in `now`: it bears the confirmation, or all for which alone it exists do, each as it is
/// there, or as it was in `before` if it is gone. Without `namespaces` a namespace confirms nothing of what is in it.
pub fn meant(before: &State, now: &State, object: &Object, namespaces: bool) -> bool {
    let holds = |found: &Arc<Object>| match now.get(&found.key) {
        Some(there) => there.uid == found.uid && is_confirmed(there),
        None => is_confirmed(found),
    };
    Confirmation { state: before, namespaces, holds: &holds }.covers(object, 0)
}

/// The objects on which it depends whether an object is meant to go: those that are confirmed in `before` or in `now`, among
/// it and all for which it exists.
pub fn confirming(before: &State, now: &State, object: &Object) -> Vec<Arc<Object>> {
    let found = RefCell::new(Vec::new());
    let note = |one: &Arc<Object>| {
        let confirmed = is_confirmed(one) || now.get(&one.key).is_some_and(|there| is_confirmed(there));
        if confirmed {
            found.borrow_mut().push(one.clone());
        }
        confirmed
    };
    Confirmation { state: before, namespaces: true, holds: &note }.covers(object, 0);
    found.into_inner()
}

/// Whether an object names itself as one to be deleted: by its uid, so that nothing made later under its name does.
pub fn is_confirmed(object: &Object) -> bool {
    !object.uid.is_empty() && object.annotation(CONFIRM_DELETE).is_some_and(|uid| **uid == *object.uid)
}

/// What counts as confirmed.
struct Confirmation<'c, 'a> {
    state: &'c State<'a>,
    namespaces: bool,
    holds: &'c dyn Fn(&Arc<Object>) -> bool,
}

impl Confirmation<'_, '_> {
    /// Whether an object, its namespace, its definition, or all of one kind of those that it exists for are confirmed.
    fn covers(&self, object: &Object, depth: usize) -> bool {
        let state = self.state;
        let holds = |key: &Key| state.get(key).is_some_and(|found| (self.holds)(found));
        if depth > DEPTH_MAX {
            return false;
        }
        let in_namespace =
            || self.namespaces && !object.key.ns.is_empty() && holds(&Key::of("Namespace", "", &object.key.ns));
        let defined = || definition_of(state, &object.key.kind).is_some_and(|found| (self.holds)(found));
        holds(&object.key) || in_namespace() || defined() || self.exists_for(object, depth)
    }

    fn exists_for(&self, object: &Object, depth: usize) -> bool {
        let state = self.state;
        let all =
            |found: Vec<&Arc<Object>>| !found.is_empty() && found.into_iter().all(|one| self.covers(one, depth + 1));
        let owners: Vec<_> = object.owners().iter().map(|owner| owner_object(state, object, owner)).collect();
        if owners.into_iter().collect::<Option<Vec<_>>>().is_some_and(all) || all(parents(state, object)) {
            return true;
        }
        if object.key.kind.is("PersistentVolumeClaim") {
            let sets = state.list(&Kind::new("apps", "StatefulSet"), Some(&object.key.ns)).into_iter();
            let mut found: Vec<_> = sets.filter(|set| claim_ordinal(set, &object.key.name).is_some()).collect();
            found.extend(users(state, object, &|_| true));
            return all(found);
        }
        if object.key.kind.is("PersistentVolume") {
            return all(claims_of(state, object));
        }
        object.key.kind.has(KindTraits::only_selects_pods) && all(selected(state, object))
    }
}
