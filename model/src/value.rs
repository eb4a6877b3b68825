//! The value of a Kubernetes field: a small immutable JSON tree whose parts are shared.
//!
//! | JSON | here |
//! |---|---|
//! | string | `Val::Str`, shared |
//! | number without fraction that fits 64 bits | `Val::Int` |
//! | any other number | `Val::Float` |
//! | object | `Val::Map`, keys sorted and unique |

use std::cmp::Ordering;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

/// A shared immutable string.
pub type Str = Arc<str>;

/// One field value. Equality and order are structural and total (floats by `total_cmp`).
#[derive(Clone, Debug, Default)]
pub enum Val {
    /// JSON null.
    #[default]
    Null,
    /// A Boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number that is not an `i64`.
    Float(f64),
    /// A string.
    Str(Str),
    /// A list.
    List(Arc<[Val]>),
    /// An object.
    Map(ValMap),
}

/// What tells a value from others of which equal texts, lists and maps are one in memory: its type, and its bits or its
/// address.
pub(crate) type Identity = (u8, u64);

/// So many entries are looked through one by one.
const FEW_ENTRIES_MAX: usize = 24;

/// The entries of a JSON object, sorted by key, each key once; shared.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ValMap {
    entries: Arc<[(Str, Val)]>,
}

impl ValMap {
    /// The map of these entries; of equal keys the last one counts.
    pub fn new(mut entries: Vec<(Str, Val)>) -> Self {
        if entries.is_sorted_by(|a, b| a.0 < b.0) {
            return Self { entries: entries.into() };
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        let mut unique: Vec<(Str, Val)> = Vec::with_capacity(entries.len());
        for entry in entries {
            match unique.last_mut() {
                Some(last) if last.0 == entry.0 => *last = entry,
                _ => unique.push(entry),
            }
        }
        Self { entries: unique.into() }
    }

    /// The value of `key`, if present.
    pub fn get(&self, key: &str) -> Option<&Val> {
        // the length of a key is told without reading it
        let is_it = |(k, _): &&(Str, Val)| k.len() == key.len() && **k == *key;
        if self.entries.len() <= FEW_ENTRIES_MAX {
            return self.entries.iter().find(is_it).map(|(_, v)| v);
        }
        let at = self.entries.binary_search_by(|(k, _)| (**k).cmp(key)).ok()?;
        self.entries.get(at).map(|(_, v)| v)
    }

    /// Whether the two are one in memory: equal at no cost.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.entries, &other.entries)
    }

    /// How many values hold it.
    pub fn holders(&self) -> usize {
        Arc::strong_count(&self.entries)
    }

