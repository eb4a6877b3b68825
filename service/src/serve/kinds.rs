//! Which kinds are followed: what the policy needs, found by discovery, each followed by a task of its own that comes
//! and goes with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use kube::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use suture_model::kinds::{Kind, KindTraits, Watched};
use suture_model::value::Str;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::api::brief;
use super::kind_events::{EventSender, KindEvent};
use super::loaded::Wanted;
use super::watch::{Place, follow};

/// How often kinds that are not served, or could not be looked up, are looked up again without being asked to.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// How soon after a failure, or where a definition is there already.
const LOOK_SOON: Duration = Duration::from_millis(500);
/// How long an answer of discovery may take.
const LOOK_TIMEOUT: Duration = Duration::from_secs(10);

/// Follows the wanted kinds.
pub struct Kinds {
    client: Client,
    events: EventSender,
    /// Lists everything again.
    again: watch::Receiver<u64>,
    /// Something about definitions has changed.
    nudge: Arc<Notify>,
    tasks: BTreeMap<Kind, Task>,
}

struct Task {
    /// None where the kind is not served, or was not found yet.
    follows: Option<JoinHandle<()>>,
}

/// What discovery says about a kind.
pub enum Found {
    /// There.
    At(Place),
    /// It is not served.
    Nowhere,
    /// It cannot be said, for this reason.
    Unclear(String),
}

impl Kinds {
    /// Tells `events` about kinds; `nudge` makes it look up kinds that were not found.
    pub fn new(client: Client, events: EventSender, nudge: Arc<Notify>, again: watch::Receiver<u64>) -> Self {
        Self { client, events, again, nudge, tasks: BTreeMap::new() }
    }

    /// Follows what is wanted, for ever.
    pub async fn run(mut self, mut wanted: watch::Receiver<Wanted>) {
        loop {
            let Wanted { mut kinds, every } = wanted.borrow_and_update().clone();
            let (mut soon, mut surveyed) = (false, false);
            if every {
                match self.all().await {
                    Ok(all) => {
                        kinds.extend(all);
                        surveyed = true;
                    }
                    Err(why) => {
                        tracing::warn!(why, "the kinds of the cluster cannot be listed");
                        // what is followed already stays so
                        kinds.extend(self.tasks.keys().cloned());
                        soon = true;
                    }
                }
            }
            self.leave(&kinds);
            self.welcome(&kinds);
            if surveyed && let Some(any) = kinds.first() {
                self.tell(any, KindEvent::Every);
            }
            soon |= self.enter().await;
            let nudge = self.nudge.clone();
            tokio::select! {
                changed = wanted.changed() => if changed.is_err() { return },
                () = nudge.notified() => {},
                () = sleep(if soon { LOOK_SOON } else { LOOK_EVERY }) => {},
            }
        }
    }

    fn tell(&self, kind: &Kind, told: KindEvent) {
        // nobody listens when the process ends
        _ = self.events.send((kind.clone(), told));
    }

    fn leave(&mut self, wanted: &BTreeSet<Kind>) {
        let unwanted: Vec<Kind> = self.tasks.keys().filter(|kind| !wanted.contains(kind)).cloned().collect();
        for kind in unwanted {
            if let Some(Task { follows: Some(task) }) = self.tasks.remove(&kind) {
                task.abort();
            }
            self.tell(&kind, KindEvent::Unwanted);
        }
    }

    /// The kinds that the cluster serves. Those of a group that does not answer are the ones followed already.
    async fn all(&self) -> Result<BTreeSet<Kind>, String> {
        let names = groups(&self.client).await?.into_iter();
        let looked = join_all(names.map(|group| async {
            let resources = resources(&self.client, &group).await;
            (group, resources)
        }));
        let mut kinds = BTreeSet::new();
        for (group, resources) in looked.await {
            match resources {
                Ok(resources) => kinds.extend(resources.into_iter().map(|found| Kind::new(&group, &found.kind))),
                // an aggregated API that is down: what it serves is not in the cluster's own storage
                Err(why) => {
                    tracing::warn!(group, why, "a group of kinds cannot be listed");
                    kinds.extend(self.tasks.keys().filter(|kind| *kind.group == *group).cloned());
                }
            }
        }
        // Events are served by two groups
        kinds.retain(|kind| KindTraits::named(&kind.kind).is_none_or(|traits| traits.watched != Watched::WhenNamed));
        Ok(kinds)
    }

    /// Notes what is wanted.
    fn welcome(&mut self, wanted: &BTreeSet<Kind>) {
        for kind in wanted {
            if !self.tasks.contains_key(kind) {
                self.tell(kind, KindEvent::Wanted);
                self.tasks.insert(kind.clone(), Task { follows: None });
            }
        }
    }

