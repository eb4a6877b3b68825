//! Each effect by enumeration: which numbers of ready pods its worlds have.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::adapter::AdapterFacts;
use crate::change::{Change, Request, User};
use crate::effects::{Memo, View, calm, group, group_name, when_down};
use crate::futures::{Entity, FateKind, Group, Moment, Outage};
use crate::interpret::{realize, worlds};
use crate::kinds::Kind;
use crate::land::scenarios;
use crate::object::{Key, Object};
use crate::scenario::Scenario;
use crate::selector::Selector;
use crate::snapshot::Snapshot;
use crate::state::State;
use crate::testing::{adapted, key};
use crate::value::Val;

fn val(text: &str) -> Val {
    Val::from(&serde_json::from_str::<serde_json::Value>(text).unwrap())
}

fn pod(name: &str, owner: &str, node: &str, ready: bool) -> Val {
    let (kind, owner) = owner.split_once('/').unwrap();
    let ready = if ready { "True" } else { "False" };
    val(&format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","namespace":"a","uid":"uid-{name}",
        "labels":{{"app":"x"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"{kind}","name":"{owner}","uid":"{owner}",
        "controller":true}}]}},"spec":{{"nodeName":"{node}"}},"status":{{"phase":"Running",
        "conditions":[{{"type":"Ready","status":"{ready}"}}]}}}}"#
    ))
}

fn workload(kind: &str, name: &str, owner: &str, replicas: i64, image: &str, more: &str) -> Val {
    let owners = if owner.is_empty() {
        String::new()
    } else {
        format!(
            r#","ownerReferences":[{{"apiVersion":"apps/v1","kind":"Deployment","name":"{owner}","uid":"{owner}","controller":true}}]"#
        )
    };
    val(&format!(
        r#"{{"apiVersion":"apps/v1","kind":"{kind}","metadata":{{"name":"{name}","namespace":"a","uid":"{name}"{owners}}},
        "spec":{{"replicas":{replicas},"selector":{{"matchLabels":{{"app":"x"}}}},"template":{{"metadata":{{"labels":
        {{"app":"x"}}}},"spec":{{"containers":[{{"name":"c","image":"{image}"}}]}}}}{more}}}}}"#
    ))
}

fn snapshot(objects: Vec<Val>) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for object in objects {
        snapshot.insert(Object::from_val(&object).unwrap());
    }
    snapshot.complete();
    snapshot
}

/// The numbers of ready pods in all worlds of the named group after these requests.
fn ready_counts(snapshot: &Snapshot, requests: Vec<Request>, name: &Key, moment: Moment) -> BTreeSet<usize> {
    let change = Change { requests };
    let all = scenarios(snapshot, &[], Some(&change), moment).unwrap();
    all.iter().flat_map(|scenario| ready_in(scenario, name, moment)).collect()
}

/// The numbers of ready pods in all worlds of the named group that start from a scenario.
fn ready_in(scenario: &Scenario<'_>, name: &Key, moment: Moment) -> BTreeSet<usize> {
    let view = View {
        moment,
        outage: Outage::default(),
        places: false,
        merge_equivalent_nodes: false,
        coarse: false,
        remade: false,
    };
    let group = group(scenario, &Memo::default(), name, &view);
    let mut counts = BTreeSet::new();
    let _ = worlds(&group, &mut |choice| {
        let world = realize(scenario, &Outage::default(), &[(&group, choice)]);
        let pods = world.list(&Kind::new("", "Pod"), None);
        counts.insert(pods.iter().filter(|p| p.ready()).count());
        ControlFlow::Continue(())
    });
    counts
}

