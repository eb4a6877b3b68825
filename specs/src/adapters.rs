//! `ResourceAdapter`s at work: their expressions compiled once, evaluated on each custom resource.
//!
//! What an expression does not find (a field, an item, the value of an optional) is absent, as is null. Any other
//! failure goes into the facts' `errors`: about such an object nothing is decided.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use suture_model::adapter::{AdapterFacts, Adapters};
use suture_model::kinds::Kind;
use suture_model::object::{Key, Object};
use suture_model::references::Reference;
use suture_model::selector::{Selector, parse_label_selector};
use suture_model::steps;
use suture_model::value::{Str, Val};

use crate::cel::{self, Scope};
use crate::eval::{Env, eval};
use crate::ir::{Expr, Node, Type};
use crate::spec::{
    Access, AdapterReference, AdapterTarget, Cel, Listed, Origin, ResourceAdapter, ScaleTarget, SpecError,
};
use crate::value::Value;

mod defined;
mod known;
mod shipped;

pub use defined::{defined, scaled_kind};
use known::Known;
pub use shipped::{SHIPPED, shipped};

/// The shipped adapters: the same in every process, and each load of a policy asks for them.
static SHIPPED_COMPILED: LazyLock<Result<ByKind, Vec<SpecError>>> =
    LazyLock::new(|| Ok(AdapterSet::compile(shipped()?)?.adapters));

type ByKind = BTreeMap<Kind, Arc<Compiled>>;

/// What reading one custom resource may cost, in steps, whoever asks first; beyond that it decides nothing.
const READING_STEPS_MAX: u64 = 1_000_000;

/// The loaded adapters, by the kind that each is for.
#[derive(Debug, Default)]
pub struct AdapterSet {
    adapters: ByKind,
    /// The shipped ones among them, as they were written.
    shipped: BTreeMap<Kind, &'static ResourceAdapter>,
    /// Those that definitions give.
    defined: BTreeMap<Kind, ResourceAdapter>,
    /// What they said.
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Compiled {
    assumes: Vec<Str>,
    is_unmodelled: bool,
    replicas: Option<Expr>,
    replicas_path: Option<Vec<String>>,
    selector: Option<Expr>,
    claim_selector: Option<Expr>,
    template: Option<Expr>,
    children: Option<Targets>,
    references: Option<Targets>,
    quorum: Option<Expr>,
    scale_target: Option<Targets>,
    replica_range: Option<Expr>,
    deletes_volumes: Option<Expr>,
    cascades: Option<Expr>,
}

/// Objects named by an adapter.
#[derive(Debug)]
enum Targets {
    Entries(Vec<Target>),
    Expression(Expr),
}

#[derive(Debug)]
struct Target {
    kind: Text,
    group: Option<Text>,
    name: Expr,
    namespace: Option<Expr>,
    write: bool,
    optional: Option<Expr>,
}

/// A name, or an expression that gives one.
#[derive(Debug)]
enum Text {
    Literal(Str),
    Expression(Expr),
}

impl AdapterSet {
    /// Compiles adapters, over the shipped ones: those are for the kinds for which there is no other.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub fn over_shipped<'r>(adapters: impl IntoIterator<Item = &'r ResourceAdapter>) -> Result<Self, Vec<SpecError>> {
        let mut set = Self::compile(adapters)?;
        let compiled = SHIPPED_COMPILED.as_ref().map_err(Clone::clone)?;
        for adapter in shipped()? {
            let kind = adapter.spec.for_kind();
            if !set.adapters.contains_key(&kind)
                && let Some(compiled) = compiled.get(&kind)
            {
                set.adapters.insert(kind.clone(), compiled.clone());
                set.shipped.insert(kind, adapter);
            }
        }
        Ok(set)
    }

    /// The same, with [what definitions say](defined()) of kinds for which there is no other.
    #[must_use]
    pub fn with_defined(mut self, adapters: impl IntoIterator<Item = ResourceAdapter>) -> Self {
        for adapter in adapters {
            let kind = adapter.spec.for_kind();
            // a path that is no expression says nothing
            if !self.adapters.contains_key(&kind)
                && let Ok(set) = Self::compile([&adapter])
            {
                self.adapters.extend(set.adapters);
                self.defined.insert(kind, adapter);
            }
        }
        self
    }

    /// Those that definitions gave.
    pub fn defined(&self) -> Arc<[ResourceAdapter]> {
        self.defined.values().cloned().collect()
    }

