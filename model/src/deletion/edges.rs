//! In which ways an object goes with another. Each is declared once, with both ends: what goes along with an object, and
//! what an object goes along with.
//!
//! Sources: `pkg/controller/garbagecollector/garbagecollector.go` (an object goes when none of its owners is left; a
//! dangling reference beside a solid one is dropped), `pkg/controller/namespace/deletion`,
//! `apiextensions .../finalizer/crd_finalizer.go`, `pkg/controller/podgc`, KEP-1847 (StatefulSet claim retention),
//! `pkg/controller/volume/persistentvolume` (reclaim), `pkg/controller/serviceaccount/tokens_controller.go` (`deleteTokens`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::adapter::AdapterFacts;
use crate::change::Propagation;
use crate::controllers::statefulset;
use crate::fields;
use crate::kinds::{Kind, KindTraits, TakesAlong};
use crate::navigate;
use crate::object::{Key, Object, Owner};
use crate::references::references;
use crate::state::{State, UnderWay};
use crate::steps;
use crate::value::Str;

/// One way in which an object goes with another.
pub(super) struct Edge {
    /// Why the dependent goes.
    pub(super) cause: Cause,
    /// What sets it off.
    pub(super) after: After,
    /// How sure it is.
    pub(super) certainty: Certainty,
    /// Which objects take something along.
    from: From,
    /// The kind of what goes along, where it is always the same.
    to: Option<&'static str>,
    /// What goes along with such an object.
    dependents: for<'s> fn(&'s State<'_>, &Going<'_>) -> Vec<&'s Arc<Object>>,
    /// Whether an object goes along with such an object, as the predicate tells whether that ends. What its dependents do
    /// not name is found among the deletions under way.
    goes: fn(&State<'_>, &UnderWay, &Object, &Ends<'_>) -> bool,
}

impl Edge {
    /// What goes along with an object.
    pub(super) fn dependents<'s>(&self, state: &'s State<'_>, going: &Going<'_>) -> Vec<&'s Arc<Object>> {
        let starts = match self.from {
            From::Kind(takes_along) => going.takes_along == takes_along,
            From::Adapted => going.facts.is_some(),
            From::Any => true,
        };
        if starts { (self.dependents)(state, going) } else { Vec::new() }
    }

    /// Whether an object goes along with another, as `ends` tells whether that one goes.
    pub(super) fn goes(&self, state: &State<'_>, under_way: &UnderWay, object: &Object, ends: &Ends<'_>) -> bool {
        self.to.is_none_or(|kind| object.key.kind.is(kind)) && (self.goes)(state, under_way, object, ends)
    }
}

/// Which objects an edge starts from.
enum From {
    /// Those of the kinds that take this along.
    Kind(TakesAlong),
    /// Custom resources with an adapter.
    Adapted,
    /// All.
    Any,
}

/// What sets an edge off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// The deletion of an object.
    Deletion,
    /// A deletion that does not leave the object's dependents behind.
    Collection,
    /// A write: the object wants less than before.
    ScaleDown,
}

/// How sure it is that the dependent goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Certainty {
    /// A controller of Kubernetes does it, and is not refused.
    Sure,
    /// An operator asks for it, and each of its requests is judged: it is not taken to go where somebody uses it.
    UnlessUsed,
    /// The same, nor where another custom resource wants it. Nothing of this tells pods apart: they are left out.
    UnlessUsedOrWanted,
}

