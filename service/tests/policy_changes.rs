//! `suture diff`, `suture audit --one-step` and `-o openreports` as a script sees them.
#![expect(clippy::unwrap_used, reason = "what the test itself gets wrong may end it")]

mod run;

use run::{CLUSTER, INVARIANT, Ran, folder, suture, write};
use serde_json::{Value, json};

/// Two ready endpoints, where [`INVARIANT`] asks for one.
const STRICTER: &str = "
apiVersion: suture.dev/v1alpha1
kind: Invariant
metadata: {name: web-serves}
spec: {template: service-keeps-endpoints, params: {floor: 2}}
";

#[test]
fn the_smallest_request_is_told_that_two_policies_answer_differently() {
    let folder = folder("diff");
    let state = write(&folder, "cluster.yaml", CLUSTER);
    let (old, new) = (write(&folder, "old.yaml", INVARIANT), write(&folder, "new.yaml", STRICTER));
    let diff = |old: &str, new: &str, more: &[&str]| {
        suture(&[&["diff", old, new, "--state", &state, "--profile", "none"], more].concat())
    };
    let Ran { code, out, err } = diff(&old, &new, &[]);
    assert_eq!((code, err.as_str()), (1, ""), "{out}");
    assert!(out.starts_with("newly denied: "), "{out}");
    assert!(out.contains("\n  the smallest: kubernetes-admin "), "{out}");
    assert!(out.contains("web-serves would break for Service/shop/web"), "{out}");
    let judged = out.lines().find(|line| line.starts_with("judged: all ")).unwrap();
    for part in ["deletions", "evictions", "scalings", "cordons", "selectors changed", "labels taken away"] {
        assert!(judged.contains(part), "{part}: {judged}");
    }
    assert!(out.contains("\nnot covered: creations, "), "{out}");

    let found: Value = serde_json::from_str(&diff(&old, &new, &["-o", "json"]).out).unwrap();
    let differences = found["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 1, "{found}");
    assert_eq!((&differences[0]["old"], &differences[0]["new"]), (&json!("Allowed"), &json!("Refused")));
    assert_eq!(differences[0]["invariants"], json!(["web-serves"]));
    assert_eq!(differences[0]["report"]["decision"], "Denied");
    // one pod may go by the old one, none by the new one: a scaling by one, and whatever takes one endpoint
    assert!(differences[0]["count"].as_u64().unwrap() >= 4, "{found}");

    let back: Value = serde_json::from_str(&diff(&new, &old, &["-o", "json"]).out).unwrap();
    assert_eq!(
        (&back["differences"][0]["old"], &back["differences"][0]["new"]),
        (&json!("Refused"), &json!("Allowed"))
    );
    assert_eq!(back["differences"][0]["count"], differences[0]["count"]);
    let same = diff(&old, &old, &[]);
    assert_eq!(same.code, 0, "{}", same.out);
    assert!(same.out.ends_with("the same: 0 requests are answered more strictly, 0 less\n"), "{}", same.out);
}

#[test]
fn of_many_pods_the_nearest_number_is_found_by_which_two_policies_differ() {
    let folder = folder("diff-number");
    let many = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 100}}";
    let at_least = |count: u64| {
        format!(
            "{{apiVersion: suture.dev/v1alpha1, kind: Invariant, metadata: {{name: many}}, spec: {{forEach: {{var: d, kind: \
             Deployment}}, require: [{{expression: '!d.liveIn(now) || d.at(now).spec.replicas >= {count}'}}]}}}}"
        )
    };
    let state = write(&folder, "state.yaml", many);
    let [old, new] = [20, 43].map(|count| write(&folder, &format!("{count}.yaml"), &at_least(count)));
    let Ran { out, .. } = suture(&["diff", &old, &new, "--state", &state, "--profile", "none", "-o", "json"]);
    let found: Value = serde_json::from_str(&out).unwrap();
    let smallest = found["differences"][0]["smallest"].as_str().unwrap();
    assert!(smallest.contains("scales Deployment/shop/web from 100 to 42"), "{found}");
}

#[test]
fn what_two_policies_would_have_denied_of_a_log_is_compared() {
    let folder = folder("diff-log");
    let state = write(&folder, "cluster.yaml", CLUSTER);
    let (old, new) = (write(&folder, "old.yaml", INVARIANT), write(&folder, "new.yaml", STRICTER));
    let event = json!({"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": "id",
        "stage": "ResponseComplete", "verb": "delete", "user": {"username": "ana"}, "responseStatus": {"code": 200},
        "objectRef": {"resource": "pods", "namespace": "shop", "name": "web-1-a"}});
    let log = write(&folder, "audit.log", &event.to_string());
    let flags = ["diff", &old, &new, "--state", &state, "--profile", "none", "--log", &log];
    let ran = suture(&flags);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.out.contains("newly denied: 1 times in the log: ana deletes Pod/shop/web-1-a"), "{}", ran.out);
    assert!(ran.out.contains("log: 1 writes judged by both"), "{}", ran.out);
}

