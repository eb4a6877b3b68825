//! The `suture` command as a script sees it: exit codes, what is printed where, and that the order of input does not matter.
#![expect(clippy::unwrap_used, reason = "what the test itself gets wrong may end it")]

mod run;

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use run::{CLUSTER, DEMO, INVARIANT, ROOT, Ran, SUITE, folder, suture, write};
use suture_specs::library::LIBRARY;

#[test]
fn the_demo_is_denied() {
    let invariants = format!("{DEMO}/invariants.yaml");
    let (state, adapters) = (format!("{DEMO}/cluster"), format!("{DEMO}/adapters.yaml"));
    let review = format!("{DEMO}/delete-claim.json");
    let flags = [
        "check",
        "--state",
        &state,
        "--profile",
        "none",
        "--invariants",
        &invariants,
        "--adapters",
        &adapters,
        "--review",
        &review,
    ];
    let Ran { code, out, err } = suture(&flags);
    assert_eq!(code, 1, "{out}{err}");
    let first =
        "denied: volumes-in-use-are-kept would break for PersistentVolumeClaim/zk/data-zookeeper-cluster-0: it is";
    assert!(out.starts_with(first), "{out}");
    assert!(out.contains("Pod/zk/zookeeper-cluster-0"), "{out}");
    assert!(out.lines().last().unwrap().starts_with("denied: 1 instance would break"), "{out}");
    assert_eq!(err, "");
    assert!(!out.contains('\u{1b}'), "no colours away from a terminal");

    let json = suture(&[&flags[..], &["-o", "json"]].concat());
    let report: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(report["decision"], "Denied");
    assert_eq!(report["uid"], "7b0c2d7e-52a4-4a3e-9c0f-3f1f0b6a9d11");
    assert!(report["duration"]["totalMicros"].is_u64() && report["duration"]["solverMicros"].is_u64());
    let verdict = &report["verdicts"][0];
    assert_eq!(verdict["invariant"], "volumes-in-use-are-kept");
    assert_eq!(verdict["instance"], "PersistentVolumeClaim/zk/data-zookeeper-cluster-0");
    assert_eq!((&verdict["outcome"], &verdict["action"]), (&"Refuted".into(), &"Deny".into()));
    assert_eq!(verdict["counterexample"]["replayed"], true);
    assert!(verdict["counterexample"]["steps"][0]["objects"].is_array());
    for list in ["assumptions", "nearestAllowed"] {
        assert!(verdict[list].is_array(), "{list}");
    }
    assert_eq!(verdict["provedAgainst"]["PersistentVolumeClaim/zk/data-zookeeper-cluster-0"], "10404");
    assert_eq!(suture(&[&flags[..], &["-o", "yaml"]].concat()).out.lines().next(), Some("decision: Denied"));

    let colored = suture(&[&flags[..], &["--color", "always"]].concat());
    assert!(colored.out.starts_with("\u{1b}[1;31mdenied:\u{1b}[0m"), "{}", colored.out);
}

#[test]
fn a_change_is_described_by_flags() {
    let folder = folder("flags");
    let state = write(&folder, "cluster.yaml", CLUSTER);
    let invariants = write(&folder, "invariants.yaml", INVARIANT);
    let decide = |change: &[&str]| {
        let ran =
            suture(&[&["check", "--state", &state, "--profile", "none", "--invariants", &invariants], change].concat());
        (ran.code, ran.out + &ran.err)
    };
    let expect = |code: i32, change: &[&str]| {
        let (found, text) = decide(change);
        assert_eq!(found, code, "{change:?}: {text}");
        text
    };
    expect(1, &["--scale", "deploy/shop/web=0"]);
    expect(0, &["--scale", "Deployment/shop/web=1"]);
    expect(1, &["--delete", "deployments/shop/web"]);
    expect(0, &["--delete", "deployments.apps/shop/web", "--propagation-policy", "Orphan"]);
    expect(0, &["--delete", "po/shop/web-1-a"]);
    let both = expect(1, &["--delete", "po/shop/web-1-a", "--delete", "po/shop/web-1-b", "--as", "ana"]);
    assert!(both.contains("ana deletes"), "judged as one batch, by whom --as names: {both}");

    let typo = expect(2, &["--delete", "po/shop/web-1-c"]);
    assert!(typo.contains("`Pod/shop/web-1-c` does not exist in the state; did you mean `web-1-a`?"), "{typo}");
    let unknown = expect(2, &["--delete", "deploymet/shop/web"]);
    assert!(
        unknown.contains("unknown kind `deploymet`") && unknown.contains("did you mean `deployment`?"),
        "{unknown}"
    );
    let form = expect(2, &["--scale", "deploy/shop/web"]);
    assert!(form.contains("is not KIND/NAMESPACE/NAME=REPLICAS"), "{form}");
    assert!(expect(2, &["--delete", "deploy/web"]).contains("write Deployment/NAMESPACE/web"));
    expect(2, &["--delete", "po/shop/web-1-a", "--scale", "deploy/shop/web=1"]);
    expect(2, &["--scale", "deploy/shop/web=1", "--time", "noon"]);
    expect(2, &[]);
}

