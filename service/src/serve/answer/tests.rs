//! What the API server is told about each kind of decision.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use suture_checker::decision::Duration;
use suture_specs::spec::Action;

use super::*;
use crate::input::Source;
use crate::policy::Documents;

fn policy(on_undecided: &str) -> Policy {
    let text = format!(
        "apiVersion: suture.dev/v1alpha1\nkind: Invariant\nmetadata: {{name: web-serves}}\n\
         spec: {{template: service-keeps-endpoints, onUndecided: {on_undecided}}}\n"
    );
    let documents = Documents::read(&[Source { name: "test".to_owned(), text }]).unwrap();
    documents.compile().unwrap()
}

fn verdict(outcome: Finding, action: Action, instance: &str) -> Verdict {
    let message = match outcome {
        Finding::Proved | Finding::NotWorse => "",
        Finding::Refuted => "only 0 ready endpoints would be left\n- ana deletes Deployment/shop/web",
        Finding::Undecided => "it could not be decided: the solver's budget is spent",
    };
    Verdict {
        invariant: "web-serves".to_owned(),
        instance: instance.to_owned(),
        outcome,
        action,
        reason: (outcome == Finding::Undecided).then(|| "the solver's budget is spent".to_owned()),
        message: message.to_owned(),
        counterexample: None,
        assumptions: Vec::new(),
        proved_against: std::sync::Arc::default(),
        nearest_allowed: if outcome == Finding::Refuted { vec!["scale it to 1".to_owned()] } else { Vec::new() },
        awaits_landing: false,
        requests: Vec::new(),
    }
}

