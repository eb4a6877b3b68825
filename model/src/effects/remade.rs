//! A pod of a controller whose kind is not modelled, where it is taken to be made anew: an assumption, which a proof that
//! relies on it names. It bears the labels that it had, on the node on which it was.

use std::rc::Rc;
use std::sync::Arc;

use super::builder::Builder;
use super::linear::{at_most, count};
use super::survival::Survival;
use crate::futures::{Fate, FateKind, LimitLabel, Remains};
use crate::object::Object;

/// A pod that no controller of a known kind decides about.
pub fn pod(builder: &mut Builder<'_, '_>, pod: &Arc<Object>) {
    let survival = builder.survival(pod);
    let owner = pod.controller().and_then(|owner| builder.state().by_uid(&owner.uid)).cloned();
    let Some(owner) = owner.filter(|owner| builder.view.remade && builder.after() && stays(builder, owner)) else {
        return builder.passive(pod);
    };
    if survival == Survival::Stays && !pod.terminating() {
        return builder.passive(pod);
    }
    let set = builder.set();
    let mut entity = builder.existing(pod, &[set], false);
    let anew = Object { uid: "".into(), in_deletion_closure: false, ..(**pod).clone() };
    let anew = anew.map_body(|val| val.without_at(&["metadata", "deletionTimestamp"]));
    // where nodes fail, it is not known to be ready
    let is_ready = builder.view.outage.nodes.is_empty();
    let remains = Remains::New(Arc::new(anew.with_ready(is_ready)));
    Rc::make_mut(&mut entity.fates).push(Fate { kind: FateKind::NewReady, place: None, remains });
    builder.group.entities.push(entity);
    let gone = at_most(vec![count(set, &[FateKind::Gone])], 0);
    builder.limit(LimitLabel::Remade { workload: owner.key.clone() }, vec![gone]);
}

fn stays(builder: &Builder<'_, '_>, owner: &Object) -> bool {
    owner.live() && builder.survival(owner) == Survival::Stays
}
