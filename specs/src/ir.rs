//! The typed intermediate representation of an expression: what CEL source is lowered to, and what both the concrete
//! evaluator and the symbolic one run. It has no syntax left: macros are nodes, `after` is `now`, kinds are resolved.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use suture_model::value::Str;

use crate::functions::Func;
pub use crate::types::{Span, Type};
use crate::value::{Value, World};

/// A typed expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it is.
    pub node: Node,
    /// Its type, as the strict type checker found it.
    pub ty: Type,
    /// Where it stands in the source.
    pub span: Span,
    /// The variables that it does not bind itself, once somebody has asked.
    free: OnceLock<Arc<[Str]>>,
}

/// The forms of an expression.
#[derive(Clone, Debug)]
pub enum Node {
    /// A literal, or a constant such as the name of a type.
    Const(Value),
    /// A variable; `now` also for the source's `after`.
    Var(Str),
    /// `base.field`. When `base` is optional, so is the result, and it is empty if the field is missing.
    Select {
        /// The object, struct, map or optional.
        base: Box<Expr>,
        /// The field.
        field: Str,
    },
    /// `has(base.field)`.
    HasField {
        /// The object, struct or map.
        base: Box<Expr>,
        /// The field.
        field: Str,
    },
    /// `base.?field`: an optional.
    OptSelect {
        /// The object, struct, map or optional.
        base: Box<Expr>,
        /// The field.
        field: Str,
    },
    /// `base[index]`. When `base` is optional, so is the result.
    Index {
        /// The list, map or optional.
        base: Box<Expr>,
        /// The position or key.
        index: Box<Expr>,
    },
    /// `base[?index]`: an optional.
    OptIndex {
        /// The list, map or optional.
        base: Box<Expr>,
        /// The position or key.
        index: Box<Expr>,
    },
    /// An operator, a function or a method; the receiver is the first argument. All arguments are evaluated.
    Call {
        /// Which function.
        func: Func,
        /// The arguments.
        args: Vec<Expr>,
    },
    /// `!a`.
    Not(Box<Expr>),
    /// `a && b`: false if either is false, even when the other fails.
    And(Box<Expr>, Box<Expr>),
    /// `a || b`: true if either is true, even when the other fails.
    Or(Box<Expr>, Box<Expr>),
    /// `cond ? then : otherwise`: only one branch is evaluated.
    Cond {
        /// The condition.
        cond: Box<Expr>,
        /// When it is true.
        then: Box<Expr>,
        /// When it is false.
        otherwise: Box<Expr>,
    },
    /// A list literal.
    List(Vec<Element>),
    /// A map literal.
    Map(Vec<Entry>),
    /// `cel.bind(var, init, body)`.
    Let {
        /// The name bound.
        var: Str,
        /// Its value.
        init: Box<Expr>,
        /// Where it is in scope.
        body: Box<Expr>,
    },
    /// `base.optMap(var, body)`, or with `flat` `base.optFlatMap(var, body)`.
    OptMap {
        /// The optional.
        base: Box<Expr>,
        /// The name of its value.
        var: Str,
        /// What becomes of the value.
        body: Box<Expr>,
        /// Whether `body` is an optional itself.
        flat: bool,
    },
    /// A macro over the items of a list or the keys of a map.
    Comprehension {
        /// Which macro.
        kind: Comprehension,
        /// The list or map.
        range: Box<Expr>,
        /// The names of the item (or key); in the two-variable form of index and item, or key and value.
        vars: (Str, Option<Str>),
        /// Which items count: the middle argument of `map(x, filter, body)` and of the transformations.
        filter: Option<Box<Expr>>,
        /// The predicate or the new value.
        body: Box<Expr>,
    },
}

/// An element of a list literal.
#[derive(Clone, Debug)]
pub struct Element {
    /// The value, an optional if `optional`.
    pub value: Expr,
    /// `[?value]`: left out when the optional is empty.
    pub optional: bool,
}

/// An entry of a map literal.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: Expr,
    /// The value, an optional if `optional`.
    pub value: Expr,
    /// `{?key: value}`: left out when the optional is empty.
    pub optional: bool,
}

/// What a comprehension computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Comprehension {
    /// Whether the body holds of all items; one false decides, even when others fail.
    All,
    /// Whether the body holds of an item; one true decides, even when others fail.
    Exists,
    /// Whether the body holds of exactly one item; fails if the body does on any.
    ExistsOne,
    /// The list of the items (or keys) of which the body holds.
    Filter,
    /// The list of the body's values; also `transformList`.
    Map,
    /// The map from each key (or index) to the body's value: `transformMap`.
    TransformMap,
    /// The map of the entries of the body's one-entry maps: `transformMapEntry`.
    TransformMapEntry,
}

impl Expr {
    /// An expression of this form and type, found there in the source.
    pub fn new(node: Node, ty: Type, span: Span) -> Self {
        Self { node, ty, span, free: OnceLock::new() }
    }

