//! One decision of invariants and grants, and what follows from it.

use std::sync::Arc;

use suture_checker::engine::Settings;
use suture_model::change::{Preconditions, User};
use suture_model::object::Object;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;

use super::*;
use crate::input::Source;
use crate::ledger::Ledger;
use crate::policy::Documents;

const KEPT: &str = "{apiVersion: suture.dev/v1alpha1, kind: Invariant, metadata: {name: kept, labels: {about: pods}},
    spec: {template: service-keeps-endpoints}}";
const GRANT: &str = "{apiVersion: suture.dev/v1alpha1, kind: OperatorGrant, metadata: {name: bot},
    spec: {subjects: [{kind: User, name: bot}], scope: {namespaces: [elsewhere]}, invariants: {selector: {matchLabels: {about: nodes}}}}}";
const OBJECTS: [&str; 3] = [
    r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"node"},"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#,
    r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"n"},"spec":{"selector":{"app":"web"},"ports":[{"port":80}]}}"#,
    r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"n","labels":{"app":"web"}},
        "spec":{"nodeName":"node","containers":[{"name":"c","image":"i"}]},
        "status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}"#,
];

fn policy(documents: &[&str]) -> Policy {
    let source = Source { name: "a test".to_owned(), text: documents.join("\n---\n") };
    Documents::read(&[source]).unwrap().compile().unwrap()
}

fn object(text: &str) -> Object {
    Object::from_val(&serde_json::from_str(text).unwrap()).unwrap()
}

fn snapshot(policy: &Policy, more: &[&str]) -> Snapshot {
    let mut snapshot = Snapshot::new(policy.adapters.clone());
    OBJECTS.iter().chain(more).for_each(|text| snapshot.insert_shared(Arc::new(object(text))));
    snapshot.complete();
    snapshot
}

/// What is decided about a request beside what `writers` finds.
fn decided(
    policy: &Policy,
    snapshot: &Snapshot,
    request: Request,
    writers: &dyn Fn(&Facts) -> Vec<Entry>,
    unread: &[Unread],
    judges: bool,
) -> Decided {
    let question = Question {
        snapshot,
        change: &Change::from(request),
        writers,
        ways_max: 1,
        hopes: false,
        likely_reads: &Facts::default(),
        counted: &[],
        history: &History::default(),
        time: Some(Clock::now()),
        unread,
    };
    let mut engine = Engine::new(policy.invariants.clone(), Settings::default()).unwrap();
    decide(policy, judges.then_some(&mut engine), &question)
}

/// What is decided when `author` deletes the only pod behind a service.
fn deleted_by(author: &str, policy: &Policy, unread: &[Unread], judges: bool) -> Decided {
    let (snapshot, pod) = (snapshot(policy, &[]), object(OBJECTS[2]).key.clone());
    let request = Request::delete(User::named(author), &State::new(&snapshot), pod, None, Preconditions::default());
    decided(policy, &snapshot, request, &|_| Vec::new(), unread, judges)
}

fn broken(decided: &Decided) -> Vec<(&str, Finding)> {
    decided.decision.verdicts.iter().map(|verdict| (&*verdict.invariant, verdict.outcome)).collect()
}

