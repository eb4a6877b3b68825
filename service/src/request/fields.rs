//! What the fields of an object are: how they are put together, and whether a manifest has only such.

use suture_model::kinds::Kind;
use suture_model::navigate::definition_of;
use suture_model::object::Object;
use suture_model::state::State;
use suture_model::value::Val;
use suture_specs::manifest::mistakes;

use crate::manifest::Structure;

/// What is made of the structure of an object.
pub(super) fn with_structure<T>(live: &Object, state: &State<'_>, made: impl FnOnce(Structure<'_>) -> T) -> T {
    let definition = definition_of(state, &live.key.kind);
    made(Structure::of(&live.key.kind, definition.map(|definition| definition.val()), &live.version))
}

/// That a manifest or a patch of a kind in a version has only fields that it has, with values of their types.
pub(super) fn valid(kind: &Kind, version: &str, manifest: &Val) -> Result<(), String> {
    match mistakes(kind, version, manifest).as_slice() {
        [] => Ok(()),
        [only] => Err(only.to_string()),
        all => Err(all.iter().map(|mistake| format!("\n  {mistake}")).collect()),
    }
}
