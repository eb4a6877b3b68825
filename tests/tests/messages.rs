//! Every text of a verdict has a snapshot: the suites of `tests/messages` make the engine say each, and what it says is
//! kept in `snapshots`. `INSTA_UPDATE=always` writes what has changed on purpose.
#![expect(clippy::expect_used, clippy::panic, reason = "a test may stop where it fails")]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use suture_checker::decision::{Decision, Finding};
use suture_checker::engine::Undecided;
use suture_checker::solve::Reason;
use suture_encode::evictions::TooManyEvictions;
use suture_encode::outage::TooManyOutages;
use suture_model::snapshot::Snapshot;
use suture_model::value::Val;
use suture_service::clock::Clock;
use suture_service::grants::TooMuchSpent;
use suture_service::input::Source;
use suture_service::lint::{lint, without_instances};
use suture_service::output::decision::{About, text};
use suture_service::output::terminal::Paint;
use suture_service::policy::Documents;
use suture_service::serve::answer::{Answer, Unanswered};
use suture_service::serve::resources::admission::admit;
use suture_service::serve::review;
use suture_service::suite::documents::find;
use suture_service::suite::run::{Seen, run_watched};
use suture_specs::library::LIBRARY;
use suture_specs::spec::{CODES, OnUndecided, SpecError};

/// More requests of one step are only counted.
const REQUESTS_MAX: usize = 3;

/// A decision as it is printed, without what differs from run to run, and what its proofs rely on.
fn told(decision: &Decision) -> String {
    let printed = text(decision, About::Change, Paint::PLAIN, false);
    let mut told = printed.split(" (z3 ").next().unwrap_or_default().to_owned();
    // what is only counted as one more says something of its own all the same
    for verdict in decision.verdicts.iter().filter(|verdict| !verdict.outcome.is_passed()) {
        for line in verdict.message.lines().filter(|line| !printed.contains(line)) {
            write!(told, "\n{}: {line}", verdict.invariant).expect("text takes text");
        }
    }
    for verdict in decision.verdicts.iter().filter(|v| v.outcome == Finding::Proved && !v.assumptions.is_empty()) {
        write!(told, "\n{} holds for {}, if", verdict.invariant, verdict.instance).expect("text takes text");
        verdict.assumptions.iter().for_each(|a| write!(told, "\n- {a}").expect("text takes text"));
    }
    told
}

#[test]
fn what_the_engine_says_is_as_shown() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("messages");
    for suite in find(&[folder]).expect("suites") {
        let mut shown = String::new();
        let mut saw = |seen: &Seen<'_>| {
            let requests: Vec<String> = seen.change.requests.iter().map(|request| request.describe()).collect();
            let number = requests.len();
            let asked = if number > REQUESTS_MAX { format!("{number} requests") } else { requests.join(", then ") };
            write!(shown, "# {asked}\n\n{}\n\n", told(seen.decision)).expect("text takes text");
        };
        let report = run_watched(&suite, Some(&mut saw)).expect("it runs");
        insta::assert_snapshot!(suite.name.to_string(), shown);
        let failed: Vec<_> = report.cases.iter().filter_map(|c| Some((&c.name, c.failure.as_ref()?))).collect();
        assert!(failed.is_empty(), "{}: {failed:#?}", suite.name);
    }
}

/// An invariant with a clause that reads no future, and without an instance in an empty cluster.
const IDLE: &str = "\
kind: Invariant
metadata: {name: idle}
spec:
  forEach: {var: job, kind: CronJob}
  require:
  - expression: job.metadata.name != 'x'
";