#[test]
fn a_scaling_that_a_status_in_flight_has_seen_interrupts_no_rollout() {
    let web = workload("Deployment", "web", "", 4, "1", "");
    let web =
        web.with_at(&["metadata", "generation"], Val::Int(3)).with_at(&["status", "observedGeneration"], Val::Int(3));
    let mut objects = vec![web, workload("ReplicaSet", "web-1", "web", 4, "1", "")];
    objects.extend(["p", "q", "r", "s"].map(|name| pod(name, "ReplicaSet/web-1", "n", true)));
    let snapshot = snapshot(objects);
    let (state, name) = (State::new(&snapshot), key("Deployment/a/web"));
    let patch = |text: &str, sub: &str| Request::patch(User::admin(), &state, name.clone(), &val(text), sub).unwrap();
    let scaled = Request::scale(User::admin(), &state, name.clone(), 3);
    let seen = patch(r#"{"status":{"observedGeneration":4}}"#, "status");
    let image = patch(r#"{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"2"}]}},"replicas":3}}"#, "");
    let found = scenarios(&snapshot, &[&scaled, &seen], Some(&Change::from(image)), Moment::During).unwrap();
    let least = |landed: u32| {
        let scenario = found.iter().find(|scenario| scenario.landed == landed).unwrap();
        ready_in(scenario, &name, Moment::During).first().copied()
    };
    assert_eq!(least(0b01), Some(2), "it may scale in the middle of the rollout");
    assert_eq!(least(0b11), Some(3), "nothing is unavailable in a rollout of three");
}

#[test]
fn which_node_fails_changes_nothing_but_the_pods_on_it() {
    let pods = |owner: &'static str| {
        (0..6).map(move |at| pod(&format!("{}-{at}", &owner[owner.len() - 1..]), owner, ["n", "m"][at % 2], at != 3))
    };
    let apart = val(r#"{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
        {"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"app":"x"}}}]}}"#);
    let alone = workload("Deployment", "d", "", 6, "new", "");
    let alone = alone.with_at(&["spec", "template", "spec", "affinity"], apart);
    let made = [alone, workload("ReplicaSet", "r", "d", 6, "old", "")];
    let set = workload("StatefulSet", "s", "", 8, "new", "").with_at(&["spec", "selector"], Val::Null);
    let all = pods("ReplicaSet/r").chain(pods("StatefulSet/s")).chain(made).chain([set]);
    let snapshot = snapshot(all.collect());
    let (scenario, memo) = (Scenario::observed(&snapshot), Memo::default());
    let cases = ["Deployment/d", "StatefulSet/s"].map(|name| name.split_once('/').unwrap());
    for ((kind, name), moment) in cases.iter().flat_map(|c| [(c, Moment::During), (c, Moment::After)]) {
        let fails = |node: &str| {
            let outage = Outage { nodes: BTreeSet::from([node.into()]), zones: BTreeSet::new() };
            let view =
                View { moment, outage, places: false, merge_equivalent_nodes: true, coarse: true, remade: false };
            group(&scenario, &memo, &Key::of(kind, "a", name), &view)
        };
        let (somewhere, here) = (fails("elsewhere"), fails("n"));
        let view = View {
            moment,
            outage: Outage::default(),
            places: false,
            merge_equivalent_nodes: true,
            coarse: true,
            remade: false,
        };
        let (nowhere, calm) = (group(&scenario, &memo, &Key::of(kind, "a", name), &view), calm(&somewhere));
        assert_eq!(nowhere.limits, calm.limits);
        let met = |group: &Group| -> Vec<Vec<(FateKind, Option<Arc<Object>>)>> {
            let of = |e: &Entity| e.fates.iter().map(|f| (f.kind, e.object_in(f))).collect();
            group.entities.iter().map(of).collect()
        };
        assert_eq!(met(&nowhere), met(&calm));
        assert_eq!(somewhere.limits, here.limits);
        assert_eq!(somewhere.entities.len(), here.entities.len());
        let mut down = 0;
        for (before, after) in somewhere.entities.iter().zip(&here.entities) {
            let on_it = before.object.as_ref().is_some_and(|o| &*o.node == "n");
            down += usize::from(on_it);
            assert_eq!(
                if on_it { when_down(&memo, before) } else { before.fates.to_vec() },
                *after.fates,
                "{before:?}"
            );
        }
        assert_eq!(down, 3);
    }
}

fn scale(snapshot: &Snapshot, key: &Key, replicas: i64) -> Request {
    Request::scale(User::admin(), &State::new(snapshot), key.clone(), replicas)
}

fn patch(snapshot: &Snapshot, key: &Key, patch: &str) -> Request {
    Request::patch(User::admin(), &State::new(snapshot), key.clone(), &val(patch), "").unwrap()
}

const NEW_IMAGE: &str = r#"{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"2"}]}}}}"#;

fn set_of(numbers: &[usize]) -> BTreeSet<usize> {
    numbers.iter().copied().collect()
}

#[test]
fn a_replica_set_removes_unready_pods_first() {
    let owner = "ReplicaSet/rs";
    let snapshot = snapshot(vec![
        workload("ReplicaSet", "rs", "", 3, "1", ""),
        pod("p1", owner, "n1", true),
        pod("p2", owner, "n1", true),
        pod("p3", owner, "n1", false),
    ]);
    let key = Key::of("ReplicaSet", "a", "rs");
    // two wanted: the unready one goes, or it became ready and any one of three goes
    let during = ready_counts(&snapshot, vec![scale(&snapshot, &key, 2)], &key, Moment::During);
    assert_eq!(during, set_of(&[2, 3]));
    let after = ready_counts(&snapshot, vec![scale(&snapshot, &key, 1)], &key, Moment::After);
    assert_eq!(after, set_of(&[1]));
}

#[test]
fn a_rolling_update_keeps_what_max_unavailable_says() {
    let strategy = r#","strategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":1,"maxSurge":0}}"#;
    let owner = "ReplicaSet/d-1";
    let snapshot = snapshot(vec![
        workload("Deployment", "d", "", 3, "1", strategy),
        workload("ReplicaSet", "d-1", "d", 3, "1", ""),
        pod("p1", owner, "n1", true),
        pod("p2", owner, "n1", true),
        pod("p3", owner, "n1", true),
    ]);
    let key = Key::of("Deployment", "a", "d");
    let during = ready_counts(&snapshot, vec![patch(&snapshot, &key, NEW_IMAGE)], &key, Moment::During);
    assert_eq!(during.first(), Some(&2));
    // an eviction comes on top of what the rollout has taken
    let evicted = Request::evict(User::admin(), Key::of("Pod", "a", "p1"));
    let both = ready_counts(&snapshot, vec![patch(&snapshot, &key, NEW_IMAGE), evicted], &key, Moment::During);
    assert_eq!(both.first(), Some(&1));
    assert_eq!(ready_counts(&snapshot, vec![patch(&snapshot, &key, NEW_IMAGE)], &key, Moment::After), set_of(&[3]),);
}

#[test]
fn recreate_takes_all_pods() {
    let owner = "ReplicaSet/d-1";
    let snapshot = snapshot(vec![
        workload("Deployment", "d", "", 2, "1", r#","strategy":{"type":"Recreate"}"#),
        workload("ReplicaSet", "d-1", "d", 2, "1", ""),
        pod("p1", owner, "n1", true),
        pod("p2", owner, "n1", true),
    ]);
    let key = Key::of("Deployment", "a", "d");
    let during = ready_counts(&snapshot, vec![patch(&snapshot, &key, NEW_IMAGE)], &key, Moment::During);
    assert_eq!(during.first(), Some(&0));
}

fn stateful(policy: &str, ready: [bool; 3]) -> Snapshot {
    let more = format!(r#","podManagementPolicy":"{policy}","serviceName":"s""#);
    let owner = "StatefulSet/s";
    let mut objects = vec![workload("StatefulSet", "s", "", 3, "1", &more)];
    objects.extend((0..3).map(|at| pod(&format!("s-{at}"), owner, "n1", ready[at])));
    snapshot(objects)
}

#[test]
fn a_stateful_set_goes_one_at_a_time() {
    let key = Key::of("StatefulSet", "a", "s");
    let healthy = stateful("OrderedReady", [true; 3]);
    let rollout = |s: &Snapshot| ready_counts(s, vec![patch(s, &key, NEW_IMAGE)], &key, Moment::During);
    assert_eq!(rollout(&healthy), set_of(&[2, 3]));
    // OrderedReady waits for the pod that is not ready; Parallel does not
    assert_eq!(rollout(&stateful("OrderedReady", [true, false, true])).first(), Some(&2));
    assert_eq!(rollout(&stateful("Parallel", [false, true, true])).first(), Some(&1));
}

#[test]
fn an_ordered_stateful_set_scales_down_only_while_the_rest_is_ready() {
    let key = Key::of("StatefulSet", "a", "s");
    let down = |s: &Snapshot| ready_counts(s, vec![scale(s, &key, 1)], &key, Moment::During);
    assert_eq!(down(&stateful("OrderedReady", [true; 3])), set_of(&[1, 2, 3]));
    assert_eq!(down(&stateful("OrderedReady", [false, true, true])), set_of(&[1, 2, 3]));
    let stuck = stateful("OrderedReady", [false, true, true]);
    let scenario = scenarios(&stuck, &[], Some(&Change { requests: vec![scale(&stuck, &key, 1)] }), Moment::During);
    let scenario = scenario.unwrap().remove(0);
    let group = group(&scenario, &Memo::default(), &key, &View::default());
    let _ = worlds(&group, &mut |choice| {
        let world = realize(&scenario, &Outage::default(), &[(&group, choice)]);
        let is_ready = |name: &str| world.get(&Key::of("Pod", "a", name)).is_some_and(|p| p.ready());
        assert!(is_ready("s-0") || (is_ready("s-1") && is_ready("s-2")), "touched before s-0 was ready");
        ControlFlow::Continue(())
    });
}

/// A paused Deployment `d` that wants `replicas`, over ReplicaSets of its template (`2`) and of an older one (`1`).
fn paused(replicas: i64, old: i64, new: Option<i64>) -> Snapshot {
    let mut objects = vec![
        workload("Deployment", "d", "", replicas, "2", r#","paused":true"#),
        workload("ReplicaSet", "d-1", "d", old, "1", ""),
    ];
    objects.extend(new.map(|new| workload("ReplicaSet", "d-2", "d", new, "2", "")));
    objects.extend((0..old).map(|at| pod(&format!("o{at}"), "ReplicaSet/d-1", "n1", true)));
    objects.extend((0..new.unwrap_or(0)).map(|at| pod(&format!("p{at}"), "ReplicaSet/d-2", "n1", true)));
    snapshot(objects)
}

#[test]
fn a_paused_deployment_is_scaled_but_not_rolled() {
    let key = Key::of("Deployment", "a", "d");
    let settled = |snapshot: &Snapshot| ready_counts(snapshot, vec![patch(snapshot, &key, "{}")], &key, Moment::After);
    // the only active ReplicaSet gets all replicas, though it is not of the template
    assert_eq!(settled(&paused(0, 2, None)), set_of(&[0]));
    assert_eq!(settled(&paused(2, 2, None)), set_of(&[2]));
    // of several, the total is replicas and surge; the old ones go if the new one is all that is wanted
    assert_eq!(settled(&paused(2, 1, Some(2))), set_of(&[2, 3]));
    assert_eq!(settled(&paused(4, 2, Some(2))), set_of(&[4, 5]));
    // one that is being deleted makes no pods: what it is scaled to is not waited for
    let mut in_deletion_closure = paused(3, 2, None);
    let set = workload("ReplicaSet", "d-2", "d", 3, "2", "");
    in_deletion_closure.insert(Object::from_val(&set).unwrap().with_deletion(crate::effects::DELETION_TIME));
    in_deletion_closure.complete();
    assert!(settled(&in_deletion_closure).is_superset(&set_of(&[1, 2])));
}

/// A custom resource `c` that wants `replicas` pods of its label and lists these StatefulSets, beside these objects.
fn custom(replicas: i64, children: &str, objects: &str) -> Snapshot {
    let facts = |object: &Object| AdapterFacts {
        replicas: object.val().int_at(&["spec", "replicas"]),
        selector: Some(Selector::from_pairs(&val(r#"{"app":"x"}"#))),
        children: Some(
            object
                .val()
                .items_at(&["spec", "sets"])
                .iter()
                .map(|n| Key::of("StatefulSet", "a", n.as_str().unwrap()))
                .collect(),
        ),
        ..AdapterFacts::default()
    };
    let custom = format!(
        "{{apiVersion: e.com/v1, kind: Db, metadata: {{name: c, namespace: a, uid: c}}, spec: {{replicas: {replicas}, sets: [{children}]}}}}"
    );
    let node = "---\n{apiVersion: v1, kind: Node, metadata: {name: n1}}";
    adapted(&format!("{custom}\n{node}\n{objects}"), vec![(Kind::new("e.com", "Db"), facts)])
}

/// Ready pods of these names that nothing owns.
fn lone(names: &[&str]) -> String {
    let one = |name: &&str| {
        format!(
            "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: a, uid: {name}, labels: {{app: x}}}}, \
             spec: {{nodeName: n1}}, status: {{phase: Running, conditions: [{{type: Ready, status: 'True'}}]}}}}\n"
        )
    };
    names.iter().map(one).collect()
}

/// The names of the pods that are left, in every world of the named group.
fn left(snapshot: &Snapshot, name: &Key, moment: Moment) -> BTreeSet<String> {
    left_in(&Scenario::observed(snapshot), name, moment)
}

fn left_in(scenario: &Scenario<'_>, name: &Key, moment: Moment) -> BTreeSet<String> {
    let view = View { moment, ..View::default() };
    let group = group(scenario, &Memo::default(), name, &view);
    let mut found = BTreeSet::new();
    let _ = worlds(&group, &mut |choice| {
        let world = realize(scenario, &Outage::default(), &[(&group, choice)]);
        let pods = world.list(&Kind::new("", "Pod"), None);
        found.insert(pods.iter().filter(|p| p.live()).map(|p| p.key.name.to_string()).collect::<Vec<_>>().join(" "));
        ControlFlow::Continue(())
    });
    found
}

#[test]
fn any_selected_pod_may_go_when_a_custom_resource_wants_fewer() {
    let custom_resource = Key::new(Kind::new("e.com", "Db"), "a", "c");
    let two = custom(1, "", &lone(&["p", "q"]));
    assert_eq!(group_name(&State::new(&two), two.get(&key("Pod/a/p")).unwrap()), custom_resource);
    let worlds = left(&two, &custom_resource, Moment::During);
    assert_eq!(worlds, ["p", "p q", "q"].map(str::to_owned).into());
    // as many as it wants, and nothing goes
    assert_eq!(left(&custom(2, "", &lone(&["p", "q"])), &custom_resource, Moment::During), ["p q".to_owned()].into());
}

#[test]
fn a_child_of_a_custom_resource_decides_which_pods_go() {
    let set = "---\n{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s, namespace: a, uid: s}, spec: {replicas: 2, \
               podManagementPolicy: Parallel, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {}}}}\n";
    let owned =
        "ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: s, uid: s, controller: true}], labels";
    let objects = format!("{set}{}", lone(&["s-0", "s-1"]).replace("labels", owned));
    let name = key("StatefulSet/a/s");
    let settled = |children| left(&custom(1, children, &objects), &name, Moment::After);
    // listed, it is told to; else the operator may take any, or none yet, but only if it wants fewer than before
    assert_eq!(settled("s"), ["s-0".to_owned()].into());
    assert_eq!(settled(""), ["s-0 s-1".to_owned()].into());
    let snapshot = custom(2, "", &objects);
    let mut scenario = Scenario::observed(&snapshot);
    let parent = Key::new(Kind::new("e.com", "Db"), "a", "c");
    scenario.land(&Request::scale(User::admin(), &State::new(&snapshot), parent, 1));
    assert_eq!(left_in(&scenario, &name, Moment::After), ["s-0", "s-0 s-1"].map(str::to_owned).into());
}

#[test]
fn a_pod_that_a_controller_makes_anew_is_another_than_one_that_a_request_created() {
    let snapshot = snapshot(Vec::new());
    let made = |text: &str| Request::create(User::admin(), &State::new(&snapshot), &val(text)).unwrap();
    let change = Change {
        requests: vec![
            made(
                r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x-0","namespace":"a","labels":{"app":"x"}},"spec":{}}"#,
            ),
            made(
                r#"{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"x","namespace":"a"},"spec":{
                "selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"labels":{"app":"x"}},"spec":{}}}}"#,
            ),
        ],
    };
    let scenarios = scenarios(&snapshot, &[], Some(&change), Moment::After).unwrap();
    let scenario = scenarios.last().unwrap();
    let created = scenario.state.get(&Key::of("Pod", "a", "x-0")).unwrap().uid.clone();
    let group = group(
        scenario,
        &Memo::default(),
        &Key::of("DaemonSet", "a", "x"),
        &View { moment: Moment::After, ..View::default() },
    );
    let mut replaced = 0;
    let _ = worlds(&group, &mut |choice| {
        let world = realize(scenario, &Outage::default(), &[(&group, choice)]);
        let pod = world.get(&Key::of("Pod", "a", "x-0")).unwrap();
        if pod.controller().is_some() {
            replaced += 1;
            assert_ne!(pod.uid, created);
        }
        ControlFlow::Continue(())
    });
    assert_ne!(replaced, 0);
}

/// An autoscaler of this workload of namespace `a`.
fn autoscaler(target: &str, min: i64, max: i64) -> Val {
    let (kind, name) = target.split_once('/').unwrap();
    val(&format!(
        r#"{{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{{"name":"h","namespace":"a","uid":"h"}},
        "spec":{{"scaleTargetRef":{{"apiVersion":"apps/v1","kind":"{kind}","name":"{name}"}},"minReplicas":{min},
        "maxReplicas":{max}}}}}"#
    ))
}

/// The numbers of ready pods of Deployment `d`, of this many ready ones, beside these objects.
fn deployed(pods: usize, objects: Vec<Val>, moment: Moment) -> BTreeSet<usize> {
    let replicas = i64::try_from(pods).unwrap();
    let mut all =
        vec![workload("Deployment", "d", "", replicas, "1", ""), workload("ReplicaSet", "d-1", "d", replicas, "1", "")];
    all.extend((0..pods).map(|at| pod(&format!("p{at}"), "ReplicaSet/d-1", "n1", true)));
    all.extend(objects);
    let snapshot = snapshot(all);
    let key = Key::of("Deployment", "a", "d");
    ready_counts(&snapshot, vec![patch(&snapshot, &key, "{}")], &key, moment)
}

#[test]
fn an_autoscaler_sets_any_number_of_its_range() {
    for (pods, target, range, during) in [
        (3, "Deployment/d", (1, 4), vec![1, 2, 3, 4]),
        (2, "Deployment/d", (2, 3), vec![2, 3]),
        // one from outside is moved into the range
        (4, "Deployment/d", (1, 2), vec![1, 2, 3, 4]),
        (1, "Deployment/d", (2, 3), vec![1, 2, 3]),
        (3, "ReplicaSet/d-1", (2, 3), vec![2, 3]),
        // one that stands at 0 is started by a range that has 0 in it
        (0, "Deployment/d", (1, 2), vec![0]),
        (0, "Deployment/d", (0, 2), vec![0, 1, 2]),
        // what does not resolve is not scaled
        (3, "Deployment/e", (1, 4), vec![3]),
        (3, "StatefulSet/d", (1, 4), vec![3]),
    ] {
        let scaler = || vec![autoscaler(target, range.0, range.1)];
        assert_eq!(deployed(pods, scaler(), Moment::During), set_of(&during), "{pods} {target} {range:?}");
    }
    let going = autoscaler("Deployment/d", 1, 3)
        .with_at(&["metadata", "deletionTimestamp"], Val::str("2026-01-01T00:00:00Z"))
        .with_at(&["metadata", "finalizers"], Val::list(vec![Val::str("x/y")]));
    assert_eq!(deployed(3, vec![going], Moment::After), set_of(&[1, 2, 3]), "it acts until it is gone");
}

#[test]
fn a_replica_set_that_is_autoscaled_removes_unready_pods_first() {
    let snapshot = snapshot(vec![
        workload("ReplicaSet", "r", "", 3, "1", ""),
        autoscaler("ReplicaSet/r", 2, 3),
        pod("p1", "ReplicaSet/r", "n1", true),
        pod("p2", "ReplicaSet/r", "n1", true),
        pod("p3", "ReplicaSet/r", "n1", false),
    ]);
    let key = Key::of("ReplicaSet", "a", "r");
    let ready = |moment| ready_counts(&snapshot, vec![patch(&snapshot, &key, "{}")], &key, moment);
    assert_eq!(ready(Moment::During), set_of(&[2, 3]));
}

#[test]
fn a_stateful_set_that_is_autoscaled_goes_from_its_highest_ordinal() {
    let key = Key::of("StatefulSet", "a", "s");
    let with = |policy: &str, ready, min, max| {
        let mut snapshot = stateful(policy, ready);
        snapshot.insert(Object::from_val(&autoscaler("StatefulSet/s", min, max)).unwrap());
        snapshot
    };
    let names = |snapshot: &Snapshot| left(snapshot, &key, Moment::During);
    let told = |names: &[&str]| -> BTreeSet<String> { names.iter().map(|name| (*name).to_owned()).collect() };
    let healthy = with("OrderedReady", [true; 3], 1, 3);
    assert_eq!(names(&healthy), told(&["s-0", "s-0 s-1", "s-0 s-1 s-2", "s-0 s-2"]));
    let beyond = with("Parallel", [true; 3], 3, 4);
    assert_eq!(names(&beyond), told(&["s-0 s-1 s-2", "s-0 s-1 s-2 s-3"]));
    let quiet = |snapshot: &Snapshot| ready_counts(snapshot, vec![patch(snapshot, &key, "{}")], &key, Moment::During);
    assert_eq!(quiet(&healthy), set_of(&[1, 2, 3]));
    // a rollout does not wait for pods that need not be there
    let rollout = |s: &Snapshot| ready_counts(s, vec![patch(s, &key, NEW_IMAGE)], &key, Moment::During);
    assert_eq!(rollout(&with("OrderedReady", [true; 3], 3, 5)), set_of(&[2, 3, 4, 5]));
    // nor is a pod removed while a lower one that has to be there is not ready
    let stuck = left(&with("OrderedReady", [false, true, true], 1, 3), &key, Moment::During);
    assert!(stuck.contains("s-0 s-1 s-2"));
}

#[test]
fn a_rollout_under_an_autoscaler_keeps_what_its_lowest_number_keeps() {
    let floor = |min: i64, max: i64| {
        let mut all = vec![workload("Deployment", "d", "", 5, "1", ""), workload("ReplicaSet", "d-1", "d", 5, "1", "")];
        all.extend((0..5).map(|at| pod(&format!("p{at}"), "ReplicaSet/d-1", "n1", true)));
        all.push(autoscaler("Deployment/d", min, max));
        let snapshot = snapshot(all);
        let key = Key::of("Deployment", "a", "d");
        *ready_counts(&snapshot, vec![patch(&snapshot, &key, NEW_IMAGE)], &key, Moment::During).first().unwrap()
    };
    assert_eq!(floor(5, 5), 4);
    assert_eq!(floor(2, 5), 2);
    assert_eq!(floor(1, 5), 1);
}
