//! What `service/deploy` has for a cluster: the chart is sound, the API server takes every manifest of it, and the kustomize base
//! is what the chart prints.
//!
//! ServiceMonitor and PrometheusRule are rendered and not sent: their definitions are the Prometheus operator's. Pods cannot run
//! here, and the image is not built.
#![expect(clippy::expect_used, reason = "a test may stop where it fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use suture_e2e::suture::{program, run};
use suture_e2e::{Cluster, Options};

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../service/deploy");
const BUILD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../controlplane/build");
const NAMESPACE: &str = "suture-system";

/// The values that are rendered, beside the defaults.
const RENDERED: [&[&str]; 5] = [
    &[],
    &["--values", "values-ha.yaml"],
    &["--set", "replicasMode=single,reports.enabled=true,findings.openReports=true,findings.events=true"],
    &["--set", "profile=strict,replicasMode=audit,replicas=1,priorityClass.create=false,networkPolicy.create=false"],
    &["--set", "systemNamespaces={cni,csi},monitoring.dashboard=true,failurePolicy=Ignore"],
];

fn helm() -> PathBuf {
    let output = Command::new(BUILD).arg("--helm").stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.expect("the build script runs");
    assert!(output.status.success(), "helm is built");
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}

/// What helm prints, which must succeed.
fn printed(helm: &Path, arguments: &[&str]) -> String {
    let output = Command::new(helm).args(arguments).current_dir(Path::new(DEPLOY).join("chart")).output();
    let output = output.expect("helm runs");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "helm {}: {out}{err}", arguments.join(" "));
    out.into_owned()
}

fn template(helm: &Path, flags: &[&str]) -> String {
    let asked = ["template", "suture", ".", "--namespace", NAMESPACE, "--kube-version", "v1.35.0"];
    printed(helm, &[&asked[..], flags].concat())
}

/// The documents of a text, without those of the Prometheus operator's kinds.
fn sent(text: &str) -> String {
    let documents = text.split("\n---\n").filter(|document| !document.contains("apiVersion: monitoring.coreos.com/"));
    documents.collect::<Vec<_>>().join("\n---\n")
}

#[test]
fn the_chart_is_what_an_api_server_takes() {
    let helm = helm();
    let lint = printed(&helm, &["lint", "--strict", "--namespace", NAMESPACE, "."]);
    assert!(lint.contains("0 chart(s) failed"), "{lint}");
    let mut wrong = Command::new(&helm);
    wrong.args(["template", "suture", ".", "--kube-version", "v1.35.0", "--set", "replicasMode=many"]);
    let refused = wrong.current_dir(Path::new(DEPLOY).join("chart")).output().expect("helm runs");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("replicasMode"),
        "the schema of the values is looked at: {said}"
    );

    let base = fs::read_to_string(Path::new(DEPLOY).join("kustomize/suture.yaml")).expect("the base");
    let rendered = template(&helm, &["--no-hooks"]).replace("managed-by: Helm", "managed-by: kustomize");
    let accept = std::env::var_os("SUTURE_ACCEPT").is_some();
    if accept {
        fs::write(Path::new(DEPLOY).join("kustomize/suture.yaml"), &rendered).expect("written");
    }
    assert!(
        accept || base == rendered,
        "kustomize/suture.yaml is not what the chart prints: SUTURE_ACCEPT=1 writes it"
    );

    let cluster = Cluster::start(&Options::default()).expect("cluster");
    let admin = cluster.kubectl("admin").expect("admin");
    admin.text(&["create", "namespace", NAMESPACE]).expect("a namespace");
    let dry = ["apply", "--server-side", "--dry-run=server", "--filename=-"];
    for flags in RENDERED {
        let text = template(&helm, flags);
        let taken = admin.run_with(&dry, &sent(&text)).expect("kubectl runs");
        assert!(taken.success, "{flags:?}: {}", taken.stderr);
        assert!(!taken.stderr.contains("Warning"), "{flags:?}: {}", taken.stderr);
    }
    let built = admin.text(&["kustomize", &format!("{DEPLOY}/kustomize")]).expect("kustomize builds the base");
    let taken = admin.run_with(&dry, &built).expect("kubectl runs");
    assert!(taken.success, "{}", taken.stderr);
    admin.apply(&run(&["manifests", "crds"]).expect("definitions")).expect("the definitions are taken");

    // `kubectl suture` finds the program by the name of a link
    let folder = std::env::temp_dir().join(format!("suture-plugin-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let link = folder.join("kubectl-suture");
    std::os::unix::fs::symlink(program(), &link).expect("a link");
    let path = std::env::var("PATH").unwrap_or_default();
    let plugin = Command::new(&admin.program)
        .args(["suture", "check", "--help"])
        .env("PATH", format!("{}:{path}", folder.display()))
        .output()
        .expect("kubectl runs");
    fs::remove_dir_all(&folder).expect("removed");
    let out = String::from_utf8_lossy(&plugin.stdout);
    assert!(out.contains("Usage: kubectl suture check"), "{out}{}", String::from_utf8_lossy(&plugin.stderr));
}
