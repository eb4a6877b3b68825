//! Values of expressions that are kept for all who ask the same in a decision.

use std::collections::BTreeMap;

use suture_model::value::Str;
use suture_specs::about_locals::{AboutLocals, Asked};
use suture_specs::compile::CompiledInvariant;
use suture_specs::ir::Expr;
use suture_specs::value::Value;

use super::Scene;
use crate::sym::{Member, Sym};

impl Scene<'_, '_> {
    /// What [`Self::keep`] was given for this expression in the same scenario, about the same instance or about none.
    pub fn kept(&self, expr: &Expr) -> Option<Sym> {
        let at = self.place(expr);
        let kept = self.preparations.timeless.borrow();
        let (instance, values) = &*kept;
        let about_it = values.get(&at).filter(|_| *instance == self.grain.instance_key).cloned();
        about_it.or_else(|| self.preparations.shared.borrow().get(&at).cloned())
    }

    /// Keeps the value of an expression that is the same in all futures of the scenario; if it is `shared`, also for all
    /// instances.
    pub fn keep(&self, expr: &Expr, value: Sym, shared: bool) {
        let at = self.place(expr);
        if shared {
            self.preparations.shared.borrow_mut().insert(at, value);
            return;
        }
        let mut kept = self.preparations.timeless.borrow_mut();
        if kept.0 != self.grain.instance_key {
            *kept = (self.grain.instance_key.clone(), BTreeMap::new());
        }
        kept.1.insert(at, value);
    }

    /// What an expression over the items of a list asks with these local variables, if it is the same for all instances; nothing
    /// where nodes fail, which may be others next.
    pub(crate) fn asked(&self, expr: &Expr, locals: &[(Str, Sym)], compiled: &CompiledInvariant) -> Option<Asked> {
        if self.may_fail || !AboutLocals::is_over_items(expr) {
            return None;
        }
        let about = || AboutLocals::named(expr, compiled.instance_names(), locals.iter().map(|(name, _)| name));
        let value = |name: &str| match locals.iter().rev().find(|(local, _)| **local == *name) {
            Some((_, Sym::Known(value))) => Some(value.clone()),
            // it stands for no other
            Some((_, Sym::Member(Member { object, fate: None }))) => Some(Value::Object(object.clone())),
            _ => None,
        };
        self.preparations.about_locals.borrow_mut().asked(self.place(expr), about, value)
    }

    /// What is known of it.
    pub(crate) fn known_of(&self, asked: &Asked) -> Option<Value> {
        self.preparations.about_locals.borrow().find(asked)
    }

    /// Keeps its value, which it has in all futures.
    pub(crate) fn keep_of(&self, asked: Asked, value: Value) {
        self.preparations.about_locals.borrow_mut().keep(asked, value);
    }

    /// Where an expression and the scenario are in memory.
    fn place(&self, expr: &Expr) -> (usize, usize) {
        (std::ptr::from_ref(self.scenario) as usize, std::ptr::from_ref(expr) as usize)
    }
}
