//! From an invariant's document to what can be run: its template filled in, its expressions compiled, its names ordered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suture_model::futures::{Faults, Moment};
use suture_model::kinds::Kind;
use suture_model::object::Object;
use suture_model::value::{Str, Val};

use crate::about_locals::InstanceNames;
use crate::eval::{Env, eval};
use crate::functions::{Func, Worlds};
use crate::ir::{Expr, Node};
use crate::library::Library;
use crate::spec::{Action, Invariant, InvariantSpec, InvariantTemplate, OnUndecided, SpecError, Subject, Violations};
use crate::value::{Value, World};

mod faults;
mod instances;
mod lets;
mod params;
mod prune;
mod selected;
mod source;
mod template;
mod undecidable;

pub use instances::{ForEach, Kinds, Matches};
pub use source::Clause;
pub use template::check_template;

use faults::faults;
use selected::keep_selected;
use source::{Source, compile_source};
use template::template_source;

/// An invariant, ready to be run.
#[derive(Clone, Debug)]
pub struct CompiledInvariant {
    /// What tells it from all others: its name, of a NamespacedInvariant `namespace/name`.
    pub name: Str,
    /// The template that it names.
    pub template: Option<Str>,
    /// The namespace of a NamespacedInvariant, which sees nothing else.
    pub namespaced: Option<Str>,
    /// Its own labels, by which grants select invariants.
    pub labels: Val,
    /// Which objects are its instances.
    pub for_each: ForEach,
    /// Which moments it speaks about.
    pub hold: Moment,
    /// The faults it must survive.
    pub faults: Faults,
    /// Whether pods whose controller's kind is not modelled are taken to be made anew.
    pub remade: bool,
    /// Named values, each after those that it uses.
    pub lets: Vec<(Str, Expr)>,
    /// The names of those whose value depends on the future.
    pub lets_of_future: BTreeSet<Str>,
    /// The names of those whose value depends on the instance.
    pub lets_of_instance: BTreeSet<Str>,
    /// What must be true.
    pub require: Vec<Clause>,
    /// How badly it is broken.
    pub degree: Option<Expr>,
    /// What becomes of a request that breaks it.
    pub action: Action,
    /// Which violations are to blame.
    pub violations: Violations,
    /// What becomes of a request about which nothing can be decided.
    pub on_undecided: OnUndecided,
    /// Which instances are judged.
    pub matches: Matches,
    /// Whose requests it judges; empty for everybody's.
    pub subjects: Vec<Subject>,
    /// The values of its parameters: a map.
    pub params: Val,
    /// The functions that it uses.
    pub functions: BTreeSet<Func>,
    /// The kinds that it lists by name (`before.pods`, `now.objects('Pod')`); kinds that are not built in without group.
    pub kinds: BTreeSet<Kind>,
}

impl CompiledInvariant {
    /// The names by which its expressions are about the instance.
    pub fn instance_names(&self) -> InstanceNames<'_> {
        InstanceNames { var: &self.for_each.var, lets: &self.lets_of_instance }
    }

    /// The environment of its expressions for an instance: states, variable, named values, parameters, request (a map;
    /// null when there is none) and time (nanoseconds since 1970; `None` when unknown).
    pub fn env<'a>(&'a self, worlds: Worlds<'a>, instance: &Arc<Object>, request: &Val, time: Option<i128>) -> Env<'a> {
        let mut env = Env::new(worlds);
        env.bind(&self.for_each.var, Ok(Value::Object(instance.clone())));
        env.bind("params", Ok(Value::from(&self.params)));
        if !request.is_null() {
            env.bind("request", Ok(Value::from(request)));
            env.bind("requests", Ok(Value::list(vec![Value::from(request)])));
        }
        if let Some(time) = time {
            env.bind("time", Ok(Value::Timestamp(time)));
        }
        for (name, expr) in &self.lets {
            let value = eval(expr, &env);
            env.bind(name, value);
        }
        env
    }

    /// What is asked of one state alone: what it reads of the cluster before it reads of the cluster as it is.
    #[must_use]
    pub fn of_one_state(&self) -> Self {
        let mut one = self.clone();
        one.expressions_mut().for_each(|expr| expr.rename(World::Before.name(), World::Now.name()));
        one.lets_of_future = lets_naming(&one.lets, World::Now.name());
        one
    }

    /// All expressions.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let clauses = self.require.iter().flat_map(|c| std::iter::once(&c.expression).chain(&c.message));
        self.lets.iter().map(|(_, e)| e).chain(clauses).chain(&self.degree).chain(&self.for_each.where_)
    }

    /// All expressions, to change them.
    fn expressions_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let clauses = self.require.iter_mut().flat_map(|c| std::iter::once(&mut c.expression).chain(&mut c.message));
        let lets = self.lets.iter_mut().map(|(_, e)| e);
        lets.chain(clauses).chain(&mut self.degree).chain(&mut self.for_each.where_)
    }
}

