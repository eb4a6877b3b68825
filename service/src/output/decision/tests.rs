//! How decisions read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suture_checker::decision::{Duration, Effort, StepReport};
use suture_checker::involved::ViolatingFuture;

use super::*;

fn verdict(outcome: Finding, action: Action) -> Verdict {
    let step = |effect: &str, objects: &[&str]| {
        let objects = objects.iter().map(|object| (*object).to_owned()).collect();
        Arc::new(StepReport { effect: effect.to_owned(), objects })
    };
    let steps = vec![
        step("ana deletes Deployment/shop/web", &["Deployment/shop/web"]),
        step("the garbage collector deletes it", &["Pod/a", "Pod/b", "Pod/c", "Pod/d", "Pod/e", "Pod/f"]),
    ];
    let counterexample = Counterexample::new(steps, "endpoints >= 1 (only 0)".to_owned(), ViolatingFuture::default());
    let refuted = outcome == Finding::Refuted;
    Verdict {
        invariant: "web-serves".to_owned(),
        instance: "Service/shop/web".to_owned(),
        outcome,
        action,
        reason: (outcome == Finding::Undecided).then(|| "budget spent".to_owned()),
        message: match outcome {
            Finding::Proved | Finding::NotWorse => String::new(),
            Finding::Refuted => "only 0 ready endpoints would be left\n- ana deletes Deployment/shop/web".to_owned(),
            Finding::Undecided => "it could not be decided: budget spent".to_owned(),
        },
        counterexample: refuted.then(|| Arc::new(counterexample)),
        assumptions: if refuted { vec!["maxUnavailable 1".to_owned()] } else { Vec::new() },
        proved_against: Arc::new(BTreeMap::from([("Service/shop/web".to_owned(), "12".to_owned())])),
        nearest_allowed: if refuted { vec!["delete it with propagationPolicy Orphan".to_owned()] } else { Vec::new() },
        awaits_landing: false,
        requests: Vec::new(),
    }
}

fn decision(decision: Outcome, verdicts: Vec<Verdict>) -> Decision {
    Decision {
        decision,
        uid: String::new(),
        duration: Some(Duration { total_micros: 812, solver_micros: 301 }),
        solver: "5.3.2".to_owned(),
        proved: 7,
        not_worse: 0,
        verdicts,
        exempted: Vec::new(),
        taken_as_none: Vec::new(),
        unmodelled: Vec::new(),
        unmodelled_outcome: Outcome::Allowed,
        taken: std::collections::BTreeMap::new(),
        overran: BTreeSet::new(),
        cut_short: false,
        effort: Effort::default(),
    }
}

#[test]
fn a_denial_says_what_would_break_and_what_would_not() {
    let undecided = verdict(Finding::Undecided, Action::Deny);
    let decision = decision(Outcome::Denied, vec![undecided, verdict(Finding::Refuted, Action::Deny)]);
    let expected = "\
denied: web-serves would break for Service/shop/web: only 0 ready endpoints would be left
  - ana deletes Deployment/shop/web
  allowed instead: delete it with propagationPolicy Orphan
undecided: web-serves could not be decided for Service/shop/web: budget spent

denied: 1 instance would break, 1 undecided, 7 proved (z3 5.3.2, 812 µs)
";
    assert_eq!(text(&decision, About::Change, Paint::PLAIN, false), expected);
}

#[test]
fn all_of_it_is_told_when_asked_for() {
    let proved = verdict(Finding::Proved, Action::Deny);
    let decision = decision(Outcome::Warned, vec![proved, verdict(Finding::Refuted, Action::Warn)]);
    let expected = "\
warned: web-serves would break for Service/shop/web
  only 0 ready endpoints would be left
  how
    1. ana deletes Deployment/shop/web: Deployment/shop/web
    2. the garbage collector deletes it: Pod/a, Pod/b, Pod/c, Pod/d, Pod/e, 1 more
  broken endpoints >= 1 (only 0)
  assumed
    - maxUnavailable 1
  allowed instead
    - delete it with propagationPolicy Orphan
  judged against resourceVersions
    - Service/shop/web 12
proved: web-serves holds for Service/shop/web
  judged against resourceVersions
    - Service/shop/web 12

allowed with a warning: 1 instance would break, 7 proved (z3 5.3.2, 812 µs)
";
    assert_eq!(text(&decision, About::Change, Paint::PLAIN, true), expected);
}

#[test]
fn what_is_proved_is_only_counted() {
    let decision = decision(Outcome::Allowed, vec![verdict(Finding::Proved, Action::Deny)]);
    assert_eq!(text(&decision, About::Change, Paint::PLAIN, false), "allowed: 7 proved (z3 5.3.2, 812 µs)\n");
    assert_eq!(text(&decision, About::Present, Paint::PLAIN, false), "clean: 7 hold (z3 5.3.2, 812 µs)\n");
}

