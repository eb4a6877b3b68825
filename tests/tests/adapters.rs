//! The shipped adapters name fields that the published definitions of their projects have, and each is at work in a suite.
//!
//! `tests/adapters/schemas` lists what a definition has at the objects that an adapter reads; `tests/adapters/extract` wrote it.
#![expect(clippy::panic, reason = "a test may stop where it fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use suture_model::adapter::Adapters;
use suture_model::ingest;
use suture_model::object::Object;
use suture_service::suite::documents::find;
use suture_specs::adapters::{AdapterSet, SHIPPED, shipped};
use suture_specs::cel::{self, Scope};
use suture_specs::ir::{Comprehension, Expr, Node};
use suture_specs::spec::{
    AdapterReference, AdapterTarget, Cel, FileOrInline, Listed, ResourceAdapter, ResourceAdapterSpec, ScaleTarget,
};
use suture_specs::value::Value;

/// The fields of `metadata` that adapters read; every object has them.
const METADATA: [&str; 5] = ["annotations", "finalizers", "labels", "name", "namespace"];

/// What a definition has: the type of each field by its path.
struct Schema {
    kind: String,
    fields: BTreeMap<String, String>,
}

impl Schema {
    fn of(name: &str) -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("adapters/schemas").join(format!("{name}.txt"));
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let (head, lines): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with('#'));
        let [source, kind] = head.as_slice() else { panic!("{name}: a source and a kind are missing") };
        assert!(source.contains("/blob/"), "{name}: {source} names no commit");
        let kind = kind.trim_start_matches("# ").split(',').next().unwrap_or_default().to_owned();
        let field = |line: &&str| line.split_once(' ').map(|(path, ty)| (path.to_owned(), ty.to_owned()));
        Self { kind, fields: lines.iter().filter_map(field).collect() }
    }

    /// The type of a field; of the items of a list, `object` where their fields are listed.
    fn type_at(&self, path: &str) -> &str {
        let fields = format!("{path}.");
        let has_fields = self.fields.range(fields.clone()..).next().is_some_and(|(at, _)| at.starts_with(&fields));
        let unlisted = if has_fields { "object" } else { "any" };
        self.fields.get(path).map_or(unlisted, String::as_str)
    }
}

/// Where in the custom resource a value may come from: itself, and the items of a list that the expression makes.
#[derive(Clone, Default)]
struct Origin {
    at: BTreeSet<String>,
    items: BTreeSet<String>,
}

impl Origin {
    fn join(mut self, other: Self) -> Self {
        self.at.extend(other.at);
        self.items.extend(other.items);
        self
    }
}

/// Follows an expression through a schema.
struct Walk<'s> {
    schema: &'s Schema,
    wrong: Vec<String>,
    read: BTreeSet<String>,
}

impl Walk<'_> {
    fn select(&mut self, base: &Origin, field: &str) -> Origin {
        let mut found = Origin::default();
        for path in &base.at {
            if path == "metadata" {
                if !METADATA.contains(&field) {
                    self.wrong.push(format!("metadata.{field}"));
                }
                continue;
            }
            if !path.is_empty() && self.schema.type_at(path) != "object" {
                if self.schema.type_at(path) != "any" && self.schema.type_at(path) != "map" {
                    self.wrong.push(format!("{path}.{field}: `{path}` is of type {}", self.schema.type_at(path)));
                }
                continue;
            }
            let at = if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") };
            if at == "metadata" || self.schema.fields.contains_key(&at) {
                self.read.insert(at.clone());
                found.at.insert(at);
            } else {
                self.wrong.push(at);
            }
        }
        found
    }

    fn items(&self, list: &Origin) -> BTreeSet<String> {
        let lists = list.at.iter().filter(|path| self.schema.type_at(path) == "array");
        list.items.iter().cloned().chain(lists.map(|path| format!("{path}[]"))).collect()
    }

    fn follow(&mut self, expr: &Expr, vars: &BTreeMap<String, Origin>) -> Origin {
        match &expr.node {
            Node::Var(name) => vars.get(&**name).cloned().unwrap_or_default(),
            Node::Const(_) => Origin::default(),
            Node::Select { base, field } | Node::OptSelect { base, field } | Node::HasField { base, field } => {
                let base = self.follow(base, vars);
                self.select(&base, field)
            }
            Node::Index { base, index } | Node::OptIndex { base, index } => {
                let base = self.follow(base, vars);
                match &index.node {
                    Node::Const(Value::String(field)) => self.select(&base, field),
                    _ => Origin { at: self.items(&base), items: BTreeSet::new() },
                }
            }
            Node::List(items) => {
                let items = items.iter().map(|item| self.follow(&item.value, vars).at);
                Origin { at: BTreeSet::new(), items: items.collect::<Vec<_>>().into_iter().flatten().collect() }
            }
            Node::Comprehension { kind, range, vars: (name, _), filter, body } => {
                let range = self.follow(range, vars);
                let items = Origin { at: self.items(&range), items: BTreeSet::new() };
                let mut inner = vars.clone();
                inner.insert(name.to_string(), items.clone());
                if let Some(filter) = filter {
                    self.follow(filter, &inner);
                }
                let body = self.follow(body, &inner);
                match kind {
                    Comprehension::Filter => Origin { at: BTreeSet::new(), items: items.at },
                    Comprehension::Map => Origin { at: BTreeSet::new(), items: body.at },
                    _ => Origin::default(),
                }
            }
            Node::Let { var, init, body } => {
                let init = self.follow(init, vars);
                let mut inner = vars.clone();
                inner.insert(var.to_string(), init);
                self.follow(body, &inner)
            }
            _ => {
                let mut parts = Vec::new();
                expr.for_each_part(&mut |part| parts.push(part));
                parts.into_iter().map(|part| self.follow(part, vars)).fold(Origin::default(), Origin::join)
            }
        }
    }
}