/// Compiles an invariant, its template taken from the library.
///
/// # Errors
/// All that is wrong with it; with an expression of its template, at the template's place.
pub fn compile_invariant(invariant: &Invariant, library: &Library) -> Result<CompiledInvariant, Vec<SpecError>> {
    let (spec, origin) = (&invariant.spec, &invariant.origin);
    let template = match &spec.template {
        Some(name) => Some(library.get(name).ok_or_else(|| {
            let error = SpecError::new(origin, "spec.template", format!("there is no template `{name}`"));
            vec![error.suggesting(name, library.names())]
        })?),
        None => None,
    };
    let given = spec.params.clone().unwrap_or_default();
    let (source, params) = match template {
        Some(template) => {
            excluded_beside_template(invariant)?;
            let template_source = template_source(template);
            let hold = spec.hold.map_or(template_source.hold, Into::into);
            let source = Source { namespace: invariant.namespace.clone(), hold, ..template_source };
            (source, params::bind(template, &given, origin)?)
        }
        None => (own_source(invariant, &given)?, Val::map(Vec::new())),
    };
    let mut parts =
        compile_source(&source).map_err(|errors| match (template, errors.first(), &invariant.namespace) {
            (Some(template), Some(first), Some(_)) => {
                let message =
                    format!("template `{}` is not for a NamespacedInvariant: {}", template.name, first.message);
                vec![SpecError::new(origin, "spec.template", message).helped("name it in an Invariant")]
            }
            _ => errors,
        })?;
    keep_selected(&mut parts, source.for_each, spec.matches.as_ref());
    let declared = template.and_then(|t| t.spec.under.as_ref().map(|under| (under, &t.origin)));
    let faults = faults(spec.under.as_ref().map(|under| (under, origin)), declared, &source.params, &params)?;
    let defaults = template.map(|t| &t.spec);
    let mut compiled = CompiledInvariant {
        name: invariant.qualified_name(),
        template: spec.template.as_deref().map(Into::into),
        namespaced: invariant.namespace.clone(),
        labels: invariant.labels.clone(),
        for_each: parts.for_each,
        hold: source.hold,
        faults,
        remade: remade(spec, template),
        lets: parts.lets,
        lets_of_future: BTreeSet::new(),
        lets_of_instance: BTreeSet::new(),
        require: parts.require,
        degree: parts.degree,
        action: spec.action.or(defaults.and_then(|d| d.action)).unwrap_or_default(),
        violations: spec.violations.or(defaults.and_then(|d| d.violations)).unwrap_or_default(),
        on_undecided: spec.on_undecided.or(defaults.and_then(|d| d.on_undecided)).unwrap_or_default(),
        matches: Matches::of(spec.matches.as_ref()),
        subjects: spec.subjects.clone(),
        params,
        functions: BTreeSet::new(),
        kinds: BTreeSet::new(),
    };
    prune_all(&mut compiled);
    collect(&mut compiled);
    Ok(compiled)
}

