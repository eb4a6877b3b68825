//! What Suture may do in the cluster: read what the loaded policy reads, and write its own status, leases, announcements,
//! certificates and webhook configuration. Nothing else, in particular no object that it judges.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use suture_model::change::plural;
use suture_model::kinds::Kind;
use suture_specs::spec::ResourceAdapter;

use super::configuration::{Installation, NAME};
use super::options::Telling;
use super::reports::access::RESOURCE as REPORTS;
use super::resources::{GROUP, RESOURCES};
use super::secret;
use super::store::AGGREGATED;
use crate::policy::Policy;
use crate::rules::{watched, watches_every};

/// The role that aggregates what Suture may read, and what the names of those that it aggregates begin with.
pub const READS: &str = "suture-read";
/// The role of what it may write.
pub const WRITES: &str = "suture-write";
/// The role of what it may write to tell what is violated, where it is to.
pub const TELLS: &str = "suture-tell";
/// The role of who sees in answers and reports what is in a namespace: who may view it, by Kubernetes' own role `view`.
pub const VIEWS: &str = "suture-view";
/// By this label a role is part of `view`, `edit` and `admin` (`plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go`).
const VIEWED: &str = "rbac.authorization.k8s.io/aggregate-to-view";

/// The other resources that API servers have built in and that can be listed and watched (`kubectl api-resources` of Kubernetes
/// 1.33 to 1.36, with what is beta there). They play no role in the table of kinds; what is about objects of every kind is about
/// these too, and could say nothing about any if they were not read.
const BESIDE: [(&str, &[&str]); 9] = [
    ("admissionregistration.k8s.io", &["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"]),
    ("certificates.k8s.io", &["certificatesigningrequests", "clustertrustbundles", "podcertificaterequests"]),
    ("coordination.k8s.io", &["leasecandidates"]),
    ("flowcontrol.apiserver.k8s.io", &["flowschemas", "prioritylevelconfigurations"]),
    ("networking.k8s.io", &["ipaddresses", "servicecidrs"]),
    ("resource.k8s.io", &["deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"]),
    ("scheduling.k8s.io", &["workloads"]),
    ("storage.k8s.io", &["csinodes", "csistoragecapacities", "volumeattributesclasses"]),
    ("storagemigration.k8s.io", &["storageversionmigrations"]),
];

/// The service account, its roles, and what binds them.
pub fn manifests(policy: &Policy, installation: &Installation, telling: Telling) -> Vec<Json> {
    let Installation { namespace, service_account } = installation;
    let labels = json!({"app.kubernetes.io/name": "suture"});
    let meta = |name: &str| json!({"name": name, "labels": labels});
    let aggregated =
        |name: &str| json!({"name": name, "labels": {"app.kubernetes.io/name": "suture", AGGREGATED: "true"}});
    let inside = |name: &str| json!({"name": name, "namespace": namespace, "labels": labels});
    let subject = json!([{"kind": "ServiceAccount", "namespace": namespace, "name": service_account}]);
    let role = |kind: &str, name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name});
    let rbac = "rbac.authorization.k8s.io/v1";
    let telling = telling.any().then(|| {
        [
            json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": meta(TELLS), "rules": tells(telling)}),
            json!({
                "apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": meta(TELLS),
                "roleRef": role("ClusterRole", TELLS), "subjects": subject,
            }),
        ]
    });
    let always = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": meta(namespace)}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": inside(service_account)}),
        json!({
            "apiVersion": rbac, "kind": "ClusterRole", "metadata": meta(READS),
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {AGGREGATED: "true"}}]},
        }),
        json!({
            "apiVersion": rbac, "kind": "ClusterRole", "metadata": aggregated("suture-read-policy"),
            "rules": reads(policy),
        }),
        json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": meta(WRITES), "rules": writes()}),
        json!({
            "apiVersion": rbac, "kind": "ClusterRole",
            "metadata": {"name": VIEWS, "labels": {"app.kubernetes.io/name": "suture", VIEWED: "true"}},
            "rules": [{"apiGroups": [GROUP], "resources": [REPORTS], "verbs": ["get"]}],
        }),
        json!({"apiVersion": rbac, "kind": "Role", "metadata": inside("suture"), "rules": own()}),
        json!({
            "apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": meta(READS),
            "roleRef": role("ClusterRole", READS), "subjects": subject,
        }),
        json!({
            "apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": meta(WRITES),
            "roleRef": role("ClusterRole", WRITES), "subjects": subject,
        }),
        json!({
            "apiVersion": rbac, "kind": "RoleBinding", "metadata": inside("suture"),
            "roleRef": role("Role", "suture"), "subjects": subject,
        }),
    ];
    always.into_iter().chain(telling.into_iter().flatten()).collect()
}

/// What is violated is told in every namespace.
fn tells(telling: Telling) -> Vec<Json> {
    let reports = json!({
        "apiGroups": ["openreports.io"], "resources": ["clusterreports", "reports"],
        "verbs": ["create", "delete", "list", "patch"],
    });
    let events = json!({"apiGroups": [""], "resources": ["events"], "verbs": ["create"]});
    let each = [(telling.open_reports, reports), (telling.events, events)];
    each.into_iter().filter(|(is_told, _)| *is_told).map(|(_, rule)| rule).collect()
}

