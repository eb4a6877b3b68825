//! The shipped library compiles, with every parameter at its default and with others.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a helper of tests that fails fails the test")]

use std::collections::BTreeSet;

use suture_specs::compile::compile_invariant;
use suture_specs::library::{LIBRARY, Library};
use suture_specs::spec::{Spec, parse_specs};

fn compile(yaml: &str) -> Result<suture_specs::compile::CompiledInvariant, String> {
    let library = Library::shipped().map_err(|e| format!("{e:?}"))?;
    let specs =
        parse_specs(yaml, "test.yaml").map_err(|e| e.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
    let Some(Spec::Invariant(invariant)) = specs.into_iter().next() else { return Err("no invariant".into()) };
    compile_invariant(&invariant, &library)
        .map_err(|e| e.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

#[test]
fn every_shipped_template_compiles() {
    let mut wrong = Vec::new();
    for (name, text) in LIBRARY {
        let result = parse_specs(text, &format!("specs/library/{name}.yaml")).and_then(|specs| {
            for spec in specs {
                if let Spec::InvariantTemplate(template) = spec {
                    assert_eq!(&*template.name, *name);
                    suture_specs::compile::check_template(&template)?;
                }
            }
            Ok(())
        });
        for error in result.err().into_iter().flatten() {
            wrong.push(format!("{:?}", miette::Report::new(error)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(Library::shipped().unwrap().names().count(), LIBRARY.len());
}

#[test]
fn every_shipped_template_can_be_named_without_parameters() {
    for (name, _) in LIBRARY {
        let compiled = compile(&format!(
            "apiVersion: suture.dev/v1alpha1\nkind: Invariant\nmetadata: {{name: x}}\nspec: {{template: {name}}}\n"
        ));
        let compiled = compiled.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(compiled.template.as_deref(), Some(*name));
        assert!(!compiled.require.is_empty());
    }
}

#[test]
fn a_namespace_may_name_the_templates_that_look_at_nothing_else() {
    let named = |name: &str| {
        compile(&format!(
            "kind: NamespacedInvariant\nmetadata: {{name: x, namespace: a}}\nspec: {{template: {name}}}\n"
        ))
    };
    let (may, may_not): (Vec<_>, Vec<_>) = LIBRARY.iter().map(|(name, _)| *name).partition(|name| named(name).is_ok());
    let expected = [
        "service-keeps-endpoints",
        "service-survives-fault",
        "quorum-kept",
        "quorum-survives-fault",
        "pdb-allows-disruption",
        "autoscaled-replicas-kept",
        "batch-bounded",
        "idle-workload-has-activator",
        "no-stale-volume-adopted",
        "no-stray-adoption",
        "one-member-at-a-time",
        "pdb-evaluable",
        "pdbs-disjoint",
        "quorum-has-pdb",
        "retained-volume-kept",
    ];
    assert_eq!(may.into_iter().collect::<BTreeSet<_>>(), BTreeSet::from(expected), "but not {may_not:?}");
    let refused = "test.yaml:3:8: spec.template: template `unique-host` is not for a NamespacedInvariant: `hostClaims` may look \
                   beyond namespace `a`";
    assert_eq!(named("unique-host").unwrap_err(), refused);
}

#[test]
fn parameters_and_faults_are_filled_in() {
    let with = |spec: &str| {
        compile(&format!("apiVersion: suture.dev/v1alpha1\nkind: Invariant\nmetadata: {{name: x}}\nspec: {spec}\n"))
    };
    let compiled = with("{template: service-survives-fault, params: {nodeFailures: 2}}").unwrap();
    assert_eq!((compiled.faults.nodes, compiled.faults.zones), (2, 0));
    assert_eq!(compiled.params.int_at(&["floor"]), Some(1));
    let compiled = with("{template: service-survives-fault, under: {zoneFailures: 1}}").unwrap();
    assert_eq!((compiled.faults.nodes, compiled.faults.zones), (1, 1), "its own faults override field by field");
    for (spec, message) in [
        ("{template: quorum-kep}", "test.yaml:4:8: spec.template: there is no template `quorum-kep`"),
        (
            "{template: quorum-kept, params: {member: {}}}",
            "test.yaml:4:40: spec.params.member: template `quorum-kept` has no parameter `member`",
        ),
        (
            "{template: service-survives-fault, params: {nodeFailures: many}}",
            "test.yaml:4:51: spec.params.nodeFailures: expected an integer, found `\"many\"`",
        ),
        (
            "{template: service-survives-fault, params: {floor: 50}, under: {nodeFailures: -1}}",
            "test.yaml:4:71: spec.under.nodeFailures: `-1` is not between 0 and 1000",
        ),
        (
            "{template: service-survives-fault, params: {floor: half}}",
            "test.yaml:4:51: spec.params.floor: expected a number from 0, or a percentage from `0%` to `100%`, found `\"half\"`",
        ),
        (
            "{template: service-survives-fault, params: {floor: 101%}}",
            "test.yaml:4:51: spec.params.floor: expected a number from 0, or a percentage from `0%` to `100%`, found `\"101%\"`",
        ),
        (
            "{template: quorum-kept, degree: 1}",
            "test.yaml:4:31: spec.degree: `degree` is the template's: an invariant has `template` or expressions of its own",
        ),
        (
            "{template: quorum-kept, under: {evictions: 1, scheduler: Feasible}}",
            "test.yaml:4:53: spec.under.scheduler: `under.scheduler: Feasible` is not supported yet",
        ),
    ] {
        assert_eq!(with(spec).unwrap_err(), message);
    }
}
