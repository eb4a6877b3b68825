//! Reports of a cluster, asked for through its API server: the reader needs to reach nothing else, and is who his kubeconfig
//! says that he is.
//!
//! The API server proxies to a Service for whoever may `get` the resource `services/proxy` there. It takes the header
//! `Authorization` from what it proxies (`k8s.io/apiserver/pkg/endpoints/filters/authentication.go`), so that his token goes
//! in a second header beside it, which Suture takes in its place. It is put there behind everything that may find a token:
//! plugins, files, and what renews them.

use std::path::PathBuf;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue, Request, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, Limited};
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body as Sent, ConfigExt};
use kube::{Client, Config};
use serde_json::Value as Json;
use tokio::time::timeout;
use tower::{BoxError, ServiceBuilder};

use crate::serve::api::brief;
use crate::serve::reports::api::FORWARDED;

/// How long the cluster has for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// A page is smaller.
const ANSWER_MAX: usize = 64 << 20;
/// What of an answer is passed on beside its text.
const PASSED: [HeaderName; 4] = [CONTENT_TYPE, CACHE_CONTROL, CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS];
/// The policy of what has none.
const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";

/// What to do where Suture does not know who asks.
const NO_TOKEN: &str = "Suture does not know you: the kubeconfig has no token that the cluster knows. A client certificate does not \
    pass through the API server. Give a token: kubectl create token ACCOUNT -n NAMESPACE > FILE, and --token-file FILE";

/// The Service that has the reports.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub service: String,
    /// The name or the number of its port.
    pub port: String,
}

impl Place {
    /// As the API server's path and a role name it.
    fn resource(&self) -> String {
        format!("https:{}:{}", self.service, self.port)
    }
}

/// Asks through an API server.
#[derive(Clone)]
pub struct Proxied {
    client: Client,
    place: Place,
}

/// What came back: from Suture, or from the API server before it was reached.
struct Answer {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    text: Vec<u8>,
}

impl Proxied {
    /// Asks as a kubeconfig says, with its token, or with that of a file, which is read each time.
    ///
    /// # Errors
    /// When the kubeconfig cannot be used.
    pub fn new(config: &Config, place: Place, token_file: Option<PathBuf>) -> kube::Result<Self> {
        // what the client itself refuses, such as a proxy that it does not speak, is not passed over
        drop(Client::try_from(config.clone())?);
        let https = config.rustls_https_connector()?;
        let http: legacy::Client<_, Sent> = legacy::Client::builder(TokioExecutor::new()).build(https);
        let with_token = move |mut request: Request<Sent>| {
            let token = match &token_file {
                Some(file) => of_file(file),
                None => request.headers().get(AUTHORIZATION).filter(|header| is_token(header)).cloned(),
            };
            if let Some(token) = token {
                request.headers_mut().insert(FORWARDED, token);
            }
            request
        };
        let service = ServiceBuilder::new()
            .layer(config.base_uri_layer())
            .option_layer(config.auth_layer()?)
            .layer(config.extra_headers_layer()?)
            .map_request(with_token)
            .map_err(BoxError::from)
            .service(http);
        Ok(Self { client: Client::new(service, config.default_namespace.clone()), place })
    }

    /// Looks whether it will be answered.
    ///
    /// # Errors
    /// Why not, and what to do about it.
    pub async fn check(&self) -> Result<(), String> {
        let Answer { status, text, .. } = self.ask("/reports?limit=1").await?;
        let json = serde_json::from_slice::<Json>(&text).unwrap_or_default();
        match (status.is_success(), self.advice(status, &json)) {
            (true, _) => Ok(()),
            (false, Some(advice)) => Err(advice),
            (false, None) => Err(format!("{status}: {}", said(&json, &text))),
        }
    }

