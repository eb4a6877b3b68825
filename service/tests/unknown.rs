//! Nothing unknown reads as safe: what the state lacks, what no adapter explains, and what the API server would refuse.
#![expect(clippy::unwrap_used, reason = "what the test itself gets wrong may end it")]

mod run;

use run::{CLUSTER, INVARIANT, folder, suture, write};

#[test]
fn a_state_without_any_object_is_refused() {
    let folder = folder("empty-state");
    let empty = write(&folder, "empty.yaml", "apiVersion: v1\nkind: List\nitems: []\n");
    let header = "apiVersion: suture.dev/v1alpha1\nkind: SnapshotHeader\nunknown: [Pod]\n";
    let header = write(&folder, "header.yaml", header);
    let blank = write(&folder, "blank.yaml", "# nothing\n---\n");
    for state in [&empty, &header, &blank] {
        for command in [&["audit"][..], &["check", "--delete", "ns/shop"]] {
            let ran = suture(&[command, &["--state", state]].concat());
            assert_eq!(ran.code, 2, "{state}: {}", ran.out);
            assert!(ran.err.contains("the state holds no object"), "{}", ran.err);
        }
    }
}

#[test]
fn kinds_that_are_taken_as_none_are_named() {
    let folder = folder("taken-as-none");
    let state = write(&folder, "cluster.yaml", CLUSTER);
    let invariants = write(&folder, "invariants.yaml", INVARIANT);
    let flags = ["--state", &state, "--profile", "none", "--invariants", &invariants, "--no-timing"];
    let line = |text: &str| {
        let mut lines = text.lines().filter(|line| line.starts_with("taken as none: "));
        let line = lines.next().unwrap().to_owned();
        assert_eq!(lines.next(), None, "one line");
        assert!(line.ends_with("; --unknown KIND if they were not read"), "{line}");
        line
    };
    for command in [&["audit"][..], &["check", "--delete", "po/shop/web-1-a"]] {
        let ran = suture(&[command, &flags].concat());
        let named = line(&ran.out);
        assert!(named.contains("PodDisruptionBudget") && named.contains("DaemonSet"), "{named}");
        assert!(!named.contains("Service,") && !named.contains("ReplicaSet,"), "they are there: {named}");
        let unknown = suture(&[command, &flags, &["--unknown", "pdb"]].concat());
        assert!(!line(&unknown.out).contains("PodDisruptionBudget"), "{}", unknown.out);
        let json: serde_json::Value =
            serde_json::from_str(&suture(&[command, &flags, &["-o", "json"]].concat()).out).unwrap();
        assert!(json["takenAsNone"].as_array().unwrap().contains(&"PodDisruptionBudget".into()));
    }
}

#[test]
fn what_a_snapshot_read_is_not_taken_as_none() {
    let folder = folder("read");
    let header =
        "apiVersion: suture.dev/v1alpha1\nkind: SnapshotHeader\nread: [PodDisruptionBudget]\nunknown: []\n---\n";
    let state = write(&folder, "cluster.yaml", &(header.to_owned() + CLUSTER));
    let invariants = write(&folder, "invariants.yaml", INVARIANT);
    let ran = suture(&["audit", "--state", &state, "--profile", "none", "--invariants", &invariants]);
    let line = ran.out.lines().find(|line| line.starts_with("taken as none: ")).unwrap();
    assert!(line.contains("DaemonSet") && !line.contains("PodDisruptionBudget"), "{line}");
}

#[test]
fn what_is_broken_anyway_is_not_proved() {
    let folder = folder("not-worse");
    let state = write(&folder, "cluster.yaml", CLUSTER);
    let lost = "{apiVersion: v1, kind: Pod, metadata: {name: lost, namespace: shop, uid: l}, spec: {containers: [{name: c, image: i, envFrom: [{secretRef: {name: gone}}]}]}}\n";
    let lost = write(&folder, "lost.yaml", lost);
    let state = ["check", "--profile", "strict", "--state", &state, "--state", &lost];
    let flags = [&state[..], &["--label", "po/shop/lost=a=b", "--no-timing"]].concat();
    let ran = suture(&flags);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.lines().last().unwrap().starts_with("allowed: 1 not worse, "), "{}", ran.out);
    assert!(!ran.out.contains("references-resolve"), "only counted: {}", ran.out);
    let told = suture(&[&flags[..], &["--verbose"]].concat()).out;
    let expected =
        "not worse: references-resolve for Pod/shop/lost\n  it can break without the change too, and no worse with it";
    assert!(told.contains(expected), "{told}");
    assert!(!told.contains("proved: references-resolve holds for Pod/shop/lost"), "{told}");
    let json: serde_json::Value =
        serde_json::from_str(&suture(&[&flags[..], &["--verbose", "-o", "json"]].concat()).out).unwrap();
    assert_eq!((&json["notWorse"], &json["decision"]), (&1.into(), &"Allowed".into()));
    let verdicts = json["verdicts"].as_array().unwrap();
    assert!(verdicts.iter().any(|v| v["outcome"] == "NotWorse" && v["instance"] == "Pod/shop/lost"), "{json:#}");
}

