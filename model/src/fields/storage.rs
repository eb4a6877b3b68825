//! Claims and ordinals: what a StatefulSet's ordinals want, and which class a claim names.

use crate::annotations::STORAGE_CLASS;
use crate::controllers::replicas::replicas;
use crate::controllers::statefulset::{is_condemned, ordinal, ordinals};
use crate::object::Object;
use crate::value::{Str, Val};

/// No more names than this are listed; [`wants_claim`] has no limit.
const CLAIMS_MAX: i64 = 100_000;

/// The names of the claims that a StatefulSet wants: `template-set-ordinal` for the ordinals in
/// `[ordinals.start, ordinals.start + replicas)` (`pkg/controller/statefulset/stateful_set_utils.go`,
/// `getPersistentVolumeClaimName`, `getStartOrdinal`). More than 100,000 are cut; ask [`wants_claim`] instead.
pub fn claims_wanted(set: &Object) -> Vec<String> {
    let (start, end) = ordinals(set);
    let end = end.min(start.saturating_add(CLAIMS_MAX));
    let names = claim_templates(set);
    names.flat_map(|name| (start..end).map(move |i| format!("{name}-{}-{i}", set.key.name))).collect()
}

/// Whether a StatefulSet wants a claim of this name in its namespace.
pub fn wants_claim(set: &Object, claim: &str) -> bool {
    claim_ordinal(set, claim).is_some_and(|ordinal| !is_condemned(set, ordinal, replicas(set)))
}

/// Whether this is a StatefulSet that deletes the claims of the ordinals that it gives up (KEP-1847).
pub fn deletes_when_scaled(set: &Object) -> bool {
    deletes_claims(set, "whenScaled")
}

/// Whether this is a StatefulSet that deletes its claims when it is deleted.
pub fn deletes_when_deleted(set: &Object) -> bool {
    deletes_claims(set, "whenDeleted")
}

fn deletes_claims(set: &Object, when: &str) -> bool {
    let policy = ["spec", "persistentVolumeClaimRetentionPolicy", when];
    set.key.kind.is("StatefulSet") && set.val().str_at(&policy).is_some_and(|p| &**p == "Delete")
}

/// Whether such a set would make a claim of this name, and wants it no more.
pub fn gives_up(set: &Object, claim: &str) -> bool {
    deletes_when_scaled(set) && claim_ordinal(set, claim).is_some() && !wants_claim(set, claim)
}

/// The ordinal of a claim by its name, if one of the set's templates would make a claim of that name.
pub fn claim_ordinal(set: &Object, claim: &str) -> Option<i64> {
    claim_templates(set).find_map(|template| {
        let rest = claim.strip_prefix(&**template)?.strip_prefix('-')?;
        ordinal(rest.strip_prefix(&*set.key.name)?.strip_prefix('-')?)
    })
}

fn claim_templates(set: &Object) -> impl Iterator<Item = &Str> {
    let is_set = set.key.kind.is("StatefulSet");
    let templates = set.val().items_at(&["spec", "volumeClaimTemplates"]).iter().filter(move |_| is_set);
    templates.filter_map(|t| t.str_at(&["metadata", "name"]))
}

/// The class that a claim or its template names; the old annotation goes before the field
/// (`k8s.io/component-helpers/storage/volume/helpers.go`, `GetPersistentVolumeClaimClass`).
pub fn class_named(claim: &Val) -> Option<&str> {
    let by_annotation = claim.name_at(&["metadata", "annotations", STORAGE_CLASS]);
    by_annotation.or_else(|| claim.name_at(&["spec", "storageClassName"]))
}
