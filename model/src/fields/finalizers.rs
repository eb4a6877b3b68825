//! What finalizers say: whether they hold an object, and what becomes of its dependents.

use crate::object::Object;

/// Whether finalizers hold an object.
pub(crate) fn is_held(object: &Object) -> bool {
    object.finalizers().next().is_some() || !object.val().items_at(&["spec", "finalizers"]).is_empty()
}

/// Whether an object that is being deleted leaves its dependents behind.
pub fn orphans(object: &Object) -> bool {
    object.finalizers().any(|f| &**f == "orphan")
}
