//! The templates of new pods, read back off a group.

use crate::futures::{FateKind, Group};
use crate::value::Val;

/// The templates of the new pods that a group may have.
pub fn new_templates(group: &Group) -> Vec<Val> {
    let mut found: Vec<Val> = Vec::new();
    for entity in &group.entities {
        let made = entity.fates.iter().find(|f| f.kind == FateKind::NewUnready || f.kind == FateKind::NewReady);
        let Some(pod) = made.and_then(|f| entity.object_in(f)) else { continue };
        let template = Val::object([
            ("metadata", pod.val().get("metadata").cloned().unwrap_or_default()),
            ("spec", pod.val().get("spec").cloned().unwrap_or_default()),
        ]);
        if !found.contains(&template) {
            found.push(template);
        }
    }
    found
}
