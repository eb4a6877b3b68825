//! Roles and bindings of the accounts that workloads run as.

use serde_json::{Value, json};
use suture_model::change::{Request, User};
use suture_model::state::State;
use suture_model::value::Val;

use super::draft::{Draft, reference};
use super::focus::Focus;
use super::random::Random;

const GROUP: &str = "rbac.authorization.k8s.io/v1";

impl Draft<'_> {
    /// The roles and bindings of universes that are about rights.
    pub fn rights(&mut self) {
        if self.focus != Focus::Rights {
            return;
        }
        let spec = json!({"group": "example.com", "scope": "Namespaced", "names": {"kind": "Db", "plural": "dbs"},
            "versions": [{"name": "v1", "served": true, "storage": true}]});
        let meta = self.meta("", "dbs.example.com");
        if self.of_kind("CustomResourceDefinition").is_empty() {
            self.objects.push(json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": meta, "spec": spec}));
        }
        let owners = ["ConfigMap", "Secret"].map(|kind| self.of_kind(kind)).concat();
        for (kind, ns) in [("Role", "a"), ("ClusterRole", ""), ("ClusterRole", "")] {
            let name = format!("role{}", self.objects.iter().filter(|o| o["kind"] == kind).count());
            let mut meta = self.meta(ns, &name);
            if self.random.chance(30) {
                meta["labels"] = json!({"part": "y"});
            }
            let mut role = json!({"apiVersion": GROUP, "kind": kind, "metadata": meta, "rules": rules(self.random)});
            if kind == "ClusterRole" && self.random.chance(20) {
                role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"part": "y"}}]});
            }
            self.objects.push(role);
        }
        for at in 0..1 + self.random.below(3) {
            let (kind, ns) = *self.random.pick(&[("RoleBinding", "a"), ("ClusterRoleBinding", "")]);
            let mut meta = self.meta(ns, &format!("binding{at}"));
            if !owners.is_empty() && self.random.chance(20) {
                let owner = self.random.pick(&owners).clone();
                meta["ownerReferences"] = json!([reference(&owner, false)]);
            }
            let binding = binding(self.random, kind);
            self.objects.push(json!({"apiVersion": GROUP, "kind": kind, "metadata": meta, "roleRef": binding["roleRef"], "subjects": binding["subjects"]}));
        }
    }
}

fn rules(random: &mut Random) -> Value {
    let all = [
        json!([{"apiGroups": ["example.com"], "resources": ["dbs", "dbs/status"], "verbs": ["get", "update"]}]),
        json!([{"apiGroups": ["example.com"], "resources": ["dbs"], "verbs": ["*"]}]),
        json!([{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["update"], "resourceNames": ["x"]}]),
        json!([{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "update"]}]),
        json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]),
        json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]),
        json!([]),
    ];
    random.pick(&all).clone()
}

fn binding(random: &mut Random, kind: &str) -> Value {
    let role = if kind == "RoleBinding" && random.chance(50) {
        ("Role", "role0")
    } else {
        ("ClusterRole", *random.pick(&["role0", "role1"]))
    };
    let subject = random
        .pick(&[
            json!({"kind": "ServiceAccount", "namespace": "a", "name": "default"}),
            json!({"kind": "ServiceAccount", "namespace": "a", "name": "sa"}),
            json!({"kind": "Group", "name": "system:serviceaccounts:a"}),
            json!({"kind": "User", "name": "system:serviceaccount:a:default"}),
            json!({"kind": "Group", "name": "system:authenticated"}),
        ])
        .clone();
    json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role.0, "name": role.1}, "subjects": [subject]})
}

/// A request about rights.
pub fn request(random: &mut Random, state: &State<'_>) -> Option<Request> {
    let kinds = ["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"];
    let found: Vec<_> = state.iter().into_iter().filter(|o| kinds.contains(&&*o.key.kind.kind)).cloned().collect();
    if found.is_empty() {
        return None;
    }
    let target = random.pick(&found).clone();
    let with = match &*target.key.kind.kind {
        "Role" | "ClusterRole" if random.chance(80) => json!({"rules": rules(random)}),
        "Role" | "ClusterRole" => {
            json!({"metadata": {"labels": {"part": random.pick(&[json!("y"), Value::Null]).clone()}}})
        }
        kind => json!({"subjects": binding(random, kind)["subjects"]}),
    };
    Request::patch(User::admin(), state, target.key.clone(), &Val::from(&with), "").ok()
}