/// The parts of an invariant that names no template.
fn own_source<'i>(invariant: &'i Invariant, given: &Val) -> Result<Source<'i>, Vec<SpecError>> {
    let (spec, origin) = (&invariant.spec, &invariant.origin);
    let Some(for_each) = &spec.for_each else {
        let error = SpecError::new(origin, "spec", "an invariant needs `forEach` and `require`, or `template`");
        return Err(vec![error]);
    };
    if spec.require.is_empty() {
        return Err(vec![SpecError::new(origin, "spec", "`require` is missing: what must be true?")]);
    }
    if given.entries().len() > 0 {
        let error = SpecError::new(origin, "spec.params", "only a template has parameters");
        return Err(vec![error.helped("write the values into the expressions, or name a `template`")]);
    }
    Ok(Source {
        origin,
        namespace: invariant.namespace.clone(),
        for_each,
        hold: spec.hold.unwrap_or_default().into(),
        lets: spec.lets.as_ref(),
        require: &spec.require,
        degree: spec.degree.as_ref(),
        params: BTreeMap::new(),
    })
}

fn excluded_beside_template(invariant: &Invariant) -> Result<(), Vec<SpecError>> {
    let spec = &invariant.spec;
    let found = [
        ("forEach", spec.for_each.is_some()),
        ("let", spec.lets.is_some()),
        ("require", !spec.require.is_empty()),
        ("degree", spec.degree.is_some()),
    ];
    let errors: Vec<SpecError> = found
        .iter()
        .filter(|(_, given)| *given)
        .map(|(field, _)| {
            let message = format!("`{field}` is the template's: an invariant has `template` or expressions of its own");
            SpecError::new(&invariant.origin, &format!("spec.{field}"), message)
        })
        .collect();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Whether an invariant, or else its template, takes pods of controllers that are not modelled to be made anew.
fn remade(spec: &InvariantSpec, template: Option<&InvariantTemplate>) -> bool {
    let mut under = spec.under.iter().chain(template.and_then(|template| template.spec.under.as_ref()));
    under.find_map(|under| under.remade).unwrap_or(false)
}

/// Leaves out what the values of the parameters rule out.
fn prune_all(compiled: &mut CompiledInvariant) {
    let mut env = Env::without_worlds();
    env.bind("params", Ok(Value::from(&compiled.params)));
    compiled.expressions_mut().for_each(|expr| prune::prune(expr, &env));
    // what no branch uses any more is not read
    let mut used: BTreeSet<Str> = BTreeSet::new();
    let note = |expr: &Expr, used: &mut BTreeSet<Str>| {
        expr.walk(&mut |part| {
            if let Node::Var(name) = &part.node {
                used.insert(name.clone());
            }
        });
    };
    let clauses = compiled.require.iter().flat_map(|c| std::iter::once(&c.expression).chain(&c.message));
    clauses.chain(&compiled.degree).chain(&compiled.for_each.where_).for_each(|expr| note(expr, &mut used));
    for (name, expr) in compiled.lets.iter().rev() {
        if used.contains(name) {
            note(expr, &mut used);
        }
    }
    compiled.lets.retain(|(name, _)| used.contains(name));
}

/// Notes which functions and kinds the expressions use.
fn collect(compiled: &mut CompiledInvariant) {
    let mut functions = BTreeSet::new();
    let mut kinds = BTreeSet::new();
    for expr in compiled.expressions() {
        expr.walk(&mut |part| {
            let Node::Call { func, args } = &part.node else { return };
            functions.insert(*func);
            let text = |at: usize| match args.get(at).map(|a| &a.node) {
                Some(Node::Const(Value::String(s))) => Some(s.clone()),
                _ => None,
            };
            let named = |kind: Str| Kind::builtin(&kind).unwrap_or_else(|| Kind::new("", &kind));
            match func.kind_argument(args.len()) {
                Some((Some(group), kind)) => {
                    kinds.extend(text(group).zip(text(kind)).map(|(group, kind)| Kind::new(&group, &kind)));
                }
                Some((None, kind)) => kinds.extend(text(kind).map(named)),
                None => {}
            }
        });
    }
    compiled.functions = functions;
    compiled.kinds = kinds;
    compiled.lets_of_future = lets_naming(&compiled.lets, World::Now.name());
    compiled.lets_of_instance = lets_naming(&compiled.lets, &compiled.for_each.var);
}

/// The names of the named values whose expressions name this, themselves or by others.
fn lets_naming(lets: &[(Str, Expr)], this: &str) -> BTreeSet<Str> {
    let mut found = BTreeSet::new();
    for (name, expr) in lets {
        if expr.names(this, &found) {
            found.insert(name.clone());
        }
    }
    found
}
