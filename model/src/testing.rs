//! What this crate's own tests are written with: clusters from YAML, and adapters from a function.

use std::fmt;
use std::sync::Arc;

use crate::adapter::{AdapterFacts, Adapters};
use crate::ingest::{ingest, parse_documents};
use crate::kinds::Kind;
use crate::object::{Key, Object};
use crate::snapshot::Snapshot;
use crate::value::Val;

/// The cluster that this YAML shows.
pub(crate) fn cluster(yaml: &str) -> Snapshot {
    adapted(yaml, Vec::new())
}

/// The cluster that this YAML shows, with an adapter for each of these kinds.
pub(crate) fn adapted(yaml: &str, adapters: Vec<Adapter>) -> Snapshot {
    let mut snapshot = Snapshot::new(Arc::new(Table(adapters)));
    ingest(&mut snapshot, yaml, "test").unwrap();
    snapshot
}

/// The one document of this YAML.
pub(crate) fn val(yaml: &str) -> Val {
    parse_documents(yaml, "test").unwrap().remove(0).val
}

/// Numbers below those asked for, the same each time for a seed.
pub(crate) fn numbers(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap_or(0) % below
    }
}

/// `Kind/namespace/name` or `Kind/name` of a built-in kind.
pub(crate) fn key(text: &str) -> Key {
    match *text.split('/').collect::<Vec<_>>() {
        [kind, ns, name] => Key::of(kind, ns, name),
        [kind, name] => Key::of(kind, "", name),
        _ => panic!("{text}"),
    }
}

/// The names of these objects.
pub(crate) fn names(objects: &[&Arc<Object>]) -> Vec<String> {
    objects.iter().map(|o| o.key.to_string()).collect()
}

/// A kind and what its adapter says of an object.
pub(crate) type Adapter = (Kind, fn(&Object) -> AdapterFacts);

struct Table(Vec<Adapter>);

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("adapters of a test")
    }
}

impl Adapters for Table {
    fn facts(&self, object: &Object) -> Option<Arc<AdapterFacts>> {
        let (_, facts) = self.0.iter().find(|(kind, _)| *kind == object.key.kind)?;
        Some(Arc::new(facts(object)))
    }

    fn kinds(&self) -> Vec<Kind> {
        self.0.iter().map(|(kind, _)| kind.clone()).collect()
    }
}
