//! Who writes policies: what is wrong with them and where, tests of them, and the values of expressions.
#![expect(clippy::unwrap_used, reason = "what the test itself gets wrong may end it")]

mod run;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use run::{CLUSTER, INVARIANT, SUITE, folder, suture, write};
use serde_json::Value;

/// Mistakes of many classes in one file.
const WRONG: &str = "\
apiVersion: suture.dev/v1alpha1
kind: InvariantTemplate
metadata: {name: own}
spec:
  description: d
  forEach: {var: p, kind: Pod}
  require:
  - expression: >-
      p.liveIn(now) and
      p.ready()
---
kind: Invariant
metadata: {name: of-own}
spec: {template: own}
---
kind: Exemption
metadata: {name: gone
---
kind: Exemption
metadata: {name: over}
spec: {invariant: of-owm, reason: r, expires: \"2020-01-01T00:00:00Z\"}
---
kind: Suite
metadata: {name: s}
spec:
  invariants:
  - {kind: Invariant, metadata: {name: pods-live}, spec: {forEach: {var: p, kind: Pod}, require: [{expression: p.liveIn(now)}]}}
  cases:
  - {name: a, steps: []}
  - name: a
    steps:
    - {delete: {kind: Pod, name: x}, expect: Denied, by: [pod-live]}
";

#[test]
fn lint_tells_every_mistake_at_once_where_it_stands_and_in_order() {
    let folder = folder("mistakes");
    let path = write(&folder, "wrong.yaml", WRONG);
    let ran = suture(&["lint", &path, "-o", "json"]);
    assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
    let remarks: Vec<Value> = serde_json::from_str(&ran.out).unwrap();
    let told: Vec<String> = remarks
        .iter()
        .map(|r| format!("{} {}:{} {}", r["rule"], r["line"], r["column"], r["message"]).replace('"', ""))
        .collect();
    assert_eq!(
        told,
        [
            "E0101 9:21 unexpected `and`",
            "E0001 17:11 unclosed bracket '{'",
            "E0304 21:8 it exempts from nothing: there is no invariant `of-owm`",
            "W0403 21:38 it has expired, and lifts nothing any more",
            "E0303 29:15 a case without steps asks nothing",
            "E0302 30:5 a case of this name is there already: `a`",
            "E0301 32:54 `by` names `pod-live`, which is no invariant of the suite",
        ]
    );
    assert_eq!(remarks[2]["help"], "did you mean `of-own`?");
    let text = suture(&["lint", &path]);
    assert!(text.err.contains("wrong.yaml:9:21") && text.err.contains("6 errors in the input"), "{}", text.err);
}

#[test]
fn tools_read_what_is_wrong() {
    let folder = folder("tools");
    let path = write(&folder, "wrong.yaml", WRONG);
    let github = suture(&["lint", &path, "-o", "github"]);
    let first = format!("::error file={path},line=9,col=21,title=E0101::unexpected `and` (write `&&`, not `and`)");
    assert_eq!(github.out.lines().next(), Some(first.as_str()));
    let printed = suture(&["lint", &path, "-o", "sarif"]).out;
    let log: Value = serde_json::from_str(&printed).unwrap();
    let read: serde_sarif::sarif::Sarif = serde_json::from_str(&printed).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), log);
    assert_eq!(log["version"], "2.1.0");
    let (run, rules) = (&log["runs"][0], &log["runs"][0]["tool"]["driver"]["rules"]);
    let rules: Vec<&Value> = rules.as_array().unwrap().iter().map(|rule| &rule["id"]).collect();
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 7);
    for result in results {
        assert!(rules.contains(&&result["ruleId"]), "{result}");
        assert!(matches!(result["level"].as_str(), Some("error" | "warning")), "{result}");
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], path.as_str());
        assert!(place["region"]["startLine"].as_u64() > Some(0) && place["region"]["startColumn"].as_u64() > Some(0));
    }
    let state = write(&folder, "cluster.yaml", CLUSTER);
    let invariants = write(&folder, "invariants.yaml", INVARIANT);
    let flags = ["--state", &state, "--profile", "none", "--invariants", &invariants];
    let check = [&["check"][..], &flags, &["--scale", "deploy/shop/web=0"]].concat();
    let denied = suture(&[&check[..], &["-o", "github"]].concat());
    assert_eq!(denied.code, 1);
    assert!(denied.out.starts_with("::error title=web-serves::web-serves would break for Service/shop/web: "));
    assert_eq!(denied.out.lines().count(), 1, "{}", denied.out);
    let log: Value = serde_json::from_str(&suture(&[&check[..], &["-o", "sarif"]].concat()).out).unwrap();
    let result = &log["runs"][0]["results"][0];
    assert_eq!(result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"], "Service/shop/web");
    assert_eq!(suture(&[&["audit"][..], &flags, &["-o", "github"]].concat()).out, "");
}

