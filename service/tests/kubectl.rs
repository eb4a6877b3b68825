//! `suture check` asked as kubectl is: its flags, what it would send, and what it would refuse.
#![expect(clippy::unwrap_used, reason = "what the test itself gets wrong may end it")]

mod run;

use std::fs;
use std::path::Path;

use run::{CLUSTER, INVARIANT, SUITE, folder, suture, write};

/// A cluster with two Namespaces, two nodes with a Deployment's pods, a DaemonSet's, and one that nobody made.
const NODES: &str = r#"
---
{apiVersion: v1, kind: Namespace, metadata: {name: kube-system, uid: ks}}
---
{apiVersion: v1, kind: Node, metadata: {name: n1, uid: n1}, status: {conditions: [{type: Ready, status: "True"}]}}
---
{apiVersion: v1, kind: Node, metadata: {name: n2, uid: n2}, status: {conditions: [{type: Ready, status: "True"}]}}
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent, namespace: kube-system, uid: ds}, spec: {selector: {matchLabels: {app: agent}}, template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: a, image: a}]}}}}
---
apiVersion: v1
kind: Pod
metadata: {name: agent-1, namespace: kube-system, uid: dp, labels: {app: agent}, ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: ds, controller: true}]}
spec: {nodeName: n1, containers: [{name: a, image: a}]}
---
apiVersion: v1
kind: Pod
metadata: {name: etcd-n1, namespace: kube-system, uid: mp, annotations: {kubernetes.io/config.mirror: x}}
spec: {nodeName: n1, containers: [{name: a, image: a}]}
"#;

/// What `suture check` says of these flags against a state, by [`INVARIANT`].
fn checked(folder: &Path, state: &str, flags: &[&str]) -> (i32, String) {
    let state = write(folder, "state.yaml", state);
    let invariants = write(folder, "invariants.yaml", INVARIANT);
    let ran = suture(
        &[&["check", "--state", &state, "--profile", "none", "--invariants", &invariants, "--no-timing"][..], flags]
            .concat(),
    );
    (ran.code, ran.out + &ran.err)
}

