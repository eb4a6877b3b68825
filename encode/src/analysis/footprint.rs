//! What an invariant reads, found by the only walk over its expressions that looks at no object: everything else that is
//! said of an invariant before a cluster is known asks its [`Footprint`].
//!
//! | of an expression | means |
//! |---|---|
//! | origin | where the objects come from that it speaks about |
//! | blind | it tells no objects apart that differ in name, uid, times and node only |
//! | present | it reads nothing of the instance but its kind, whether it is there, and whom it names; of what that refers to, whether it is there; of its owners anything |

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suture_model::object::Object;
use suture_model::state::State;
use suture_model::value::Str;
use suture_specs::compile::CompiledInvariant;
use suture_specs::eval::{Env, eval};
use suture_specs::functions::{Class, Func};
use suture_specs::ir::{Comprehension, Expr, Node, Type};
use suture_specs::value::Value;

use super::annotations::Annotations;
use super::guards::{Guard, asks_for_any_node, is_free, restricts_nodes};
use super::namespaces::{asks_for_namespace, has_namespaces_only};
use super::reads::{Notes, Reads};
use super::uses::{Origin, Place, Uses};
use crate::relations::{AnnotationUse, Detail, Inverse, Source, Tells, relations};

mod origin;

/// What an invariant reads, whatever the cluster.
#[derive(Clone, Debug)]
pub struct Footprint {
    /// All that it reads, in any state.
    pub reads: Reads,
    /// What it reads of the future, which is what a request can change.
    pub future: Reads,
    /// What it reads of the future beside the instance itself.
    pub(crate) beside_instance: Reads,
    /// The annotations that its verdict may depend on.
    pub annotations: Annotations,
    /// Whether it tells no objects apart that differ in name, uid, times and node only.
    pub blind_to_identity: bool,
    /// Whether the same is true of what it says when it fails, whichever of its clauses do.
    pub blind_message: bool,
    /// Whether it reads nothing but who is there.
    pub reads_presence_only: bool,
    /// Whether it reads the uid of a request, or the time: it may then tell a request from its repetition.
    pub reads_request: bool,
    /// Whether it reads on which nodes pods are.
    pub reads_places: bool,
    /// Which navigation of the future state it uses.
    pub(crate) uses: Uses,
    /// The `let`s that nothing but Namespaces and the instance decide, by their places.
    pub(crate) of_namespaces: BTreeSet<usize>,
    /// Of lists of the future that are read of certain items only, by kind, which these are.
    guards: BTreeMap<Str, Vec<Guard>>,
    /// Whether nothing is read of the nodes that something admits but whether there are any.
    pub(crate) asks_for_any_node: bool,
    /// Whether it is read only where that restricts nodes.
    pub(crate) asks_if_restricted: bool,
}

impl Footprint {
    /// Of this invariant.
    pub fn of(compiled: &CompiledInvariant) -> Self {
        let mut walk = Walk::new(compiled);
        let (mut blind, mut present) = (true, true);
        for (at, (name, expr)) in compiled.lets.iter().enumerate() {
            let part = walk.bound(at, expr);
            (blind, present) = (blind && part.blind, present && part.present);
            walk.bind(name, part.origin, part.places);
            if let Some(bound) = walk.scope.last_mut() {
                (bound.place, bound.are_owners) = (Some(at), part.are_owners);
            }
        }
        let clauses = compiled.require.iter().map(|c| &c.expression);
        for expr in clauses.chain(&compiled.for_each.where_).chain(&compiled.degree) {
            let part = walk.part(expr);
            (blind, present) = (blind && part.blind, present && part.present);
        }
        // a message decides nothing: what it reads has to be known, and reaches no instance
        let uses = std::mem::take(&mut walk.uses);
        // another pod of its name may ask for other nodes
        let may_be_pod = compiled.for_each.kinds.iter().any(|kinds| kinds.may_be("Pod", &[]));
        let asks_for_any_node = !may_be_pod && walk.admitted == walk.admits_any;
        let asks_if_restricted = !may_be_pod && walk.admitted == walk.admitted_if_restricted;
        let mut guards = std::mem::take(&mut walk.guards);
        guards.retain(|kind, guards| walk.listed.get(kind) == Some(&guards.len()));
        let annotations = walk.annotations();
        let messages: Vec<bool> =
            compiled.require.iter().filter_map(|c| c.message.as_ref()).map(|m| walk.part(m).blind).collect();
        let reads = Reads::of(compiled, walk.notes);
        let future = Reads::of_future(compiled, walk.notes, &uses, &reads);
        let beside_instance = Reads::beside_instance(compiled, walk.notes, &uses, &reads);
        Self {
            reads,
            future,
            beside_instance,
            annotations,
            blind_to_identity: blind,
            blind_message: messages.iter().all(|blind| *blind),
            reads_presence_only: uses.is_near() && present,
            reads_request: walk.reads_request,
            reads_places: walk.reads_places,
            uses,
            of_namespaces: walk.of_namespaces,
            guards,
            asks_for_any_node,
            asks_if_restricted,
        }
    }

