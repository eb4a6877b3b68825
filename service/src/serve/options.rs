//! The flags of `suture serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use axum::http::Uri;
use clap::{Args, ValueEnum};
use suture_specs::spec::{OnUndecided, Profile};

use super::configuration::{Installation, Reach, SERVICE_PORT, Target};
use crate::failure_policy::FailurePolicy;
use crate::profile::ProfileName;
use crate::unmodelled::Unmodelled;

/// `suture serve`.
#[derive(Debug, Args)]
pub struct Options {
    /// Invariants, templates, grants and exemptions beside those in the cluster: files or folders
    #[arg(long, num_args = 1.., value_name = "PATH")]
    pub invariants: Vec<PathBuf>,
    /// ResourceAdapters beside those in the cluster: files or folders
    #[arg(long, num_args = 1.., value_name = "PATH")]
    pub adapters: Vec<PathBuf>,
    /// Which of the shipped templates are judged, and by which rules [default: none]
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub profile: Option<ProfileName>,
    /// Also the shipped templates, by the rules of `--profile`, `baseline` if there is none
    #[arg(long)]
    pub shipped_invariants: bool,
    /// What becomes of a request that touches a custom resource which no ResourceAdapter explains
    #[arg(long, value_enum, default_value_t = Unmodelled::Warn, value_name = "ANSWER")]
    pub unmodelled: Unmodelled,
    /// The kubeconfig [default: $KUBECONFIG, ~/.kube/config, or the service account of the pod]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: the current one]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// The namespace for leases and announcements
    #[arg(long, env = "POD_NAMESPACE", default_value = "suture-system", value_name = "NAME")]
    pub namespace: String,
    /// What this replica is called; the same after a restart [default: $POD_NAME, else the host's name]
    #[arg(long, env = "POD_NAME", value_name = "NAME")]
    pub identity: Option<String>,
    /// How replicas share the work
    #[arg(long, value_enum, default_value_t = ReplicasMode::Single)]
    pub replicas_mode: ReplicasMode,
    /// Where the webhook listens
    #[arg(long, default_value = "0.0.0.0:9443", value_name = "ADDRESS")]
    pub listen: SocketAddr,
    /// Where health and metrics are served, in plain HTTP
    #[arg(long, default_value = "0.0.0.0:9440", value_name = "ADDRESS")]
    pub health_listen: SocketAddr,
    /// Where a replica that stands by finds what is in flight here; port 0 takes a free one
    #[arg(long, default_value = "0.0.0.0:0", value_name = "ADDRESS")]
    pub replica_listen: SocketAddr,
    /// How long the API server gives a request (its `--request-timeout`), in seconds: what was admitted is stored by then,
    /// or never
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=600))]
    pub request_timeout_secs: u32,
    /// The certificate chain, if somebody else keeps it (PEM)
    #[arg(long, requires = "tls_key", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// Its key (PEM)
    #[arg(long, requires = "tls_cert", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// The authority that signed it, for the webhook's configuration (PEM)
    #[arg(long, requires = "tls_cert", value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
    /// Where certificates of our own are kept, if nobody else keeps any [default: a Secret in the namespace]
    #[arg(long, value_name = "FOLDER")]
    pub certificates: Option<PathBuf>,
    /// Keep the webhook's configuration up to date; the API server calls this Service in the namespace
    #[arg(long, value_name = "NAME", conflicts_with = "webhook_url")]
    pub webhook_service: Option<String>,
    /// Keep the webhook's configuration up to date; the API server calls this URL, without a path, and certificates of our
    /// own bear its host
    #[arg(long, value_name = "URL")]
    pub webhook_url: Option<String>,
    /// What becomes of a request when Suture does not answer
    #[arg(long, value_enum, default_value_t = FailurePolicy::Fail, value_name = "POLICY")]
    pub failure_policy: FailurePolicy,
    /// The service account that Suture runs as, whose requests are never judged
    #[arg(long, default_value = "suture", value_name = "NAME")]
    pub service_account: String,
    /// A file with the secret part of the webhook's address, 32 characters or more, where somebody else keeps the
    /// certificates or the webhook's configuration; with certificates of our own one is made
    #[arg(long, value_name = "FILE")]
    pub path_token: Option<PathBuf>,
    /// Namespaces of the system beside kube-system, kube-public and kube-node-lease, such as that of the network or the
    /// volumes: what a cluster needs to come up never waits for Suture, so it passes while Suture is down
    #[arg(long, num_args = 1.., value_name = "NAMESPACE")]
    pub system_namespaces: Vec<String>,
    /// The names and addresses under which the API server calls the webhook
    #[arg(long, default_values = ["localhost", "127.0.0.1"], value_name = "NAME")]
    pub name: Vec<String>,
    /// The authority that signs the API server's client certificate; without it, clients are not checked (PEM)
    #[arg(long, value_name = "FILE")]
    pub client_ca: Option<PathBuf>,
    /// The common names that the client's certificate may have [default: any]
    #[arg(long, requires = "client_ca", value_name = "NAME")]
    pub client_name: Vec<String>,
    /// Speak TLS 1.2 too
    #[arg(long)]
    pub tls12: bool,
    /// How far a watch may lag before what it shows counts as unknown, in seconds
    #[arg(long, default_value_t = 60, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(30..=600))]
    pub lag_max_secs: u32,
    /// Keep a report of every refusal, undecided request and warning in this folder; `suture explain --id` opens one
    #[arg(long, value_name = "FOLDER")]
    pub reports: Option<PathBuf>,
    /// Where reports are read over HTTPS, by whoever shows a token and may `get` the resource `reports` of `suture.dev` in
    /// a namespace; Suture's account then needs the cluster role system:auth-delegator
    #[arg(long, requires = "reports", value_name = "ADDRESS")]
    pub reports_listen: Option<SocketAddr>,
    /// How much of them is kept, in MiB: the oldest make room. The file takes about twice as much
    #[arg(long, default_value_t = 256, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub reports_max_mib: u32,
    /// How long a report is kept
    #[arg(long, default_value_t = 30, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=3_650))]
    pub reports_max_days: u32,
    /// What else is told of what an audit finds.
    #[command(flatten)]
    pub telling: Telling,
    /// Threads that decide [default: the processors, or four for each where replicas announce]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: Option<u32>,
    /// Requests that may wait for a thread
    #[arg(long, default_value_t = 256, value_name = "N")]
    pub queue: usize,
    /// How long a decision may take, whatever the API server allows
    #[arg(long, default_value_t = 1_500, value_name = "MS")]
    pub deadline_ms: u64,
    /// What is kept of the API server's timeout for the way there and back
    #[arg(long, default_value_t = 200, value_name = "MS")]
    pub margin_ms: u64,
    /// What is answered to a request that nobody had the time to decide
    #[arg(long, value_enum, default_value_t = Overload::Deny)]
    pub on_overload: Overload,
    /// How long it goes on serving while not ready, when it is asked to leave; where one replica decides at a time, it
    /// hands over at once
    #[arg(long, default_value_t = 5, value_name = "SECONDS")]
    pub drain_secs: u64,
}