#[test]
fn what_kubectl_does_is_asked_as_kubectl_is() {
    let folder = folder("kubectl");
    let state = CLUSTER.to_owned() + NODES;
    let expect = |code: i32, flags: &[&str]| {
        let (found, text) = checked(&folder, &state, flags);
        assert_eq!(found, code, "{flags:?}: {text}");
        text
    };
    expect(0, &["--evict", "shop/web-1-a"]);
    expect(0, &["-n", "shop", "--evict", "web-1-a"]);
    expect(1, &["-n", "shop", "--evict", "web-1-a", "--evict", "pod/shop/web-1-b"]);
    assert!(expect(2, &["--evict", "web-1-a"]).contains("`web-1-a` is not NAMESPACE/POD"));
    expect(0, &["-n", "shop", "--delete", "po/web-1-a"]);
    expect(1, &["-n", "shop", "--scale", "deploy/web=0"]);
    expect(0, &["--cordon", "n1"]);
    expect(1, &["--label", "po/shop/web-1-a=app-", "--label", "po/shop/web-1-b=app=other"]);
    expect(0, &["--label", "svc/shop/web=tier=front"]);
    assert!(expect(2, &["--label", "svc/shop/web"]).contains("KEY=VALUE"));
    expect(1, &["-n", "shop", "--patch", r#"deploy/web={"spec":{"replicas":0}}"#]);
    let image = r#"deploy/shop/web={"spec":{"template":{"spec":{"containers":[{"name":"web","tty":true}]}}}}"#;
    expect(0, &["--patch", image]);
    assert!(expect(2, &["--patch", "deploy/shop/web={"]).contains("--patch deploy/shop/web: "));
    let typo = expect(2, &["-n", "shpo", "--delete", "po/web-1-a"]);
    assert!(typo.contains("--namespace: namespace `shpo` does not exist in the state; did you mean `shop`?"), "{typo}");
    assert!(expect(2, &["--delete", "po/shpo/web-1-a"]).contains("did you mean `shop`?"));
    assert!(expect(2, &["--scale", "ds/kube-system/agent=0"]).contains("has no scale: DaemonSet cannot be scaled"));
    assert!(expect(2, &["--scale", "deploy/shop/web=-1"]).contains("replicas cannot be negative"));
}

#[test]
fn a_drain_evicts_what_kubectl_would() {
    let folder = folder("drain");
    let state = CLUSTER.to_owned() + NODES;
    let (code, text) = checked(&folder, &state, &["--drain", "n1"]);
    assert_eq!(code, 0, "a DaemonSet's pod and a mirror pod stay, the other ready one serves: {text}");
    let (code, text) = checked(&folder, &state, &["--drain", "n1", "--drain", "n2"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("evicts Pod/shop/web-1-a") && text.contains("evicts Pod/shop/web-1-b"), "{text}");
    assert!(!text.contains("agent-1") && !text.contains("etcd-n1"), "{text}");

    let bare = "---\n{apiVersion: v1, kind: Pod, metadata: {name: bare, namespace: shop, uid: bp}, spec: {nodeName: n1, containers: [{name: a, image: a}]}}\n";
    let state = state + bare;
    let (code, text) = checked(&folder, &state, &["--drain", "n1"]);
    assert_eq!(code, 2);
    assert!(text.contains("kubectl would not drain `n1` without --force: `Pod/shop/bare` has no controller"), "{text}");
    assert_eq!(checked(&folder, &state, &["--drain", "n1", "--force"]).0, 0);
    assert!(checked(&folder, &state, &["--drain", "n3"]).1.contains("`Node/n3` does not exist in the state"));
}

#[test]
fn applied_manifests_are_those_of_kustomize_and_helm() {
    let folder = folder("rendered");
    let deployment = |replicas: u32| {
        format!("apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec: {{replicas: {replicas}}}\n")
    };
    let apply = |path: &str| checked(&folder, CLUSTER, &["-n", "shop", "-f", path]);
    let helm = format!(
        "---\n# Source: web/templates/none.yaml\n---\n# Source: web/templates/web.yaml\n{}---\n\n",
        deployment(0)
    );
    assert_eq!(apply(&write(&folder, "helm.yaml", &helm)).0, 1);
    let report = format!("NAME: web\nSTATUS: pending-install\nHOOKS:\nMANIFEST:\n{helm}\nNOTES:\nVisit [http://web\n");
    assert_eq!(apply(&write(&folder, "report.yaml", &report)).0, 1);

    let chart = folder.join("chart");
    fs::create_dir(&chart).unwrap();
    write(&chart, "zero.yaml", &deployment(0));
    write(&chart, "one.yaml", &deployment(1));
    write(&chart, "kustomization.yaml", "kind: Kustomization\nresources: [one.yaml]\n");
    let (code, text) = apply(chart.to_str().unwrap());
    assert_eq!(code, 0, "only what the kustomization lists: {text}");
    write(&chart, "kustomization.yaml", "resources: [one.yaml]\nnamePrefix: a-\n");
    let (code, text) = apply(chart.to_str().unwrap());
    assert_eq!(code, 2);
    assert!(
        text.contains("the kustomization changes its resources (`namePrefix`); give what `kubectl kustomize "),
        "{text}"
    );
    write(&chart, "kustomization.yaml", "resources: [two.yaml]\n");
    assert!(apply(chart.to_str().unwrap()).1.contains("the resource `two.yaml` is no file or folder here"));
}

#[test]
fn manifests_go_into_namespaces_that_exist() {
    let folder = folder("namespaces");
    let apply = |text: &str, flags: &[&str]| {
        let path = write(&folder, "applied.yaml", text);
        checked(&folder, CLUSTER, &[&["-f", &path][..], flags].concat())
    };
    let map = |ns: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: {ns}}}\n");
    assert_eq!(apply(&map("shop"), &[]).0, 0);
    let (code, text) = apply(&map("shpo"), &[]);
    assert_eq!(code, 2);
    assert!(
        text.contains("applied.yaml:1: namespace `shpo` does not exist in the state; did you mean `shop`?"),
        "{text}"
    );
    let made = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: new}}\n---\n{}", map("new"));
    assert_eq!(apply(&made, &[]).0, 0, "made just before");
    let (code, text) = apply(&map("shop"), &["-n", "default"]);
    assert!(code == 2 && text.contains("--namespace: namespace `default` does not exist"), "{text}");
    let (code, text) = apply(&map("other"), &["-n", "shop"]);
    assert!(code == 2 && text.contains("the manifest is in namespace `other`, and --namespace says `shop`"), "{text}");
}

