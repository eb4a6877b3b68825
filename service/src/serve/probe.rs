//! Consistent reads, now and then: how far the cluster has come, against which the lag of watches is measured.

use std::time::Duration;

use kube::Client;
use kube::core::params::ListParams;
use kube::core::request::Request;
use serde::Deserialize;
use tokio::time::{sleep, timeout};

use super::api::brief;
use super::feed::Probes;
use crate::clock::now;

/// How often.
const PROBE_EVERY: Duration = Duration::from_secs(2);
/// How long one may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct Answer {
    metadata: Meta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    resource_version: String,
}

/// Reads for ever. A list of one Namespace costs the API server little, and its resourceVersion is etcd's revision.
pub async fn run(client: Client, probes: Probes) {
    loop {
        let sent = now();
        match timeout(PROBE_TIMEOUT, probe(&client)).await {
            Ok(Ok(version)) => probes.add(sent, version),
            Ok(Err(why)) => tracing::warn!(why, "how far the cluster has come cannot be read"),
            Err(_) => tracing::warn!("how far the cluster has come cannot be read in time"),
        }
        sleep(PROBE_EVERY).await;
    }
}

async fn probe(client: &Client) -> Result<u64, String> {
    let list = Request::new("/api/v1/namespaces").list(&ListParams::default().limit(1));
    let list = list.map_err(|error| error.to_string())?;
    let Answer { metadata } = client.request(list).await.map_err(|error| brief(&error))?;
    metadata.resource_version.parse().map_err(|_| "a list has no numeric resourceVersion".to_owned())
}
