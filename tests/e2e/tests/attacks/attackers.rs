//! Who attacks: threads that do the same again and again, and a tenant with rights in one namespace.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};
use suture_e2e::objects::ingress;
use suture_e2e::{Api, Cluster};

use super::until;

/// The group of custom resources that the tenant may write.
pub const GROUP: &str = "owners.example";

/// Threads that do something until they are told to stop.
pub struct Attackers {
    done: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Attackers {
    /// So many, each of which does again and again what is made for it by its number.
    pub fn start<A: FnMut() + Send + 'static>(count: usize, attacker: impl Fn(usize) -> A) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let attacker = |number| {
            let (mut attack, done) = (attacker(number), done.clone());
            thread::spawn(move || {
                while !done.load(Ordering::Acquire) {
                    attack();
                }
            })
        };
        let threads = (0..count).map(attacker).collect();
        Self { done, threads }
    }

    /// Waits until all have stopped.
    pub fn stop(self) {
        self.done.store(true, Ordering::Release);
        self.threads.into_iter().for_each(|thread| thread.join().expect("attacker"));
    }
}

/// Whoever has [`rights`].
pub fn tenant(cluster: &Cluster) -> Api {
    let mut tenant = Api::new(cluster, "admin").expect("api");
    tenant.impersonate("tenant", &["system:authenticated"]);
    tenant
}

/// What lets the tenant edit the namespace `mall`, and write policies and custom resources in it.
pub fn rights() -> [Value; 3] {
    let (api, metadata) = ("rbac.authorization.k8s.io/v1", json!({"name": "own", "namespace": "mall"}));
    let rules = json!([{"apiGroups": ["suture.dev", GROUP], "resources": ["*"], "verbs": ["*"]}]);
    let bound = |name: &str, kind: &str, role: &str| {
        json!({"apiVersion": api, "kind": "RoleBinding", "metadata": {"name": name, "namespace": "mall"},
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
               "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "tenant"}]})
    };
    let role = json!({"apiVersion": api, "kind": "Role", "metadata": metadata, "rules": rules});
    [role, bound("own", "Role", "own"), bound("edit", "ClusterRole", "edit")]
}

/// Waits until a host that another namespace has taken already is denied to the tenant.
pub fn denied(tenant: &Api) -> Duration {
    let path = "/apis/networking.k8s.io/v1/namespaces/mall/ingresses?dryRun=All";
    until("a denial", || {
        let reply = tenant.call("POST", path, Some(&ingress("mall", "stolen", "taken.example")));
        let reply = reply.map_err(|error| error.to_string())?;
        if reply.message().contains("unique-host") { Ok(()) } else { Err(reply.message().to_owned()) }
    })
}
