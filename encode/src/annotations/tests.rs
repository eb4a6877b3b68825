//! What shipped templates and expressions read.

use suture_model::ingest::parse_documents;
use suture_specs::compile::compile_invariant;
use suture_specs::library::Library;
use suture_specs::spec::{Origin, Spec, parse_spec};

use super::*;

fn of(spec: &str) -> Annotations {
    let text = format!("{{apiVersion: suture.dev/v1alpha1, kind: Invariant, metadata: {{name: x}}, spec: {spec}}}");
    let documents = parse_documents(&text, "a test").expect("YAML");
    let library = Library::shipped().expect("the shipped library compiles");
    let Ok(Spec::Invariant(invariant)) = parse_spec(&documents[0].val, Origin::named("a test")) else {
        panic!("{text}")
    };
    Annotations::of(&compile_invariant(&invariant, &library).unwrap_or_else(|errors| panic!("{errors:?}")))
}

fn requiring(expression: &str) -> Annotations {
    of(&format!("{{forEach: {{var: s, kind: Service}}, require: [{{expression: \"{expression}\"}}]}}"))
}

fn named<const N: usize>(keys: [&str; N]) -> Annotations {
    Annotations::Named(keys.map(Str::from).into())
}

#[test]
fn shipped_templates_name_those_they_read() {
    let library = Library::shipped().expect("the shipped library compiles");
    for name in library.names() {
        let read = of(&format!("{{template: {name}}}"));
        let expected = match &*name.to_string() {
            "serving-namespace-kept" => named(["suture.dev/confirm-delete"]),
            _ => named([]),
        };
        assert_eq!(read, expected, "{name}");
    }
}

#[test]
fn what_may_be_read_is_counted_in() {
    let unread = [
        "s.metadata.name == 'x'",
        "s.endpoints(now).size() > 0",
        "has(s.metadata.labels)",
        "s.?metadata.?labels.?a == optional.none()",
    ];
    for expression in unread {
        assert_eq!(requiring(expression), named([]), "{expression}");
    }
    assert_eq!(requiring("s.annotation('a') == s.at(now).annotation('b')"), named(["a", "b"]));
    let all = [
        "s.metadata.annotations['a'] == 'b'",
        "has(s.metadata.annotations)",
        "s.?metadata.?annotations.?a.orValue('') == 'b'",
        "s.metadata == s.at(now).metadata",
        "s == s.at(now)",
        "s in now.objects('Service')",
        "s.annotation(s.metadata.name) == 'b'",
    ];
    for expression in all {
        assert_eq!(requiring(expression), Annotations::All, "{expression}");
    }
}