#[test]
fn a_code_has_a_page() {
    let page = suture(&["explain", "e0101"]);
    assert!(page.code == 0 && page.out.starts_with("E0101: an expression cannot be parsed\n\n"), "{}", page.out);
    assert!(suture(&["explain"]).out.lines().any(|line| line == "E0003  there is no such field"));
    let unknown = suture(&["explain", "E0111"]);
    assert!(unknown.code == 2 && unknown.err.contains("there is no code `E0111`"), "{}", unknown.err);
}

#[test]
fn lint_warns_about_what_can_hardly_be_meant() {
    let folder = folder("hardly");
    let idle = "\
kind: Invariant
metadata: {name: idle}
spec:
  forEach: {var: job, kind: CronJob}
  let: {left: job.liveIn(now)}
  require:
  - expression: left
  - expression: job.metadata.name != 'x'
  - expression: request.operation != 'DELETE'
";
    let path = write(&folder, "idle.yaml", idle);
    let ran = suture(&["lint", &path]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "1 warning: 1 document in 1 file\n"), "{}", ran.err);
    assert!(ran.err.contains("idle.yaml:8:5") && ran.err.contains("the clause never reads `now`"), "{}", ran.err);
    let state = write(&folder, "cluster.yaml", CLUSTER);
    let beside = suture(&["lint", &path, "--state", &state]);
    assert_eq!(beside.out, "2 warnings: 1 document in 1 file\n", "{}", beside.err);
    assert!(beside.err.contains("no object of the state is an instance of it"), "{}", beside.err);
    let shown = write(&folder, "shown.yaml", INVARIANT);
    assert!(suture(&["lint", &shown, "--state", &state]).out.starts_with("clean: "));
}

#[test]
fn cases_are_chosen_and_tell_their_lines_and_what_they_leave_out() {
    let folder = folder("cases");
    write(&folder, "invariants.yaml", INVARIANT);
    write(&folder, "cluster.yaml", CLUSTER);
    let path = write(&folder, "suite.yaml", SUITE);
    let ran = suture(&["test", &path]);
    let line = SUITE.lines().position(|line| line.contains("replicas: 0, expect: Allowed")).unwrap() + 1;
    assert!(ran.code == 1 && ran.out.contains(&format!("suite.yaml:{line}\n")), "{line}: {}", ran.out);
    let github = suture(&["test", &path, "-o", "github"]);
    assert!(github.out.starts_with(&format!("::error file={path},line={line},title=")), "{}", github.out);
    assert!(suture(&["test", &path, "--run", "no such case"]).err.contains("no case matches"));
    assert!(suture(&["test", &path, "--run", "("]).err.contains("--run: "));
    let covered = suture(&["test", &path, "--run", "co\": one pod", "--coverage"]);
    assert!(covered.code == 0 && covered.out.ends_with("1 passed, 0 failed\n"), "{}", covered.out);
    assert!(covered.out.starts_with("0 of 1 clauses were never false\n"), "{}", covered.out);
}

#[test]
fn an_expression_has_a_value_and_parts_with_theirs() {
    let folder = folder("eval");
    let state = write(&folder, "cluster.yaml", CLUSTER);
    let eval = |expression: &str, on: &[&str]| suture(&[&["eval", expression, "--state", &state], on].concat());
    let on = ["--on", "svc/shop/web"];
    let ran = eval("self.endpoints(now).size() >= 2 && self.metadata.name == 'web'", &on);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.starts_with("true\n"), "{}", ran.out);
    assert!(ran.out.contains("  self.endpoints(now).size() = 2\n"), "{}", ran.out);
    assert!(ran.out.contains("  self.metadata.name = web\n"), "{}", ran.out);
    assert_eq!(eval("now.pods.filter(p, p.ready()).size()", &[]).out.lines().next(), Some("2"));
    assert!(eval("self.endpoint(now)", &on).err.contains("there is no method `endpoint`"));
    assert!(eval("1 / 0", &[]).code == 2);
    assert!(eval("self", &["--on", "svc/shop/wbe"]).err.contains("does not exist in the state"));
}

