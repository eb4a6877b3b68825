//! What is the same for all pods of a body.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::object::{Body, Object};
use crate::value::Str;

/// A body, and whether it is so of its pods.
type Known = (Arc<Body>, bool);

/// What is the same for all pods of a body in a namespace, worked out once.
#[derive(Debug, Default)]
pub struct ByBody {
    /// With the body, which stays where it is in memory as long as it is held.
    known: RefCell<BTreeMap<(Str, *const Body), Known>>,
    /// The last one that was asked for.
    last: RefCell<Option<(Str, *const Body, bool)>>,
}

impl ByBody {
    /// As `find` says of a pod, unless it is known.
    pub fn of(&self, pod: &Object, find: impl FnOnce() -> bool) -> bool {
        let body = Arc::as_ptr(&pod.body);
        if let Some((ns, known, is_so)) = &*self.last.borrow()
            && Arc::ptr_eq(ns, &pod.key.ns)
            && std::ptr::eq(*known, body)
        {
            return *is_so;
        }
        let key = (pod.key.ns.clone(), body);
        let known = self.known.borrow().get(&key).map(|(_, is_so)| *is_so);
        let is_so = known.unwrap_or_else(|| {
            let is_so = find();
            self.known.borrow_mut().insert(key, (pod.body.clone(), is_so));
            is_so
        });
        self.last.replace(Some((pod.key.ns.clone(), body, is_so)));
        is_so
    }
}
