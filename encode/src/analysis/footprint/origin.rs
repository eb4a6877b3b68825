//! Where the objects come from that a call speaks about, and what it reads of the future.

use std::collections::BTreeSet;

use suture_model::kinds::{Kind, KindTraits};
use suture_model::value::Str;
use suture_specs::eval::eval;
use suture_specs::functions::Func;
use suture_specs::ir::{Expr, Node};
use suture_specs::value::{Value, World};

use super::{FieldOf, Part, Walk, holds_objects, join};
use crate::analysis::guards::Guard;
use crate::analysis::uses::{Origin, Place};
use crate::relations::{Beside, Inverse, KindArgument, Lift, Relations, Source, WORKLOAD, relations};

impl<'e> Walk<'e> {
    /// Notes whether a question about places is also one about nodes that are lost.
    pub(super) fn losses(&mut self, row: Relations, args: &[Expr]) {
        if row.inverse == Inverse::Room {
            let losses = args.get(3).and_then(|losses| eval(losses, &self.env).ok());
            self.uses.lost_nodes |= !matches!(losses, Some(Value::Int(0)));
        }
    }

    /// Notes what a function reads of the future, and says where the objects come from that it gives.
    pub(super) fn origin(&mut self, func: Func, row: Relations, args: &[Expr], parts: &[Part<'e>]) -> Origin {
        let now = args.iter().any(Expr::is_now);
        // the object or objects that the function is about: what is no state
        let about = args.iter().zip(parts).find(|(a, _)| !matches!(&a.node, Node::Var(name) if World::is_name(name)));
        let about = about.map_or(Origin::Plain, |(_, part)| part.origin.clone());
        self.losses(row, args);
        match row.source {
            Source::Itself => self.listed(about, now),
            Source::Presence => {
                self.listed(about, now);
                Origin::Plain
            }
            Source::Object => self.related(func, row, about, now),
            Source::After(first) => match about == Origin::Via(first) {
                true if now => {
                    self.uses.function(func);
                    Origin::Via(func)
                }
                true => Origin::Via(func),
                false => {
                    self.uses.everything |= now;
                    Origin::Far
                }
            },
            Source::InNamespace(kind) => self.in_namespace(func, (row, kind), args, parts),
            Source::OfKind => {
                let named: Option<Vec<Str>> = args.iter().skip(1).map(|arg| self.named(Some(arg))).collect();
                let origin = match named.as_deref() {
                    Some([kind]) => Origin::Named(kind.clone()),
                    Some([group, kind]) => Origin::List(Kind::new(group, kind)),
                    _ => Origin::Far,
                };
                self.listed(origin, now)
            }
            Source::Beside(kinds) => {
                let kinds = names(kinds);
                match &about {
                    // who it is of is found from what changes, if that is in a namespace
                    Origin::Instance if row.inverse != Inverse::Lists => {
                        if now {
                            self.uses.function(func);
                        }
                        let global: Vec<Str> = kinds.into_iter().filter(|kind| is_global(kind)).collect();
                        self.beside(&about, global, now);
                    }
                    _ => self.beside(&about, kinds, now),
                }
                Origin::Plain
            }
            Source::Lookup => {
                let kind = self.named(args.get(1));
                self.listed(kind.map_or(Origin::Far, Origin::Named), now);
                Origin::Plain
            }
            Source::Arguments | Source::Node if now => {
                self.uses.everything = true;
                Origin::Far
            }
            Source::Node => Origin::Far,
            Source::Arguments => join(parts),
        }
    }

    /// [`Self::origin`] of a function of the objects of a kind in a namespace.
    fn in_namespace(
        &mut self,
        func: Func,
        (row, kind): (Relations, KindArgument),
        args: &[Expr],
        parts: &[Part<'e>],
    ) -> Origin {
        let now = args.iter().any(Expr::is_now);
        let kind = match kind {
            KindArgument::Is(kind) => Some(kind.into()),
            KindArgument::At(at) => self.named(args.get(at)),
        };
        let places = match self.is_confined {
            true => [Place::Own].into(),
            false => parts.get(1).map(|part| part.places.clone()).unwrap_or_default(),
        };
        let selecting = parts.get(2).and_then(|part| selecting(part, &places)).filter(|_| now);
        if row.lift == Lift::Counted && now && !places.is_empty() {
            self.uses.counted.extend(places.iter().map(|place| (selecting.clone(), *place)));
            return Origin::Plain;
        }
        let stands = |part: &Part<'_>| part.origin == Origin::Via(Func::StandingSelector);
        if func == Func::PodsMatching && places == [Place::Own].into() && parts.get(2).is_some_and(stands) && now {
            self.uses.standing = true;
            return Origin::Plain;
        }
        if let Some(selecting) = selecting {
            self.uses.selected.extend(places.iter().map(|place| (selecting.clone(), *place)));
            return Origin::Plain;
        }
        self.listed(kind.map_or(Origin::Far, |kind| Origin::Within(kind, places)), now)
    }

    /// [`Self::origin`] of what a state relates to an object.
    fn related(&mut self, func: Func, row: Relations, about: Origin, now: bool) -> Origin {
        match &about {
            _ if row.inverse == Inverse::Nothing => {}
            Origin::Instance if now => self.uses.function(func),
            Origin::Via(first) if now && leads_to_nodes(*first, row) => {
                self.uses.volume_nodes = true;
                return Origin::Via(func);
            }
            // it is read of the object itself, which reaches the instance as one that the function gives
            Origin::Via(first) if now && leads_to_replicas(*first, func) => self.uses.function(*first),
            // the same, and of nodes for a DaemonSet: both reach the list
            Origin::Within(kind, _) if func == Func::WantedReplicas && **kind == *WORKLOAD => {
                self.listed(about.clone(), now);
                return Origin::Plain;
            }
            Origin::Within(kind, _) | Origin::Named(kind)
                if now && row.inverse == Inverse::Selecting && only_selects(kind) =>
            {
                self.uses.selecting.insert(kind.clone());
            }
            _ => self.uses.everything |= now,
        }
        match about {
            Origin::Instance if !now && row.inverse == Inverse::Nodes => Origin::List(Kind::new("", "Node")),
            Origin::Instance => Origin::Via(func),
            _ => Origin::Far,
        }
    }

    /// Notes that nodes are looked at that a function of the future gives: all of a node may matter then, not only which
    /// objects it admits.
    pub(super) fn look_at(&mut self, expr: &Expr, part: &Part<'_>) {
        if let Origin::Via(func) = &part.origin
            && relations(*func).inverse == Inverse::Nodes
            && holds_objects(&expr.ty)
        {
            self.uses.read(&part.origin);
        }
    }

    /// Notes that objects of these kinds are read in the namespace of an object, or in none if they are in none.
    fn beside(&mut self, about: &Origin, kinds: Vec<Str>, now: bool) {
        let places = match about {
            Origin::Instance => Some([Place::Own].into()),
            Origin::Within(_, places) => Some(places.clone()),
            _ => None,
        };
        for kind in kinds {
            let origin = match &places {
                _ if is_global(&kind) || matches!(about, Origin::Named(_)) => {
                    if now && *kind == *"PriorityClass" {
                        self.guards.entry(kind.clone()).or_default().push(Guard::Priority);
                    }
                    Origin::Named(kind)
                }
                Some(places) => Origin::Within(kind, places.clone()),
                None => Origin::Far,
            };
            self.listed(origin, now);
        }
    }

    fn listed(&mut self, origin: Origin, now: bool) -> Origin {
        if now {
            self.uses.read(&origin);
            if let Some(kind) = of_kind(&origin) {
                *self.listed.entry(kind.clone()).or_default() += 1;
            }
        }
        origin
    }

    /// Notes which items of a list of the future are read, where a macro says so.
    pub(super) fn guard(&mut self, range: &Expr, origin: &Origin, guard: Option<Guard>) {
        let Node::Call { func, args } = &range.node else { return };
        if matches!(relations(*func).source, Source::OfKind)
            && args.iter().any(Expr::is_now)
            && let (Some(kind), Some(guard)) = (of_kind(origin), guard)
        {
            self.guards.entry(kind.clone()).or_default().push(guard);
        }
    }

    /// The namespace that a field names.
    pub(super) fn place(&self, field: &FieldOf<'_>) -> Option<Place> {
        match (&field.origin, field.path.as_slice()) {
            (Origin::Instance, ["metadata", "namespace"]) => Some(Place::Own),
            (Origin::Instance, ["metadata", "name"]) if self.is_namespace => Some(Place::Named),
            (_, ["metadata", "name"]) => field.item_of.map(Place::Listed),
            _ => None,
        }
    }

    /// The kind or group that an argument names; one that is computed may be any.
    pub(super) fn named(&mut self, arg: Option<&Expr>) -> Option<Str> {
        match arg.map(|arg| &arg.node) {
            Some(Node::Const(Value::String(text))) => Some(text.clone()),
            Some(Node::Const(_)) => None,
            Some(_) | None => {
                self.notes.computed_kind = true;
                None
            }
        }
    }
}

/// The names of these kinds.
fn names(kinds: Beside) -> Vec<Str> {
    match kinds {
        Beside::Kind(name) => vec![name.into()],
        Beside::Playing(is_played) => Kind::with(is_played).map(|kind| kind.kind).collect(),
    }
}

/// Whether objects of a built-in kind are in no namespace.
fn is_global(kind: &str) -> bool {
    Kind::builtin(kind).and_then(|kind| kind.builtin_namespaced()) == Some(false)
}

/// The kind of which an origin is the list.
fn of_kind(origin: &Origin) -> Option<&Str> {
    match origin {
        Origin::List(kind) => Some(&kind.kind),
        Origin::Named(kind) => Some(kind),
        Origin::Within(kind, places) => places.is_empty().then_some(kind),
        Origin::Plain | Origin::Instance | Origin::Via(_) | Origin::Far => None,
    }
}

/// The kind of an object of these namespaces, if a part of an expression is the selector by which it means pods.
fn selecting(part: &Part<'_>, places: &BTreeSet<Place>) -> Option<Str> {
    let FieldOf { path, origin: Origin::Within(kind, of), .. } = part.field.as_ref()? else { return None };
    (only_selects(kind) && *path == ["spec", "selector"] && of == places && !places.is_empty()).then(|| kind.clone())
}

/// Whether objects of a kind select pods, and make none.
fn only_selects(kind: &str) -> bool {
    Kind::builtin(kind).is_some_and(|kind| kind.has(KindTraits::only_selects_pods))
}

/// Whether a function gives the nodes that the volume of the instance admits.
fn leads_to_nodes(first: Func, row: Relations) -> bool {
    relations(first).inverse == Inverse::Volumes && row.inverse == Inverse::Nodes
}

/// Whether a function asks how many pods an owner of the instance wants, or what the instance scales: no DaemonSet is either,
/// so that nodes do not matter.
fn leads_to_replicas(first: Func, func: Func) -> bool {
    func == Func::WantedReplicas && (relations(first).inverse == Inverse::Dependents || first == Func::Scaled)
}
