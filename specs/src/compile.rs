//! From an invariant's document to what can be run: its template filled in, its expressions compiled, its names ordered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suture_model::futures::{Faults, Moment};
use suture_model::kinds::Kind;
use suture_model::object::Object;
use suture_model::selector::Selector;
use suture_model::value::{Str, Val};

use crate::cel::{self, Scope};
use crate::eval::{Env, eval};
use crate::functions::{Func, Worlds};
use crate::ir::{Expr, Node, Type};
use crate::library::Library;
use crate::spec::{
    Action, Cel, Invariant, InvariantTemplate, OnUndecided, Origin, Requirement, SpecError, Subject, Under, Violations,
};
use crate::value::Value;

mod instances;
mod lets;
mod params;

pub use instances::{ForEach, Kinds, Matches, glob_matches};

/// An invariant, ready to be run.
#[derive(Clone, Debug)]
pub struct CompiledInvariant {
    /// Its name.
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
    /// Named values, each after those that it uses.
    pub lets: Vec<(Str, Expr)>,
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

/// One clause.
#[derive(Clone, Debug)]
pub struct Clause {
    /// What must be true.
    pub expression: Expr,
    /// What to say when it is not: an expression.
    pub message: Option<Expr>,
    /// What to say when it is not: a text.
    pub text: Option<Str>,
    /// The source of `expression`.
    pub source: Str,
}

impl CompiledInvariant {
    /// The environment of its expressions for an instance: states, variable, named values, parameters, request (a map;
    /// null when there is none) and time (nanoseconds since 1970; `None` when unknown).
    pub fn env<'a>(&'a self, worlds: Worlds<'a>, instance: &Arc<Object>, request: &Val, time: Option<i128>) -> Env<'a> {
        let mut env = Env::new(worlds);
        env.bind(&self.for_each.var, Ok(Value::Object(instance.clone())));
        env.bind("params", Ok(Value::from(&self.params)));
        if !request.is_null() {
            env.bind("request", Ok(Value::from(request)));
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

    /// All expressions.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let clauses = self.require.iter().flat_map(|c| std::iter::once(&c.expression).chain(&c.message));
        self.lets.iter().map(|(_, e)| e).chain(clauses).chain(&self.degree).chain(&self.for_each.where_)
    }
}

/// The parts that an invariant and a template share.
struct Source<'s> {
    origin: &'s Origin,
    /// The one namespace that it may read.
    namespace: Option<Str>,
    for_each: &'s crate::spec::ForEach,
    hold: Moment,
    lets: Option<&'s BTreeMap<String, Cel>>,
    require: &'s [Requirement],
    degree: Option<&'s Cel>,
    params: BTreeMap<Str, Type>,
}

/// What a source compiles to.
struct Parts {
    for_each: ForEach,
    lets: Vec<(Str, Expr)>,
    require: Vec<Clause>,
    degree: Option<Expr>,
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
            let source = Source { namespace: invariant.namespace.clone(), ..template_source(template) };
            (source, params::bind(template, &given, origin)?)
        }
        None => {
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
            let source = Source {
                origin,
                namespace: invariant.namespace.clone(),
                for_each,
                hold: spec.hold.unwrap_or_default().into(),
                lets: spec.lets.as_ref(),
                require: &spec.require,
                degree: spec.degree.as_ref(),
                params: BTreeMap::new(),
            };
            (source, Val::map(Vec::new()))
        }
    };
    let parts = compile_source(&source).map_err(|errors| match (template, errors.first(), &invariant.namespace) {
        (Some(template), Some(first), Some(_)) => {
            let message = format!("template `{}` is not for a NamespacedInvariant: {}", template.name, first.message);
            vec![SpecError::new(origin, "spec.template", message).helped("name it in an Invariant")]
        }
        _ => errors,
    })?;
    let declared = template.and_then(|t| t.spec.under.as_ref().map(|under| (under, &t.origin)));
    let faults = faults(spec.under.as_ref().map(|under| (under, origin)), declared, &source.params, &params)?;
    let defaults = template.map(|t| &t.spec);
    let mut compiled = CompiledInvariant {
        name: invariant.name.clone(),
        template: spec.template.as_deref().map(Into::into),
        namespaced: invariant.namespace.clone(),
        labels: invariant.labels.clone(),
        for_each: parts.for_each,
        hold: source.hold,
        faults,
        lets: parts.lets,
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
    collect(&mut compiled);
    Ok(compiled)
}

