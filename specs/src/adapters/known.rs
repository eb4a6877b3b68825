//! What adapters said of custom resources, for as long as these exist.

use std::num::NonZeroUsize;
use std::sync::{Arc, Weak};

use lru::LruCache;
use suture_model::adapter::AdapterFacts;
use suture_model::object::{Body, Object};
use suture_model::value::Str;

/// Of so many custom resources it is kept what their adapters say.
const OBJECTS_MAX: NonZeroUsize = NonZeroUsize::new(16_384).expect("it is not zero");
/// After so many bytes of custom resources that were read, what is said of those that are gone is dropped.
const BYTES_UNTIL_SWEPT: usize = 4 << 20;

/// What adapters said, by where the body of the object is in memory, its namespace and its name.
#[derive(Debug)]
pub(super) struct Known {
    facts: LruCache<(usize, Str, Str), Entry>,
    /// Bytes of the bodies that were read since the last sweep.
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    /// Its body is another one, with nothing in it.
    header: Object,
    /// Nothing else comes where it is for as long as this stands, and what was in it goes with the object all the same.
    body: Weak<Body>,
    facts: Arc<AdapterFacts>,
}

impl Default for Known {
    fn default() -> Self {
        Self { facts: LruCache::new(OBJECTS_MAX), bytes: 0 }
    }
}

impl Known {
    /// What was said of this very object.
    pub(super) fn get(&mut self, object: &Object) -> Option<Arc<AdapterFacts>> {
        let known = self.facts.get(&place(object))?;
        known.header.has_header_of(object).then(|| known.facts.clone())
    }

    pub(super) fn put(&mut self, object: &Object, facts: Arc<AdapterFacts>) {
        let header = object.clone().sharing(Object::bare(object.key.clone()).body);
        let entry = Entry { header, body: Arc::downgrade(&object.body), facts };
        self.facts.put(place(object), entry);
        self.bytes += object.val().weight();
        if self.bytes >= BYTES_UNTIL_SWEPT {
            self.sweep();
        }
    }

    /// Drops what is said of objects that are gone.
    fn sweep(&mut self) {
        self.bytes = 0;
        let gone =
            |(place, known): (&(usize, Str, Str), &Entry)| (known.body.strong_count() == 0).then(|| place.clone());
        let gone: Vec<_> = self.facts.iter().filter_map(gone).collect();
        for place in gone {
            self.facts.pop(&place);
        }
    }
}

fn place(object: &Object) -> (usize, Str, Str) {
    (Arc::as_ptr(&object.body) as usize, object.key.ns.clone(), object.key.name.clone())
}
