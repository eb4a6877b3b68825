//! Every request that a suite denies reaches the webhook, by the generated rules and match conditions, also of a policy that
//! has nothing but the invariant which it breaks.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may stop where it fails")]

use std::collections::BTreeSet;
use std::path::Path;

use cel::{Context, Program, Value};
use serde_json::{Value as Json, json};
use suture_checker::decision::{Finding, Outcome};
use suture_model::change::{Operation, Request, User, plural};
use suture_model::object::Key;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_service::input::Source;
use suture_service::policy::{Documents, Policy};
use suture_service::rules::{Rule, rules, watched};
use suture_service::serve::configuration::{Target, webhook};
use suture_service::suite::documents::{documents, find, missing_templates};
use suture_service::suite::run::{Seen, run_watched};
use suture_specs::spec::Profile;

#[test]
fn whatever_is_denied_reaches_the_webhook() {
    let folders = ["cases", "effects"].map(|name| Path::new(env!("CARGO_MANIFEST_DIR")).join(name));
    let (mut denied, mut missed) = (0, Vec::new());
    for suite in find(&folders).unwrap() {
        if !missing_templates(&documents(&suite).unwrap()).is_empty() {
            continue;
        }
        let mut saw = |seen: &Seen<'_>| {
            let by_controller = |r: &Request| r.user.username.starts_with("system:serviceaccount:kube-system:");
            if seen.decision.decision != Outcome::Denied || seen.change.requests.iter().all(by_controller) {
                return;
            }
            // each invariant alone sees what breaks it
            let broken = seen.decision.verdicts.iter().filter(|v| v.outcome == Finding::Refuted).map(|v| &v.invariant);
            for name in broken.collect::<BTreeSet<_>>() {
                denied += 1;
                let mut policy = seen.policy.clone();
                policy.invariants.retain(|invariant| *invariant.name == **name);
                if !policy.invariants.is_empty() && !seen.change.requests.iter().any(|request| comes(&policy, request))
                {
                    let what: Vec<String> = seen.change.requests.iter().map(Request::describe).collect();
                    missed.push(format!("{}: {name}: {}", seen.suite.name, what.join(", then ")));
                }
            }
        };
        let report = run_watched(&suite, Some(&mut saw)).unwrap();
        assert!(report.cases.iter().all(|case| case.failure.is_none()), "{}", report.name);
    }
    println!("{denied} denied requests, {} never seen", missed.len());
    assert!(denied > 90, "only {denied} requests were denied: are the suites there?");
    assert!(missed.is_empty(), "never seen:\n{}", missed.join("\n"));
}

#[test]
fn what_a_cluster_lives_by_never_waits() {
    let policy = shipped();
    let snapshot = Snapshot::default();
    let state = State::new(&snapshot);
    let manifest = |kind: &str, version: &str, ns: &str| {
        suture_model::value::Val::object([
            ("apiVersion", suture_model::value::Val::str(version)),
            ("kind", suture_model::value::Val::str(kind)),
            (
                "metadata",
                suture_model::value::Val::object([
                    ("name", suture_model::value::Val::str("x")),
                    ("namespace", suture_model::value::Val::str(ns)),
                ]),
            ),
        ])
    };
    let pod = Key::of("Pod", "shop", "x");
    let ana = || User::named("ana");
    for (what, request) in [
        ("a lease", Request::create(ana(), &state, &manifest("Lease", "coordination.k8s.io/v1", "kube-node-lease"))),
        ("an event", Request::create(ana(), &state, &manifest("Event", "v1", "shop"))),
        ("an event of the new group", Request::create(ana(), &state, &manifest("Event", "events.k8s.io/v1", "shop"))),
        ("a pod of a controller", {
            let user = User::named("system:serviceaccount:kube-system:replicaset-controller");
            Request::create(user, &state, &manifest("Pod", "v1", "shop"))
        }),
        ("the garbage collector", {
            let user = User::named("system:serviceaccount:kube-system:generic-garbage-collector");
            Ok(Request::delete(user, &state, pod.clone(), None, Default::default()))
        }),
        ("the scheduler", Ok(Request::bind(User::named("system:kube-scheduler"), pod.clone(), "n1"))),
        ("a mirror pod of a kubelet", {
            Request::create(User::named("system:node:n1"), &state, &manifest("Pod", "v1", "kube-system"))
        }),
        ("a certificate request of a node", {
            let manifest = manifest("CertificateSigningRequest", "certificates.k8s.io/v1", "");
            Request::create(User::named("system:bootstrap:abc"), &state, &manifest)
        }),
        ("Suture's own status", {
            let user = User::named("system:serviceaccount:suture-system:suture");
            Request::update(user, &state, &manifest("Node", "v1", ""), "status")
        }),
    ] {
        assert!(!comes(&policy, &request.unwrap()), "{what} waits for the webhook");
    }
    // and their neighbours come
    for (what, request) in [
        ("a pod of a person", Request::create(ana(), &state, &manifest("Pod", "v1", "shop")).unwrap()),
        ("a deletion by a person", Request::delete(ana(), &state, pod.clone(), None, Default::default())),
        ("a deletion of anything", {
            let key = Key::new(suture_model::kinds::Kind::new("example.com", "Thing"), "shop", "x");
            Request::delete(ana(), &state, key, None, Default::default())
        }),
        ("an eviction by a kubelet", Request::evict(User::named("system:node:n1"), pod.clone())),
        ("a service account of another namespace", {
            let user = User::named("system:serviceaccount:shop:replicaset-controller");
            Request::create(user, &state, &manifest("Pod", "v1", "shop")).unwrap()
        }),
    ] {
        assert!(comes(&policy, &request), "{what} does not reach the webhook");
    }
}

