//! What goes although no request touches it: backward over the [edges](super::edges), and who stays in use.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::edges::{After, CONTENTS, Certainty, EDGES, Edge, End, OWNED, cascaded, ending};
use crate::fields;
use crate::fields::orphans;
use crate::kinds::Kind;
use crate::navigate::{self, leaves_with_controller};
use crate::object::{Key, Object, Owner};
use crate::state::{State, UnderWay};
use crate::value::Str;

/// How deep a chain of owners is followed.
const OWNER_DEPTH_MAX: usize = 16;

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
    } else if !object.key.ns.is_empty() && expected.namespace_goes(object) {
        "its namespace is being deleted"
    } else if expected.collected(object, OWNER_DEPTH_MAX) {
        "no owner of it is left, the garbage collector deletes it"
    } else {
        "it goes with what is being deleted"
    }
}

/// Whether an object is there to stay, and at work: it goes neither with its controller nor after it.
pub fn stays_in_use(state: &State<'_>, object: &Object) -> bool {
    object.live()
        && !fields::finished(object)
        && !leaves_with_controller(state, object)
        && !expected_to_go(state, object)
}

/// The live objects that need `target` now, in the order of their keys.
///
/// By reference; for a claim also StatefulSets by ordinal, custom resources by claim selector, and workloads whose
/// template names it although they want no pods at the moment. Left out: what is leaving or terminating, what goes with
/// its controller, the pod that takes the claim along when its StatefulSet scales down or that owns it, what is finished
/// (a finished pod mounts nothing, though pvc-protection lets its claim wait for it: `pvc_protection_controller.go`,
/// `podUsesPVC`), and ReplicaSets at 0 that have a controller.
pub fn live_referrers<'s>(state: &'s State<'_>, target: &Object) -> Vec<&'s Arc<Object>> {
    let mut found = navigate::users(state, target, &|user| stays_in_use(state, user));
    // the collector takes a claim after the pod that owns it; a request may at any moment
    let follows =
        |pod: &Object| !target.in_deletion_closure && target.owners().iter().any(|owner| owner.uid == pod.uid);
    found.retain(|o| !(o.key.kind.is("Pod") && follows(o)));
    found
}

/// Whether an object that is being deleted stays for the time being: a claim that is used, a volume that is bound, or a custom
/// resource whose operator has not deleted yet what goes with it. The operator takes the last finalizer off afterwards, by a request that is judged
/// when it comes.
pub fn is_protected(state: &State<'_>, object: &Object) -> bool {
    let awaits = || fields::is_held_by_others(object) && !cascaded(state, object).is_empty();
    object.terminating() && (is_used_claim(state, object) || is_bound_volume(state, object) || awaits())
}

/// Whether a pod on a node uses a claim, and stays (`pkg/controller/volume/pvcprotection/pvc_protection_controller.go`,
/// `isBeingUsed`). That such a pod may go by its controller's doing is left aside.
fn is_used_claim(state: &State<'_>, claim: &Object) -> bool {
    let by_controller = |finalizer: &Str| &**finalizer == "kubernetes.io/pvc-protection";
    let users = || navigate::users(state, claim, &|user| stays_in_use(state, user)).into_iter();
    claim.key.kind.is("PersistentVolumeClaim")
        && claim.finalizers().any(by_controller)
        && users().any(|user| user.key.kind.is("Pod") && !user.node.is_empty())
}

/// Whether a volume is bound to a claim that stays (`pkg/controller/volume/pvprotection/pv_protection_controller.go`,
/// `isBeingUsed`).
fn is_bound_volume(state: &State<'_>, volume: &Object) -> bool {
    let by_controller = |finalizer: &Str| &**finalizer == "kubernetes.io/pv-protection";
    let stays = |claim: &Object| match claim.terminating() {
        true => is_protected(state, claim),
        false => claim.live() && !expected_to_go(state, claim),
    };
    volume.key.kind.is("PersistentVolume")
        && volume.val().str_at(&["status", "phase"]).is_some_and(|phase| &**phase == "Bound")
        && volume.finalizers().any(by_controller)
        && navigate::claims_of(state, volume).into_iter().any(|claim| stays(claim))
}

/// [`expected_to_go`] for many objects of a state.
pub struct Expected<'s, 'a> {
    state: &'s State<'a>,
    /// The namespace that was asked for last, and whether it goes: objects mostly come by namespace.
    last: RefCell<Option<(Str, bool)>>,
    /// Whether only owners and namespaces are followed.
    by_owners: bool,
    /// Whether owners of kinds that were not read count as gone, whatever is supposed of them.
    at_worst: bool,
}

impl<'s, 'a> Expected<'s, 'a> {
    /// For the objects of this state.
    pub fn new(state: &'s State<'a>) -> Self {
        Self { state, last: RefCell::default(), by_owners: false, at_worst: false }
    }

    /// What may go, whether owners of kinds that were not read are there or not.
    pub fn at_worst(state: &'s State<'a>) -> Self {
        Self { at_worst: true, ..Self::new(state) }
    }

