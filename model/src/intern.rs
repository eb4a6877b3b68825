//! Equal parts of objects, kept once: texts, lists, maps and whole bodies.
//!
//! This is hash-consing: a list or map is made of parts that are kept already, so that two are equal if theirs are the
//! same in memory, and none is compared with others text by text.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::hash::RandomState;
use crate::object::{Body, Object};
use crate::value::{Identity, Str, Val};

#[expect(clippy::disallowed_types, reason = "it is asked for members only: its order does not show")]
type Set<T> = std::collections::HashSet<T, RandomState>;

/// What was seen so far.
#[derive(Clone, Debug, Default)]
pub struct Interner {
    /// By the value that each has.
    bodies: BTreeMap<Identity, Arc<Body>>,
    texts: Set<Str>,
    parts: Set<Part>,
}

/// A list or map of parts that are kept.
#[derive(Clone, Debug)]
struct Part(Val);

impl Part {
    /// Whether two have the same parts.
    fn has_parts_of(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Val::List(a), Val::List(b)) => a.iter().map(Val::identity).eq(b.iter().map(Val::identity)),
            (Val::Map(a), Val::Map(b)) => {
                let parts = |(key, value): (&Str, &Val)| (Arc::as_ptr(key).addr(), value.identity());
                a.iter().map(parts).eq(b.iter().map(parts))
            }
            _ => false,
        }
    }
}

impl PartialEq for Part {
    fn eq(&self, other: &Self) -> bool {
        self.has_parts_of(other)
    }
}

impl Eq for Part {}

impl Hash for Part {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.0 {
            Val::Map(map) => map.iter().for_each(|(key, value)| {
                Arc::as_ptr(key).addr().hash(state);
                value.identity().hash(state);
            }),
            other => other.items().iter().for_each(|item| item.identity().hash(state)),
        }
    }
}

impl Interner {
    /// The object with every part that equals one seen before replaced by that one.
    pub fn object(&mut self, object: Object) -> Object {
        self.object_after(object, None)
    }

    /// [`Self::object`] of a later version of an object that was made here: what has not changed is found there.
    pub fn object_after(&mut self, mut object: Object, before: Option<&Object>) -> Object {
        let val = self.shared(object.body.val(), before.map(|before| before.body.val()));
        let body = match self.bodies.get(&val.identity()) {
            Some(body) => body.clone(),
            None => {
                let body = object.with_shared(&val);
                self.bodies.insert(val.identity(), body.clone());
                body
            }
        };
        if let Some(before) = before.filter(|before| before.key == object.key) {
            object.key = before.key.clone();
            if before.uid == object.uid {
                object.uid = before.uid.clone();
            }
        }
        for text in [
            &mut object.key.kind.group,
            &mut object.key.kind.kind,
            &mut object.key.ns,
            &mut object.version,
            &mut object.node,
            &mut object.created,
        ] {
            *text = self.text(text);
        }
        object.sharing(body)
    }

    /// Forgets what nothing but this holds. A part is held by the parts around it: they go first.
    pub fn sweep(&mut self) {
        self.bodies.retain(|_, body| Arc::strong_count(body) > 1);
        loop {
            let before = self.parts.len();
            self.parts.retain(|Part(part)| match part {
                Val::List(items) => Arc::strong_count(items) > 1,
                Val::Map(map) => map.holders() > 1,
                _ => false,
            });
            if self.parts.len() == before {
                break;
            }
        }
        self.texts.retain(|text| Arc::strong_count(text) > 1);
    }

    /// How many bodies, lists, maps and texts are kept.
    pub fn len(&self) -> usize {
        self.bodies.len() + self.parts.len() + self.texts.len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A value whose texts, lists and maps are those of equal values seen before: first of all of the one in its place.
    fn shared(&mut self, val: &Val, before: Option<&Val>) -> Val {
        if let Some(before) = before.filter(|before| *before == val) {
            return before.clone();
        }
        let built = match val {
            Val::Str(text) => return Val::Str(self.text(text)),
            Val::List(items) => {
                let mut before = before.map_or(&[][..], Val::items).iter();
                Val::list(items.iter().map(|v| self.shared(v, before.next())).collect())
            }
            Val::Map(map) => {
                let before = |key: &Str| before.and_then(|before| before.get(key));
                Val::map(map.iter().map(|(k, v)| (self.text(k), self.shared(v, before(k)))).collect())
            }
            plain => return plain.clone(),
        };
        let part = Part(built);
        match self.parts.get(&part) {
            Some(Part(known)) => known.clone(),
            None => {
                self.parts.insert(part.clone());
                part.0
            }
        }
    }

    fn text(&mut self, text: &Str) -> Str {
        match self.texts.get(text) {
            Some(known) => known.clone(),
            None => {
                self.texts.insert(text.clone());
                text.clone()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, label: &str) -> Object {
        Object::from_val(&Val::object([
            ("apiVersion", Val::str("v1")),
            ("kind", Val::str("Pod")),
            ("metadata", Val::object([("name", Val::str(name)), ("labels", Val::object([("app", Val::str(label))]))])),
        ]))
        .unwrap()
    }

    #[test]
    fn a_later_version_shares_what_has_not_changed() {
        let read = |text: &str| Object::from_val(&serde_json::from_str(text).unwrap()).unwrap();
        let pod = |labels: &str, last: &str| {
            read(&format!(
                r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"a","labels":{{{labels}}}}},
                    "spec":{{"containers":[{{"name":"c","image":"i"}},{{"name":"d","image":"{last}"}}]}}}}"#
            ))
        };
        let versions = [pod(r#""x":"1""#, "i"), pod(r#""x":"2""#, "i"), pod(r#""x":"2","y":"1""#, "j"), pod("", "j")];
        let (mut plain, mut interner) = (Interner::default(), Interner::default());
        let mut before: Option<Object> = None;
        for version in versions {
            let made = interner.object_after(version.clone(), before.as_ref());
            assert_eq!(made, version);
            assert_eq!(made.body.val(), plain.object(version).body.val());
            assert_eq!(interner.len(), plain.len(), "nothing is there twice");
            let first = |object: &Object| object.val().items_at(&["spec", "containers"]).first().cloned();
            if let Some(before) = &before {
                assert!(matches!((first(before), first(&made)), (Some(Val::Map(a)), Some(Val::Map(b))) if a.is(&b)));
            }
            before = Some(made);
        }
    }

    #[test]
    fn equal_bodies_are_one_and_go_when_nothing_holds_them() {
        let mut interner = Interner::default();
        let (a, b, other) =
            (interner.object(pod("a", "x")), interner.object(pod("b", "x")), interner.object(pod("c", "y")));
        assert!(Arc::ptr_eq(&a.body, &b.body));
        assert!(!Arc::ptr_eq(&a.body, &other.body));
        let full = interner.len();
        interner.sweep();
        assert_eq!(interner.len(), full, "all of it is held");
        drop(other);
        interner.sweep();
        assert!(interner.len() < full);
        drop((a, b));
        interner.sweep();
        // the names of built-in kinds belong to their table
        interner.texts.retain(|text| !["", "Pod"].contains(&&**text));
        assert!(interner.is_empty(), "{interner:?}");
    }
}
