//! Label selectors and node selectors, matched as Kubernetes matches them.
//!
//! Source: `apimachinery/pkg/labels/selector.go` (NotIn and DoesNotExist match a missing label) and
//! `component-helpers/scheduling/corev1/nodeaffinity` (terms are ORed, requirements within a term ANDed; an empty term
//! matches nothing).

use crate::value::{Str, Val};

// until its callers name `fields`
pub use crate::fields::node_matches;

/// One requirement on a label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirement {
    key: Str,
    op: Op,
    values: Vec<Str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Op {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    Gt,
    Lt,
}

/// A conjunction of requirements; without any it matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

impl Selector {
    /// A selector from equality pairs, as in a Service.
    pub fn from_pairs(pairs: &Val) -> Self {
        let requirements =
            pairs.entries().map(|(k, v)| Requirement { key: k.clone(), op: Op::In, values: vec![text(v)] }).collect();
        Self { requirements }
    }

    /// A `LabelSelector` with matchLabels and matchExpressions. An operator that is unknown matches nothing.
    pub fn from_label_selector(selector: &Val) -> Self {
        let mut out = Self::from_pairs(selector.get("matchLabels").unwrap_or(&Val::Null));
        out.requirements.extend(selector.items_at(&["matchExpressions"]).iter().map(requirement));
        out
    }

    /// Whether these labels (a map value) match.
    pub fn matches(&self, labels: &Val) -> bool {
        self.requirements.iter().all(|r| r.matches(labels.get(&r.key).map(text).as_ref()))
    }

    /// Whether there is no requirement.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// One pair that every match must carry, to narrow a search by an index.
    pub fn a_pair(&self) -> Option<(&Str, &Str)> {
        self.requirements.iter().find_map(|r| match (r.op, r.values.as_slice()) {
            (Op::In, [only]) => Some((&r.key, only)),
            _ => None,
        })
    }
}

/// A label's value as a text, whatever the manifest wrote.
pub(crate) fn text(v: &Val) -> Str {
    match v {
        Val::Str(s) => s.clone(),
        Val::Null => "".into(),
        Val::Bool(b) => b.to_string().into(),
        Val::Int(i) => i.to_string().into(),
        Val::Float(f) => f.to_string().into(),
        Val::List(_) | Val::Map(_) => "".into(),
    }
}

fn requirement(expression: &Val) -> Requirement {
    let key = expression.str_at(&["key"]).cloned().unwrap_or_else(|| "".into());
    let values: Vec<Str> = expression.items_at(&["values"]).iter().map(text).collect();
    let op = match expression.str_at(&["operator"]).map_or("", |s| &**s) {
        "In" => Op::In,
        "NotIn" => Op::NotIn,
        "Exists" => Op::Exists,
        "DoesNotExist" => Op::DoesNotExist,
        "Gt" => Op::Gt,
        "Lt" => Op::Lt,
        _ => return Requirement { key, op: Op::In, values: Vec::new() },
    };
    Requirement { key, op, values }
}

impl Requirement {
    fn matches(&self, value: Option<&Str>) -> bool {
        let number = |s: Option<&Str>| s.and_then(|s| s.parse::<i64>().ok());
        match self.op {
            Op::In => value.is_some_and(|v| self.values.contains(v)),
            Op::NotIn => value.is_none_or(|v| !self.values.contains(v)),
            Op::Exists => value.is_some(),
            Op::DoesNotExist => value.is_none(),
            Op::Gt => matches!((number(value), number(self.values.first())), (Some(a), Some(b)) if a > b),
            Op::Lt => matches!((number(value), number(self.values.first())), (Some(a), Some(b)) if a < b),
        }
    }
}

/// Whether a node of these labels and this name satisfies one term of a node selector.
pub(crate) fn term_matches(term: &Val, labels: &Val, name: &Str) -> bool {
    let expressions = term.items_at(&["matchExpressions"]);
    let fields = term.items_at(&["matchFields"]);
    if expressions.is_empty() && fields.is_empty() {
        return false;
    }
    expressions.iter().map(requirement).all(|r| r.matches(labels.get(&r.key).map(text).as_ref()))
        && fields.iter().map(requirement).all(|r| &*r.key == "metadata.name" && r.matches(Some(name)))
}
