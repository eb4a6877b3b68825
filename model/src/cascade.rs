//! What a deletion takes along: garbage collection, namespaces, definitions, adapters, volumes, pods of a lost node, tokens.
//!
//! The closure is a fixpoint and concrete. Everything in it is marked `in_deletion_closure`: some future no longer has it, and no
//! future keeps it. Sources: `pkg/controller/garbagecollector/garbagecollector.go` (an object goes when none of its
//! owners is left; a dangling reference beside a solid one is dropped), `pkg/controller/namespace/deletion`,
//! `apiextensions .../finalizer/crd_finalizer.go`, `pkg/controller/podgc`, KEP-1847 (StatefulSet claim retention),
//! `pkg/controller/volume/persistentvolume` (reclaim), `pkg/controller/serviceaccount/tokens_controller.go` (`deleteTokens`).

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::adapter::AdapterFacts;
use crate::change::Propagation;
use crate::kinds::Kind;
use crate::navigate;
use crate::object::{Key, Object, Owner};
use crate::references::references;
use crate::state::State;
use crate::value::Str;

/// How deep a chain of owners is followed.
const OWNER_DEPTH_MAX: usize = 16;

/// Why an object is leaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The request itself deletes it.
    Requested,
    /// The garbage collector follows its owner.
    Collected,
    /// Its namespace is deleted.
    Namespace,
    /// Its definition is deleted.
    Definition,
    /// Its operator deletes it with its parent.
    Operator,
    /// The claim retention policy of its StatefulSet says so.
    Retention,
    /// Its claim is gone and the volume's reclaim policy is Delete.
    Reclaimed,
    /// Its node is gone.
    NodeGone,
    /// The ServiceAccount that it is a token of is gone.
    Token,
}

impl Cause {
    /// The effect in words, for a counterexample's step.
    pub fn text(self) -> &'static str {
        match self {
            Self::Requested => "the request deletes it",
            Self::Collected => "garbage collection deletes what it owned",
            Self::Namespace => "the namespace controller deletes what is in it",
            Self::Definition => "the API server deletes its instances",
            Self::Operator => "the operator deletes what belongs to it",
            Self::Retention => "the StatefulSet's claim retention policy deletes its claims",
            Self::Reclaimed => "the volume's reclaim policy Delete destroys the volume",
            Self::NodeGone => "pods on the deleted node are removed",
            Self::Token => "the token controller deletes its tokens",
        }
    }
}

/// Objects that are leaving, each with its reason and the object that it follows.
pub type DeletionClosure = BTreeMap<Key, (Cause, Key)>;

/// Marks in `state` everything that these deletions take along, and what follows from these claims that a StatefulSet
/// gave up ([`given_up`]), and adds it to `in_deletion_closure`; but no more than `most` objects beside those deleted. False when
/// there are more.
///
/// What is left unmarked stays: such a state is one on the way, before the controllers have come so far. Nothing is left
/// out where dependents are orphaned, since they stay only once that is done.
pub fn cascade(
    state: &mut State<'_>,
    deletions: &[(Key, Propagation)],
    released: &[(Key, Key)],
    in_deletion_closure: &mut DeletionClosure,
    most: usize,
) -> bool {
    let orphans = deletions.iter().any(|(_, propagation)| *propagation == Propagation::Orphan);
    let mut left = if orphans { usize::MAX } else { most };
    let mut queue: VecDeque<(Key, Propagation)> = VecDeque::new();
    for (key, propagation) in deletions {
        mark(state, in_deletion_closure, key, Cause::Requested, key);
        queue.push_back((key.clone(), *propagation));
    }
    for (claim, set) in released {
        if mark(state, in_deletion_closure, claim, Cause::Retention, set) {
            queue.push_back((claim.clone(), Propagation::Background));
        }
    }
    while let Some((key, propagation)) = queue.pop_front() {
        if left == 0 {
            return false;
        }
        // an object whose last finalizer was taken is gone already; what followed it follows still
        let Some(object) = state.get(&key).or_else(|| state.base().get(&key)).cloned() else { continue };
        let mut found: Vec<(Key, Cause)> = Vec::new();
        follow_scope(state, &object, &mut found);
        follow_adapter(state, &object, &mut found);
        follow_volumes(state, &object, propagation, &mut found);
        follow_owner(state, &object, propagation, &mut found);
        // more than are left, whichever of them are marked already
        if found.len() > left.saturating_add(in_deletion_closure.len()) {
            return false;
        }
        for (next, cause) in found {
            if left == 0 {
                return false;
            }
            if mark(state, in_deletion_closure, &next, cause, &key) {
                queue.push_back((next, Propagation::Background));
                left -= 1;
            }
        }
    }
    true
}

