//! The Secret in which replicas share the certificates that they make themselves.

use axum::http::Request;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use serde_json::json;
use tokio::runtime::Handle;

use super::api::brief;
use super::certificates::{Vault, VaultError};

/// Its name.
pub const NAME: &str = "suture-certificates";
/// The key in it.
const KEY: &str = "authority.json";

/// A Secret as vault.
pub struct SecretVault {
    client: Client,
    collection: String,
    runtime: Handle,
}

impl SecretVault {
    /// The vault in this namespace. To be made on a tokio runtime, and used from its blocking threads.
    pub fn new(client: Client, namespace: &str) -> Self {
        Self { client, collection: format!("/api/v1/namespaces/{namespace}/secrets"), runtime: Handle::current() }
    }

    /// The Secret, if it is there.
    fn read(&self) -> Result<Option<Secret>, VaultError> {
        match self.call("GET", &format!("{}/{NAME}", self.collection), None) {
            Ok(secret) => Ok(Some(secret)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(failed(&error)),
        }
    }

    fn call(&self, method: &str, path: &str, body: Option<&Secret>) -> kube::Result<Secret> {
        let body = body.map(serde_json::to_vec).transpose().map_err(kube::Error::SerdeError)?.unwrap_or_default();
        let call = Request::builder().method(method).uri(path).header("content-type", "application/json").body(body);
        self.runtime.block_on(self.client.request(call.map_err(kube::Error::HttpError)?))
    }
}

impl Vault for SecretVault {
    fn load(&self) -> Result<Option<String>, VaultError> {
        let Some(text) = self.read()?.and_then(text_of) else { return Ok(None) };
        String::from_utf8(text.0).map(Some).map_err(|_| VaultError::Failed(format!("Secret `{NAME}` holds no text")))
    }

    fn save(&self, text: &str, previous: Option<&str>) -> Result<(), VaultError> {
        let held = self.read()?;
        let known = held.clone().and_then(text_of);
        if known.as_ref().map(|text| &*text.0) != previous.map(str::as_bytes) {
            return Err(VaultError::Changed);
        }
        let data = ByteString(text.as_bytes().to_vec());
        let written = match held {
            // held to the resourceVersion that was read
            Some(mut secret) => {
                secret.data.get_or_insert_default().insert(KEY.to_owned(), data);
                self.call("PUT", &format!("{}/{NAME}", self.collection), Some(&secret))
            }
            None => {
                let secret = json!({
                    "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                    "metadata": {"name": NAME, "labels": {"app.kubernetes.io/name": "suture"}},
                });
                let mut secret: Secret =
                    serde_json::from_value(secret).map_err(|e| VaultError::Failed(e.to_string()))?;
                secret.data.get_or_insert_default().insert(KEY.to_owned(), data);
                self.call("POST", &self.collection, Some(&secret))
            }
        };
        match written {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => Err(VaultError::Changed),
            Err(error) => Err(failed(&error)),
        }
    }
}

fn text_of(secret: Secret) -> Option<ByteString> {
    secret.data?.remove(KEY)
}

fn failed(error: &kube::Error) -> VaultError {
    VaultError::Failed(format!("Secret `{NAME}`: {}", brief(error)))
}