#[test]
fn a_node_is_judged_when_it_stops_being_ready_and_not_at_each_heartbeat() {
    let policy = shipped();
    let node = |ready: &str, time: &str| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {
            "allocatable": {"cpu": "4"},
            "conditions": [{"type": "Ready", "status": ready, "lastHeartbeatTime": time}],
        }})
    };
    let user = User::named("cni-agent");
    let review = |old: Json, new: Json| review(("", "nodes", "status"), Operation::Update, &user, new, old);
    assert!(!reaches(&policy, &review(node("True", "1"), node("True", "2"))));
    assert!(reaches(&policy, &review(node("True", "1"), node("False", "2"))));
    assert!(!reaches(&policy, &review(json!({"metadata": {"name": "n1"}}), json!({"metadata": {"name": "n1"}}))));
}

#[test]
fn the_rules_are_as_narrow_as_the_invariants() {
    let policy = |template: &str| {
        let mut documents = Documents::default();
        documents.add_profile(Some(Profile::Strict)).unwrap();
        documents.invariants.retain(|i| &*i.name == template);
        documents.compile().unwrap()
    };
    let covers = |rules: &[Rule], group: &str, resource: &str, subresource: &str, operation: Operation| {
        rules.iter().any(|rule| rule.covers(group, resource, subresource, operation))
    };
    let text = "{apiVersion: suture.dev/v1alpha1, kind: Invariant, metadata: {name: classes}, spec: {forEach: {var: c,
        kind: StorageClass}, require: [{expression: c.liveIn(now)}]}}";
    let source = Source { name: "a test".to_owned(), text: text.to_owned() };
    let classes = Documents::read(&[source]).unwrap().compile().unwrap();
    let allowed = rules(&classes);
    assert!(covers(&allowed, "storage.k8s.io", "storageclasses", "", Operation::Create));
    assert!(!covers(&allowed, "", "pods", "", Operation::Create), "{allowed:?}");
    assert!(!covers(&allowed, "", "pods", "eviction", Operation::Create));
    assert!(!watched(&classes).iter().any(|kind| kind.is("Pod")));
    // what lies in a namespace may have a pod as its owner
    let allowed = rules(&policy("unique-host"));
    assert!(covers(&allowed, "networking.k8s.io", "ingresses", "", Operation::Update));
    assert!(covers(&allowed, "", "pods", "eviction", Operation::Create));
    assert!(!covers(&allowed, "", "secrets", "", Operation::Create));
    let endpoints = policy("service-keeps-endpoints");
    let allowed = rules(&endpoints);
    for (group, resource, subresource, operation) in [
        ("", "pods", "eviction", Operation::Create),
        ("", "pods", "status", Operation::Update),
        ("apps", "deployments", "scale", Operation::Update),
        ("apps", "deployments", "", Operation::Update),
        ("", "services", "", Operation::Update),
        ("", "nodes", "", Operation::Update),
        ("example.com", "things", "", Operation::Delete),
    ] {
        assert!(covers(&allowed, group, resource, subresource, operation), "{resource}/{subresource}");
    }
    let secret = |metadata: Json| json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata});
    let update = |new: Json, subresource: &str| {
        let old = secret(json!({"name": "a", "finalizers": ["x/y"]}));
        reaches(
            &endpoints,
            &review(("", "secrets", subresource), Operation::Update, &User::named("ana"), secret(new), old),
        )
    };
    assert!(!update(json!({"name": "a", "labels": {"a": "b"}, "finalizers": ["x/y"]}), ""));
    assert!(update(json!({"name": "a"}), ""), "it holds its dependents no more");
    for subresource in ["", "status"] {
        let owners = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "none"}]);
        let owned = json!({"name": "a", "finalizers": ["x/y"], "ownerReferences": owners});
        assert!(update(owned, subresource), "it may be collected");
    }
    assert!(!covers(&allowed, "example.com", "things", "", Operation::Create));
}