/// Checks that a template compiles, whatever the values of its parameters.
///
/// # Errors
/// All that is wrong with it.
pub fn check_template(template: &InvariantTemplate) -> Result<(), Vec<SpecError>> {
    let mut errors = params::check_defaults(template);
    let source = template_source(template);
    if let Err(more) = compile_source(&source) {
        errors.extend(more);
    }
    if let Some(under) = &template.spec.under {
        let scope = Scope::under().with_params(source.params.clone());
        for (field, text) in under_fields(under) {
            if let Err(error) = cel::compile(&text.0, &scope, Some(&Type::Int)) {
                errors.push(SpecError::expression(&template.origin, &format!("spec.under.{field}"), error));
            }
        }
        errors.extend(unsupported_faults(under, &template.origin));
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn template_source(template: &InvariantTemplate) -> Source<'_> {
    let spec = &template.spec;
    Source {
        origin: &template.origin,
        namespace: None,
        for_each: &spec.for_each,
        hold: spec.hold.unwrap_or_default().into(),
        lets: spec.lets.as_ref(),
        require: &spec.require,
        degree: spec.degree.as_ref(),
        params: params::types(template),
    }
}

fn excluded_beside_template(invariant: &Invariant) -> Result<(), Vec<SpecError>> {
    let spec = &invariant.spec;
    let found = [
        ("forEach", spec.for_each.is_some()),
        ("hold", spec.hold.is_some()),
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

fn compile_source(source: &Source) -> Result<Parts, Vec<SpecError>> {
    let origin = source.origin;
    let (mut for_each, var_type) = instances::for_each(source.for_each, origin)?;
    if source.namespace.is_some() && for_each.nowhere() {
        let error = SpecError::new(origin, "spec.forEach", "objects of this kind lie in no namespace");
        return Err(vec![error.helped("a NamespacedInvariant judges those of its own: write an Invariant")]);
    }
    // a scope without parameters declares none: any use of one is an error
    let global = Scope::invariant(source.hold == Moment::After).with_params(source.params.clone());
    let global = global.within(source.namespace.clone());
    let scope = global.with(&for_each.var, var_type);
    let mut errors = Vec::new();
    if let Some(text) = &source.for_each.where_ {
        for_each.where_ = keep(strict(text, &scope, &Type::Bool, origin, "spec.forEach.where"), &mut errors);
    }
    let (lets, scope) = match lets::compile(source.lets, scope, &for_each.var, origin) {
        Ok(found) => found,
        Err(more) => {
            // what uses a name that has no type would only repeat the error
            errors.extend(more);
            return Err(errors);
        }
    };
    let mut require = Vec::new();
    for (i, clause) in source.require.iter().enumerate() {
        let path = format!("spec.require[{i}]");
        let at = format!("{path}.expression");
        let Some(expression) = keep(strict(&clause.expression, &scope, &Type::Bool, origin, &at), &mut errors) else {
            continue;
        };
        let message = clause.message_expression.as_ref().and_then(|text| {
            keep(strict(text, &scope, &Type::String, origin, &format!("{path}.messageExpression")), &mut errors)
        });
        let text = clause.message.as_deref().map(Str::from);
        require.push(Clause { expression, message, text, source: clause.expression.0.as_str().into() });
    }
    let degree =
        source.degree.and_then(|text| keep(strict(text, &scope, &Type::Int, origin, "spec.degree"), &mut errors));
    if errors.is_empty() { Ok(Parts { for_each, lets, require, degree }) } else { Err(errors) }
}

fn keep<T>(result: Result<T, SpecError>, errors: &mut Vec<SpecError>) -> Option<T> {
    result.map_err(|error| errors.push(error)).ok()
}

/// Compiles an expression that must be of a type, and be known to be.
fn strict(text: &Cel, scope: &Scope, expected: &Type, origin: &Origin, path: &str) -> Result<Expr, SpecError> {
    let expr = cel::compile(&text.0, scope, Some(expected)).map_err(|e| SpecError::expression(origin, path, e))?;
    if expr.ty == *expected {
        return Ok(expr);
    }
    let message = format!("expected {expected}, found a value of unknown type");
    Err(SpecError::new(origin, path, message).helped(format!("write `{expected}(..)` around it")))
}

fn under_fields(under: &Under) -> impl Iterator<Item = (&'static str, &Cel)> {
    let fields = [("nodeFailures", under.node_failures.as_ref()), ("zoneFailures", under.zone_failures.as_ref())];
    fields.into_iter().filter_map(|(name, text)| Some((name, text?)))
}

fn unsupported_faults(under: &Under, origin: &Origin) -> Vec<SpecError> {
    let all = [
        ("evictions", under.evictions.is_some(), "evictions are judged when they are asked for, each with its budget"),
        ("scheduler", under.scheduler.is_some(), "new pods may go to any node that their hard constraints admit"),
    ];
    let error = |name: &str, help: &str| {
        let message = format!("`under.{name}` is not supported yet");
        SpecError::new(origin, &format!("spec.under.{name}"), message).helped(help)
    };
    all.iter().filter(|(_, given, _)| *given).map(|(name, _, help)| error(name, help)).collect()
}

/// How many faults are worth asking about: more nodes or zones at once than any cluster is meant to survive.
const FAULTS_MAX: i64 = 1_000;

/// The faults of an invariant: its own, field by field, else the template's, over the parameters.
fn faults(
    own: Option<(&Under, &Origin)>,
    template: Option<(&Under, &Origin)>,
    types: &BTreeMap<Str, Type>,
    params: &Val,
) -> Result<Faults, Vec<SpecError>> {
    let mut found: BTreeMap<&str, u32> = BTreeMap::new();
    let mut errors = Vec::new();
    let scope = Scope::under().with_params(types.clone());
    let mut env = Env::without_worlds();
    env.bind("params", Ok(Value::from(params)));
    for (under, origin) in template.into_iter().chain(own) {
        errors.extend(unsupported_faults(under, origin));
        for (field, text) in under_fields(under) {
            let path = format!("spec.under.{field}");
            let value = strict(text, &scope, &Type::Int, origin, &path).and_then(|expr| {
                let value = eval(&expr, &env).map_err(|e| SpecError::new(origin, &path, e.to_string()))?;
                let number =
                    value.as_int().filter(|n| (0..=FAULTS_MAX).contains(n)).and_then(|n| u32::try_from(n).ok());
                number.ok_or_else(|| {
                    SpecError::new(origin, &path, format!("`{}` is not between 0 and {FAULTS_MAX}", value.display()))
                })
            });
            if let Some(number) = keep(value, &mut errors) {
                found.insert(field, number);
            }
        }
    }
    let of = |field: &str| found.get(field).copied().unwrap_or(0);
    if errors.is_empty() { Ok(Faults { nodes: of("nodeFailures"), zones: of("zoneFailures") }) } else { Err(errors) }
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
            match (func, args.len()) {
                (Func::Objects, 3) => {
                    if let (Some(group), Some(kind)) = (text(1), text(2)) {
                        kinds.insert(Kind::new(&group, &kind));
                    }
                }
                (Func::Objects, 2) | (Func::HasObject, _) => kinds.extend(text(1).map(named)),
                (Func::InNamespace, _) => kinds.extend(text(2).map(named)),
                _ => {}
            }
        });
    }
    compiled.functions = functions;
    compiled.kinds = kinds;
}

/// A LabelSelector, when one is given.
fn selector(val: Option<&Val>) -> Option<Selector> {
    val.filter(|v| !v.is_null()).map(Selector::from_label_selector)
}
