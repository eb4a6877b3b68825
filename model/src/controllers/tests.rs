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
}
