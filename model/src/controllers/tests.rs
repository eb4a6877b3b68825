//! What each controller intends, by examples of its arithmetic.

use std::sync::Arc;

use super::daemonset::{self, Outdated};
use super::replicas::ReplicaRange;
use super::replicaset;
use super::statefulset::{Intent, intent};
use crate::object::Object;
use crate::value::Val;

fn object(text: &str) -> Arc<Object> {
    let val = Val::from(&serde_json::from_str::<serde_json::Value>(text).unwrap());
    Arc::new(Object::from_val(&val).unwrap())
}

fn pod(name: &str, revision: &str) -> Arc<Object> {
    object(&format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","namespace":"a",
        "labels":{{"controller-revision-hash":"{revision}"}}}},"spec":{{}}}}"#
    ))
}

#[test]
fn a_stateful_set_keeps_updates_or_removes_a_pod_by_its_ordinal() {
    let set = object(
        r#"{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"s","namespace":"a"},
        "spec":{"replicas":3,"ordinals":{"start":1},"updateStrategy":{"rollingUpdate":{"partition":1}}},
        "status":{"updateRevision":"new"}}"#,
    );
    let of = |name, revision| intent(&set, &pod(name, revision), 3, false);
    assert_eq!(of("s-0", "new"), Some(Intent::Removes));
    assert_eq!(of("s-1", "old"), Some(Intent::Keeps), "the partition is below it");
    assert_eq!(of("s-2", "old"), Some(Intent::Updates));
    assert_eq!(of("s-3", "new"), Some(Intent::Keeps));
    assert_eq!(of("s-4", "old"), Some(Intent::Removes));
    assert_eq!(of("s-01", "old"), None, "no name that the set gives");
    assert_eq!(intent(&set, &pod("s-3", "new"), 3, true), Some(Intent::Updates));
    assert_eq!(intent(&set, &pod("s-3", "new"), 2, true), Some(Intent::Removes));
}

#[test]
fn a_replica_set_removes_what_is_in_excess_and_makes_what_lacks() {
    let plan = |present, lost, least, most| {
        let plan = replicaset::plan(present, lost, ReplicaRange { least, most });
        (plan.excess, plan.missing)
    };
    assert_eq!(plan(3, 0, 3, 3), (0, 0));
    assert_eq!(plan(5, 0, 3, 3), (2, 0));
    assert_eq!(plan(3, 1, 3, 3), (0, 1), "what is lost is made again");
    assert_eq!(plan(3, 0, 1, 4), (2, 3), "it may be told to want fewer, then more");
}

#[test]
fn a_daemon_set_replaces_the_pods_of_other_revisions_than_the_present_one() {
    let set = |updated: i64| {
        object(&format!(
            r#"{{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{{"name":"d","namespace":"a"}},
            "spec":{{"template":{{"metadata":{{"labels":{{"controller-revision-hash":"new"}}}}}}}},
            "status":{{"observedGeneration":2,"updatedNumberScheduled":{updated},"desiredNumberScheduled":2}}}}"#
        ))
    };
    let pods = [pod("d-1", "new"), pod("d-2", "old")];
    let new = "new".into();
    assert_eq!(daemonset::outdated(&set(1), &pods, false), Outdated::AllBut(&new));
    assert_eq!(daemonset::outdated(&set(1), &pods, true), Outdated::All, "the controller has not seen the template");
    assert_eq!(daemonset::outdated(&set(2), &pods, false), Outdated::None);
    assert_eq!([1, 2].map(|updated| daemonset::is_settled(&set(updated))), [false, true]);
}

#[test]
fn of_a_settled_daemon_set_nothing_is_outdated() {
    let of_type = ["{}", r#"{"type":"RollingUpdate"}"#, r#"{"type":"OnDelete"}"#];
    let statuses = ["{}"].into_iter().map(str::to_owned).chain((0..3).flat_map(|updated| {
        let one = format!(r#"{{"updatedNumberScheduled":{updated},"desiredNumberScheduled":2}}"#);
        let observed = (1..3).map(move |of| {
            format!(r#"{{"observedGeneration":{of},"updatedNumberScheduled":{updated},"desiredNumberScheduled":2}}"#)
        });
        let left_out = (1..3).map(|of| format!(r#"{{"observedGeneration":{of},"desiredNumberScheduled":2}}"#));
        std::iter::once(one).chain(observed).chain(left_out)
    }));
    let pods = [pod("d-1", "new"), pod("d-2", "old")];
    let (mut settled, mut others) = (0, 0);
    for status in statuses {
        for strategy in of_type {
            let set = object(&format!(
                r#"{{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{{"name":"d","namespace":"a","generation":2}},
                "spec":{{"updateStrategy":{strategy},"template":{{"metadata":{{"labels":
                {{"controller-revision-hash":"new"}}}}}}}},"status":{status}}}"#
            ));
            for some in [&pods[..0], &pods[..1], &pods[1..], &pods] {
                let outdated = daemonset::outdated(&set, some, set.unobserved());
                assert!(!daemonset::is_settled(&set) || outdated == Outdated::None, "{status} {strategy} {outdated:?}");
            }
            *(if daemonset::is_settled(&set) { &mut settled } else { &mut others }) += 1;
        }
    }
    assert!(settled > 0 && others > 0);
}