    /// The adapters of this set as they were written: these, over which it was compiled, and the shipped ones for all other
    /// kinds.
    pub fn written(&self, own: &[ResourceAdapter]) -> Arc<[ResourceAdapter]> {
        own.iter().chain(self.shipped.values().copied()).cloned().collect()
    }

    /// Compiles adapters; of two for one kind the later counts.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub fn compile<'r>(adapters: impl IntoIterator<Item = &'r ResourceAdapter>) -> Result<Self, Vec<SpecError>> {
        let mut set = Self::default();
        let mut errors = Vec::new();
        for adapter in adapters {
            let kind = adapter.spec.for_kind();
            let mut compiler = Compiler { origin: &adapter.origin, scope: Scope::adapter(), errors: Vec::new() };
            let compiled = compiler.adapter(adapter);
            errors.extend(compiler.errors);
            set.adapters.insert(kind, Arc::new(compiled));
        }
        if errors.is_empty() { Ok(set) } else { Err(errors) }
    }
}

impl Adapters for AdapterSet {
    fn facts(&self, object: &Object) -> Option<Arc<AdapterFacts>> {
        let adapter = self.adapters.get(&object.key.kind)?;
        steps::count(1);
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(facts) = known().get(object) {
            return Some(facts);
        }
        let read = || Arc::new(Reading::new(object).facts(adapter));
        let facts = steps::aside(|| steps::within(READING_STEPS_MAX, read));
        known().put(object, facts.clone());
        Some(facts)
    }

    fn kinds(&self) -> Vec<Kind> {
        self.adapters.keys().cloned().collect()
    }

    fn stated_kinds(&self) -> Vec<Kind> {
        let is_stated = |kind: &&Kind| !self.shipped.contains_key(kind) && !self.defined.contains_key(kind);
        self.adapters.keys().filter(is_stated).cloned().collect()
    }

    fn lists_children(&self, kind: &Kind) -> bool {
        self.adapters.get(kind).is_some_and(|adapter| adapter.children.is_some())
    }

    fn assumed(&self, kind: &Kind) -> Vec<Str> {
        self.adapters.get(kind).map(|adapter| adapter.assumes.clone()).unwrap_or_default()
    }

    fn is_unmodelled(&self, kind: &Kind) -> bool {
        self.adapters.get(kind).is_some_and(|adapter| adapter.is_unmodelled)
    }
}

struct Compiler<'s> {
    origin: &'s Origin,
    scope: Scope,
    errors: Vec<SpecError>,
}

