//! Builds a value from any serde source, within what the length of the text allows, sharing texts that recur.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::object::{HIDDEN, UNREAD};
use crate::value::{Str, Val};

/// Maps and lists nested deeper than this are refused; no manifest comes near.
pub const NESTING_MAX: usize = 64;
/// What is nested deeper than this in an object of an API server is left unread: the schemas of real definitions have some
/// eighty levels, a custom resource may have any number, and `serde_json` gives up at 128.
const OBJECT_NESTING_MAX: usize = 112;
/// So many values of an object of an API server are read, and the rest of it is left unread: lists of ten thousand items have
/// fewer, and each takes more memory than the two bytes that it may have in JSON.
const OBJECT_VALUES_MAX: usize = 200_000;
/// So many values its `metadata` has at most, of which nothing is left unread: what etcd takes of it has fewer.
const METADATA_VALUES_MAX: usize = 300_000;
/// What every object is known by.
const HEADER: [&str; 3] = ["apiVersion", "kind", METADATA];
const METADATA: &str = "metadata";
/// Values beyond one per byte of text: what aliases may add.
const NODES_EXTRA: usize = 1_000_000;
/// Bytes of strings beyond those of the text: what aliases may add.
const BYTES_EXTRA: usize = 64 << 20;
/// Strings up to this length are shared, and no more than so many.
const SHARED_MAX_BYTES: usize = 32;
const SHARED_MAX: usize = 50_000;
/// Who set which field: often half of an object, and read by nothing.
const MANAGED: &str = "managedFields";

/// What reading a text may still make.
#[derive(Debug)]
pub(super) struct Allowance {
    nesting_max: usize,
    nodes: Cell<usize>,
    bytes: Cell<usize>,
    texts: RefCell<BTreeSet<Str>>,
    /// Whether what is nested deeper is left unread; else it is refused.
    leaves_unread: bool,
    /// Whether something of the present object was.
    unread: Cell<bool>,
}

impl Allowance {
    pub(super) fn of(text: &str) -> Self {
        Self {
            nesting_max: NESTING_MAX,
            nodes: Cell::new(text.len().saturating_add(NODES_EXTRA)),
            bytes: Cell::new(text.len().saturating_add(BYTES_EXTRA)),
            texts: RefCell::new(BTreeSet::new()),
            leaves_unread: false,
            unread: Cell::new(false),
        }
    }

    /// For objects of an API server: they have no aliases, the length of their text is bounded by their source, and one that is
    /// nested too deep, or has too many values, keeps no other from being read.
    pub(super) fn of_objects() -> Self {
        let (nodes, bytes) = (Cell::new(OBJECT_VALUES_MAX), Cell::new(usize::MAX));
        let (texts, unread) = (RefCell::default(), Cell::new(false));
        Self { nesting_max: OBJECT_NESTING_MAX, nodes, bytes, texts, leaves_unread: true, unread }
    }

    fn node<E: Error>(&self) -> Result<(), E> {
        match self.nodes.get().checked_sub(1) {
            Some(left) => self.nodes.set(left),
            None if self.leaves_unread => return Err(E::custom("its metadata has too many values")),
            None => return Err(E::custom("aliases expand to too many values")),
        }
        Ok(())
    }

    /// Whether no more is read of an object of an API server.
    fn is_full(&self) -> bool {
        self.leaves_unread && self.nodes.get() == 0
    }

    /// Runs what may make so many values, whatever was made before.
    fn anew<R>(&self, values: usize, read: impl FnOnce() -> R) -> R {
        let left = self.nodes.replace(values);
        let result = read();
        self.nodes.set(left);
        result
    }

    fn text<E: Error>(&self, text: &str) -> Result<Str, E> {
        if text.len() > SHARED_MAX_BYTES {
            let left = self.bytes.get().checked_sub(text.len());
            self.bytes.set(left.ok_or_else(|| E::custom("aliases expand to too much text"))?);
            return Ok(text.into());
        }
        let mut texts = self.texts.borrow_mut();
        if let Some(known) = texts.get(text) {
            return Ok(known.clone());
        }
        let new = Str::from(text);
        if texts.len() < SHARED_MAX {
            texts.insert(new.clone());
        }
        Ok(new)
    }
}

/// Reads one value.
#[derive(Clone, Copy)]
pub(super) struct Tree<'a> {
    allowance: &'a Allowance,
    depth: usize,
    place: Place,
    /// Whether it is what an object is known by.
    in_header: bool,
    /// The parts of an object of which only the keys are made.
    hidden: &'static [&'static str],
}

/// Where in an object something is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The object itself, of which what is never kept is left out.
    Object,
    /// Its `metadata`.
    Metadata,
    /// Anywhere else, or everything is wanted.
    Inside,
}

impl Place {
    fn of(self, field: &str) -> Self {
        if self == Self::Object && field == METADATA { Self::Metadata } else { Self::Inside }
    }
}

impl<'a> Tree<'a> {
    pub(super) fn new(allowance: &'a Allowance) -> Self {
        Self { allowance, depth: 0, place: Place::Inside, in_header: false, hidden: &[] }
    }