#[test]
fn where_many_in_flight_matter_to_one_invariant_the_others_are_decided_all_the_same() {
    const COUNTED: &str = "{apiVersion: suture.dev/v1alpha1, kind: Invariant, metadata: {name: counted},
        spec: {forEach: {var: p, kind: Pod}, require: [{expression: \"now.configmaps.all(c, c.metadata.name != p.metadata.name)\"}]}}";
    let policy = policy(&[KEPT, COUNTED]);
    let another = OBJECTS[2].replace(r#""name":"web""#, r#""name":"other""#);
    for (pods, kept) in [(vec![], vec![("kept", Finding::Refuted)]), (vec![&*another], vec![])] {
        let snapshot = snapshot(&policy, &pods);
        let map: Val =
            serde_json::from_str(r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"n"}}"#)
                .unwrap();
        let state = State::new(&snapshot);
        let mut ledger = Ledger::default();
        ledger.record(&Request::create(User::admin(), &state, &map).unwrap(), &snapshot, Some(Clock::now()));
        let writers = |facts: &Facts| ledger.writers(facts, snapshot.last_event()).cloned().collect();
        let pod = object(OBJECTS[2]).key.clone();
        let request = Request::delete(User::admin(), &state, pod, None, Preconditions::default());
        // there is room for one way to land, and the creation makes two
        let found = decided(&policy, &snapshot, request, &writers, &[], true);
        let mut wanted = vec![("counted", Finding::Undecided)];
        wanted.extend(kept.clone());
        assert_eq!(broken(&found), wanted);
        assert_eq!(found.crowded, kept.is_empty(), "what is denied all the same needs not be asked again");
    }
}

#[test]
fn invariants_and_grants_make_one_decision() {
    let policy = policy(&[KEPT, GRANT]);
    let of_a_person = deleted_by("ana", &policy, &[], true);
    assert_eq!(broken(&of_a_person), [("kept", Finding::Refuted)]);
    let of_an_operator = deleted_by("bot", &policy, &[], true);
    assert_eq!(
        broken(&of_an_operator),
        [("operator-in-scope", Finding::Refuted)],
        "its grant leaves it free of the invariant"
    );
    assert!(!admits(&of_a_person.decision, &policy) && !admits(&of_an_operator.decision, &policy));
    let unjudged = deleted_by("ana", &policy, &[], false);
    assert!(broken(&unjudged).is_empty() && admits(&unjudged.decision, &policy));
    assert_eq!(broken(&deleted_by("bot", &policy, &[], false)), [("operator-in-scope", Finding::Refuted)]);
}

#[test]
fn an_invariant_that_reads_what_is_not_known_is_undecided_unless_it_binds_nobody() {
    for (on_undecided, admitted) in [("Deny", false), ("Warn", true), ("Allow", true)] {
        let kept = KEPT.replace("endpoints}", &format!("endpoints, onUndecided: {on_undecided}}}"));
        let policy = policy(&[&kept, GRANT]);
        let unread = [(policy.invariants[0].clone(), "Pods were not read".to_owned())];
        let of_a_person = deleted_by("ana", &policy, &unread, true);
        assert_eq!(broken(&of_a_person), [("kept", Finding::Undecided)]);
        assert_eq!(of_a_person.decision.verdicts[0].instance, "Pod/n/web");
        assert_eq!(admits(&of_a_person.decision, &policy), admitted, "{on_undecided}");
        assert_eq!(broken(&deleted_by("bot", &policy, &unread, true)), [("operator-in-scope", Finding::Refuted)]);
    }
}

#[test]
fn a_namesake_that_is_not_judged_switches_no_other_off() {
    let namespace = KEPT.replace("Invariant", "NamespacedInvariant").replace("name: kept", "name: kept, namespace: n");
    let namespace = namespace.replace("endpoints}", "endpoints, onUndecided: Allow}");
    let policy = policy(&[KEPT, &namespace]);
    let unread = [(policy.invariants[1].clone(), "Nodes were not read".to_owned())];
    let decided = deleted_by("ana", &policy, &unread, true);
    assert_eq!(broken(&decided), [("kept", Finding::Refuted), ("n/kept", Finding::Undecided)]);
    assert!(!admits(&decided.decision, &policy), "the cluster's denies");
    // nor the other way round
    let unread = [(policy.invariants[0].clone(), "Nodes were not read".to_owned())];
    let decided = deleted_by("ana", &policy, &unread, true);
    assert_eq!(broken(&decided), [("kept", Finding::Undecided), ("n/kept", Finding::Refuted)]);
}

#[test]
fn an_exemption_lifts_the_invariant_that_it_names_and_no_namesake() {
    const EXEMPTION: &str = "{apiVersion: suture.dev/v1alpha1, kind: Exemption, metadata: {name: e}, spec: {invariant: NAME,
        instances: [Service/n/web], subjects: [{kind: User, name: ana}], expires: '2100-01-01T00:00:00Z', reason: a test}}";
    let namespace = KEPT.replace("Invariant", "NamespacedInvariant").replace("name: kept", "name: kept, namespace: n");
    for (name, left) in [("kept", "n/kept"), ("n/kept", "kept")] {
        let policy = policy(&[KEPT, &namespace, &EXEMPTION.replace("NAME", name)]);
        assert_eq!(broken(&deleted_by("ana", &policy, &[], true)), [(left, Finding::Refuted)], "{name}");
    }
}

#[test]
fn where_a_pod_is_bound_it_does_not_matter_what_is_made_elsewhere() {
    const RANKED: &str = "{apiVersion: suture.dev/v1alpha1, kind: Invariant, metadata: {name: ranked},
        spec: {template: critical-not-preempted}}";
    let policy = policy(&[RANKED]);
    let waiting = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"waits","namespace":"n","uid":"p"},
        "spec":{"containers":[{"name":"c","image":"i"}]},"status":{"phase":"Pending"}}"#;
    let deployment = |name: &str, ns: &str, class: &str| {
        format!(
            r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{name}","namespace":"{ns}","uid":"{name}"}},
            "spec":{{"replicas":2,"selector":{{"matchLabels":{{"app":"{name}"}}}},"template":{{"metadata":{{"labels":{{"app":"{name}"}}}},
            "spec":{{{class}"containers":[{{"name":"c","image":"i"}}]}}}}}}}}"#
        )
    };
    let class =
        r#"{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"high"},"value":1000}"#;
    let important = deployment("important", "n", r#""priorityClassName":"high","#);
    let snapshot = snapshot(&policy, &[waiting, class, &important]);
    let read = std::cell::RefCell::new(Facts::default());
    let note = |facts: &Facts| {
        read.borrow_mut().extend(facts);
        Vec::new()
    };
    let request = Request::bind(User::named("scheduler"), object(waiting).key.clone(), "node");
    decided(&policy, &snapshot, request, &note, &[], true);
    let made = |text: &str| snapshot.facts_between(None, Some(&object(text)));
    let read = read.into_inner();
    assert!(!read.meets(&made(&deployment("other", "elsewhere", ""))), "it lacks pods, and preempts none");
    assert!(read.meets(&made(&deployment("other", "elsewhere", r#""priorityClassName":"high","#))), "it may preempt");
}
