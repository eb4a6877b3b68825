//! Which replicas there are: each keeps a Lease of its own alive, and reads those of the others.
//!
//! A Lease that its replica does not renew is taken away by the others, so that one that is there stands for a replica.
//! Nothing that is decided depends on it. It says whose entries a status keeps, which replica does what one has to do
//! for all: the first one by name, and where the reports of the others are.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use kube::Client;
use serde_json::{Value, json};
use tokio::sync::watch::Sender;
use tokio::time::sleep;

use super::api::{brief, send};
use super::lease::micro_time;
use crate::clock::{Clock, now};

/// The annotation of such a Lease with the address at which its replica shows reports.
const REPORTS: &str = "suture.dev/reports";
/// The label of these Leases.
const LABEL: &str = "suture.dev/replica";
/// How often a replica says that it is there, and looks who else is.
const BEAT: Duration = Duration::from_secs(5);
/// One whose Lease has not changed for so long is gone.
const GONE_AFTER: Duration = Duration::from_secs(20);

/// One replica among others.
pub struct Peer {
    client: Client,
    collection: String,
    identity: String,
    /// Where this one shows its reports, if it does.
    reports: Option<String>,
    /// What was seen last of each Lease, and since when.
    seen: BTreeMap<String, (String, Instant)>,
}

/// A Lease as it was read: its name, its replica, and its resourceVersion.
struct Found {
    name: String,
    replica: String,
    reports: Option<String>,
    version: String,
}

/// Which replicas there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct There {
    /// Their names.
    pub names: BTreeSet<String>,
    /// Where those of them show their reports that do.
    pub reports: BTreeMap<String, String>,
}

impl Peer {
    /// This replica, in the namespace of all.
    pub fn new(client: Client, namespace: &str, identity: String) -> Self {
        let collection = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
        Self { client, collection, identity, reports: None, seen: BTreeMap::new() }
    }

    /// The same, which shows its reports at an address.
    #[must_use]
    pub fn showing_reports(self, at: Option<String>) -> Self {
        Self { reports: at, ..self }
    }

    /// Keeps its Lease for ever and tells which replicas there are, itself among them.
    pub async fn run(mut self, there: Sender<There>) {
        loop {
            match self.beat().await {
                Ok(found) => {
                    there.send_if_modified(|known| std::mem::replace(known, found.clone()) != found);
                }
                Err(error) => tracing::warn!(why = brief(&error), "other replicas cannot be read"),
            }
            sleep(BEAT).await;
        }
    }

    async fn beat(&mut self) -> kube::Result<There> {
        self.renew().await?;
        let path = format!("{}?labelSelector={LABEL}", self.collection);
        let list = send(&self.client, "GET", &path, None).await?;
        let items = list.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let found: Vec<Found> = items.iter().map(Found::of).collect();
        self.seen.retain(|name, _| found.iter().any(|lease| lease.name == *name));
        let mut there = There { names: BTreeSet::from([self.identity.clone()]), reports: BTreeMap::new() };
        for Found { name, replica, reports, version } in found {
            if self.silence(&name, version) <= GONE_AFTER {
                there.reports.extend(reports.map(|at| (replica.clone(), at)));
                there.names.insert(replica);
            } else {
                // one that comes back makes another
                self.delete(&name).await?;
            }
        }
        Ok(there)
    }

    /// How long a Lease has not changed, by the clock of this replica.
    fn silence(&mut self, name: &str, version: String) -> Duration {
        let time = now();
        let since = match self.seen.get(name) {
            Some((seen, since)) if *seen == version => *since,
            _ => time,
        };
        self.seen.insert(name.to_owned(), (version, since));
        time.saturating_duration_since(since)
    }

    async fn renew(&self) -> kube::Result<()> {
        let spec = json!({
            "holderIdentity": self.identity,
            "leaseDurationSeconds": GONE_AFTER.as_secs(),
            "renewTime": micro_time(&Clock::now().to_string()),
        });
        let patch = json!({"metadata": {"annotations": {REPORTS: self.reports}}, "spec": spec});
        match send(&self.client, "PATCH", &format!("{}/{}", self.collection, lease_of(&self.identity)), Some(patch))
            .await
        {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            written => return written.map(drop),
        }
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec,
            "metadata": {"name": lease_of(&self.identity), "labels": {LABEL: "true", "app.kubernetes.io/name": "suture"},
                "annotations": self.reports.iter().map(|at| (REPORTS, at)).collect::<BTreeMap<_, _>>()},
        });
        send(&self.client, "POST", &self.collection, Some(lease)).await.map(drop)
    }

    /// Takes its Lease away: it leaves.
    pub async fn leave(self) {
        if let Err(error) = self.delete(&lease_of(&self.identity)).await {
            tracing::warn!(why = brief(&error), "the lease of this replica cannot be taken away");
        }
    }

    async fn delete(&self, name: &str) -> kube::Result<()> {
        match send(&self.client, "DELETE", &format!("{}/{name}", self.collection), None).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            deleted => deleted.map(drop),
        }
    }
}

/// Whether a replica is there, if it is not known to be.
pub async fn is_there(client: &Client, namespace: &str, identity: &str) -> kube::Result<bool> {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{}", lease_of(identity));
    match send(client, "GET", &path, None).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        found => found.map(|_| true),
    }
}

/// The name of a replica's Lease; names of pods and hosts are names of objects, too.
fn lease_of(identity: &str) -> String {
    format!("suture-replica-{}", identity.to_lowercase())
}

impl Found {
    fn of(lease: &Value) -> Self {
        let text = |path: &str| lease.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            name: text("/metadata/name"),
            replica: text("/spec/holderIdentity"),
            reports: lease
                .pointer("/metadata/annotations")
                .and_then(|all| all.get(REPORTS)?.as_str())
                .map(str::to_owned),
            version: text("/metadata/resourceVersion"),
        }
    }
}
