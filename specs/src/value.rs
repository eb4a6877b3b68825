//! The concrete value of an expression. Lists and maps of JSON are shared with the object that holds them.
//!
//! | CEL | here |
//! |---|---|
//! | int, uint, double, string, bytes, bool, null | the variant of that name |
//! | timestamp, duration | nanoseconds, since 1970 or in all |
//! | list, map | [`ListValue`], [`MapValue`]: JSON as it stands in an object, or computed |
//! | an object of the cluster | [`Value::Object`]: its fields are read through [`model::object::Object::at`](suture_model::object::Object::at) |
//! | a state of the cluster | [`Value::World`]: which one; the states themselves are in the environment |

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use suture_model::navigate::HostClaim;
use suture_model::object::{Object, Owner};
use suture_model::references::Reference;
use suture_model::value::{Str, Val, ValMap};

use crate::ir::Type;

/// Which state of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum World {
    /// What the watch shows.
    Before,
    /// The future under judgement (`after` too, when the invariant holds After).
    Now,
}

impl World {
    /// Whether a variable holds one of them.
    pub fn is_name(name: &str) -> bool {
        [Self::Before, Self::Now].iter().any(|world| world.name() == name)
    }

    /// The variable that holds it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Now => "now",
        }
    }
}

/// A value. `==` is CEL's equality: numbers by value across types, other types never equal to one another.
#[derive(Clone, Debug)]
pub enum Value {
    /// `null`.
    Null,
    /// A Boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A double.
    Double(f64),
    /// A string.
    String(Str),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A point in time, in nanoseconds since 1970.
    Timestamp(i128),
    /// A span of time, in nanoseconds.
    Duration(i128),
    /// A list.
    List(ListValue),
    /// A map.
    Map(MapValue),
    /// An object of the cluster.
    Object(Arc<Object>),
    /// A state of the cluster.
    World(World),
    /// A reference between objects.
    Reference(Arc<Reference>),
    /// An owner reference.
    Owner(Arc<Owner>),
    /// A claimed host.
    HostClaim(Arc<HostClaim>),
    /// An optional.
    Optional(Option<Arc<Value>>),
    /// A type.
    Type(Type),
}

/// A list: JSON that an object holds, or computed values.
#[derive(Clone, Debug)]
pub enum ListValue {
    /// A list of JSON, shared.
    Json(Arc<[Val]>),
    /// Computed values.
    Values(Arc<[Value]>),
    /// Objects, in a list that is shared.
    Objects(Arc<[Arc<Object>]>),
}

/// A map: JSON that an object holds, or computed values.
#[derive(Clone, Debug)]
pub enum MapValue {
    /// A JSON object, shared.
    Json(ValMap),
    /// Computed entries.
    Values(Arc<BTreeMap<MapKey, Value>>),
}

/// The key of a computed map. Integers are ordered and compared by value, signed or not.
#[derive(Clone, Debug)]
pub enum MapKey {
    /// A Boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A string.
    String(Str),
}

impl MapKey {
    fn rank(&self) -> u8 {
        match self {
            Self::Bool(_) => 0,
            Self::Int(_) | Self::UInt(_) => 1,
            Self::String(_) => 2,
        }
    }

    fn number(&self) -> i128 {
        match self {
            Self::Int(i) => i128::from(*i),
            Self::UInt(u) => i128::from(*u),
            Self::Bool(_) | Self::String(_) => 0,
        }
    }

    /// The key that this value is; a double counts as the integer it equals.
    pub fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(b) => Some(Self::Bool(*b)),
            Value::Int(i) => Some(Self::Int(*i)),
            Value::UInt(u) => Some(Self::UInt(*u)),
            Value::String(s) => Some(Self::String(s.clone())),
            #[expect(clippy::cast_possible_truncation, reason = "checked to be integral and in range")]
            Value::Double(d) if d.fract() == 0.0 && d.abs() < 9.0e15 => Some(Self::Int(*d as i64)),
            _ => None,
        }
    }

    /// The key as a value.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Bool(b) => Value::Bool(*b),
            Self::Int(i) => Value::Int(*i),
            Self::UInt(u) => Value::UInt(*u),
            Self::String(s) => Value::String(s.clone()),
        }
    }
}