    /// An object without what no snapshot keeps of any.
    pub(super) fn of_object(allowance: &'a Allowance, hidden: &'static [&'static str]) -> Self {
        Self { place: Place::Object, hidden, ..Self::new(allowance) }
    }

    /// Whether no more is read, and what comes is left unread. Of an object's header everything is read, or it is none.
    fn fills(self) -> bool {
        !self.in_header && self.allowance.is_full()
    }

    /// Where the parts of a map or list are read; nothing where they are left unread.
    fn inner<E: Error>(self) -> Result<Option<Self>, E> {
        let Allowance { nesting_max: most, leaves_unread, unread, .. } = self.allowance;
        match self.depth >= *most {
            true if *leaves_unread => {
                unread.set(true);
                Ok(None)
            }
            true => Err(E::custom(format!("nested deeper than {most} levels"))),
            false => Ok(Some(Self { depth: self.depth + 1, ..self })),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Val;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Val, D::Error> {
        if self.place == Place::Object && self.allowance.leaves_unread {
            return self.allowance.anew(OBJECT_VALUES_MAX, || deserializer.deserialize_any(self));
        }
        self.allowance.node::<D::Error>()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Val;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Val, E> {
        Ok(Val::Null)
    }

    fn visit_none<E>(self) -> Result<Val, E> {
        Ok(Val::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Val, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Val, E> {
        Ok(Val::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Val, E> {
        Ok(Val::Int(value))
    }

    #[expect(clippy::cast_precision_loss, reason = "a number beyond 64 signed bits keeps JSON's double precision")]
    fn visit_u64<E>(self, value: u64) -> Result<Val, E> {
        Ok(i64::try_from(value).map_or(Val::Float(value as f64), Val::Int))
    }

    #[expect(clippy::cast_precision_loss, reason = "a number beyond 64 signed bits keeps JSON's double precision")]
    fn visit_i128<E>(self, value: i128) -> Result<Val, E> {
        Ok(i64::try_from(value).map_or(Val::Float(value as f64), Val::Int))
    }

    #[expect(clippy::cast_precision_loss, reason = "a number beyond 64 signed bits keeps JSON's double precision")]
    fn visit_u128<E>(self, value: u128) -> Result<Val, E> {
        Ok(i64::try_from(value).map_or(Val::Float(value as f64), Val::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Val, E> {
        Ok(Val::Float(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Val, E> {
        self.allowance.text(value).map(Val::Str)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Val, A::Error> {
        let Some(inner) = self.inner::<A::Error>()? else {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Val::Null);
        };
        let mut items = Vec::new();
        while !self.fills() {
            let Some(item) = seq.next_element_seed(inner)? else { return Ok(Val::list(items)) };
            items.push(item);
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {
            self.allowance.unread.set(true);
        }
        Ok(Val::list(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Val, A::Error> {
        let Some(inner) = self.inner::<A::Error>()? else {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(Val::Null);
        };
        let mut entries: Vec<(Str, Val)> = Vec::new();
        while let Some(key) = map.next_key_seed(Name(self.allowance))? {
            if self.place == Place::Metadata && &*key == MANAGED {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            if self.place == Place::Object && self.hidden.contains(&&*key) {
                entries.extend(map.next_value_seed(Keys(self.allowance))?.map(|keys| (key, keys)));
                continue;
            }
            let inner = Self { place: self.place.of(&key), ..inner };
            let of_header = self.place == Place::Object && HEADER.contains(&&*key);
            if of_header && self.allowance.leaves_unread {
                let inner = Self { in_header: true, ..inner };
                entries.push((key, self.allowance.anew(METADATA_VALUES_MAX, || map.next_value_seed(inner))?));
                continue;
            }
            if self.fills() {
                map.next_value::<IgnoredAny>()?;
                self.allowance.unread.set(true);
                continue;
            }
            entries.push((key, map.next_value_seed(inner)?));
        }
        if self.place == Place::Object && self.allowance.unread.replace(false) {
            entries.retain(|(key, _)| **key != *UNREAD);
            entries.push((UNREAD.into(), Val::Bool(true)));
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        let twice = entries.iter().zip(entries.iter().skip(1)).find(|(a, b)| a.0 == b.0);
        match twice {
            Some(((key, _), _)) => Err(A::Error::custom(format!("duplicate key `{}`", short(key)))),
            None => Ok(Val::map(entries)),
        }
    }
}

/// Reads the keys of a map, with empty texts in place of their values, which are passed over; nothing of what is no map.
struct Keys<'a>(&'a Allowance);

impl<'de> DeserializeSeed<'de> for Keys<'_> {
    type Value = Option<Val>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<Val>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Keys<'_> {
    type Value = Option<Val>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_unit<E>(self) -> Result<Option<Val>, E> {
        Ok(Some(Val::Null))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Option<Val>, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Option<Val>, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Option<Val>, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Option<Val>, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Option<Val>, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Option<Val>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<Val>, A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = map.next_key_seed(Name(self.0))? {
            map.next_value::<IgnoredAny>()?;
            if let Some(twice) = keys.replace(key) {
                return Err(A::Error::custom(format!("duplicate key `{}`", short(&twice))));
            }
        }
        Ok(Some(Val::map(keys.into_iter().map(|key| (key, Val::str(HIDDEN))).collect())))
    }
}

/// Reads the name of a field.
struct Name<'a>(&'a Allowance);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Str;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Str, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Str, E> {
        self.0.text(value)
    }
}

/// The start of a text, for an error.
pub(super) fn short(text: &str) -> String {
    text.chars().take(100).collect()
}