#[test]
fn what_can_never_be_decided_is_an_error_where_it_stands() {
    let folder = folder("never");
    let text = "\
kind: Invariant
metadata: {name: never}
spec:
  forEach: {var: sts, kind: StatefulSet}
  let:
    ready: before.podsOwnedBy(sts).filter(p, p.existsIn(now) && p.at(now).ready())
    zones: ready.map(p, p.metadata.name)
  require:
  - expression: zones.join(',') != ''
    messageExpression: zones.join(',')
  - expression: ready[0].ready()
  - expression: zones.distinct().size() >= 2 && [zones].flatten().size() > 1
";
    let lint = |name: &str, text: &str| {
        let ran = suture(&["lint", &write(&folder, name, text), "-o", "json"]);
        let remarks: Vec<Value> = serde_json::from_str(&ran.out).unwrap();
        let told = |r: &Value| format!("{} {}:{} {}", r["rule"], r["line"], r["column"], r["message"]);
        (ran.code, remarks.iter().map(told).collect::<Vec<String>>())
    };
    let of = |place: &str, what: &str| format!("\"E0108\" {place} \"{what} can never be decided\"");
    let open = |place: &str, what: &str| of(place, &format!("{what} of a list that depends on the future"));
    assert_eq!(lint("never.yaml", text), (2, vec![open("9:17", "`join`"), open("11:17", "an item")]));
    let text = "\
kind: Invariant
metadata: {name: never}
spec:
  forEach: {var: c, kind: ConfigMap}
  require:
  - expression: \"'mode' in c.at(now).data && c.at(now).data['mode'] != ''\"
  - expression: \"!now.secrets.exists(s, s.?data.?token.orValue('') == 'x')\"
  - expression: \"has(c.data.mode) && now.pods.all(p, p.status.phase != '' && p.?status.?podIP.orValue('') == '')\"
";
    let kept = |what: &str| format!("{what} not kept: what reads it");
    let values = kept("values of Secrets and ConfigMaps are");
    let address = kept("`status.podIP` of a Pod is");
    assert_eq!(lint("values.yaml", text), (2, vec![of("6:46", &values), of("7:41", &values), of("8:78", &address)]));
}

#[test]
fn every_command_with_findings_prints_junit() {
    let folder = folder("junit");
    let wrong = suture(&["lint", &write(&folder, "wrong.yaml", WRONG), "-o", "junit"]);
    assert!(wrong.code == 2 && wrong.out.contains("tests=\"7\" failures=\"6\""), "{}", wrong.out);
    assert!(wrong.out.contains("<system-out>it has expired, and lifts nothing any more</system-out>"), "{}", wrong.out);
    let state = write(&folder, "cluster.yaml", CLUSTER);
    let invariants = write(&folder, "invariants.yaml", INVARIANT);
    let flags = ["--state", &state, "--profile", "none", "--invariants", &invariants, "-o", "junit"];
    let denied = suture(&[&["check"][..], &flags, &["--scale", "deploy/shop/web=0"]].concat());
    let failed =
        "<testcase classname=\"web-serves\" name=\"Service/shop/web\">\n      <failure message=\"web-serves would";
    assert!(denied.code == 1 && denied.out.contains(failed), "{}", denied.out);
    let clean = suture(&[&["audit"][..], &flags].concat());
    assert!(clean.code == 0 && clean.out.contains("tests=\"1\" failures=\"0\""), "{}", clean.out);
}

