//! Which objects are meant to go: those whose deletion somebody confirmed, and what exists for them only.

use std::cell::RefCell;
use std::sync::Arc;

use super::claims::claims_of;
use super::definitions::definition_of;
use super::known::{UnknownKind, known};
use super::owners::{owner_object, parents};
use super::selection::selected;
use super::users::{unread_users, users};
use crate::annotations::CONFIRM_DELETE;
use crate::fields::claim_ordinal;
use crate::kinds::{Kind, KindTraits};
use crate::object::{Key, Object};
use crate::state::State;

/// Owners, claims and what selects pods nest no deeper than this; a longer chain is a cycle.
const DEPTH_MAX: usize = 8;

/// Whether it is so, unless that depends on what was not read.
type Answer = Result<bool, UnknownKind>;

/// Whether an object is meant to go in `now`: it bears the confirmation, or all for which alone it exists do, each as it is
/// there, or as it was in `before` if it is gone. Without `namespaces` a namespace confirms nothing of what is in it.
///
/// # Errors
/// When nothing that was read confirms it, and what was not read may.
pub fn meant(before: &State, now: &State, object: &Object, namespaces: bool) -> Answer {
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
    // what is unknown is not among them, and makes `meant` fail
    drop(Confirmation { state: before, namespaces: true, holds: &note }.covers(object, 0));
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
    fn covers(&self, object: &Object, depth: usize) -> Answer {
        if depth > DEPTH_MAX {
            return Ok(false);
        }
        let ns = Some(&object.key.ns).filter(|ns| self.namespaces && !ns.is_empty());
        let in_namespace = || ns.map_or(Ok(false), |ns| self.is(&Key::of("Namespace", "", ns)));
        let defined = || match definition_of(self.state, &object.key.kind) {
            Some(found) => Ok((self.holds)(found)),
            None if object.key.kind.traits().is_some() => Ok(false),
            None => self.lacks(&Kind::new("apiextensions.k8s.io", "CustomResourceDefinition")),
        };
        let exists_for = || self.exists_for(object, depth);
        any([&|| self.is(&object.key), &in_namespace, &defined, &exists_for])
    }

    /// Whether the object of a key is confirmed.
    fn is(&self, key: &Key) -> Answer {
        self.state.get(key).map_or_else(|| self.lacks(&key.kind), |found| Ok((self.holds)(found)))
    }

    /// That no object of this kind that was read confirms it.
    fn lacks(&self, kind: &Kind) -> Answer {
        known(self.state, kind).map(|()| false)
    }

    fn exists_for(&self, object: &Object, depth: usize) -> Answer {
        let state = self.state;
        let of = |found: Vec<&Arc<Object>>, kinds: &[Kind]| {
            let none = found.is_empty();
            let covered = found.into_iter().map(|one| self.covers(one, depth + 1));
            // of what was not read there may be some that are not
            all(covered.chain(kinds.iter().map(|kind| known(state, kind).map(|()| true)))).map(|all| all && !none)
        };
        let owned = || {
            let covered = object.owners().iter().map(|owner| match owner_object(state, object, owner) {
                Some(found) => self.covers(found, depth + 1),
                None if state.base().unknown().contains(&owner.kind.kind) && state.base().supposes_there(owner) => {
                    self.lacks(&owner.kind)
                }
                None => Ok(false),
            });
            all(covered).map(|all| all && !object.owners().is_empty())
        };
        let listed = || of(parents(state, object), &state.base().adapters().kinds());
        let used = || match &*object.key.kind.kind {
            "PersistentVolumeClaim" => {
                let sets = state.list(&Kind::new("apps", "StatefulSet"), Some(&object.key.ns)).into_iter();
                let mut found: Vec<_> = sets.filter(|set| claim_ordinal(set, &object.key.name).is_some()).collect();
                found.extend(users(state, object, &|_| true));
                let unread: Vec<Kind> = unread_users(state, object).iter().map(|kind| Kind::new("", kind)).collect();
                of(found, &unread)
            }
            "PersistentVolume" => of(claims_of(state, object), &[Kind::new("", "PersistentVolumeClaim")]),
            _ if object.key.kind.has(KindTraits::only_selects_pods) => {
                of(selected(state, object), &[Kind::new("", "Pod")])
            }
            _ => Ok(false),
        };
        any([&owned, &listed, &used])
    }
}

/// Whether one of these is so; what follows it is not asked.
fn any<const N: usize>(asked: [&dyn Fn() -> Answer; N]) -> Answer {
    let mut unread = None;
    for ask in asked {
        match ask() {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(kind) => unread = unread.or(Some(kind)),
        }
    }
    unread.map_or(Ok(false), Err)
}

/// Whether all of these are so.
fn all(answers: impl Iterator<Item = Answer>) -> Answer {
    let mut unread = None;
    for answer in answers {
        match answer {
            Ok(false) => return Ok(false),
            Ok(true) => {}
            Err(kind) => unread = unread.or(Some(kind)),
        }
    }
    unread.map_or(Ok(true), Err)
}
