//! What a decision costs against the length of each list that a client can make long: it is decided within its steps, or
//! undecided for having taken them, and no list stops what is decided beside it.
//!
//! `--nocapture` prints the steps by list and length.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test may stop where it fails")]

use std::sync::Arc;

use serde_json::{Value, json};
use suture_checker::decision::{Decision, Finding};
use suture_checker::engine::{Engine, Input, STEPS_WEBHOOK, Settings};
use suture_model::change::{Change, Request, User};
use suture_model::object::Object;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_model::value::Val;
use suture_specs::compile::{CompiledInvariant, compile_invariant};
use suture_specs::library::Library;
use suture_specs::spec::{Profile, Spec, parse_specs};

/// The lengths that are tried; the last one makes objects of about the size that the API server accepts.
const LENGTHS: [usize; 3] = [100, 1_000, 8_000];

/// An object with one long list.
struct Long {
    list: &'static str,
    /// Whether it costs no more than its length: the last one is decided, too.
    linear: bool,
    of: fn(usize) -> Value,
}

const fn linear(list: &'static str, of: fn(usize) -> Value) -> Long {
    Long { list, linear: true, of }
}

fn each(length: usize, item: impl Fn(usize) -> Value) -> Value {
    (0..length).map(item).collect()
}

fn object(api: &str, kind: &str, name: &str, more: Value) -> Value {
    let mut object = json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "a"}});
    merge(&mut object, more);
    object
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            more.into_iter().for_each(|(key, value)| merge(into.entry(key).or_insert(Value::Null), value));
        }
        (into, more) => *into = more,
    }
}

fn deployment(pod_spec: Value) -> Value {
    let mut spec = json!({"containers": [{"name": "c", "image": "i"}]});
    merge(&mut spec, pod_spec);
    let template = json!({"metadata": {"labels": {"app": "x"}}, "spec": spec});
    let spec = json!({"replicas": 3, "selector": {"matchLabels": {"app": "x"}}, "template": template});
    object("apps/v1", "Deployment", "d", json!({"metadata": {"uid": "d"}, "spec": spec}))
}

fn ingress(rules: Value) -> Value {
    object("networking.k8s.io/v1", "Ingress", "long", json!({"spec": {"ingressClassName": "c", "rules": rules}}))
}

fn backend(path: usize) -> Value {
    json!({"path": format!("/{path}"), "backend": {"service": {"name": format!("s{path}"), "port": {"number": 80}}}})
}

fn environment(length: usize, from: impl Fn(usize) -> Value) -> Value {
    let env = each(length, |at| json!({"name": format!("E{at}"), "valueFrom": {"secretKeyRef": from(at)}}));
    deployment(json!({"containers": [{"name": "c", "image": "i", "env": env}]}))
}

fn labels(length: usize) -> Value {
    (0..length).map(|at| (format!("l{at}"), json!("v"))).collect::<serde_json::Map<_, _>>().into()
}

/// The lists of objects that run no pods.
fn of_objects() -> Vec<Long> {
    vec![
        Long {
            list: "ownerReferences",
            linear: false,
            of: |length| {
                let owner =
                    |at| json!({"apiVersion": "v1", "kind": "Pod", "name": format!("o{at}"), "uid": format!("o{at}")});
                object("v1", "ConfigMap", "long", json!({"metadata": {"ownerReferences": each(length, owner)}}))
            },
        },
        linear("Ingress: rules", |length| {
            ingress(each(length, |at| json!({"host": format!("h{at}.x"), "http": {"paths": [backend(at)]}})))
        }),
        linear("Ingress: paths", |length| ingress(json!([{"host": "h.x", "http": {"paths": each(length, backend)}}]))),
        Long {
            list: "HTTPRoute: hostnames",
            linear: false,
            of: |length| {
                let matches = each(4, |at| json!({"path": {"value": format!("/{at}")}}));
                let spec = json!({"parentRefs": [{"name": "g"}], "hostnames": each(length, |at| json!(format!("h{at}.x"))),
                "rules": [{"matches": matches}]});
                object("gateway.networking.k8s.io/v1", "HTTPRoute", "long", json!({"spec": spec}))
            },
        },
        linear("Service: selector", |length| {
            object("v1", "Service", "web", json!({"metadata": {"uid": "s"}, "spec": {"selector": labels(length)}}))
        }),
        linear("PodDisruptionBudget: values", |length| {
            let values = each(length, |at| json!(format!("v{at}")));
            object(
                "policy/v1",
                "PodDisruptionBudget",
                "long",
                json!({"spec": {"minAvailable": 1, "selector":
                {"matchExpressions": [{"key": "app", "operator": "In", "values": values}]}}}),
            )
        }),
        linear("NetworkPolicy: peers", |length| {
            let peer = |at| json!({"podSelector": {"matchLabels": {format!("l{at}"): "v"}}});
            object(
                "networking.k8s.io/v1",
                "NetworkPolicy",
                "long",
                json!({"spec": {"podSelector": {"matchLabels":
                {"app": "x"}}, "ingress": [{"from": each(length, peer)}]}}),
            )
        }),
        linear("webhooks", |length| {
            let webhook = |at| {
                json!({"name": format!("w{at}.x.io"), "failurePolicy": "Fail", "clientConfig":
                {"service": {"name": format!("s{at}"), "namespace": "a"}}})
            };
            let mut long =
                object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "long", json!({}));
            merge(&mut long, json!({"metadata": {"namespace": ""}, "webhooks": each(length, webhook)}));
            long
        }),
        linear("finalizers", |length| {
            let finalizers = each(length, |at| json!(format!("x.io/f{at}")));
            object("v1", "ConfigMap", "long", json!({"metadata": {"finalizers": finalizers}}))
        }),
    ]
}