/// What an object goes along with, as it is found from there.
pub(super) enum End<'s> {
    /// An object, which may go.
    There(&'s Object),
    /// One that is gone, or goes for sure, or does what sets the edge off.
    Gone,
    /// This owner, which may be there or not: its kind was not read.
    Unread(&'s Owner),
}

/// Tells whether the other end goes.
type Ends<'e> = dyn for<'s> Fn(End<'s>) -> bool + 'e;

/// An object that goes.
pub(super) struct Going<'o> {
    object: &'o Object,
    propagation: Propagation,
    takes_along: TakesAlong,
    facts: Option<Arc<AdapterFacts>>,
}

impl<'o> Going<'o> {
    pub(super) fn new(state: &State<'_>, object: &'o Object, propagation: Propagation) -> Self {
        let takes_along = object.key.kind.traits().map_or(TakesAlong::Dependents, |traits| traits.takes_along);
        Self { object, propagation, takes_along, facts: state.adapter(object) }
    }
}

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

/// The edges that neither a namespace nor an owner reference makes, in the order in which a deletion follows them.
pub(super) static EDGES: [Edge; 8] =
    [INSTANCES, PODS_ON_NODE, TOKENS, CHILDREN, OPERATOR_CLAIMS, RETAINED_CLAIMS, GIVEN_UP, VOLUME];

/// All edges but [`OWNED`].
pub(super) fn beside_owned() -> impl Iterator<Item = &'static Edge> {
    std::iter::once(&CONTENTS).chain(&EDGES)
}

/// What is in a namespace.
pub(super) const CONTENTS: Edge = Edge {
    cause: Cause::Namespace,
    after: After::Deletion,
    certainty: Certainty::Sure,
    from: From::Kind(TakesAlong::Contents),
    to: None,
    dependents: |state, going| state.in_namespace(&going.object.key.name),
    goes: |state, _, object, ends| {
        let namespace = Key::global("Namespace", &object.key.ns);
        match state.get(&namespace) {
            Some(namespace) => ends(End::There(namespace)),
            None => state.base().get(&namespace).is_some() && ends(End::Gone),
        }
    },
};

/// The custom resources of a definition.
const INSTANCES: Edge = Edge {
    cause: Cause::Definition,
    after: After::Deletion,
    certainty: Certainty::Sure,
    from: From::Kind(TakesAlong::Instances),
    to: None,
    dependents: |state, going| navigate::instances(state, going.object),
    // which definition it is makes no difference
    goes: |_, under_way, object, ends| under_way.kinds.contains(&object.key.kind) && ends(End::Gone),
};

/// The pods on a node. Whether one is expected to go is not told by this: its node may be lost in more ways than by a
/// deletion (`effects/hazard.rs`).
const PODS_ON_NODE: Edge = Edge {
    cause: Cause::NodeGone,
    after: After::Deletion,
    certainty: Certainty::Sure,
    from: From::Kind(TakesAlong::Pods),
    to: Some("Pod"),
    dependents: |state, going| state.pods_on(&going.object.key.name),
    goes: |_, _, _, _| false,
};

/// The Secrets with tokens of a ServiceAccount.
const TOKENS: Edge = Edge {
    cause: Cause::Token,
    after: After::Deletion,
    certainty: Certainty::Sure,
    from: From::Kind(TakesAlong::Tokens),
    to: Some("Secret"),
    dependents: |state, going| {
        let account = &going.object.key;
        let secrets = state.list(&Kind::new("", "Secret"), Some(&account.ns)).into_iter();
        secrets.filter(|secret| account_of(secret).is_some_and(|name| *name == account.name)).collect()
    },
    goes: |state, _, object, ends| {
        let named = account_of(object).map(|name| Key::of("ServiceAccount", &object.key.ns, name));
        named.and_then(|account| state.get(&account)).is_some_and(|account| ends(End::There(account)))
    },
};

/// What an operator makes for a custom resource.
const CHILDREN: Edge = Edge {
    cause: Cause::Operator,
    after: After::Deletion,
    certainty: Certainty::UnlessUsedOrWanted,
    from: From::Adapted,
    to: None,
    dependents: |state, going| {
        let Some(facts) = going.facts.as_ref().filter(|facts| facts.cascades) else { return Vec::new() };
        match &facts.children {
            Some(children) => children.iter().filter_map(|key| state.resolve(key)).collect(),
            None => state.owned_by(&going.object.uid),
        }
    },
    // nothing but what all have that are alike decides about pods
    goes: |_, under_way, object, ends| {
        !object.key.kind.is("Pod") && under_way.is_listed(&object.key) && ends(End::Gone)
    },
};

