//! What can be said of an invariant before any cluster is looked at, worked out once for all decisions: its footprint, and
//! what the kind of an instance decides.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use suture_model::kinds::{Kind, KindTraits};
use suture_model::object::{Object, Owner};
use suture_specs::compile::{CompiledInvariant, Kinds};
use suture_specs::eval::{Env, eval_bool};
use suture_specs::functions::Worlds;
use suture_specs::value::Value;

pub mod annotations;
mod by_itself;
pub mod footprint;
mod guards;
mod instances;
mod namespaces;
pub mod reads;
mod uses;

use crate::question::Inputs;
use by_itself::{ByItself, REQUEST};
use footprint::Footprint;
use instances::{InstanceKind, instance_kind, reads_nodes_only};
pub(crate) use uses::Place;

/// An invariant, and what is known of it whatever the cluster.
#[derive(Debug)]
pub struct Analysis {
    /// The invariant.
    pub compiled: Arc<CompiledInvariant>,
    /// What it reads.
    pub footprint: Footprint,
    /// The kinds of its instances, where it names all of them but those that have adapters.
    kinds_named: Option<Vec<Kind>>,
    /// Whether its parameters let it apply to nothing.
    pub never_applies: bool,
    /// Whether its `where` reads the requests.
    by_request: bool,
    /// What an instance decides by itself.
    by_itself: Option<ByItself>,
    /// Of the kinds that were asked for.
    kinds: Mutex<BTreeMap<Kind, KindAnalysis>>,
}

/// What is known of the instances of a kind.
#[derive(Clone, Copy, Debug)]
struct KindAnalysis {
    instances: InstanceKind,
    reads_nodes_only: bool,
}

impl Analysis {
    /// Of this invariant.
    pub fn of(compiled: Arc<CompiledInvariant>) -> Self {
        let (kinds_named, never_applies) = (kinds_named(&compiled), never_applies(&compiled, None));
        let where_ = compiled.for_each.where_.as_ref();
        let by_request = where_.is_some_and(|expr| REQUEST.iter().any(|name| expr.names(name, &BTreeSet::new())));
        let (footprint, by_itself, kinds) = (Footprint::of(&compiled), ByItself::of(&compiled), Mutex::default());
        Self { footprint, kinds_named, never_applies, by_request, by_itself, kinds, compiled }
    }

    /// Whether an instance holds in every future by what it is itself, where no scenario changes it: the same for all of a
    /// kind and body.
    /// Nothing is said of custom resources that no adapter explains, nor of pods that others of their name may follow.
    pub fn holds_by_itself(&self, instance: &Arc<Object>, worlds: Worlds<'_>) -> bool {
        let by_itself = self.by_itself.as_ref().filter(|_| self.stays_itself(instance, worlds));
        by_itself.is_some_and(|by_itself| by_itself.holds(instance, worlds))
    }

    /// The same where some scenario has this version of it, as far as nothing changes that.
    pub fn holds_by_itself_as(&self, instance: &Arc<Object>, version: &Arc<Object>, worlds: Worlds<'_>) -> bool {
        let stay = || [instance, version].into_iter().all(|object| self.stays_itself(object, worlds));
        self.by_itself.as_ref().is_some_and(|by_itself| stay() && by_itself.holds_as(instance, version, worlds))
    }

    /// Whether no more is to be known of an object, in every future that has one of its name.
    fn stays_itself(&self, object: &Arc<Object>, worlds: Worlds<'_>) -> bool {
        // one without a controller may be adopted by any
        let is_followed = || {
            let renames = |owner: &Owner| owner.kind.has(KindTraits::generates_names);
            self.compiled.remade || !object.controller().is_some_and(renames)
        };
        let kind = &object.key.kind;
        match worlds.before.adapter(object) {
            Some(facts) => facts.errors.is_empty(),
            None => kind.builtin_namespaced().is_some() && !(kind.is("Pod") && is_followed()),
        }
    }

    /// Whether it applies to nothing, as its parameters and the requests alone tell.
    pub fn never_applies_to(&self, inputs: &Inputs) -> bool {
        self.never_applies || (self.by_request && never_applies(&self.compiled, Some(inputs)))
    }

    /// Of each of these.
    pub fn of_all(invariants: impl IntoIterator<Item = Arc<CompiledInvariant>>) -> Vec<Self> {
        invariants.into_iter().map(Self::of).collect()
    }

    /// Whether an object of a kind may be an instance, where these kinds have adapters; never false for one that is.
    pub fn may_be(&self, kind: &Kind, adapted: &[Kind]) -> bool {
        match self.of_kind(kind).instances {
            InstanceKind::Never => false,
            InstanceKind::Adapted => adapted.contains(kind),
            InstanceKind::Always => true,
        }
    }

    /// The kinds of its instances, where these kinds have adapters and it names all others.
    pub(crate) fn kinds(&self, adapted: &[Kind]) -> Option<Cow<'_, [Kind]>> {
        let named = self.kinds_named.as_deref()?;
        if !self.compiled.for_each.kinds.contains(&Kinds::Adapted) {
            return Some(Cow::Borrowed(named));
        }
        let others = adapted.iter().filter(|kind| self.may_be(kind, adapted) && !named.contains(kind));
        Some(named.iter().chain(others).cloned().collect())
    }

    /// Whether nothing but the constraint on nodes is read of its instances of a kind.
    pub fn reads_nodes_only(&self, kind: &Kind) -> bool {
        self.of_kind(kind).reads_nodes_only
    }

    /// Whether it is about where pods are: it reads their nodes, or survives the loss of some.
    pub fn is_about_places(&self) -> bool {
        self.footprint.reads_places || self.compiled.faults.lose_nodes()
    }

    fn of_kind(&self, kind: &Kind) -> KindAnalysis {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        match kinds.get(kind) {
            Some(known) => *known,
            None => *kinds.entry(kind.clone()).or_insert(KindAnalysis {
                instances: instance_kind(&self.compiled, kind),
                reads_nodes_only: reads_nodes_only(&self.compiled, kind),
            }),
        }
    }
}

/// The kinds of the instances of an invariant, where it names all of them but those that have adapters.
fn kinds_named(compiled: &CompiledInvariant) -> Option<Vec<Kind>> {
    let mut found = BTreeSet::new();
    for kinds in &compiled.for_each.kinds {
        match kinds {
            Kinds::Kind(named) => {
                // of a kind that is not built in the group may be any
                found.insert(named.resolve()?);
                found.extend(Kind::with(|_| true).filter(|kind| named.matches(kind)));
            }
            Kinds::Adapted => {}
            Kinds::Every | Kinds::Workload => return None,
        }
    }
    found.retain(|kind| instance_kind(compiled, kind) != InstanceKind::Never);
    Some(found.into_iter().collect())
}

/// Whether `where` is false for every object, as the parameters and the requests alone tell, and nothing is required beyond
/// it.
fn never_applies(compiled: &CompiledInvariant, inputs: Option<&Inputs>) -> bool {
    let mut env = Env::without_worlds();
    env.bind("params", Ok(Value::from(&compiled.params)));
    if let Some(inputs) = inputs {
        let [request, requests] = REQUEST;
        env.bind(request, Ok(inputs.request.clone()));
        env.bind(requests, Ok(inputs.requests.clone()));
    }
    let condition = compiled.for_each.where_.as_ref();
    condition.is_some_and(|expr| matches!(eval_bool(expr, &env), Ok(false)))
        && !compiled.require.iter().any(|clause| clause.beyond_where)
}

#[cfg(test)]
mod tests;
