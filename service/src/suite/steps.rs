//! From a step to the requests that it becomes.

use std::path::Path;

use suture_model::apply::apply;
use suture_model::change::{Change, Preconditions, Propagation, Request, User, key_named};
use suture_model::object::Key;
use suture_model::state::State;
use suture_model::value::Str;
use suture_specs::spec::{self, As, FileOrInline, KindRef, NamedRef, ObjectRef, Step, Verb};

use crate::request::review_of;

/// The change of a step, and which of its requests the API server would act on.
#[derive(Debug)]
pub struct Built {
    /// The requests, judged together.
    pub change: Change,
    /// For each of them whether it does anything.
    pub effective: Vec<bool>,
}

/// Makes the requests of a step. `stored` is the cluster as the API server has it, everything in flight landed: it is what
/// patches are applied to and deletions are compared with.
///
/// # Errors
/// When a kind is unknown or ambiguous, or an object to be changed does not exist.
pub fn build(step: &Step, mut stored: State<'_>, folder: &Path) -> Result<Built, String> {
    let mut built = Built { change: Change::default(), effective: Vec::new() };
    let steps: Vec<&Step> = match step.verb()? {
        Verb::Batch(steps) => steps.iter().collect(),
        _ => vec![step],
    };
    for inner in steps {
        let author = inner.as_.as_ref().or(step.as_.as_ref());
        let request = request(inner, author.map_or_else(User::admin, user), &stored, folder)?;
        built.effective.push(apply(&mut stored, &request).effective);
        built.change.requests.push(request);
    }
    Ok(built)
}

fn request(step: &Step, user: User, state: &State, folder: &Path) -> Result<Request, String> {
    let subresource = step.subresource.as_deref().unwrap_or_default();
    match step.verb()? {
        Verb::Create(manifest) => Request::create(user, state, manifest).map_err(|error| error.to_string()),
        Verb::Update(manifest) => {
            Request::update(user, state, manifest, subresource).map_err(|error| error.to_string())
        }
        Verb::Patch(object, with) => {
            let key = key(object, state)?;
            Request::patch(user, state, key, with, subresource).map_err(|error| error.to_string())
        }
        Verb::Delete(object) => {
            let key = existing(key(object, state)?, state)?;
            let preconditions = step.preconditions.as_ref().map(preconditions).unwrap_or_default();
            Ok(Request::delete(user, state, key, step.propagation_policy.map(propagation), preconditions))
        }
        Verb::Scale(object, replicas) => {
            let key = existing(key(object, state)?, state)?;
            Ok(Request::scale(user, state, key, replicas))
        }
        Verb::Evict(pod) => Ok(Request::evict(user, existing(pod_key(pod), state)?)),
        Verb::Bind(pod, node) => Ok(Request::bind(user, existing(pod_key(pod), state)?, node)),
        Verb::Review(review) => {
            let request = match review {
                FileOrInline::File(path) => review_of(&folder.join(path)).map_err(|error| error.to_string())?,
                FileOrInline::Inline(review) => Request::from_review(review).map_err(|error| error.to_string())?,
            };
            Ok(request.resolve(state))
        }
        Verb::Batch(_) => Err("a batch holds requests, not batches".to_owned()),
        Verb::Observe(_) => Err("a batch holds requests, not observations".to_owned()),
    }
}

/// The object that a suite names.
///
/// # Errors
/// When the kind is unknown, or several kinds are meant.
pub fn key(object: &ObjectRef, state: &State) -> Result<Key, String> {
    let ObjectRef { kind: KindRef { group: inner, kind }, group, namespace, name } = object;
    let group = inner.as_deref().or(group.as_deref());
    key_named(state, kind, group, namespace.as_deref().unwrap_or(""), name).map_err(|error| error.to_string())
}

fn pod_key(pod: &NamedRef) -> Key {
    Key::of("Pod", &pod.namespace, &pod.name)
}

/// A request for an object that does not exist would be allowed for nothing: in a suite that is a slip.
fn existing(key: Key, state: &State) -> Result<Key, String> {
    if state.get(&key).is_some() || state.base().unknown().contains(&key.kind.kind) {
        return Ok(key);
    }
    Err(format!("`{key}` does not exist in the state"))
}

/// The user that a step names. Groups that are not given are the ones that the API server itself gives.
fn user(author: &As) -> User {
    let As { username, groups, uid } = author;
    let named = User::named(username);
    User {
        username: named.username,
        groups: groups.as_ref().map_or(named.groups, |given| given.iter().map(|group| Str::from(&**group)).collect()),
        uid: uid.as_deref().unwrap_or_default().into(),
    }
}

fn preconditions(given: &spec::Preconditions) -> Preconditions {
    let text = |text: &Option<String>| text.as_deref().map(Str::from);
    Preconditions { uid: text(&given.uid), resource_version: text(&given.resource_version) }
}

fn propagation(policy: spec::Propagation) -> Propagation {
    match policy {
        spec::Propagation::Background => Propagation::Background,
        spec::Propagation::Foreground => Propagation::Foreground,
        spec::Propagation::Orphan => Propagation::Orphan,
    }
}