#[test]
fn files_are_written_in_one_style_and_say_the_same() {
    let folder = folder("fmt");
    let untidy = "# why\na:   1   # here\nb: { c : [1,2], d: 'x' }\n---\ne: |\n    two\n    lines\n";
    let tidy = "# why\na: 1 # here\nb: {c: [1, 2], d: \"x\"}\n---\ne: |\n  two\n  lines\n";
    let path = write(&folder, "a.yaml", untidy);
    let broken = write(&folder, "b.yaml", "a: [1\n");
    let line = format!("{path}\n");
    let check = suture(&["fmt", "--check", &path]);
    assert_eq!((check.code, check.out.as_str()), (1, line.as_str()), "{}", check.err);
    assert_eq!(fs::read_to_string(&path).unwrap(), untidy);
    let ran = suture(&["fmt", folder.to_str().unwrap()]);
    assert_eq!((ran.code, ran.out.as_str()), (2, line.as_str()));
    assert!(ran.err.contains("b.yaml:1:4: "), "{}", ran.err);
    assert_eq!(fs::read_to_string(&path).unwrap(), tidy);
    assert_eq!(fs::read_to_string(&broken).unwrap(), "a: [1\n");
    let again = suture(&["fmt", "--check", &path]);
    assert_eq!((again.code, again.out.as_str()), (0, ""), "{}", again.err);
    let shipped = suture(&["fmt", "--check", "specs/library"]);
    assert_eq!((shipped.code, shipped.out.as_str()), (0, ""), "{}", shipped.err);
}

#[test]
fn every_command_has_a_page() {
    let folder = folder("pages");
    let ran = suture(&["manpages", "--to", folder.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let page = fs::read_to_string(folder.join("suture-check.1")).unwrap();
    assert!(page.contains("\\-\\-propagation\\-policy"), "{page}");
    assert!(suture(&["manpages"]).out.contains("suture\\-audit(1)"));
}

#[test]
fn suites_run_again_when_a_file_that_they_name_changes() {
    let folder = folder("watch");
    let invariants = folder.join("invariants");
    fs::create_dir(&invariants).unwrap();
    write(&folder, "cluster.yaml", CLUSTER);
    write(&invariants, "own.yaml", INVARIANT);
    let suite = SUITE.replace("invariants.yaml", "invariants/own.yaml");
    let path = write(&folder, "suite.yaml", &suite);
    let mut child = Command::new(env!("CARGO_BIN_EXE_suture"));
    let mut child =
        child.args(["test", "--watch", &path]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (told, tells) = channel();
    let out = BufReader::new(child.stdout.take().unwrap());
    let reader = thread::spawn(move || {
        let closing = |line: &String| line.contains(" passed, ");
        out.lines().map_while(Result::ok).filter(closing).for_each(|line| _ = told.send(line));
    });
    let next = || tells.recv_timeout(Duration::from_secs(120)).unwrap();
    assert_eq!(next(), "1 passed, 1 failed");
    write(&invariants, "own.yaml", &INVARIANT.replace("service-keeps-endpoints", "no-such-template"));
    assert_eq!(next(), "0 passed, 2 failed");
    write(&folder, "suite.yaml", &suite.replace("replicas: 0, expect: Allowed", "replicas: 0, expect: Denied"));
    write(&invariants, "own.yaml", INVARIANT);
    while next() != "2 passed, 0 failed" {}
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap();
}

/// Each file of the folder says in its first line what is wrong in it: lines with the codes of their errors.
#[test]
fn lint_tells_every_mistake_of_wrong_policies() {
    let files = fs::read_dir(format!("{}/service/tests/wrong", run::ROOT)).unwrap();
    let mut count = 0;
    for file in files.map(|file| file.unwrap().path()) {
        count += 1;
        let text = fs::read_to_string(&file).unwrap();
        let expected = text.lines().next().unwrap().trim_start_matches("# ");
        let ran = suture(&["lint", file.to_str().unwrap(), "-o", "json"]);
        let remarks: Vec<Value> = serde_json::from_str(&ran.out).unwrap();
        let told: Vec<String> =
            remarks.iter().map(|r| format!("{} {}", r["line"], r["rule"]).replace('"', "")).collect();
        assert_eq!(told.join(", "), expected, "{}: {}", file.display(), ran.out);
        assert!(remarks.iter().all(|remark| remark["column"].as_u64() > Some(0)), "{}", ran.out);
    }
    assert_eq!(count, 20);
}
