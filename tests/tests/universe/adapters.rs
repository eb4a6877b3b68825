//! The adapter of the universes' custom resource, `Db` of `example.com`: what an object of it means stands in its spec.

use std::sync::Arc;

use suture_model::adapter::{AdapterFacts, Adapters};
use suture_model::kinds::Kind;
use suture_model::object::{Key, Object};
use suture_model::references::Reference;
use suture_model::selector::Selector;
use suture_model::value::Val;

/// Reads every `Db` by its own fields.
#[derive(Clone, Copy, Debug)]
pub struct Databases;

/// The group of the custom resource.
pub const GROUP: &str = "example.com";

/// The custom resource.
pub fn db() -> Kind {
    Kind::new(GROUP, "Db")
}

impl Adapters for Databases {
    fn facts(&self, object: &Object) -> Option<Arc<AdapterFacts>> {
        (object.key.kind == db()).then(|| Arc::new(facts(object)))
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![db()]
    }
}

fn facts(object: &Object) -> AdapterFacts {
    let ns = &object.key.ns;
    let spec = object.val().get("spec").cloned().unwrap_or_default();
    let flag = |name: &str| spec.bool_at(&[name]).unwrap_or(false);
    let app = spec.str_at(&["app"]);
    let labels = app.map_or(Val::Null, |app| Val::object([("app", Val::Str(app.clone()))]));
    let selector = app.map(|_| Selector::from_pairs(&labels));
    let children = spec.at_some(&["children"]).map(|_| {
        let listed = spec.items_at(&["children"]).iter();
        let keys = listed.filter_map(|c| Some(Key::of(c.str_at(&["kind"])?, ns, c.str_at(&["name"])?)));
        keys.collect()
    });
    let secret = spec.str_at(&["secret"]).map(|name| Reference {
        write: flag("writes"),
        ..Reference::new(Key::of("Secret", ns, name), "adapter").optional_if(flag("optional"))
    });
    let range = spec.int_at(&["most"]).map(|most| (spec.int_at(&["least"]).unwrap_or(1), most));
    AdapterFacts {
        replicas: spec.int_at(&["replicas"]),
        replicas_path: Some(vec!["spec".to_owned(), "replicas".to_owned()]),
        claim_selector: selector.clone().filter(|_| flag("claims")),
        selector,
        selector_labels: labels,
        template: spec.at_some(&["template"]).cloned(),
        children,
        references: secret.into_iter().collect(),
        quorum: flag("quorum"),
        scale_target: spec.str_at(&["scales"]).map(|name| Key::of("Deployment", ns, name)),
        replica_range: range,
        deletes_volumes: flag("deletesVolumes"),
        cascades: flag("cascades"),
        errors: Vec::new(),
    }
}