/// The claims that a StatefulSet deletes because a write took their ordinals away, each with the set: under the policy
/// `whenScaled: Delete` it makes the pod that goes an owner of its claims (`pkg/controller/statefulset/
/// stateful_set_utils.go`, `updateClaimOwnerRefForSetAndPod`). A claim whose pod was never made stays in truth. Where the
/// policy is new, it goes for the pods that are still there of ordinals given up before (`stateful_set_control.go`,
/// `updateStatefulSet`). Those of a set that is being deleted as well, if the write makes `whenDeleted` Delete.
pub fn given_up(state: &State<'_>, old: &Object, new: &Object) -> Vec<(Key, Key)> {
    let claims = || state.list(&Kind::new("", "PersistentVolumeClaim"), Some(&new.key.ns)).into_iter();
    if !new.live() && deletes_when_deleted(new) && !deletes_when_deleted(old) && !orphans(new) {
        let made = claims().filter(|c| navigate::claim_ordinal(new, &c.key.name).is_some());
        let lost = made.filter(|c| !has_another_owner(state, new, c));
        return lost.map(|claim| (claim.key.clone(), new.key.clone())).collect();
    }
    if !navigate::deletes_when_scaled(new) || !new.live() {
        return Vec::new();
    }
    // until such a pod has gone, it is looked at with each pass over the set
    let of_new_policy = !navigate::deletes_when_scaled(old);
    let pods = if of_new_policy { navigate::pods_owned_by(state, new) } else { Vec::new() };
    let goes_along = |claim: &Object| pods.iter().any(|pod| navigate::goes_with_pod(state, pod, claim));
    let lost = claims().filter(|c| {
        !navigate::wants_claim(new, &c.key.name)
            && (navigate::wants_claim(old, &c.key.name) || goes_along(c))
            && !has_another_owner(state, new, c)
    });
    lost.map(|claim| (claim.key.clone(), new.key.clone())).collect()
}

/// Whether a claim of a StatefulSet has an owner, beside the set and its pods, that keeps it: a policy makes the set or
/// the pod an owner of the claim, and only where nothing else controls it (`pkg/controller/statefulset/
/// stateful_set_utils.go`, `hasUnexpectedController`).
fn has_another_owner(state: &State<'_>, set: &Object, claim: &Object) -> bool {
    let others = claim.owners().iter().filter(|owner| {
        let is_pod = owner.kind.is("Pod") && navigate::pod_ordinal(set, &owner.name).is_some();
        owner.uid != set.uid && !is_pod
    });
    others.into_iter().any(|owner| keeps(state, claim, owner))
}

/// Marks one object as leaving; false when it is gone or was marked before.
fn mark(
    state: &mut State<'_>,
    in_deletion_closure: &mut DeletionClosure,
    key: &Key,
    cause: Cause,
    because: &Key,
) -> bool {
    let Some(object) = state.get(key) else { return false };
    if object.in_deletion_closure {
        return false;
    }
    let marked = Object { in_deletion_closure: true, ..(**object).clone() };
    state.put(marked);
    in_deletion_closure.insert(key.clone(), (cause, because.clone()));
    true
}

/// What a namespace, a definition or a node contains, and the Secrets with a ServiceAccount's tokens.
fn follow_scope(state: &State<'_>, object: &Object, found: &mut Vec<(Key, Cause)>) {
    if object.key.kind.is("Namespace") {
        found.extend(state.in_namespace(&object.key.name).into_iter().map(|o| (o.key.clone(), Cause::Namespace)));
    } else if object.key.kind.is("CustomResourceDefinition") {
        found.extend(navigate::instances(state, object).into_iter().map(|o| (o.key.clone(), Cause::Definition)));
    } else if object.key.kind.is("Node") {
        found.extend(state.pods_on(&object.key.name).into_iter().map(|o| (o.key.clone(), Cause::NodeGone)));
    } else if object.key.kind.is("ServiceAccount") {
        let secrets = state.list(&Kind::new("", "Secret"), Some(&object.key.ns)).into_iter();
        let tokens = secrets.filter(|secret| is_token_of(secret, &object.key.name));
        found.extend(tokens.map(|o| (o.key.clone(), Cause::Token)));
    }
}