    /// Whether an object of a list of the future, as some state has it, may make a difference.
    pub(crate) fn looks_at(&self, object: &Arc<Object>, params: &Value, states: &[&State<'_>]) -> bool {
        let guards = self.guards.get(&object.key.kind.kind);
        guards.is_none_or(|guards| guards.iter().any(|guard| guard.admits(object, params, states)))
    }

    /// Whether it reads whether pods find a place beside all others that have none yet: no inverse leads from these to it.
    pub fn reads_room(&self) -> bool {
        [Inverse::Room, Inverse::Preemption].iter().any(|inverse| self.uses.inverses.contains(inverse))
    }

    /// Whether it may tell objects apart that are equal but for their names and nodes.
    pub fn tells_equals_apart(&self) -> bool {
        !self.blind_to_identity || self.reads_places
    }
}

/// What is known of a part of an expression.
struct Part<'e> {
    origin: Origin,
    blind: bool,
    present: bool,
    /// Whether it is a variable, or one in a state: an object that is found without telling objects apart.
    is_name: bool,
    /// Whether it is an owner of the instance.
    is_owner: bool,
    /// Whether it is a list of owners of the instance.
    are_owners: bool,
    /// Which field of which object it is.
    field: Option<FieldOf<'e>>,
    /// The namespaces of which it is the name: one of these; none if nothing is known.
    places: BTreeSet<Place>,
    /// The `let` that is the list of which it is an item.
    item_of: Option<usize>,
}

/// A field of an object.
struct FieldOf<'e> {
    path: Vec<&'e str>,
    /// Where the object comes from.
    origin: Origin,
    /// The `let` that is the list of which the object is an item.
    item_of: Option<usize>,
    /// Whether it is found without telling objects apart.
    is_name: bool,
    /// Whether the object is an owner of the instance: the same of all that differ in their identity only.
    is_owner: bool,
}

/// Fields of `metadata` that differ between objects which are otherwise alike.
pub(crate) const OWN_META: [&str; 4] = ["name", "uid", "creationTimestamp", "resourceVersion"];

impl FieldOf<'_> {
    /// Whether reading it tells no objects apart.
    fn is_blind(&self) -> bool {
        let told = match self.path.as_slice() {
            // the affinity of a pod may name its own node
            ["metadata" | "spec"] | ["spec", "nodeName" | "affinity", ..] => true,
            ["metadata", field, ..] => OWN_META.contains(field),
            _ => false,
        };
        self.is_owner || (!told && self.is_name)
    }
}

impl Part<'_> {
    /// Something without parts.
    fn leaf(origin: Origin) -> Self {
        let places = BTreeSet::new();
        Self {
            origin,
            blind: true,
            present: true,
            is_name: false,
            is_owner: false,
            are_owners: false,
            field: None,
            places,
            item_of: None,
        }
    }

    /// Something of these parts.
    fn of<'p>(origin: Origin, parts: impl IntoIterator<Item = &'p Self>) -> Self
    where
        Self: 'p,
    {
        let none = Self::leaf(origin);
        parts.into_iter().fold(none, |all, part| Self {
            blind: all.blind && part.blind,
            present: all.present && part.present,
            ..all
        })
    }

    /// The same, where one of the parts is no plain value.
    fn unless(self, holds_objects: bool) -> Self {
        Self { blind: self.blind && !holds_objects, present: self.present && !holds_objects, ..self }
    }
}