#[test]
fn manifests_are_applied_over_what_is_there() {
    let folder = folder("apply");
    let state = write(&folder, "cluster.yaml", CLUSTER);
    let invariants = write(&folder, "invariants.yaml", INVARIANT);
    let expect = |code: i32, name: &str, manifest: &str| {
        let path = write(&folder, name, manifest);
        let ran =
            suture(&["check", "--state", &state, "--profile", "none", "--invariants", &invariants, "--apply", &path]);
        assert_eq!(ran.code, code, "{name}: {}{}", ran.out, ran.err);
        ran.out + &ran.err
    };
    let deployment = |replicas: &str, image: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, namespace: shop}}\nspec:\n{replicas}\
             \x20 selector: {{matchLabels: {{app: web}}}}\n\
             \x20 template: {{metadata: {{labels: {{app: web}}}}, spec: {{containers: [{{name: web, image: '{image}'}}]}}}}\n"
        )
    };
    expect(0, "same.yaml", &deployment("  replicas: 2\n", "web:1"));
    expect(1, "none.yaml", &deployment("  replicas: 0\n", "web:1"));
    let left_out =
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec: {paused: true}\n";
    expect(0, "left-out.yaml", left_out);
    let selector =
        "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec: {selector: {app: wbe}}\n";
    expect(1, "selector.yaml", selector);
    let new = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new, namespace: shop}\n";
    expect(0, "new.yaml", new);
    let twice = expect(2, "twice.yaml", &format!("{new}---\n{new}"));
    assert!(twice.contains("twice.yaml:5: `ConfigMap/shop/new` is applied twice, also at "), "{twice}");
    expect(2, "empty.yaml", "\n");
}

#[test]
fn input_that_is_broken_names_its_place() {
    let folder = folder("broken");
    let state = write(&folder, "cluster.yaml", CLUSTER);
    let broken = write(&folder, "broken.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: [a\nspec: }\n");
    let ran = suture(&["audit", "--state", &broken]);
    assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("broken.yaml:"), "{}", ran.err);
    assert_eq!(ran.out, "");

    let odd = write(&folder, "odd.yaml", "apiVersion: v1\nkind: ConfigMap\n");
    let ran = suture(&["audit", "--state", &odd]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("odd.yaml:1:") && ran.err.contains("metadata.name"), "{}", ran.err);

    let misspelt = write(&folder, "misspelt.yaml", &INVARIANT.replace("template:", "templat:"));
    for arguments in
        [&["lint", &misspelt][..], &["audit", "--state", &state, "--profile", "none", "--invariants", &misspelt]]
    {
        let ran = suture(arguments);
        assert_eq!(ran.code, 2);
        assert!(ran.err.contains("misspelt.yaml:5:8: spec.templat: unknown field `templat`\n"), "{}", ran.err);
        assert!(ran.err.contains("did you mean `template`?"), "{}", ran.err);
    }
    let empty = folder.join("nothing");
    fs::create_dir(&empty).unwrap();
    let ran = suture(&["audit", "--state", empty.to_str().unwrap()]);
    assert_eq!(ran.code, 2, "an empty folder is no empty cluster");
    assert!(ran.err.contains("no *.yaml, *.yml or *.json file in"), "{}", ran.err);
    let mut live = Command::new(env!("CARGO_BIN_EXE_suture"));
    let ran = run::run(live.args(["audit", "--state", "cluster"]).env("KUBECONFIG", "/does/not/exist"));
    assert_eq!(ran.code, 4, "{}", ran.err);
    assert!(ran.err.contains("cannot read `cluster`: "), "{}", ran.err);
}

