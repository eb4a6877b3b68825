//! Which navigation of the future state an invariant uses, and from where: the instance itself, what a function of the
//! instance gives, a list of the state, or something further away.
//!
//! Only what starts at the instance, or is one known step from it, is inverted; everything else makes every instance
//! reached by every change.

use std::collections::BTreeSet;

use suture_model::kinds::Kind;
use suture_model::value::Str;
use suture_specs::functions::Func;

use crate::relations::{Inverse, relations};

/// Which namespace a list of one namespace is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// The instance's own.
    Own,
    /// The one that the instance is: a Namespace.
    Named,
    /// Those of a list, which this `let` is: nothing but Namespaces and the instance decide which these are.
    Listed(usize),
}

/// Where an object that an expression speaks about comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
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
    /// The objects of a kind in a namespace, one of these; in any if there are none.
    Within(Str, BTreeSet<Place>),
    /// Something else.
    Far,
}

impl Origin {
    /// Of what may come from either.
    pub(super) fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Plain, other) | (other, Self::Plain) => other,
            (a, b) if a == b => a,
            _ => Self::Far,
        }
    }
}

/// What an invariant reads of the future state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uses {
    /// Functions of the instance.
    pub funcs: BTreeSet<Func>,
    /// How a change reaches the instances through them.
    pub inverses: BTreeSet<Inverse>,
    /// Lists of the state.
    pub lists: BTreeSet<Kind>,
    /// Objects by the short name of their kind.
    pub named: BTreeSet<Str>,
    /// Objects of a kind in a namespace of these.
    pub within: BTreeSet<(Str, Place)>,
    /// Pods that the selectors of objects of a kind mean, in a namespace of these.
    pub selected: BTreeSet<(Str, Place)>,
    /// How many pods workloads want in a namespace of these: those that the selectors of objects of a kind mean, or any.
    pub counted: BTreeSet<(Option<Str>, Place)>,
    /// What objects of a kind select, wherever they are.
    pub selecting: BTreeSet<Str>,
    /// The pods that the instance's selector means without what their templates do not bear, in its own namespace.
    pub standing: bool,
    /// Which nodes the instance's volume admits.
    pub volume_nodes: bool,
    /// Whether pods find a place once nodes are gone.
    pub lost_nodes: bool,
    /// Whatever changes may matter.
    pub everything: bool,
}

impl Uses {
    /// Whether all of it is about the instance, and what functions of it give.
    pub(super) fn is_near(&self) -> bool {
        let Self {
            funcs: _,
            inverses: _,
            lists,
            named,
            within,
            selected,
            counted,
            selecting,
            standing,
            volume_nodes,
            lost_nodes: _,
            everything,
        } = self;
        let none_listed = lists.is_empty() && named.is_empty() && within.is_empty() && selecting.is_empty();
        none_listed && selected.is_empty() && counted.is_empty() && !(*standing || *volume_nodes || *everything)
    }

    /// Whether any of it may depend on pods.
    pub(crate) fn pods(&self) -> bool {
        let lists = !(self.lists.is_empty() && self.named.is_empty() && self.within.is_empty());
        lists
            || !self.selected.is_empty()
            || !self.counted.is_empty()
            || !self.selecting.is_empty()
            || self.standing
            || self.everything
            || self.inverses.iter().any(|inverse| inverse.is_over_pods())
    }

    /// Whether a change matters to it only where it touches the instance, or a Namespace.
    pub(super) fn is_of_namespaces(&self) -> bool {
        let Self {
            funcs: _,
            inverses,
            lists,
            named,
            within,
            selected,
            counted,
            selecting,
            standing,
            volume_nodes,
            lost_nodes,
            everything,
        } = self;
        inverses.iter().all(|inverse| *inverse == Inverse::Itself)
            && lists.iter().all(|kind| *kind == Kind::new("", "Namespace"))
            && named.iter().all(|kind| **kind == *"Namespace")
            && within.is_empty()
            && selected.is_empty()
            && counted.is_empty()
            && selecting.is_empty()
            && !(*standing || *volume_nodes || *lost_nodes || *everything)
    }

    /// Adds what another expression uses.
    pub(super) fn add(&mut self, other: Self) {
        let Self {
            funcs,
            inverses,
            lists,
            named,
            within,
            selected,
            counted,
            selecting,
            standing,
            volume_nodes,
            lost_nodes,
            everything,
        } = other;
        self.funcs.extend(funcs);
        self.inverses.extend(inverses);
        self.lists.extend(lists);
        self.named.extend(named);
        self.within.extend(within);
        self.selecting.extend(selecting);
        self.standing |= standing;
        self.selected.extend(selected);
        self.counted.extend(counted);
        self.volume_nodes |= volume_nodes;
        self.lost_nodes |= lost_nodes;
        self.everything |= everything;
    }

    /// Adds a function of the instance, or of what one gives.
    pub(super) fn function(&mut self, func: Func) {
        self.funcs.insert(func);
        let inverse = relations(func).inverse;
        self.everything |= inverse == Inverse::Everything;
        self.inverses.insert(inverse);
    }

    /// Notes that objects of this origin are looked up in the future state.
    pub(super) fn read(&mut self, origin: &Origin) {
        match origin {
            // the instance itself is always looked at
            Origin::Plain | Origin::Instance => {}
            Origin::Via(func) => match relations(*func).inverse {
                Inverse::Nodes => drop(self.lists.insert(Kind::new("", "Node"))),
                _ => self.function(*func),
            },
            Origin::List(kind) => drop(self.lists.insert(kind.clone())),
            Origin::Named(kind) => drop(self.named.insert(kind.clone())),
            Origin::Within(kind, places) if places.is_empty() => drop(self.named.insert(kind.clone())),
            Origin::Within(kind, places) => self.within.extend(places.iter().map(|place| (kind.clone(), *place))),
            Origin::Far => self.everything = true,
        }
    }
}
