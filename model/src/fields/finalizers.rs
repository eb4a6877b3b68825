//! What finalizers say: whether they hold an object, and what becomes of its dependents.

use crate::object::Object;

/// The finalizers that the garbage collector heeds, and takes off itself: the first leaves dependents behind, the second waits
/// for them (`apimachinery/pkg/apis/meta/v1/types.go`, `FinalizerOrphanDependents`, `FinalizerDeleteDependents`).
pub(crate) const ORPHAN: &str = "orphan";
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// Whether finalizers hold an object.
pub(crate) fn is_held(object: &Object) -> bool {
    object.finalizers().next().is_some() || !object.val().items_at(&["spec", "finalizers"]).is_empty()
}

/// Whether an object that is being deleted leaves its dependents behind.
pub fn orphans(object: &Object) -> bool {
    object.finalizers().any(|f| &**f == ORPHAN)
}

/// Whether a finalizer of others than the garbage collector holds an object.
pub(crate) fn is_held_by_others(object: &Object) -> bool {
    object.finalizers().any(|f| ![ORPHAN, FOREGROUND].contains(&&**f))
}