/// Documents made by programs are often one line, of which an error can't show the surroundings.
#[test]
fn an_error_far_into_a_long_line_names_its_column() {
    let folder = folder("long");
    let note = "x".repeat(100_000);
    let state = format!(
        r#"{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "a"}}, "data": {{"n": "{note}"}}}}"#
    );
    let suite = format!(
        r#"{{"apiVersion": "suture.dev/v1alpha1", "kind": "Suite", "metadata": {{"name": "long"}}, "spec": {{"state": [{state}], "casse": []}}}}"#
    );
    let file = write(&folder, "long.yaml", &suite);
    let Ran { code, out, err } = suture(&["test", &file]);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    let column = suite.find("\"casse").unwrap() + 1;
    assert!(err.contains(&format!("long.yaml:1:{column}: spec.casse: unknown field `casse`")), "{err}");
    assert!(err.len() < 1000, "the line itself is left out: {err}");
}

#[test]
fn a_file_that_cannot_be_read_is_another_code() {
    for arguments in [
        &["audit", "--state", "does/not/exist.yaml"][..],
        &["lint", "does/not/exist.yaml"],
        &["test", "does/not/exist.yaml"],
        &["check", "--state", "tests/demo/cluster", "--review", "does/not/exist.json"],
    ] {
        let ran = suture(arguments);
        assert_eq!(ran.code, 4, "{arguments:?}: {}", ran.err);
        assert!(ran.err.starts_with("error: cannot read `does/not/exist"), "{}", ran.err);
    }
}

#[test]
fn what_is_not_known_is_undecided() {
    let folder = folder("undecided");
    let state = write(&folder, "cluster.yaml", CLUSTER);
    let invariants = write(&folder, "invariants.yaml", INVARIANT);
    let flags =
        ["check", "--state", &state, "--profile", "none", "--invariants", &invariants, "--delete", "po/shop/web-1-a"];
    assert_eq!(suture(&flags).code, 0);
    let typo = suture(&[&flags[..], &["--unknown", "pdos"]].concat());
    assert!(typo.code == 2 && typo.err.contains("did you mean `pods`?"), "{}", typo.err);
    let ran = suture(&[&flags[..], &["--unknown", "pods"]].concat());
    assert_eq!(ran.code, 3, "{}{}", ran.out, ran.err);
    assert!(ran.out.starts_with("undecided: web-serves could not be decided for Service/shop/web: "), "{}", ran.out);
}

#[test]
fn an_audit_is_undecided_while_a_kind_that_makes_pods_was_not_read() {
    let folder = folder("makers");
    let budget = "\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: shop, uid: p}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
";
    let invariant = INVARIANT.replace("service-keeps-endpoints", "pdb-allows-disruption");
    let state = write(&folder, "cluster.yaml", CLUSTER);
    let budget = write(&folder, "budget.yaml", budget);
    let invariants = write(&folder, "invariants.yaml", &invariant);
    let flags = ["audit", "--state", &state, "--state", &budget, "--profile", "none", "--invariants", &invariants];
    assert_eq!(suture(&flags).code, 0);
    for kind in ["deployments", "replicasets", "statefulsets", "daemonsets", "jobs", "replicationcontrollers"] {
        let ran = suture(&[&flags[..], &["--unknown", kind]].concat());
        assert_eq!(ran.code, 3, "{kind}: {}{}", ran.out, ran.err);
        assert!(ran.out.starts_with("undecided: web-serves"), "{}", ran.out);
    }
}