/// Whether a Secret holds a token of the ServiceAccount of this name.
fn is_token_of(secret: &Object, account: &str) -> bool {
    let kind = secret.val().str_at(&["type"]).is_some_and(|t| &**t == "kubernetes.io/service-account-token");
    kind && secret.annotation("kubernetes.io/service-account.name").is_some_and(|name| &**name == account)
}

/// What an operator deletes with its custom resource.
fn follow_adapter(state: &State<'_>, object: &Object, found: &mut Vec<(Key, Cause)>) {
    let Some(facts) = state.adapter(object) else { return };
    if facts.cascades {
        let listed = facts.children.iter().flatten().filter_map(|key| state.resolve(key));
        found.extend(listed.map(|child| (child.key.clone(), Cause::Operator)));
        if facts.children.is_none() {
            found.extend(state.owned_by(&object.uid).into_iter().map(|o| (o.key.clone(), Cause::Operator)));
        }
    }
    if facts.deletes_volumes {
        let claims = match &facts.claim_selector {
            Some(selector) => state.matching(&Kind::new("", "PersistentVolumeClaim"), &object.key.ns, selector),
            None => claims_below(state, object, &facts),
        };
        found.extend(claims.into_iter().map(|o| (o.key.clone(), Cause::Operator)));
    }
}

/// The claims that the StatefulSets of a custom resource make, and that the pods that it selects name.
fn claims_below<'s>(state: &'s State<'_>, custom: &Object, facts: &AdapterFacts) -> Vec<&'s Arc<Object>> {
    let sets = navigate::child_workloads(state, custom).into_iter().filter(|o| o.key.kind.is("StatefulSet"));
    let sets: Vec<_> = sets.collect();
    let pods = facts.selector.as_ref().map(|s| state.pods_matching(&custom.key.ns, s)).unwrap_or_default();
    let named = pods.into_iter().flat_map(|pod| references(pod, state.base().adapters().as_ref()));
    let named: BTreeSet<Key> = named.map(|reference| reference.target).collect();
    let claims = state.list(&Kind::new("", "PersistentVolumeClaim"), Some(&custom.key.ns)).into_iter();
    let made = |claim: &Object| sets.iter().any(|set| navigate::claim_ordinal(set, &claim.key.name).is_some());
    claims.filter(|claim| made(claim) || named.contains(&claim.key)).collect()
}

/// Claims by retention policy, volumes by reclaim policy.
fn follow_volumes(state: &State<'_>, object: &Object, propagation: Propagation, found: &mut Vec<(Key, Cause)>) {
    if deletes_when_deleted(object) && propagation != Propagation::Orphan {
        for claim in state.list(&Kind::new("", "PersistentVolumeClaim"), Some(&object.key.ns)) {
            if navigate::claim_ordinal(object, &claim.key.name).is_some() && !has_another_owner(state, object, claim) {
                found.push((claim.key.clone(), Cause::Retention));
            }
        }
    }
    if object.key.kind.is("PersistentVolumeClaim")
        && let Some(volume) = navigate::volume(state, object)
    {
        let policy = volume.val().str_at(&["spec", "persistentVolumeReclaimPolicy"]);
        if policy.is_some_and(|p| &**p == "Delete") {
            found.push((volume.key.clone(), Cause::Reclaimed));
        }
    }
}