/// The lists of a Deployment.
fn of_a_deployment() -> Vec<Long> {
    vec![
        linear("volumes", |length| {
            let secret = |at| json!({"name": format!("v{at}"), "secret": {"secretName": format!("s{at}")}});
            deployment(json!({"volumes": each(length, secret)}))
        }),
        linear("env: Secrets", |length| environment(length, |at| json!({"name": format!("s{at}"), "key": "k"}))),
        linear("env: keys", |length| environment(length, |at| json!({"name": "s", "key": format!("k{at}")}))),
        linear("containers", |length| {
            let container = |at| json!({"name": format!("c{at}"), "image": "i", "ports": [{"hostPort": at + 1}]});
            deployment(json!({"containers": each(length, container)}))
        }),
        linear("tolerations", |length| {
            deployment(
                json!({"tolerations": each(length, |at| json!({"key": format!("k{at}"), "operator": "Exists"}))}),
            )
        }),
        linear("nodeSelectorTerms", |length| {
            let term = |at| json!({"matchExpressions": [{"key": format!("k{at}"), "operator": "Exists"}]});
            deployment(json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": each(length, term)}}}}))
        }),
        linear("podAntiAffinity", |length| {
            let term = |at| json!({"topologyKey": format!("k{at}"), "labelSelector": {"matchLabels": {"app": "x"}}});
            deployment(json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                each(length, term)}}}))
        }),
        Long {
            list: "topologySpreadConstraints",
            linear: false,
            of: |length| {
                let spread = |at| {
                    json!({"topologyKey": format!("k{at}"), "maxSkew": 1, "labelSelector":
                {"matchLabels": {"app": "x"}}})
                };
                deployment(json!({"topologySpreadConstraints": each(length, spread)}))
            },
        },
        linear("replicas", |length| {
            let mut long = deployment(json!({}));
            merge(&mut long, json!({"spec": {"replicas": length * 1_000}}));
            long
        }),
    ]
}

