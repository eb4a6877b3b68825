//! Who owns an object, and who wants it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::definitions::definition_of;
use super::known::{UnknownKind, known};
use super::replicas::wanted_replicas;
use super::selection::selector_of;
use super::template::template_labels;
use crate::controllers::replicas::replicas;
use crate::controllers::statefulset::{Intent, intent};
use crate::fields::{finished, gives_up, orphans, same_template};
use crate::kinds::Kind;
use crate::object::{Key, Object, Owner};
use crate::state::State;
use crate::steps;
use crate::value::Str;

/// What it takes to look up an object by its uid, then by its name.
const LOOKUP_STEPS: u64 = 10;

/// Controllers nest no deeper than this; a longer chain is a cycle or no controller's work.
const OWNERS_MAX: usize = 16;

/// Whether an owner reference names an object that exists: same kind, name and uid, in the child's namespace or
/// cluster-scoped (`pkg/controller/garbagecollector/garbagecollector.go`, `isDangling`).
///
/// # Errors
/// When it does not, and objects of that kind were not read.
pub fn owner_resolves(state: &State, child: &Object, owner: &Owner) -> Result<bool, UnknownKind> {
    if owner_object(state, child, owner).is_some() { Ok(true) } else { known(state, &owner.kind).map(|()| false) }
}

/// Whether an owner reference may mean the object with this key, whatever its uid.
fn may_mean(owner: &Owner, child: &Object, key: &Key) -> bool {
    key.kind == owner.kind && key.name == owner.name && (key.ns == child.key.ns || key.ns.is_empty())
}

/// The object that an owner reference names.
pub fn owner_object<'s>(state: &'s State, child: &Object, owner: &Owner) -> Option<&'s Arc<Object>> {
    steps::count(LOOKUP_STEPS);
    if let Some(found) = state.by_uid(&owner.uid).filter(|o| may_mean(owner, child, &o.key)) {
        return Some(found);
    }
    // objects of recorded states may have no uid
    let named = |ns: Str| {
        let there = state.get(&Key { kind: owner.kind.clone(), ns, name: owner.name.clone() });
        there.filter(|o| o.uid == owner.uid)
    };
    named(child.key.ns.clone()).or_else(|| named("".into()))
}

/// Whether the garbage collector never takes an object, whatever becomes of its owners: it is in no namespace and names an
/// owner of a kind whose objects are in one (`garbagecollector.go`, `isDangling`, `namespacedOwnerOfClusterScopedObjectErr`).
pub fn is_never_collected(state: &State, object: &Object) -> bool {
    let is_namespaced = |owner: &Owner| match owner.kind.builtin_namespaced() {
        Some(namespaced) => namespaced,
        None => {
            let scope = || definition_of(state, &owner.kind)?.val().str_at(&["spec", "scope"]).cloned();
            state.by_uid(&owner.uid).is_some_and(|o| o.key.kind == owner.kind && !o.key.ns.is_empty())
                || scope().is_some_and(|scope| &*scope == "Namespaced")
        }
    };
    object.key.ns.is_empty() && object.owners().iter().any(is_namespaced)
}

/// The controller of an object, if it exists.
pub fn controller_of<'s>(state: &'s State, object: &Object) -> Option<&'s Arc<Object>> {
    owner_object(state, object, object.controller()?)
}

/// Whether an object is owned by the one with this key, at any depth; that one may be gone.
pub fn is_below(state: &State, object: &Object, above: &Key) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![object];
    while let Some(child) = open.pop() {
        if child.owners().iter().any(|owner| may_mean(owner, child, above)) {
            return true;
        }
        let owners = child.owners().iter().filter_map(|owner| owner_object(state, child, owner));
        open.extend(owners.filter(|owner| seen.insert(&owner.key)).map(|owner| &**owner));
    }
    false
}

/// The owners of an object, and the custom resources whose adapter lists it.
pub fn directly_above<'s>(state: &'s State, object: &Object) -> Vec<&'s Arc<Object>> {
    let owners = object.owners().iter().filter_map(|owner| owner_object(state, object, owner));
    owners.chain(parents(state, object)).collect()
}

/// All that is above an object, at any depth; a Deployment also of the ReplicaSets that it adopts.
pub fn all_above(state: &State, object: &Object) -> BTreeSet<Key> {
    let (mut found, mut open) = (BTreeSet::new(), vec![object]);
    while let Some(child) = open.pop() {
        let above = directly_above(state, child).into_iter().chain(adopting_deployment(state, child));
        open.extend(above.filter(|above| found.insert(above.key.clone())).map(|above| &**above));
    }
    found
}

