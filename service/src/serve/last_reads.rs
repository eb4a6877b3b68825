//! What the last decision about an object read: the next one mostly reads the same, and so begins beside the right requests
//! in flight ([`Question::likely_reads`](crate::decide::Question::likely_reads)).

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use suture_model::change::Request;
use suture_model::object::{Key, Object};
use suture_model::snapshot::Facts;

/// So many objects are known: about as many as have requests within a second or two.
const OBJECTS_MAX: NonZeroUsize = NonZeroUsize::new(512).unwrap();
/// A decision that read more is not noted.
const FACTS_MAX: usize = 1_024;

/// The facts that the last decisions about objects read.
pub struct LastReads(Mutex<LruCache<Key, Arc<Facts>>>);

impl Default for LastReads {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(OBJECTS_MAX)))
    }
}

impl LastReads {
    /// What a decision about a request is likely to read: what the last one about its object did, or about the controller
    /// of that; nothing if neither is known.
    pub fn likely(&self, request: &Request) -> Arc<Facts> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(facts) = known.get(&request.target) {
            return facts.clone();
        }
        let object = request.object.as_ref().and_then(|object| Object::from_val(object).ok());
        let controller = object.as_ref().and_then(Object::controller);
        let key = controller.map(|owner| Key::new(owner.kind.clone(), &request.target.ns, &owner.name));
        key.and_then(|key| known.get(&key).cloned()).unwrap_or_default()
    }

    /// Notes what a decision about a request read.
    pub fn note(&self, request: &Request, facts: &Facts) {
        if facts.len() <= FACTS_MAX && !facts.is_empty() {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.put(request.target.clone(), Arc::new(facts.clone()));
        }
    }
}

#[cfg(test)]
mod tests;
