//! Of requests that together break an invariant, one is admitted, however many threads judge them at once.

use std::sync::Barrier;

use suture_checker::engine::Input;
use suture_model::kinds::Kind;
use suture_model::value::Val;

use super::*;
use crate::clock::now;
use crate::serve::policies::Policies;
use crate::serve::store::{Change as Written, Reading};

mod reported;

const SERVICE: &str = r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"SET","namespace":"n","uid":"SET",
    "resourceVersion":"1"},"spec":{"selector":{"app":"SET"},"type":"ClusterIP","ports":[{"port":80}]}}"#;
const POD: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"NAME","namespace":"n","uid":"NAME",
    "resourceVersion":"2","labels":{"app":"SET"}},"spec":{"nodeName":"node","containers":[{"name":"c","image":"i"}]},
    "status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}"#;

fn pod(set: usize, name: &str) -> Val {
    let text = POD.replace("SET", &format!("s{set}")).replace("NAME", &format!("s{set}-{name}"));
    serde_json::from_str(&text).unwrap()
}

/// Services s0, s1, …, each with the Ready pods a and b; every service keeps an endpoint.
fn shared(sets: usize, replicas: Replicas) -> Arc<SharedState> {
    shared_by(&[], sets, replicas)
}

/// The same with more invariants.
fn shared_by(more: &[&str], sets: usize, replicas: Replicas) -> Arc<SharedState> {
    let kept = r#"{"apiVersion":"suture.dev/v1alpha1","kind":"Invariant","metadata":{"name":"kept"},
        "spec":{"template":"service-keeps-endpoints"}}"#;
    let mut policies = Policies::default();
    for invariant in [kept].iter().chain(more) {
        policies.put(serde_json::from_str(invariant).unwrap());
    }
    let loaded = policies.load().wanting_nothing();
    assert_eq!(loaded.problems, []);
    let store = Arc::new(Store::new(Arc::new(loaded)));
    let mut changes = Vec::new();
    for kind in ["Pod", "Service", "Node", "Namespace"] {
        changes.push(Written::Read(Kind::new("", kind), Reading::Known));
        changes.push(Written::Position(Kind::new("", kind), 10));
    }
    let node = r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"node"},
        "status":{"conditions":[{"type":"Ready","status":"True"}]}}"#;
    let mut objects = vec![serde_json::from_str(node).unwrap()];
    for set in 0..sets {
        objects.push(serde_json::from_str(&SERVICE.replace("SET", &format!("s{set}"))).unwrap());
        objects.extend(["a", "b"].map(|name| pod(set, name)));
    }
    changes.extend(objects.iter().map(|object| Written::Put(Arc::new(Object::from_val(object).unwrap()))));
    store.write(changes);
    let shared = SharedState::new(store, Arc::new(InFlightLog::lasting(100)), replicas);
    // however long a test takes; there is nothing to read again
    let pauses = shared.pauses.clone();
    shared.pauses.watch(move || pauses.settle(now()));
    Arc::new(shared)
}

/// A question that deletes a pod.
fn asked(uid: &str, pod: &Val) -> AdmissionCall {
    let text = |field: &str| pod.str_at(&["metadata", field]).unwrap().clone();
    let review = Val::object([
        ("apiVersion", Val::str("admission.k8s.io/v1")),
        ("kind", Val::str("AdmissionReview")),
        (
            "request",
            Val::object([
                ("uid", Val::str(uid)),
                ("operation", Val::str("DELETE")),
                (
                    "kind",
                    Val::object([("group", Val::str("")), ("version", Val::str("v1")), ("kind", Val::str("Pod"))]),
                ),
                ("resource", Val::object([("group", Val::str("")), ("resource", Val::str("pods"))])),
                ("name", Val::Str(text("name"))),
                ("namespace", Val::Str(text("namespace"))),
                ("userInfo", Val::object([("username", Val::str("ana"))])),
                ("oldObject", pod.clone()),
            ]),
        ),
    ]);
    let (arrived, deadline) = (now(), now() + Duration::from_secs(20));
    AdmissionCall {
        review,
        uid: uid.to_owned(),
        api_version: "admission.k8s.io/v1",
        arrived,
        deadline,
        bytes: 0,
        essential: false,
    }
}