/// The topmost object above this one by controller references; itself when nothing controls it.
pub fn top_controller(state: &State, object: &Arc<Object>) -> Arc<Object> {
    let mut top = object.clone();
    for _ in 0..OWNERS_MAX {
        match controller_of(state, &top) {
            Some(above) => top = above.clone(),
            None => break,
        }
    }
    top
}

/// The Deployment that adopts a ReplicaSet without a controller (`pkg/controller/deployment/deployment_controller.go`,
/// `getReplicaSetsForDeployment`).
pub fn adopting_deployment<'s>(state: &'s State, set: &Object) -> Option<&'s Arc<Object>> {
    if !set.key.kind.is("ReplicaSet") || set.controller().is_some() || !set.live() {
        return None;
    }
    let labels = template_labels(state, set)?;
    let adopts = |o: &&Arc<Object>| {
        let selector = selector_of(state, o).filter(|selector| o.live() && !selector.is_empty());
        // a ReplicaSet bears the labels of its pods; where it does not, its pods are not the Deployment's
        selector.is_some_and(|selector| selector.matches(set.labels()) && selector.matches(&labels))
    };
    state.selecting(&Kind::builtin("Deployment")?, &set.key.ns, set.labels()).into_iter().find(adopts)
}

/// Whether a controller of this object, at any depth, is being deleted without orphaning what it controls.
pub fn leaves_with_controller(state: &State, object: &Object) -> bool {
    let mut above = controller_of(state, object);
    for _ in 0..OWNERS_MAX {
        let Some(owner) = above else { return false };
        if !owner.live() && !orphans(owner) {
            return true;
        }
        above = controller_of(state, owner);
    }
    false
}

/// The live owners that want an object, in the order of their keys.
///
/// That is its controller, if it is live and its adapter lists no children or this one, and every live custom resource
/// whose adapter lists it. What its controller removes itself is not wanted. Nothing is in a namespace that was being
/// deleted before: it would never end (`pkg/controller/namespace/deletion`).
pub fn wanted_by<'s>(state: &'s State, object: &Object) -> Vec<&'s Arc<Object>> {
    if state.base().get(&Key::global("Namespace", &object.key.ns)).is_some_and(|ns| !ns.live()) {
        return Vec::new();
    }
    let controller = controller_of(state, object).filter(|owner| {
        let children = state.adapter(owner).and_then(|facts| facts.children.clone());
        owner.live() && children.is_none_or(|c| lists(&c, object)) && !is_removed_by(state, object, owner)
    });
    let mut owners: Vec<&Arc<Object>> = controller.into_iter().collect();
    owners.extend(parents(state, object).into_iter().filter(|parent| parent.live()));
    owners.sort_by(|a, b| a.key.cmp(&b.key));
    owners.dedup_by(|a, b| a.key == b.key);
    owners
}

/// The custom resources whose adapter lists an object among the children that their operator makes, live or not, in the
/// order of their keys.
pub fn parents<'s>(state: &'s State, object: &Object) -> Vec<&'s Arc<Object>> {
    let lists = |parent: &Object| {
        let facts = state.adapter(parent);
        facts.is_some_and(|facts| facts.children.as_ref().is_some_and(|children| lists(children, object)))
    };
    state.listing(&object.key).into_iter().filter(|parent| lists(parent)).collect()
}

/// Whether one of these children is the object.
fn lists(children: &[Key], object: &Object) -> bool {
    children.iter().any(|child| child.means(&object.key))
}

/// The kinds that were not read and of which an object might want this one.
pub fn unread_owners(state: &State, object: &Object) -> Vec<Str> {
    let controller = object.controller().map(|c| c.kind.clone());
    let kinds = state.base().adapters().kinds().into_iter().chain(controller);
    let mut unread: Vec<Str> =
        kinds.filter_map(|kind| known(state, &kind).err()).map(|UnknownKind(kind)| kind).collect();
    unread.sort();
    unread.dedup();
    unread
}

/// Whether an object is one that its controller removes itself: history, what is in excess, what is replaced.
fn is_removed_by(state: &State, object: &Object, owner: &Object) -> bool {
    is_history(state, object, owner) || is_surplus(state, object, owner) || is_outdated(object, owner)
}

