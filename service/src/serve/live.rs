//! Reads a live cluster once, as far as a policy needs it: the kinds that `serve` would watch, those of their owners, and
//! what could not be read. Nothing is written.
//!
//! Kinds are listed one after the other, so that what changes meanwhile is seen in some and not in others.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use kube::Client;
use kube::api::{ListParams, Request};
use suture_model::kinds::{Kind, KindTraits, Watched};
use suture_model::object::Object;
use suture_model::value::{Str, Val};
use suture_specs::adapters::scaled_kind;
use tokio::time::timeout;

use super::api::brief;
use super::kinds::{Found, Resource, find, groups, resources};
use super::watch::{PAGE_TIMEOUT, Place};
use crate::failure::Failure;
use crate::policy::Policy;
use crate::recorded::LiveCluster;
use crate::rules::{watched, watches_every};

/// Objects of a page.
const PAGE_LEN: u32 = 500;

/// Reads the cluster of the current kubeconfig context.
///
/// # Errors
/// When there is none, or it cannot be reached at all.
pub fn read(policy: &Policy) -> Result<LiveCluster, Failure> {
    // one that is installed already serves as well
    _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::invalid(format!("cannot start: {error}")))?;
    runtime.block_on(async {
        let unreadable = |why: String| Failure::read(Path::new("cluster"), io::Error::other(why));
        let client = Client::try_default().await.map_err(|error| unreadable(brief(&error)))?;
        client.apiserver_version().await.map_err(|error| unreadable(brief(&error)))?;
        survey(&client, policy).await.map_err(unreadable)
    })
}

/// Reads all that the policy needs, then the kinds that own it, until no owner is missing.
async fn survey(client: &Client, policy: &Policy) -> Result<LiveCluster, String> {
    let mut wanted = watched(policy);
    // what is defined says which kinds are absent
    wanted.extend(Kind::builtin("CustomResourceDefinition"));
    let mut cluster = LiveCluster::default();
    if watches_every(policy) {
        wanted.extend(every(client, &mut cluster.unread).await?);
    }
    let mut by_group: BTreeMap<Str, Result<Vec<Resource>, String>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    while let Some(kind) = wanted.pop_first() {
        if !seen.insert(kind.clone()) {
            continue;
        }
        if !by_group.contains_key(&kind.group) {
            by_group.insert(kind.group.clone(), resources(client, &kind.group).await);
        }
        let listed = match find(&kind, by_group.get(&kind.group)) {
            Found::Nowhere => Ok(Vec::new()),
            Found::Unclear(why) => Err(why),
            Found::At(place) => list(client, &place).await,
        };
        match listed {
            Err(why) => drop(cluster.unread.insert(kind.kind.to_string(), why)),
            Ok(objects) => {
                cluster.read.insert(kind.to_string().into());
                for object in objects.iter().filter_map(|val| Object::from_val(val).ok()) {
                    let owners = object.owners().iter().map(|owner| owner.kind.clone());
                    wanted.extend(owners.chain(scaled_kind(&object)).filter(|kind| !seen.contains(kind)));
                }
                cluster.objects.extend(objects);
            }
        }
    }
    Ok(cluster)
}

/// The kinds that the cluster serves. A group that does not answer is an aggregated API that is down: what it serves is not
/// in the cluster's own storage.
async fn every(client: &Client, unread: &mut BTreeMap<String, String>) -> Result<BTreeSet<Kind>, String> {
    let mut kinds = BTreeSet::new();
    for group in groups(client).await? {
        match resources(client, &group).await {
            Ok(found) => kinds.extend(found.into_iter().map(|found| Kind::new(&group, &found.kind))),
            Err(why) => drop(unread.insert(format!("*.{group}"), why)),
        }
    }
    // Events are served by two groups
    kinds.retain(|kind| KindTraits::named(&kind.kind).is_none_or(|traits| traits.watched != Watched::WhenNamed));
    Ok(kinds)
}

/// The objects of a kind; none where it is not served any more.
async fn list(client: &Client, place: &Place) -> Result<Vec<Val>, String> {
    let mut objects = Vec::new();
    let mut token: Option<String> = None;
    loop {
        let mut params = ListParams::default().limit(PAGE_LEN);
        params.continue_token = token;
        let request = Request::new(&place.path).list(&params).map_err(|error| error.to_string())?;
        let page = match timeout(PAGE_TIMEOUT, client.request::<Val>(request)).await {
            Err(_) => return Err("a list takes too long".to_owned()),
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => return Ok(Vec::new()),
            Ok(Err(error)) => return Err(brief(&error)),
            Ok(Ok(page)) => page,
        };
        let typed = |item: &Val| {
            let item = item.with("kind", Val::str(&*place.kind.kind));
            item.with("apiVersion", Val::Str(place.api_version.clone()))
        };
        objects.extend(page.items_at(&["items"]).iter().map(typed));
        token = page.name_at(&["metadata", "continue"]).map(str::to_owned);
        if token.is_none() {
            return Ok(objects);
        }
    }
}
