//! Objects as an API server sends them, read in passing: equal texts are one, what is never kept is not made, and what is
//! nested too deep or has too many values is left unread, whereby the object says so.

use serde::de::{Deserialize, DeserializeSeed, Deserializer};

use super::project::hidden;
use super::tree::{Allowance, Tree};
use crate::kinds::Kind;
use crate::value::Val;

/// Reads objects one after the other, from whatever serde reads. Short texts of all of them are shared, which a list of
/// like objects consists of; `metadata.managedFields` is passed over. So are the values of Secrets and ConfigMaps, where it
/// is said that they are that: of their parts only the keys are made.
#[derive(Debug)]
pub struct Passing {
    allowance: Allowance,
    /// The parts of objects whose values are passed over.
    hidden: &'static [&'static str],
}

impl Default for Passing {
    fn default() -> Self {
        Self { allowance: Allowance::of_objects(), hidden: &[] }
    }
}

impl Passing {
    /// For objects of a kind.
    pub fn of(kind: &Kind) -> Self {
        Self { hidden: hidden(kind), ..Self::default() }
    }
}

impl<'de> DeserializeSeed<'de> for &Passing {
    type Value = Val;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Val, D::Error> {
        Tree::of_object(&self.allowance, self.hidden).deserialize(deserializer)
    }
}

/// One object that was read in passing.
#[derive(Clone, Debug)]
pub struct Passed(pub Val);

impl<'de> Deserialize<'de> for Passed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Passing::default().deserialize(deserializer).map(Self)
    }
}

/// One Secret or ConfigMap that was read in passing.
#[derive(Clone, Debug)]
pub struct Blanked(pub Val);

impl<'de> Deserialize<'de> for Blanked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Passing::of(&Kind::new("", "Secret")).deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ingest::project;
    use crate::object::Object;

    fn read(passing: &Passing, text: &str) -> Val {
        passing.deserialize(&mut serde_json::Deserializer::from_str(text)).unwrap()
    }

    #[test]
    fn managed_fields_go_where_they_are_that_and_nowhere_else() {
        let text = r#"{"kind":"A","metadata":{"name":"a","managedFields":[{"f":{}}],"labels":{"managedFields":"x"}},
            "spec":{"managedFields":[1],"metadata":{"managedFields":2}}}"#;
        let read = read(&Passing::default(), text);
        assert_eq!(read.at(&["metadata", "managedFields"]), None);
        let whole: Val = serde_json::from_str(text).unwrap();
        assert_eq!(read, whole.without_at(&["metadata", "managedFields"]), "and all else is there");
    }

    #[test]
    fn values_of_secrets_are_not_made_and_their_keys_are() {
        let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
        let text = format!(
            r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"a","labels":{{"data":"l"}}}},"type":"x/y",
                "data":{{"k":"c2VjcmV0","deep":{deep},"odd":{{"data":"x"}}}},"stringData":"odd","binaryData":null}}"#
        );
        let read = read(&Passing::of(&Kind::new("", "Secret")), &text);
        assert!(!format!("{read:?}").contains("c2VjcmV0") && read.at(&["stringData"]).is_none());
        let keys: Vec<&str> = read.at(&["data"]).unwrap().entries().map(|(key, _)| &**key).collect();
        assert_eq!(keys, ["deep", "k", "odd"]);
        assert_eq!(read.str_at(&["metadata", "labels", "data"]).map(|text| &**text), Some("l"));
        // and what is kept is the same as of one whose values were read
        let whole = Passing::default().deserialize(&mut serde_json::Deserializer::from_str(&text)).unwrap();
        let unread = |val: &Val| val.without_at(&[crate::object::UNREAD]);
        assert_eq!(project(&read), project(&unread(&whole)));
        // of other kinds they are fields like any others
        assert!(
            format!(
                "{:?}",
                Passing::of(&Kind::new("x.io", "Secret"))
                    .deserialize(&mut serde_json::Deserializer::from_str(&text))
                    .unwrap()
            )
            .contains("c2VjcmV0")
        );
    }

    #[test]
    fn objects_share_their_texts() {
        let passing = Passing::default();
        let [a, b] = [r#"{"kind":"Pod","spec":{"x":"y"}}"#, r#"{"kind":"Pod","status":{"x":"y"}}"#]
            .map(|text| read(&passing, text));
        assert!(Arc::ptr_eq(a.str_at(&["spec", "x"]).unwrap(), b.str_at(&["status", "x"]).unwrap()));
    }

    #[test]
    fn what_has_too_many_values_is_unread_from_there_on_and_its_header_is_read() {
        let wide = |values: usize| {
            let (list, map) =
                (vec!["0"; values].join(","), (0..values).map(|at| format!(r#""k{at}":1,"#)).collect::<String>());
            let header = r#""apiVersion":"a/v1","kind":"A","metadata":{"name":"a","labels":{"l":"v"}}"#;
            [
                format!(r#"{{"a":{{"b":[{list}]}},"b":[1],{header},"spec":{{"x":[1]}}}}"#),
                format!(r#"{{"a":{{{map}"last":[1]}},{header},"spec":{{"x":[1]}}}}"#),
                format!(r#"{{{map}{header},"spec":{{"x":[1]}}}}"#),
            ]
        };
        let passing = Passing::default();
        let count = |val: &Val| {
            val.entries().len() + val.at(&["a"]).map_or(0, |a| a.entries().len() + a.items_at(&["b"]).len())
        };
        for (values, is_unread) in [(1_000, false), (1_000_000, true)] {
            for text in wide(values) {
                let val = read(&passing, &text);
                let object = Object::from_val(&val).unwrap();
                assert_eq!((object.is_unread(), object.label("l").map(|l| &**l)), (is_unread, Some("v")), "{values}");
                assert!(count(&val) <= 200_100, "{}", count(&val));
            }
        }
        let labels: String = (0..400_000).map(|at| format!(r#","l{at}":"v""#)).collect();
        let text = format!(r#"{{"apiVersion":"a/v1","kind":"A","metadata":{{"labels":{{"l":"v"{labels}}}}}}}"#);
        let told = serde_json::from_str::<Passed>(&text).unwrap_err().to_string();
        assert!(told.starts_with("its metadata has too many values"), "{told}");
        assert!(!Object::from_val(&read(&passing, &wide(10)[0])).unwrap().is_unread(), "the next one is read");
    }

    #[test]
    fn what_is_nested_too_deep_is_unread_and_the_next_object_is_read() {
        let nested = |depth: usize| {
            let (open, close) = ("{\"a\":[".repeat(depth / 2), "]}".repeat(depth / 2));
            format!(r#"{{"apiVersion":"a/v1","kind":"A","metadata":{{"name":"a"}},"spec":{open}1{close},"x":1}}"#)
        };
        let passing = Passing::default();
        for depth in [200, 100_000] {
            let deep = Object::from_val(&read(&passing, &nested(depth))).unwrap();
            assert!(deep.is_unread() && deep.val().int_at(&["x"]) == Some(1), "{depth}");
            let next = Object::from_val(&read(&passing, &nested(10))).unwrap();
            assert!(!next.is_unread());
        }
        let text = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        assert!(serde_json::from_str::<Passed>(&text).is_ok());
    }
}
