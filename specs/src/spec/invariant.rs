//! `Invariant`, `NamespacedInvariant` and `InvariantTemplate`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use suture_model::futures::Moment;
use suture_model::value::Val;

use super::scalar::{Cel, KindRef, LabelSelectorForm};
use super::subject::Subject;

/// What must hold: expressions of its own, or a template with parameters.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InvariantSpec {
    /// The name of a template of the library or the cluster, in place of `forEach`, `let`, `require`, `degree`.
    pub template: Option<String>,
    /// The template's parameters.
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub params: Option<Val>,
    /// Which objects are its instances.
    pub for_each: Option<ForEach>,
    /// Which moments it speaks about; default During. Overrides the template's.
    pub hold: Option<Hold>,
    /// The faults that it must survive; overrides the template's.
    pub under: Option<Under>,
    /// Names for values that the other expressions use; in any order.
    #[serde(rename = "let")]
    pub lets: Option<BTreeMap<String, Cel>>,
    /// What must be true; every clause.
    #[serde(default)]
    pub require: Vec<Requirement>,
    /// How badly it is broken: an integer, higher is worse.
    pub degree: Option<Cel>,
    /// Which of the instances are judged; all parts must hold.
    #[serde(rename = "match")]
    pub matches: Option<Match>,
    /// Whose requests it judges; default everybody's.
    #[serde(default)]
    pub subjects: Vec<Subject>,
    /// What becomes of a request that breaks it; default Deny.
    pub action: Option<Action>,
    /// Which violations are to blame; default NoNew.
    pub violations: Option<Violations>,
    /// What becomes of a request about which nothing can be decided; default Deny.
    pub on_undecided: Option<OnUndecided>,
}

/// An invariant with parameters, to be named by invariants.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InvariantTemplateSpec {
    /// What it says, for a person.
    pub description: String,
    /// Its parameters.
    #[serde(default)]
    pub parameters: BTreeMap<String, Parameter>,
    /// The real failures that it prevents: links, or text.
    #[serde(default)]
    pub prevents: Vec<String>,
    /// Which objects are its instances.
    pub for_each: ForEach,
    /// Which moments it speaks about; default During.
    pub hold: Option<Hold>,
    /// The faults that it must survive: integers, or expressions over `params`.
    pub under: Option<Under>,
    /// Names for values that the other expressions use; in any order.
    #[serde(rename = "let")]
    pub lets: Option<BTreeMap<String, Cel>>,
    /// What must be true; every clause.
    pub require: Vec<Requirement>,
    /// How badly it is broken: an integer, higher is worse.
    pub degree: Option<Cel>,
    /// The default of `action`.
    pub action: Option<Action>,
    /// The default of `violations`.
    pub violations: Option<Violations>,
    /// The default of `onUndecided`.
    pub on_undecided: Option<OnUndecided>,
    /// What stands for it in profiles other than `strict`, where it is one invariant with its defaults.
    #[serde(default)]
    pub profiles: Profiles,
}

/// Which invariants stand for the shipped templates, where nobody names their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Profile {
    /// Those whose refusal is nearly always a real mistake, as each template says under `profiles.baseline`.
    Baseline,
    /// One for each template, with its defaults.
    Strict,
}

/// The invariants that stand for a template in a profile: none, one, or several with names of their own.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Profiles {
    /// In `baseline`; default one with the template's defaults.
    pub baseline: Option<Vec<ProfileInvariant>>,
}

/// An invariant of a profile: it names its template.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProfileInvariant {
    /// Its name; default the template's.
    pub name: Option<String>,
    /// The template's parameters.
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub params: Option<Val>,
    /// Which moments it speaks about; overrides the template's.
    pub hold: Option<Hold>,
    /// The faults that it must survive; overrides the template's.
    pub under: Option<Under>,
    /// Which of the instances are judged; all parts must hold.
    #[serde(rename = "match")]
    pub matches: Option<Match>,
    /// What becomes of a request that breaks it; overrides the template's.
    pub action: Option<Action>,
}