    /// Starts to follow what is wanted and not followed; says whether to look again soon.
    async fn enter(&mut self) -> bool {
        for task in self.tasks.values_mut() {
            // the kind was not served any more
            task.follows.take_if(|follows| follows.is_finished());
        }
        let missing: Vec<Kind> =
            self.tasks.iter().filter(|(_, task)| task.follows.is_none()).map(|(kind, _)| kind.clone()).collect();
        let groups: BTreeSet<Str> = missing.iter().map(|kind| kind.group.clone()).collect();
        let looked = join_all(groups.into_iter().map(|group| async {
            let resources = resources(&self.client, &group).await;
            (group, resources)
        }));
        let groups: BTreeMap<Str, Result<Vec<Resource>, String>> = looked.await.into_iter().collect();
        let mut soon = false;
        for kind in missing {
            match find(&kind, groups.get(&kind.group)) {
                Found::At(place) => {
                    let (client, events, again) = (self.client.clone(), self.events.clone(), self.again.clone());
                    let nudge = self.nudge.clone();
                    let follows = tokio::spawn(async move {
                        let kind = place.kind.clone();
                        follow(client, place, events.clone(), again).await;
                        // nobody listens when the process ends
                        _ = events.send((kind, KindEvent::Lost));
                        nudge.notify_one();
                    });
                    self.tasks.insert(kind, Task { follows: Some(follows) });
                }
                Found::Nowhere => self.tell(&kind, KindEvent::Absent),
                Found::Unclear(why) => {
                    soon = true;
                    self.tell(&kind, KindEvent::Failed(why));
                }
            }
        }
        soon
    }
}

impl Drop for Kinds {
    fn drop(&mut self) {
        self.tasks.values().filter_map(|task| task.follows.as_ref()).for_each(JoinHandle::abort);
    }
}

/// A resource that a group serves, in one version.
pub struct Resource {
    /// `apiVersion` of its objects.
    pub api_version: String,
    /// Their kind.
    pub kind: String,
    /// The path of the collection.
    pub path: String,
}

/// `APIGroup`, as far as it is needed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    versions: Vec<GroupVersion>,
    preferred_version: Option<GroupVersion>,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct GroupVersion {
    group_version: String,
}

/// `APIResourceList`, as far as it is needed.
#[derive(Deserialize)]
struct Listed {
    resources: Vec<ListedResource>,
}

#[derive(Deserialize)]
struct ListedResource {
    name: String,
    kind: String,
    #[serde(default)]
    verbs: Vec<String>,
}

/// `APIGroupList`, as far as it is needed.
#[derive(Deserialize)]
struct Groups {
    groups: Vec<NamedGroup>,
}

#[derive(Deserialize)]
struct NamedGroup {
    name: String,
}

/// The names of the groups that a cluster serves, the core group's empty one first.
pub async fn groups(client: &Client) -> Result<Vec<String>, String> {
    let found = get::<Groups>(client, "/apis").await?;
    let Groups { groups } = found.ok_or("the API server does not say which groups it serves")?;
    Ok(std::iter::once(String::new()).chain(groups.into_iter().map(|group| group.name)).collect())
}

/// What a group serves, its preferred version first. A group that does not exist serves nothing.
pub async fn resources(client: &Client, group: &str) -> Result<Vec<Resource>, String> {
    let versions = if group.is_empty() {
        vec!["v1".to_owned()]
    } else {
        let Some(found) = get::<Group>(client, &format!("/apis/{group}")).await? else { return Ok(Vec::new()) };
        let mut versions: Vec<String> = found.preferred_version.into_iter().map(|v| v.group_version).collect();
        for GroupVersion { group_version } in found.versions {
            if !versions.contains(&group_version) {
                versions.push(group_version);
            }
        }
        versions
    };
    let mut resources = Vec::new();
    for api_version in versions {
        let root = if group.is_empty() { "/api" } else { "/apis" };
        let path = format!("{root}/{api_version}");
        let Some(Listed { resources: listed }) = get(client, &path).await? else { continue };
        let whole = listed.into_iter().filter(|resource| !resource.name.contains('/'));
        let watchable = whole.filter(|resource| resource.verbs.iter().any(|verb| verb == "watch"));
        resources.extend(watchable.map(|resource| Resource {
            api_version: api_version.clone(),
            path: format!("{path}/{}", resource.name),
            kind: resource.kind,
        }));
    }
    Ok(resources)
}

/// The answer at a path; none where there is nothing.
async fn get<T: DeserializeOwned>(client: &Client, path: &str) -> Result<Option<T>, String> {
    let request = axum::http::Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
    match timeout(LOOK_TIMEOUT, client.request::<T>(request)).await {
        Err(_) => Err("discovery takes too long".to_owned()),
        Ok(Ok(found)) => Ok(Some(found)),
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(None),
        Ok(Err(error)) => Err(brief(&error)),
    }
}

/// Where a kind is served, by what its group serves.
pub fn find(kind: &Kind, group: Option<&Result<Vec<Resource>, String>>) -> Found {
    match group {
        None => Found::Unclear("not looked up yet".to_owned()),
        Some(Err(why)) => Found::Unclear(why.clone()),
        Some(Ok(resources)) => match resources.iter().find(|resource| *resource.kind == *kind.kind) {
            None => Found::Nowhere,
            Some(Resource { api_version, path, .. }) => Found::At(Place {
                kind: kind.clone(),
                api_version: api_version.as_str().into(),
                path: path.clone(),
                label_selector: None,
                resumes: false,
                keeps_values: false,
            }),
        },
    }
}

#[cfg(test)]
mod tests;
