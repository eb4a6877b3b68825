//! `OperatorGrant` and `Exemption`, and the subjects they and invariants name.

use schemars::JsonSchema;
use serde::Deserialize;
use suture_model::change::User;
use suture_model::value::Val;

use super::invariant::Action;
use super::scalar::{KindRef, LabelSelectorForm};
use super::subject::Subject;
use crate::time::parse_timestamp;

/// What binds one operator.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OperatorGrantSpec {
    /// Whom it binds.
    pub subjects: Vec<Subject>,
    /// Where they may write; writes outside are denied.
    pub scope: Option<Scope>,
    /// Which invariants bind them; default all.
    pub invariants: Option<GrantInvariants>,
    /// Budgets over time.
    #[serde(default)]
    pub budgets: Vec<Budget>,
    /// Whether they may confirm deletions, by the annotation `suture.dev/confirm-delete`; default false.
    #[serde(default)]
    pub confirm: bool,
    /// What becomes of a write outside; default Deny.
    #[serde(default)]
    pub action: Action,
}

/// Where an operator may write; each part optional, all that are given must hold.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scope {
    /// Namespaces: globs.
    pub namespaces: Option<Vec<String>>,
    /// Kinds.
    pub kinds: Option<Vec<GroupKind>>,
    /// It updates and deletes only what one of these, same namespace, controls.
    pub owners: Option<Vec<GroupKind>>,
}

/// A kind in a group.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GroupKind {
    /// The API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// The kind.
    pub kind: String,
}

/// Which invariants bind an operator.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GrantInvariants {
    /// A label selector of invariants.
    #[schemars(with = "Option<LabelSelectorForm>")]
    pub selector: Option<Val>,
}

/// At most `max` requests of a verb on a kind, or at most `percent` of a group disrupted, within a window.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Budget {
    /// The verb that is counted.
    pub verb: Option<String>,
    /// The kind that is counted.
    pub kind: Option<KindRef>,
    /// How many.
    pub max: Option<u32>,
    /// The kind whose disruptions are counted.
    pub disrupt: Option<KindRef>,
    /// How many of a hundred.
    pub percent: Option<u32>,
    /// The window, `1h`.
    pub window: String,
}

/// A broken glass: instances of an invariant that somebody may break for a time.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExemptionSpec {
    /// The name of the invariant; of a NamespacedInvariant `namespace/name`.
    pub invariant: String,
    /// The names of the instances, `Kind/namespace/name`; without any, none.
    #[serde(default)]
    pub instances: Vec<String>,
    /// Who is exempt; without any, nobody.
    #[serde(default)]
    pub subjects: Vec<Subject>,
    /// When it ends, RFC 3339.
    pub expires: String,
    /// Why.
    pub reason: String,
}

impl ExemptionSpec {
    /// Whether it lets all of these users break an instance of an invariant at this time, in nanoseconds since 1970.
    pub fn lifts<'u>(
        &self,
        invariant: &str,
        instance: &str,
        now: i128,
        mut users: impl Iterator<Item = &'u User>,
    ) -> bool {
        *self.invariant == *invariant
            && self.instances.iter().any(|name| name == instance)
            && parse_timestamp(&self.expires).is_ok_and(|end| now < end)
            && users.all(|user| self.subjects.iter().any(|subject| subject.covers(user)))
    }
}