#[test]
fn what_is_one_step_away_from_breaking_is_told() {
    let folder = folder("one-step");
    // both pods on one node: it takes them both when it fails
    let state = write(&folder, "cluster.yaml", &CLUSTER.replace("nodeName: n2", "nodeName: n1"));
    let invariants = write(&folder, "invariants.yaml", INVARIANT);
    let audit = |more: &[&str]| {
        let flags = ["audit", "--state", &state, "--profile", "none", "--invariants", &invariants];
        suture(&[&flags, more].concat())
    };
    let Ran { code, out, err } = audit(&["--one-step"]);
    assert_eq!((code, err.as_str()), (0, ""), "nothing is violated now: {out}");
    assert!(out.starts_with("one node away: web-serves would break for Service/shop/web"), "{out}");
    assert!(out.contains("\none request away: web-serves would break for Service/shop/web"), "{out}");
    assert!(out.contains("judged: all ") && out.contains("clean: "), "{out}");
    let found: Value = serde_json::from_str(&audit(&["--one-step", "-o", "json"]).out).unwrap();
    assert_eq!(found["oneStep"]["faults"][0]["fault"], "node", "{found}");
    assert_eq!(found["oneStep"]["requests"][0]["verdict"]["instance"], "Service/shop/web", "{found}");
    assert!(found["proved"].is_u64(), "the audit itself is told as well");
    let other = audit(&["--one-step", "-o", "sarif"]);
    assert_eq!(other.code, 2);
    assert!(other.err.contains("--one-step is told as text, json or yaml"), "{}", other.err);

    let apart = write(&folder, "apart.yaml", CLUSTER);
    let flags = ["audit", "--state", &apart, "--profile", "none", "--invariants", &invariants, "--one-step"];
    let ran = suture(&flags);
    assert!(!ran.out.contains("one node away"), "one of two nodes may fail: {}", ran.out);
    assert!(ran.out.contains("one request away"), "{}", ran.out);
}

#[test]
fn findings_are_objects_of_openreports() {
    let folder = folder("openreports");
    let state = write(&folder, "cluster.yaml", CLUSTER);
    let invariants = write(&folder, "invariants.yaml", INVARIANT);
    let flags = ["--state", &state, "--profile", "none", "--invariants", &invariants, "-o", "openreports"];
    let ran = suture(&[&["check", "--scale", "deploy/shop/web=0"], &flags[..]].concat());
    assert_eq!(ran.code, 1, "{}", ran.err);
    let (cluster, report) = ran.out.split_once("---\n").unwrap();
    let of_cluster: Value = serde_saphyr::from_str(cluster).unwrap();
    assert_eq!((&of_cluster["kind"], &of_cluster["results"]), (&json!("ClusterReport"), &json!([])));
    let report: Value = serde_saphyr::from_str(report).unwrap();
    assert_eq!((&report["apiVersion"], &report["kind"]), (&json!("openreports.io/v1alpha1"), &json!("Report")));
    assert_eq!(
        (&report["metadata"]["name"], &report["metadata"]["namespace"]),
        (&json!("suture-check"), &json!("shop"))
    );
    assert_eq!(report["summary"], json!({"pass": 0, "fail": 1, "warn": 0, "error": 0, "skip": 0}));
    let result = &report["results"][0];
    assert_eq!(
        (&result["policy"], &result["result"], &result["severity"]),
        (&json!("web-serves"), &json!("fail"), &json!("high"))
    );
    assert_eq!(
        result["resources"],
        json!([{"kind": "Service", "name": "web", "apiVersion": "v1", "namespace": "shop"}])
    );
    assert!(result["properties"]["request"].as_str().unwrap().contains("scales Deployment/shop/web"), "{report}");
    let clean = suture(&[&["audit"], &flags[..]].concat());
    assert_eq!(clean.code, 0, "{}", clean.err);
    assert!(!clean.out.contains("---"), "what holds is listed with --verbose only: {}", clean.out);
    let proved = suture(&[&["audit", "--verbose"], &flags[..]].concat());
    assert!(proved.out.contains("kind: ClusterReport"), "{}{}", proved.out, proved.err);
}
