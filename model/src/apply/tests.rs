//! One request on a small cluster, and what it leaves.

use super::*;
use crate::change::{Preconditions, User};
use crate::kinds::Kind;
use crate::object::Key;
use crate::snapshot::Snapshot;
use crate::testing::{cluster, key, val};

const CLUSTER: &str = "
apiVersion: v1
kind: List
items:
- {apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: a, uid: s, generation: 3}, spec: {replicas: 3}, status: {replicas: 3}}
- {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a, uid: p, labels: {app: x}}, spec: {nodeName: n}, status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: sick, namespace: a, uid: q, labels: {app: x}}, spec: {nodeName: n}, status: {phase: Running}}
- {apiVersion: v1, kind: Pod, metadata: {name: new, namespace: a, uid: r, labels: {app: x}}, spec: {}, status: {phase: Pending}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: a, uid: h, finalizers: [f, g], deletionTimestamp: '2026-11-01T12:00:00Z'}}
- {apiVersion: example.com/v1, kind: Db, metadata: {name: c, namespace: a, uid: c}, spec: {size: 3}, status: {up: 3}}
- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata: {name: dbs.example.com}
  spec: {group: example.com, names: {kind: Db, plural: dbs}, versions: [{name: v1, subresources: {status: {}, scale: {specReplicasPath: .spec.size}}}]}
";

fn db() -> Key {
    Key::new(Kind::new("example.com", "Db"), "a", "c")
}

/// Applies a request made from a state; the object at `key` afterwards, as JSON, or why nothing happened.
fn check(make: impl Fn(&State) -> Request, key: &Key) -> String {
    let snapshot = cluster(CLUSTER);
    let mut state = State::new(&snapshot);
    let request = make(&state);
    let applied = apply(&mut state, &request);
    match (applied.why_not, state.get(key)) {
        (Some(why), _) => why,
        (None, Some(object)) if applied.effective => serde_json::to_string(&object.to_val()).unwrap(),
        (None, found) => format!("{} {}", applied.effective, found.is_some()),
    }
}

fn part(json: &str, path: &[&str]) -> Val {
    val(json).at(path).cloned().unwrap_or_default()
}

#[test]
fn an_object_made_anew_is_another_one() {
    let snapshot = cluster(CLUSTER);
    let mut state = State::new(&snapshot);
    let manifest = val(
        "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: a, uid: s}, spec: {}, status: {replicas: 3}}",
    );
    let request = Request::create(User::admin(), &state, &manifest).unwrap();
    assert_eq!(apply(&mut state, &request).why_not.as_deref(), Some("`StatefulSet/a/db` exists already"));
    state.take(&key("StatefulSet/a/db"));
    assert!(apply(&mut state, &request).effective);
    let made = state.get(&key("StatefulSet/a/db")).unwrap();
    assert_eq!(&*made.uid, "new:StatefulSet/a/db");
    assert_eq!(made.val().int_at(&["spec", "replicas"]), Some(1));
    assert_eq!(made.val().at(&["status"]), None);
}

#[test]
fn an_update_keeps_what_the_server_keeps() {
    let json = check(
        |state| {
            let manifest =
                val("{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: a}, spec: {}}");
            Request::update(User::admin(), state, &manifest, "").unwrap()
        },
        &key("StatefulSet/a/db"),
    );
    assert_eq!(part(&json, &["metadata", "uid"]), Val::str("s"));
    assert_eq!(part(&json, &["metadata", "generation"]), Val::Int(4));
    assert_eq!(part(&json, &["spec", "replicas"]), Val::Int(1));
    assert_eq!(part(&json, &["status", "replicas"]), Val::Int(3));
}

#[test]
fn a_status_write_changes_the_status_only() {
    for (kind, patch) in [(key("StatefulSet/a/db"), "replicas"), (db(), "up")] {
        let patch = val(&format!("{{spec: {{replicas: 9, size: 9}}, status: {{{patch}: 7}}}}"));
        let json = check(|state| Request::patch(User::admin(), state, kind.clone(), &patch, "status").unwrap(), &kind);
        assert!(json.contains(":7}") && !json.contains(":9"), "{json}");
        let json = check(|state| Request::patch(User::admin(), state, kind.clone(), &patch, "").unwrap(), &kind);
        assert!(!json.contains(":7}") && json.contains(":9"), "{json}");
    }
}

#[test]
fn scale_sets_replicas_where_they_are_kept() {
    let json = check(|state| Request::scale(User::admin(), state, db(), 5), &db());
    assert_eq!(part(&json, &["spec", "size"]), Val::Int(5));
    let set = key("StatefulSet/a/db");
    let json = check(|state| Request::scale(User::admin(), state, set.clone(), 0), &set);
    assert_eq!(part(&json, &["spec", "replicas"]), Val::Int(0));
    let config = key("ConfigMap/a/held");
    assert_eq!(
        check(|state| Request::scale(User::admin(), state, config.clone(), 1), &config),
        "`ConfigMap/a/held` has no scale"
    );
}

#[test]
fn the_last_finalizer_completes_a_deletion() {
    let held = key("ConfigMap/a/held");
    for (finalizers, gone) in [("[f, g]", false), ("[g]", false), ("[]", true), ("null", true)] {
        let snapshot = cluster(CLUSTER);
        let mut state = State::new(&snapshot);
        let patch = val(&format!("{{metadata: {{finalizers: {finalizers}, deletionTimestamp: null}}}}"));
        let request = Request::patch(User::admin(), &state, held.clone(), &patch, "").unwrap();
        let applied = apply(&mut state, &request);
        assert_eq!(state.get(&held).is_none(), gone, "{finalizers}");
        assert_eq!(applied.deletions.len(), usize::from(gone), "{finalizers}");
    }
}

