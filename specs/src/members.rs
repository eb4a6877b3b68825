//! Many values, among which an equal one is found without looking at all of them.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use suture_model::hash::hasher;

use crate::value::Value;

/// Values, each once, with something about each.
#[derive(Debug)]
pub struct Members<T> {
    by_mark: BTreeMap<u64, Vec<(Value, T)>>,
}

impl<T> Default for Members<T> {
    fn default() -> Self {
        Self { by_mark: BTreeMap::new() }
    }
}

impl<T> Members<T> {
    /// What is known of an equal value, if there is one. Not a number equals nothing.
    pub fn get(&self, value: &Value) -> Option<&T> {
        let alike = self.by_mark.get(&mark(value))?;
        alike.iter().find(|(known, _)| known == value).map(|(_, about)| about)
    }

    /// Adds a value, unless there is an equal one; whether it did.
    pub fn add(&mut self, value: &Value, about: T) -> bool {
        let alike = self.by_mark.entry(mark(value)).or_default();
        let is_new = !alike.iter().any(|(known, _)| known == value);
        if is_new {
            alike.push((value.clone(), about));
        }
        is_new
    }
}

impl FromIterator<Value> for Members<()> {
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> Self {
        let mut members = Self::default();
        for value in values {
            members.add(&value, ());
        }
        members
    }
}

/// What equal values have in common, and few others.
fn mark(value: &Value) -> u64 {
    let mut hasher = hasher();
    match value {
        Value::Bool(b) => b.hash(&mut hasher),
        // numbers are equal by value, whatever their type; a double that equals an integer is what that is rounded to
        #[expect(clippy::cast_precision_loss, reason = "equal numbers are rounded to the same")]
        Value::Int(i) => double(*i as f64).hash(&mut hasher),
        #[expect(clippy::cast_precision_loss, reason = "equal numbers are rounded to the same")]
        Value::UInt(u) => double(*u as f64).hash(&mut hasher),
        Value::Double(d) => double(*d).hash(&mut hasher),
        Value::String(s) => s.hash(&mut hasher),
        Value::Bytes(b) => b.hash(&mut hasher),
        Value::Timestamp(t) | Value::Duration(t) => t.hash(&mut hasher),
        Value::List(items) => items.iter().for_each(|item| mark(&item).hash(&mut hasher)),
        Value::Map(map) => {
            map.len().hash(&mut hasher);
            map.iter().fold(0_u64, |sum, (_, value)| sum.wrapping_add(mark(&value))).hash(&mut hasher);
        }
        Value::Object(o) => (&*o.key.kind.kind, &o.key.ns, &o.key.name).hash(&mut hasher),
        Value::Reference(r) => (&*r.target.kind.kind, &r.target.ns, &r.target.name).hash(&mut hasher),
        Value::Owner(o) => (&o.name, &o.uid).hash(&mut hasher),
        Value::HostClaim(c) => (&c.host, &c.path).hash(&mut hasher),
        Value::Optional(Some(inner)) => mark(inner).hash(&mut hasher),
        Value::Null | Value::World(_) | Value::Optional(None) | Value::Type(_) => {}
    }
    hasher.finish()
}

/// A double by its bits, of which the two zeros are one.
fn double(value: f64) -> u64 {
    if value == 0.0 { 0 } else { value.to_bits() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap as Map;
    use std::sync::Arc;

    use suture_model::value::Val;

    use super::*;
    use crate::value::{MapKey, MapValue};

    #[test]
    fn what_is_equal_is_found_and_nothing_else() {
        let json: Val = serde_json::from_str(r#"{"a": [1, {"b": 2.0}], "n": -0.0}"#).unwrap();
        let computed = Map::from([
            (MapKey::String("n".into()), Value::Int(0)),
            (
                MapKey::String("a".into()),
                Value::list(vec![Value::UInt(1), Value::from(&Val::object([("b", Val::Int(2))]))]),
            ),
        ]);
        let all = [
            Value::Null,
            Value::Bool(true),
            Value::Int(1),
            Value::UInt(1),
            Value::Double(1.0),
            Value::Int(0),
            Value::Double(-0.0),
            Value::Int(i64::MAX),
            Value::UInt(u64::MAX),
            Value::Double(9_223_372_036_854_775_808.0),
            Value::Double(f64::NAN),
            Value::str("1"),
            Value::Timestamp(1),
            Value::Duration(1),
            Value::list(vec![]),
            Value::list(vec![Value::Int(1)]),
            Value::list(vec![Value::Double(1.0)]),
            Value::from(&json),
            Value::Map(MapValue::Values(Arc::new(computed))),
            Value::Optional(None),
            Value::Optional(Some(Arc::new(Value::UInt(1)))),
            Value::Optional(Some(Arc::new(Value::Int(1)))),
        ];
        for one in &all {
            let members: Members<()> = [one.clone()].into_iter().collect();
            for other in &all {
                assert_eq!(members.get(other).is_some(), one == other, "{one:?} {other:?}");
            }
        }
        let members: Members<()> = all.iter().cloned().collect();
        let found = |value: &&Value| members.get(value).is_some();
        assert_eq!(all.iter().filter(found).count(), all.len() - 1, "not a number is not even equal to itself");
    }
}
