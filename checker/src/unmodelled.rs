//! The custom resources that a change touches, or that control what it touches, and that no adapter explains. Their operators
//! react to the change in ways that no effect describes.

use std::collections::BTreeSet;
use std::sync::Arc;

use suture_model::kinds::Kind;
use suture_model::navigate::definition_of;
use suture_model::object::{Key, Object};
use suture_model::scenario::Scenario;
use suture_model::state::State;

/// The group of Suture's own kinds, which have no operator but Suture.
const OWN_GROUP: &str = "suture.dev";
/// Groups of Kubernetes itself end like this. So may a definition's group be protected.
const PROTECTED: &str = ".k8s.io";

/// Their kinds, over all objects that these scenarios change.
pub(crate) fn unmodelled<'s, 'a: 's>(
    before: &State<'_>,
    scenarios: impl Iterator<Item = &'s Scenario<'a>>,
) -> BTreeSet<Kind> {
    let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::new());
    for scenario in scenarios {
        let is_changed = |key: &Key, now: &Option<Arc<Object>>| before.get(key) != now.as_ref();
        for (key, now) in scenario.state.delta().iter().filter(|(key, now)| is_changed(key, now)) {
            climb(key, now.as_deref(), before, &mut seen, &mut found);
        }
    }
    found
}

/// Adds the kinds of an object and of what controls it.
fn climb(key: &Key, now: Option<&Object>, before: &State<'_>, seen: &mut BTreeSet<Key>, found: &mut BTreeSet<Kind>) {
    let (mut key, mut now) = (key.clone(), now);
    while seen.insert(key.clone()) {
        if is_unmodelled(&key.kind, before) {
            found.insert(key.kind.clone());
        }
        let object = now.take().or_else(|| before.get(&key).map(|object| &**object));
        let Some(owner) = object.and_then(Object::controller) else { return };
        let is_global = owner.kind.builtin_namespaced() == Some(false);
        key = Key::new(owner.kind.clone(), if is_global { "" } else { &key.ns }, &owner.name);
    }
}

/// Whether objects of a kind are custom resources that no adapter explains.
fn is_unmodelled(kind: &Kind, state: &State<'_>) -> bool {
    let is_custom = kind.builtin_namespaced().is_none() && kind.group.contains('.') && &*kind.group != OWN_GROUP;
    is_custom
        && !state.base().adapters().kinds().contains(kind)
        && (!kind.group.ends_with(PROTECTED) || definition_of(state, kind).is_some())
}