    /// The entries in the order of their keys.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Str, &Val)> {
        self.entries.iter().map(|(k, v)| (k, v))
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl Val {
    /// A string value.
    pub fn str(text: impl Into<Str>) -> Self {
        Self::Str(text.into())
    }

    /// A list value.
    pub fn list(items: Vec<Self>) -> Self {
        Self::List(items.into())
    }

    /// An object value; of equal keys the last one counts.
    pub fn map(entries: Vec<(Str, Self)>) -> Self {
        Self::Map(ValMap::new(entries))
    }

    /// An object value from string-keyed pairs.
    pub fn object<const N: usize>(entries: [(&str, Self); N]) -> Self {
        Self::map(entries.into_iter().map(|(k, v)| (Str::from(k), v)).collect())
    }

    /// The field `key` of an object; `None` when this is no object or the field is missing.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Map(map) => map.get(key),
            _ => None,
        }
    }

    /// The value at a path of field names.
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |value, key| value.get(key))
    }

    /// The value at a path, absent when it is null there.
    pub fn at_some(&self, path: &[&str]) -> Option<&Self> {
        self.at(path).filter(|v| !v.is_null())
    }

    /// The string at a path.
    pub fn str_at(&self, path: &[&str]) -> Option<&Str> {
        self.at(path).and_then(Self::as_str)
    }

    /// The name at a path, unless it is empty.
    pub fn name_at(&self, path: &[&str]) -> Option<&str> {
        self.str_at(path).map(|name| &**name).filter(|name| !name.is_empty())
    }

    /// The integer at a path.
    pub fn int_at(&self, path: &[&str]) -> Option<i64> {
        self.at(path).and_then(Self::as_int)
    }

    /// The Boolean at a path.
    pub fn bool_at(&self, path: &[&str]) -> Option<bool> {
        match self.at(path) {
            Some(Self::Bool(b)) => Some(*b),
            _ => None,
        }
    }

    /// The items of the list at a path; empty when there is none.
    pub fn items_at(&self, path: &[&str]) -> &[Self] {
        self.at(path).map_or(&[], Self::items)
    }

    /// The items of a list; empty for anything else.
    pub fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }

    /// About so many bytes, if nothing of it is shared: each text, list and map has its own memory, with two counters.
    pub fn weight(&self) -> usize {
        const COUNTERS: usize = 2 * size_of::<usize>();
        let text = |text: &Str| COUNTERS + text.len();
        let parts = match self {
            Self::Str(of) => text(of),
            Self::List(items) => COUNTERS + items.iter().map(Self::weight).sum::<usize>(),
            Self::Map(map) => {
                let entries = map.iter().map(|(key, value)| size_of::<Str>() + text(key) + value.weight());
                COUNTERS + entries.sum::<usize>()
            }
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::Float(_) => 0,
        };
        size_of::<Self>() + parts
    }

    /// The entries of an object; none for anything else.
    pub fn entries(&self) -> Box<dyn ExactSizeIterator<Item = (&Str, &Self)> + '_> {
        match self {
            Self::Map(map) => Box::new(map.iter()),
            _ => Box::new(std::iter::empty()),
        }
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&Str> {
        match self {
            Self::Str(s) => Some(s),
            _ => None,
        }
    }

    /// The integer, if it is one (a float without fraction counts).
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(i) => Some(*i),
            #[expect(clippy::cast_possible_truncation, reason = "checked to be integral and in range")]
            Self::Float(f) if f.fract() == 0.0 && f.abs() < 9.0e15 => Some(*f as i64),
            _ => None,
        }
    }

    /// Whether this is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// This object with `key` set to `value`; anything but an object becomes one.
    #[must_use]
    pub fn with(&self, key: &str, value: Self) -> Self {
        let Self::Map(map) = self else { return Self::map(vec![(key.into(), value)]) };
        let at = map.entries.partition_point(|(k, _)| **k < *key);
        let (before, rest) = map.entries.split_at(at);
        let (key, after) = match rest.split_first() {
            Some(((known, _), after)) if **known == *key => (known.clone(), after),
            _ => (key.into(), rest),
        };
        let entries = before.iter().cloned().chain([(key, value)]).chain(after.iter().cloned()).collect();
        Self::Map(ValMap { entries })
    }

    /// This object with the value at `path` set, making objects on the way.
    #[must_use]
    pub fn with_at(&self, path: &[&str], value: Self) -> Self {
        match path {
            [] => value,
            [key, rest @ ..] => {
                let inner = self.get(key).cloned().unwrap_or_default();
                self.with(key, inner.with_at(rest, value))
            }
        }
    }

    /// This object without the field at `path`.
    #[must_use]
    pub fn without_at(&self, path: &[&str]) -> Self {
        match path {
            [] => Self::Null,
            [key] => match self {
                Self::Map(map) if map.get(key).is_some() => {
                    Self::map(map.iter().filter(|(k, _)| &***k != *key).map(|(k, v)| (k.clone(), v.clone())).collect())
                }
                other => other.clone(),
            },
            [key, rest @ ..] => match self.get(key) {
                Some(inner) => self.with(key, inner.without_at(rest)),
                None => self.clone(),
            },
        }
    }

    /// Its identity.
    pub(crate) fn identity(&self) -> Identity {
        let address = |at: usize| at as u64;
        let bits = match self {
            Self::Null => 0,
            Self::Bool(bit) => u64::from(*bit),
            Self::Int(number) => number.cast_unsigned(),
            Self::Float(number) => number.to_bits(),
            Self::Str(text) => address(Arc::as_ptr(text).addr()),
            Self::List(items) => address(Arc::as_ptr(items).addr()),
            Self::Map(map) => address(Arc::as_ptr(&map.entries).addr()),
        };
        (self.rank(), bits)
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Int(_) => 2,
            Self::Float(_) => 3,
            Self::Str(_) => 4,
            Self::List(_) => 5,
            Self::Map(_) => 6,
        }
    }
}

