//! The definitions are structural, say what every field means, and do not change unnoticed.

use std::path::Path;

use serde_json::Value as Json;
use suture_model::value::Val;
use suture_specs::spec::{Origin, parse_spec};

use super::admission::admit;
use super::{definitions, editor_schemas, structural};
use crate::policy::{Documents, Policy};

#[test]
fn every_definition_is_structural_and_explained() {
    for definition in definitions() {
        let name = definition["metadata"]["name"].as_str().unwrap();
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let problems = structural::problems(schema);
        assert!(problems.is_empty(), "{name}:\n{}", problems.join("\n"));
    }
}

#[test]
fn the_definitions_are_as_reviewed() {
    // `SUTURE_ACCEPT=1 cargo test` writes them
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/serve/resources/definitions.yaml");
    let documents: Vec<String> = definitions().iter().map(|d| serde_saphyr::to_string(d).unwrap()).collect();
    let text = documents.join("---\n");
    if std::env::var_os("SUTURE_ACCEPT").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap() == text,
        "{} differs: accept it with SUTURE_ACCEPT=1",
        path.display()
    );
}

#[test]
fn editors_get_a_schema_for_every_kind() {
    let schemas = editor_schemas();
    assert_eq!(schemas.len(), 7);
    assert_eq!(schemas["exemption.json"]["properties"]["kind"]["const"], Json::from("Exemption"));
    assert!(schemas["invariant.json"]["properties"]["spec"]["properties"]["require"].is_object());
}

const TEMPLATE: &str = r#"{"apiVersion": "suture.dev/v1alpha1", "kind": "InvariantTemplate", "metadata": {"name": "own"},
  "spec": {"description": "d", "forEach": {"var": "s", "kind": "Service"}, "require": [{"expression": "s.liveIn(now)"}]}}"#;
const USER: &str = r#"{"apiVersion": "suture.dev/v1alpha1", "kind": "Invariant", "metadata": {"name": "user"},
  "spec": {"template": "own"}}"#;

fn val(text: &str) -> Val {
    serde_json::from_str(text).unwrap()
}

fn loaded(texts: &[&str]) -> Documents {
    let mut documents = Documents::default();
    for text in texts {
        documents.extend(Documents::from(parse_spec(&val(text), Origin::named("the cluster")).unwrap()));
    }
    documents
}

fn asked(operation: &str, resource: &str, object: &str) -> Val {
    let field = if operation == "DELETE" { "oldObject" } else { "object" };
    val(&format!(
        r#"{{"request": {{"operation": "{operation}", "resource": {{"group": "suture.dev", "resource": "{resource}"}},
           "{field}": {object}}}}}"#
    ))
}

#[test]
fn what_does_not_compile_is_refused_with_the_compilers_message() {
    let broken = USER.replace(
        r#"{"template": "own"}"#,
        r#"{"forEach": {"var": "s", "kind": "Service"}, "require": [{"expression": "s.endpoint(now).size() > 0"}]}"#,
    );
    let message = admit(&asked("CREATE", "invariants", &broken), &loaded(&[TEMPLATE])).unwrap();
    assert!(message.contains("endpoint(now)") && message.contains("endpoints"), "{message}");
    let misspelt = USER.replace("template", "tempalte");
    let message = admit(&asked("UPDATE", "invariants", &misspelt), &loaded(&[TEMPLATE, USER])).unwrap();
    assert!(message.contains("unknown field `tempalte`"), "{message}");
    assert_eq!(admit(&asked("CREATE", "invariants", USER), &loaded(&[TEMPLATE])), None);
    assert_eq!(admit(&asked("UPDATE", "invariants", USER), &loaded(&[TEMPLATE, USER])), None);
}

#[test]
fn a_template_in_use_stays_and_means_what_its_users_need() {
    let all = loaded(&[TEMPLATE, USER]);
    let message = admit(&asked("DELETE", "invarianttemplates", TEMPLATE), &all).unwrap();
    assert_eq!(message, "template `own` is in use by Invariant user; delete these first");
    assert_eq!(admit(&asked("DELETE", "invarianttemplates", TEMPLATE), &loaded(&[TEMPLATE])), None);
    assert_eq!(admit(&asked("DELETE", "invariants", USER), &all), None);
    // a parameter that its user does not give
    let changed =
        TEMPLATE.replace(r#""description": "d","#, r#""description": "d", "parameters": {"n": {"type": "int"}},"#);
    let message = admit(&asked("UPDATE", "invarianttemplates", &changed), &all).unwrap();
    assert!(message.contains('n'), "{message}");
}

#[test]
fn a_broken_policy_stays_repairable() {
    // the template of `user` is gone: it does not compile, and is not to blame on another invariant
    let broken = loaded(&[USER]);
    let other = USER.replace(r#""user""#, r#""other""#).replace(r#""own""#, r#""quorum-kept""#);
    assert_eq!(admit(&asked("CREATE", "invariants", &other), &broken), None);
    assert_eq!(admit(&asked("CREATE", "invarianttemplates", TEMPLATE), &broken), None);
    let _: Policy = loaded(&[TEMPLATE, USER]).compile().unwrap();
}

#[test]
fn what_is_not_ours_is_not_looked_at() {
    let pod = r#"{"request": {"operation": "CREATE", "resource": {"group": "", "resource": "pods"}, "object": {"kind": "Pod"}}}"#;
    assert_eq!(admit(&val(pod), &Documents::default()), None);
    let status = r#"{"request": {"operation": "UPDATE", "subResource": "status",
        "resource": {"group": "suture.dev", "resource": "invariants"}, "object": {"kind": "Invariant"}}}"#;
    assert_eq!(admit(&val(status), &Documents::default()), None);
}