impl Compiler<'_> {
    fn adapter(&mut self, adapter: &ResourceAdapter) -> Compiled {
        let spec = &adapter.spec;
        let replicas = self.optional("replicas", spec.replicas.as_ref(), &Type::Int);
        let labels = Type::map(Type::String, Type::Any);
        Compiled {
            assumes: spec.assumes.iter().map(|sentence| sentence.as_str().into()).collect(),
            is_unmodelled: spec.unmodelled,
            replicas_path: replicas.as_ref().and_then(path_of),
            replicas,
            selector: self.selector("selector", spec.selector.as_ref()),
            claim_selector: self.selector("claimSelector", spec.claim_selector.as_ref()),
            template: self.optional("template", spec.template.as_ref(), &labels),
            children: spec.children.as_ref().map(|c| self.listed("children", c, Self::target)),
            references: spec.references.as_ref().map(|r| self.listed("references", r, Self::reference)),
            quorum: self.optional("quorum", spec.quorum.as_ref(), &Type::Bool),
            scale_target: spec.scale_target.as_ref().and_then(|t| match t {
                ScaleTarget::Parts(parts) => self.target(parts, "spec.scaleTarget").map(|t| Targets::Entries(vec![t])),
                ScaleTarget::Expression(text) => self.expr(text, "spec.scaleTarget", &labels).map(Targets::Expression),
            }),
            replica_range: self.optional("replicaRange", spec.replica_range.as_ref(), &Type::list(Type::Any)),
            deletes_volumes: self.optional("deletesVolumes", spec.deletes_volumes.as_ref(), &Type::Bool),
            cascades: self.optional("cascades", spec.cascades.as_ref(), &Type::Bool),
        }
    }

    fn optional(&mut self, field: &str, text: Option<&Cel>, expected: &Type) -> Option<Expr> {
        text.and_then(|text| self.expr(text, &format!("spec.{field}"), expected))
    }

    /// Labels or a label selector, or that as a text.
    fn selector(&mut self, field: &str, text: Option<&Cel>) -> Option<Expr> {
        let expected = [Type::map(Type::String, Type::Any), Type::String];
        text.and_then(|text| self.one_of(text, &format!("spec.{field}"), &expected))
    }

    /// An expression whose type fits `expected`, as far as it is known.
    fn expr(&mut self, text: &Cel, path: &str, expected: &Type) -> Option<Expr> {
        self.one_of(text, path, std::slice::from_ref(expected))
    }

    /// An expression whose type fits one of those that are `expected`.
    fn one_of(&mut self, text: &Cel, path: &str, expected: &[Type]) -> Option<Expr> {
        // the values of a literal map are of any type here; null is absence
        let fits = |ty: &Type| *ty == Type::Null || expected.iter().any(|expected| ty.join(expected).is_some());
        let compiled =
            cel::compile(&text.0, &self.scope, None).map_err(|e| SpecError::expression(self.origin, path, e));
        let checked = compiled.and_then(|expr| {
            if fits(&expr.ty) {
                return Ok(expr);
            }
            let expected = expected.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
            Err(SpecError::new(self.origin, path, format!("expected {expected}, found {}", expr.ty)))
        });
        checked.map_err(|error| self.errors.push(error)).ok()
    }

    fn listed<T>(
        &mut self,
        field: &str,
        listed: &Listed<T>,
        one: impl Fn(&mut Self, &T, &str) -> Option<Target>,
    ) -> Targets {
        match listed {
            Listed::Entries(entries) => {
                let each = entries.iter().enumerate();
                Targets::Entries(each.filter_map(|(i, e)| one(self, e, &format!("spec.{field}[{i}]"))).collect())
            }
            Listed::Expression(text) => match self.expr(text, &format!("spec.{field}"), &Type::list(Type::Any)) {
                Some(expr) => Targets::Expression(expr),
                None => Targets::Entries(Vec::new()),
            },
        }
    }

    fn target(&mut self, target: &AdapterTarget, path: &str) -> Option<Target> {
        self.parts((&target.kind, target.group.as_deref()), &target.name, target.namespace.as_ref(), path)
    }

    fn reference(&mut self, reference: &AdapterReference, path: &str) -> Option<Target> {
        let (kind, group) = (&reference.kind, reference.group.as_deref());
        let mut target = self.parts((kind, group), &reference.name, reference.namespace.as_ref(), path)?;
        target.write = reference.access == Access::Write;
        if let Some(text) = &reference.optional {
            target.optional = Some(self.expr(text, &format!("{path}.optional"), &Type::Bool)?);
        }
        Some(target)
    }

    fn parts(
        &mut self,
        (kind, group): (&String, Option<&str>),
        name: &Cel,
        namespace: Option<&Cel>,
        path: &str,
    ) -> Option<Target> {
        Some(Target {
            kind: self.text(kind, &format!("{path}.kind"))?,
            group: match group {
                Some(group) => Some(self.text(group, &format!("{path}.group"))?),
                None => None,
            },
            name: self.expr(name, &format!("{path}.name"), &Type::String)?,
            namespace: match namespace {
                Some(namespace) => Some(self.expr(namespace, &format!("{path}.namespace"), &Type::String)?),
                None => None,
            },
            write: false,
            optional: None,
        })
    }

    /// `StatefulSet` and `snapshot.storage.k8s.io` are names, `self.spec.kind` and `'a' + 'b'` expressions.
    fn text(&mut self, text: &str, path: &str) -> Option<Text> {
        let speaks_of_self = text == "self" || text.starts_with("self.") || text.starts_with("self[");
        if !speaks_of_self && text.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c)) {
            return Some(Text::Literal(text.into()));
        }
        self.expr(&Cel(text.to_owned()), path, &Type::String).map(Text::Expression)
    }
}

/// The path of a plain field: `self.spec.replicas`.
fn path_of(expr: &Expr) -> Option<Vec<String>> {
    match &expr.node {
        Node::Var(name) if &**name == "self" => Some(Vec::new()),
        Node::Select { base, field } => {
            let mut path = path_of(base)?;
            path.push(field.to_string());
            Some(path)
        }
        _ => None,
    }
    .filter(|path| !path.is_empty() || matches!(expr.node, Node::Var(_)))
}

/// Reading one custom resource.
struct Reading<'o> {
    object: &'o Object,
    env: Env<'static>,
    errors: Vec<String>,
}

impl<'o> Reading<'o> {
    fn new(object: &'o Object) -> Self {
        let mut env = Env::without_worlds();
        // of an object that was not read in full each field fails
        let whole = match object.is_unread() {
            true => Value::Object(Arc::new(object.clone())),
            false => Value::from(&object.to_val()),
        };
        env.bind("self", Ok(whole));
        Self { object, env, errors: Vec::new() }
    }