/// A name in scope.
struct Bound {
    name: Str,
    origin: Origin,
    is_owner: bool,
    are_owners: bool,
    places: BTreeSet<Place>,
    /// Which `let` it is.
    place: Option<usize>,
    /// The `let` that is the list of which it is an item.
    item_of: Option<usize>,
}

/// The walk, and what it has found so far.
struct Walk<'e> {
    instance: &'e str,
    /// Whether the instance is a Namespace, wherever this part is evaluated.
    is_namespace: bool,
    /// Whether every namespace that is named is that of the instance: a NamespacedInvariant names no other.
    is_confined: bool,
    env: Env<'e>,
    scope: Vec<Bound>,
    /// The `let`s that nothing but Namespaces and the instance decide.
    of_namespaces: BTreeSet<usize>,
    /// Of lists of the future, by kind, which items are read, as far as not all are; and how often one is listed.
    guards: BTreeMap<Str, Vec<Guard>>,
    listed: BTreeMap<Str, usize>,
    /// How often it is read which nodes something admits, how often whether there are any, and how often where it matters only
    /// if the instance restricts them.
    admitted: usize,
    admits_any: usize,
    admitted_if_restricted: usize,
    /// Whether what is looked at matters only if the instance restricts nodes.
    is_restricted: bool,
    uses: Uses,
    notes: Notes,
    reads_request: bool,
    reads_places: bool,
    annotations: Annotations,
    /// How often whole metadata was named, and how often no more than a field of it.
    metadata: (usize, usize),
}

impl<'e> Walk<'e> {
    fn new(compiled: &'e CompiledInvariant) -> Self {
        let mut env = Env::without_worlds();
        env.bind("params", Ok(Value::from(&compiled.params)));
        Self {
            instance: &compiled.for_each.var,
            is_namespace: has_namespaces_only(compiled),
            is_confined: compiled.namespaced.is_some(),
            env,
            scope: Vec::new(),
            of_namespaces: BTreeSet::new(),
            guards: BTreeMap::new(),
            listed: BTreeMap::new(),
            admitted: 0,
            admits_any: 0,
            admitted_if_restricted: 0,
            is_restricted: false,
            uses: Uses::default(),
            notes: Notes::default(),
            reads_request: false,
            reads_places: false,
            annotations: Annotations::Named([].into()),
            metadata: (0, 0),
        }
    }

    fn bind(&mut self, name: &Str, origin: Origin, places: BTreeSet<Place>) {
        let name = name.clone();
        let (is_owner, are_owners, place, item_of) = (false, false, None, None);
        self.scope.push(Bound { name, origin, is_owner, are_owners, places, place, item_of });
    }

