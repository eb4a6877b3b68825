//! What a deletion takes along: garbage collection, namespaces, definitions, adapters, volumes, pods of a lost node, tokens.
//!
//! The closure is a fixpoint and concrete. Everything in it is marked `leaving`: some future no longer has it, and no
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
pub type Leaving = BTreeMap<Key, (Cause, Key)>;

/// Marks in `state` everything that these deletions take along, and what follows from these claims that a StatefulSet
/// gave up ([`given_up`]), and adds it to `leaving`; but no more than `most` objects beside those deleted. False when
/// there are more.
///
/// What is left unmarked stays: such a state is one on the way, before the controllers have come so far. Nothing is left
/// out where dependents are orphaned, since they stay only once that is done.
pub fn cascade(
    state: &mut State<'_>,
    deletions: &[(Key, Propagation)],
    released: &[(Key, Key)],
    leaving: &mut Leaving,
    most: usize,
) -> bool {
    let orphans = deletions.iter().any(|(_, propagation)| *propagation == Propagation::Orphan);
    let mut left = if orphans { usize::MAX } else { most };
    let mut queue: VecDeque<(Key, Propagation)> = VecDeque::new();
    for (key, propagation) in deletions {
        mark(state, leaving, key, Cause::Requested, key);
        queue.push_back((key.clone(), *propagation));
    }
    for (claim, set) in released {
        if mark(state, leaving, claim, Cause::Retention, set) {
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
        if found.len() > left.saturating_add(leaving.len()) {
            return false;
        }
        for (next, cause) in found {
            if left == 0 {
                return false;
            }
            if mark(state, leaving, &next, cause, &key) {
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
/// `updateStatefulSet`).
pub fn given_up(state: &State<'_>, old: &Object, new: &Object) -> Vec<(Key, Key)> {
    if !navigate::deletes_when_scaled(new) || !new.live() {
        return Vec::new();
    }
    let claims = state.list(&Kind::new("", "PersistentVolumeClaim"), Some(&new.key.ns)).into_iter();
    // until such a pod has gone, it is looked at with each pass over the set
    let of_new_policy = !navigate::deletes_when_scaled(old);
    let pods = if of_new_policy { navigate::pods_owned_by(state, new) } else { Vec::new() };
    let goes_along = |claim: &Object| pods.iter().any(|pod| navigate::goes_with_pod(state, pod, claim));
    let lost = claims.filter(|c| {
        !navigate::wants_claim(new, &c.key.name) && (navigate::wants_claim(old, &c.key.name) || goes_along(c))
    });
    lost.map(|claim| (claim.key.clone(), new.key.clone())).collect()
}

/// Marks one object as leaving; false when it is gone or was marked before.
fn mark(state: &mut State<'_>, leaving: &mut Leaving, key: &Key, cause: Cause, because: &Key) -> bool {
    let Some(object) = state.get(key) else { return false };
    if object.leaving {
        return false;
    }
    let marked = Object { leaving: true, ..(**object).clone() };
    state.put(marked);
    leaving.insert(key.clone(), (cause, because.clone()));
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
        let listed = facts.children.iter().flatten().filter_map(|key| state.meant(key));
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
    let retention = ["spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted"];
    let deletes = object.val().str_at(&retention).is_some_and(|p| &**p == "Delete");
    if object.key.kind.is("StatefulSet") && deletes && propagation != Propagation::Orphan {
        for claim in state.list(&Kind::new("", "PersistentVolumeClaim"), Some(&object.key.ns)) {
            if navigate::claim_ordinal(object, &claim.key.name).is_some() {
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
        if dependent.leaving {
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
    navigate::owner_object(state, dependent, owner).is_some_and(|solid| !solid.leaving)
}

/// Whether an object that no request touched is about to go all the same: its namespace is being deleted, or every
/// owner it names is gone or going (`garbagecollector.go`, `attemptToDeleteItem`).
pub fn expected_to_go(state: &State<'_>, object: &Object) -> bool {
    Expected::new(state).goes(object)
}

/// [`expected_to_go`] for many objects of a state.
pub struct Expected<'s, 'a> {
    state: &'s State<'a>,
    /// The namespace that was asked for last, and whether it goes: objects mostly come by namespace.
    last: RefCell<Option<(Str, bool)>>,
}

impl<'s, 'a> Expected<'s, 'a> {
    /// For the objects of this state.
    pub fn new(state: &'s State<'a>) -> Self {
        Self { state, last: RefCell::default() }
    }

    /// Whether this one goes.
    pub fn goes(&self, object: &Object) -> bool {
        self.going(object, OWNER_DEPTH_MAX)
    }

    fn going(&self, object: &Object, depth: usize) -> bool {
        if !object.key.ns.is_empty() && self.leaves(&object.key.ns) {
            return true;
        }
        if depth == 0 || object.owners().is_empty() {
            return false;
        }
        object.owners().iter().all(|owner| {
            if self.state.base().unknown().contains(&owner.kind.kind) {
                return false;
            }
            let Some(solid) = navigate::owner_object(self.state, object, owner) else { return true };
            let orphans = solid.finalizers().any(|f| &**f == "orphan");
            (!solid.live() && !orphans) || self.going(solid, depth - 1)
        })
    }

    /// Whether a namespace is being deleted, or gone.
    fn leaves(&self, ns: &Str) -> bool {
        if let Some((last, leaves)) = &*self.last.borrow()
            && last == ns
        {
            return *leaves;
        }
        let key = Key::global("Namespace", ns);
        let is_gone = || self.state.base().get(&key).is_some();
        let leaves = self.state.get(&key).map_or_else(is_gone, |ns| !ns.live());
        self.last.replace(Some((ns.clone(), leaves)));
        leaves
    }
}
