//! LimitRanges and quotas by the examples of their sources.

use super::*;
use crate::object::Key;
use crate::snapshot::Snapshot;
use crate::testing::{cluster, val};

fn object<'s>(snapshot: &'s Snapshot, kind: &str) -> &'s Object {
    snapshot.get(&Key::of(kind, "a", "x")).unwrap()
}

fn limit_range(items: &str) -> Snapshot {
    cluster(&format!(
        "{{apiVersion: v1, kind: LimitRange, metadata: {{namespace: a, name: x}}, spec: {{limits: [{items}]}}}}"
    ))
}

fn quota(spec: &str) -> Snapshot {
    cluster(&format!("{{apiVersion: v1, kind: ResourceQuota, metadata: {{namespace: a, name: x}}, spec: {spec}}}"))
}

#[test]
fn defaults_fill_what_is_missing() {
    let container = |resources: &str| val(&format!("{{containers: [{{name: c, resources: {resources}}}]}}"));
    for (items, resources, cpu, limit) in [
        ("{type: Container, default: {cpu: 2}, defaultRequest: {cpu: 1}}", "{}", 1000, 2000),
        // the limit stands for a request, a maximum for a limit, a minimum for a request
        ("{type: Container, default: {cpu: 2}}", "{}", 2000, 2000),
        ("{type: Container, max: {cpu: 3}}", "{}", 3000, 3000),
        ("{type: Container, max: {cpu: 3}, min: {cpu: 100m}}", "{}", 3000, 3000),
        ("{type: Container, min: {cpu: 100m}}", "{}", 100, 0),
        // what is stated stays
        ("{type: Container, default: {cpu: 2}, defaultRequest: {cpu: 1}}", "{requests: {cpu: 5}}", 5000, 2000),
        ("{type: Container, default: {cpu: 2}, defaultRequest: {cpu: 1}}", "{limits: {cpu: 4}}", 4000, 4000),
        ("{type: Pod, max: {cpu: 2}}", "{}", 0, 0),
    ] {
        let snapshot = limit_range(items);
        let spec = with_limit_defaults(&container(resources), &[object(&snapshot, "LimitRange")]);
        assert_eq!((quota_usage(&spec, "cpu"), quota_usage(&spec, "limits.cpu")), (cpu, limit), "{items} {resources}");
    }
}

#[test]
fn a_limit_range_refuses_what_breaks_it() {
    let two =
        |a: &str, b: &str| val(&format!("{{containers: [{{name: a, resources: {a}}}, {{name: b, resources: {b}}}]}}"));
    let full = "{requests: {cpu: 1}, limits: {cpu: 2}}";
    for (items, spec, refusals) in [
        ("{type: Container, min: {cpu: 2}}", two(full, "{}"), 1),
        ("{type: Container, min: {cpu: 1}}", two(full, full), 0),
        ("{type: Container, max: {cpu: 1}}", two(full, "{}"), 1),
        ("{type: Container, max: {cpu: 2}}", two(full, full), 0),
        ("{type: Container, maxLimitRequestRatio: {cpu: 1}}", two(full, full), 2),
        ("{type: Container, maxLimitRequestRatio: {cpu: 2}}", two(full, full), 0),
        ("{type: Container, maxLimitRequestRatio: {cpu: 2}}", two(full, "{}"), 1),
        ("{type: Pod, max: {cpu: 3}}", two(full, full), 1),
        ("{type: Pod, max: {cpu: 4}}", two(full, full), 0),
        ("{type: Pod, max: {cpu: 4}}", two("{}", "{}"), 1),
        ("{type: Pod, min: {cpu: 3}}", two(full, full), 1),
        ("{type: Pod, min: {cpu: 2}}", two(full, full), 0),
        ("{type: PersistentVolumeClaim, max: {storage: 1Gi}}", two("{}", "{}"), 0),
    ] {
        let snapshot = limit_range(items);
        let ranges = [object(&snapshot, "LimitRange")];
        let refused = refused_by_limits(&with_limit_defaults(&spec, &ranges), &ranges);
        assert_eq!(refused.len(), refusals, "{items}: {refused:?}");
    }
}

#[test]
fn a_quota_counts_what_its_names_say() {
    let spec = val("{initContainers: [{name: i, resources: {requests: {cpu: 3}}}], containers: [{name: c, resources: \
         {requests: {cpu: 500m, memory: 1Gi, nvidia.com/gpu: 1, hugepages-2Mi: 4Mi}, limits: {cpu: 1, memory: 2Gi}}}]}");
    for (name, used) in [
        ("pods", 1),
        ("count/pods", 1),
        ("cpu", 3000),
        ("requests.cpu", 3000),
        ("limits.cpu", 1000),
        ("memory", 1 << 30),
        ("limits.memory", 2 << 30),
        ("requests.nvidia.com/gpu", 1),
        ("hugepages-2Mi", 4 << 20),
        ("requests.storage", 0),
        ("services", 0),
        ("count/deployments.apps", 0),
    ] {
        assert_eq!(quota_usage(&spec, name), used, "{name}");
    }
}

#[test]
fn a_quota_wants_its_resources_stated() {
    let snapshot = quota("{hard: {requests.cpu: 1, limits.memory: 1Gi, pods: 4}}");
    let unstated = |spec: &str| unstated(object(&snapshot, "ResourceQuota"), &val(spec)).len();
    assert_eq!(unstated("{containers: [{name: c}]}"), 2);
    assert_eq!(
        unstated("{containers: [{name: c, resources: {requests: {cpu: 1}, limits: {memory: 1Gi}}}, {name: d}]}"),
        2
    );
    assert_eq!(unstated("{containers: [{name: c, resources: {requests: {cpu: 1}, limits: {memory: 1Gi}}}]}"), 0);
}

#[test]
fn scopes_choose_pods() {
    let plain = "{containers: [{name: c}]}";
    let ending = "{activeDeadlineSeconds: 60, containers: [{name: c, resources: {requests: {cpu: 1}}}]}";
    let crossing = "{containers: [{name: c}], affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{namespaces: [b]}]}}}";
    let class = |operator: &str| {
        format!(
            "{{scopeSelector: {{matchExpressions: [{{scopeName: PriorityClass, operator: {operator}, values: [high]}}]}}}}"
        )
    };
    for (scopes, spec, named, means) in [
        ("{}".to_owned(), plain, "", true),
        ("{scopes: [Terminating]}".to_owned(), plain, "", false),
        ("{scopes: [Terminating]}".to_owned(), ending, "", true),
        ("{scopes: [NotTerminating, BestEffort]}".to_owned(), plain, "", true),
        ("{scopes: [NotTerminating, BestEffort]}".to_owned(), ending, "", false),
        ("{scopes: [NotBestEffort]}".to_owned(), ending, "", true),
        ("{scopes: [PriorityClass]}".to_owned(), plain, "", false),
        ("{scopes: [CrossNamespacePodAffinity]}".to_owned(), crossing, "", true),
        ("{scopes: [CrossNamespacePodAffinity]}".to_owned(), plain, "", false),
        ("{scopes: [VolumeAttributesClass]}".to_owned(), plain, "", false),
        (class("In"), plain, "high", true),
        (class("In"), plain, "low", false),
        (class("NotIn"), plain, "low", true),
        (class("DoesNotExist"), plain, "", true),
        (class("Exists"), plain, "low", true),
    ] {
        let snapshot = quota(&scopes);
        assert_eq!(quota_scopes_mean(object(&snapshot, "ResourceQuota"), &val(spec), named), means, "{scopes} {spec}");
    }
}