#[test]
fn a_deletion_needs_its_object_and_preconditions() {
    let asked = |uid: &str| Preconditions { uid: Some(uid.into()), resource_version: None };
    for (target, preconditions, why) in [
        ("Pod/a/p", Preconditions::default(), None),
        ("Pod/a/p", asked("p"), None),
        ("Pod/a/p", asked("old"), Some("`Pod/a/p` has another uid than the precondition asks for")),
        ("Pod/a/none", Preconditions::default(), Some("`Pod/a/none` does not exist")),
    ] {
        let snapshot = cluster(CLUSTER);
        let mut state = State::new(&snapshot);
        let request = Request::delete(User::admin(), &state, key(target), None, preconditions);
        let applied = apply(&mut state, &request);
        assert_eq!(applied.why_not.as_deref(), why);
        assert_eq!(
            applied.deletions,
            if why.is_none() { vec![(key(target), Propagation::Background)] } else { vec![] }
        );
        assert!(state.delta().is_empty());
    }
}

#[test]
fn a_request_knows_what_the_watch_does_not() {
    let review = val("{apiVersion: admission.k8s.io/v1, kind: AdmissionReview, request: {uid: u, operation: DELETE, \
        kind: {group: '', kind: ConfigMap}, name: late, namespace: a, userInfo: {username: ana}, \
        oldObject: {apiVersion: v1, kind: ConfigMap, metadata: {name: late, namespace: a, uid: l}}}}");
    let snapshot = cluster(CLUSTER);
    let mut state = State::new(&snapshot);
    let applied = apply(&mut state, &Request::from_review(&review).unwrap());
    assert_eq!(applied.deletions, [(key("ConfigMap/a/late"), Propagation::Background)]);
    assert_eq!(state.get(&key("ConfigMap/a/late")).map(|o| o.uid.to_string()), Some("l".into()));
}

fn evict(snapshot: &Snapshot, pods: &[&str]) -> String {
    let mut state = State::new(snapshot);
    let one = |pod: &&str| {
        let applied = apply(&mut state, &Request::evict(User::admin(), key(&format!("Pod/a/{pod}"))));
        applied.why_not.unwrap_or_else(|| format!("{}", applied.evicted))
    };
    pods.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[test]
fn a_budget_may_refuse_an_eviction() {
    let budget = |name: &str, spec: &str, status: &str| {
        format!(
            "---\n{{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {{name: {name}, namespace: a}}, \
             spec: {{selector: {{}}{spec}}}{status}}}\n"
        )
    };
    let spent = "`PodDisruptionBudget/a/b` allows no disruption";
    let two = "`Pod/a/p` has more than one budget: `PodDisruptionBudget/a/b`, `PodDisruptionBudget/a/c`";
    for (budgets, pods, outcome) in [
        (String::new(), vec!["p"], "true".to_owned()),
        (budget("b", "", ""), vec!["p"], "true".to_owned()),
        (budget("b", "", ", status: {disruptionsAllowed: 0}"), vec!["p", "new"], format!("{spent}, true")),
        (budget("b", "", ", status: {disruptionsAllowed: 1}"), vec!["p", "p"], format!("true, {spent}")),
        (budget("b", "", ", status: {disruptionsAllowed: 0}"), vec!["sick"], spent.to_owned()),
        (budget("b", "", ", status: {currentHealthy: 1, desiredHealthy: 1}"), vec!["sick"], "true".to_owned()),
        (
            budget("b", ", unhealthyPodEvictionPolicy: AlwaysAllow", ", status: {disruptionsAllowed: 0}"),
            vec!["sick"],
            "true".to_owned(),
        ),
        (budget("b", "", "") + &budget("c", "", ""), vec!["p"], two.to_owned()),
    ] {
        assert_eq!(evict(&cluster(&format!("{CLUSTER}{budgets}")), &pods), outcome, "{budgets}");
    }
}

#[test]
fn a_binding_assigns_once() {
    let bind = |pod: &str| check(|_| Request::bind(User::admin(), key(pod), "n9"), &key(pod));
    assert_eq!(part(&bind("Pod/a/new"), &["spec", "nodeName"]), Val::str("n9"));
    assert_eq!(bind("Pod/a/p"), "`Pod/a/p` is assigned to node `n` already");
}

#[test]
fn other_subresources_change_their_part() {
    let patch = val("{metadata: {labels: {a: b}}, spec: {containers: [{name: c}], ephemeralContainers: [{name: e}]}}");
    let pod = key("Pod/a/p");
    for (subresource, containers, ephemeral) in [("resize", true, false), ("ephemeralcontainers", false, true)] {
        let json = check(|state| Request::patch(User::admin(), state, pod.clone(), &patch, subresource).unwrap(), &pod);
        assert_eq!(!part(&json, &["spec", "containers"]).is_null(), containers, "{json}");
        assert_eq!(!part(&json, &["spec", "ephemeralContainers"]).is_null(), ephemeral, "{json}");
        assert!(part(&json, &["metadata", "labels", "a"]).is_null());
    }
    let token = check(|state| Request::patch(User::admin(), state, pod.clone(), &patch, "token").unwrap(), &pod);
    assert_eq!(token, "the subresource `token` changes nothing that a fact is about");
}
