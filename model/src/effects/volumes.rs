//! Where a pod may go for the sake of its volumes: a StatefulSet's new pod finds the claims of its ordinal, and what is
//! bound to them may be used from some nodes only.
//!
//! Source: `pkg/scheduler/framework/plugins/volumebinding` (a bound volume's node affinity is required like the pod's own).
//! The pod's template is taken to require both. Over-approximations: a claim that is not bound may be provided anywhere,
//! and where its class provides none (`kubernetes.io/no-provisioner`), it may wait for good; where the pods of one set have
//! more than [`KINDS_MAX`] such requirements, none is looked at.

use std::collections::BTreeSet;

use crate::kinds::Kind;
use crate::navigate;
use crate::object::{Key, Object};
use crate::state::State;
use crate::value::Val;

/// How many different templates one set may have for the sake of volumes: each is placed on its own.
const KINDS_MAX: usize = 16;
/// How many node selector terms a pod and its volumes may amount to together.
const TERMS_MAX: usize = 16;

/// Where a pod spec keeps its required node affinity.
const REQUIRED: [&str; 4] = ["spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];

/// The templates of the pods of these ordinals, where volumes ask for nodes; `None` where none does, or too many do.
pub fn templates(state: &State<'_>, set: &Object, template: &Val, ordinals: &[i64]) -> Option<Vec<Val>> {
    let names: Vec<&str> = set
        .val()
        .items_at(&["spec", "volumeClaimTemplates"])
        .iter()
        .filter_map(|claim| claim.str_at(&["metadata", "name"]).map(|name| &**name))
        .collect();
    if names.is_empty() {
        return None;
    }
    let claim_of = |name: &&str, ordinal: &i64| {
        let name = format!("{name}-{}-{ordinal}", set.key.name);
        state.get(&Key::new(Kind::new("", "PersistentVolumeClaim"), &set.key.ns, &name)).filter(|claim| claim.live())
    };
    let of_ordinal = |ordinal: &i64| {
        let claims = names.iter().filter_map(|name| claim_of(name, ordinal));
        let volumes = claims.filter_map(|claim| navigate::volume(state, claim));
        volumes.fold(template.clone(), |template, volume| {
            let terms = volume.val().items_at(&["spec", "nodeAffinity", "required", "nodeSelectorTerms"]);
            if terms.is_empty() { template } else { narrowed(&template, terms) }
        })
    };
    let found: Vec<Val> = ordinals.iter().map(of_ordinal).collect();
    let kinds: BTreeSet<&Val> = found.iter().collect();
    (kinds.len() <= KINDS_MAX && kinds.into_iter().any(|kind| kind != template)).then_some(found)
}

/// Whether the pod of an ordinal may wait for a volume for good: a claim of it is not bound, and nothing provides a volume
/// of its class but whoever makes them by hand, who has left none that is free.
pub fn may_wait(state: &State<'_>, set: &Object, ordinal: i64) -> bool {
    set.val().items_at(&["spec", "volumeClaimTemplates"]).iter().any(|template| {
        let Some(name) = template.str_at(&["metadata", "name"]) else { return false };
        let claim = Key::of("PersistentVolumeClaim", &set.key.ns, &format!("{name}-{}-{ordinal}", set.key.name));
        let claim = state.get(&claim).filter(|claim| claim.live());
        let class = template.str_at(&["spec", "storageClassName"]).map_or("", |class| class);
        let is_bound = claim.is_some_and(|claim| navigate::volume(state, claim).is_some());
        !is_bound && is_by_hand(state, class) && !has_free(state, class)
    })
}

/// Whether nothing provides volumes of a class.
fn is_by_hand(state: &State<'_>, class: &str) -> bool {
    let provisioner =
        state.get(&Key::of("StorageClass", "", class)).and_then(|o| o.val().str_at(&["provisioner"]).cloned());
    provisioner.is_some_and(|provisioner| &*provisioner == "kubernetes.io/no-provisioner")
}

/// Whether there is a volume of a class that no claim has.
fn has_free(state: &State<'_>, class: &str) -> bool {
    let volumes = state.list(&Kind::new("", "PersistentVolume"), None).into_iter();
    volumes
        .filter(|volume| volume.live() && volume.val().at_some(&["spec", "claimRef"]).is_none())
        .any(|volume| volume.val().str_at(&["spec", "storageClassName"]).is_some_and(|of| **of == *class))
}

/// The template whose pods require one of these terms besides what they require already.
fn narrowed(template: &Val, terms: &[Val]) -> Val {
    let both = |own: &Val, other: &Val| {
        let part = |key: &str| {
            let all = own.items_at(&[key]).iter().chain(other.items_at(&[key]));
            Val::list(all.cloned().collect())
        };
        Val::object(["matchExpressions", "matchFields"].map(|key| (key, part(key))))
    };
    let own = template.at_some(&REQUIRED).map(|required| required.items_at(&["nodeSelectorTerms"]).to_vec());
    let all: Vec<Val> = match own {
        None => terms.to_vec(),
        Some(own) => own.iter().flat_map(|own| terms.iter().map(|other| both(own, other))).collect(),
    };
    if all.len() > TERMS_MAX {
        return template.clone();
    }
    template.with_at(&REQUIRED, Val::object([("nodeSelectorTerms", Val::list(all))]))
}
