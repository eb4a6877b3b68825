//! Which facts differ between two versions of an object, where both may be seen.

use super::Snapshot;
use super::facts::{Fact, Facts};
use super::terms::{Changes, of_kinds};
use super::usage::Usage;
use crate::object::Object;

impl Snapshot {
    /// The facts that may change when an object becomes another one, comes or goes.
    pub fn facts_between(&self, before: Option<&Object>, after: Option<&Object>) -> Facts {
        let lacking = !self.lacking_marks(before, after).is_empty();
        let changes = Changes { usage: Usage::differs(before, after), lacking };
        let mut facts = Facts::default();
        [before, after].into_iter().flatten().for_each(|object| self.add_facts_of(object, changes, &mut facts));
        // a kind without objects is listed as nothing, so that two that go together make no difference
        let has_others = |object: &Object| self.of_kind(&object.key.kind).any(|(key, _)| *key != object.key);
        if let Some(object) = before.xor(after).filter(|object| !has_others(object)) {
            of_kinds(&object.key.kind).into_iter().for_each(|fact| facts.add(fact));
        }
        facts
    }

    /// The facts that may change when this object comes, goes, or becomes another one.
    fn add_facts_of(&self, object: &Object, changes: Changes, facts: &mut Facts) {
        self.terms_of(object).each_fact(object, changes, |fact| facts.add(fact));
        object.owners().iter().for_each(|owner| facts.add(Fact::OwnerKind(&owner.kind)));
        if self.missing_nodes.contains(&object.node) {
            facts.add(Fact::Nodes);
        }
        let names_none = || object.owners().iter().any(|owner| self.named_uid(&owner.uid).is_none());
        if self.by_owner.get(&object.uid).is_some() || names_none() {
            facts.add(Fact::Orphans);
        }
    }
}