/// All expressions of an adapter, each with its field.
fn expressions(spec: &ResourceAdapterSpec) -> Vec<(&'static str, String)> {
    let plain = [
        ("replicas", &spec.replicas),
        ("selector", &spec.selector),
        ("claimSelector", &spec.claim_selector),
        ("template", &spec.template),
        ("quorum", &spec.quorum),
        ("replicaRange", &spec.replica_range),
        ("deletesVolumes", &spec.deletes_volumes),
        ("cascades", &spec.cascades),
    ];
    let mut found: Vec<(&str, String)> =
        plain.into_iter().filter_map(|(field, cel)| Some((field, cel.as_ref()?.0.clone()))).collect();
    let mut parts = |field, kind: &str, group: Option<&str>, cels: &[Option<&Cel>]| {
        let texts = [Some(kind), group].into_iter().flatten().filter(|text| text.contains("self"));
        found.extend(texts.map(|text| (field, text.to_owned())));
        found.extend(cels.iter().flatten().map(|cel| (field, cel.0.clone())));
    };
    let mut target = |field, t: &AdapterTarget| {
        parts(field, &t.kind, t.group.as_deref(), &[Some(&t.name), t.namespace.as_ref()]);
    };
    let mut lists = Vec::new();
    match &spec.children {
        Some(Listed::Entries(children)) => children.iter().for_each(|child| target("children", child)),
        Some(Listed::Expression(cel)) => lists.push(("children", cel.0.clone())),
        None => {}
    }
    match &spec.scale_target {
        Some(ScaleTarget::Parts(parts)) => target("scaleTarget", parts),
        Some(ScaleTarget::Expression(cel)) => lists.push(("scaleTarget", cel.0.clone())),
        None => {}
    }
    match &spec.references {
        Some(Listed::Entries(references)) => references.iter().for_each(|r: &AdapterReference| {
            parts(
                "references",
                &r.kind,
                r.group.as_deref(),
                &[Some(&r.name), r.namespace.as_ref(), r.optional.as_ref()],
            );
        }),
        Some(Listed::Expression(cel)) => lists.push(("references", cel.0.clone())),
        None => {}
    }
    found.extend(lists);
    found
}

/// What an adapter names that its schema does not have.
fn misnamed(adapter: &ResourceAdapter, schema: &Schema) -> Vec<String> {
    let whole = Origin { at: BTreeSet::from([String::new()]), items: BTreeSet::new() };
    let vars = BTreeMap::from([("self".to_owned(), whole)]);
    let mut wrong = Vec::new();
    for (field, text) in expressions(&adapter.spec) {
        let expr = cel::compile(&text, &Scope::adapter(), None).unwrap_or_else(|error| panic!("{text}: {error}"));
        let mut walk = Walk { schema, wrong: Vec::new(), read: BTreeSet::new() };
        let value = walk.follow(&expr, &vars);
        assert!(
            !text.contains("self") || !walk.read.is_empty() || text.contains("self.metadata"),
            "{text} reads nothing"
        );
        wrong.extend(walk.wrong.iter().map(|path| format!("{field}: `{path}`")));
        if let ("replicas", [only]) = (field, value.at.iter().collect::<Vec<_>>().as_slice())
            && schema.type_at(only) != "integer"
        {
            wrong.push(format!("replicas: `{only}` is of type {}", schema.type_at(only)));
        }
    }
    wrong
}

