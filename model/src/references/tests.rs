//! Reference tables, a manifest and what it refers to; and what an object is found by.

use super::*;
use crate::adapter::NoAdapters;
use crate::ingest::objects;
use crate::state::State;
use crate::testing::{adapted, key, names, val};

/// The references of a manifest: target, where, `?` if optional, `-` if not needed, keys. Order does not matter here.
fn check(yaml: &str, expected: &[&str]) {
    let object = objects(&val(yaml)).unwrap().remove(0);
    let mut found: Vec<String> = references(&object, &NoAdapters)
        .iter()
        .map(|r| {
            let marks = [(r.optional, "?"), (!r.needed, "-")].map(|(on, mark)| if on { mark } else { "" }).concat();
            let keys: String = r.keys.iter().map(|k| format!(" {k}")).collect();
            format!("{} {}{marks}{keys}", r.target, r.via)
        })
        .collect();
    found.sort();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected, "{yaml}");
}

#[test]
fn pods_refer_from_every_place() {
    check(
        "apiVersion: v1
kind: Pod
metadata: {name: p, namespace: a}
spec:
  serviceAccount: old
  priorityClassName: gold
  runtimeClassName: gvisor
  imagePullSecrets: [{name: pull}]
  initContainers: [{name: i, envFrom: [{configMapRef: {name: from, optional: true}}, {secretRef: {name: s1}}]}]
  containers: [{name: c, env: [{name: A, valueFrom: {secretKeyRef: {name: s2, key: k}}}, {name: B, value: x}]}]
  ephemeralContainers: [{name: e, env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: k, optional: true}}}]}]
  volumes:
  - {name: v1, persistentVolumeClaim: {claimName: data}}
  - {name: v2, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: fast}}}}
  - {name: v3, secret: {secretName: s3, items: [{key: x}, {key: y}], optional: true}}
  - {name: v4, projected: {sources: [{secret: {name: s4}}, {configMap: {name: m4}}, {serviceAccountToken: {}}]}}
  - {name: v5, csi: {driver: d, nodePublishSecretRef: {name: s5}}}
  - {name: v6, azureFile: {secretName: s6}}
",
        &[
            "ServiceAccount/a/old serviceAccountName",
            "PriorityClass/gold priorityClassName",
            "RuntimeClass/gvisor runtimeClassName",
            "Secret/a/pull imagePullSecrets",
            "ConfigMap/a/from envFrom?",
            "Secret/a/s1 envFrom",
            "Secret/a/s2 env k",
            "ConfigMap/a/m env? k",
            "PersistentVolumeClaim/a/data spec.volumes",
            "PersistentVolumeClaim/a/p-v2 spec.volumes?",
            "StorageClass/fast spec.volumes",
            "Secret/a/s3 spec.volumes? x y",
            "Secret/a/s4 spec.volumes",
            "ConfigMap/a/m4 spec.volumes",
            "Secret/a/s5 spec.volumes",
            "Secret/a/s6 spec.volumes",
        ],
    );
}

#[test]
fn what_always_exists_is_no_reference() {
    check(
        "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {priorityClassName: system-node-critical, \
         containers: [{name: c}]}}",
        &[],
    );
}

#[test]
fn what_wants_no_pods_names_and_does_not_need() {
    let template = "template: {spec: {serviceAccountName: sa, containers: []}}";
    for (manifest, marks) in [
        (
            format!("apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: w}}, spec: {{replicas: 0, {template}}}"),
            "-",
        ),
        (format!("apiVersion: apps/v1, kind: Deployment, metadata: {{name: w}}, spec: {{{template}}}"), ""),
        (
            format!(
                "apiVersion: batch/v1, kind: CronJob, metadata: {{name: w}}, spec: {{jobTemplate: {{spec: {{{template}}}}}}}"
            ),
            "",
        ),
        (
            format!(
                "apiVersion: batch/v1, kind: Job, metadata: {{name: w}}, spec: {{{template}}}, \
                 status: {{conditions: [{{type: Complete, status: 'True'}}]}}"
            ),
            "-",
        ),
        (
            "apiVersion: v1, kind: Pod, metadata: {name: w}, spec: {serviceAccountName: sa}, status: {phase: Failed}"
                .to_owned(),
            "-",
        ),
    ] {
        check(&format!("{{{manifest}}}"), &[&format!("ServiceAccount/default/sa serviceAccountName{marks}")]);
    }
}