    fn facts(mut self, adapter: &Compiled) -> AdapterFacts {
        let selector_labels = self.labels("selector", adapter.selector.as_ref());
        let claim_labels = self.labels("claimSelector", adapter.claim_selector.as_ref());
        let replicas = self.value("replicas", adapter.replicas.as_ref()).unwrap_or_default();
        let replicas = self.checked("replicas", replicas, "an integer", |v| v.as_int().is_some());
        let template = self.value("template", adapter.template.as_ref()).unwrap_or_default();
        let template = self.checked("template", template, "a map", |v| matches!(v, Val::Map(_)));
        let children = adapter.children.as_ref().and_then(|t| self.targets("children", t));
        let references = adapter.references.as_ref().and_then(|t| self.targets("references", t)).unwrap_or_default();
        let scale_target = adapter.scale_target.as_ref().and_then(|t| self.targets("scaleTarget", t));
        AdapterFacts {
            replicas: replicas.as_int(),
            replicas_path: adapter.replicas_path.clone(),
            selector: as_selector(&selector_labels),
            selector_labels: labels_of(selector_labels),
            claim_selector: as_selector(&claim_labels),
            template: (!template.is_null()).then(|| wrapped(template)),
            children: children.map(|found| found.into_iter().map(|r| r.target).collect()),
            references,
            quorum: self.flag("quorum", adapter.quorum.as_ref()),
            scale_target: scale_target.and_then(|found| found.into_iter().next()).map(|r| r.target),
            replica_range: self.range(adapter.replica_range.as_ref()),
            deletes_volumes: self.flag("deletesVolumes", adapter.deletes_volumes.as_ref()),
            cascades: self.flag("cascades", adapter.cascades.as_ref()),
            errors: self.errors,
        }
    }

    /// The value of an expression as JSON; `None` when it is absent, or failed.
    fn value(&mut self, field: &str, expr: Option<&Expr>) -> Option<Val> {
        match eval(expr?, &self.env) {
            Ok(value) => match value.to_val() {
                Some(val) => Some(val).filter(|v| !v.is_null()),
                None => {
                    self.errors.push(format!("{field}: {} is no JSON", value.type_of()));
                    None
                }
            },
            Err(error) if error.is_absence() => None,
            Err(error) => {
                self.errors.push(format!("{field}: {error}"));
                None
            }
        }
    }

    /// A map of labels or a label selector; one that is written as a text is none while it is empty.
    fn labels(&mut self, field: &str, expr: Option<&Expr>) -> Val {
        let found = self.value(field, expr).unwrap_or_default();
        let read = match &found {
            Val::Str(text) if text.is_empty() => Val::Null,
            Val::Str(text) => parse_label_selector(text).unwrap_or(found),
            _ => found,
        };
        self.checked(field, read, "a map of labels or a label selector", |v| matches!(v, Val::Map(_)))
    }

    fn checked(&mut self, field: &str, val: Val, expected: &str, fits: impl Fn(&Val) -> bool) -> Val {
        if val.is_null() || fits(&val) {
            return val;
        }
        let found = Value::from(&val);
        self.errors.push(format!("{field}: expected {expected}, found {} `{}`", found.type_of(), found.display()));
        Val::Null
    }

    fn flag(&mut self, field: &str, expr: Option<&Expr>) -> bool {
        let val = self.value(field, expr).unwrap_or_default();
        matches!(self.checked(field, val, "true or false", |v| matches!(v, Val::Bool(_))), Val::Bool(true))
    }

    /// A bound that the resource leaves out is not known: the lowest may be 0, the highest is not below it. Where it leaves
    /// out both, it scales nothing.
    fn range(&mut self, expr: Option<&Expr>) -> Option<(i64, i64)> {
        let field = "replicaRange";
        let val = match &expr?.node {
            Node::List(bounds) if bounds.iter().all(|bound| !bound.optional) => {
                Val::list(bounds.iter().map(|b| self.value(field, Some(&b.value)).unwrap_or_default()).collect())
            }
            _ => self.value(field, expr)?,
        };
        let is_bound = |v: &Val| v.is_null() || v.as_int().is_some();
        match val.items() {
            [low, high] if is_bound(low) && is_bound(high) => match (low.as_int(), high.as_int()) {
                (Some(low), Some(high)) => Some((low, high)),
                (Some(low), None) => Some((low, low.max(1))),
                (None, Some(high)) => Some((0, high)),
                (None, None) => None,
            },
            _ => {
                self.checked(field, val, "a list of two integers", |_| false);
                None
            }
        }
    }