/// The claims that an operator deletes with a custom resource.
const OPERATOR_CLAIMS: Edge = Edge {
    cause: Cause::Operator,
    after: After::Deletion,
    certainty: Certainty::UnlessUsed,
    from: From::Adapted,
    to: Some("PersistentVolumeClaim"),
    dependents: |state, going| match going.facts.as_ref().filter(|facts| facts.deletes_volumes) {
        Some(facts) => match &facts.claim_selector {
            Some(selector) => state.matching(&claims_kind(), &going.object.key.ns, selector),
            None => claims_below(state, going.object, facts),
        },
        None => Vec::new(),
    },
    goes: |state, under_way, object, ends| {
        let takes = |custom: &Object, facts: &AdapterFacts| match &facts.claim_selector {
            Some(selector) => selector.matches(object.labels()),
            None => claims_below(state, custom, facts).iter().any(|below| below.key == object.key),
        };
        let mut here = under_way.without_claims(&object.key.ns).iter();
        here.any(|(custom, facts)| takes(custom, facts) && ends(End::Gone))
    },
};

/// The claims of a StatefulSet whose retention policy says so. What a set that a request deletes takes along is marked: it
/// may orphan its claims.
const RETAINED_CLAIMS: Edge = Edge {
    cause: Cause::Retention,
    after: After::Collection,
    certainty: Certainty::Sure,
    from: From::Kind(TakesAlong::Claims),
    to: Some("PersistentVolumeClaim"),
    dependents: |state, going| {
        let set = going.object;
        if going.propagation == Propagation::Orphan || !fields::deletes_when_deleted(set) {
            return Vec::new();
        }
        claims_in(state, set).into_iter().filter(|claim| loses(state, set, claim)).collect()
    },
    goes: |state, _, object, ends| {
        let takes =
            |set: &Object| !set.in_deletion_closure && fields::deletes_when_deleted(set) && loses(state, set, object);
        sets_of(state, object).into_iter().any(|set| takes(set) && ends(End::There(set)))
    },
};

/// The claims of the ordinals that a StatefulSet has given up, each with its pod, which owns them by the time that it goes: what
/// followed one when it is gone follows still.
const GIVEN_UP: Edge = Edge {
    cause: Cause::Retention,
    after: After::ScaleDown,
    certainty: Certainty::Sure,
    from: From::Kind(TakesAlong::Claims),
    to: Some("PersistentVolumeClaim"),
    dependents: |state, going| {
        if !fields::deletes_when_scaled(going.object) {
            return Vec::new();
        }
        let claims = claims_in(state, going.object).into_iter();
        claims.filter(|claim| fields::gives_up(going.object, &claim.key.name)).collect()
    },
    goes: |state, _, object, ends| {
        let pod_goes = |set: &Object| {
            let ordinal = fields::claim_ordinal(set, &object.key.name);
            let pod = ordinal.map(|i| Key::of("Pod", &set.key.ns, &format!("{}-{i}", set.key.name)));
            let pod = pod.and_then(|pod| state.get(&pod).or_else(|| state.base().get(&pod)));
            pod.is_some_and(|pod| navigate::goes_with_pod(state, pod, object))
        };
        let takes = |set: &Object| {
            fields::gives_up(set, &object.key.name) && pod_goes(set) && !has_another_owner(state, set, object)
        };
        sets_of(state, object).into_iter().any(|set| takes(set) && ends(End::Gone))
    },
};