/// A verdict of another invariant on another instance, broken by the requests of a batch at these places.
fn other(invariant: &str, instance: &str, requests: &[usize]) -> Verdict {
    let of = verdict(Finding::Refuted, Action::Deny);
    Verdict { invariant: invariant.to_owned(), instance: instance.to_owned(), requests: requests.to_vec(), ..of }
}

#[test]
fn what_breaks_by_the_same_is_told_once() {
    let target = other("kept", "Deployment/shop/web", &[]);
    let many = (0..20).map(|n| other("serves", &format!("Service/shop/web-{n:02}"), &[]));
    let decision = decision(Outcome::Denied, many.chain([target]).collect());
    let expected = "\
denied: kept would break for Deployment/shop/web: only 0 ready endpoints would be left
  - ana deletes Deployment/shop/web
  allowed instead: delete it with propagationPolicy Orphan
  and 20 more: serves for Service/shop/web-00, Service/shop/web-01, Service/shop/web-02, Service/shop/web-03; …

denied: 21 instances would break, 7 proved (z3 5.3.2, 812 µs)
";
    assert_eq!(text(&decision, About::Change, Paint::PLAIN, false), expected);
}

#[test]
fn each_cause_in_a_batch_is_told_and_many_are_cut_short() {
    let verdicts = (0..8).flat_map(|n| [other("a", "A/x", &[n]), other("b", "B/y", &[n])]).collect();
    let decision = Decision { cut_short: true, ..decision(Outcome::Denied, verdicts) };
    let text = text(&decision, About::Change, Paint::PLAIN, false);
    assert_eq!(text.matches("denied: a would break for A/x").count(), CAUSES_MAX);
    assert_eq!(text.matches("  and 1 more: b for B/y\n").count(), CAUSES_MAX);
    assert!(text.contains("\nand 6 more, which --verbose lists\n"), "{text}");
    let unjudged = "\nand perhaps more: the change is denied, and what else it reaches was not judged\n";
    assert!(text.contains(unjudged), "{text}");
}

#[test]
fn an_audit_takes_a_line_for_what_is_the_same_of_many() {
    let many = (0..3).map(|n| other("serves", &format!("Service/shop/web-{n}"), &[]));
    let decision = decision(Outcome::Denied, many.chain([other("kept", "Claim/a/c", &[])]).collect());
    let text = text(&decision, About::Present, Paint::PLAIN, false);
    let lines: Vec<&str> =
        text.lines().filter(|line| line.starts_with("violated: ") || line.contains("more")).collect();
    let found = ["violated: kept is broken for Claim/a/c", "violated: serves is broken for Service/shop/web-0"];
    assert!(lines.iter().zip(found).all(|(line, found)| line.starts_with(found)), "{text}");
    assert!(text.contains("  and 2 more: serves for Service/shop/web-1, Service/shop/web-2\n"), "{text}");
    assert!(text.ends_with("\nviolated: 4 instances broken, 7 hold (z3 5.3.2, 812 µs)\n"), "{text}");
}

#[test]
fn what_is_not_worse_is_counted_apart_and_what_is_exempt_is_said() {
    let message = "it can break without the change too, and no worse with it: only 0 ready endpoints would be left";
    let not_worse = Verdict { message: message.to_owned(), ..verdict(Finding::NotWorse, Action::Deny) };
    let exempted = Exempted {
        invariant: "quorum-kept".to_owned(),
        instance: "StatefulSet/kv/etcd".to_owned(),
        exemption: "incident-4711".to_owned(),
        expires: "2026-12-01T00:00:00Z".to_owned(),
        reason: "the disk is lost".to_owned(),
    };
    let decision = decision(Outcome::Allowed, vec![not_worse]);
    let taken_as_none = vec!["CronJob".to_owned(), "Job".to_owned()];
    let decision = Decision { not_worse: 1, exempted: vec![exempted], taken_as_none, duration: None, ..decision };
    let expected = "\
exempted: quorum-kept for StatefulSet/kv/etcd
  Exemption incident-4711, until 2026-12-01T00:00:00Z: the disk is lost

taken as none: CronJob, Job; --unknown KIND if they were not read
allowed: 1 not worse, 1 exempted, 7 proved (z3 5.3.2)
";
    assert_eq!(text(&decision, About::Change, Paint::PLAIN, false), expected);
    let told = format!("not worse: web-serves for Service/shop/web\n  {message}\n");
    assert!(text(&decision, About::Change, Paint::PLAIN, true).starts_with(&told));
}