#[test]
fn an_audit_says_what_is_broken_now() {
    let folder = folder("audit");
    let state = write(&folder, "cluster.yaml", CLUSTER);
    let broken = "\
apiVersion: v1
kind: Pod
metadata: {name: lost, namespace: shop, uid: l}
spec: {nodeName: n1, containers: [{name: c, image: i, envFrom: [{secretRef: {name: gone}}]}]}
";
    let extra = write(&folder, "extra.yaml", broken);
    let ran = suture(&["audit", "--state", &state, "--state", &extra]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    let first = "violated: references-pending is broken for Pod/shop/lost: it needs Secret/shop/gone";
    assert!(ran.out.starts_with(first), "{}", ran.out);
    assert!(ran.out.lines().last().unwrap().starts_with("violated: 1 instance broken, "), "{}", ran.out);
    let invariants = write(&folder, "invariants.yaml", INVARIANT);
    let unread = suture(&[
        "audit",
        "--state",
        &state,
        "--profile",
        "none",
        "--invariants",
        &invariants,
        "--unknown",
        "services",
    ]);
    assert_eq!(unread.code, 3, "{}{}", unread.out, unread.err);
    assert!(unread.out.starts_with("undecided: web-serves"), "{}", unread.out);
    assert!(unread.out.contains("objects of kind `Service` were not read"), "{}", unread.out);
    let clean = suture(&["audit", "--state", &state, "--profile", "none", "--invariants", &invariants]);
    assert_eq!(clean.code, 0, "{}{}", clean.out, clean.err);
    assert!(clean.out.lines().last().unwrap().starts_with("clean: 1 hold"), "{}", clean.out);
}

#[test]
fn the_order_of_the_input_does_not_matter() {
    let folder = folder("shuffled");
    let documents: Vec<String> = ["zookeeper", "volumes", "infrastructure"]
        .iter()
        .flat_map(|name| {
            let text = fs::read_to_string(format!("{ROOT}/{DEMO}/cluster/{name}.yaml")).unwrap();
            text.split("\n---\n").map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    assert!(documents.len() > 10);
    let answer = |documents: &[String], name: &str| {
        let state = write(&folder, name, &documents.join("\n---\n"));
        let adapters = format!("{DEMO}/adapters.yaml");
        let flags = ["check", "--state", &state, "--adapters", &adapters, "-o", "json", "--verbose"];
        let ran = suture(&[&flags[..], &["--delete", "zookeepercluster/zk/zookeeper-cluster"]].concat());
        assert_eq!(ran.code, 1, "{}", ran.err);
        ran.out.lines().filter(|line| !line.contains("Micros\"")).collect::<Vec<_>>().join("\n")
    };
    let first = answer(&documents, "a.yaml");
    for round in 1..5 {
        let mut shuffled = documents.clone();
        shuffled.rotate_left(round * 3);
        shuffled.reverse();
        let middle = shuffled.len() / 2;
        shuffled.swap(0, middle);
        assert_eq!(first, answer(&shuffled, "b.yaml"));
    }
}

#[test]
fn overlapping_dumps_agree_or_are_refused() {
    let folder = folder("overlap");
    let map = |version: &str, key: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: b{version}}}\ndata: {{{key}: x}}\n")
    };
    let audit = |texts: [&str; 2]| {
        let (one, two) = (write(&folder, "one.yaml", texts[0]), write(&folder, "two.yaml", texts[1]));
        suture(&["audit", "--state", &one, "--state", &two])
    };
    assert_eq!(audit([&map("", "k"), &map("", "k")]).code, 0);
    assert_eq!(audit([&map(", resourceVersion: '7'", "k"), &map(", resourceVersion: '12'", "l")]).code, 0);
    let ran = audit([&map("", "k"), &map("", "l")]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("two.yaml:1: `ConfigMap/b/a` is there twice, with other contents at"), "{}", ran.err);
}