/// The volume of a claim, if its reclaim policy says so.
const VOLUME: Edge = Edge {
    cause: Cause::Reclaimed,
    after: After::Deletion,
    certainty: Certainty::Sure,
    from: From::Kind(TakesAlong::Volume),
    to: Some("PersistentVolume"),
    dependents: |state, going| navigate::volume(state, going.object).into_iter().filter(|v| is_reclaimed(v)).collect(),
    goes: |state, _, object, ends| {
        is_reclaimed(object) && navigate::claims_of(state, object).into_iter().any(|claim| ends(End::There(claim)))
    },
};

/// What names an object as an owner. It goes after the last of its owners.
pub(super) const OWNED: Edge = Edge {
    cause: Cause::Collected,
    after: After::Collection,
    certainty: Certainty::Sure,
    from: From::Any,
    to: None,
    dependents: |state, going| state.owned_by(&going.object.uid),
    goes: |state, _, object, ends| {
        let owners = object.owners();
        // where one that was read stays, the others make no difference
        let read = || owners.iter().filter(|owner| !is_unread(state, object, owner));
        let unread = || owners.iter().filter(|owner| is_unread(state, object, owner));
        let end = |owner| navigate::owner_object(state, object, owner).map_or(End::Gone, |owner| End::There(owner));
        !owners.is_empty()
            && !navigate::is_never_collected(state, object)
            && read().all(|owner| ends(end(owner)))
            && unread().all(|owner| ends(End::Unread(owner)))
    },
};

/// What the operator of a custom resource deletes with it, as its adapter says, in the order of its keys: what names an owner
/// the garbage collector takes.
pub fn cascaded<'s>(state: &'s State<'_>, object: &Object) -> Vec<&'s Arc<Object>> {
    let going = Going::new(state, object, Propagation::Background);
    let mut found: Vec<&Arc<Object>> =
        [&CHILDREN, &OPERATOR_CLAIMS].into_iter().flat_map(|edge| edge.dependents(state, &going)).collect();
    found.retain(|o| !o.owners().iter().any(|owner| owner.uid == object.uid));
    found.sort_by(|a, b| a.key.cmp(&b.key));
    found.dedup_by(|a, b| a.key == b.key);
    found
}

/// What may go after an object that goes, by any edge.
pub fn followers(state: &State<'_>, object: &Object) -> Vec<Key> {
    let going = Going::new(state, object, Propagation::Background);
    let edges = beside_owned().chain([&OWNED]);
    edges.flat_map(|edge| edge.dependents(state, &going)).map(|dependent| dependent.key.clone()).collect()
}

/// Whether an object may take objects of a kind along that do not name it as an owner: one that goes, or else one that wants
/// less than before.
pub fn may_take_along(state: &State<'_>, object: &Object, goes: bool, kind: &str) -> bool {
    let going = Going::new(state, object, Propagation::Background);
    let starts = |edge: &Edge| match edge.from {
        From::Kind(takes_along) => going.takes_along == takes_along,
        From::Adapted => going.facts.as_ref().is_some_and(|facts| facts.may_delete(kind)),
        From::Any => false,
    };
    let concerns = |edge: &&Edge| edge.to.is_none_or(|to| to == kind) && goes != (edge.after == After::ScaleDown);
    beside_owned().filter(concerns).any(starts)
}

/// Whether deleting objects of a kind removes other objects than those that name them as owners, pods on a node aside.
pub fn takes_along(state: &State<'_>, kind: &Kind) -> bool {
    kind.has(KindTraits::leads) || state.base().adapters().kinds().contains(kind)
}