/// What a judge that enters what it admits says.
fn enforced(judge: &mut Judge, asked: &AdmissionCall) -> Answer {
    let request = Request::from_review(&asked.review).unwrap();
    judge.alone(request, asked)
}

/// Judges whose log takes what is allowed only: that of the active replica.
fn strict(sets: usize) -> Arc<SharedState> {
    shared(sets, Replicas::Single(Active::held()))
}

#[test]
fn nothing_is_decided_on_what_was_seen_before_a_pause() {
    for replicas in [Replicas::Audit, Replicas::Single(Active::held())] {
        let shared = shared(1, replicas);
        let mut judge = Judge::new(shared.clone());
        shared.pauses.pause();
        let answer = judge.decide(&asked("u-1", &pod(0, "a")));
        assert!(!answer.allowed && answer.message.contains("stood still"), "{}", answer.message);
        shared.pauses.settle(now());
        assert!(judge.decide(&asked("u-2", &pod(0, "a"))).allowed);
    }
}

#[test]
fn of_two_conflicting_requests_at_once_one_is_admitted() {
    const PAIRS: usize = 40;
    let shared = strict(PAIRS);
    let start = Arc::new(Barrier::new(4));
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let (shared, start) = (shared.clone(), start.clone());
            thread::spawn(move || {
                let mut judge = Judge::new(shared);
                let mut admitted = Vec::new();
                for set in 0..PAIRS {
                    start.wait();
                    let name = ["a", "b"][thread % 2];
                    // two threads ask for the same pod, with calls of their own
                    let answer = judge.decide(&asked(&format!("{set}-{thread}"), &pod(set, name)));
                    admitted.push((name, answer.allowed));
                }
                admitted
            })
        })
        .collect();
    let answers: Vec<Vec<(&str, bool)>> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let mut none = 0;
    for set in 0..PAIRS {
        let admitted = |name: &str| answers.iter().any(|own| own[set] == (name, true));
        assert!(!(admitted("a") && admitted("b")), "both endpoints of s{set} may go");
        none += usize::from(!admitted("a") && !admitted("b"));
    }
    assert_eq!(none, 0, "one of them can always go");
    assert_eq!(shared.in_flight_log.len(), PAIRS, "the same deletion counts once");
}

#[test]
fn what_does_not_touch_is_admitted_however_much_is_in_flight() {
    let shared = strict(30);
    let mut judge = Judge::new(shared.clone());
    for set in 0..30 {
        let answer = enforced(&mut judge, &asked(&format!("u{set}"), &pod(set, "a")));
        assert!(answer.allowed, "{}", answer.message);
    }
    assert_eq!(shared.in_flight_log.len(), 30);
    let answer = enforced(&mut judge, &asked("last", &pod(7, "b")));
    assert!(!answer.allowed);
    assert_eq!(answer.label, Label::Denied);
}

/// Judges a deletion of the first service's first pod, lets something happen, and says whether it was entered then.
fn entered_after(shared: &Arc<SharedState>, happens: impl FnOnce(&dyn Fn(&str, &Val))) -> bool {
    let call = asked("one", &pod(0, "a"));
    let request = Request::from_review(&call.review).unwrap();
    let begin = || shared.in_flight_log.begin(&shared.store, u64::MAX);
    let (reader, judged) = Judge::new(shared.clone()).judge(&request, begin, &call);
    assert!(judged.answer.allowed);
    happens(&|uid, pod| assert!(enforced(&mut Judge::new(shared.clone()), &asked(uid, pod)).allowed));
    shared.enter(&reader, &request, judged).is_some()
}

/// The watch shows that a pod is gone.
fn shows_as_gone(shared: &SharedState, name: &str) {
    let pod = suture_model::object::Key::of("Pod", "n", name);
    shared.store.write(vec![Written::Remove(pod), Written::Position(Kind::new("", "Pod"), 14)]);
    shared.in_flight_log.observe(shared.store.read().sight(), Clock::now());
}

