//! A page of a list, as an API server sends it.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use suture_model::ingest::Passing;
use suture_model::value::Val;

/// What a page says.
#[derive(Debug, Default)]
pub struct Page {
    /// The list's resourceVersion; empty where none is named.
    pub version: String,
    /// What the next page is asked for by, if there is one.
    pub token: Option<String>,
    /// The objects, which leave out what they are.
    pub items: Vec<Val>,
}

/// Reads a page of objects, each in passing.
///
/// # Errors
/// When it is no list.
pub fn read_page(text: &[u8], passing: Passing) -> Result<Page, serde_json::Error> {
    let mut source = serde_json::Deserializer::from_slice(text);
    let page = source.deserialize_map(Fields(passing))?;
    source.end()?;
    Ok(page)
}

/// `ListMeta`, as far as it is needed.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Meta {
    resource_version: Option<String>,
    #[serde(rename = "continue")]
    token: Option<String>,
}

/// Reads the fields of a list.
struct Fields(Passing);

impl<'de> Visitor<'de> for Fields {
    type Value = Page;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Page, A::Error> {
        let (mut meta, mut items) = (None, None);
        while let Some(field) = map.next_key::<String>()? {
            match &*field {
                "metadata" => meta = Some(map.next_value::<Meta>()?),
                "items" => items = Some(map.next_value_seed(Items(&self.0))?),
                _ => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        // whatever else answers is no list
        let meta = meta.ok_or_else(|| A::Error::missing_field("metadata"))?;
        let items = items.ok_or_else(|| A::Error::missing_field("items"))?;
        let token = meta.token.filter(|token| !token.is_empty());
        Ok(Page { version: meta.resource_version.unwrap_or_default(), token, items })
    }
}

/// Reads the items of a list: null where there are none (`k8s.io/apimachinery/pkg/apis/meta/v1/types.go`).
struct Items<'p>(&'p Passing);

impl<'de> DeserializeSeed<'de> for Items<'_> {
    type Value = Vec<Val>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Val>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = Vec<Val>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the items of a list")
    }

    fn visit_unit<E>(self) -> Result<Vec<Val>, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<Val>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self.0)? {
            items.push(item);
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use suture_model::kinds::Kind;
    use suture_model::object::UNREAD;

    use super::*;

    fn pods() -> Passing {
        Passing::of(&Kind::new("", "Pod"))
    }

    #[test]
    fn a_list_is_read_whatever_the_order_of_its_fields() {
        let text = br#"{"kind":"PodList","items":[{"metadata":{"name":"a"}},{}],"metadata":{"resourceVersion":"7","continue":"t"}}"#;
        let Page { version, token, items } = read_page(text, pods()).unwrap();
        assert_eq!((&*version, token.as_deref(), items.len()), ("7", Some("t"), 2));
        let text = br#"{"metadata":{"continue":""},"items":null}"#;
        let Page { version, token, items } = read_page(text, pods()).unwrap();
        assert_eq!((&*version, token, items.len()), ("", None, 0));
    }

    #[test]
    fn values_of_secrets_do_not_come_to_memory() {
        let text = br#"{"metadata":{},"items":[{"metadata":{"name":"a"},"type":"Opaque","data":{"key":"c2VjcmV0"}}]}"#;
        let items = read_page(text, Passing::of(&Kind::new("", "Secret"))).unwrap().items;
        assert_eq!(items[0].str_at(&["data", "key"]).map(|value| &**value), Some(suture_model::object::HIDDEN));
        assert_eq!(items[0].str_at(&["type"]).map(|value| &**value), Some("Opaque"));
    }

    #[test]
    fn an_object_that_is_nested_too_deep_keeps_no_other_from_being_read() {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(5_000), "}".repeat(5_000));
        let text = format!(
            r#"{{"metadata":{{}},"items":[{{"metadata":{{"name":"a"}},"spec":{deep}}},{{"metadata":{{"name":"b"}},"spec":1}}]}}"#
        );
        let items = read_page(text.as_bytes(), pods()).unwrap().items;
        let unread: Vec<bool> = items.iter().map(|item| item.get(UNREAD).is_some()).collect();
        assert_eq!(unread, [true, false]);
    }

    #[test]
    fn what_is_no_list_is_not_an_empty_one() {
        for text in ["{}", r#"{"metadata":{}}"#, r#"{"items":[]}"#, "[]", "", r#"{"metadata":{},"items":[]} x"#] {
            assert!(read_page(text.as_bytes(), pods()).is_err(), "`{text}`");
        }
    }
}