/// Dependents by owner reference: orphaned, kept by another owner, or collected.
fn follow_owner(state: &mut State<'_>, owner: &Object, propagation: Propagation, found: &mut Vec<(Key, Cause)>) {
    let dependents: Vec<_> = state.owned_by(&owner.uid).into_iter().cloned().collect();
    for dependent in dependents {
        if dependent.in_deletion_closure {
            continue;
        }
        if navigate::is_never_collected(state, &dependent) {
            continue;
        }
        let kept = dependent.owners().iter().any(|o| o.uid != owner.uid && keeps(state, &dependent, o));
        if propagation == Propagation::Orphan || kept {
            state.put(dependent.without_owner(&owner.uid));
        } else {
            found.push((dependent.key.clone(), Cause::Collected));
        }
    }
}

/// Whether this owner keeps the dependent from being collected. An owner of a kind that was not read may or may not be
/// there; it is taken to keep nothing, so that the loss is among the futures.
fn keeps(state: &State<'_>, dependent: &Object, owner: &Owner) -> bool {
    navigate::owner_object(state, dependent, owner).is_some_and(|solid| !solid.in_deletion_closure)
}

/// What may go after an object that goes: its dependents, and all else that [`cascade`] would take along with it.
pub fn followers(state: &State<'_>, object: &Object) -> Vec<Key> {
    let mut found: Vec<(Key, Cause)> = Vec::new();
    follow_scope(state, object, &mut found);
    follow_adapter(state, object, &mut found);
    follow_volumes(state, object, Propagation::Background, &mut found);
    let mut followers: Vec<Key> = found.into_iter().map(|(key, _)| key).collect();
    followers.extend(state.owned_by(&object.uid).into_iter().map(|o| o.key.clone()));
    if navigate::deletes_when_scaled(object) {
        let claims = state.list(&Kind::new("", "PersistentVolumeClaim"), Some(&object.key.ns)).into_iter();
        let given = claims.filter(|claim| navigate::gives_up(object, &claim.key.name));
        followers.extend(given.map(|o| o.key.clone()));
    }
    followers
}

/// Whether an object that no request touched is about to go all the same: its namespace is being deleted, every owner it
/// names is gone or going (`garbagecollector.go`, `attemptToDeleteItem`), or something else is that takes it along.
pub fn expected_to_go(state: &State<'_>, object: &Object) -> bool {
    Expected::new(state).goes(object)
}