#[test]
fn who_is_overtaken_by_something_else_keeps_the_judgement() {
    assert!(entered_after(&strict(2), |_| ()));
    assert!(entered_after(&strict(2), |enter| enter("other", &pod(1, "a"))), "another service");
    assert!(!entered_after(&strict(2), |enter| enter("conflict", &pod(0, "b"))), "the same service's other endpoint");
}

#[test]
fn what_was_entered_and_seen_meanwhile_is_missed_by_nobody() {
    let shared = strict(1);
    let entered = entered_after(&shared, |enter| {
        enter("conflict", &pod(0, "b"));
        shows_as_gone(&shared, "s0-b");
        assert!(shared.in_flight_log.is_empty());
    });
    assert!(!entered, "who judged by the view before has to judge again");
    assert!(!enforced(&mut Judge::new(shared.clone()), &asked("again", &pod(0, "a"))).allowed);
}

#[test]
fn what_an_entry_changes_is_found_by_what_the_watch_shows() {
    // a second owner of pod b is made while the deletion of the first is in flight, and is gone by the time
    let shared = strict(1);
    let owned = |owner: &str| {
        let text = POD.replace("SET", "s0").replace("NAME", "s0-b");
        let owners = format!(
            "\"ownerReferences\":[{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"{owner}\",\"uid\":\"{owner}\"}}],\"labels\""
        );
        let val: Val = serde_json::from_str(&text.replace("\"labels\"", &owners)).unwrap();
        Arc::new(Object::from_val(&val).unwrap())
    };
    let config: Val = serde_json::from_str(
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"o","namespace":"n","uid":"o","resourceVersion":"3"}}"#,
    )
    .unwrap();
    shared.store.write(vec![
        Written::Read(Kind::new("", "ConfigMap"), Reading::Known),
        Written::Put(Arc::new(Object::from_val(&config).unwrap())),
    ]);
    let mut judge = Judge::new(shared.clone());
    let mut delete = asked("owner", &config);
    let kind = Val::object([("group", Val::str("")), ("version", Val::str("v1")), ("kind", Val::str("ConfigMap"))]);
    delete.review = delete.review.with_at(&["request", "kind"], kind);
    assert!(enforced(&mut judge, &delete).allowed, "nothing is owned by it yet");
    shared.store.write(vec![Written::Put(owned("o"))]);
    shared.in_flight_log.observe(shared.store.read().sight(), Clock::now());
    let answer = enforced(&mut judge, &asked("pod", &pod(0, "a")));
    assert!(!answer.allowed, "the other endpoint goes with its owner, whose deletion may land");
}

#[test]
fn the_same_call_again_gets_the_same_answer() {
    let shared = strict(1);
    let mut judge = Judge::new(shared.clone());
    let call = asked("call", &pod(0, "a"));
    assert!(enforced(&mut judge, &call).allowed);
    assert!(enforced(&mut judge, &call).allowed);
    assert_eq!(shared.in_flight_log.len(), 1);
}

#[test]
fn another_request_of_the_same_uid_is_judged_and_takes_nothing_back() {
    let shared = strict(1);
    let mut judge = Judge::new(shared.clone());
    assert!(enforced(&mut judge, &asked("call", &pod(0, "a"))).allowed);
    // of another kind, and the same name
    let mut service = asked("call", &pod(0, "a"));
    let kind = Val::object([("group", Val::str("")), ("version", Val::str("v1")), ("kind", Val::str("Service"))]);
    service.review = service.review.with_at(&["request", "kind"], kind).with_at(&["request", "oldObject"], Val::Null);
    assert!(enforced(&mut judge, &service).allowed);
    assert_eq!(shared.in_flight_log.len(), 2);
    // and of the same kind, but another pod
    let answer = enforced(&mut judge, &asked("call", &pod(0, "b")));
    assert!(!answer.allowed, "the other endpoint may go");
}

#[test]
fn a_write_of_the_same_uid_does_not_stand_for_a_deletion() {
    let shared = strict(1);
    let mut judge = Judge::new(shared.clone());
    let mut write = asked("call", &pod(0, "b"));
    let labelled = pod(0, "b").with_at(&["metadata", "labels", "team"], Val::str("x"));
    write.review = write.review.with_at(&["request", "operation"], Val::str("UPDATE"));
    write.review = write.review.with_at(&["request", "object"], labelled);
    assert!(enforced(&mut judge, &write).allowed);
    assert!(enforced(&mut judge, &asked("other", &pod(0, "a"))).allowed);
    assert!(!enforced(&mut judge, &asked("call", &pod(0, "b"))).allowed, "the other endpoint may go");
}

