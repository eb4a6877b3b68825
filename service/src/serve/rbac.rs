//! What Suture may do in the cluster: read what the loaded policy reads, and write its own status, leases, announcements,
//! certificates and webhook configuration. Nothing else, in particular no object that it judges.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use suture_model::change::plural;
use suture_model::kinds::Kind;

use super::configuration::{Installation, NAME};
use super::resources::{GROUP, RESOURCES};
use super::secret;
use crate::policy::Policy;
use crate::rules::{watched, watches_every};

/// The service account, its roles, and what binds them.
pub fn manifests(policy: &Policy, installation: &Installation) -> Vec<Json> {
    let Installation { namespace, service_account } = installation;
    let labels = json!({"app.kubernetes.io/name": "suture"});
    let meta = |name: &str| json!({"name": name, "labels": labels});
    let inside = |name: &str| json!({"name": name, "namespace": namespace, "labels": labels});
    let subject = json!([{"kind": "ServiceAccount", "namespace": namespace, "name": service_account}]);
    let role = |kind: &str, name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name});
    let rbac = "rbac.authorization.k8s.io/v1";
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": meta(namespace)}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": inside(service_account)}),
        json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": meta("suture-read"), "rules": reads(policy)}),
        json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": meta("suture-write"), "rules": writes()}),
        json!({"apiVersion": rbac, "kind": "Role", "metadata": inside("suture"), "rules": own()}),
        json!({
            "apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": meta("suture-read"),
            "roleRef": role("ClusterRole", "suture-read"), "subjects": subject,
        }),
        json!({
            "apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": meta("suture-write"),
            "roleRef": role("ClusterRole", "suture-write"), "subjects": subject,
        }),
        json!({
            "apiVersion": rbac, "kind": "RoleBinding", "metadata": inside("suture"),
            "roleRef": role("Role", "suture"), "subjects": subject,
        }),
    ]
}

/// Get, list and watch of what is read. A Secret's values reach Suture with its keys, and are dropped when it is read.
fn reads(policy: &Policy) -> Vec<Json> {
    let verbs = ["get", "list", "watch"];
    if watches_every(policy) {
        return vec![json!({"apiGroups": ["*"], "resources": ["*"], "verbs": verbs})];
    }
    let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    // whether the cluster asks, beside what is watched
    for kind in watched(policy).into_iter().chain(Kind::builtin("ValidatingWebhookConfiguration")) {
        let resource = if kind.builtin_namespaced().is_some() { plural(&kind.kind) } else { "*".to_owned() };
        groups.entry(kind.group.to_string()).or_default().insert(resource);
    }
    groups.entry(GROUP.to_owned()).or_default().extend(RESOURCES.iter().map(|r| r.plural.to_owned()));
    let rule = |(group, resources): (String, BTreeSet<String>)| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    groups.into_iter().map(rule).collect()
}

fn writes() -> Vec<Json> {
    let status: Vec<String> = RESOURCES.iter().map(|resource| format!("{}/status", resource.plural)).collect();
    let webhooks = "validatingwebhookconfigurations";
    vec![
        json!({"apiGroups": [GROUP], "resources": status, "verbs": ["patch"]}),
        // a creation has no name that a rule could hold it to
        json!({"apiGroups": ["admissionregistration.k8s.io"], "resources": [webhooks], "verbs": ["create"]}),
        json!({
            "apiGroups": ["admissionregistration.k8s.io"], "resources": [webhooks], "resourceNames": [NAME],
            "verbs": ["update"],
        }),
    ]
}

/// In Suture's own namespace: the Leases of replicas, announcements, and the certificates.
fn own() -> Vec<Json> {
    vec![
        json!({
            "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
            "verbs": ["create", "delete", "get", "list", "patch", "update"],
        }),
        json!({
            "apiGroups": [""], "resources": ["configmaps"],
            "verbs": ["create", "delete", "list", "patch", "watch"],
        }),
        json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}),
        json!({
            "apiGroups": [""], "resources": ["secrets"], "resourceNames": [secret::NAME], "verbs": ["get", "update"],
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::manifests;
    use crate::policy::Documents;
    use crate::serve::configuration::Installation;

    /// What a role lets Suture write, outside of its own namespace.
    const WRITTEN: [&str; 2] = ["validatingwebhookconfigurations", "status of its own kinds"];

    #[test]
    fn nothing_that_is_judged_can_be_written() {
        let Ok(policy) = Documents::default().compile() else { unreachable!("nothing compiles to nothing") };
        for role in manifests(&policy, &Installation::default()).iter().filter(|m| m["kind"] == "ClusterRole") {
            for rule in role["rules"].as_array().into_iter().flatten() {
                let reads = |verb: &serde_json::Value| ["get", "list", "watch"].contains(&verb.as_str().unwrap_or(""));
                if rule["verbs"].as_array().into_iter().flatten().all(reads) {
                    continue;
                }
                for resource in rule["resources"].as_array().into_iter().flatten() {
                    let name = resource.as_str().unwrap_or("");
                    let own = name.ends_with("/status") && rule["apiGroups"][0] == "suture.dev";
                    assert!(own || WRITTEN.contains(&name), "{name} can be written");
                }
            }
        }
    }
}