fn shipped() -> Policy {
    let mut documents = Documents::default();
    documents.add_profile(Some(Profile::Strict)).unwrap();
    documents.compile().unwrap()
}

/// Whether the API server would send a request to one of the webhooks, and to one only.
fn comes(policy: &Policy, request: &Request) -> bool {
    let Request { user, operation, subresource, target, object, old, .. } = request;
    let json =
        |val: &Option<suture_model::value::Val>| val.as_ref().map_or(Json::Null, |v| serde_json::to_value(v).unwrap());
    let place = (&*target.kind.group, &*plural(&target.kind.kind), subresource.as_str());
    reaches(policy, &review(place, *operation, user, json(object), json(old)))
}

struct Review {
    place: (String, String, String),
    operation: Operation,
    request: Json,
    object: Json,
    old: Json,
}

/// A request as match conditions see it: what is empty is left out.
fn review(
    (group, resource, subresource): (&str, &str, &str),
    operation: Operation,
    user: &User,
    object: Json,
    old: Json,
) -> Review {
    let mut request = json!({
        "operation": operation.as_str(),
        "resource": {"group": group, "version": "v1", "resource": resource},
        "userInfo": {"username": &*user.username},
    });
    if !user.groups.is_empty() {
        request["userInfo"]["groups"] = user.groups.iter().map(|g| Json::from(&**g)).collect();
    }
    if !subresource.is_empty() {
        request["subResource"] = subresource.into();
    }
    let place = (group.to_owned(), resource.to_owned(), subresource.to_owned());
    Review { place, operation, request, object, old }
}

fn reaches(policy: &Policy, review: &Review) -> bool {
    let (group, resource, subresource) = &review.place;
    let hooks = webhook(policy, &Target::default()).webhooks.unwrap();
    let called = hooks.iter().filter(|hook| {
        let covered = hook.rules.iter().flatten().any(|rule| {
            let rule = Rule {
                groups: rule.api_groups.clone().unwrap(),
                resources: rule.resources.clone().unwrap(),
                operations: if rule.operations.as_ref().unwrap().iter().any(|o| o == review.operation.as_str()) {
                    vec![review.operation]
                } else {
                    Vec::new()
                },
            };
            rule.covers(group, resource, subresource, review.operation)
        });
        covered && hook.match_conditions.iter().flatten().all(|c| holds(&c.expression, review))
    });
    let called = called.count();
    assert!(called <= 1, "a request comes {called} times");
    called == 1
}

fn holds(expression: &str, review: &Review) -> bool {
    let mut context = Context::default();
    context.add_variable("request", &review.request).unwrap();
    context.add_variable("object", &review.object).unwrap();
    context.add_variable("oldObject", &review.old).unwrap();
    let program = Program::compile(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
    match program.execute(&context) {
        Ok(Value::Bool(holds)) => holds,
        // with failurePolicy Fail this would refuse the request
        other => panic!("{expression}: {other:?}"),
    }
}
