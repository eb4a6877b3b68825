//! What the fields of an object are: how they are put together.

use suture_model::navigate::definition_of;
use suture_model::object::Object;
use suture_model::state::State;

use crate::manifest::Structure;

/// What is made of the structure of an object.
pub(super) fn with_structure<T>(live: &Object, state: &State<'_>, made: impl FnOnce(Structure<'_>) -> T) -> T {
    let definition = definition_of(state, &live.key.kind);
    made(Structure::of(&live.key.kind, definition.map(|definition| definition.val()), &live.version))
}
