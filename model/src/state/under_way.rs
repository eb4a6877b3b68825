//! What is found out about the deletions of a state once, for all objects that may go with them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::kinds::Kind;
use crate::object::Object;

/// What goes, of that which its dependents do not name.
#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    /// Custom resources with an adapter.
    pub(crate) custom: Vec<Arc<Object>>,
    /// The kinds whose definitions go.
    pub(crate) kinds: BTreeSet<Kind>,
}
