//! Which navigation of the future state an invariant uses, and from where: the instance itself, what a function of the
//! instance gives, a list of the state, or something further away.
//!
//! Only what starts at the instance, or is one known step from it, is inverted; everything else makes every instance
//! reached by every change.

use std::collections::BTreeSet;

use suture_model::kinds::Kind;
use suture_model::value::Str;
use suture_specs::compile::CompiledInvariant;
use suture_specs::functions::Func;
use suture_specs::ir::{Comprehension, Expr, Node};
use suture_specs::value::{Value, World};

/// Which namespace a list of one namespace is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// The instance's own.
    Own,
    /// The one that the instance is.
    Named,
    /// Any other.
    Other,
}

/// Where an object that an expression speaks about comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    /// It is no object of the cluster.
    Plain,
    /// The instance, in any state.
    Instance,
    /// What this function gives for the instance, in any state.
    Via(Func),
    /// The list of a kind.
    List(Kind),
    /// The objects of a kind, by its short name.
    Named(Str),
    /// The objects of a kind in a namespace.
    Within(Str, Place),
    /// Something else.
    Far,
}

/// What an invariant reads of the future state.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    /// Functions of the instance.
    pub funcs: BTreeSet<Func>,
    /// Lists of the state.
    pub lists: BTreeSet<Kind>,
    /// Objects by the short name of their kind.
    pub named: BTreeSet<Str>,
    /// Objects of a kind in a namespace.
    pub within: BTreeSet<(Str, Place)>,
    /// Which nodes the instance's volume admits.
    pub volume_nodes: bool,
    /// Whatever changes may matter.
    pub everything: bool,
}

impl Uses {
    pub(crate) fn of(compiled: &CompiledInvariant) -> Self {
        let mut reader = Reader { uses: Self::default(), instance: &compiled.for_each.var, scope: Vec::new() };
        for (name, expr) in &compiled.lets {
            let origin = reader.origin(expr);
            reader.scope.push((name.clone(), origin));
        }
        let clauses = compiled.require.iter().map(|c| &c.expression);
        for expr in clauses.chain(&compiled.for_each.where_).chain(&compiled.degree) {
            reader.origin(expr);
        }
        reader.uses
    }

    /// Whether all of it is about the instance, and what functions of it give.
    pub(crate) fn is_near(&self) -> bool {
        let Self { funcs: _, lists, named, within, volume_nodes, everything } = self;
        lists.is_empty() && named.is_empty() && within.is_empty() && !volume_nodes && !everything
    }

    /// Whether any of it may depend on pods.
    pub(crate) fn pods(&self) -> bool {
        const OTHERS: [Func; 5] =
            [Func::Instances, Func::Volume, Func::AdmittedNodes, Func::HostClaims, Func::HostClaimants];
        let lists = !(self.lists.is_empty() && self.named.is_empty() && self.within.is_empty());
        lists || self.everything || self.funcs.iter().any(|func| !OTHERS.contains(func))
    }
}

struct Reader<'c> {
    uses: Uses,
    instance: &'c str,
    scope: Vec<(Str, Origin)>,
}