/// A parameter of a template.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Parameter {
    /// Its type.
    #[serde(rename = "type")]
    pub ty: ParamType,
    /// Its value where none is given; without a default it must be given.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "serde_json::Value")]
    pub default: Option<Val>,
    /// What it means.
    #[serde(default)]
    pub description: String,
}

/// A default of null is one.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Val>, D::Error> {
    Val::deserialize(deserializer).map(Some)
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ParamType {
    /// An integer.
    Int,
    /// A number.
    Double,
    /// A Boolean.
    Bool,
    /// A string.
    String,
    /// An integer or a percentage such as `50%`.
    IntOrPercent,
    /// A list.
    List,
    /// A map.
    Map,
    /// A Kubernetes LabelSelector.
    LabelSelector,
    /// Any value.
    Any,
}

/// Which objects are the instances of an invariant.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForEach {
    /// The variable that the expressions call the object.
    pub var: String,
    /// The kind; `*` for every kind, `Workload` for whatever runs pods, `Adapted` for what a ResourceAdapter is for.
    pub kind: Option<KindRef>,
    /// The API group of `kind`, where the short form is ambiguous.
    pub api_group: Option<String>,
    /// The kinds, where there are several.
    #[serde(default)]
    pub kinds: Vec<KindRef>,
    /// A label selector.
    #[schemars(with = "Option<LabelSelectorForm>")]
    pub selector: Option<Val>,
    /// Which of these objects: a Boolean over the variable, `before` and `now`.
    #[serde(rename = "where")]
    pub where_: Option<Cel>,
}

/// Which moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Hold {
    /// Every intermediate state of the change and of what it sets going.
    #[default]
    During,
    /// The change and what it takes along, while no controller of pods does anything yet: no rollout, no scaling, no
    /// replacement. What a batch deletes in a row goes together.
    AtOnce,
    /// Settled states only.
    After,
}

impl From<Hold> for Moment {
    fn from(hold: Hold) -> Self {
        match hold {
            Hold::During => Self::During,
            Hold::AtOnce => Self::AtOnce,
            Hold::After => Self::After,
        }
    }
}

/// The faults that an invariant must survive, integers or expressions over `params`, and what it may assume.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Under {
    /// How many nodes may fail together.
    pub node_failures: Option<Cel>,
    /// How many zones may fail together.
    pub zone_failures: Option<Cel>,
    /// Whether pods whose controller's kind is not modelled are taken to be made anew when they are gone; default false.
    pub remade: Option<bool>,
    /// How many pods somebody may evict beside the change, as far as their budgets allow it.
    pub evictions: Option<Cel>,
    /// Where the scheduler may put new pods: `Any` node that their hard constraints admit, which is the default.
    pub scheduler: Option<String>,
}

/// A clause: an expression that must be true, and what to say when it is not.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Requirement {
    /// A Boolean.
    pub expression: Cel,
    /// What to say when it is false.
    pub message: Option<String>,
    /// What to say when it is false, computed: a string.
    pub message_expression: Option<Cel>,
}

/// Which instances are judged.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Match {
    /// Their namespaces: globs; default all.
    #[serde(default)]
    pub namespaces: Vec<String>,
    /// Namespaces left out: globs.
    #[serde(default)]
    pub excluded_namespaces: Vec<String>,
    /// A label selector.
    #[schemars(with = "Option<LabelSelectorForm>")]
    pub selector: Option<Val>,
}

/// What becomes of a request that breaks an invariant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema, serde::Serialize)]
pub enum Action {
    /// It is refused.
    #[default]
    Deny,
    /// It is admitted with a warning.
    Warn,
    /// It is admitted and reported.
    Audit,
}

/// Which violations are to blame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
pub enum Violations {
    /// Those that the change makes possible, or worse.
    #[default]
    NoNew,
    /// Every one that is possible after the change.
    Strict,
}

/// What becomes of a request about which nothing can be decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
pub enum OnUndecided {
    /// It is refused.
    #[default]
    Deny,
    /// It is admitted with a warning.
    Warn,
    /// It is admitted.
    Allow,
}
