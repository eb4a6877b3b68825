//! A client of the API server for requests in number: one connection that is kept, no discovery, no process for each.

use std::path::Path;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::cluster::Cluster;
use crate::error::Error;

/// Far longer than a webhook may take; what takes longer is stuck.
const ANSWER_MAX: Duration = Duration::from_secs(70);

/// One user's connection. Blocks; each thread has one of its own.
pub struct Api {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    runtime: Runtime,
    server: String,
    authorization: String,
    /// Headers that say for whom it asks.
    impersonation: Vec<(&'static str, String)>,
}

/// What the API server answered.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The HTTP status.
    pub code: u16,
    /// The object, list or `Status`.
    pub body: Value,
}

impl Reply {
    /// Whether it did what was asked for.
    pub fn done(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// Why not, or nothing.
    pub fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

impl Api {
    /// Connects as a user of the cluster.
    pub fn new(cluster: &Cluster, user: &str) -> Result<Self, Error> {
        Ok(Self {
            client: client(&cluster.certificate())?,
            runtime: Builder::new_current_thread().enable_all().build().map_err(Error::io("runtime"))?,
            server: cluster.server(),
            authorization: format!("Bearer {}", cluster.token(user)?),
            impersonation: Vec::new(),
        })
    }

    /// Asks for somebody else from now on, which only administrators may.
    pub fn impersonate(&mut self, user: &str, groups: &[&str]) {
        self.impersonation = vec![("impersonate-user", user.to_owned())];
        self.impersonation.extend(groups.iter().map(|group| ("impersonate-group", (*group).to_owned())));
    }

    /// Sends a request and waits for the answer. Being refused is an answer, no answer is an error.
    pub fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Reply, Error> {
        let content = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        self.send(method, path, content, body.map(Value::to_string).unwrap_or_default())
    }

    /// The same for any content type, such as that of a server-side apply.
    pub fn send(&self, method: &str, path: &str, content: &str, body: String) -> Result<Reply, Error> {
        let what = || format!("{method} {path}");
        let failed = |error: &dyn std::error::Error| {
            let mut text = error.to_string();
            let mut source = error.source();
            while let Some(inner) = source {
                text = format!("{text}: {inner}");
                source = inner.source();
            }
            Error::Call { what: what(), reason: text }
        };
        let request = Request::builder()
            .method(Method::from_bytes(method.as_bytes()).map_err(|error| failed(&error))?)
            .uri(format!("{}{path}", self.server))
            .header("authorization", &self.authorization)
            .header("content-type", content)
            .header("accept", "application/json");
        let request = self.impersonation.iter().fold(request, |request, (name, value)| request.header(*name, value));
        let request = request
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| failed(&error))?;
        self.runtime.block_on(async {
            let answer = async {
                let answer = self.client.request(request).await.map_err(|error| failed(&error))?;
                let code = answer.status().as_u16();
                let bytes = answer.into_body().collect().await.map_err(|error| failed(&error))?.to_bytes();
                // an overloaded server answers in plain text
                let body = serde_json::from_slice(&bytes)
                    .unwrap_or_else(|_| json!({"message": String::from_utf8_lossy(&bytes)}));
                Ok(Reply { code, body })
            };
            let late = |_| Error::Call { what: what(), reason: format!("no answer within {ANSWER_MAX:?}") };
            timeout(ANSWER_MAX, answer).await.map_err(late)?
        })
    }

    /// Reads an object or a list; must succeed.
    pub fn get(&self, path: &str) -> Result<Value, Error> {
        self.must("GET", path, None)
    }

    /// Creates an object; must succeed.
    pub fn create(&self, collection: &str, object: &Value) -> Result<Value, Error> {
        self.must("POST", collection, Some(object))
    }

    fn must(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Error> {
        let reply = self.call(method, path, body)?;
        if reply.done() {
            return Ok(reply.body);
        }
        Err(Error::Call { what: format!("{method} {path}"), reason: format!("{} {}", reply.code, reply.message()) })
    }
}

fn client(authority: &Path) -> Result<Client<HttpsConnector<HttpConnector>, Full<Bytes>>, Error> {
    let unusable = |reason: String| Error::Call { what: authority.display().to_string(), reason };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(authority).map_err(|error| unusable(error.to_string()))? {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
    }
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| unusable(error.to_string()))?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    tcp.enforce_http(false);
    let connector =
        HttpsConnectorBuilder::new().with_tls_config(config).https_only().enable_http1().wrap_connector(tcp);
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}