#[test]
fn what_the_api_server_would_refuse_is_an_error() {
    let folder = folder("refused");
    let state = write(&folder, "cluster.yaml", CLUSTER);
    let refused = |flags: &[&str]| {
        let ran = suture(&[&["check", "--state", &state][..], flags].concat());
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{flags:?}: {}", ran.err);
        ran.err
    };
    let head = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\n";
    for (spec, expected) in [
        ("spec: {replicas: '3'}", "web.yaml:1: spec.replicas: expected an integer, found the string `3`"),
        ("spec: {replcas: 3}", "web.yaml:1: spec.replcas: unknown field `replcas`; did you mean `replicas`?"),
        ("spec: {replicas: -1}", "web.yaml:1: spec.replicas: -1 is negative"),
        ("spec: {replcas: 3, paused: maybe}", "web.yaml:1: \n  spec.paused: expected a Boolean"),
    ] {
        let path = write(&folder, "web.yaml", &format!("{head}{spec}\n"));
        let said = refused(&["-f", &path]);
        assert!(said.contains(expected), "{said}");
    }
    let patch = refused(&["-n", "shop", "--patch", r#"deploy/web={"spec":{"replicas":"0"}}"#]);
    assert!(patch.contains("--patch deploy/web: spec.replicas: expected an integer"), "{patch}");
}

/// A database's custom resource whose operator nobody describes, with its StatefulSet and pod.
const DATABASE: &str = r#"
{apiVersion: v1, kind: Namespace, metadata: {name: db, uid: ns}}
---
{apiVersion: example.org/v1, kind: PostgreSQL, metadata: {name: main, namespace: db, uid: pg}, spec: {members: 1}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: main, namespace: db, uid: s, ownerReferences: [{apiVersion: example.org/v1, kind: PostgreSQL, name: main, uid: pg, controller: true}]}
spec: {replicas: 1, selector: {matchLabels: {app: main}}, template: {metadata: {labels: {app: main}}, spec: {containers: [{name: pg, image: pg}]}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: db, uid: c}}
---
{apiVersion: v1, kind: Service, metadata: {name: main, namespace: db, uid: v, labels: {a: b}}, spec: {selector: {app: none}}}
"#;

#[test]
fn an_operator_that_is_not_modelled_is_an_assumption() {
    let folder = folder("unmodelled");
    let state = write(&folder, "database.yaml", DATABASE);
    let check = |flags: &[&str]| {
        let ran = suture(&[&["check", "--state", &state, "--no-timing"][..], flags].concat());
        (ran.code, ran.out + &ran.err)
    };
    let assumed = "assumed: PostgreSQL has no ResourceAdapter: what its operator does is not modelled\n";
    let custom = ["--patch", r#"postgresql/db/main={"spec":{"members":2}}"#];
    for (answer, code, summary) in
        [("warn", 0, "allowed with a warning: "), ("allow", 0, "allowed: "), ("deny", 1, "denied: ")]
    {
        let (found, text) = check(&[&custom[..], &["--unmodelled", answer]].concat());
        assert_eq!(found, code, "{text}");
        assert!(text.contains(assumed) && text.lines().last().unwrap().starts_with(summary), "{text}");
    }
    let (_, text) = check(&custom);
    assert!(text.contains("allowed with a warning: "), "it warns by default: {text}");
    let (_, text) = check(&["--label", "sts/db/main=a=b"]);
    assert!(text.contains(assumed), "what it controls is its own: {text}");
    let unchanged = write(&folder, "unchanged.yaml", &DATABASE.replace(", uid: pg}", "}"));
    for untouched in [&["--label", "cm/db/other=a=b"][..], &["-f", &unchanged]] {
        let (_, text) = check(untouched);
        assert!(!text.contains("assumed"), "{text}");
    }

    let (_, text) = check(&["--label", "sts/db/main=a=b", "--verbose", "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&json["decision"], &json["unmodelled"][0]), (&"Warned".into(), &"PostgreSQL".into()));
    let proofs: Vec<_> = json["verdicts"].as_array().unwrap().iter().filter(|v| v["outcome"] == "Proved").collect();
    let relies =
        |proof: &&serde_json::Value| proof["assumptions"].to_string().contains("PostgreSQL has no ResourceAdapter");
    assert!(!proofs.is_empty() && proofs.iter().all(relies), "{json:#}");

    let adapter = "apiVersion: suture.dev/v1alpha1\nkind: ResourceAdapter\nmetadata: {name: pg}\nspec: {group: example.org, kind: PostgreSQL, replicas: self.spec.members}\n";
    let adapter = write(&folder, "adapter.yaml", adapter);
    let (_, text) = check(&[&custom[..], &["--adapters", &adapter]].concat());
    assert!(!text.contains("assumed") && text.contains("\nallowed: "), "{text}");

    // an adapter may say what it leaves to the operator, or that it is not modelled all the same
    let says = |name: &str, more: &str| {
        let text = format!(
            "apiVersion: suture.dev/v1alpha1\nkind: ResourceAdapter\nmetadata: {{name: pg}}\nspec: {{group: example.org, kind: \
             PostgreSQL, replicas: self.spec.members, {more}}}\n"
        );
        write(&folder, name, &text)
    };
    let sentence = says("assumes.yaml", "assumes: [the leader is chosen well]");
    let asked = ["--label", "sts/db/main=a=b", "--verbose", "-o", "json", "--adapters", &sentence];
    let json: serde_json::Value = serde_json::from_str(&check(&asked).1).unwrap();
    let proofs: Vec<_> = json["verdicts"].as_array().unwrap().iter().filter(|v| v["outcome"] == "Proved").collect();
    let relies = |proof: &&serde_json::Value| {
        proof["assumptions"].as_array().unwrap().contains(&"PostgreSQL: the leader is chosen well".into())
    };
    assert!(!proofs.is_empty() && proofs.iter().all(relies) && json["decision"] == "Allowed", "{json:#}");
    let unmodelled = says("unmodelled.yaml", "unmodelled: true");
    let (_, text) = check(&[&custom[..], &["--adapters", &unmodelled]].concat());
    assert!(text.contains(assumed) && text.contains("allowed with a warning: "), "{text}");
}

#[test]
fn shipped_adapters_are_at_work_where_their_kind_is_met_and_nowhere_else() {
    let folder = folder("shipped");
    let cluster = |kind: &str| {
        DATABASE.replace("example.org/v1, kind: PostgreSQL", kind)
            + "---\n{apiVersion: v1, kind: Secret, metadata: {name: tls, namespace: db, uid: t}}\n"
    };
    let kind = "acid.zalan.do/v1, kind: postgresql";
    let met = cluster(kind).replace("spec: {members: 1}", "spec: {numberOfInstances: 1, tls: {secretName: tls}}");
    let (met, other) =
        (write(&folder, "met.yaml", &met), write(&folder, "other.yaml", &cluster("example.org/v1, kind: X")));
    let check = |flags: &[&str]| {
        let ran = suture(&[&["check", "--no-timing", "--profile", "baseline"][..], flags].concat());
        (ran.code, ran.out + &ran.err)
    };
    let (code, text) = check(&["--state", &met, "--delete", "secret/db/tls"]);
    assert!(code == 1 && text.contains("references-resolve") && text.contains("postgresql/db/main"), "{text}");
    let (code, text) = check(&["--state", &other, "--delete", "secret/db/tls"]);
    assert!(code == 0, "{text}");
    for shipped in ["Kafka", "postgresql", "Machine"] {
        assert!(!text.contains(shipped), "nobody said that there might be some: {text}");
    }
    // one of your own takes its place
    let own = "apiVersion: suture.dev/v1alpha1\nkind: ResourceAdapter\nmetadata: {name: pg}\nspec: {group: acid.zalan.do, kind: postgresql, replicas: self.spec.numberOfInstances}\n";
    let own = write(&folder, "own.yaml", own);
    let (code, text) = check(&["--state", &met, "--delete", "secret/db/tls", "--adapters", &own]);
    assert!(code == 0, "{text}");
}
