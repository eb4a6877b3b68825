//! Calls to the API server as JSON, and its errors in one line.

use axum::http::Request;
use kube::Client;
use serde_json::Value;

/// Sends a call; a PATCH is a merge patch.
pub async fn send(client: &Client, method: &str, path: &str, body: Option<Value>) -> kube::Result<Value> {
    let content = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    send_as(client, method, path, content, body).await
}

/// Makes an object what this says of it, whoever else says something of the same fields.
pub async fn apply(client: &Client, path: &str, object: Value) -> kube::Result<()> {
    let path = format!("{path}?fieldManager=suture&force=true");
    send_as(client, "PATCH", &path, "application/apply-patch+yaml", Some(object)).await.map(drop)
}

async fn send_as(client: &Client, method: &str, path: &str, content: &str, body: Option<Value>) -> kube::Result<Value> {
    let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let request = Request::builder().method(method).uri(path).header("content-type", content).body(body);
    client.request(request.map_err(kube::Error::HttpError)?).await
}

/// An error of the client in one short line.
pub fn brief(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}
