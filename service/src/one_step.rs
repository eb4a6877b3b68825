//! Every request of one step that a cluster allows for: an exhaustive family of small changes, each to one object as it is.
//!
//! | step | of | how many |
//! |---|---|---|
//! | delete | every object | one |
//! | evict | every pod on a node | one |
//! | scale | what has a scale | every number from 0 to one more than it wants; of more than 32 pods 0, 1, the half, one less, one more |
//! | cordon | every node that takes pods | one |
//! | number | every other integer in the spec of an object, lists and pods left out | 0, one less, one more; of a percentage 0 % and 100 % |
//! | unlabel | every label of every object | one |
//! | select | every key of the selector of a Service, a PodDisruptionBudget or a NetworkPolicy | one: another value |
//!
//! Where two numbers are answered differently, whoever asks may look between them ([`writing`]).
//!
//! What is not in it: creations, several changes at a time, other values, status, and what has been asked to go already.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use suture_model::apply::has_scale;
use suture_model::change::{Preconditions, Request, User};
use suture_model::fields::selected_labels;
use suture_model::kinds::KindTraits;
use suture_model::navigate::wanted_replicas;
use suture_model::object::Object;
use suture_model::state::State;
use suture_model::value::Val;

pub mod side;

/// Up to so many pods every number is tried.
const SCALES_ALL_MAX: i64 = 32;
/// Integers deeper in a spec are not looked for.
const DEPTH_MAX: usize = 6;
/// What a value is made that is to select something else.
const OTHER: &str = "-other";

/// What a step does. The order is that of how much it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// Takes a label from an object.
    Unlabel,
    /// Writes another number.
    Number,
    /// Lets a selector select something else.
    Select,
    /// Scales.
    Scale,
    /// Closes a node for new pods.
    Cordon,
    /// Evicts a pod.
    Evict,
    /// Deletes an object.
    Delete,
}

impl Kind {
    /// In words, after a number.
    pub fn words(self) -> &'static str {
        match self {
            Self::Unlabel => "labels taken away",
            Self::Number => "numbers changed",
            Self::Select => "selectors changed",
            Self::Scale => "scalings",
            Self::Cordon => "cordons",
            Self::Evict => "evictions",
            Self::Delete => "deletions",
        }
    }
}

/// A request of one step.
#[derive(Clone, Debug)]
pub struct Step {
    /// What it does.
    pub kind: Kind,
    /// The request.
    pub request: Request,
    /// The number that it writes, if it writes one.
    pub number: Option<Written>,
}

impl Step {
    /// By how much it changes a number; 1 for what is no number.
    pub fn by(&self) -> u64 {
        self.number.as_ref().map_or(1, |number| number.to.abs_diff(number.from))
    }
}

/// Where an object has a number that steps change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NumberAt {
    /// The scale.
    Scale,
    /// An integer at this path.
    Integer(Vec<String>),
    /// A percentage at this path.
    Percentage(Vec<String>),
}

/// A number that a step writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Which.
    pub at: NumberAt,
    /// What it is now.
    pub from: i64,
    /// What it is to be.
    pub to: i64,
}

/// How many steps of each kind there are.
pub type Covered = BTreeMap<Kind, u64>;

/// The steps that an object allows for.
pub fn steps(state: &State<'_>, object: &Object, user: &User) -> Vec<Step> {
    if object.terminating() || object.is_unread() {
        return Vec::new();
    }
    let mut steps = Steps { state, object, val: object.to_val(), user, found: Vec::new() };
    steps.labels();
    steps.selectors();
    if object.key.kind.is("Pod") {
        steps.evict();
    } else {
        steps.scales();
        steps.numbers();
    }
    steps.cordon();
    steps.delete();
    steps.found
}

/// The step that writes this number; none where that is no request.
pub fn writing(state: &State<'_>, object: &Object, user: &User, number: Written) -> Option<Step> {
    let mut steps = Steps { state, object, val: object.to_val(), user, found: Vec::new() };
    steps.number(number);
    steps.found.pop()
}

struct Steps<'s, 'a> {
    state: &'s State<'a>,
    object: &'s Object,
    val: Val,
    user: &'s User,
    found: Vec<Step>,
}

impl Steps<'_, '_> {
    fn add(&mut self, kind: Kind, request: Request) {
        self.found.push(Step { kind, request, number: None });
    }

    /// Adds an update that writes the object so. What is none is passed over.
    fn write(&mut self, kind: Kind, val: &Val) {
        if let Ok(request) = Request::update(self.user.clone(), self.state, val, "") {
            self.add(kind, request);
        }
    }

