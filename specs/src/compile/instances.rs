//! Which objects are instances of an invariant, and which of them are judged.

use suture_model::adapter::Adapters;
use suture_model::kinds::{Kind, KindTraits};
use suture_model::object::Object;
use suture_model::selector::Selector;
use suture_model::value::{Str, Val};

use super::lets::is_name;
use crate::cel::RESERVED;
use crate::globs::glob_matches;
use crate::ir::{Expr, Type};
use crate::spec::{self, KindRef, Match, Origin, SpecError};
use crate::suggest::nearest;

/// Which objects are instances.
#[derive(Clone, Debug)]
pub struct ForEach {
    /// The variable that stands for the object.
    pub var: Str,
    /// Their kinds: any of these.
    pub kinds: Vec<Kinds>,
    /// Their labels.
    pub selector: Option<Selector>,
    /// Which of them, by an expression over the variable, `before` and `now`.
    pub where_: Option<Expr>,
}

/// Kinds of instances.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kinds {
    /// `*`: every kind.
    Every,
    /// `Workload`: whatever runs pods.
    Workload,
    /// `Adapted`: whatever a ResourceAdapter is for.
    Adapted,
    /// One kind.
    Kind(KindRef),
}

impl Kinds {
    /// Whether an object is of these kinds.
    pub fn matches(&self, object: &Object, adapters: &dyn Adapters) -> bool {
        match self {
            Self::Every => true,
            Self::Adapted => adapters.facts(object).is_some(),
            Self::Workload => {
                object.key.kind.has(KindTraits::is_workload)
                    || adapters.facts(object).is_some_and(|facts| facts.template.is_some())
            }
            Self::Kind(kind) => kind.matches(&object.key.kind),
        }
    }

    /// Whether an object of a kind of this short name may be of these kinds, where those have adapters.
    pub fn may_be(&self, name: &str, adapted: &[Kind]) -> bool {
        let has_adapter = || adapted.iter().any(|kind| *kind.kind == *name);
        match self {
            Self::Every => true,
            Self::Adapted => has_adapter(),
            Self::Workload => KindTraits::named(name).is_some_and(KindTraits::is_workload) || has_adapter(),
            Self::Kind(kind) => kind.kind == name,
        }
    }
}

impl ForEach {
    /// Whether all of its kinds are built in and cluster-scoped.
    pub(super) fn nowhere(&self) -> bool {
        let scope = |kinds: &Kinds| match kinds {
            Kinds::Kind(kind) => kind.resolve().and_then(|kind| kind.builtin_namespaced()),
            Kinds::Every | Kinds::Workload | Kinds::Adapted => None,
        };
        self.kinds.iter().all(|kinds| scope(kinds) == Some(false))
    }

    /// Whether an object is an instance by kind and labels; `where_` is for the evaluator.
    pub fn matches(&self, object: &Object, adapters: &dyn Adapters) -> bool {
        self.selector.as_ref().is_none_or(|s| s.matches(object.labels()))
            && self.kinds.iter().any(|kinds| kinds.matches(object, adapters))
    }
}

/// Which instances are judged.
#[derive(Clone, Debug, Default)]
pub struct Matches {
    /// Their namespaces: globs; empty for all.
    pub namespaces: Vec<String>,
    /// Namespaces left out: globs.
    pub excluded_namespaces: Vec<String>,
    /// Their labels.
    pub selector: Option<Selector>,
}

impl Matches {
    pub(super) fn of(spec: Option<&Match>) -> Self {
        spec.map_or_else(Self::default, |m| Self {
            namespaces: m.namespaces.clone(),
            excluded_namespaces: m.excluded_namespaces.clone(),
            selector: selector(m.selector.as_ref()),
        })
    }

    /// Whether all instances are judged.
    pub fn is_every(&self) -> bool {
        self.namespaces.is_empty() && self.excluded_namespaces.is_empty() && self.selector.is_none()
    }

    /// Whether an instance is judged. A Namespace object lies in the namespace of its own name; other cluster-scoped
    /// objects lie in none, which no glob but `*` names.
    pub fn admits(&self, object: &Object) -> bool {
        let ns = if object.key.kind.is("Namespace") { &object.key.name } else { &object.key.ns };
        let in_one = |globs: &[String]| globs.iter().any(|glob| glob_matches(glob, ns));
        (self.namespaces.is_empty() || in_one(&self.namespaces))
            && !in_one(&self.excluded_namespaces)
            && self.selector.as_ref().is_none_or(|s| s.matches(object.labels()))
    }
}

/// Reads `forEach`, `where` aside, and the type of its variable.
pub(super) fn for_each(source: &spec::ForEach, origin: &Origin) -> Result<(ForEach, Type), Vec<SpecError>> {
    let mut errors = Vec::new();
    if RESERVED.contains(&source.var.as_str()) {
        let message = format!("`{}` has a meaning already", source.var);
        errors.push(SpecError::new(origin, "spec.forEach.var", message));
    } else if !is_name(&source.var) {
        let message = format!("`{}` is no name: letters, digits and `_`", source.var);
        errors.push(SpecError::new(origin, "spec.forEach.var", message));
    }
    let mut refs: Vec<(String, KindRef)> = Vec::new();
    if let Some(kind) = &source.kind {
        let mut kind = kind.clone();
        kind.group = kind.group.or_else(|| source.api_group.clone());
        refs.push(("spec.forEach.kind".into(), kind));
    } else if source.api_group.is_some() {
        errors.push(SpecError::new(origin, "spec.forEach.apiGroup", "`apiGroup` needs `kind`"));
    }
    refs.extend(source.kinds.iter().enumerate().map(|(i, k)| (format!("spec.forEach.kinds[{i}]"), k.clone())));
    if refs.is_empty() {
        errors.push(SpecError::new(origin, "spec.forEach", "`kind` or `kinds` is missing"));
    }
    for (path, kind) in &refs {
        errors.extend(misspelt(kind, path, origin));
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let var_type = match refs.as_slice() {
        [(_, only)] => Type::Object(only.resolve().filter(|k| k.builtin_namespaced().is_some())),
        _ => Type::Object(None),
    };
    let kinds = refs.into_iter().map(|(_, kind)| match (kind.group.as_deref(), kind.kind.as_str()) {
        (None, "*") => Kinds::Every,
        (None, "Workload") => Kinds::Workload,
        (None, "Adapted") => Kinds::Adapted,
        _ => Kinds::Kind(kind),
    });
    let selector = selector(source.selector.as_ref());
    Ok((ForEach { var: source.var.as_str().into(), kinds: kinds.collect(), selector, where_: None }, var_type))
}

/// A kind without group that is nearly a known one is taken for a slip.
fn misspelt(kind: &KindRef, path: &str, origin: &Origin) -> Option<SpecError> {
    let pseudo = ["*", "Workload", "Adapted"];
    if kind.group.is_some() || pseudo.contains(&kind.kind.as_str()) || kind.resolve().is_some() {
        return None;
    }
    let known = KindTraits::listed().map(|traits| traits.kind).chain(pseudo);
    let near = nearest(&kind.kind, known)?;
    let error = SpecError::new(origin, path, format!("`{}` is no built-in kind", kind.kind));
    Some(error.helped(format!("did you mean `{near}`? if it is a custom resource, give its group")))
}

/// A LabelSelector, when one is given.
fn selector(val: Option<&Val>) -> Option<Selector> {
    val.filter(|v| !v.is_null()).map(Selector::from_label_selector)
}