/// Get, list and watch of what is read, by name: `*` would cover subresources such as `nodes/proxy` and `pods/exec`, which
/// are read by GET (`apiserver/pkg/authorization/authorizer/rbac`, `ResourceMatches`). Of custom resources those that adapters
/// and invariants name, by the usual plural; which others there are, and what they are called, the cluster says when Suture
/// runs (`serve::store::lacks`). A Secret's values reach Suture with its keys, and are dropped when it is read.
fn reads(policy: &Policy) -> Vec<Json> {
    let verbs = ["get", "list", "watch"];
    let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    // whether the cluster asks, beside what is watched
    for kind in watched(policy).into_iter().chain(Kind::builtin("ValidatingWebhookConfiguration")) {
        groups.entry(kind.group.to_string()).or_default().insert(resource_of(policy, &kind));
    }
    if watches_every(policy) {
        for (group, resources) in BESIDE {
            groups.entry(group.to_owned()).or_default().extend(resources.iter().map(ToString::to_string));
        }
    }
    groups.entry(GROUP.to_owned()).or_default().extend(RESOURCES.iter().map(|r| r.plural.to_owned()));
    let rule = |(group, resources): (String, BTreeSet<String>)| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    groups.into_iter().map(rule).collect()
}

/// The resource of a kind: of one with an adapter that is named like its definition (`PLURAL.GROUP`), that plural.
fn resource_of(policy: &Policy, kind: &Kind) -> String {
    let is_for = |adapter: &&ResourceAdapter| adapter.spec.group == *kind.group && adapter.spec.kind == *kind.kind;
    let adapter = policy.each_adapter().find(is_for);
    let named = adapter.and_then(|adapter| adapter.name.strip_suffix(&*kind.group)?.strip_suffix('.'));
    named.map_or_else(|| plural(&kind.kind), str::to_owned)
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
        // a question, of which nothing is stored: whether a requester may read what an answer names
        json!({"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]}),
    ]
}

/// In Suture's own namespace: the Leases of replicas, announcements, events, and the certificates.
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
        json!({"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}),
        json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}),
        json!({
            "apiGroups": [""], "resources": ["secrets"], "resourceNames": [secret::NAME], "verbs": ["get", "update"],
        }),
    ]
}

#[cfg(test)]
mod tests {
    use suture_specs::spec::Profile;

    use super::manifests;
    use crate::input::Source;
    use crate::policy::Documents;
    use crate::rules::watches_every;
    use crate::serve::configuration::Installation;
    use crate::serve::options::Telling;
    use crate::serve::store::AGGREGATED;

    #[test]
    fn what_is_read_is_named_and_is_no_subresource() {
        let mut documents = Documents::default();
        documents.add_profile(Some(Profile::Strict)).unwrap();
        let adapter =
            "{apiVersion: suture.dev/v1alpha1, kind: ResourceAdapter, metadata: {name: w}, spec: {group: example.com,
            kind: Widget, replicas: self.spec.replicas}}";
        documents.extend(Documents::read(&[Source { name: "a test".into(), text: adapter.into() }]).unwrap());
        let policy = documents.compile().unwrap();
        assert!(watches_every(&policy), "of what reads every kind all that is built in is granted");
        let manifests = manifests(&policy, &Installation::default(), Telling::default());
        let role = |name: &str| {
            manifests.iter().find(|m| m["kind"] == "ClusterRole" && m["metadata"]["name"] == name).unwrap()
        };
        let read = role("suture-read-policy");
        // what else is needed is granted by roles of the same label
        let label = &role("suture-read")["aggregationRule"]["clusterRoleSelectors"][0]["matchLabels"];
        assert_eq!(read["metadata"]["labels"][AGGREGATED], label[AGGREGATED]);
        let rules = read["rules"].as_array().unwrap();
        let texts = |rule: &serde_json::Value, field: &str| -> Vec<String> {
            rule[field].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        for rule in rules {
            assert_eq!(texts(rule, "verbs"), ["get", "list", "watch"]);
            let named = texts(rule, "resources").into_iter().chain(texts(rule, "apiGroups"));
            assert!(named.clone().all(|name| !name.contains('*') && !name.contains('/')), "{rule}");
        }
        let granted = |group: &str, resource: &str| {
            rules.iter().any(|rule| {
                texts(rule, "apiGroups").contains(&group.into()) && texts(rule, "resources").contains(&resource.into())
            })
        };
        for (group, resource) in [
            ("", "pods"),
            ("apps", "deployments"),
            ("example.com", "widgets"),
            ("", "secrets"),
            ("storage.k8s.io", "csinodes"),
            ("flowcontrol.apiserver.k8s.io", "flowschemas"),
        ] {
            assert!(granted(group, resource), "{group}/{resource}");
        }
    }

    /// What a role lets Suture write, outside of its own namespace.
    const WRITTEN: [&str; 5] =
        ["validatingwebhookconfigurations", "subjectaccessreviews", "reports", "clusterreports", "events"];

    #[test]
    fn nothing_that_is_judged_can_be_written() {
        let Ok(policy) = Documents::default().compile() else { unreachable!("nothing compiles to nothing") };
        let all = Telling { open_reports: true, events: true };
        for role in manifests(&policy, &Installation::default(), all).iter().filter(|m| m["kind"] == "ClusterRole") {
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