fn decided(outcome: Outcome, verdicts: Vec<Verdict>) -> Decision {
    Decision {
        decision: outcome,
        uid: "u".to_owned(),
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

fn one(outcome: Finding, action: Action, on_undecided: &str) -> Answer {
    let of = match (outcome, action) {
        (Finding::Undecided, _) => Outcome::Undecided,
        (_, Action::Deny) => Outcome::Denied,
        (_, Action::Warn) => Outcome::Warned,
        (_, Action::Audit) => Outcome::Allowed,
    };
    Answer::from_decision(&decided(of, vec![verdict(outcome, action, "Service/shop/web")]), &policy(on_undecided))
}

fn json_of(answer: Answer) -> Value {
    serde_json::from_slice(&answer.into_review("u-1", "admission.k8s.io/v1")).unwrap()
}

#[test]
fn a_denial_says_what_breaks_how_and_what_would_be_allowed() {
    let review = json_of(one(Finding::Refuted, Action::Deny, "Deny"));
    let expected = json!({
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "response": {
            "uid": "u-1",
            "allowed": false,
            "status": {
                "status": "Failure",
                "message": "web-serves would break for Service/shop/web: only 0 ready endpoints would be left\n\
                            - ana deletes Deployment/shop/web\nallowed instead: scale it to 1",
                "reason": "Forbidden",
                "code": 403,
            },
            "auditAnnotations": {
                "decision": "denied",
                "invariant": "web-serves Service/shop/web",
                "micros": "812",
                "proved": "7",
                "solver-micros": "301",
            },
        },
    });
    assert_eq!(review, expected);
}

#[test]
fn an_allowance_says_nothing_but_that() {
    let answer = Answer::from_decision(&decided(Outcome::Allowed, Vec::new()), &policy("Deny"));
    let review = json_of(answer);
    let annotations = json!({"decision": "allowed", "micros": "812", "proved": "7", "solver-micros": "301"});
    assert_eq!(review["response"], json!({"uid": "u-1", "allowed": true, "auditAnnotations": annotations}));
}

#[test]
fn each_finding_has_the_consequence_that_its_invariant_declares() {
    let told = |answer: Answer| (answer.allowed, answer.label, answer.warnings.len());
    assert_eq!(told(one(Finding::Refuted, Action::Warn, "Deny")), (true, Label::Warned, 3));
    assert_eq!(told(one(Finding::Refuted, Action::Audit, "Deny")), (true, Label::Allowed, 0));
    assert_eq!(told(one(Finding::Undecided, Action::Deny, "Deny")), (false, Label::Undecided, 0));
    assert_eq!(told(one(Finding::Undecided, Action::Deny, "Warn")), (true, Label::Undecided, 1));
    assert_eq!(told(one(Finding::Undecided, Action::Deny, "Allow")), (true, Label::Undecided, 0));
    assert_eq!(told(one(Finding::Undecided, Action::Warn, "Deny")), (true, Label::Undecided, 1));
    assert_eq!(told(one(Finding::Undecided, Action::Audit, "Deny")), (true, Label::Undecided, 0));
}

#[test]
fn what_is_audited_is_in_the_audit_log() {
    let answer = one(Finding::Refuted, Action::Audit, "Deny");
    assert_eq!(answer.annotations["audited"], "web-serves Service/shop/web");
}

#[test]
fn an_invariant_that_is_not_loaded_any_more_still_refuses() {
    let mut unknown = verdict(Finding::Undecided, Action::Deny, "Service/shop/web");
    unknown.invariant = "gone".to_owned();
    let answer = Answer::from_decision(&decided(Outcome::Undecided, vec![unknown]), &policy("Allow"));
    assert!(!answer.allowed);
    assert_eq!(answer.message, "gone could not be decided for Service/shop/web: the solver's budget is spent");
    assert_eq!(answer.undecided, BTreeSet::from(["budget"]));
}

#[test]
fn many_denials_fit_ten_lines() {
    let instances = (0..30).map(|n| verdict(Finding::Refuted, Action::Deny, &format!("Service/shop/web-{n}")));
    let mut verdicts: Vec<Verdict> = instances.collect();
    verdicts[0].message = (0..20).map(|n| format!("- line {n}\n")).collect();
    let answer = Answer::from_decision(&decided(Outcome::Denied, verdicts), &policy("Deny"));
    let lines: Vec<&str> = answer.message.lines().collect();
    assert_eq!(lines.len(), MESSAGE_LINES_MAX);
    assert_eq!(lines[0], "web-serves would break for Service/shop/web-0: - line 0");
    assert_eq!(lines[8], "allowed instead: scale it to 1");
    assert!(lines[9].starts_with("and 29 more: web-serves for Service/shop/web-1, "), "{}", lines[9]);
}

#[test]
fn a_few_denials_are_all_named() {
    let mut verdicts = ["a", "b", "c"].map(|name| verdict(Finding::Refuted, Action::Deny, name)).to_vec();
    verdicts.push(verdict(Finding::Undecided, Action::Deny, "d"));
    let answer = Answer::from_decision(&decided(Outcome::Denied, verdicts), &policy("Deny"));
    let last: Vec<&str> = answer.message.lines().skip(3).collect();
    let undecided = "also web-serves could not be decided for d: the solver's budget is spent";
    assert_eq!(last, ["and 2 more: web-serves for b, c", undecided]);
}

#[test]
fn texts_are_cut_where_the_api_server_would_drop_them() {
    let long = "ä".repeat(5_000);
    let mut answer = Answer::refused(Label::Denied, 403, long.clone()).annotated("invariant", &long);
    answer.warnings = vec![format!("{long}\u{7}"); 40];
    answer.warnings.insert(0, "two\nlines".to_owned());
    let review = json_of(answer);
    let chars = |value: &Value| value.as_str().unwrap().chars().count();
    let warnings = review["response"]["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), WARNINGS_MAX);
    assert!(warnings.iter().all(|warning| chars(warning) <= WARNING_MAX_CHARS));
    assert!(warnings.iter().all(|warning| !warning.as_str().unwrap().contains(char::is_control)));
    assert_eq!(warnings[0], "two lines");
    assert_eq!(warnings[WARNINGS_MAX - 1], "and 26 more warnings of suture");
    assert_eq!(chars(&review["response"]["status"]["message"]), MESSAGE_MAX_CHARS);
    assert_eq!(chars(&review["response"]["auditAnnotations"]["invariant"]), ANNOTATION_MAX_CHARS);
}

#[test]
fn what_an_object_says_moves_no_cursor() {
    let hostile = "web\u{1b}[2K\ris \u{202e}fine\nallowed";
    let mut answer = Answer::refused(Label::Denied, 403, hostile).annotated("invariant", hostile);
    answer.warnings = vec![hostile.to_owned()];
    let review = &json_of(answer)["response"];
    let escaped = "web\\u{1b}[2K\\ris \\u{202e}fine";
    assert_eq!(review["status"]["message"], format!("{escaped}\nallowed"));
    assert_eq!(review["auditAnnotations"]["invariant"], format!("{escaped}\nallowed"));
    assert_eq!(review["warnings"][0], format!("{escaped} allowed"));
}

#[test]
fn what_nobody_judged_is_answered_as_declared() {
    for (why, code, reason) in [
        (Unanswered::Shed, 429, "TooManyRequests"),
        (Unanswered::Overrun, 504, "Timeout"),
        (Unanswered::Panicked, 500, "InternalError"),
    ] {
        let refused = json_of(Answer::unjudged(why, OnUndecided::Deny));
        assert_eq!(refused["response"]["allowed"], false);
        assert_eq!(refused["response"]["status"]["code"], code);
        assert_eq!(refused["response"]["status"]["reason"], reason);
        let retry = &refused["response"]["status"]["details"];
        assert_eq!(*retry, if code == 429 { json!({"retryAfterSeconds": 1}) } else { Value::Null });
        let warned = json_of(Answer::unjudged(why, OnUndecided::Warn));
        assert_eq!(warned["response"]["allowed"], true);
        assert!(warned["response"]["warnings"][0].as_str().unwrap().contains("did not judge"));
        let allowed = json_of(Answer::unjudged(why, OnUndecided::Allow));
        assert_eq!(allowed["response"]["allowed"], true);
        assert_eq!(allowed["response"]["warnings"], Value::Null);
        assert_eq!(allowed["response"]["auditAnnotations"]["reason"], why.to_string());
    }
}

#[test]
fn reasons_of_the_checker_have_their_labels() {
    let labelled = |text: &str| {
        let verdict = Verdict { reason: Some(text.to_owned()), ..verdict(Finding::Undecided, Action::Deny, "x") };
        reason(&verdict)
    };
    use suture_checker::engine::Undecided;
    use suture_checker::solve::Reason;
    assert_eq!(labelled(&Undecided::ReplayMismatch("x".to_owned()).to_string()), "distrust");
    assert_eq!(labelled(&Undecided::Fails("x".to_owned()).to_string()), "no-value");
    for spent in [Reason::Rlimit, Reason::Deadline, Reason::QueueFull] {
        assert_eq!(labelled(&Undecided::Solver(spent.to_string()).to_string()), "budget");
    }
    assert_eq!(labelled("objects of kind `Pod` were not read"), "not-read");
    assert_eq!(labelled("a degree is compared precisely"), "unsupported");
}