#[test]
fn what_is_wrong_in_a_policy_is_told_with_its_place() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../service/tests/wrong");
    let mut sources: Vec<Source> = fs::read_dir(folder)
        .expect("policies")
        .map(|file| {
            let path = file.expect("a file").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            Source { name, text: fs::read_to_string(path).expect("a text") }
        })
        .collect();
    sources.push(Source { name: "idle.yaml".to_owned(), text: IDLE.to_owned() });
    sources.sort_by(|one, other| one.name.cmp(&other.name));
    let (mut shown, mut codes) = (String::new(), BTreeSet::new());
    for source in &sources {
        let mut linted = lint(std::slice::from_ref(source), Clock::parse("2030-01-01T00:00:00Z").expect("a time"));
        linted.found.extend(
            without_instances(&linted, &Snapshot::default()).into_iter().filter(|_| source.name == "idle.yaml"),
        );
        for error in &linted.found {
            assert!(error.line.is_some() && error.column.is_some(), "{error}");
            let help = error.help.as_ref().map_or_else(String::new, |help| format!(" ({help})"));
            writeln!(shown, "{} {error}{help}", error.code).expect("text takes text");
            codes.insert(error.code);
        }
    }
    assert_eq!(codes, CODES.iter().map(|code| code.code).collect::<BTreeSet<_>>());
    insta::assert_snapshot!("wrong_policies", shown);
}

/// What no suite can bring about: it takes a bug, a slow machine, or more than fits a suite.
#[test]
fn what_takes_a_bug_or_a_busy_machine_is_as_shown() {
    let other = |reason: &str| Reason::Other(reason.to_owned());
    let solver = [Reason::Rlimit, Reason::Deadline, Reason::QueueFull, other("the solver gave up: incomplete")];
    let reasons = solver.map(|reason| Undecided::Solver(reason.to_string())).into_iter();
    let reasons = reasons.chain([
        Undecided::Refused(TooManyOutages.to_string()),
        Undecided::Refused(TooManyEvictions.to_string()),
        Undecided::Overran,
        Undecided::Late,
        Undecided::AuditOverran,
        Undecided::ReplayMismatch("the concrete evaluator finds no violation".to_owned()),
    ]);
    let shown: Vec<String> = reasons.map(|reason| reason.to_string()).collect();
    insta::assert_snapshot!("bugs_and_budgets", shown.join("\n"));
}

