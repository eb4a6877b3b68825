//! What cannot be judged is undecided: where there is nothing to look at, nothing is proved.
#![expect(clippy::expect_used, clippy::panic, reason = "a test may stop where it fails")]

use std::sync::Arc;

use suture_checker::decision::Outcome;
use suture_checker::engine::{Engine, Input, Settings};
use suture_model::change::{Change, Operation, Request, User};
use suture_model::ingest;
use suture_model::object::Key;
use suture_model::snapshot::Snapshot;
use suture_specs::compile::compile_invariant;
use suture_specs::library::Library;
use suture_specs::spec::{Spec, parse_specs};

fn engine(spec: &str) -> Engine {
    let text = format!("kind: Invariant\nmetadata: {{name: asked}}\nspec: {spec}\n");
    let parsed = parse_specs(&text, "test").expect("it parses");
    let [Spec::Invariant(invariant)] = parsed.as_slice() else { panic!("{spec}") };
    let compiled = compile_invariant(invariant, &Library::shipped().expect("it compiles")).expect("it compiles");
    Engine::new(vec![Arc::new(compiled)], Settings::default()).expect("Z3 is new enough")
}

/// A cluster of ConfigMaps.
fn cluster(config_maps: &[&str]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for metadata in config_maps {
        let text = format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{namespace: a, {metadata}}}}}");
        ingest::ingest(&mut snapshot, &text, "cluster").expect("it is a cluster");
    }
    snapshot
}

/// The creation of a ConfigMap of a cluster.
fn creation(cluster: &Snapshot, name: &str) -> Request {
    let target = Key::of("ConfigMap", "a", name);
    let object = cluster.get(&target).expect("it is there").to_val();
    let bare = Request::evict(User::admin(), target);
    Request { operation: Operation::Create, subresource: String::new(), object: Some(object), ..bare }
}

#[test]
fn a_change_that_relies_on_a_creation_without_effect_is_undecided() {
    let owner = "name: owner, uid: o";
    let owned = "name: new, uid: n, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: o}]";
    let (snapshot, wanted) = (cluster(&[owner]), cluster(&[owner, owned]));
    // the watch shows the object already
    let in_flight = [creation(&wanted, "owner")];
    let change = Change::from(creation(&wanted, "new"));
    let mut engine = engine("{forEach: {var: m, kind: ConfigMap}, require: [{expression: \"m.name() != 'new'\"}]}");
    let input = Input { snapshot: &snapshot, in_flight: &in_flight, change: &change, time: None, exemptions: &[] };
    let decision = engine.decide(&input);
    assert_eq!(decision.decision, Outcome::Undecided);
    let reasons: Vec<&str> = decision.verdicts.iter().filter_map(|verdict| verdict.reason.as_deref()).collect();
    let why = "the change names an owner whose creation is in flight, but that creation has no effect on the cluster as it is";
    assert_eq!(reasons, [why]);
}

#[test]
fn nodes_that_were_not_read_may_fail() {
    let mut snapshot = Snapshot::default();
    let service =
        "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: a, uid: s}, spec: {selector: {app: web}}}";
    ingest::ingest(&mut snapshot, service, "cluster").expect("it is a cluster");
    for name in ["n1", "n2"] {
        let pod = format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: a, uid: {name}, labels: {{app: web}}}}, \
             spec: {{nodeName: {name}}}, status: {{phase: Running, conditions: [{{type: Ready, status: 'True'}}]}}}}"
        );
        ingest::ingest(&mut snapshot, &pod, "cluster").expect("it is a cluster");
    }
    snapshot.mark_unknown("Node");
    let change = Change::from(Request::evict(User::admin(), Key::of("Pod", "a", "n2")));
    let mut engine = engine("{template: service-survives-fault}");
    let input = Input { snapshot: &snapshot, in_flight: &[], change: &change, time: None, exemptions: &[] };
    assert_eq!(engine.decide(&input).decision, Outcome::Undecided);
}

#[test]
fn an_audit_says_what_is_so_whichever_owners_were_not_read() {
    let owned = "ownerReferences: [{apiVersion: example.com/v1, kind: Widget, name: w, uid: w}]";
    let pod = format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{namespace: a, name: p, uid: p, {owned}}}, spec: {{nodeName: n1, \
         containers: [{{name: c, image: i, envFrom: [{{configMapRef: {{name: m}}}}]}}]}}}}"
    );
    let mut snapshot = cluster(&["name: m, uid: m"]);
    ingest::ingest(&mut snapshot, &pod, "cluster").expect("it is a pod");
    let audited = |snapshot: &Snapshot, needed: &str| {
        let require = format!("[{{expression: 'm.referrers(now).size() {needed}'}}]");
        let decision =
            engine(&format!("{{forEach: {{var: m, kind: ConfigMap}}, require: {require}}}")).audit(snapshot, None);
        let reasons = decision.verdicts.iter().filter_map(|verdict| verdict.reason.clone()).collect::<Vec<_>>();
        (decision.decision, decision.proved, reasons)
    };
    // an owner of a kind that was read, and of which there are none, is gone
    assert_eq!(audited(&snapshot, "== 0"), (Outcome::Allowed, 1, Vec::new()));
    snapshot.mark_unknown("Widget");
    let why = vec!["objects of kind `Widget` were not read".to_owned()];
    assert_eq!(audited(&snapshot, "== 0"), (Outcome::Undecided, 0, why.clone()));
    assert_eq!(audited(&snapshot, "== 1"), (Outcome::Undecided, 0, why));
    assert_eq!(audited(&snapshot, "<= 1"), (Outcome::Allowed, 1, Vec::new()));
    assert_eq!(audited(&snapshot, "> 1"), (Outcome::Denied, 0, Vec::new()));
}
