//! The names that an expression may use, and their types.

use std::collections::BTreeMap;

use suture_model::value::Str;

use crate::ir::Type;

/// The names in scope of an expression.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    vars: BTreeMap<Str, Type>,
    after: bool,
    params: Option<BTreeMap<Str, Type>>,
    namespace: Option<Str>,
    /// Whether operators take what they find when they are evaluated: an adapter's expressions read one object of which no
    /// schema says anything.
    pub(super) dynamic: bool,
}

impl Scope {
    /// The scope of a ResourceAdapter's expressions: `self`.
    pub fn adapter() -> Self {
        let scope = Self { dynamic: true, ..Self::default() };
        scope.with("self", Type::Any)
    }

    /// The scope of an invariant's expressions: `before`, `now`, `request`, `requests`, `params`, `time`, and `after` where settled
    /// states only are judged.
    pub fn invariant(after: bool) -> Self {
        let scope = Self { after, ..Self::default() };
        scope
            .with("before", Type::World)
            .with("now", Type::World)
            .with("request", Type::Struct("request".into()))
            .with("requests", Type::list(Type::Struct("request".into())))
            .with("params", Type::Any)
            .with("time", Type::Timestamp)
    }

    /// The scope of `under`'s expressions: `params`.
    pub fn under() -> Self {
        Self::default().with("params", Type::Any)
    }

    /// This scope with a variable added.
    #[must_use]
    pub fn with(mut self, name: &str, ty: Type) -> Self {
        self.vars.insert(name.into(), ty);
        self
    }

    /// This scope with declared parameters: any other name is an error.
    #[must_use]
    pub fn with_params(mut self, params: BTreeMap<Str, Type>) -> Self {
        self.params = Some(params);
        self
    }

    /// This scope for expressions that may read one namespace only, if one is given.
    #[must_use]
    pub fn within(mut self, namespace: Option<Str>) -> Self {
        self.namespace = namespace;
        self
    }

    /// The one namespace that may be read.
    pub(super) fn namespace(&self) -> Option<&Str> {
        self.namespace.as_ref()
    }

    /// The type of a variable.
    pub fn get(&self, name: &str) -> Option<&Type> {
        self.vars.get(name)
    }

    /// The names of all variables.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.vars.keys().map(|name| &**name).chain(self.after.then_some("after"))
    }

    /// Whether `after` is a name of `now`.
    pub fn has_after(&self) -> bool {
        self.after
    }

    /// The declared parameters, when they are declared.
    pub(super) fn params(&self) -> Option<&BTreeMap<Str, Type>> {
        self.params.as_ref()
    }
}

/// Names that no variable may take: states, and what every expression may use.
pub const RESERVED: [&str; 8] = ["before", "now", "after", "request", "requests", "params", "time", "cel"];
