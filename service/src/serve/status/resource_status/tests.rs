//! What the replicas say, put together.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};
use suture_specs::spec::Action;

use super::{Audited, ResourceStatus, next_status};

fn good(generation: i64) -> ResourceStatus {
    let uid = "u".to_owned();
    let fine = Ok(());
    ResourceStatus {
        uid,
        generation,
        action: None,
        compiled: fine.clone(),
        ready: fine.clone(),
        enforced: fine,
        in_time: None,
        audited: Audited::Elsewhere,
        near: None,
    }
}

fn condition<'s>(status: &'s Json, name: &str) -> &'s Json {
    let all = status["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().find(|c| c["type"] == name).unwrap_or(&Json::Null)
}

fn replicas(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn it_is_ready_when_every_replica_is() {
    let both = replicas(&["a", "b"]);
    let first = next_status(&Json::Null, "a", &good(1), &both, "t1");
    assert_eq!(condition(&first, "Ready")["status"], "True");
    let lagging = ResourceStatus { ready: Err("Secret is not listed".to_owned()), ..good(1) };
    let second = next_status(&first, "b", &lagging, &both, "t2");
    assert_eq!(condition(&second, "Ready")["status"], "False");
    assert_eq!(condition(&second, "Ready")["message"], "b: Secret is not listed");
    assert_eq!(condition(&second, "Compiled")["lastTransitionTime"], "t1");
    let third = next_status(&second, "b", &good(1), &both, "t3");
    assert_eq!(condition(&third, "Ready")["status"], "True");
    assert_eq!(condition(&third, "Ready")["lastTransitionTime"], "t3");
}

#[test]
fn a_new_generation_is_not_ready_before_all_have_loaded_it() {
    let both = replicas(&["a", "b"]);
    let old = next_status(&Json::Null, "a", &good(1), &both, "t1");
    let old = next_status(&old, "b", &good(1), &both, "t1");
    let next = next_status(&old, "a", &good(2), &both, "t2");
    assert_eq!((&condition(&next, "Ready")["status"], &next["observedGeneration"]), (&json!("Unknown"), &json!(2)));
    let next = next_status(&next, "b", &good(2), &both, "t3");
    assert_eq!(condition(&next, "Ready")["status"], "True");
}

#[test]
fn replicas_that_are_gone_have_no_say() {
    let broken = ResourceStatus { enforced: Err("the webhook is off".to_owned()), ..good(1) };
    let old = next_status(&Json::Null, "gone", &broken, &replicas(&["a", "gone"]), "t1");
    let next = next_status(&old, "a", &good(1), &replicas(&["a"]), "t2");
    assert_eq!(next["byPod"].as_array().map(Vec::len), Some(1));
    assert_eq!(condition(&next, "Enforced")["status"], "True");
}

#[test]
fn nothing_new_is_the_same_status() {
    let all = replicas(&["a"]);
    let found = Audited::Found(vec![("Service/shop/web".to_owned(), "no endpoint".to_owned())]);
    let audited = ResourceStatus { audited: found, ..good(1) };
    let first = next_status(&Json::Null, "a", &audited, &all, "t1");
    assert_eq!(first, next_status(&first, "a", &audited, &all, "t2"));
    assert_eq!(condition(&first, "Violated")["status"], "True");
    // the last audit stands until there is another one
    assert_eq!(first, next_status(&first, "a", &good(1), &all, "t2"));
    let blind = ResourceStatus { audited: Audited::Unknown("NotAudited", "too large".to_owned()), ..good(1) };
    let next = next_status(&first, "a", &blind, &all, "t3");
    assert_eq!(condition(&next, "Violated")["status"], "Unknown");
    assert_eq!(condition(&next, "Violated")["message"], "too large");
    assert_eq!(next["violations"], Json::Null);
    // what cannot be violated does not say so
    let nothing = ResourceStatus { audited: Audited::Nothing, ..good(1) };
    assert_eq!(condition(&next_status(&Json::Null, "a", &nothing, &all, "t"), "Violated"), &Json::Null);
}

#[test]
fn what_is_one_step_away_is_counted_and_not_denied_before_all_was_looked_at() {
    let all = replicas(&["a"]);
    let said = |near: Option<(usize, bool)>| {
        let audited = ResourceStatus { audited: Audited::Found(Vec::new()), near, ..good(1) };
        next_status(&Json::Null, "a", &audited, &all, "t1")
    };
    let is = |near, status: &str, message: &str| {
        let said = said(near);
        let told = condition(&said, "OneStepAway");
        assert_eq!((&told["status"], &told["message"]), (&json!(status), &json!(message)), "{near:?}");
    };
    is(None, "Unknown", "not audited yet");
    is(Some((0, false)), "Unknown", "none so far");
    is(Some((0, true)), "False", "");
    is(Some((1, false)), "True", "1 instance");
    is(Some((2, true)), "True", "2 instances");
    // another replica says nothing of it, and leaves what was said
    let kept = next_status(&said(Some((2, true))), "a", &good(1), &all, "t2");
    assert_eq!(condition(&kept, "OneStepAway")["message"], "2 instances");
}

#[test]
fn violations_and_messages_are_capped() {
    let many = (0..100).map(|i| (format!("Service/shop/{i:03}"), "x".repeat(5_000))).collect();
    let many = ResourceStatus { audited: Audited::Found(many), ..good(1) };
    let status = next_status(&Json::Null, "a", &many, &replicas(&["a"]), "t");
    assert_eq!(status["violations"]["total"], 100);
    assert_eq!(status["violations"]["first"].as_array().map(Vec::len), Some(20));
    assert!(status.to_string().len() < 30_000);
}

#[test]
fn what_it_does_is_said_while_it_compiles() {
    let all = replicas(&["a"]);
    let warning = ResourceStatus { action: Some(Action::Warn), ..good(1) };
    let said = next_status(&Json::Null, "a", &warning, &all, "t1");
    assert_eq!(said["action"], "Warn");
    let broken = ResourceStatus { compiled: Err("it does not compile".to_owned()), ..good(2) };
    assert_eq!(next_status(&said, "a", &broken, &all, "t2").get("action"), None);
}

#[test]
fn one_that_overruns_anywhere_says_so() {
    let both = replicas(&["a", "b"]);
    let fine = ResourceStatus { in_time: Some(Ok(())), ..good(1) };
    let slow = ResourceStatus { in_time: Some(Err("it took all".to_owned())), ..good(1) };
    // the other one is of a version that does not say it
    let first = next_status(&Json::Null, "b", &good(1), &both, "t1");
    assert_eq!(condition(&first, "InTime"), &Json::Null, "no invariant has none");
    let first = next_status(&first, "a", &slow, &both, "t1");
    let told = condition(&first, "InTime");
    assert_eq!(
        (&told["status"], &told["reason"], &told["message"]),
        (&json!("False"), &json!("Overran"), &json!("a: it took all"))
    );
    assert_eq!(condition(&first, "Enforced")["status"], "True");
    let next = next_status(&first, "a", &fine, &both, "t2");
    assert_eq!(
        (&condition(&next, "InTime")["status"], &condition(&next, "InTime")["reason"]),
        (&json!("True"), &json!("Decides"))
    );
}