#[test]
fn what_holds_once_everything_has_landed_waits_for_that() {
    for (shown, allowed) in [(true, true), (false, false)] {
        let shared = strict(1);
        let mut judge = Judge::new(shared.clone());
        let mut delete = asked("service", &serde_json::from_str(&SERVICE.replace("SET", "s0")).unwrap());
        let kind = Val::object([("group", Val::str("")), ("version", Val::str("v1")), ("kind", Val::str("Service"))]);
        delete.review = delete.review.with_at(&["request", "kind"], kind);
        for call in [&delete, &asked("one", &pod(0, "a"))] {
            assert!(enforced(&mut judge, call).allowed);
        }
        let watch = shared.clone();
        let landing = thread::spawn(move || {
            thread::sleep(IN_FLIGHT_PAUSE * 4);
            if shown {
                let service = suture_model::object::Key::of("Service", "n", "s0");
                watch.store.write(vec![Written::Remove(service), Written::Position(Kind::new("", "Service"), 14)]);
                watch.in_flight_log.observe(watch.store.read().sight(), Clock::now());
            }
        });
        let answer = enforced(&mut judge, &asked("two", &pod(0, "b")));
        landing.join().unwrap();
        assert_eq!(answer.allowed, allowed, "{}", answer.message);
        assert!(allowed || answer.message.contains("is in flight and may not have landed"), "{}", answer.message);
    }
}

#[test]
fn what_the_watch_has_shown_is_no_longer_in_flight() {
    let shared = strict(1);
    let mut judge = Judge::new(shared.clone());
    assert!(enforced(&mut judge, &asked("one", &pod(0, "a"))).allowed);
    assert!(!enforced(&mut judge, &asked("two", &pod(0, "b"))).allowed);
    // the deletion was refused by another webhook, and the pod was written since: it is no deletion in flight that the
    // watch shows, so it stays in flight until its time is up
    let other = pod(0, "c");
    shared.store.write(vec![
        Written::Put(Arc::new(Object::from_val(&other).unwrap())),
        Written::Position(Kind::new("", "Pod"), 11),
    ]);
    shared.in_flight_log.observe(shared.store.read().sight(), Clock::now());
    assert_eq!(shared.in_flight_log.len(), 1);
    assert!(enforced(&mut judge, &asked("three", &pod(0, "b"))).allowed, "c is there");
    shared.store.write(vec![
        Written::Remove(suture_model::object::Key::of("Pod", "n", "s0-a")),
        Written::Remove(suture_model::object::Key::of("Pod", "n", "s0-b")),
        Written::Position(Kind::new("", "Pod"), 14),
    ]);
    shared.in_flight_log.observe(shared.store.read().sight(), Clock::now());
    assert!(shared.in_flight_log.is_empty());
    assert!(!enforced(&mut judge, &asked("four", &other)).allowed);
}

#[test]
fn a_kind_that_is_not_known_leaves_requests_undecided() {
    let shared = strict(1);
    shared.store.write(vec![Written::Read(Kind::new("", "Service"), Reading::Unknown("not listed yet".to_owned()))]);
    let mut judge = Judge::new(shared.clone());
    let answer = enforced(&mut judge, &asked("one", &pod(0, "a")));
    assert!(!answer.allowed);
    assert_eq!(answer.label, Label::Undecided);
    assert!(shared.in_flight_log.is_empty());
}

