//! By what an object is found in the indexes of a snapshot, and the facts that this makes.

use super::facts::Fact;
use super::labels::LabelKey;
use crate::fields::NodeConstraint;
use crate::kinds::Kind;
use crate::object::{Key, Object};

/// The index terms of an object, beside its key, uid, owners and node.
#[derive(PartialEq)]
pub(super) struct Terms {
    pub labels: Vec<LabelKey>,
    /// The pair of labels that its selector asks for.
    pub selector: Option<LabelKey>,
    /// Its constraint on nodes, if that restricts any.
    pub constraint: Option<NodeConstraint>,
    /// What it refers to.
    pub references: Vec<Key>,
    /// What its adapter lists as made by its operator.
    pub children: Vec<Key>,
}

/// What an object changes beside itself by being another one, by coming or by going.
#[derive(Clone, Copy)]
pub(super) struct Changes {
    /// Whether something else is taken of its node.
    pub usage: bool,
    /// Whether other workloads may lack pods.
    pub lacking: bool,
}

impl Terms {
    /// Each fact that an object says by being there, being another one or being there no more, whatever else there is.
    pub fn each_fact(&self, object: &Object, changes: Changes, mut note: impl FnMut(Fact<'_>)) {
        let Key { kind, ns, .. } = &object.key;
        let of_all = [Fact::Objects, Fact::Object(&object.key), Fact::Kind(kind), Fact::KindIn(kind, ns)];
        of_all.into_iter().for_each(&mut note);
        if !object.uid.is_empty() {
            note(Fact::Uid(&object.uid));
        }
        object.owners().iter().for_each(|owner| note(Fact::Owned(&owner.uid)));
        if !object.node.is_empty() {
            note(Fact::Node(&object.node));
            if changes.usage {
                note(Fact::Usage(&object.node));
                note(Fact::Busy);
            }
        }
        if kind.is("Node") {
            note(Fact::Nodes);
        }
        if changes.lacking {
            note(Fact::Lacking);
        }
        self.labels.iter().for_each(|label| note(Fact::Label(label)));
        self.selector.iter().for_each(|pair| note(Fact::Selector(pair)));
        self.constraint.iter().for_each(|_| note(Fact::Constraints));
        self.references.iter().for_each(|target| note(Fact::Reference(target)));
        self.children.iter().for_each(|child| note(Fact::Child(child)));
    }
}

/// What a kind says by its first object, or by none any more.
pub(super) fn of_kinds(kind: &Kind) -> [Fact<'_>; 2] {
    [Fact::Kinds, Fact::Exists(kind)]
}
