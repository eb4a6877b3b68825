//! What is watched for the sake of each function, and which requests rules match.

use std::sync::Arc;

use suture_encode::analysis::reads::{ANY_GROUP, Reads};
use suture_encode::relations::{Source, relations};
use suture_model::change::{Operation, plural};
use suture_model::kinds::{Kind, KindTraits};
use suture_specs::compile::CompiledInvariant;
use suture_specs::functions::Func;
use suture_specs::ir::{Expr, Node, Span, Type};
use suture_specs::spec::{Cel, Listed, ResourceAdapterSpec};

use super::{Rule, named_by, rules, watched, watches_every};
use crate::input;
use crate::policy::{Documents, Policy};

/// A policy of one invariant about ConfigMaps, `o`, which requires nothing but what this function gives in the future.
fn calling(func: Func) -> Policy {
    let text = "kind: Invariant\nmetadata: {name: x}\nspec:\n  forEach: {var: o, kind: ConfigMap}\n  require: [{expression: 'true'}]\n";
    let source = input::Source { name: "a test".to_owned(), text: text.to_owned() };
    let documents = Documents::read(&[source]).unwrap();
    let mut policy = documents.compile().unwrap();
    let mut invariant = CompiledInvariant::clone(&policy.invariants[0]);
    let var = |name: &str, ty| Expr::new(Node::Var(name.into()), ty, Span::default());
    let args = vec![var("o", Type::object("ConfigMap")), var("now", Type::World)];
    invariant.require[0].expression.node = Node::Call { func, args };
    invariant.functions = [func].into();
    policy.invariants = vec![Arc::new(invariant)];
    policy
}

#[test]
fn whatever_a_function_reads_is_watched_and_reaches_the_webhook() {
    let mut reading = 0;
    for func in Func::ALL.iter().copied() {
        let reads = Reads::of_function(func);
        let policy = calling(func);
        let mut kinds: Vec<Kind> = reads.kinds.iter().filter(|kind| &*kind.group != ANY_GROUP).cloned().collect();
        if reads.pods {
            kinds.extend(Kind::with(KindTraits::decides_about_pods));
        }
        reading += kinds.len();
        let watched = watched(&policy);
        let unwatched: Vec<&Kind> = kinds.iter().filter(|kind| !watched.contains(kind)).collect();
        assert!(unwatched.is_empty(), "{func} reads {unwatched:?}");
        let every = reads.any || reads.customs || reads.kinds.iter().any(|kind| &*kind.group == ANY_GROUP);
        assert!(watches_every(&policy) || !every, "{func} reads every kind");
        // what asks for no state is the same whatever a request writes
        if matches!(relations(func).source, Source::Arguments | Source::Node) {
            continue;
        }
        let rules = rules(&policy);
        let comes = |kind: &Kind| {
            let resource = plural(&kind.kind);
            rules.iter().any(|rule| rule.covers(&kind.group, &resource, "", Operation::Update))
        };
        let missed: Vec<&Kind> = kinds.iter().filter(|kind| !comes(kind)).collect();
        assert!(missed.is_empty(), "{func} reads {missed:?}");
    }
    assert!(reading > 100, "{reading}: do the rows of functions say what they read?");
}

#[test]
fn rules_match_as_the_api_server_matches_them() {
    let rule = |resource: &str| Rule {
        groups: vec!["apps".to_owned()],
        resources: vec![resource.to_owned()],
        operations: vec![Operation::Update],
    };
    for (resource, asked, covered) in [
        ("deployments", ("deployments", ""), true),
        ("deployments", ("deployments", "scale"), false),
        ("*", ("deployments", ""), true),
        ("*", ("deployments", "scale"), false),
        ("*/*", ("deployments", "scale"), true),
        ("*/*", ("deployments", ""), true),
        ("*/scale", ("statefulsets", "scale"), true),
        ("deployments/*", ("deployments", "status"), true),
        ("deployments/*", ("statefulsets", "status"), false),
    ] {
        assert_eq!(rule(resource).covers("apps", asked.0, asked.1, Operation::Update), covered, "{resource} {asked:?}");
    }
    assert!(!rule("*").covers("", "pods", "", Operation::Update));
    assert!(!rule("*").covers("apps", "deployments", "", Operation::Create));
}

#[test]
fn kinds_are_found_in_expressions_too() {
    let expression = "[{'kind': 'Deployment', 'name': self.metadata.name}, {'kind': \"Thing\", 'name': 'x'}]";
    let adapter = |children| ResourceAdapterSpec {
        group: "example.com".to_owned(),
        kind: "App".to_owned(),
        replicas: None,
        selector: None,
        claim_selector: None,
        template: None,
        children,
        references: None,
        quorum: None,
        scale_target: None,
        replica_range: None,
        deletes_volumes: None,
        cascades: None,
        assumes: Vec::new(),
        unmodelled: false,
    };
    let found = named_by(&adapter(Some(Listed::Expression(Cel(expression.to_owned())))));
    assert_eq!(found.iter().map(|kind| kind.kind.to_string()).collect::<Vec<_>>(), ["Deployment"]);
    assert!(named_by(&adapter(None)).is_empty());
}