    /// The value of a `let`, the `at`th.
    fn bound(&mut self, at: usize, expr: &'e Expr) -> Part<'e> {
        let others = std::mem::take(&mut self.uses);
        let part = self.part(expr);
        let own = std::mem::replace(&mut self.uses, others);
        let named = self.scope.iter().filter(|bound| expr.names(&bound.name, &BTreeSet::new()));
        let mut named = named.filter_map(|bound| bound.place);
        if own.is_of_namespaces() && named.all(|place| self.of_namespaces.contains(&place)) {
            self.of_namespaces.insert(at);
        }
        self.uses.add(own);
        part
    }

    /// The `let` that a list of Namespaces is, where nothing but Namespaces and the instance decide which these are.
    fn list_of_namespaces(&self, range: &Expr, part: &Part<'e>) -> Option<usize> {
        let Node::Var(name) = &range.node else { return None };
        let of_namespaces = match &part.origin {
            Origin::Named(kind) => **kind == *"Namespace",
            Origin::List(kind) => kind.is("Namespace"),
            _ => false,
        };
        let bound = self.scope.iter().rev().find(|bound| bound.name == *name).filter(|_| of_namespaces)?;
        bound.place.filter(|at| self.of_namespaces.contains(at))
    }

    /// Those that were read so far.
    fn annotations(&self) -> Annotations {
        let (whole, fields) = self.metadata;
        if whole == fields { self.annotations.clone() } else { Annotations::All }
    }

    fn part(&mut self, expr: &'e Expr) -> Part<'e> {
        match &expr.node {
            Node::Const(value) => {
                self.constant(value);
                Part::leaf(Origin::Plain)
            }
            Node::Var(name) => self.var(name),
            Node::Select { base, field } | Node::HasField { base, field } | Node::OptSelect { base, field } => {
                self.metadata.0 += usize::from(is_metadata(expr));
                self.select(base, field)
            }
            Node::Index { base, index } | Node::OptIndex { base, index } => {
                let (at, part) = (self.part(index), self.part(base));
                self.look_at(base, &part);
                if matches!(base.ty, Type::Object(_)) {
                    self.annotations = Annotations::All;
                }
                Part::of(part.origin.clone(), [&at, &part]).unless(of_object(&base.ty))
            }
            Node::Not(a) => Part::of(Origin::Plain, [&self.part(a)]),
            Node::And(a, b) => self.logic(a, b, restricts_nodes(a, self.instance)),
            Node::Or(a, b) => self.logic(a, b, is_free(a, self.instance)),
            Node::Call { func, args } => self.call(*func, args),
            Node::Cond { cond, then, otherwise } => self.conditional(expr, [cond, then, otherwise]),
            Node::List(items) => self.literal([], items.iter().map(|e| &e.value)),
            Node::Map(entries) => self.literal(entries.iter().map(|e| &e.key), entries.iter().map(|e| &e.value)),
            Node::Let { var, init, body } | Node::OptMap { base: init, var, body, .. } => {
                let init_part = self.part(init);
                self.bind(var, init_part.origin.clone(), init_part.places.clone());
                let body = self.part(body);
                self.scope.pop();
                Part::of(body.origin.clone(), [&init_part, &body]).unless(holds_objects(&init.ty))
            }
            Node::Comprehension { kind, range, vars, filter, body } => {
                self.comprehension(*kind, range, vars, filter.as_deref(), body)
            }
        }
    }

    /// Two parts, of which the other one matters only if the instance restricts nodes, where `restricted` says so.
    fn logic(&mut self, a: &'e Expr, b: &'e Expr, restricted: bool) -> Part<'e> {
        let of_a = self.part(a);
        let outer = self.is_restricted;
        self.is_restricted |= restricted;
        let of_b = self.part(b);
        self.is_restricted = outer;
        Part::of(Origin::Plain, [&of_a, &of_b])
    }

    fn constant(&mut self, value: &Value) {
        if matches!(value, Value::String(text) if matches!(&**text, "metadata" | "annotations")) {
            self.annotations = Annotations::All;
        }
    }

    /// A list, or a map.
    fn literal(
        &mut self,
        keys: impl IntoIterator<Item = &'e Expr>,
        values: impl IntoIterator<Item = &'e Expr> + Clone,
    ) -> Part<'e> {
        let keys: Vec<Part<'e>> = keys.into_iter().map(|key| self.part(key)).collect();
        // an object under another name is not followed
        let objects = values.clone().into_iter().any(|value| holds_objects(&value.ty));
        let found: Vec<Part<'e>> = values.clone().into_iter().map(|value| self.part(value)).collect();
        values.into_iter().zip(&found).for_each(|(value, part)| self.look_at(value, part));
        let all = Part::of(join(&found), keys.iter().chain(&found));
        Part { present: all.present && !objects, ..all }
    }

