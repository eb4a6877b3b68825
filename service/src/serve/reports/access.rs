//! Who reads reports, and of which namespaces: the API server says both.
//!
//! A reader shows a token, by which a TokenReview knows him. He sees the reports of a namespace if he may `get` the resource
//! `reports` of `suture.dev` there, which exists for this question only; who may in all namespaces sees all.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use futures::{StreamExt, stream};
use kube::Client;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::serve::api::{brief, send};
use crate::serve::resources::GROUP;

/// Of more namespaces none is asked about: they are hidden.
const NAMESPACES_MAX: usize = 500;
/// So many questions are asked at a time.
const AT_ONCE: usize = 8;
/// The resource that is asked about.
pub const RESOURCE: &str = "reports";

/// Who somebody is (`k8s.io/api/authentication/v1`, `UserInfo`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Reader {
    username: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

/// Who says who somebody is, and what he may.
#[async_trait]
pub trait Authority: Send + Sync {
    /// Who shows a token; none if nobody is known by it.
    async fn known(&self, token: &str) -> Result<Option<Reader>, String>;

    /// Whether he may read the reports of a namespace; of all where that is empty.
    async fn may_read(&self, reader: &Reader, namespace: &str) -> Result<bool, String>;
}

/// The API server.
pub struct ApiServer(pub Client);

#[async_trait]
impl Authority for ApiServer {
    async fn known(&self, token: &str) -> Result<Option<Reader>, String> {
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token},
        });
        let path = "/apis/authentication.k8s.io/v1/tokenreviews";
        let mut answer = send(&self.0, "POST", path, Some(review)).await.map_err(|error| brief(&error))?;
        let status = answer.get_mut("status").map(Json::take).unwrap_or_default();
        if status.get("authenticated") != Some(&Json::Bool(true)) {
            return Ok(None);
        }
        let user = status.get("user").cloned().unwrap_or_default();
        serde_json::from_value(user).map(Some).map_err(|error| error.to_string())
    }

    async fn may_read(&self, reader: &Reader, namespace: &str) -> Result<bool, String> {
        let Reader { username, uid, groups, extra } = reader;
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {
                "user": username, "uid": uid, "groups": groups, "extra": extra,
                "resourceAttributes": {"verb": "get", "group": GROUP, "resource": RESOURCE, "namespace": namespace},
            },
        });
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let answer = send(&self.0, "POST", path, Some(review)).await.map_err(|error| brief(&error))?;
        Ok(answer.pointer("/status/allowed") == Some(&Json::Bool(true)))
    }
}

/// Says that whoever asks may read everything: he who may read the folder itself.
pub struct Owner;

#[async_trait]
impl Authority for Owner {
    async fn known(&self, _: &str) -> Result<Option<Reader>, String> {
        Ok(Some(Reader::default()))
    }

    async fn may_read(&self, _: &Reader, _: &str) -> Result<bool, String> {
        Ok(true)
    }
}

/// The namespaces that somebody may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readable {
    /// All of them, and what is in none.
    All,
    /// These, and nothing that is in none.
    These(BTreeSet<String>),
}

impl Readable {
    /// Those of some namespaces that he may read.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub async fn of(authority: &dyn Authority, reader: &Reader, namespaces: BTreeSet<String>) -> Result<Self, String> {
        if authority.may_read(reader, "").await? {
            return Ok(Self::All);
        }
        let asked = namespaces.into_iter().filter(|namespace| !namespace.is_empty()).take(NAMESPACES_MAX);
        let asked = stream::iter(asked.map(|namespace| async move {
            let may = authority.may_read(reader, &namespace).await?;
            Ok::<_, String>(may.then_some(namespace))
        }));
        let answers: Vec<Result<Option<String>, String>> = asked.buffer_unordered(AT_ONCE).collect().await;
        Ok(Self::These(answers.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect()))
    }

    /// Whether it is one of them; the empty one is for what is in none.
    pub fn has(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::These(these) => these.contains(namespace),
        }
    }
}