/// The claims that a StatefulSet deletes because a write took their ordinals away, each with the set: under the policy
/// `whenScaled: Delete` it makes the pod that goes an owner of its claims (`pkg/controller/statefulset/
/// stateful_set_utils.go`, `updateClaimOwnerRefForSetAndPod`). A claim whose pod was never made stays in truth. Where the
/// policy is new, it goes for the pods that are still there of ordinals given up before (`stateful_set_control.go`,
/// `updateStatefulSet`). Those of a set that is being deleted as well, if the write makes `whenDeleted` Delete.
pub fn given_up(state: &State<'_>, old: &Object, new: &Object) -> Vec<(Key, Key)> {
    let deleted = |set: &Object| fields::deletes_when_deleted(set);
    if !new.live() && deleted(new) && !deleted(old) && !fields::orphans(new) {
        let lost = claims_in(state, new).into_iter().filter(|claim| loses(state, new, claim));
        return lost.map(|claim| (claim.key.clone(), new.key.clone())).collect();
    }
    if !fields::deletes_when_scaled(new) || !new.live() {
        return Vec::new();
    }
    // until such a pod has gone, it is looked at with each pass over the set
    let of_new_policy = !fields::deletes_when_scaled(old);
    let pods = if of_new_policy { navigate::pods_owned_by(state, new) } else { Vec::new() };
    let goes_along = |claim: &Object| pods.iter().any(|pod| navigate::goes_with_pod(state, pod, claim));
    let lost = claims_in(state, new).into_iter().filter(|claim| {
        !fields::wants_claim(new, &claim.key.name)
            && (fields::wants_claim(old, &claim.key.name) || goes_along(claim))
            && !has_another_owner(state, new, claim)
    });
    lost.map(|claim| (claim.key.clone(), new.key.clone())).collect()
}

/// Whether one of these owners keeps the dependent from being collected.
pub(super) fn keeps<'o>(
    state: &State<'_>,
    dependent: &Object,
    owners: impl Iterator<Item = &'o Owner> + Clone,
) -> bool {
    let solid = |owner| navigate::owner_object(state, dependent, owner).is_some_and(|solid| !solid.in_deletion_closure);
    let unread = |owner: &&Owner| is_unread(state, dependent, owner);
    owners.clone().any(solid) || owners.filter(unread).any(|owner| state.base().supposes_there(owner))
}

/// What owners of kinds that were not read may take along where these are supposed to go with what is deleted: by namespace,
/// looked for once in a cascade.
#[derive(Default)]
pub(super) struct Unseen(BTreeMap<Str, Vec<Key>>);

impl Unseen {
    /// What the garbage collector takes so after an object that is deleted: any such owner in its namespace may name it as an
    /// owner, and anywhere if it is in none, but not its own owners.
    pub(super) fn after(&mut self, state: &State<'_>, object: &Object) -> Vec<Key> {
        let taken = state.base().supposed_taken();
        if taken.is_empty() {
            return Vec::new();
        }
        let ns = &object.key.ns;
        let near = self.0.entry(ns.clone()).or_insert_with(|| owned_by_kinds(state, &taken, ns));
        let staying = |key: &Key| state.get(key).filter(|dependent| !dependent.in_deletion_closure);
        near.retain(|key| staying(key).is_some());
        let is_own = |owner: &Owner| object.owners().iter().any(|own| own.uid == owner.uid);
        let goes = |dependent: &Object| {
            let is_taken =
                |owner: &&Owner| taken.contains(&owner.kind) && !is_own(owner) && is_unread(state, dependent, owner);
            dependent.owners().iter().any(|owner| is_taken(&owner))
                && !navigate::is_never_collected(state, dependent)
                && !keeps(state, dependent, dependent.owners().iter().filter(|owner| !is_taken(owner)))
        };
        near.iter().filter(|key| staying(key).is_some_and(|dependent| goes(dependent))).cloned().collect()
    }
}

/// What names an owner of one of these kinds, in a namespace, or anywhere if none is named.
fn owned_by_kinds(state: &State<'_>, kinds: &BTreeSet<&Kind>, ns: &str) -> Vec<Key> {
    let near = match ns.is_empty() {
        true => state.kinds().iter().flat_map(|kind| state.list(kind, None)).collect(),
        false => state.in_namespace(ns),
    };
    steps::count_items(near.len());
    let is_owned = |object: &&Arc<Object>| object.owners().iter().any(|owner| kinds.contains(&owner.kind));
    near.into_iter().filter(is_owned).map(|object| object.key.clone()).collect()
}