    fn var(&mut self, name: &str) -> Part<'e> {
        self.reads_request |= name == "time";
        let bound = self.scope.iter().rev().find(|bound| *bound.name == *name);
        let origin = match bound {
            Some(bound) => bound.origin.clone(),
            None if name == self.instance => Origin::Instance,
            None => Origin::Plain,
        };
        let places = bound.map_or_else(BTreeSet::new, |bound| bound.places.clone());
        let is_owner = bound.is_some_and(|bound| bound.is_owner);
        let are_owners = bound.is_some_and(|bound| bound.are_owners);
        let item_of = bound.and_then(|bound| bound.item_of);
        Part { is_name: true, is_owner, are_owners, places, item_of, ..Part::leaf(origin) }
    }

    /// One of two branches.
    fn conditional(&mut self, expr: &Expr, branches: [&'e Expr; 3]) -> Part<'e> {
        let [cond, then, otherwise] = branches;
        let cond_part = self.part(cond);
        let known = self.is_namespace;
        // another of that name may stand for something else here
        let is_itself = self.scope.iter().all(|bound| *bound.name != *self.instance);
        self.is_namespace |= is_itself && asks_for_namespace(cond, self.instance);
        let then = self.part(then);
        self.is_namespace = known;
        let otherwise = self.part(otherwise);
        let origin = then.origin.clone().join(otherwise.origin.clone());
        if origin == Origin::Far {
            [&then, &otherwise].into_iter().for_each(|part| self.look_at(expr, part));
        }
        let places = match then.places.is_empty() || otherwise.places.is_empty() {
            true => BTreeSet::new(),
            false => &then.places | &otherwise.places,
        };
        let is_empty = |expr: &Expr| matches!(&expr.node, Node::List(items) if items.is_empty());
        let [_, of_then, of_otherwise] = branches;
        let are_owners = (then.are_owners || is_empty(of_then)) && (otherwise.are_owners || is_empty(of_otherwise));
        Part { places, are_owners, ..Part::of(origin, [&cond_part, &then, &otherwise]) }
    }

    /// A field, or whether there is one.
    fn select(&mut self, base: &'e Expr, field: &'e str) -> Part<'e> {
        let part = self.part(base);
        self.reads_request |= field == "uid" && matches!(&base.ty, Type::Struct(name) if &**name == "request");
        self.metadata.1 += usize::from(is_metadata(base));
        self.notes.status |= field == "status";
        self.reads_places |= field == "nodeName";
        if field == "annotations" {
            self.annotations = Annotations::All;
        }
        let present = part.present && (!of_object(&base.ty) || field == "kind" || part.is_owner);
        let field = if of_object(&base.ty) {
            let Part { origin, item_of, is_name, is_owner, .. } = part;
            Some(FieldOf { path: vec![field], origin, item_of, is_name, is_owner })
        } else {
            part.field.map(|mut of| {
                of.path.push(field);
                of
            })
        };
        self.reads_places |= field.as_ref().is_some_and(|of| matches!(of.path.as_slice(), ["spec", "affinity"]));
        let blind = match &field {
            Some(field) => field.is_blind(),
            None => part.blind && base.ty != Type::World,
        };
        let places = field.as_ref().and_then(|field| self.place(field)).into_iter().collect();
        Part { blind, present, field, places, ..Part::leaf(Origin::Plain) }
    }

    fn comprehension(
        &mut self,
        kind: Comprehension,
        range: &'e Expr,
        vars: &'e (Str, Option<Str>),
        filter: Option<&'e Expr>,
        body: &'e Expr,
    ) -> Part<'e> {
        if matches!(range.ty, Type::Object(_)) {
            self.annotations = Annotations::All;
        }
        let of_range = self.part(range);
        let owners = of_range.are_owners;
        self.look_at(range, &of_range);
        self.guard(range, &of_range.origin, Guard::of_items(kind, vars, body));
        let item_of = self.list_of_namespaces(range, &of_range).filter(|_| vars.1.is_none());
        self.bind(&vars.0, of_range.origin.clone(), BTreeSet::new());
        if let Some(item) = self.scope.last_mut() {
            (item.is_owner, item.item_of) = (owners, item_of);
        }
        if let Some(second) = &vars.1 {
            self.bind(second, of_range.origin.clone(), BTreeSet::new());
        }
        let filter = filter.map(|filter| self.part(filter));
        let body = self.part(body);
        self.scope.truncate(self.scope.len() - 1 - usize::from(vars.1.is_some()));
        let origin = match kind {
            Comprehension::All | Comprehension::Exists | Comprehension::ExistsOne => Origin::Plain,
            Comprehension::Filter => of_range.origin.clone(),
            Comprehension::Map | Comprehension::TransformMap | Comprehension::TransformMapEntry => body.origin.clone(),
        };
        let all = Part::of(origin, [&of_range, &body].into_iter().chain(&filter));
        // an object under a name of its own is not followed, but for an owner
        let followed = (owners || !holds_objects(&range.ty)) && *vars.0 != *self.instance;
        let are_owners = owners && kind == Comprehension::Filter;
        Part { present: all.present && followed, are_owners, ..all }
    }

    // --- calls

    fn call(&mut self, func: Func, args: &'e [Expr]) -> Part<'e> {
        let parts: Vec<Part<'e>> = args.iter().map(|a| self.part(a)).collect();
        let row = relations(func);
        let asks_for_nodes = row.inverse == Inverse::Nodes && args.iter().any(Expr::is_now);
        self.admitted += usize::from(asks_for_nodes);
        self.admitted_if_restricted += usize::from(asks_for_nodes && self.is_restricted);
        self.admits_any += usize::from(asks_for_any_node(func, args));
        if row.detail != Detail::Count {
            args.iter().zip(&parts).for_each(|(arg, part)| self.look_at(arg, part));
        }
        self.reads_places |= row.tells == Tells::Nodes;
        let pure = func.class() == Class::Pure;
        let objects = args.iter().any(|a| holds_objects(&a.ty));
        match row.annotations {
            AnnotationUse::None => {}
            AnnotationUse::Key(at) => match args.get(at).and_then(|key| eval(key, &self.env).ok()) {
                Some(Value::String(key)) => self.annotations.insert(key),
                _ => self.annotations = Annotations::All,
            },
            AnnotationUse::All if objects => self.annotations = Annotations::All,
            AnnotationUse::All => {}
        }
        let origin = self.origin(func, row, args, &parts);
        let all = Part::of(origin, &parts);
        let plain = pure && (!objects || row.detail == Detail::Count);
        let found = |(a, part): (&Expr, &Part<'e>)| if of_object(&a.ty) { part.is_name } else { part.blind };
        let blind = match row.tells {
            Tells::Nothing | Tells::OwnNames | Tells::NothingSwapped => args.iter().zip(&parts).all(found),
            Tells::Nodes | Tells::Identity => plain && all.blind,
        };
        let is_of_owner = parts.first().is_some_and(|part| part.is_owner);
        let told = match row.detail {
            Detail::Presence | Detail::Names | Detail::Owners => true,
            Detail::Marks => is_of_owner || plain,
            Detail::Count | Detail::Nodes | Detail::All => plain,
        };
        let is_itself = matches!(row.source, Source::Itself);
        let of_instance = parts.first().is_some_and(|part| part.is_name && part.origin == Origin::Instance);
        Part {
            blind,
            present: told && all.present,
            is_name: is_itself && parts.iter().all(|part| part.is_name),
            is_owner: is_itself && is_of_owner,
            are_owners: row.detail == Detail::Owners && of_instance,
            ..all
        }
    }
}

fn join(parts: &[Part<'_>]) -> Origin {
    parts.iter().fold(Origin::Plain, |all, part| all.join(part.origin.clone()))
}

/// Whether an expression may be the whole metadata of an object.
fn is_metadata(expr: &Expr) -> bool {
    matches!(&expr.node, Node::Select { field, .. } | Node::OptSelect { field, .. } if &**field == "metadata")
}

fn of_object(ty: &Type) -> bool {
    match ty {
        Type::Object(_) => true,
        Type::Optional(inner) => of_object(inner),
        _ => false,
    }
}

/// Whether values of a type may be or contain objects.
pub(super) fn holds_objects(ty: &Type) -> bool {
    match ty {
        Type::Object(_) | Type::World => true,
        Type::List(inner) | Type::Optional(inner) => holds_objects(inner),
        Type::Map(_, value) => holds_objects(value),
        _ => false,
    }
}
