//! The operators of the custom resources that a change touches, or that control what it touches: where no adapter explains
//! them, they react to the change in ways that no effect describes; where one does, it says what it leaves to them.

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

/// What operators do that no effect describes.
#[derive(Debug, Default)]
pub(crate) struct Operators {
    /// The kinds of custom resources about whose operators no adapter says anything.
    pub unmodelled: BTreeSet<Kind>,
    /// What adapters leave to the operators, each sentence with its kind.
    pub assumed: BTreeSet<String>,
}

impl Operators {
    /// Those of all objects that these scenarios change, and of what controls these.
    pub(crate) fn of<'s, 'a: 's>(before: &State<'_>, scenarios: impl Iterator<Item = &'s Scenario<'a>>) -> Self {
        let (mut found, mut seen) = (Self::default(), BTreeSet::new());
        for scenario in scenarios {
            let is_changed = |key: &Key, now: &Option<Arc<Object>>| before.get(key) != now.as_ref();
            for (key, now) in scenario.state.delta().iter().filter(|(key, now)| is_changed(key, now)) {
                found.climb(key, now.as_deref(), before, &mut seen);
            }
        }
        found
    }

    /// Adds those of an object and of what controls it.
    fn climb(&mut self, key: &Key, now: Option<&Object>, before: &State<'_>, seen: &mut BTreeSet<Key>) {
        let (mut key, mut now) = (key.clone(), now);
        while seen.insert(key.clone()) {
            self.add(&key.kind, before);
            let object = now.take().or_else(|| before.get(&key).map(|object| &**object));
            let Some(owner) = object.and_then(Object::controller) else { return };
            let is_global = owner.kind.builtin_namespaced() == Some(false);
            key = Key::new(owner.kind.clone(), if is_global { "" } else { &key.ns }, &owner.name);
        }
    }

    fn add(&mut self, kind: &Kind, before: &State<'_>) {
        if kind.builtin_namespaced().is_some() {
            return;
        }
        let adapters = before.base().adapters();
        self.assumed.extend(adapters.assumed(kind).iter().map(|sentence| format!("{kind}: {sentence}")));
        if is_unmodelled(kind, before) {
            self.unmodelled.insert(kind.clone());
        }
    }
}

/// Whether objects of a kind are custom resources about whose operator no adapter says anything.
fn is_unmodelled(kind: &Kind, state: &State<'_>) -> bool {
    let is_custom = kind.builtin_namespaced().is_none() && kind.group.contains('.') && &*kind.group != OWN_GROUP;
    let adapters = state.base().adapters();
    is_custom
        && (adapters.is_unmodelled(kind) || !adapters.kinds().contains(kind))
        && (!kind.group.ends_with(PROTECTED) || definition_of(state, kind).is_some())
}