/// Why such an object goes, in words.
pub fn why_expected(state: &State<'_>, object: &Object) -> &'static str {
    let expected = Expected::new(state);
    if object.terminating() {
        "nothing holds it any more, its deletion is completed"
    } else if !object.key.ns.is_empty() && expected.persistent_map(&object.key.ns) {
        "its namespace is being deleted"
    } else if expected.collected(object, OWNER_DEPTH_MAX) {
        "no owner of it is left, the garbage collector deletes it"
    } else {
        "it goes with what is being deleted"
    }
}

/// [`expected_to_go`] for many objects of a state.
pub struct Expected<'s, 'a> {
    state: &'s State<'a>,
    /// The namespace that was asked for last, and whether it goes: objects mostly come by namespace.
    last: RefCell<Option<(Str, bool)>>,
    /// Whether only owners and namespaces are followed.
    by_owners: bool,
}

/// The deletions that take along more than what names the deleted object as an owner.
#[derive(Debug, Default)]
pub struct UnderWay {
    /// Custom resources with an adapter.
    custom: Vec<Arc<Object>>,
    /// The kinds whose definitions go.
    kinds: BTreeSet<Kind>,
}

impl<'s, 'a> Expected<'s, 'a> {
    /// For the objects of this state.
    pub fn new(state: &'s State<'a>) -> Self {
        Self { state, last: RefCell::default(), by_owners: false }
    }

    /// Whether this one goes.
    pub fn goes(&self, object: &Object) -> bool {
        self.going(object, OWNER_DEPTH_MAX)
    }

    /// Whether nothing keeps an object from being collected: it names owners, and none of them is there, or they go for
    /// the same reason. What waits for a deletion that finalizers hold may wait for ever.
    pub fn surely_goes(&self, object: &Object) -> bool {
        self.surely(object, OWNER_DEPTH_MAX)
    }

    fn surely(&self, object: &Object, depth: usize) -> bool {
        let mut owners = object.owners().iter();
        depth > 0
            && owners.len() > 0
            && !navigate::is_never_collected(self.state, object)
            && owners.all(|owner| {
                !self.state.base().unknown().contains(&owner.kind.kind)
                    && navigate::owner_object(self.state, object, owner)
                        .is_none_or(|solid| solid.finalizers().next().is_none() && self.surely(solid, depth - 1))
            })
    }

    fn going(&self, object: &Object, depth: usize) -> bool {
        if !object.key.ns.is_empty() && self.persistent_map(&object.key.ns) {
            return true;
        }
        depth > 0 && (self.collected(object, depth) || (!self.by_owners && self.follows(object, depth)))
    }

    /// Whether the garbage collector takes an object: it names owners, and none of them stays.
    fn collected(&self, object: &Object, depth: usize) -> bool {
        let mut owners = object.owners().iter();
        owners.len() > 0
            && !navigate::is_never_collected(self.state, object)
            && owners.all(|owner| {
                if self.state.base().unknown().contains(&owner.kind.kind) {
                    return false;
                }
                let Some(solid) = navigate::owner_object(self.state, object, owner) else { return true };
                (!solid.live() && !orphans(solid))
                    || (solid.key.kind.is("Pod") && navigate::goes_with_pod(self.state, solid, object))
                    || self.going(solid, depth - 1)
            })
    }

    /// Whether an object goes after one that is no owner of it: what [`cascade`] would take along, asked from the other
    /// side and of the deletions that are under way.
    fn follows(&self, object: &Object, depth: usize) -> bool {
        let under_way = self.under_way();
        let kind = &object.key.kind;
        let ends = |other: &Object| !other.live() || self.going(other, depth - 1);
        // what an operator deletes it deletes by requests, which are judged: where somebody uses it, or wants it, it is not
        // taken to go; of pods, nothing but what all have that are alike decides
        let unused = || navigate::live_referrers(self.state, object).is_empty();
        let wanted = || navigate::parents(self.state, object).into_iter().any(|parent| !ends(parent));
        let listed = |custom: &&Arc<Object>| {
            let facts = self.state.adapter(custom).filter(|facts| facts.cascades && !kind.is("Pod"));
            let children = facts.and_then(|facts| facts.children.clone()).unwrap_or_default();
            children.iter().any(|child| child.means(&object.key)) && !wanted() && unused()
        };
        if under_way.kinds.contains(kind) || under_way.custom.iter().any(|custom| listed(&custom)) {
            return true;
        }
        if kind.is("PersistentVolumeClaim") {
            return self.given_away(object, depth);
        }
        if kind.is("PersistentVolume") {
            let policy = object.val().str_at(&["spec", "persistentVolumeReclaimPolicy"]);
            return policy.is_some_and(|p| &**p == "Delete")
                && navigate::claim_of(self.state, object).is_some_and(|claim| ends(claim));
        }
        let account = || object.annotation("kubernetes.io/service-account.name");
        let its_account = |name: &Str| self.state.get(&Key::of("ServiceAccount", &object.key.ns, name)).cloned();
        kind.is("Secret")
            && account().is_some_and(|name| {
                is_token_of(object, name) && its_account(name).is_some_and(|account| ends(&account))
            })
    }

    /// Whether a claim goes with its StatefulSet, with the pod of an ordinal that the set gives up, or with its custom
    /// resource.
    fn given_away(&self, claim: &Object, depth: usize) -> bool {
        let by_operator = self.under_way().custom.iter().filter(|custom| custom.key.ns == claim.key.ns).any(|custom| {
            let facts = self.state.adapter(custom).filter(|facts| facts.deletes_volumes);
            facts.is_some_and(|facts| match &facts.claim_selector {
                Some(selector) => selector.matches(claim.labels()),
                None => claims_below(self.state, custom, &facts).iter().any(|below| below.key == claim.key),
            })
        });
        let by_operator = by_operator && navigate::live_referrers(self.state, claim).is_empty();
        // what a set that a request deletes takes along is marked: it may orphan its claims
        let there = || self.state.list(&Kind::new("apps", "StatefulSet"), Some(&claim.key.ns)).into_iter();
        let sets = || there().chain(self.ending().filter(|o| o.key.kind.is("StatefulSet") && o.key.ns == claim.key.ns));
        let ends =
            |set: &Object| !set.in_deletion_closure && ((!set.live() && !orphans(set)) || self.going(set, depth - 1));
        let has_pod = |set: &Object, ordinal: i64| {
            let pod = Key::of("Pod", &set.key.ns, &format!("{}-{ordinal}", set.key.name));
            self.state.get(&pod).is_some_and(|pod| navigate::goes_with_pod(self.state, pod, claim))
        };
        by_operator
            || sets().any(|set| {
                navigate::claim_ordinal(set, &claim.key.name).is_some_and(|ordinal| {
                    ((deletes_when_deleted(set) && ends(set))
                        || (navigate::gives_up(set, &claim.key.name) && has_pod(set, ordinal)))
                        && !has_another_owner(self.state, set, claim)
                })
            })
    }

    /// What was being deleted before, pods aside; what followed it when it is gone follows still.
    fn ending(&self) -> impl Iterator<Item = &Arc<Object>> {
        let before = self.state.base().ending().into_iter();
        before.map(|object| self.state.get(&object.key).unwrap_or(object))
    }

    fn under_way(&self) -> &'s UnderWay {
        self.state.under_way(|| self.find_under_way())
    }

    fn find_under_way(&self) -> UnderWay {
        let state = self.state;
        let definitions = Kind::new("apiextensions.k8s.io", "CustomResourceDefinition");
        let adapted = state.base().adapters().kinds();
        let mut found = UnderWay::default();
        let by_owners = Expected { by_owners: true, ..Self::new(state) };
        // what followed one that a request deletes is marked, unless it was written since; what was without owners before is
        // so whatever is written
        let before = State::new(state.base());
        let by_owners_before = Expected { by_owners: true, ..Expected::new(&before) };
        let is_written = |object: &Arc<Object>| match before.get(&object.key) {
            None => true,
            Some(known) if Arc::ptr_eq(&known.body, &object.body) => false,
            Some(known) => !object.live() || !by_owners_before.collected(known, OWNER_DEPTH_MAX),
        };
        let changed =
            |kind: &Kind| state.changed_keys(kind).filter_map(|key| state.get(key)).filter(|o| is_written(o)).cloned();
        // what goes since a request is among the changed objects, as far as it has an adapter or defines a kind
        let mut open: Vec<Arc<Object>> = self.ending().cloned().collect();
        open.extend(adapted.iter().chain([&definitions]).flat_map(changed));
        let mut seen: BTreeSet<Key> = BTreeSet::new();
        while let Some(object) = open.pop() {
            let kind = &object.key.kind;
            let goes = !object.live() || found.kinds.contains(kind) || by_owners.collected(&object, OWNER_DEPTH_MAX);
            if !goes || !seen.insert(object.key.clone()) {
                continue;
            }
            if let Some(defined) = navigate::defined_kind(&object).filter(|_| *kind == definitions) {
                open.extend(state.list(&defined, None).into_iter().filter(|_| adapted.contains(&defined)).cloned());
                found.kinds.insert(defined);
            }
            open.extend(state.owned_by(&object.uid).into_iter().filter(|o| adapted.contains(&o.key.kind)).cloned());
            if adapted.contains(&object.key.kind) {
                found.custom.push(object);
            }
        }
        found
    }

    /// Whether a namespace is being deleted, or gone, or is collected.
    fn persistent_map(&self, ns: &Str) -> bool {
        if let Some((last, persistent_map)) = &*self.last.borrow()
            && last == ns
        {
            return *persistent_map;
        }
        let key = Key::global("Namespace", ns);
        let is_gone = || self.state.base().get(&key).is_some();
        let goes = |ns: &Arc<Object>| !ns.live() || self.collected(ns, OWNER_DEPTH_MAX);
        let persistent_map = self.state.get(&key).map_or_else(is_gone, goes);
        self.last.replace(Some((ns.clone(), persistent_map)));
        persistent_map
    }
}

/// Whether an object that is being deleted leaves its dependents behind.
fn orphans(object: &Object) -> bool {
    object.finalizers().any(|f| &**f == "orphan")
}

/// Whether a StatefulSet's policy is to delete its claims with it.
fn deletes_when_deleted(set: &Object) -> bool {
    let policy = ["spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"];
    set.key.kind.is("StatefulSet") && set.val().str_at(&policy).is_some_and(|p| &**p == "Delete")
}