impl Ord for Val {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => a.total_cmp(b),
            (Self::Str(a), Self::Str(b)) => a.cmp(b),
            (Self::List(a), Self::List(b)) => {
                if Arc::ptr_eq(a, b) {
                    Ordering::Equal
                } else {
                    a.cmp(b)
                }
            }
            (Self::Map(a), Self::Map(b)) => {
                if a.is(b) {
                    Ordering::Equal
                } else {
                    a.cmp(b)
                }
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Val {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Val {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Val {}

impl std::hash::Hash for Val {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.rank().hash(state);
        match self {
            Self::Null => {}
            Self::Bool(b) => b.hash(state),
            Self::Int(i) => i.hash(state),
            Self::Float(f) => f.to_bits().hash(state),
            Self::Str(s) => s.hash(state),
            Self::List(items) => items.hash(state),
            Self::Map(map) => {
                for (k, v) in map.iter() {
                    k.hash(state);
                    v.hash(state);
                }
            }
        }
    }
}

impl From<&serde_json::Value> for Val {
    fn from(value: &serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(b) => Self::Bool(*b),
            serde_json::Value::Number(n) => {
                n.as_i64().map_or_else(|| Self::Float(n.as_f64().unwrap_or(f64::MAX)), Self::Int)
            }
            serde_json::Value::String(s) => Self::str(s.as_str()),
            serde_json::Value::Array(items) => Self::list(items.iter().map(Self::from).collect()),
            serde_json::Value::Object(map) => {
                Self::map(map.iter().map(|(k, v)| (Str::from(k.as_str()), Self::from(v))).collect())
            }
        }
    }
}

impl Serialize for Val {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(b) => serializer.serialize_bool(*b),
            Self::Int(i) => serializer.serialize_i64(*i),
            Self::Float(f) => serializer.serialize_f64(*f),
            Self::Str(s) => serializer.serialize_str(s),
            Self::List(items) => {
                let mut seq = serializer.serialize_seq(Some(items.len()))?;
                for item in items.iter() {
                    seq.serialize_element(item)?;
                }
                seq.end()
            }
            Self::Map(map) => {
                let mut out = serializer.serialize_map(Some(map.len()))?;
                for (k, v) in map.iter() {
                    out.serialize_entry(&**k, v)?;
                }
                out.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Val {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValVisitor)
    }
}

struct ValVisitor;

impl<'de> Visitor<'de> for ValVisitor {
    type Value = Val;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any YAML or JSON value")
    }

    fn visit_unit<E>(self) -> Result<Val, E> {
        Ok(Val::Null)
    }

    fn visit_none<E>(self) -> Result<Val, E> {
        Ok(Val::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Val, D::Error> {
        Val::deserialize(deserializer)
    }

    fn visit_bool<E>(self, v: bool) -> Result<Val, E> {
        Ok(Val::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Val, E> {
        Ok(Val::Int(v))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Val, E> {
        #[expect(clippy::cast_precision_loss, reason = "a number beyond 64 signed bits keeps JSON's double precision")]
        Ok(i64::try_from(v).map_or(Val::Float(v as f64), Val::Int))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Val, E> {
        Ok(Val::Float(v))
    }

    fn visit_str<E>(self, v: &str) -> Result<Val, E> {
        Ok(Val::str(v))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Val, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Val::list(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Val, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, Val>()? {
            entries.push((Str::from(key), value));
        }
        Ok(Val::map(entries))
    }
}
