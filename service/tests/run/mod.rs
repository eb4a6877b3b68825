//! Runs the `suture` command, and what several tests run it on.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The folder of the project.
pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Where the demo is, from there.
pub const DEMO: &str = "tests/demo";

/// What a run left.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// Runs the command in the project's folder.
pub fn suture(arguments: &[&str]) -> Ran {
    run(Command::new(env!("CARGO_BIN_EXE_suture")).args(arguments).current_dir(ROOT).stdin(Stdio::null()))
}

/// Runs a command.
pub fn run(command: &mut Command) -> Ran {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: status.code().unwrap(), out: text(stdout), err: text(stderr) }
}

/// A fresh folder for one test.
pub fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// Writes a file, and says where it is.
pub fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A cluster of one Service over two ready pods of a Deployment.
pub const CLUSTER: &str = r#"
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: shop, uid: ns}}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, namespace: shop, uid: d}
  spec: &spec {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:1"}]}}}
- apiVersion: apps/v1
  kind: ReplicaSet
  metadata: {name: web-1, namespace: shop, uid: rs, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: d, controller: true}]}
  spec: *spec
- apiVersion: v1
  kind: Pod
  metadata: {name: web-1-a, namespace: shop, uid: a, labels: {app: web}, ownerReferences: &owner [{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: rs, controller: true}]}
  spec: {nodeName: n1, containers: [{name: web, image: "web:1"}]}
  status: &up {phase: Running, conditions: [{type: Ready, status: "True"}]}
- {apiVersion: v1, kind: Pod, metadata: {name: web-1-b, namespace: shop, uid: b, labels: {app: web}, ownerReferences: *owner}, spec: {nodeName: n2, containers: [{name: web, image: "web:1"}]}, status: *up}
- {apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop, uid: s}, spec: {selector: {app: web}, ports: [{port: 80}]}}
"#;

/// That the Service of [`CLUSTER`] serves.
pub const INVARIANT: &str = "
apiVersion: suture.dev/v1alpha1
kind: Invariant
metadata: {name: web-serves}
spec: {template: service-keeps-endpoints}
";

/// One case that passes, and one that does not.
pub const SUITE: &str = r#"
apiVersion: suture.dev/v1alpha1
kind: Suite
metadata: {name: web <&> "co"}
spec:
  invariants: [invariants.yaml]
  state: [cluster.yaml]
  cases:
  - name: one pod may go, both may not
    steps:
    - {delete: {kind: Pod, namespace: shop, name: web-1-a}, expect: Allowed}
    - {as: ana, delete: {kind: Pod, namespace: shop, name: web-1-b}, expect: Denied, by: [web-serves], instances: [Service/shop/web], contains: [ready endpoints]}
  - name: what is expected does not come
    steps:
    - {delete: {kind: Pod, namespace: shop, name: web-1-a}, expect: Allowed}
    - {scale: {kind: Deployment, namespace: shop, name: web}, replicas: 0, expect: Allowed}
"#;
