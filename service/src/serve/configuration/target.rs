//! What the configuration says beside its rules: its name, where Suture is, and how the API server reaches it.

use crate::failure_policy::FailurePolicy;

/// The name of the configuration.
pub const NAME: &str = "suture";
/// Whoever sets this annotation on the configuration turns Suture off until it is taken away.
pub const OFF_ANNOTATION: &str = "suture.dev/off";
/// The seconds that the API server waits. A decision takes milliseconds; what takes longer is undecided.
pub const TIMEOUT_SECONDS: i32 = 2;

/// The port of the Service.
pub const SERVICE_PORT: i32 = 443;

/// Where Suture lives in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// Its namespace.
    pub namespace: String,
    /// Its service account.
    pub service_account: String,
}

impl Default for Installation {
    fn default() -> Self {
        Self { namespace: "suture-system".to_owned(), service_account: "suture".to_owned() }
    }
}

/// How the API server reaches Suture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// By a Service in Suture's namespace.
    Service {
        /// Its name.
        name: String,
        /// Its port.
        port: i32,
    },
    /// By a URL, without a path: `https://127.0.0.1:8443`.
    Url(String),
}

/// What the configuration says beside its rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// How the API server reaches Suture.
    pub reach: Reach,
    /// The certificates, PEM, that Suture's is signed by; empty where the API server knows them.
    pub ca_bundle: Vec<u8>,
    /// How many seconds the API server waits.
    pub timeout_seconds: i32,
    /// What becomes of a request when Suture does not answer.
    pub failure_policy: FailurePolicy,
    /// Where Suture lives.
    pub installation: Installation,
    /// Namespaces of the system beside [the usual ones](super::essential::SYSTEM_NAMESPACES), such as that of the network.
    pub system_namespaces: Vec<String>,
    /// The part of the webhook's address that nobody can guess (`super::super::paths`).
    pub segment: Option<String>,
}

impl Default for Target {
    fn default() -> Self {
        Self {
            reach: Reach::Service { name: "suture".to_owned(), port: SERVICE_PORT },
            ca_bundle: Vec::new(),
            timeout_seconds: TIMEOUT_SECONDS,
            failure_policy: FailurePolicy::Fail,
            installation: Installation::default(),
            system_namespaces: Vec::new(),
            segment: None,
        }
    }
}