/// Whether it is unknown whether an owner is there, since its kind was not read.
fn is_unread(state: &State<'_>, dependent: &Object, owner: &Owner) -> bool {
    let unknown = state.base().unknown();
    unknown.contains(&owner.kind.kind) && navigate::owner_object(state, dependent, owner).is_none()
}

/// Whether a claim of a StatefulSet has an owner, beside the set and its pods, that keeps it: a policy makes the set or
/// the pod an owner of the claim, and only where nothing else controls it (`pkg/controller/statefulset/
/// stateful_set_utils.go`, `hasUnexpectedController`).
fn has_another_owner(state: &State<'_>, set: &Object, claim: &Object) -> bool {
    let others = claim.owners().iter().filter(|owner| {
        let is_pod = owner.kind.is("Pod") && statefulset::pod_ordinal(set, &owner.name).is_some();
        owner.uid != set.uid && !is_pod
    });
    keeps(state, claim, others)
}

/// Whether a claim is one that a StatefulSet makes, and nothing else keeps it.
fn loses(state: &State<'_>, set: &Object, claim: &Object) -> bool {
    fields::claim_ordinal(set, &claim.key.name).is_some() && !has_another_owner(state, set, claim)
}

/// The StatefulSets of a claim's namespace, with those that were being deleted before: what followed one when it is gone
/// follows still.
fn sets_of<'s>(state: &'s State<'_>, claim: &Object) -> Vec<&'s Arc<Object>> {
    let mut sets = state.list(&Kind::new("apps", "StatefulSet"), Some(&claim.key.ns));
    sets.extend(ending(state).filter(|o| o.key.kind.is("StatefulSet") && o.key.ns == claim.key.ns));
    sets
}

/// What was being deleted before, pods aside.
pub(super) fn ending<'s>(state: &'s State<'_>) -> impl Iterator<Item = &'s Arc<Object>> {
    state.base().ending().into_iter().map(|object| state.get(&object.key).unwrap_or(object))
}

fn claims_kind() -> Kind {
    Kind::new("", "PersistentVolumeClaim")
}

fn claims_in<'s>(state: &'s State<'_>, object: &Object) -> Vec<&'s Arc<Object>> {
    state.list(&claims_kind(), Some(&object.key.ns))
}

/// The claims that the StatefulSets of a custom resource make, and that the pods that it selects name.
fn claims_below<'s>(state: &'s State<'_>, custom: &Object, facts: &AdapterFacts) -> Vec<&'s Arc<Object>> {
    let sets = navigate::child_workloads(state, custom).into_iter().filter(|o| o.key.kind.is("StatefulSet"));
    let sets: Vec<_> = sets.collect();
    let pods = facts.selector.as_ref().map(|s| state.pods_matching(&custom.key.ns, s)).unwrap_or_default();
    let named = pods.into_iter().flat_map(|pod| references(pod, state.base().adapters().as_ref()));
    let named: BTreeSet<Key> = named.map(|reference| reference.target).collect();
    let made = |claim: &Object| sets.iter().any(|set| fields::claim_ordinal(set, &claim.key.name).is_some());
    claims_in(state, custom).into_iter().filter(|claim| made(claim) || named.contains(&claim.key)).collect()
}

/// The ServiceAccount that a Secret holds a token of.
fn account_of(secret: &Object) -> Option<&Str> {
    let is_token = secret.val().str_at(&["type"]).is_some_and(|t| &**t == "kubernetes.io/service-account-token");
    if is_token { secret.annotation("kubernetes.io/service-account.name") } else { None }
}

/// Whether a volume is destroyed once its claim is gone.
fn is_reclaimed(volume: &Object) -> bool {
    volume.val().str_at(&["spec", "persistentVolumeReclaimPolicy"]).is_some_and(|policy| &**policy == "Delete")
}