#[test]
fn the_same_question_prints_the_same_bytes_without_times() {
    let folder = folder("no-timing");
    let state = write(&folder, "cluster.yaml", CLUSTER);
    let flags = ["check", "--state", &state, "--delete", "deploy/shop/web", "--no-timing"];
    for form in ["text", "json", "yaml"] {
        let run = || suture(&[&flags[..], &["-o", form, "--verbose"]].concat()).out;
        let first = run();
        assert_eq!(first, run());
        assert!(!first.contains("icros") && !first.contains("µs"), "{first}");
    }
    let quiet = suture(&[&flags[..], &["-q"]].concat());
    assert_eq!((quiet.code, quiet.out.as_str(), quiet.err.as_str()), (1, "", ""));
    write(&folder, "invariants.yaml", INVARIANT);
    let suite = write(&folder, "suite.yaml", SUITE);
    for form in ["json", "junit"] {
        let out = suture(&["test", &suite, "-o", form, "--no-timing"]).out;
        assert!(!out.contains("micros") && !out.contains("time="), "{out}");
    }
    assert_eq!(suture(&["test", &suite, "-q"]).out, "");
}

#[test]
fn the_shipped_templates_stand_beside_invariants() {
    let folder = folder("shipped");
    let state = write(&folder, "cluster.yaml", CLUSTER);
    let own = INVARIANT.replace("web-serves", "serving-service-kept");
    let invariants = write(&folder, "invariants.yaml", &own);
    let with = |profile: &str| {
        suture(&["check", "--state", &state, "--profile", profile, "--invariants", &invariants, "--delete", "ns/shop"])
    };
    let alone = with("none");
    assert!(!alone.out.contains("serving-namespace-kept"), "{}", alone.out);
    let beside = with("strict");
    assert_eq!(beside.code, 1, "{}", beside.err);
    assert!(beside.out.contains("serving-namespace-kept would break for Namespace/shop"), "{}", beside.out);
}

#[test]
fn a_used_exemption_is_said() {
    let folder = folder("exempted");
    let exemption = "---
apiVersion: suture.dev/v1alpha1
kind: Exemption
metadata: {name: incident-4711}
spec: {invariant: web-serves, instances: [Service/shop/web], subjects: [{kind: User, name: ana}], expires: '2027-01-01T00:00:00Z', reason: the shop moves}
";
    let state = write(&folder, "cluster.yaml", CLUSTER);
    let invariants = write(&folder, "invariants.yaml", &(INVARIANT.to_owned() + exemption));
    let flags = [
        "check",
        "--state",
        &state,
        "--profile",
        "none",
        "--invariants",
        &invariants,
        "--scale",
        "deploy/shop/web=0",
        "--no-timing",
    ];
    let at = |user: &str, time: &str, form: &str| {
        suture(&[&flags[..], &["--as", user, "--time", time, "-o", form]].concat())
    };
    let (before, after) = ("2026-12-31T00:00:00Z", "2027-01-02T00:00:00Z");
    let ran = at("ana", before, "text");
    let expected = "\
exempted: web-serves for Service/shop/web
  Exemption incident-4711, until 2027-01-01T00:00:00Z: the shop moves

allowed: 1 exempted, 0 proved (z3 ";
    assert_eq!(ran.code, 0);
    let without: Vec<&str> = ran.out.lines().filter(|line| !line.starts_with("taken as none")).collect();
    assert!(without.join("\n").starts_with(expected), "{}", ran.out);
    let report: serde_json::Value = serde_json::from_str(&at("ana", before, "json").out).unwrap();
    assert_eq!(report["exempted"][0]["exemption"], "incident-4711");
    for (user, time) in [("bea", before), ("ana", after)] {
        let ran = at(user, time, "text");
        assert!(ran.code == 1 && !ran.out.contains("exempted"), "{}", ran.out);
    }
}
