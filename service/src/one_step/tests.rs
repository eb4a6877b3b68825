//! The family of steps.

use suture_model::ingest;
use suture_model::snapshot::Snapshot;

use super::*;

fn family(manifests: &[&str]) -> Vec<String> {
    let mut snapshot = Snapshot::default();
    for manifest in manifests {
        ingest::ingest(&mut snapshot, manifest, "a test").unwrap();
    }
    let state = State::new(&snapshot);
    let user = User::named("ana");
    let objects = snapshot.iter().flat_map(|object| steps(&state, object, &user));
    let words = |step: Step| {
        let what = match &step.request.object {
            Some(object) if step.request.subresource.is_empty() => {
                format!(" {}", serde_json::to_string(object.get("spec").unwrap_or(&Val::Null)).unwrap())
            }
            _ => String::new(),
        };
        format!("{:?}: {}{what}", step.kind, step.request.describe())
    };
    objects.map(words).collect()
}

#[test]
fn what_has_a_scale_is_scaled_to_every_number_up_to_one_more() {
    let found =
        family(&["{apiVersion: apps/v1, kind: Deployment, metadata: {name: w, namespace: n}, spec: {replicas: 2}}"]);
    let scaled: Vec<&str> =
        found.iter().filter_map(|step| step.strip_prefix("Scale: ana scales Deployment/n/w to ")).collect();
    assert_eq!(scaled, ["0", "1", "3"]);
    assert!(!found.iter().any(|step| step.starts_with("Number")), "its replicas are no number beside that: {found:?}");
}

#[test]
fn of_many_pods_the_boundaries_are_tried() {
    let found =
        family(&["{apiVersion: apps/v1, kind: Deployment, metadata: {name: w, namespace: n}, spec: {replicas: 100}}"]);
    let scaled: Vec<&str> =
        found.iter().filter_map(|step| step.strip_prefix("Scale: ana scales Deployment/n/w to ")).collect();
    assert_eq!(scaled, ["0", "1", "50", "99", "101"]);
}

#[test]
fn numbers_selectors_and_labels_are_changed_one_at_a_time() {
    let budget = "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, namespace: n, labels: {team: a}}, \
                  spec: {minAvailable: 1, selector: {matchLabels: {app: w}}}}";
    let found = family(&[budget]);
    let has = |start: &str, part: &str| found.iter().any(|step| step.starts_with(start) && step.contains(part));
    assert!(has("Number", "\"minAvailable\":0") && has("Number", "\"minAvailable\":2"), "{found:?}");
    assert!(has("Select", "\"app\":\"w-other\""), "{found:?}");
    assert!(has("Unlabel", "") && has("Delete", ""), "{found:?}");
    assert_eq!(found.len(), 5, "{found:?}");
}

#[test]
fn a_percentage_has_two_ends() {
    let budget = "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, namespace: n}, spec: {maxUnavailable: 50%}}";
    let found = family(&[budget]);
    assert!(
        found.iter().any(|step| step.contains("\"0%\"")) && found.iter().any(|step| step.contains("\"100%\"")),
        "{found:?}"
    );
}

#[test]
fn what_is_asked_to_go_already_has_no_step() {
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: n, deletionTimestamp: '2026-11-01T12:00:00Z'}, spec: {nodeName: x}}";
    assert!(family(&[pod]).is_empty());
}

#[test]
fn a_node_is_closed_once() {
    let closed =
        |spec: &str| family(&[&format!("{{apiVersion: v1, kind: Node, metadata: {{name: x}}, spec: {spec}}}")]);
    assert!(closed("{}").iter().any(|step| step.starts_with("Cordon")));
    assert!(!closed("{unschedulable: true}").iter().any(|step| step.starts_with("Cordon")));
}
