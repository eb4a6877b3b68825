//! What may be supposed where a kind was not read, and who asked for it.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::kinds::Kind;
use crate::object::Owner;
use crate::value::Str;

/// What may be supposed; all that is not is well.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Supposition {
    /// An owner whose kind was not read is gone.
    OwnerGone(Owner),
    /// The objects of this kind, which was not read, go with whatever is deleted that may own them.
    OwnersTaken(Kind),
    /// Pods may leave this node and lose readiness on it: it is not Ready, or has taints. Nodes were not read.
    NodeFails(Str),
}

impl Supposition {
    /// The kind that was not read.
    pub fn kind(&self) -> Kind {
        match self {
            Self::OwnerGone(owner) => owner.kind.clone(),
            Self::OwnersTaken(kind) => kind.clone(),
            Self::NodeFails(_) => Kind::new("", "Node"),
        }
    }
}

thread_local! {
    /// What was asked for on this thread, while somebody wants to know.
    static ASKED: RefCell<Option<BTreeSet<Supposition>>> = const { RefCell::new(None) };
}

/// Does some work on this thread, and says which suppositions it asked for. Work within work is told to both.
pub fn asked_by<T>(work: impl FnOnce() -> T) -> (T, BTreeSet<Supposition>) {
    let outer = ASKED.replace(Some(BTreeSet::new()));
    let done = work();
    let asked = ASKED.replace(outer).unwrap_or_default();
    ask_again(&asked);
    (done, asked)
}

/// Says to whoever wants to know that these were asked for, as what was found out by that is used.
pub(crate) fn ask_again(asked: &BTreeSet<Supposition>) {
    ASKED.with_borrow_mut(|all| all.iter_mut().for_each(|all| all.extend(asked.iter().cloned())));
}