/// A Deployment of three pods on five nodes, a Service for it, and an Ingress.
fn cluster() -> Snapshot {
    let node = |at| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("n{at}"), "labels":
        {"kubernetes.io/hostname": format!("n{at}")}}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    };
    let owned = |kind: &str, name: &str| {
        json!({"metadata": {"uid": format!("{kind}-{name}"), "labels": {"app": "x"},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": true}]}})
    };
    let mut set = object("apps/v1", "ReplicaSet", "r", owned("Deployment", "d"));
    merge(&mut set, json!({"metadata": {"uid": "r"}, "spec": deployment(json!({}))["spec"]}));
    let pod = |at| {
        let mut pod = object("v1", "Pod", &format!("p{at}"), owned("ReplicaSet", "r"));
        merge(
            &mut pod,
            json!({"metadata": {"uid": format!("p{at}")}, "spec": {"nodeName": format!("n{at}")}, "status":
            {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
        );
        pod
    };
    let service = object("v1", "Service", "web", json!({"metadata": {"uid": "s"}, "spec": {"selector": {"app": "x"}}}));
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "uid": "a"}});
    let all = [namespace, service, deployment(json!({})), set, ingress(json!([{"host": "other.x"}]))];
    let mut snapshot = Snapshot::default();
    for value in all.into_iter().chain((0..5).map(node)).chain((0..3).map(pod)) {
        snapshot.insert(Object::from_val(&Val::from(&value)).expect("it is an object"));
    }
    snapshot.complete();
    snapshot
}

/// An engine with every shipped template.
fn engine() -> (Engine, u64) {
    let library = Library::shipped().expect("it compiles");
    let all = library.invariants(Profile::Strict).into_iter();
    let all = all.map(|invariant| Arc::new(compile_invariant(&invariant, &library).expect("it compiles")));
    let settings = Settings { steps: STEPS_WEBHOOK, ..Settings::default() };
    (Engine::new(all.collect(), settings).expect("Z3 is new enough"), STEPS_WEBHOOK)
}

fn decide(engine: &mut Engine, snapshot: &Snapshot, value: &Value) -> Decision {
    let (state, val) = (State::new(snapshot), Val::from(value));
    let key = Object::from_val(&val).expect("it is an object").key;
    let request = match state.get(&key) {
        Some(_) => Request::update(User::admin(), &state, &val, ""),
        None => Request::create(User::admin(), &state, &val),
    };
    let change = Change::from(request.expect("it can be asked"));
    engine.decide(&Input { snapshot, in_flight: &[], change: &change, time: None, exemptions: &[] })
}

#[test]
fn no_list_makes_a_decision_cost_more_than_it_may() {
    let snapshot = cluster();
    let (mut engine, steps) = engine();
    println!("{:28}{}", "steps of a decision", LENGTHS.map(|length| format!("{length:>14}")).concat());
    for Long { list, linear, of } in of_objects().into_iter().chain(of_a_deployment()) {
        let costs = LENGTHS.map(|length| {
            let decision = decide(&mut engine, &snapshot, &of(length));
            let cost = decision.effort.steps;
            assert!(cost <= steps + steps / 10, "{list} of {length}: {cost} steps");
            let undecided: Vec<_> =
                decision.verdicts.iter().filter(|verdict| verdict.outcome == Finding::Undecided).collect();
            for verdict in undecided {
                let why = verdict.reason.as_deref().unwrap_or_default();
                assert!(
                    !linear && why.starts_with("it takes too long"),
                    "{list} of {length}: {} {why}",
                    verdict.invariant
                );
            }
            cost
        });
        println!("{list:28}{}", costs.map(|cost| format!("{cost:>14}")).concat());
    }
}

/// An invariant of ConfigMaps that asks this of each.
fn of_maps(name: &str, expression: &str) -> Arc<CompiledInvariant> {
    let text = format!(
        "apiVersion: suture.dev/v1alpha1\nkind: Invariant\nmetadata: {{name: {name}}}\nspec:\n  \
         forEach: {{var: m, kind: ConfigMap}}\n  require: [{{expression: \"{expression}\"}}]\n"
    );
    let specs = parse_specs(&text, name).expect("it parses");
    let [Spec::Invariant(invariant)] = specs.as_slice() else { unreachable!("{text}") };
    Arc::new(compile_invariant(invariant, &Library::shipped().expect("it compiles")).expect("it compiles"))
}

#[test]
fn no_invariant_makes_an_audit_cost_more_than_it_may() {
    let mut snapshot = Snapshot::default();
    for at in 0..120 {
        let map = object("v1", "ConfigMap", &format!("m{at}"), json!({"metadata": {"uid": format!("m{at}")}}));
        snapshot.insert(Object::from_val(&Val::from(&map)).expect("it is an object"));
    }
    snapshot.complete();
    let maps = "now.inNamespace('a', 'ConfigMap')";
    let nested =
        format!("{maps}.all(x, {maps}.all(y, {maps}.all(z, x.metadata.name + y.metadata.name != z.metadata.name)))");
    let invariants = vec![of_maps("nested", &nested), of_maps("plain", "m.at(now).metadata.name != ''")];
    let settings = Settings { steps: STEPS_WEBHOOK, ..Settings::default() };
    let decision = Engine::new(invariants, settings).expect("Z3 is new enough").audit(&snapshot, None);
    let [verdict] = decision.verdicts.as_slice() else { unreachable!("{:?}", decision.verdicts) };
    assert_eq!((&*verdict.invariant, verdict.outcome), ("nested", Finding::Undecided));
    let why = verdict.reason.as_deref().unwrap_or_default();
    assert!(why.starts_with("it takes too long"), "{why}");
    assert!(decision.proved >= 120, "the other one is audited: {}", decision.proved);
}