#[test]
fn what_an_invariant_about_an_unread_kind_leaves_undecided() {
    let about = r#""spec":{"forEach":{"var":"w","kind":{"group":"x.io","kind":"Widget"}},
        "require":[{"expression":"w.at(now).metadata.name != ''"}]}}"#;
    let of = |kind: &str, ns: &str| {
        format!(r#"{{"apiVersion":"suture.dev/v1alpha1","kind":"{kind}","metadata":{{"name":"w"{ns}}},{about}"#)
    };
    let forbidden = || Reading::Forbidden("widgets.x.io".to_owned());
    let unlisted = || Reading::Unknown("not listed yet".to_owned());
    for (invariant, reading, allowed) in [
        (of("Invariant", ""), unlisted(), false),
        // a pod takes no Widget along
        (of("Invariant", ""), forbidden(), true),
        (of("NamespacedInvariant", r#","namespace":"n""#), unlisted(), false),
        (of("NamespacedInvariant", r#","namespace":"n""#), forbidden(), true),
        // whoever may write in one namespace stops no other
        (of("NamespacedInvariant", r#","namespace":"m""#), unlisted(), true),
        (of("NamespacedInvariant", r#","namespace":"m""#), forbidden(), true),
    ] {
        let shared = shared_by(&[&invariant], 1, Replicas::Single(Active::held()));
        shared.store.write(vec![Written::Read(Kind::new("x.io", "Widget"), reading.clone())]);
        assert_eq!(shared.store.read().blind().len(), 1, "its status says so");
        let answer = enforced(&mut Judge::new(shared), &asked("one", &pod(0, "a")));
        assert_eq!(answer.allowed, allowed, "{invariant} {reading:?}: {}", answer.message);
    }
}

#[test]
fn an_audit_denies_nothing_and_says_what_it_would() {
    let mut judge = Judge::new(shared(1, Replicas::Audit));
    assert!(judge.decide(&asked("one", &pod(0, "a"))).allowed);
    let answer = judge.decide(&asked("two", &pod(0, "b")));
    assert!(answer.allowed);
    assert!(answer.annotations.contains_key("would-deny"));
}

#[test]
fn a_replica_that_does_not_hold_the_lease_decides_nothing() {
    let mut judge = Judge::new(shared(1, Replicas::Single(Active::default())));
    let answer = judge.decide(&asked("one", &pod(0, "a")));
    assert!(!answer.allowed);
    assert_eq!(answer.code, 503);
}

#[test]
fn an_eviction_that_its_budget_seems_to_refuse_is_judged_as_if_it_did_not() {
    let shared = strict(1);
    let budget = r#"{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"p","namespace":"n"},
        "spec":{"selector":{"matchLabels":{"app":"s0"}}},"status":{"disruptionsAllowed":0,"currentHealthy":2}}"#;
    let budget = Object::from_val(&serde_json::from_str(budget).unwrap()).unwrap();
    shared.store.write(vec![
        Written::Put(Arc::new(budget)),
        Written::Remove(suture_model::object::Key::of("Pod", "n", "s0-a")),
    ]);
    let mut judge = Judge::new(shared.clone());
    let key = suture_model::object::Key::of("Pod", "n", "s0-b");
    let evict = Request { uid: "call".into(), ..Request::evict(suture_model::change::User::admin(), key) };
    let answer = judge.alone(evict, &asked("call", &pod(0, "b")));
    assert!(!answer.allowed, "the budget may allow it by now");
    assert_eq!(answer.code, TRY_AGAIN);
}

#[test]
fn an_eviction_of_a_pod_that_the_watch_does_not_show_waits_for_it() {
    let shared = strict(1);
    let key = suture_model::object::Key::of("Pod", "n", "s0-c");
    let mut judge = Judge::new(shared.clone());
    let mut evict = |uid: &str| {
        let request = Request::evict(suture_model::change::User::admin(), key.clone());
        judge.alone(Request { uid: uid.into(), ..request }, &asked(uid, &pod(0, "c")))
    };
    let answer = evict("early");
    assert!(!answer.allowed, "the pods beside it may not be shown, either");
    assert_eq!(answer.code, TRY_AGAIN);
    shared.store.write(vec![Written::Put(Arc::new(Object::from_val(&pod(0, "c")).unwrap()))]);
    assert!(evict("late").allowed);
}

#[test]
fn what_may_not_land_excuses_nothing() {
    let shared = strict(1);
    let of = |name: &str| suture_model::object::Key::of("Pod", "n", &format!("s0-{name}"));
    shared.store.write(vec![Written::Remove(of("b"))]);
    let view = shared.store.read();
    let delete = |uid: &str| Request::from_review(&asked(uid, &pod(0, "a")).review).unwrap();
    // both replicas are asked to delete the last one, and each has seen the announcement of the other one's; what one
    // replica admitted may not be stored, either
    for unsure in [false, true] {
        let settings = Settings { unsure, ..Settings::default() };
        let mut engine = Engine::of(view.loaded.analyses.clone(), settings).unwrap();
        let (in_flight, change) = ([delete("there")], Change::from(delete("here")));
        let input =
            Input { snapshot: &view.snapshot, in_flight: &in_flight, change: &change, time: None, exemptions: &[] };
        let answer = Answer::from_decision(&engine.decide(&input), &view.loaded.policy);
        assert!(!answer.allowed, "unsure: {unsure}");
    }
}

/// Judges of one service whose pods have been made since, as `c` and `d`, and are not shown yet.
fn behind() -> (Arc<SharedState>, Judge) {
    let shared = strict(1);
    let of = |name: &str| suture_model::object::Key::of("Pod", "n", &format!("s0-{name}"));
    shared.store.write(vec![Written::Remove(of("a")), Written::Remove(of("b"))]);
    let mut judge = Judge::new(shared.clone());
    for name in ["c", "d"] {
        let pod = pod(0, name).without_at(&["status"]).without_at(&["metadata", "resourceVersion"]);
        let mut creation = asked(name, &pod);
        for (field, value) in [("operation", Val::str("CREATE")), ("object", pod), ("oldObject", Val::Null)] {
            creation.review = creation.review.with_at(&["request", field], value);
        }
        assert!(enforced(&mut judge, &creation).allowed);
    }
    assert_eq!(shared.in_flight_log.len(), 2);
    (shared, judge)
}

#[test]
fn pods_that_are_served_while_the_watch_shows_them_in_flight_are_not_both_evicted() {
    let (_court, mut judge) = behind();
    for name in ["c", "d"] {
        let key = suture_model::object::Key::of("Pod", "n", &format!("s0-{name}"));
        let request = Request::evict(suture_model::change::User::admin(), key);
        let uid = format!("evict-{name}");
        let answer = judge.alone(Request { uid: uid.as_str().into(), ..request }, &asked(&uid, &pod(0, name)));
        assert!(!answer.allowed, "it may be Ready by now, as the watch does not show");
    }
}

#[test]
fn pods_that_are_served_while_the_watch_shows_them_in_flight_are_not_both_deleted() {
    let (_court, mut judge) = behind();
    let served = |name| pod(0, name).with_at(&["metadata", "resourceVersion"], Val::str("12"));
    let both = ["c", "d"].map(|name| enforced(&mut judge, &asked(&format!("delete-{name}"), &served(name))));
    assert!(both.iter().any(|answer| !answer.allowed), "the last one is gone: {both:?}");
}

#[test]
fn a_grant_binds_evictions_of_pods_that_nothing_reads() {
    let mut policies = Policies::default();
    policies.put(
        serde_json::from_str(
            r#"{"apiVersion":"suture.dev/v1alpha1","kind":"OperatorGrant","metadata":{"name":"op"},
                "spec":{"subjects":[{"kind":"User","name":"op"}],"scope":{"namespaces":["mine"]}}}"#,
        )
        .unwrap(),
    );
    let loaded = policies.load().wanting_nothing();
    assert_eq!(loaded.problems, []);
    let store = Arc::new(Store::new(Arc::new(loaded)));
    let replicas = Replicas::Single(Active::held());
    let in_flight_log = Arc::new(InFlightLog::lasting(100));
    let mut judge = Judge::new(Arc::new(SharedState::new(store, in_flight_log, replicas)));
    let evict = |ns: &str| {
        let user = suture_model::change::User { username: "op".into(), ..suture_model::change::User::admin() };
        let request = Request::evict(user, suture_model::object::Key::of("Pod", ns, "x"));
        Request { uid: ns.into(), ..request }
    };
    assert!(!judge.alone(evict("other"), &asked("call", &pod(0, "x"))).allowed);
    assert!(judge.alone(evict("mine"), &asked("call", &pod(0, "x"))).allowed);
}