#[test]
fn storage_refers() {
    let claim =
        |spec: &str| format!("{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: c}}, spec: {spec}}}");
    check(&claim("{storageClassName: fast}"), &["StorageClass/fast storageClassName"]);
    check(&claim("{storageClassName: fast, volumeName: v}"), &["PersistentVolume/v volumeName"]);
    check(&claim("{storageClassName: ''}"), &[]);
    check(
        "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {serviceName: h, template: {spec: {}}, \
         volumeClaimTemplates: [{metadata: {name: d}, spec: {storageClassName: fast}}]}}",
        &["Service/default/h serviceName?", "StorageClass/fast volumeClaimTemplates"],
    );
    check(
        "{apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, spec: {csi: {nodeStageSecretRef: {namespace: n, name: s}}}}",
        &["Secret/n/s csi"],
    );
}

#[test]
fn traffic_refers() {
    check(
        "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i, namespace: a}, spec: {ingressClassName: nginx, \
         tls: [{secretName: t}], defaultBackend: {service: {name: d}}, rules: [{http: {paths: [{backend: {service: {name: w}}}, \
         {backend: {resource: {apiGroup: k.example.com, kind: Bucket, name: b}}}]}}]}}",
        &[
            "Bucket/a/b backend",
            "IngressClass/nginx ingressClassName?",
            "Secret/a/t tls",
            "Service/a/d backend",
            "Service/a/w backend",
        ],
    );
    check(
        "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r, namespace: a}, spec: {parentRefs: \
         [{name: g, namespace: infra}], rules: [{backendRefs: [{name: w}, {name: x, namespace: b}], \
         filters: [{requestMirror: {backendRef: {name: m}}}]}]}}",
        &[
            "Gateway/infra/g parentRefs?",
            "Service/a/m backendRefs",
            "Service/a/w backendRefs",
            "Service/b/x backendRefs",
        ],
    );
}

#[test]
fn extensions_refer() {
    let service = "service: {namespace: n, name: s}";
    let conversion = |strategy: &str| {
        format!(
            "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: c}}, \
             spec: {{conversion: {{strategy: {strategy}, webhook: {{clientConfig: {{{service}}}}}}}}}}}"
        )
    };
    check(&conversion("Webhook"), &["Service/n/s conversion"]);
    check(&conversion("None"), &[]);
    check(
        &format!(
            "{{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {{name: a}}, spec: {{{service}}}}}"
        ),
        &["Service/n/s service"],
    );
    check(
        &format!(
            "{{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {{name: w}}, \
             webhooks: [{{clientConfig: {{{service}}}}}, {{clientConfig: {{url: x}}}}]}}"
        ),
        &["Service/n/s webhooks"],
    );
    check(
        "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h}, \
         spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}}}",
        &["Deployment/default/d scaleTargetRef"],
    );
    check(
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b, namespace: a}, \
         roleRef: {kind: ClusterRole, name: view}, subjects: [{kind: ServiceAccount, name: x}, {kind: User, name: u}]}",
        &["ClusterRole/view roleRef", "ServiceAccount/a/x subjects?"],
    );
}

#[test]
fn what_scales_a_workload_is_found_by_it() {
    let facts = |scaler: &Object| AdapterFacts {
        scale_target: Some(Key::of("Deployment", &scaler.key.ns, scaler.val().str_at(&["spec", "target"]).unwrap())),
        ..AdapterFacts::default()
    };
    let yaml = "{apiVersion: e.com/v1, kind: Scaler, metadata: {name: s, namespace: a}, spec: {target: w}}\n---\n\
                {apiVersion: e.com/v1, kind: Scaler, metadata: {name: t, namespace: a}, spec: {target: x}}\n---\n\
                {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h, namespace: a}, spec: \
                {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: w}}}";
    let snapshot = adapted(yaml, vec![(Kind::new("e.com", "Scaler"), facts)]);
    let workload = key("Deployment/a/w");
    let mut state = State::new(&snapshot);
    assert_eq!(names(&state.referrers(&workload)), ["HorizontalPodAutoscaler/a/h", "Scaler/a/s"]);
    let scaler = Key::new(Kind::new("e.com", "Scaler"), "a", "s");
    let elsewhere = state.get(&scaler).unwrap().map_body(|val| val.with_at(&["spec", "target"], Val::str("x")));
    state.put(elsewhere);
    assert_eq!(names(&state.referrers(&workload)), ["HorizontalPodAutoscaler/a/h"]);
    assert_eq!(names(&state.referrers(&key("Deployment/a/x"))), ["Scaler/a/s", "Scaler/a/t"]);
}
