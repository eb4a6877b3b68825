//! VolumeBinding: where a pod may go for the sake of its volumes. A StatefulSet's new pod finds the claims of its ordinal, and what is
//! bound to them may be used from some nodes only.
//!
//! Source: `pkg/scheduler/framework/plugins/volumebinding` (a bound volume's node affinity is required like the pod's own).
//! The pod's template is taken to require both. Over-approximations: a claim that is not bound may be provided anywhere,
//! and where its class provides none (`kubernetes.io/no-provisioner`), it may wait for good; where the pods of one set have
//! more than [`KINDS_MAX`] such requirements, none is looked at.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::constraint::{Around, Constraint, Differences, Fit, NodeView, Placing, Waiting};
use super::room::Room;
use super::template::Template;
use crate::fields;
use crate::kinds::Kind;
use crate::navigate;
use crate::object::{Key, NODE_AFFINITY_OF_POD, Object};
use crate::references::class_named;
use crate::state::State;
use crate::value::{Str, Val};

/// How many different templates one set may have for the sake of volumes: each is placed on its own.
const KINDS_MAX: usize = 16;
/// How many node selector terms a pod and its volumes may amount to together.
const TERMS_MAX: usize = 16;

/// The plugin.
pub struct VolumeBinding;

impl Constraint for VolumeBinding {
    /// What volumes require of a node stands in the template as node affinity: [`templates`].
    fn filter(&self, _: &Template, _: &NodeView<'_>) -> Fit {
        Fit::Takes(Room::default())
    }

    fn distinguishes<'t>(&self, _: &Around<'t, '_>, _: &mut Differences<'t>) {}

    fn limits(&self, _: &mut Placing<'_, '_, '_>) {}

    fn may_block(&self, waiting: &Waiting<'_, '_, '_>) -> bool {
        let state = &waiting.scenario.state;
        waiting.own.waits
            || has_ephemeral(waiting.own)
            || claims_of(waiting.own).any(|claim| !is_for_all(state, &waiting.maker.ns, claim))
    }

    fn is_sure(&self, own: &Template, _: &Object, _: &[&Arc<Object>]) -> bool {
        !has_ephemeral(own) && claims_of(own).next().is_none()
    }
}

/// The claims that all pods of a template share.
fn claims_of(own: &Template) -> impl Iterator<Item = &Str> {
    let volumes = own.spec().items_at(&["volumes"]).iter();
    volumes.filter_map(|volume| volume.str_at(&["persistentVolumeClaim", "claimName"]))
}

/// Whether a claim is made for each pod.
fn has_ephemeral(own: &Template) -> bool {
    own.spec().items_at(&["volumes"]).iter().any(|volume| volume.at_some(&["ephemeral"]).is_some())
}

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
    let of_ordinal = |ordinal: &i64| {
        let volumes = names.iter().filter_map(|name| volume_of(state, set, name, *ordinal));
        volumes.fold(template.clone(), |template, volume| {
            let terms = volume.val().items_at(&["spec", "nodeAffinity", "required", "nodeSelectorTerms"]);
            if terms.is_empty() { template } else { narrowed(&template, terms) }
        })
    };
    let found: Vec<Val> = ordinals.iter().map(of_ordinal).collect();
    let kinds: BTreeSet<&Val> = found.iter().collect();
    (kinds.len() <= KINDS_MAX && kinds.into_iter().any(|kind| kind != template)).then_some(found)
}

/// The volume that is bound to the claim of an ordinal.
fn volume_of<'s>(state: &'s State<'_>, set: &Object, template: &str, ordinal: i64) -> Option<&'s Arc<Object>> {
    let name = format!("{template}-{}-{ordinal}", set.key.name);
    let claim = state.get(&Key::of("PersistentVolumeClaim", &set.key.ns, &name)).filter(|claim| claim.live())?;
    navigate::volume(state, claim)
}

/// Whether a claim keeps no pod waiting, wherever it goes: it is bound to a volume that many nodes may use at a time, and any
/// node.
fn is_for_all(state: &State<'_>, ns: &str, claim: &str) -> bool {
    let claim = state.get(&Key::of("PersistentVolumeClaim", ns, claim)).filter(|claim| claim.live());
    let volume = claim.and_then(|claim| navigate::volume(state, claim)).filter(|volume| volume.live());
    volume.is_some_and(|volume| {
        let modes = volume.val().items_at(&["spec", "accessModes"]).iter();
        let is_shared =
            |mode: &Val| mode.as_str().is_some_and(|mode| matches!(&**mode, "ReadWriteMany" | "ReadOnlyMany"));
        fields::volume_affinity(volume).is_none() && modes.into_iter().any(is_shared)
    })
}

/// The names of the claim templates for which a pod may wait for good where their claim is not bound: nothing provides a
/// volume of their class but whoever makes them by hand, who has left none that is free.
pub fn unprovided<'o>(state: &State<'_>, set: &'o Object) -> Vec<&'o Str> {
    let templates = set.val().items_at(&["spec", "volumeClaimTemplates"]).iter();
    let unprovided = templates.filter(|template| {
        let class = class_named(template).unwrap_or_default();
        is_by_hand(state, class) && !has_free(state, class)
    });
    unprovided.filter_map(|template| template.str_at(&["metadata", "name"])).collect()
}

/// Whether the claim of one of these templates is not bound for an ordinal.
pub fn lacks_any(state: &State<'_>, set: &Object, templates: &[&Str], ordinal: i64) -> bool {
    templates.iter().any(|template| volume_of(state, set, template, ordinal).is_none())
}

/// Whether nothing provides volumes of a class.
fn is_by_hand(state: &State<'_>, class: &str) -> bool {
    let class = state.get(&Key::of("StorageClass", "", class));
    let provisioner = class.and_then(|class| class.val().str_at(&["provisioner"]));
    provisioner.is_some_and(|provisioner| &**provisioner == "kubernetes.io/no-provisioner")
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
    let own =
        template.at_some(&NODE_AFFINITY_OF_POD).map(|required| required.items_at(&["nodeSelectorTerms"]).to_vec());
    let all: Vec<Val> = match own {
        None => terms.to_vec(),
        Some(own) => own.iter().flat_map(|own| terms.iter().map(|other| both(own, other))).collect(),
    };
    if all.len() > TERMS_MAX {
        return template.clone();
    }
    template.with_at(&NODE_AFFINITY_OF_POD, Val::object([("nodeSelectorTerms", Val::list(all))]))
}