impl Ord for MapKey {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::String(a), Self::String(b)) => a.cmp(b),
            (a, b) => a.rank().cmp(&b.rank()).then_with(|| a.number().cmp(&b.number())),
        }
    }
}

impl PartialOrd for MapKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for MapKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for MapKey {}

impl ListValue {
    /// How many items there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Json(items) => items.len(),
            Self::Values(items) => items.len(),
            Self::Objects(items) => items.len(),
        }
    }

    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at a position.
    pub fn get(&self, at: usize) -> Option<Value> {
        match self {
            Self::Json(items) => items.get(at).map(Value::from),
            Self::Values(items) => items.get(at).cloned(),
            Self::Objects(items) => items.get(at).map(|o| Value::Object(o.clone())),
        }
    }

    /// The items in order.
    pub fn iter(&self) -> impl Iterator<Item = Value> + '_ {
        (0..self.len()).filter_map(|at| self.get(at))
    }
}

impl MapValue {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Json(map) => map.len(),
            Self::Values(map) => map.len(),
        }
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key; `None` as well for a value that can be no key.
    pub fn get(&self, key: &Value) -> Option<Value> {
        match self {
            Self::Json(map) => match key {
                Value::String(s) => map.get(s).map(Value::from),
                _ => None,
            },
            Self::Values(map) => map.get(&MapKey::from_value(key)?).cloned(),
        }
    }

    /// The value of a string key.
    pub fn field(&self, name: &str) -> Option<Value> {
        match self {
            Self::Json(map) => map.get(name).map(Value::from),
            Self::Values(map) => map.get(&MapKey::String(name.into())).cloned(),
        }
    }

    /// The entries in the order of their keys.
    pub fn iter(&self) -> Box<dyn Iterator<Item = (Value, Value)> + '_> {
        match self {
            Self::Json(map) => Box::new(map.iter().map(|(k, v)| (Value::String(k.clone()), Value::from(v)))),
            Self::Values(map) => Box::new(map.iter().map(|(k, v)| (k.to_value(), v.clone()))),
        }
    }
}

impl From<&Val> for Value {
    fn from(val: &Val) -> Self {
        match val {
            Val::Null => Self::Null,
            Val::Bool(b) => Self::Bool(*b),
            Val::Int(i) => Self::Int(*i),
            Val::Float(f) => Self::Double(*f),
            Val::Str(s) => Self::String(s.clone()),
            Val::List(items) => Self::List(ListValue::Json(items.clone())),
            Val::Map(map) => Self::Map(MapValue::Json(map.clone())),
        }
    }
}

impl Value {
    /// A string.
    pub fn str(text: impl Into<Str>) -> Self {
        Self::String(text.into())
    }

    /// A list of computed values.
    pub fn list(items: Vec<Self>) -> Self {
        Self::List(ListValue::Values(items.into()))
    }

    /// A map of computed entries.
    pub fn map(entries: BTreeMap<MapKey, Self>) -> Self {
        Self::Map(MapValue::Values(Arc::new(entries)))
    }

