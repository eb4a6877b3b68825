//! Names of kinds as kubectl takes them.

use suture_model::ingest;

use super::*;

fn names() -> Names {
    let mut snapshot = Snapshot::default();
    let definition = |group: &str, kind: &str, scope: &str, short: &str| {
        let plural = plural(&kind.to_lowercase());
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.{group}}}\n\
             spec: {{group: {group}, scope: {scope}, names: {{kind: {kind}, plural: {plural}, shortNames: [{short}]}}}}\n---\n"
        )
    };
    let text = definition("db.example.com", "Backup", "Namespaced", "bk")
        + &definition("velero.io", "Backup", "Namespaced", "vb")
        + &definition("example.com", "Region", "Cluster", "reg")
        + "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: a, namespace: b}\n";
    ingest::ingest(&mut snapshot, &text, "state").unwrap();
    Names::of(&snapshot)
}

#[test]
fn every_form_that_kubectl_takes_is_the_same_kind() {
    let names = names();
    for name in ["Deployment", "deployment", "deployments", "deploy", "DEPLOY", "deployments.apps", "deploy.apps"] {
        assert_eq!(names.kind(name), Ok(Kind::new("apps", "Deployment")), "{name}");
    }
    for (name, kind) in [
        ("pvc", "PersistentVolumeClaim"),
        ("sts", "StatefulSet"),
        ("ns", "Namespace"),
        ("po", "Pod"),
        ("no", "Node"),
        ("ds", "DaemonSet"),
        ("rs", "ReplicaSet"),
        ("pdb", "PodDisruptionBudget"),
        ("ing", "Ingress"),
        ("ingresses", "Ingress"),
        ("crd", "CustomResourceDefinition"),
        ("networkpolicies", "NetworkPolicy"),
        ("storageclasses", "StorageClass"),
        ("endpoints", "Endpoints"),
    ] {
        assert_eq!(names.kind(name), Ok(Kind::builtin(kind).unwrap()), "{name}");
    }
    assert_eq!(names.kind("reg"), Ok(Kind::new("example.com", "Region")));
}

#[test]
fn an_ambiguous_name_lists_what_to_write() {
    let names = names();
    assert_eq!(
        names.kind("backups").unwrap_err().to_string(),
        "ambiguous kind `backups`: write `Backup.db.example.com` or `Backup.velero.io`"
    );
    assert_eq!(names.kind("vb"), Ok(Kind::new("velero.io", "Backup")));
    assert_eq!(names.kind("backups.velero.io"), Ok(Kind::new("velero.io", "Backup")));
    let services = names.kind("svc");
    assert_eq!(services, Ok(Kind::new("", "Service")), "a short name is the built-in kind's");
    let error = names.kind("Service").unwrap_err().to_string();
    assert_eq!(error, "ambiguous kind `Service`: write `Service.` or `Service.serving.knative.dev`");
    assert_eq!(names.kind("Service."), Ok(Kind::new("", "Service")));
}

#[test]
fn a_namespace_belongs_where_the_kind_has_one() {
    let names = names();
    let text = |name: &str| names.key(name).map(|key| key.to_string()).map_err(|error| error.to_string());
    assert_eq!(text("po/shop/a"), Ok("Pod/shop/a".to_owned()));
    assert_eq!(text("no/n1"), Ok("Node/n1".to_owned()));
    assert_eq!(text("bk.db.example.com/shop/a"), Ok("Backup/shop/a".to_owned()));
    assert_eq!(text("reg/eu"), Ok("Region/eu".to_owned()));
    assert_eq!(text("po/a"), Err("Pod `a` is in a namespace: write Pod/NAMESPACE/a".to_owned()));
    assert_eq!(text("reg/shop/eu"), Err("Region `eu` is in no namespace: write Region/eu".to_owned()));
    for odd in ["", "po", "po/", "po//a", "/a", "po/a/b/c"] {
        assert!(text(odd).unwrap_err().contains("is not KIND/NAMESPACE/NAME"), "{odd}");
    }
    let unknown = "unknown kind `deploymet`: no object, definition or adapter has it; did you mean `deployment`?";
    assert_eq!(text("deploymet/a/b"), Err(unknown.to_owned()));
}