impl Reader<'_> {
    /// Notes what an expression reads, and says where its objects come from.
    fn origin(&mut self, expr: &Expr) -> Origin {
        match &expr.node {
            Node::Const(_) => Origin::Plain,
            Node::Var(name) => self.var(name),
            Node::Select { base, .. }
            | Node::HasField { base, .. }
            | Node::OptSelect { base, .. }
            | Node::Not(base) => self.part(base),
            Node::Index { base, index } | Node::OptIndex { base, index } => {
                self.origin(index);
                self.origin(base)
            }
            Node::And(a, b) | Node::Or(a, b) => {
                self.origin(a);
                self.part(b)
            }
            Node::Call { func, args } => self.call(*func, args),
            Node::Cond { cond, then, otherwise } => {
                self.origin(cond);
                let (then, otherwise) = (self.origin(then), self.origin(otherwise));
                join(then, otherwise)
            }
            Node::List(items) => items.iter().fold(Origin::Plain, |all, e| join(all, self.origin(&e.value))),
            Node::Map(entries) => entries.iter().fold(Origin::Plain, |all, e| {
                self.origin(&e.key);
                join(all, self.origin(&e.value))
            }),
            Node::Let { var, init, body } | Node::OptMap { base: init, var, body, .. } => {
                let origin = self.origin(init);
                self.scope.push((var.clone(), origin));
                let origin = self.origin(body);
                self.scope.pop();
                origin
            }
            Node::Comprehension { kind, range, vars, filter, body } => {
                let range = self.origin(range);
                self.scope.push((vars.0.clone(), range.clone()));
                self.scope.extend(vars.1.clone().map(|second| (second, range.clone())));
                if let Some(filter) = filter {
                    self.origin(filter);
                }
                let body = self.origin(body);
                self.scope.truncate(self.scope.len() - 1 - usize::from(vars.1.is_some()));
                match kind {
                    Comprehension::All | Comprehension::Exists | Comprehension::ExistsOne => Origin::Plain,
                    Comprehension::Filter => range,
                    Comprehension::Map | Comprehension::TransformMap | Comprehension::TransformMapEntry => body,
                }
            }
        }
    }

    fn var(&self, name: &str) -> Origin {
        match self.scope.iter().rev().find(|(known, _)| **known == *name) {
            Some((_, origin)) => origin.clone(),
            None if name == self.instance => Origin::Instance,
            None => Origin::Plain,
        }
    }

    /// A part that is no object: a field, or a Boolean.
    fn part(&mut self, base: &Expr) -> Origin {
        self.origin(base);
        Origin::Plain
    }

    fn call(&mut self, func: Func, args: &[Expr]) -> Origin {
        let origins: Vec<Origin> = args.iter().map(|a| self.origin(a)).collect();
        let now = args.iter().any(is_now);
        // the object or objects that the function is about: what is not a state
        let about = args.iter().zip(&origins).find(|(a, _)| !matches!(&a.node, Node::Var(name) if is_world(name)));
        let about = about.map_or(Origin::Plain, |(_, origin)| origin.clone());
        match func {
            Func::At | Func::ExistsIn | Func::LiveIn => {
                if now {
                    self.read(&about);
                }
                if func == Func::At { about } else { Origin::Plain }
            }
            Func::Selects
            | Func::Endpoints
            | Func::PodsOwnedBy
            | Func::Referrers
            | Func::OwnersIn
            | Func::WantedBy
            | Func::Parents
            | Func::Instances
            | Func::Volume
            | Func::AdmittedNodes
            | Func::UnresolvedOwners
            | Func::DisruptionsWhenSettled
            | Func::HasSelector
            | Func::WantedReplicas
            | Func::IsQuorumGroup
            | Func::HostClaims
            | Func::References => {
                match &about {
                    Origin::Instance if now => {
                        self.uses.funcs.insert(func);
                    }
                    Origin::Via(Func::Volume) if now && func == Func::AdmittedNodes => self.uses.volume_nodes = true,
                    _ if now => self.uses.everything = true,
                    _ => {}
                }
                if about == Origin::Instance { Origin::Via(func) } else { Origin::Far }
            }
            Func::ResolvesIn => self.second(func, &about, Func::References, now),
            Func::HostClaimants => self.second(func, &about, Func::HostClaims, now),
            Func::PodsMatching => {
                let place = args.get(1).map_or(Place::Other, |ns| self.place(ns));
                self.named(Origin::Within("Pod".into(), place), now)
            }
            Func::InNamespace => {
                let place = args.get(1).map_or(Place::Other, |ns| self.place(ns));
                let origin = args.get(2).and_then(text).map_or(Origin::Far, |kind| Origin::Within(kind, place));
                self.named(origin, now)
            }
            Func::Objects => {
                let origin = match args {
                    [_, kind] => text(kind).map(Origin::Named),
                    [_, group, kind] => text(group).zip(text(kind)).map(|(g, k)| Origin::List(Kind::new(&g, &k))),
                    _ => None,
                };
                self.named(origin.unwrap_or(Origin::Far), now)
            }
            Func::HasObject => {
                let origin = args.get(1).and_then(text).map_or(Origin::Far, Origin::Named);
                self.named(origin, now);
                Origin::Plain
            }
            _ if now => {
                self.uses.everything = true;
                Origin::Far
            }
            Func::PodNode => Origin::Far,
            _ => origins.into_iter().fold(Origin::Plain, join),
        }
    }

    /// A function of what `first` gives for the instance.
    fn second(&mut self, func: Func, about: &Origin, first: Func, now: bool) -> Origin {
        let known = *about == Origin::Via(first);
        if now && known {
            self.uses.funcs.insert(func);
        } else if now {
            self.uses.everything = true;
        }
        if known { Origin::Via(func) } else { Origin::Far }
    }

    fn named(&mut self, origin: Origin, now: bool) -> Origin {
        if now {
            self.read(&origin);
        }
        origin
    }

    /// Which namespace an expression names.
    fn place(&mut self, ns: &Expr) -> Place {
        let Node::Select { base, field } = &ns.node else { return Place::Other };
        let Node::Select { base, field: meta } = &base.node else { return Place::Other };
        match (self.origin(base), &**meta, &**field) {
            (Origin::Instance, "metadata", "namespace") => Place::Own,
            (Origin::Instance, "metadata", "name") => Place::Named,
            _ => Place::Other,
        }
    }

    /// Notes that objects of this origin are looked up in the future state.
    fn read(&mut self, origin: &Origin) {
        match origin {
            // the instance itself is always looked at
            Origin::Plain | Origin::Instance => {}
            Origin::Via(Func::AdmittedNodes) => {
                self.uses.lists.insert(Kind::new("", "Node"));
            }
            Origin::Via(func) => {
                self.uses.funcs.insert(*func);
            }
            Origin::List(kind) => {
                self.uses.lists.insert(kind.clone());
            }
            Origin::Named(kind) => {
                self.uses.named.insert(kind.clone());
            }
            Origin::Within(kind, place) => {
                self.uses.within.insert((kind.clone(), *place));
            }
            Origin::Far => self.uses.everything = true,
        }
    }
}

fn join(a: Origin, b: Origin) -> Origin {
    match (a, b) {
        (Origin::Plain, other) | (other, Origin::Plain) => other,
        (a, b) if a == b => a,
        _ => Origin::Far,
    }
}

fn is_world(name: &str) -> bool {
    name == World::Now.name() || name == World::Before.name()
}

fn is_now(expr: &Expr) -> bool {
    matches!(&expr.node, Node::Var(name) if &**name == World::Now.name())
}

fn text(expr: &Expr) -> Option<Str> {
    match &expr.node {
        Node::Const(Value::String(text)) => Some(text.clone()),
        _ => None,
    }
}