    /// Whether this one goes.
    pub fn goes(&self, object: &Object) -> bool {
        self.going(object, OWNER_DEPTH_MAX)
    }

    /// Whether nothing keeps an object from being collected: it names owners, and none of them is there, or they go for
    /// the same reason, or are being deleted. What waits for a deletion that finalizers hold may wait for ever, and a pod for
    /// its node.
    pub fn surely_goes(&self, object: &Object) -> bool {
        self.surely(object, OWNER_DEPTH_MAX)
    }

    /// Whether an owner of a kind that was not read counts as gone.
    fn lacks(&self, owner: &Owner) -> bool {
        self.at_worst || !self.state.base().supposes_there(owner)
    }

    fn surely(&self, object: &Object, depth: usize) -> bool {
        let is_gone_soon = |owner: &Object| owner.terminating() && !owner.key.kind.is("Pod");
        let ends = |end: End<'_>| match end {
            End::There(owner) => {
                owner.finalizers().next().is_none() && (is_gone_soon(owner) || self.surely(owner, depth - 1))
            }
            End::Gone => true,
            End::Unread(owner) => self.lacks(owner),
        };
        depth > 0 && OWNED.goes(self.state, &UnderWay::default(), object, &ends)
    }

    fn going(&self, object: &Object, depth: usize) -> bool {
        if !object.key.ns.is_empty() && self.namespace_goes(object) {
            return true;
        }
        depth > 0 && (self.collected(object, depth) || (!self.by_owners && self.follows(object, depth)))
    }

    /// Whether the garbage collector takes an object: it names owners, and none of them stays.
    fn collected(&self, object: &Object, depth: usize) -> bool {
        self.goes_by(&OWNED, &UnderWay::default(), object, depth)
    }

    /// Whether an object goes after one that is neither its owner nor its namespace.
    fn follows(&self, object: &Object, depth: usize) -> bool {
        let under_way = self.state.under_way(|| self.find_under_way());
        EDGES.iter().any(|edge| self.goes_by(edge, under_way, object, depth) && self.is_done(edge, object, depth))
    }

    /// Whether what is at the other end of an edge takes an object along.
    fn goes_by(&self, edge: &Edge, under_way: &UnderWay, object: &Object, depth: usize) -> bool {
        let deleted = |owner: &Object| match edge.after {
            After::Deletion => !owner.live(),
            After::Collection => !owner.live() && !orphans(owner),
            After::ScaleDown => false,
        };
        let with_pod = |owner: &Object| owner.key.kind.is("Pod") && navigate::goes_with_pod(self.state, owner, object);
        let ends = |end: End<'_>| match end {
            End::There(owner) => deleted(owner) || with_pod(owner) || self.going(owner, depth - 1),
            End::Gone => true,
            End::Unread(owner) => self.lacks(owner),
        };
        edge.goes(self.state, under_way, object, &ends)
    }

    /// Whether nothing keeps back who would delete an object by an edge.
    fn is_done(&self, edge: &Edge, object: &Object, depth: usize) -> bool {
        let unused = || live_referrers(self.state, object).is_empty();
        let ends = |parent: &Object| !parent.live() || self.going(parent, depth - 1);
        let wanted = || navigate::parents(self.state, object).into_iter().any(|parent| !ends(parent));
        match edge.certainty {
            Certainty::Sure => true,
            Certainty::UnlessUsed => unused(),
            Certainty::UnlessUsedOrWanted => !wanted() && unused(),
        }
    }

    /// Whether an object's namespace is being deleted, or gone, or is collected.
    fn namespace_goes(&self, object: &Object) -> bool {
        if let Some((last, goes)) = &*self.last.borrow()
            && *last == object.key.ns
        {
            return *goes;
        }
        let ends = |end: End<'_>| match end {
            End::There(namespace) => !namespace.live() || self.collected(namespace, OWNER_DEPTH_MAX),
            End::Gone => true,
            End::Unread(owner) => self.lacks(owner),
        };
        let goes = CONTENTS.goes(self.state, &UnderWay::default(), object, &ends);
        self.last.replace(Some((object.key.ns.clone(), goes)));
        goes
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
        let mut open: Vec<Arc<Object>> = ending(state).cloned().collect();
        open.extend(adapted.iter().chain([&definitions]).flat_map(changed));
        let mut seen: BTreeSet<Key> = BTreeSet::new();
        while let Some(object) = open.pop() {
            let kind = &object.key.kind;
            let goes = !object.live() || found.kinds.contains(kind) || by_owners.collected(&object, OWNER_DEPTH_MAX);
            if !goes || !seen.insert(object.key.clone()) {
                continue;
            }
            if let Some(defined) = fields::defined_kind(&object).filter(|_| *kind == definitions) {
                open.extend(state.list(&defined, None).into_iter().filter(|_| adapted.contains(&defined)).cloned());
                found.kinds.insert(defined);
            }
            open.extend(state.owned_by(&object.uid).into_iter().filter(|o| adapted.contains(&o.key.kind)).cloned());
            if let Some(facts) = state.adapter(&object) {
                found.add(&object, &facts);
            }
        }
        found
    }
}
