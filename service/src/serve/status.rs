//! The status of Suture's own resources: what each replica says, and the conditions that follow for all of them.
//!
//! Every replica writes its own entry of `byPod` and works out the conditions anew from all entries, so that no leader is
//! needed; a write is held to the resourceVersion that it was worked out from, and whoever loses tries again with the next
//! round. Entries of replicas that are gone are dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value as Json, json};
use tokio::sync::watch::Receiver;
use tokio::time::{MissedTickBehavior, interval};

use super::peers::is_there;
use super::resources::{GROUP, RESOURCES, ResourceName, VERSION};

pub use resource_status::{Audited, ResourceStatus, next_status};

mod resource_status;

/// Between two rounds. A status is for people; the API server has better things to do.
const ROUND_PERIOD: Duration = Duration::from_secs(5);
/// How many statuses are written in a round; the others wait for the next one.
const WRITES_PER_ROUND_MAX: usize = 20;

/// After so many rounds every status is looked at again, in case that somebody else has changed it.
const ROUNDS_KNOWN_MAX: u32 = 12;
/// How often a write that lost against another replica's is tried again at once.
const CONFLICTS_MAX: usize = 3;

/// What this replica has to say about all objects, and who the replicas are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// The objects.
    pub statuses: BTreeMap<ResourceName, ResourceStatus>,
    /// The replicas that are there, by the names of their pods; entries of others are dropped.
    pub replicas: BTreeSet<String>,
}

/// Writes what `said` says, for ever, at most every five seconds and only what differs. `now` is the time, RFC 3339;
/// `failed` is told of what cannot be written, which is tried again.
pub async fn write(
    client: Client,
    Writer { pod, namespace }: Writer,
    mut said: Receiver<Said>,
    now: impl Fn() -> String + Send,
    mut failed: impl FnMut(&ResourceName, String) + Send,
) {
    let mut rounds = interval(ROUND_PERIOD);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // what was said and written last; an object is looked at again only when something else is said of it
    let mut written: BTreeMap<ResourceName, ResourceStatus> = BTreeMap::new();
    let mut replicas = BTreeSet::new();
    let mut known = 0;
    loop {
        rounds.tick().await;
        known += 1;
        if known > ROUNDS_KNOWN_MAX {
            written.clear();
            known = 0;
        }
        if said.has_changed().is_err() {
            return;
        }
        let now_said = said.borrow_and_update().clone();
        // who the replicas are comes first
        if now_said.replicas.is_empty() {
            continue;
        }
        if replicas != now_said.replicas {
            // entries of those that are gone are to be dropped
            written.clear();
            replicas.clone_from(&now_said.replicas);
        }
        written.retain(|name, _| now_said.statuses.contains_key(name));
        let differing =
            now_said.statuses.iter().filter(|(name, resource_status)| written.get(*name) != Some(*resource_status));
        let round: Vec<(&ResourceName, &ResourceStatus)> = differing.take(WRITES_PER_ROUND_MAX).collect();
        for (name, resource_status) in round {
            let here = Here { client: &client, pod: &pod, namespace: &namespace, replicas: &now_said.replicas };
            let mut result = here.write(name, resource_status, &now()).await;
            for _ in 0..CONFLICTS_MAX {
                // another replica was faster: what it wrote is to be taken into account
                if !result.as_ref().is_err_and(is_conflict) {
                    break;
                }
                result = here.write(name, resource_status, &now()).await;
            }
            match result {
                Ok(()) => drop(written.insert(name.clone(), resource_status.clone())),
                Err(error) => failed(name, error.to_string()),
            }
        }
    }
}

/// Where one of Suture's own resources is read and written.
pub(super) fn api_of(client: &Client, name: &ResourceName) -> Option<Api<DynamicObject>> {
    let resource = RESOURCES.iter().find(|resource| resource.kind == name.kind)?;
    let kind = GroupVersionKind::gvk(GROUP, VERSION, resource.kind);
    let of = ApiResource::from_gvk_with_plural(&kind, resource.plural);
    Some(match &name.namespace {
        Some(ns) => Api::namespaced_with(client.clone(), ns, &of),
        None => Api::all_with(client.clone(), &of),
    })
}

/// Writes these fields of a status, unless somebody else has written the object since it was read.
pub(super) async fn merge(api: &Api<DynamicObject>, live: &DynamicObject, fields: Json) -> Result<(), kube::Error> {
    let name = live.metadata.name.as_deref().unwrap_or_default();
    let patch = json!({"metadata": {"resourceVersion": live.metadata.resource_version}, "status": fields});
    let parameters = PatchParams { field_manager: Some("suture".to_owned()), ..PatchParams::default() };
    api.patch_status(name, &parameters, &Patch::Merge(patch)).await.map(drop)
}

/// Whether somebody else has written it since.
pub(super) fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// Who writes.
#[derive(Clone, Debug)]
pub struct Writer {
    /// The name of this replica.
    pub pod: String,
    /// The namespace of the replicas.
    pub namespace: String,
}

/// This replica in one round.
struct Here<'r> {
    client: &'r Client,
    pod: &'r str,
    namespace: &'r str,
    replicas: &'r BTreeSet<String>,
}

impl Here<'_> {
    async fn write(&self, name: &ResourceName, resource_status: &ResourceStatus, now: &str) -> Result<(), kube::Error> {
        let Some(api) = api_of(self.client, name) else { return Ok(()) };
        // another object of this name is loaded before anything is said of it
        let live =
            api.get_opt(&name.name).await?.filter(|live| live.metadata.uid.as_ref() == Some(&resource_status.uid));
        let Some(live) = live else { return Ok(()) };
        let old = live.data.get("status").cloned().unwrap_or(Json::Null);
        let replicas = self.replicas_of(&old).await?;
        let mut next = next_status(&old, self.pod, resource_status, &replicas, now);
        if next == old {
            return Ok(());
        }
        // a merge takes away only what it is told to
        if let Some(fields) = next.as_object_mut() {
            for gone in old.as_object().into_iter().flat_map(|old| old.keys()) {
                fields.entry(gone.clone()).or_insert(Json::Null);
            }
        }
        merge(&api, &live, next).await
    }

    /// The replicas, with those in a status that came while nobody looked: a replica is there before it says anything.
    async fn replicas_of(&self, status: &Json) -> Result<BTreeSet<String>, kube::Error> {
        let entries = status.get("byPod").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut replicas = self.replicas.clone();
        for pod in entries.iter().filter_map(|entry| entry.get("pod").and_then(Json::as_str)) {
            if !replicas.contains(pod) && is_there(self.client, self.namespace, pod).await? {
                replicas.insert(pod.to_owned());
            }
        }
        Ok(replicas)
    }
}