    /// Puts another form in the place of this one's, of the same type.
    pub fn replace(&mut self, node: Node) {
        self.node = node;
        self.free = OnceLock::new();
    }

    /// The variables that it names and does not bind itself, in the order in which they are evaluated first.
    pub fn free(&self) -> &[Str] {
        self.free.get_or_init(|| {
            let mut found = Vec::new();
            self.find_free(&mut found);
            found.into()
        })
    }

    fn find_free(&self, found: &mut Vec<Str>) {
        let mut add = |part: &Self, bound: &[&Str]| {
            for name in part.free() {
                if !bound.contains(&name) && !found.contains(name) {
                    found.push(name.clone());
                }
            }
        };
        match &self.node {
            Node::Var(name) => found.push(name.clone()),
            Node::Let { var, init, body } | Node::OptMap { base: init, var, body, .. } => {
                add(init, &[]);
                add(body, &[var]);
            }
            Node::Comprehension { range, vars: (first, second), filter, body, .. } => {
                let bound: Vec<&Str> = [first].into_iter().chain(second).collect();
                add(range, &[]);
                add(body, &bound);
                filter.iter().for_each(|filter| add(filter, &bound));
            }
            _ => self.for_each_part(&mut |part| add(part, &[])),
        }
    }

    /// Calls `visit` on this expression and all its parts, outermost first.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Self)) {
        visit(self);
        self.for_each_part(&mut |part| part.walk(visit));
    }

    /// Whether it is the future state.
    pub fn is_now(&self) -> bool {
        matches!(&self.node, Node::Var(name) if **name == *World::Now.name())
    }

    /// Whether this name, or one of these, is one of its [free](Self::free) variables.
    pub fn names(&self, name: &str, others: &BTreeSet<Str>) -> bool {
        self.free().iter().any(|named| **named == *name || others.contains(named))
    }

    /// Calls `visit` on the parts of this expression, in their order.
    pub fn for_each_part<'a>(&'a self, visit: &mut dyn FnMut(&'a Self)) {
        match &self.node {
            Node::Const(_) | Node::Var(_) => {}
            Node::Select { base, .. } | Node::HasField { base, .. } | Node::OptSelect { base, .. } => visit(base),
            Node::Index { base, index } | Node::OptIndex { base, index } => {
                visit(base);
                visit(index);
            }
            Node::Call { args, .. } => args.iter().for_each(visit),
            Node::Not(a) => visit(a),
            Node::And(a, b) | Node::Or(a, b) => {
                visit(a);
                visit(b);
            }
            Node::Cond { cond, then, otherwise } => {
                visit(cond);
                visit(then);
                visit(otherwise);
            }
            Node::List(items) => items.iter().for_each(|e| visit(&e.value)),
            Node::Map(entries) => {
                for e in entries {
                    visit(&e.key);
                    visit(&e.value);
                }
            }
            Node::Let { init, body, .. } => {
                visit(init);
                visit(body);
            }
            Node::OptMap { base, body, .. } => {
                visit(base);
                visit(body);
            }
            Node::Comprehension { range, filter, body, .. } => {
                visit(range);
                if let Some(filter) = filter {
                    visit(filter);
                }
                visit(body);
            }
        }
    }

    /// Gives the variable of one name another one, which nothing in it binds.
    pub fn rename(&mut self, from: &str, to: &str) {
        match &mut self.node {
            Node::Var(name) if **name == *from => self.replace(Node::Var(to.into())),
            _ => self.for_each_part_mut(&mut |part| part.rename(from, to)),
        }
    }

    /// Calls `visit` on the parts of this expression, in their order, to change them.
    pub fn for_each_part_mut(&mut self, visit: &mut dyn FnMut(&mut Self)) {
        self.free = OnceLock::new();
        match &mut self.node {
            Node::Const(_) | Node::Var(_) => {}
            Node::Select { base, .. } | Node::HasField { base, .. } | Node::OptSelect { base, .. } => visit(base),
            Node::Index { base, index } | Node::OptIndex { base, index } => {
                visit(base);
                visit(index);
            }
            Node::Call { args, .. } => args.iter_mut().for_each(visit),
            Node::Not(a) => visit(a),
            Node::And(a, b) | Node::Or(a, b) => {
                visit(a);
                visit(b);
            }
            Node::Cond { cond, then, otherwise } => {
                visit(cond);
                visit(then);
                visit(otherwise);
            }
            Node::List(items) => items.iter_mut().for_each(|e| visit(&mut e.value)),
            Node::Map(entries) => {
                for e in entries {
                    visit(&mut e.key);
                    visit(&mut e.value);
                }
            }
            Node::Let { init, body, .. } => {
                visit(init);
                visit(body);
            }
            Node::OptMap { base, body, .. } => {
                visit(base);
                visit(body);
            }
            Node::Comprehension { range, filter, body, .. } => {
                visit(range);
                if let Some(filter) = filter {
                    visit(filter);
                }
                visit(body);
            }
        }
    }
}
