//! What a watch tells about its kind: the events that the feed, the policies and the announcements take in.

use std::collections::BTreeSet;
use std::sync::mpsc::Sender;
use std::time::Instant;

use suture_model::kinds::Kind;
use suture_model::value::{Str, Val};
use tokio::sync::oneshot;

/// One thing that is told about a kind.
#[derive(Debug)]
pub enum KindEvent {
    /// It is to be known from now on.
    Wanted,
    /// Nobody wants to know it any more.
    Unwanted,
    /// The API server does not serve it.
    Absent,
    /// The API server served it and does not any more.
    Lost,
    /// All kinds that the cluster serves have been told to be wanted.
    Every,
    /// It cannot be listed or watched; why. What was told may be out of date.
    Failed(String),
    /// This account may not list or watch this resource.
    Forbidden(String),
    /// A page of a list. The sender waits until it is taken in.
    Page(Vec<Val>, oneshot::Sender<()>),
    /// The list is complete.
    Listed(List),
    /// The object is so now, and all that happened up to its resourceVersion has been told.
    Put(Val),
    /// The object is gone, as it was last; and all that happened up to its resourceVersion has been told.
    Gone(Val),
    /// All that happened up to this resourceVersion has been told.
    Progress(u64),
}

/// A complete list.
#[derive(Debug)]
pub struct List {
    /// All namespaces and names.
    pub names: BTreeSet<(Str, Str)>,
    /// Its resourceVersion.
    pub version: Option<u64>,
    /// When it was asked for: nothing in it is older.
    pub began: Instant,
}

/// Where events about kinds are sent to.
pub type EventSender = Sender<(Kind, KindEvent)>;

/// Namespace and name of an object.
pub fn name_of(object: &Val) -> Option<(Str, Str)> {
    let ns = object.str_at(&["metadata", "namespace"]).cloned().unwrap_or_else(|| "".into());
    Some((ns, object.str_at(&["metadata", "name"])?.clone()))
}

/// The resourceVersion of an object, by which the API server orders what happened to a kind.
pub fn version_of(object: &Val) -> Option<u64> {
    object.str_at(&["metadata", "resourceVersion"])?.parse().ok()
}