/// By which objects of others' kinds it is told what is violated, beside the status of Suture's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub struct Telling {
    /// Write what is violated as Report and ClusterReport of openreports.io, whose definitions are to be installed
    #[arg(long)]
    pub open_reports: bool,
    /// Write an Event about each object that begins to violate an invariant, at most 20 after an audit
    #[arg(long)]
    pub events: bool,
}

impl Telling {
    /// Whether anything is.
    pub fn any(self) -> bool {
        self.open_reports || self.events
    }
}

/// How replicas share the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReplicasMode {
    /// One decides at a time, by a Lease; the others stand by and are not ready.
    Single,
    /// All decide. Each announces a request by a write before it decides: a few milliseconds more for each.
    Announced,
    /// All decide, none denies: what would have been denied is in the audit annotations.
    Audit,
}

/// What is answered to a request that nobody had the time to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Overload {
    /// No, with a code that says to try again.
    Deny,
    /// Yes, with a warning.
    Warn,
    /// Yes.
    Allow,
}

impl From<Overload> for OnUndecided {
    fn from(overload: Overload) -> Self {
        match overload {
            Overload::Deny => Self::Deny,
            Overload::Warn => Self::Warn,
            Overload::Allow => Self::Allow,
        }
    }
}

/// Threads for each processor where most of the time is spent waiting for announcements.
const ANNOUNCING_THREADS: usize = 4;

impl Options {
    /// The profile that is judged.
    pub fn profile(&self) -> Option<Profile> {
        let named = self.profile.or(self.shipped_invariants.then_some(ProfileName::Baseline));
        named.and_then(ProfileName::profile)
    }

    /// How many threads decide.
    pub fn workers(&self) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        match (self.threads, self.replicas_mode) {
            (Some(threads), _) => threads as usize,
            (None, ReplicasMode::Announced) => processors * ANNOUNCING_THREADS,
            (None, _) => processors,
        }
    }

    /// What the webhook's configuration says, if it is to be kept.
    pub fn target(&self) -> Option<Target> {
        let reach = match (&self.webhook_service, &self.webhook_url) {
            (Some(name), _) => Reach::Service { name: name.clone(), port: SERVICE_PORT },
            (None, Some(url)) => Reach::Url(url.clone()),
            (None, None) => return None,
        };
        let installation =
            Installation { namespace: self.namespace.clone(), service_account: self.service_account.clone() };
        Some(Target {
            reach,
            failure_policy: self.failure_policy,
            installation,
            system_namespaces: self.system_namespaces.clone(),
            ..Target::default()
        })
    }

    /// The names and addresses under which the webhook is called.
    pub fn names(&self) -> Vec<String> {
        let ns = &self.namespace;
        let service = self.webhook_service.iter().flat_map(|name| [format!("{name}.{ns}.svc"), format!("{name}.{ns}")]);
        let called = self.webhook_url.iter().filter_map(|url| host(url));
        let mut names: Vec<String> = self.name.iter().cloned().chain(service).collect();
        for name in called {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// What this replica is called.
    pub fn identity(&self) -> String {
        let host = || std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
        self.identity.clone().unwrap_or_else(host)
    }
}

/// The name or address that a URL names.
fn host(url: &str) -> Option<String> {
    let url: Uri = url.parse().ok()?;
    Some(url.host()?.trim_matches(['[', ']']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn the_certificate_bears_the_host_of_the_url_that_the_webhook_is_called_by() {
        let names = |arguments: &[&str]| {
            let line = ["serve"].iter().chain(arguments);
            <Line as clap::Parser>::try_parse_from(line).unwrap().options.names()
        };
        assert_eq!(names(&[]), ["localhost", "127.0.0.1"]);
        assert_eq!(names(&["--webhook-url", "https://127.0.0.1:8443"]), ["localhost", "127.0.0.1"]);
        assert_eq!(names(&["--webhook-url", "https://127.0.0.1:8443", "--name", "a.b"]), ["a.b", "127.0.0.1"]);
        assert_eq!(names(&["--webhook-url", "https://[::1]:8443", "--name", "a.b"]), ["a.b", "::1"]);
        assert_eq!(names(&["--webhook-url", "https://hook.example", "--name", "a.b"]), ["a.b", "hook.example"]);
    }
}
