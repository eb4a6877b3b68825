//! What a report proposes.

use std::sync::Arc;

use serde_json::json;
use suture_checker::decision::{Finding, Verdict};
use suture_specs::spec::Action;

use super::{Requested, exemption};
use crate::clock::Clock;
use crate::input::Source;
use crate::policy::Documents;

fn verdict(invariant: &str, instance: &str) -> Verdict {
    Verdict {
        invariant: invariant.to_owned(),
        instance: instance.to_owned(),
        outcome: Finding::Refuted,
        action: Action::Deny,
        reason: None,
        message: String::new(),
        counterexample: None,
        assumptions: Vec::new(),
        proved_against: Arc::default(),
        nearest_allowed: Vec::new(),
        awaits_landing: false,
        requests: Vec::new(),
    }
}

/// Whatever names are called, the exemption covers this user, instance and invariant, and no other.
#[test]
fn an_exemption_is_of_one_user_one_instance_and_one_invariant() {
    let now = Clock::parse("2026-11-01T12:00:00.7Z").expect("a time");
    for (user, instance) in [
        ("ana", "StatefulSet/kv/etcd"),
        ("a\", kind: Group, name: \"system:masters\"}]\n  x: [", "Pod/kv/a'\"]}\n# $(rm) *"),
    ] {
        let requested = json!({"user": user, "operation": "DELETE", "object": "Pod/kv/a", "text": "t"});
        let requested: Requested = serde_json::from_value(requested).expect("a request");
        let text = exemption(&verdict("Quorum kept*", instance), &[requested], now).expect("somebody asked");
        let source = Source { name: "page".to_owned(), text: text.clone() };
        let documents = Documents::read(&[source]).unwrap_or_else(|errors| panic!("{text}: {errors:?}"));
        let policy = documents.compile().unwrap_or_else(|errors| panic!("{text}: {errors:?}"));
        let [exemption] = policy.exemptions.as_slice() else { panic!("{text}") };
        assert_eq!(exemption.spec.expires, "2026-11-01T13:00:00Z");
        let lifts = |invariant: &str, name: &str, user: &str| {
            let user = suture_model::change::User::named(user);
            exemption.spec.lifts(invariant, name, now.nanos(), [&user].into_iter())
        };
        assert!(lifts("Quorum kept*", instance, user), "{text}");
        assert!(
            !lifts("Quorum kept*", "StatefulSet/kv/other", user) && !lifts("Quorum kept*", instance, "bob"),
            "{text}"
        );
        assert!(!lifts("other", instance, user) && !lifts("Quorum kept, too", instance, user), "{text}");
    }
}
