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

/// A selector that is written as a text, such as `app=web,tier in (a, b),!old`, as a `LabelSelector`; none if it is no such
/// text (`apimachinery/pkg/labels/selector.go`, `Parse`).
pub fn parse_label_selector(text: &str) -> Option<Val> {
    let (mut requirements, mut rest) = (Vec::new(), text.trim());
    while !rest.is_empty() {
        // the values of a set are between brackets, with commas of their own
        let comma = rest.find(',').unwrap_or(rest.len());
        let end = match rest.find('(').filter(|open| *open < comma) {
            Some(_) => rest.find(')')? + 1,
            None => comma,
        };
        let (one, more) = rest.split_at(end);
        requirements.push(parsed(one.trim())?);
        rest = match more.trim_start() {
            "" => "",
            more => Some(more.strip_prefix(',')?.trim_start()).filter(|next| !next.is_empty())?,
        };
    }
    Some(Val::object([("matchExpressions", Val::list(requirements))]))
}

/// One requirement of a text, as an item of `matchExpressions`.
fn parsed(text: &str) -> Option<Val> {
    let (key, operator, values): (&str, &str, Vec<&str>) = if let Some(set) = text.strip_suffix(')') {
        let (head, values) = set.split_once('(')?;
        let (key, word) = head.trim_end().rsplit_once(char::is_whitespace)?;
        let operator = match word {
            "in" => "In",
            "notin" => "NotIn",
            _ => return None,
        };
        (key, operator, values.split(',').collect())
    } else if let Some(key) = text.strip_prefix('!') {
        (key, "DoesNotExist", Vec::new())
    } else {
        let signs = [("!=", "NotIn"), ("==", "In"), ("=", "In"), (">", "Gt"), ("<", "Lt")];
        let found = signs.iter().find_map(|(sign, operator)| Some((text.split_once(sign)?, *operator)));
        found.map_or((text, "Exists", Vec::new()), |((key, value), operator)| (key, operator, vec![value]))
    };
    let is_name = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    let (key, values) = (key.trim(), values.into_iter().map(str::trim).collect::<Vec<_>>());
    if key.is_empty() || !is_name(key) || !values.iter().all(|value| is_name(value)) {
        return None;
    }
    let values = values.into_iter().map(Val::str).collect();
    Some(Val::object([("key", Val::str(key)), ("operator", Val::str(operator)), ("values", Val::list(values))]))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_selects_as_kubectl_reads_it() {
        let web = Val::object([("app", Val::str("web")), ("tier", Val::str("a")), ("size", Val::str("3"))]);
        for (text, matches) in [
            ("", true),
            ("app=web", true),
            ("app==web,tier!=b", true),
            ("app = web , tier in (a, b)", true),
            ("tier notin (a,b),app=web", false),
            ("tier in (b,c)", false),
            ("missing notin (b)", true),
            ("app,!missing", true),
            ("!app", false),
            ("size>2,size<4", true),
            ("size>3", false),
            ("example.com/app=web", false),
        ] {
            let selector = parse_label_selector(text).unwrap_or_else(|| unreachable!("{text} is a selector"));
            assert_eq!(Selector::from_label_selector(&selector).matches(&web), matches, "{text}");
        }
        for text in
            ["app=web,", ",app", "tier in a,b", "tier is (a)", "tier in (a", "=web", "a b=c", "app=we b", "app=a=b"]
        {
            assert_eq!(parse_label_selector(text), None, "{text}");
        }
    }
}
