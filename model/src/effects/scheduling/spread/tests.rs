//! The bound on new pods of one node against the comparison of all nodes, pod by pod.

use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::{Value, json};

use super::most_on_a_node;
use crate::change::{Change, Request, User};
use crate::effects::scheduling::template::Template;
use crate::effects::{Memo, View, group};
use crate::futures::{Moment, Outage};
use crate::interpret::{realize, worlds};
use crate::kinds::Kind;
use crate::land::scenarios;
use crate::object::Object;
use crate::scenario::Scenario;
use crate::snapshot::Snapshot;
use crate::state::State;
use crate::testing::key;
use crate::value::Val;

/// The template of pods of an image that are spread over nodes.
fn template(image: &str, skew: i64) -> Value {
    json!({"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": image}],
        "topologySpreadConstraints": [{"topologyKey": "kubernetes.io/hostname", "maxSkew": skew,
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "x"}}}]}})
}

fn workload(kind: &str, name: &str, replicas: i64, template: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "a", "uid": name}, "spec":
        {"replicas": replicas, "selector": {"matchLabels": {"app": "x"}}, "template": template}})
}

/// Deployment `d` of so many pods, all on the first of so many nodes, beside these objects.
fn cluster(nodes: usize, replicas: i64, skew: i64, beside: Vec<Value>) -> Snapshot {
    let mut set = workload("ReplicaSet", "r", replicas, &template("1", skew));
    set["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "d",
        "controller": true}]);
    let node = |at| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("n{at}"), "labels":
        {"kubernetes.io/hostname": format!("n{at}")}}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    };
    let pod = |at| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{at}"), "namespace": "a", "uid":
        format!("p{at}"), "labels": {"app": "x"}, "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name":
        "r", "uid": "r", "controller": true}]}, "spec": {"nodeName": "n0"}, "status": {"phase": "Running", "conditions":
        [{"type": "Ready", "status": "True"}]}})
    };
    let mut snapshot = Snapshot::default();
    let all = [workload("Deployment", "d", replicas, &template("1", skew)), set];
    for object in all.into_iter().chain((0..nodes).map(node)).chain((0..replicas).map(pod)).chain(beside) {
        snapshot.insert(Object::from_val(&Val::from(&object)).unwrap());
    }
    snapshot.complete();
    snapshot
}

/// What is made of a rollout of `d`, where it has landed.
fn rolled_out<R>(snapshot: &Snapshot, skew: i64, replicas: i64, of: impl FnOnce(&Scenario<'_>) -> R) -> R {
    let with = Val::from(&json!({"spec": {"replicas": replicas, "template": template("2", skew)}}));
    let request = Request::patch(User::admin(), &State::new(snapshot), key("Deployment/a/d"), &with, "").unwrap();
    let found = scenarios(snapshot, &[], Some(&Change::from(request)), Moment::During).unwrap();
    of(found.last().unwrap())
}

fn bound(scenario: &Scenario<'_>, skew: i64) -> Option<i64> {
    most_on_a_node(scenario, "a", &Template::new(&Val::from(&template("2", skew)), "a"))
}

#[test]
fn no_node_takes_more_than_the_comparison_of_nodes_says() {
    for (nodes, replicas, skew) in (1..=4).flat_map(|n| (1..=2).flat_map(move |r| [(n, r, 1), (n, r, 2)])) {
        let snapshot = cluster(nodes, replicas, skew, Vec::new());
        rolled_out(&snapshot, skew, replicas, |scenario| {
            let most = bound(scenario, skew).unwrap();
            let view = View { moment: Moment::During, places: true, ..View::default() };
            let group = group(scenario, &Memo::default(), &key("Deployment/a/d"), &view);
            let mut found = 0;
            let _ = worlds(&group, &mut |choice| {
                let world = realize(scenario, &Outage::default(), &[(&group, choice)]);
                let pods = world.list(&Kind::new("", "Pod"), None);
                let new = |at: usize| {
                    let is_there =
                        |pod: &&&Arc<Object>| snapshot.get(&pod.key).is_none() && *pod.node == *format!("n{at}");
                    pods.iter().filter(is_there).count()
                };
                found = found.max((0..nodes).map(new).max().unwrap_or(0));
                ControlFlow::Continue(())
            });
            assert!(found > 0 && i64::try_from(found).unwrap() <= most, "{nodes} {replicas} {skew}: {found} > {most}");
        });
    }
}

#[test]
fn where_there_are_many_nodes_each_takes_as_many_as_the_skew() {
    let snapshot = cluster(40, 5, 1, Vec::new());
    let most = |replicas| rolled_out(&snapshot, 1, replicas, |scenario| bound(scenario, 1));
    assert_eq!(most(5), Some(1));
    // 5 pods, 5 that the old revision may make, and 500 with a quarter of them as surge
    assert_eq!(most(500), Some(1 + (5 + 5 + 500 + 125 - 1) / 40));
}

#[test]
fn what_makes_pods_without_a_number_leaves_no_bound() {
    let mut job = workload("Job", "j", 1, &template("1", 1));
    job["apiVersion"] = json!("batch/v1");
    let snapshot = cluster(40, 5, 1, vec![job]);
    assert_eq!(rolled_out(&snapshot, 1, 5, |scenario| bound(scenario, 1)), None);
    let other = workload("StatefulSet", "s", 80, &template("1", 1));
    let snapshot = cluster(40, 5, 1, vec![other]);
    assert_eq!(rolled_out(&snapshot, 1, 5, |scenario| bound(scenario, 1)), Some(1 + (5 + 5 + 5 + 2 + 80 - 1) / 40));
}

#[test]
fn a_key_that_differs_from_pod_to_pod_keeps_no_two_pods_apart() {
    let snapshot = cluster(40, 5, 1, Vec::new());
    rolled_out(&snapshot, 1, 5, |scenario| {
        let with = |key: &str| {
            let mut template = template("2", 1);
            template["spec"]["topologySpreadConstraints"][0]["matchLabelKeys"] = json!([key]);
            most_on_a_node(scenario, "a", &Template::new(&Val::from(&template), "a"))
        };
        assert_eq!(with("pod-template-hash"), Some(1));
        assert_eq!(with("statefulset.kubernetes.io/pod-name"), None);
    });
}
