//! What the status of an OperatorGrant keeps of what its subjects took away: `status.spent`.

use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use suture_model::value::Val;

use super::decode::decode;
use super::{OperatorGrant, Origin, SpecError};

/// What one admitted change took away.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SpentEntry {
    /// When it was admitted, RFC 3339.
    pub at: String,
    /// The uids of its requests: the same of the same requests counts once.
    #[serde(default)]
    pub requests: Vec<String>,
    /// The objects that it deletes, as far as a budget counts them.
    #[serde(default)]
    pub taken: Vec<TakenObject>,
    /// The workloads that want fewer pods by it.
    #[serde(default)]
    pub scaled: Vec<ScaledWorkload>,
}

/// One object that is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TakenObject {
    /// Which object.
    pub object: ObjectName,
    /// Its uid, which tells it from a later one of the same name.
    pub uid: String,
    /// The workload that it belongs to, if it is a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<ObjectName>,
}

/// Pods that go since a workload wants fewer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScaledWorkload {
    /// The workload.
    pub workload: ObjectName,
    /// How many.
    pub pods: u64,
}

/// The name of an object of any kind.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectName {
    /// The API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace; empty for what is in none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// What the status of a grant says was spent, oldest first.
///
/// # Errors
/// What is wrong with it.
pub fn spent_of(grant: &OperatorGrant) -> Result<Vec<SpentEntry>, Vec<SpecError>> {
    spent_in(&grant.status, &grant.origin)
}

/// The same of a status that was read there.
///
/// # Errors
/// What is wrong with it.
pub fn spent_in(status: &Val, origin: &Origin) -> Result<Vec<SpentEntry>, Vec<SpecError>> {
    status.get("spent").map_or_else(|| Ok(Vec::new()), |spent| decode(spent, "status.spent", origin))
}

/// The JSON schema of `status.spent`.
pub fn spent_schema() -> serde_json::Value {
    schema_for!(Vec<SpentEntry>).to_value()
}