#[test]
fn shipped_adapters_name_fields_that_the_published_definitions_have() {
    let adapters = shipped().expect("the shipped adapters are well formed");
    assert_eq!(adapters.len(), SHIPPED.len(), "each file has one adapter");
    AdapterSet::compile(adapters).expect("the shipped adapters compile");
    let mut kinds = BTreeSet::new();
    for (adapter, (name, text)) in adapters.iter().zip(SHIPPED) {
        let schema = Schema::of(name);
        assert_eq!(&*adapter.name, *name, "an adapter is named like its file");
        assert!(name.ends_with(&format!(".{}", adapter.spec.group)), "{name}: named like the definition");
        assert_eq!(adapter.spec.kind, schema.kind, "{name}");
        assert!(kinds.insert((&adapter.spec.group, &adapter.spec.kind)), "{name}: a second one for its kind");
        assert!(text.contains("# Source: http"), "{name} says nowhere where it has this from");
        assert!(!adapter.spec.assumes.is_empty(), "{name} leaves nothing to the operator");
        assert_eq!(misnamed(adapter, &schema), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_field_that_a_definition_does_not_have_is_found() {
    let adapters = shipped().expect("the shipped adapters are well formed");
    let pool = adapters.iter().find(|adapter| adapter.spec.kind == "KafkaNodePool").expect("it is shipped");
    let schema = Schema::of(&pool.name);
    let with = |change: &dyn Fn(&mut ResourceAdapterSpec)| {
        let mut wrong = pool.clone();
        change(&mut wrong.spec);
        misnamed(&wrong, &schema)
    };
    let cel = |text: &str| Some(Cel(text.to_owned()));
    assert_eq!(with(&|spec| spec.replicas = cel("self.spec.replica")), ["replicas: `spec.replica`"]);
    assert_eq!(with(&|spec| spec.replicas = cel("self.spec.roles")), ["replicas: `spec.roles` is of type array"]);
    let misspelt = "self.?spec.?storage.?volumes.orValue([]).exists(v, v.?deleteClaims.orValue(false) == true)";
    assert_eq!(
        with(&|spec| spec.deletes_volumes = cel(misspelt)),
        ["deletesVolumes: `spec.storage.volumes[].deleteClaims`"]
    );
    assert_eq!(with(&|spec| spec.selector = cel("{'a': self.metadata.lables['b']}")), ["selector: `metadata.lables`"]);
}

/// A resource is read as its definition lets it be written: hardly anything is required.
#[test]
fn a_shipped_adapter_fails_on_no_sparse_resource() {
    for adapter in shipped().expect("the shipped adapters are well formed") {
        let set = AdapterSet::compile([adapter]).expect("it compiles");
        for body in ["", "spec: {}", "spec: {}, status: {}"] {
            let ResourceAdapterSpec { group, kind, .. } = &adapter.spec;
            let head = format!("apiVersion: {group}/v1, kind: {kind}, metadata: {{namespace: a, name: b, uid: c}}");
            let text = format!("{{{head}, {body}}}");
            let read = ingest::parse_documents(&text, "").expect("it is YAML");
            let object = Object::from_val(&read.first().expect("a document").val).expect("it is an object");
            let facts = set.facts(&object).expect("the adapter is for it");
            assert_eq!(facts.errors, Vec::<String>::new(), "{}: {text}", adapter.name);
            assert!(facts.references.is_empty(), "{}: {:?}", adapter.name, facts.references);
        }
    }
}

#[test]
fn every_shipped_adapter_is_at_work_in_a_suite() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("effects/adapters");
    let mut used: BTreeSet<(String, String)> = BTreeSet::new();
    for suite in find(&[folder]).expect("the suites are well formed") {
        assert!(suite.spec.adapters.is_empty(), "{}: the shipped adapter is tried", suite.origin.file);
        for state in &suite.spec.state {
            let FileOrInline::Inline(object) = state else { panic!("{}: inline states only", suite.origin.file) };
            let text = |key: &str| object.str_at(&[key]).map(ToString::to_string).unwrap_or_default();
            let group = text("apiVersion").split_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default();
            used.insert((group, text("kind")));
        }
    }
    let all = shipped().expect("the shipped adapters are well formed").iter();
    let idle: Vec<&str> =
        all.filter(|a| !used.contains(&(a.spec.group.clone(), a.spec.kind.clone()))).map(|a| &*a.name).collect();
    assert!(idle.is_empty(), "no suite has {idle:?}");
}
