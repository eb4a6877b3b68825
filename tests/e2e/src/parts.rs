//! The programs that a control plane consists of, and the flags of each.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::ports::Port;

/// The API server's `--request-timeout`: as long a replica of Suture waits that knows nothing of what was in flight.
pub const REQUEST_TIMEOUT_SECS: u32 = 10;

/// One program of the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The store.
    Etcd,
    /// kube-apiserver.
    ApiServer,
    /// kube-controller-manager: all controllers, garbage collector and namespace controller among them.
    ControllerManager,
    /// kube-scheduler.
    Scheduler,
    /// What stands for all kubelets.
    Kwok,
}

impl Part {
    /// All of them, in the order in which they are started.
    pub const ALL: [Self; 5] = [Self::Etcd, Self::ApiServer, Self::ControllerManager, Self::Scheduler, Self::Kwok];

    /// The name of its program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kwok => "kwok",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Where the parts of one cluster keep their files and meet each other.
#[derive(Debug)]
pub struct Layout {
    /// Everything is in here.
    pub folder: PathBuf,
    /// etcd for the API server.
    pub etcd: Port,
    /// etcd for other members, of which there are none.
    pub etcd_peers: Port,
    /// The API server.
    pub api_server: Port,
}

impl Layout {
    /// The address of the API server.
    pub fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.api_server.number())
    }

    /// The certificate that the API server makes for itself when it starts for the first time, with its authority's.
    pub fn certificate(&self) -> PathBuf {
        self.folder.join("kube-apiserver").join("apiserver.crt")
    }

    /// The key that signs service account tokens.
    pub fn token_key(&self) -> PathBuf {
        self.folder.join("service-accounts.key")
    }

    /// The public half of it.
    pub fn token_public_key(&self) -> PathBuf {
        self.folder.join("service-accounts.pub")
    }

    /// What is to be audited.
    pub fn audit_policy(&self) -> PathBuf {
        self.folder.join("audit-policy.yaml")
    }

    /// What was audited, a JSON object a line.
    pub fn audit_log(&self) -> PathBuf {
        self.folder.join("audit.log")
    }

    /// Flags of etcd.
    pub fn etcd_flags(&self) -> Vec<String> {
        let (clients, peers) = (self.etcd.number(), self.etcd_peers.number());
        flags(&[
            ("data-dir", &self.display("etcd")),
            ("listen-client-urls", &format!("http://127.0.0.1:{clients}")),
            ("advertise-client-urls", &format!("http://127.0.0.1:{clients}")),
            ("listen-peer-urls", &format!("http://127.0.0.1:{peers}")),
            ("initial-advertise-peer-urls", &format!("http://127.0.0.1:{peers}")),
            ("initial-cluster", &format!("default=http://127.0.0.1:{peers}")),
            // what was written survives a killed process without it, only not a machine that loses power
            ("unsafe-no-fsync", "true"),
        ])
    }

    /// Flags of the API server. Admission plugins are its defaults.
    pub fn api_server_flags(&self, token_file: &Path, admission: Option<&Path>) -> Vec<String> {
        let mut all = flags(&[
            ("etcd-servers", &format!("http://127.0.0.1:{}", self.etcd.number())),
            ("bind-address", "127.0.0.1"),
            ("advertise-address", "127.0.0.1"),
            ("secure-port", &self.api_server.number().to_string()),
            ("cert-dir", &self.display("kube-apiserver")),
            // there is no other API server, and 127.0.0.1 is not a valid endpoint address
            ("endpoint-reconciler-type", "none"),
            // more Services than a load test makes
            ("service-cluster-ip-range", "10.0.0.0/16"),
            ("service-account-issuer", "https://kubernetes.default.svc"),
            ("service-account-signing-key-file", &self.token_key().display().to_string()),
            ("service-account-key-file", &self.token_public_key().display().to_string()),
            ("token-auth-file", &token_file.display().to_string()),
            ("authorization-mode", "RBAC"),
            ("allow-privileged", "true"),
            ("request-timeout", &format!("{REQUEST_TIMEOUT_SECS}s")),
            ("audit-policy-file", &self.audit_policy().display().to_string()),
            ("audit-log-path", &self.audit_log().display().to_string()),
        ]);
        all.extend(admission.map(|path| format!("--admission-control-config-file={}", path.display())));
        all
    }

    /// Flags of the controller manager. Each controller acts under a service account of its own, as in a real cluster.
    pub fn controller_manager_flags(&self, kubeconfig: &Path) -> Vec<String> {
        flags(&[
            ("kubeconfig", &kubeconfig.display().to_string()),
            ("leader-elect", "false"),
            // nobody asks it anything
            ("secure-port", "0"),
            ("use-service-account-credentials", "true"),
            ("root-ca-file", &self.certificate().display().to_string()),
            ("service-account-private-key-file", &self.token_key().display().to_string()),
            // there is no cloud and no network
            ("controllers", "*,-nodeipam,-route,-service-lb-controller,-cloud-node-lifecycle-controller"),
            ("kube-api-qps", "500"),
            ("kube-api-burst", "500"),
        ])
    }

    /// Flags of the scheduler.
    pub fn scheduler_flags(&self, kubeconfig: &Path) -> Vec<String> {
        flags(&[
            ("kubeconfig", &kubeconfig.display().to_string()),
            ("leader-elect", "false"),
            ("secure-port", "0"),
            ("kube-api-qps", "500"),
            ("kube-api-burst", "500"),
        ])
    }

    /// Flags of kwok. It listens nowhere: nobody reads logs of pods that do not run.
    pub fn kwok_flags(&self, kubeconfig: &Path, stages: &Path) -> Vec<String> {
        flags(&[
            ("kubeconfig", &kubeconfig.display().to_string()),
            ("config", &stages.display().to_string()),
            ("manage-all-nodes", "true"),
            ("node-ip", "127.0.0.1"),
            ("node-lease-duration-seconds", "40"),
        ])
    }

    fn display(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }
}

fn flags(pairs: &[(&str, &str)]) -> Vec<String> {
    pairs.iter().map(|(name, value)| format!("--{name}={value}")).collect()
}