#[test]
fn standard_input_is_a_state() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_suture"))
        .args(["check", "--state", "-", "--delete", "deploy/shop/web"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(CLUSTER.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn suites_pass_or_fail() {
    let folder = folder("suites");
    write(&folder, "cluster.yaml", CLUSTER);
    write(&folder, "invariants.yaml", INVARIANT);
    write(&folder, "notes.yaml", "{{ not yaml, and no suite }}");
    let suite = write(&folder, "suite.yaml", SUITE);
    for path in [&suite, folder.to_str().unwrap()] {
        let ran = suture(&["test", path]);
        assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
        let place = "failed: web <&> \"co\": what is expected does not come\n  step 2: expected Allowed, got Denied by `web-serves`\n";
        assert!(ran.out.contains(place), "{}", ran.out);
        assert!(ran.out.contains("web-serves would break for Service/shop/web"), "{}", ran.out);
        assert_eq!(ran.out.lines().last(), Some("1 passed, 1 failed"));
    }
    let xml = suture(&["test", &suite, "-o", "junit"]).out;
    assert!(xml.starts_with(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"suture\" tests=\"2\" failures=\"1\""
    ));
    assert!(
        xml.contains("<testcase classname=\"web &lt;&amp;&gt; &quot;co&quot;\" name=\"one pod may go, both may not\"")
    );
    assert!(xml.contains("<failure message=\"step 2: expected Allowed, got Denied by `web-serves`\">"), "{xml}");
    let json: serde_json::Value = serde_json::from_str(&suture(&["test", &suite, "-o", "json"]).out).unwrap();
    assert_eq!((&json["passed"], &json["failed"]), (&1.into(), &1.into()));

    let good = SUITE.replace("replicas: 0, expect: Allowed", "replicas: 0, expect: Denied");
    let ran = suture(&["test", &write(&folder, "good.yaml", &good), "--verbose"]);
    assert_eq!((ran.code, ran.out.lines().last()), (0, Some("2 passed, 0 failed")), "{}", ran.out);
    assert!(ran.out.contains("passed  web"));

    write(&folder, "invariants.yaml", &INVARIANT.replace("service-keeps-endpoints", "flow-allowed"));
    let ran = suture(&["test", &suite]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("template `flow-allowed` is not shipped yet"), "{}", ran.out);
    assert_eq!(ran.out.lines().last(), Some("0 passed, 2 failed"));
    assert_eq!(suture(&["test", &write(&folder, "none.yaml", INVARIANT)]).code, 2);
}

#[test]
fn lint_is_clean_or_tells_what_is_wrong() {
    let folder = folder("lint");
    let clean = suture(&["lint", "specs/library", DEMO, "--verbose"]);
    assert_eq!(clean.code, 2, "the shipped templates' names are taken: {}{}", clean.out, clean.err);
    let clean = suture(&["lint", DEMO, "--verbose"]);
    assert_eq!(clean.code, 0, "{}{}", clean.out, clean.err);
    assert_eq!(clean.out, "1 Invariant\n1 ResourceAdapter\nclean: 2 documents in 2 files\n");
    let wrong = "
apiVersion: suture.dev/v1alpha1
kind: Invariant
metadata: {name: wrong}
spec:
  forEach: {var: p, kind: Pod}
  require:
  - expression: p.redy()
";
    let ran = suture(&["lint", &write(&folder, "wrong.yaml", wrong)]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("wrong.yaml:8") && ran.err.contains("p.redy()"), "{}", ran.err);
    assert!(ran.err.contains("1 error in the input"), "{}", ran.err);
    let ran = suture(&["lint", &write(&folder, "kind.yaml", &INVARIANT.replace("Invariant", "Invariantt"))]);
    assert!(ran.code == 2 && ran.err.contains("did you mean `Invariant`?"), "{}", ran.err);
}

#[test]
fn grants_bind_their_subjects() {
    let folder = folder("grants");
    let grant = "
apiVersion: suture.dev/v1alpha1
kind: OperatorGrant
metadata: {name: operator}
spec: {subjects: [{kind: User, name: ana}], scope: {namespaces: [a]}}
";
    let path = write(&folder, "grants.yaml", &format!("{INVARIANT}---{grant}"));
    assert_eq!(suture(&["lint", &path]).code, 0);
    let state = write(&folder, "cluster.yaml", CLUSTER);
    let check = |user: &str, object: &str| {
        suture(&[
            "check",
            "--state",
            &state,
            "--profile",
            "none",
            "--invariants",
            &path,
            "--as",
            user,
            "--delete",
            object,
        ])
    };
    let ran = check("ana", "svc/shop/web");
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(ran.out.contains("operator-in-scope would break for OperatorGrant/operator"), "{}", ran.out);
    assert!(!check("bea", "svc/shop/web").out.contains("operator-in-scope"));
}

#[test]
fn versions_and_completions_are_printed() {
    let version = suture(&["version"]);
    assert_eq!(version.code, 0);
    assert!(version.out.starts_with("suture 0.") && version.out.contains("\nz3 5."), "{}", version.out);
    let json: serde_json::Value = serde_json::from_str(&suture(&["version", "-o", "json"]).out).unwrap();
    assert!(json["z3"].is_string());
    for shell in ["bash", "zsh", "fish"] {
        let script = suture(&["completions", shell]);
        assert!(script.code == 0 && script.out.contains("propagation-policy"), "{shell}");
    }
    for usage in [&[][..], &["replay"], &["check"], &["test"], &["fmt"], &["audit", "--one-step"]] {
        assert_eq!(suture(usage).code, 2, "{usage:?}");
    }
    assert_eq!(suture(&["--help"]).code, 0);
}

#[test]
fn a_benchmark_prints_a_row_for_each_template() {
    let ran = suture(&["bench", "--nodes", "5", "--pods", "60", "--requests", "5", "-o", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let bench: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let rows = bench["templates"].as_array().unwrap();
    let last: Vec<&serde_json::Value> = rows.iter().skip(LIBRARY.len()).map(|row| &row["template"]).collect();
    assert_eq!(last, ["all", "all, hard", "baseline", "baseline, hard"]);
    assert!(rows.iter().all(|row| row["requests"].as_u64() > Some(0)), "{}", ran.out);
    assert!(bench["residentKib"].as_u64() > Some(0) && bench["objects"].as_u64() > Some(60));
}
