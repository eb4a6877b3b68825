//! Events of Kubernetes, as `kubectl describe` and `kubectl get events` show them.

use kube::Client;
use serde_json::{Value as Json, json};

use super::api;
use crate::clock::Clock;

/// The namespace of events about what is in none (`client-go/tools/reference`, `record.EventRecorder`).
const OF_CLUSTER: &str = "default";

/// What happened to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The object: apiVersion, kind, namespace and name, as far as they are known.
    pub regarding: Json,
    /// Whether somebody should look.
    pub warns: bool,
    /// In one word of Kubernetes' style.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

impl Event {
    /// Writes it. What cannot be written is logged, and not tried again.
    pub async fn write(&self, client: &Client) {
        let namespace = self.regarding.get("namespace").and_then(Json::as_str).unwrap_or(OF_CLUSTER);
        let path = format!("/api/v1/namespaces/{namespace}/events");
        if let Err(error) = api::send(client, "POST", &path, Some(self.object(namespace, Clock::now()))).await {
            tracing::warn!(why = api::brief(&error), reason = self.reason, "an event cannot be written");
        }
    }

    fn object(&self, namespace: &str, now: Clock) -> Json {
        let (kind, time) = (if self.warns { "Warning" } else { "Normal" }, now.to_string());
        json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"generateName": "suture-", "namespace": namespace},
            "involvedObject": self.regarding,
            "type": kind, "reason": self.reason, "message": self.message, "source": {"component": "suture"},
            "firstTimestamp": time, "lastTimestamp": time, "count": 1,
        })
    }
}