    fn targets(&mut self, field: &str, targets: &Targets) -> Option<Vec<Reference>> {
        match targets {
            Targets::Entries(entries) => {
                let found: Vec<Option<Reference>> = entries.iter().map(|t| self.target(field, t)).collect();
                Some(found.into_iter().flatten().collect())
            }
            Targets::Expression(expr) => {
                let val = self.value(field, Some(expr))?;
                let maps: Vec<Val> = match &val {
                    Val::Map(_) => vec![val.clone()],
                    Val::List(items) => items.to_vec(),
                    _ => {
                        self.checked(field, val, "a list of maps", |_| false);
                        return None;
                    }
                };
                Some(maps.iter().filter_map(|map| self.target_of(field, map)).collect())
            }
        }
    }

    fn target(&mut self, field: &str, target: &Target) -> Option<Reference> {
        let name = self.string(&format!("{field}.name"), &target.name)?;
        let kind = self.text(&format!("{field}.kind"), &target.kind)?;
        let group = target.group.as_ref();
        let group = group.map(|group| self.text(&format!("{field}.group"), group).unwrap_or_else(|| "".into()));
        let namespace = target.namespace.as_ref().and_then(|ns| self.string(&format!("{field}.namespace"), ns));
        let key = self.key(group.as_deref(), &kind, namespace.as_deref(), &name);
        let mut reference = Reference::new(key, "its ResourceAdapter");
        reference.optional = self.flag(&format!("{field}.optional"), target.optional.as_ref());
        reference.write = target.write;
        Some(reference)
    }

    /// A target given as a map.
    fn target_of(&mut self, field: &str, map: &Val) -> Option<Reference> {
        let text = |key: &str| map.str_at(&[key]).filter(|s| !s.is_empty());
        let Some(kind) = text("kind") else {
            self.errors.push(format!("{field}: expected a map with `kind` and `name`"));
            return None;
        };
        let key = self.key(map.str_at(&["group"]).map(|s| &**s), kind, text("namespace").map(|s| &**s), text("name")?);
        let mut reference = Reference::new(key, "its ResourceAdapter");
        reference.optional = map.bool_at(&["optional"]).unwrap_or(false);
        reference.write = text("access").is_some_and(|a| &**a == "Write");
        Some(reference)
    }

    /// A string that is there and not empty.
    fn string(&mut self, field: &str, expr: &Expr) -> Option<Str> {
        let val = self.value(field, Some(expr)).unwrap_or_default();
        let val = self.checked(field, val, "a string", |v| matches!(v, Val::Str(_)));
        val.as_str().filter(|s| !s.is_empty()).cloned()
    }

    fn text(&mut self, field: &str, text: &Text) -> Option<Str> {
        match text {
            Text::Literal(text) => Some(text.clone()),
            Text::Expression(expr) => self.string(field, expr),
        }
    }

    /// The key of what is named: the group by the built-in kind where it is left out, the namespace that of the custom
    /// resource, none for cluster-scoped kinds.
    fn key(&self, group: Option<&str>, kind: &str, namespace: Option<&str>, name: &str) -> Key {
        let kind = match group {
            Some(group) => Kind::new(group, kind),
            None => Kind::builtin(kind).unwrap_or_else(|| Kind::new("", kind)),
        };
        let ns = match kind.builtin_namespaced() {
            Some(false) => "",
            _ => namespace.unwrap_or(&self.object.key.ns),
        };
        Key::new(kind.clone(), ns, name)
    }
}

/// Labels as a selector; a map with `matchLabels` or `matchExpressions` is a LabelSelector.
fn as_selector(labels: &Val) -> Option<Selector> {
    match labels {
        Val::Map(_) if is_label_selector(labels) => Some(Selector::from_label_selector(labels)),
        Val::Map(_) => Some(Selector::from_pairs(labels)),
        _ => None,
    }
}

fn is_label_selector(labels: &Val) -> bool {
    let nested = |key: &str| matches!(labels.get(key), Some(Val::Map(_) | Val::List(_)));
    nested("matchLabels") || nested("matchExpressions")
}

fn labels_of(labels: Val) -> Val {
    if is_label_selector(&labels) { labels.get("matchLabels").cloned().unwrap_or_default() } else { labels }
}

/// A bare PodSpec becomes the spec of a template.
fn wrapped(template: Val) -> Val {
    if template.get("spec").is_none() && template.get("containers").is_some() {
        return Val::object([("spec", template)]);
    }
    template
}