#[test]
fn what_the_webhook_says_unjudged_is_as_shown() {
    let mut shown = String::new();
    for why in [Unanswered::Shed, Unanswered::Overrun, Unanswered::Panicked] {
        for declared in [OnUndecided::Deny, OnUndecided::Warn, OnUndecided::Allow] {
            let review = Answer::unjudged(why, declared).into_review("the uid", "admission.k8s.io/v1");
            let review = String::from_utf8(review).expect("JSON is text");
            write!(shown, "# {why:?}, {declared:?}\n\n{review}\n\n").expect("text takes text");
        }
    }
    let essential = Answer::unjudged(Unanswered::Overrun, OnUndecided::Deny).if_essential(true);
    let review = String::from_utf8(essential.into_review("the uid", "admission.k8s.io/v1")).expect("JSON is text");
    write!(shown, "# What a cluster needs to come up\n\n{review}\n\n").expect("text takes text");
    let unrecorded = Answer::unrecorded(&TooMuchSpent.to_string()).into_review("the uid", "admission.k8s.io/v1");
    let review = String::from_utf8(unrecorded).expect("JSON is text");
    write!(shown, "# What takes of a budget that cannot be recorded\n\n{review}\n\n").expect("text takes text");
    insta::assert_snapshot!("unjudged", shown);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a body is read at some time; nothing depends on it")]
fn what_the_webhook_cannot_read_is_as_shown() {
    let bodies = [
        "{\"kind\": ",
        r#"{"kind": "ConversionReview", "apiVersion": "admission.k8s.io/v1", "request": {"uid": "u"}}"#,
        r#"{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v2", "request": {"uid": "u"}}"#,
        r#"{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {}}"#,
    ];
    let now = Instant::now();
    let said = bodies.map(|body| match review::read(body.as_bytes(), now, now) {
        Ok(asked) => panic!("{asked:?}"),
        Err(unreadable) => format!("{}: {}", unreadable.http, unreadable.message),
    });
    insta::assert_snapshot!("unreadable", said.join("\n"));
}

#[test]
fn what_is_said_of_a_policy_that_is_refused_is_as_shown() {
    let ask = |operation: &str, resource: &str, object: &str| {
        let field = if operation == "DELETE" { "oldObject" } else { "object" };
        let review = format!(
            "{{operation: {operation}, resource: {{group: suture.dev, resource: {resource}}}, {field}: {object}}}"
        );
        let loaded = Source { name: "loaded.yaml".to_owned(), text: LOADED.to_owned() };
        let loaded = Documents::read(&[loaded]).expect("it is well formed");
        admit(&Val::from(&serde_saphyr::from_str::<serde_json::Value>(&review).expect("YAML")), &loaded)
    };
    let wrong = "{expression: svc.endpoint(now).size() > 0}, ".repeat(6);
    let broken = format!(
        "{{apiVersion: suture.dev/v1alpha1, kind: Invariant, metadata: {{name: broken}}, \
         spec: {{forEach: {{var: svc, kind: Service}}, require: [{wrong}]}}}}"
    );
    let template = "{metadata: {name: own}}";
    let said = [ask("CREATE", "invariants", &broken), ask("DELETE", "invarianttemplates", template)];
    insta::assert_snapshot!("refused_policy", said.map(|said| said.expect("it is refused")).join("\n\n"));
}

/// A template, and what names it.
const LOADED: &str = "
kind: InvariantTemplate
metadata: {name: own}
spec: {description: d, forEach: {var: svc, kind: Service}, require: [{expression: svc.liveIn(now)}]}
---
kind: Invariant
metadata: {name: user}
spec: {template: own}
";

/// A grant that is malformed in each way there is.
const BAD_GRANT: &str = "
kind: OperatorGrant
metadata: {name: bad}
spec:
  subjects: []
  budgets:
  - {verb: delete, kind: Pod, max: 1, window: 0s}
  - {verb: create, kind: Pod, max: 1, window: 1h}
  - {disrupt: Pod, percent: 101, window: 1h}
  - {disrupt: Node, percent: 10, window: 1h}
  - {verb: delete, percent: 10, window: 1h}
---
kind: Invariant
metadata: {name: within}
spec: {template: operator-in-scope, hold: After}
---
kind: NamespacedInvariant
metadata: {name: mine, namespace: a}
spec: {template: deletion-budget, action: Audit}
";

#[test]
fn what_is_wrong_with_grants_is_as_shown() {
    let source = Source { name: "bad.yaml".to_owned(), text: BAD_GRANT.to_owned() };
    let errors = Documents::read(&[source]).expect("it is well formed").compile().expect_err("it makes no sense");
    let help = |error: &SpecError| error.help.as_ref().map(|help| format!("\n  help: {help}")).unwrap_or_default();
    let shown: Vec<String> = errors.iter().map(|error| format!("{error}{}", help(error))).collect();
    insta::assert_snapshot!("bad_grants", shown.join("\n"));
}

/// The sources of the texts that a verdict is made of.
const SOURCES: [&str; 20] = [
    "model/src/deletion/edges.rs",
    "model/src/deletion/expected.rs",
    "model/src/futures.rs",
    "model/src/land.rs",
    "encode/src/eval.rs",
    "encode/src/outage.rs",
    "checker/src/answer.rs",
    "checker/src/blame.rs",
    "checker/src/explain.rs",
    "checker/src/instance.rs",
    "checker/src/judge.rs",
    "checker/src/prove.rs",
    "checker/src/suggest.rs",
    "service/src/grants.rs",
    "service/src/grants/budget.rs",
    "service/src/grants/scope.rs",
    "service/src/output/decision.rs",
    "service/src/serve/answer.rs",
    "service/src/serve/resources/admission.rs",
    "service/src/serve/review.rs",
];

/// Texts that are in a source and in no verdict that is no bug, and why.
const UNTOLD: [(&str, &str); 12] = [
    ("the request deletes it", "the step of the request says so"),
    ("new pods of {name} become ready", "a counterexample places them"),
    ("a degree is compared precisely", "why a coarse proof is not tried"),
    ("new pods must be placed precisely", "why a coarse proof does not count"),
    ("breaks the limit that {}", "a bug"),
    ("the solution does not decode", "a bug"),
    ("an expression has no value", "a bug: the evaluator says why"),
    ("the condition has no value", "the evaluator says why"),
    ("an argument has no value", "the evaluator says why"),
    ("a part of the list has no value", "the evaluator says why"),
    ("no reason given", "a bug: what is undecided has one"),
    ("the invariant tells nodes apart", "it is encoded again, node by node"),
];

#[test]
fn every_text_of_a_verdict_has_a_snapshot() {
    let shown = snapshots();
    let mut missing = Vec::new();
    for source in SOURCES {
        for text in literals(&read(&root().join(source))).into_iter().filter(|text| is_told(text)) {
            let told = || shown.iter().flat_map(|shown| shown.lines()).any(|line| says(line, &text));
            if !UNTOLD.iter().any(|(untold, _)| *untold == text) && !told() {
                missing.push(format!("{source}: {text}"));
            }
        }
    }
    assert!(missing.is_empty(), "no snapshot shows\n{}", missing.join("\n"));
}

/// Whether a literal is meant for people: at least three words.
fn is_told(text: &str) -> bool {
    let word = |word: &&str| word.chars().any(char::is_lowercase) && !word.starts_with('{');
    text.split(' ').filter(word).count() >= 3
}

/// Whether a line holds the fixed parts of a text, in order.
fn says(line: &str, text: &str) -> bool {
    let fixed = text.split('{').enumerate().map(|(at, part)| {
        let after = if at == 0 { part } else { part.split_once('}').map_or("", |(_, after)| after) };
        after.trim()
    });
    let mut rest = Some(line);
    for part in fixed {
        rest = rest.and_then(|rest| rest.split_once(part)).map(|(_, rest)| rest);
    }
    rest.is_some()
}

#[test]
fn every_text_of_a_template_has_a_snapshot() {
    let shown = snapshots();
    let mut missing = Vec::new();
    for (template, yaml) in LIBRARY {
        // the odd parts are inside quotes of CEL
        let messages = yaml.split("messageExpression:").skip(1).map(|m| m.split("- expression").next().unwrap_or(m));
        let texts = messages.flat_map(|message| message.split('\'').skip(1).step_by(2)).filter(|text| text.len() > 3);
        let told = |text: &&str| shown.iter().any(|shown| shown.contains(text.trim()));
        missing.extend(texts.filter(|text| !told(text)).map(|text| format!("{template}: {text}")));
    }
    assert!(missing.is_empty(), "no snapshot shows\n{}", missing.join("\n"));
}

/// What is kept, file by file: here, and where tests stand beside what prints.
fn snapshots() -> Vec<String> {
    let snapshots = fs::read_dir(root().join("tests/tests/snapshots")).expect("snapshots");
    let snapshots = snapshots.map(|entry| entry.expect("an entry").path());
    let beside = ["output/decision", "serve/answer"].map(|what| root().join(format!("service/src/{what}/tests.rs")));
    snapshots.chain(beside).map(|path| read(&path)).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The string literals of a source file above its tests, reasons of lints and texts of `expect` aside.
fn literals(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//") && !line.contains("reason = \""));
    let code = lines.collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    let mut rest = code.as_str();
    while let Some((before, after)) = rest.split_once('"') {
        if before.ends_with('\'') {
            rest = after;
            continue;
        }
        let mut text = String::new();
        let mut chars = after.char_indices();
        rest = "";
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    rest = after.get(at + 1..).unwrap_or_default();
                    break;
                }
                '\\' => match chars.next() {
                    // a line that goes on, without the indentation of the next
                    Some((_, '\n')) => {
                        while chars.clone().next().is_some_and(|(_, c)| c == ' ') && chars.next().is_some() {}
                    }
                    Some((_, 'n')) => text.push(' '),
                    escaped => text.extend(escaped.map(|(_, escaped)| escaped)),
                },
                c => text.push(c),
            }
        }
        found.push(text);
    }
    found
}