    /// Adds a request that writes a number. What is none is passed over.
    fn number(&mut self, number: Written) {
        let Written { at, to, .. } = &number;
        let update = |path: &[String], val: Val| {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            Request::update(self.user.clone(), self.state, &self.val.with_at(&path, val), "").ok()
        };
        let (kind, request) = match at {
            NumberAt::Scale => {
                (Kind::Scale, Some(Request::scale(self.user.clone(), self.state, self.object.key.clone(), *to)))
            }
            NumberAt::Integer(path) => (Kind::Number, update(path, Val::Int(*to))),
            NumberAt::Percentage(path) => (Kind::Number, update(path, Val::str(format!("{to}%")))),
        };
        if let Some(request) = request {
            self.found.push(Step { kind, request, number: Some(number) });
        }
    }

    fn delete(&mut self) {
        let key = self.object.key.clone();
        let request = Request::delete(self.user.clone(), self.state, key, None, Preconditions::default());
        self.add(Kind::Delete, request);
    }

    fn evict(&mut self) {
        if !self.object.node.is_empty() {
            let request = Request::evict(self.user.clone(), self.object.key.clone());
            self.add(Kind::Evict, request);
        }
    }

    fn scales(&mut self) {
        if !has_scale(self.state, self.object) {
            return;
        }
        let from = wanted_replicas(self.state, self.object).unwrap_or(1);
        let mut to: Vec<i64> = match from {
            ..=SCALES_ALL_MAX => (0..=from.saturating_add(1)).collect(),
            _ => vec![0, 1, from / 2, from - 1, from.saturating_add(1)],
        };
        to.retain(|to| *to != from);
        for to in to {
            self.number(Written { at: NumberAt::Scale, from, to });
        }
    }

    fn cordon(&mut self) {
        let path = ["spec", "unschedulable"];
        if self.object.key.kind.is("Node") && self.val.bool_at(&path) != Some(true) {
            let val = self.val.with_at(&path, Val::Bool(true));
            self.write(Kind::Cordon, &val);
        }
    }

    fn labels(&mut self) {
        let labels: Vec<String> = self.object.labels().entries().map(|(key, _)| key.to_string()).collect();
        for label in labels {
            let val = self.val.without_at(&["metadata", "labels", &label]);
            self.write(Kind::Unlabel, &val);
        }
    }

    /// An update may change the selector of what makes no pods (`pkg/apis/{core,policy,networking}/validation`).
    fn selectors(&mut self) {
        if !self.object.key.kind.has(KindTraits::only_selects_pods) {
            return;
        }
        let path = selected_labels(self.object);
        let Some(selector) = self.val.at(path).cloned() else { return };
        for (key, value) in selector.entries() {
            let Some(value) = value.as_str() else { continue };
            let val = self.val.with_at(&[path, &[&**key][..]].concat(), Val::str(format!("{value}{OTHER}")));
            self.write(Kind::Select, &val);
        }
    }

    fn numbers(&mut self) {
        let Some(spec) = self.val.get("spec").cloned() else { return };
        let mut found = Vec::new();
        boundaries(&spec, &mut vec!["spec".to_owned()], &mut found);
        // that is what scalings are for
        let scales = has_scale(self.state, self.object);
        let is_scale = |number: &Written| match &number.at {
            NumberAt::Integer(path) => path.iter().map(String::as_str).eq(["spec", "replicas"]),
            NumberAt::Scale | NumberAt::Percentage(_) => false,
        };
        for number in found.into_iter().filter(|number| !(scales && is_scale(number))) {
            self.number(number);
        }
    }
}

/// The numbers in a value, each with others that may stand in its place.
fn boundaries(val: &Val, path: &mut Vec<String>, found: &mut Vec<Written>) {
    match val {
        Val::Map(map) if path.len() < DEPTH_MAX => {
            for (key, value) in map.iter() {
                path.push(key.to_string());
                boundaries(value, path, found);
                path.pop();
            }
        }
        Val::Int(from) => {
            let mut to = vec![0, from.saturating_sub(1), from.saturating_add(1)];
            to.retain(|to| *to >= 0 && to != from);
            to.dedup();
            let at = NumberAt::Integer(path.clone());
            found.extend(to.into_iter().map(|to| Written { at: at.clone(), from: *from, to }));
        }
        Val::Str(text) => {
            let Some(from) = text.strip_suffix('%').and_then(|number| number.parse::<i64>().ok()) else { return };
            let at = NumberAt::Percentage(path.clone());
            let ends = [0, 100].into_iter().filter(|to| *to != from);
            found.extend(ends.map(|to| Written { at: at.clone(), from, to }));
        }
        Val::Map(_) | Val::List(_) | Val::Null | Val::Bool(_) | Val::Float(_) => {}
    }
}

#[cfg(test)]
mod tests;
