//! What the questions of one decision share: groups with their quotients, and values that are the same in all futures.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use suture_model::effects::{Memo, View};
use suture_model::object::Key;
use suture_model::scenario::Scenario;
use suture_model::selector::Selector;
use suture_model::value::Str;
use suture_specs::about_locals::AboutLocals;

use crate::class::{GroupId, Prepared};
use crate::sym::Sym;

/// By scenario, namespace and selector.
type Selected = BTreeMap<(usize, Str, Selector), Rc<BTreeSet<Key>>>;

/// By scenario and expression, each by where it is in memory.
type Timeless = BTreeMap<(usize, usize), Sym>;

/// Scenario, group, view and grain.
pub(crate) type Preparation = (usize, GroupId, View, bool, bool);

/// What one decision has prepared. Valid as long as the scenarios and the invariants stay where they are.
#[derive(Debug, Default)]
pub struct Preparations {
    pub(crate) groups: RefCell<BTreeMap<Preparation, Rc<Prepared>>>,
    /// What effects worked out, by scenario.
    pub(crate) memos: RefCell<BTreeMap<usize, Rc<Memo>>>,
    /// The groups of the pods that a selector means in a namespace, by scenario.
    pub(crate) selected: RefCell<Selected>,
    /// The values of expressions that ask nothing about the future nor about an instance, by scenario.
    pub(crate) shared: RefCell<Timeless>,
    /// The same of those about the instance at hand.
    pub(crate) timeless: RefCell<(Option<Key>, Timeless)>,
    /// The values of expressions about the items of lists.
    pub(crate) about_locals: RefCell<AboutLocals>,
}

impl Preparations {
    pub(crate) fn memo(&self, scenario: &Scenario<'_>) -> Rc<Memo> {
        self.memos.borrow_mut().entry(std::ptr::from_ref(scenario) as usize).or_default().clone()
    }
}