/// Whether an object is one of more than its controller wants: a StatefulSet's pod by its ordinal
/// (`pkg/controller/statefulset/stateful_set_control.go`, `updateStatefulSet`), any pod of a controller that wants none, and
/// any child of a custom resource whose adapter says how many replicas it wants while as many others of its kind stay.
fn is_surplus(state: &State, object: &Object, owner: &Object) -> bool {
    if object.key.kind.is("Pod") {
        let beyond = || intent(owner, object, replicas(owner), false) == Some(Intent::Removes);
        // one that has run to its end is collected (`pkg/controller/podgc/gc_controller.go`, `gcTerminated`)
        return object.finished()
            || wanted_replicas(state, owner) == Some(0)
            || (owner.key.kind.is("StatefulSet") && beyond());
    }
    let Some(replicas) = state.adapter(owner).and_then(|facts| facts.replicas) else { return false };
    let is_other = |other: &&Arc<Object>| {
        let controlled = other.controller().is_some_and(|controller| controller.uid == owner.uid);
        controlled && other.live() && other.key.kind == object.key.kind && other.key != object.key
    };
    let others = state.owned_by(&owner.uid).into_iter().filter(is_other).count();
    i64::try_from(others).is_ok_and(|others| others >= replicas)
}

/// Whether its controller replaces an object: a StatefulSet a pod of another revision than it rolls out
/// (`stateful_set_control.go`, `updateStatefulSetAfterInvariantEstablished`), a CronJob the Job that still runs
/// (`pkg/controller/cronjob/cronjob_controllerv2.go`, `syncCronJob`, `ReplaceConcurrent`).
fn is_outdated(object: &Object, owner: &Object) -> bool {
    let is = |controller: &str, kind: &str| owner.key.kind.is(controller) && object.key.kind.is(kind);
    if is("CronJob", "Job") {
        return owner.val().str_at(&["spec", "concurrencyPolicy"]).is_some_and(|policy| &**policy == "Replace");
    }
    if !is("StatefulSet", "Pod") || owner.unobserved() {
        return false;
    }
    intent(owner, object, replicas(owner), false) == Some(Intent::Updates)
}

/// Whether an object is what its controller keeps of the past: a ReplicaSet at 0 of another template
/// (`pkg/controller/deployment/sync.go`, `cleanupDeployment`), a revision that a StatefulSet has left
/// (`pkg/controller/statefulset/stateful_set_control.go`, `truncateHistory`) or a claim that it gave up (KEP-1847), a Job
/// that has finished (`pkg/controller/cronjob/cronjob_controllerv2.go`, `cleanupFinishedJobs`), a revision of a
/// DaemonSet that is not its newest and that no pod has (`pkg/controller/daemon/update.go`, `cleanupHistory`).
fn is_history(state: &State, object: &Object, owner: &Object) -> bool {
    let is = |controller: &str, kind: &str| owner.key.kind.is(controller) && object.key.kind.is(kind);
    if is("Deployment", "ReplicaSet") {
        return object.val().int_at(&["spec", "replicas"]) == Some(0) && !same_template(object, owner);
    }
    if is("StatefulSet", "ControllerRevision") {
        let used = ["currentRevision", "updateRevision"].map(|field| owner.val().str_at(&["status", field]));
        return used.iter().all(|name| name.is_some_and(|name| *name != object.key.name));
    }
    if is("DaemonSet", "ControllerRevision") {
        let hash = object.labels().str_at(&["controller-revision-hash"]);
        let pods = || state.owned_by(&owner.uid).into_iter().filter(|pod| pod.key.kind.is("Pod"));
        let used = |pod: &Arc<Object>| pod.labels().str_at(&["controller-revision-hash"]) == hash;
        let newest = || revisions(state, owner).into_iter().all(|other| revision_of(other) <= revision_of(object));
        return !pods().any(used) && !newest();
    }
    if is("StatefulSet", "PersistentVolumeClaim") {
        return gives_up(owner, &object.key.name);
    }
    is("CronJob", "Job") && finished(object)
}

/// The revisions that a DaemonSet keeps.
fn revisions<'s>(state: &'s State, owner: &Object) -> Vec<&'s Arc<Object>> {
    let owned = state.owned_by(&owner.uid).into_iter();
    owned.filter(|o| o.key.kind.is("ControllerRevision")).collect()
}

fn revision_of(revision: &Object) -> i64 {
    revision.val().int_at(&["revision"]).unwrap_or(0)
}