    /// A list of objects.
    pub fn objects<'o>(objects: impl IntoIterator<Item = &'o Arc<Object>>) -> Self {
        Self::List(ListValue::Objects(objects.into_iter().cloned().collect()))
    }

    /// An optional that has a value.
    pub fn some(value: Self) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// An empty optional.
    pub fn none() -> Self {
        Self::Optional(None)
    }

    /// The Boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// The integer, if it is one, signed or not, or a double without fraction.
    #[expect(clippy::cast_possible_truncation, reason = "checked to be integral and in range")]
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(i) => Some(*i),
            Self::UInt(u) => i64::try_from(*u).ok(),
            Self::Double(d) if d.fract() == 0.0 && d.abs() < 9.0e15 => Some(*d as i64),
            _ => None,
        }
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&Str> {
        match self {
            Self::String(s) => Some(s),
            _ => None,
        }
    }

    /// The object, if it is one.
    pub fn as_object(&self) -> Option<&Arc<Object>> {
        match self {
            Self::Object(o) => Some(o),
            _ => None,
        }
    }

    /// The items of a list.
    pub fn as_list(&self) -> Option<&ListValue> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// The type of this value, without the types of what it contains.
    pub fn type_of(&self) -> Type {
        match self {
            Self::Null => Type::Null,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::UInt(_) => Type::UInt,
            Self::Double(_) => Type::Double,
            Self::String(_) => Type::String,
            Self::Bytes(_) => Type::Bytes,
            Self::Timestamp(_) => Type::Timestamp,
            Self::Duration(_) => Type::Duration,
            Self::List(_) => Type::list(Type::Never),
            Self::Map(_) => Type::map(Type::Never, Type::Never),
            Self::Object(o) => Type::Object(o.key.kind.builtin_namespaced().map(|_| o.key.kind.clone())),
            Self::World(_) => Type::World,
            Self::Reference(_) => Type::Reference,
            Self::Owner(_) => Type::Owner,
            Self::HostClaim(_) => Type::HostClaim,
            Self::Optional(_) => Type::Optional(Box::new(Type::Never)),
            Self::Type(_) => Type::Type,
        }
    }

    /// The value as JSON, for params and adapters; `None` when it has no such form.
    pub fn to_val(&self) -> Option<Val> {
        match self {
            Self::Null => Some(Val::Null),
            Self::Bool(b) => Some(Val::Bool(*b)),
            Self::Int(i) => Some(Val::Int(*i)),
            #[expect(
                clippy::cast_precision_loss,
                reason = "a number beyond 64 signed bits keeps JSON's double precision"
            )]
            Self::UInt(u) => Some(i64::try_from(*u).map_or(Val::Float(*u as f64), Val::Int)),
            Self::Double(d) => Some(Val::Float(*d)),
            Self::String(s) => Some(Val::Str(s.clone())),
            Self::List(ListValue::Json(items)) => Some(Val::List(items.clone())),
            Self::List(ListValue::Values(items)) => {
                Some(Val::list(items.iter().map(Self::to_val).collect::<Option<Vec<_>>>()?))
            }
            Self::List(items @ ListValue::Objects(_)) => {
                Some(Val::list(items.iter().map(|o| o.to_val()).collect::<Option<Vec<_>>>()?))
            }
            Self::Map(MapValue::Json(map)) => Some(Val::Map(map.clone())),
            Self::Map(MapValue::Values(map)) => {
                let entries = map.iter().map(|(k, v)| Some((k.to_value().display().into(), v.to_val()?)));
                Some(Val::map(entries.collect::<Option<Vec<_>>>()?))
            }
            Self::Object(o) => Some(o.to_val()),
            Self::Optional(inner) => inner.as_ref().map_or(Some(Val::Null), |v| v.to_val()),
            Self::Bytes(_)
            | Self::Timestamp(_)
            | Self::Duration(_)
            | Self::World(_)
            | Self::Reference(_)
            | Self::Owner(_)
            | Self::HostClaim(_)
            | Self::Type(_) => None,
        }
    }
}

/// Numbers of every type, compared by value; `None` with NaN.
pub(crate) fn compare_numbers(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Double(a), b) => compare_double(*a, integer(b)?),
        (a, Value::Double(b)) => compare_double(*b, integer(a)?).map(Ordering::reverse),
        (a, b) => Some(integer(a)?.cmp(&integer(b)?)),
    }
}

fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::Int(i) => Some(i128::from(*i)),
        Value::UInt(u) => Some(i128::from(*u)),
        _ => None,
    }
}

/// Compares exactly: a double is not rounded, nor is the integer.
fn compare_double(a: f64, b: i128) -> Option<Ordering> {
    if a.is_nan() {
        return None;
    }
    // every 64-bit integer lies well inside
    if a >= 1.0e20 {
        return Some(Ordering::Greater);
    }
    if a <= -1.0e20 {
        return Some(Ordering::Less);
    }
    #[expect(clippy::cast_possible_truncation, reason = "bounded above")]
    let floor = a.floor() as i128;
    Some(floor.cmp(&b).then(if a.fract() == 0.0 { Ordering::Equal } else { Ordering::Greater }))
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Int(_) | Self::UInt(_) | Self::Double(_), Self::Int(_) | Self::UInt(_) | Self::Double(_)) => {
                compare_numbers(self, other) == Some(Ordering::Equal)
            }
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Timestamp(a), Self::Timestamp(b)) | (Self::Duration(a), Self::Duration(b)) => a == b,
            (Self::List(a), Self::List(b)) => a == b,
            (Self::Map(a), Self::Map(b)) => a == b,
            (Self::Object(a), Self::Object(b)) => Arc::ptr_eq(a, b) || a == b,
            (Self::World(a), Self::World(b)) => a == b,
            (Self::Reference(a), Self::Reference(b)) => a == b,
            // who is named, not how (`garbagecollector.go`, `ownerRefsToUIDs`)
            (Self::Owner(a), Self::Owner(b)) => (&a.kind, &a.name, &a.uid) == (&b.kind, &b.name, &b.uid),
            (Self::HostClaim(a), Self::HostClaim(b)) => a == b,
            (Self::Optional(a), Self::Optional(b)) => a == b,
            (Self::Type(a), Self::Type(b)) => a == b,
            _ => false,
        }
    }
}

impl PartialEq for ListValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Json(a), Self::Json(b)) if Arc::ptr_eq(a, b) => true,
            _ => self.len() == other.len() && self.iter().zip(other.iter()).all(|(a, b)| a == b),
        }
    }
}

impl PartialEq for MapValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Json(a), Self::Json(b)) if a.is(b) => true,
            _ => self.len() == other.len() && self.iter().all(|(k, v)| other.get(&k).is_some_and(|w| v == w)),
        }
    }
}

impl Value {
    /// The value for a person: strings bare, objects by their names, lists and maps in CEL's notation.
    pub fn display(&self) -> String {
        match self {
            Self::Null => "null".into(),
            Self::Bool(b) => b.to_string(),
            Self::Int(i) => i.to_string(),
            Self::UInt(u) => u.to_string(),
            Self::Double(d) => crate::strings::double_text(*d),
            Self::String(s) => s.to_string(),
            Self::Bytes(b) => String::from_utf8_lossy(b).into_owned(),
            Self::Timestamp(t) => crate::time::format_timestamp(*t),
            Self::Duration(d) => crate::time::format_duration(*d),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(|v| v.quoted()).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Map(map) => {
                let entries: Vec<String> = map.iter().map(|(k, v)| format!("{}: {}", k.quoted(), v.quoted())).collect();
                format!("{{{}}}", entries.join(", "))
            }
            Self::Object(o) => o.key.to_string(),
            Self::World(w) => w.name().into(),
            Self::Reference(r) => r.target.to_string(),
            Self::Owner(o) => format!("{}/{}", o.kind, o.name),
            Self::HostClaim(c) => format!("{} {}{}", c.class, c.host, c.path),
            Self::Optional(Some(v)) => format!("optional.of({})", v.quoted()),
            Self::Optional(None) => "optional.none()".into(),
            Self::Type(t) => t.to_string(),
        }
    }

    fn quoted(&self) -> String {
        match self {
            Self::String(s) => format!("'{s}'"),
            other => other.display(),
        }
    }
}