    async fn ask(&self, path: &str) -> Result<Answer, String> {
        let Place { namespace, .. } = &self.place;
        let uri = format!("/api/v1/namespaces/{namespace}/services/{}/proxy{path}", self.place.resource());
        let request = Request::get(uri).body(Sent::empty()).map_err(|error| error.to_string())?;
        let late = |_| format!("no answer within {} s", PATIENCE.as_secs());
        let asked = timeout(PATIENCE, self.client.send(request)).await.map_err(late)?;
        let (parts, body) = asked.map_err(|error| brief(&error))?.into_parts();
        let text = timeout(PATIENCE, Limited::new(body, ANSWER_MAX).collect()).await.map_err(late)?;
        let text = text.map_err(|error| error.to_string())?.to_bytes().to_vec();
        let header = |name: HeaderName| parts.headers.get(&name).cloned().map(|value| (name, value));
        let mut headers: Vec<(HeaderName, HeaderValue)> = PASSED.into_iter().filter_map(header).collect();
        if !parts.headers.contains_key(CONTENT_SECURITY_POLICY) {
            headers.push((CONTENT_SECURITY_POLICY, HeaderValue::from_static(NOTHING)));
        }
        Ok(Answer { status: parts.status, headers, text })
    }

    /// What to do about an answer of the API server (`Status`), or about Suture not knowing who asks.
    fn advice(&self, status: StatusCode, json: &Json) -> Option<String> {
        let Place { namespace, service, .. } = &self.place;
        let resource = self.place.resource();
        let is_of_api_server = json.get("kind").and_then(Json::as_str) == Some("Status");
        let what = match (status, is_of_api_server) {
            (StatusCode::UNAUTHORIZED, false) => return Some(NO_TOKEN.to_owned()),
            (StatusCode::FORBIDDEN, true) => format!(
                "an administrator lets you: kubectl create role suture-reports -n {namespace} --verb get \
                 --resource services/proxy --resource-name {resource}, and a rolebinding of it"
            ),
            (StatusCode::NOT_FOUND, true) => {
                format!(
                    "is {service} the Service of `suture serve --reports-listen`, in {namespace}? --service, --namespace"
                )
            }
            (StatusCode::SERVICE_UNAVAILABLE, true) => "is a replica of Suture ready?".to_owned(),
            (_, true) => String::new(),
            (_, false) => return None,
        };
        let message = json.get("message").and_then(Json::as_str).unwrap_or_default();
        Some(format!("{message}; {what}").trim_end_matches([';', ' ']).to_owned())
    }
}

/// Whether a header has a token; a password is for the API server alone.
fn is_token(header: &HeaderValue) -> bool {
    header.to_str().is_ok_and(|text| text.starts_with("Bearer "))
}

/// The token of a file, as the header has it; none where there is none.
fn of_file(file: &PathBuf) -> Option<HeaderValue> {
    let token = std::fs::read_to_string(file).ok()?;
    let mut header = HeaderValue::from_str(&format!("Bearer {}", token.trim())).ok()?;
    header.set_sensitive(true);
    Some(header)
}

/// What an answer says that is no page.
fn said(json: &Json, text: &[u8]) -> String {
    match json.get("error").and_then(Json::as_str) {
        Some(error) => error.to_owned(),
        None => String::from_utf8_lossy(text).chars().take(200).collect(),
    }
}

/// The routes: everything is asked for there.
pub fn router(proxied: Proxied) -> Router {
    Router::new().fallback(forward).with_state(proxied)
}

async fn forward(State(proxied): State<Proxied>, uri: Uri) -> Response {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let Answer { status, headers, text } = match proxied.ask(path).await {
        Ok(answer) => answer,
        Err(why) => return refused(StatusCode::BAD_GATEWAY, &format!("the cluster cannot be asked: {why}")),
    };
    if !status.is_success()
        && let Some(advice) = proxied.advice(status, &serde_json::from_slice(&text).unwrap_or_default())
    {
        return refused(status, &advice);
    }
    let mut response = (status, Body::from(text)).into_response();
    response.headers_mut().extend(headers);
    response
}

/// A refusal that is no page of Suture's.
fn refused(status: StatusCode, why: &str) -> Response {
    let headers = [(CONTENT_TYPE, "text/plain; charset=utf-8"), (CONTENT_SECURITY_POLICY, NOTHING)];
    (status, headers, crate::output::visible(why)).into_response()
}

#[cfg(test)]
mod tests;
