//! What is found by a label, of custom resources as of workloads.

use crate::adapter::AdapterFacts;
use crate::kinds::Kind;
use crate::object::{Key, Object};
use crate::selector::Selector;
use crate::state::State;
use crate::testing::{adapted, names, val};

/// The template that an object has in its spec is that of the pods which its operator makes.
fn facts(object: &Object) -> AdapterFacts {
    AdapterFacts { template: object.val().at(&["spec", "template"]).cloned(), ..AdapterFacts::default() }
}

#[test]
fn a_custom_resource_is_found_by_what_its_template_asks_for() {
    let db = |name: &str, labels: &str, spec: &str| {
        format!(
            "{{apiVersion: e.com/v1, kind: Db, metadata: {{name: {name}, namespace: a}}, \
             spec: {{template: {{metadata: {{labels: {labels}}}, spec: {spec}}}}}}}\n---\n"
        )
    };
    let term = "{topologyKey: zone, labelSelector: {matchLabels: {app: x}}}";
    let yaml = [
        db("labelled", "{app: x}", "{}"),
        db("ranked", "{}", "{priorityClassName: high}"),
        db(
            "near",
            "{}",
            &format!("{{affinity: {{podAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{term}]}}}}}}"),
        ),
        db(
            "apart",
            "{}",
            &format!("{{affinity: {{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{term}]}}}}}}"),
        ),
        "{apiVersion: e.com/v1, kind: Db, metadata: {name: none, namespace: a}, spec: {}}\n---\n".to_owned(),
        "{apiVersion: v1, kind: Pod, metadata: {name: placed, namespace: a}, spec: {nodeName: n}}\n---\n".to_owned(),
        "{apiVersion: v1, kind: Pod, metadata: {name: waits, namespace: a}}".to_owned(),
    ];
    let kind = Kind::new("e.com", "Db");
    let snapshot = adapted(&yaml.concat(), vec![(kind.clone(), facts)]);
    let mut state = State::new(&snapshot);
    let making = |state: &State<'_>, selector: &str| {
        names(&state.making(std::slice::from_ref(&kind), "a", &Selector::from_label_selector(&val(selector))))
    };
    assert_eq!(making(&state, "{matchLabels: {app: x}}"), ["Db/a/labelled"]);
    assert_eq!(
        making(&state, "{}"),
        ["Db/a/apart", "Db/a/labelled", "Db/a/near", "Db/a/ranked"],
        "one has no template"
    );
    assert_eq!(names(&state.ranked()), ["Db/a/ranked"]);
    assert_eq!(names(&snapshot.following()), ["Db/a/near"]);
    let mut related = names(&state.related_to("a", &val("{app: x}")));
    related.sort();
    assert_eq!(related, ["Db/a/apart", "Db/a/near"]);
    assert_eq!(names(&state.waiting()), ["Pod/a/waits"]);
    let bare = adapted(&db("labelled", "{}", "{}"), Vec::new());
    for object in bare.iter() {
        state.put_shared(object.clone());
    }
    state.take(&Key::new(kind.clone(), "a", "ranked"));
    assert_eq!(making(&state, "{matchLabels: {app: x}}"), Vec::<String>::new(), "it asks for nothing any more");
    assert_eq!(names(&state.ranked()), Vec::<String>::new());
}
