//! `suture serve` as somebody installs it: the definitions, exactly the rights of `suture manifests rbac`, certificates and
//! a webhook that it keeps by itself.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::cluster::Cluster;
use crate::error::Error;
use crate::kubectl::Kubectl;
use crate::parts::REQUEST_TIMEOUT_SECS;
use crate::ports::Port;
use crate::process::Process;
use crate::suture::{NAMESPACE, get, program, ready, run, user, value};
use crate::wait;

/// How long it may take to be ready on a busy machine.
const READY_MAX: Duration = Duration::from_secs(60);

/// One replica.
#[derive(Debug)]
pub struct Installed {
    /// Its process.
    pub process: Process,
    name: String,
    webhook: Port,
    health: Port,
}

/// Installs the definitions, and the rights that `manifests rbac` prints for a policy (flags of it).
pub fn install(admin: &Kubectl, policy: &[&str]) -> Result<(), Error> {
    admin.apply(&run(&["manifests", "crds"])?)?;
    let established = ["wait", "--for=condition=Established", "crd", "--selector=app.kubernetes.io/name=suture"];
    admin.text(&established)?;
    admin.apply(&run(&[&["manifests", "rbac", "--namespace", NAMESPACE], policy].concat())?)
}

/// Prints the folder of OpenReports' definitions.
const OPEN_REPORTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../controlplane/definitions");

/// Installs the definitions of openreports.io, that project's own.
pub fn install_open_reports(admin: &Kubectl) -> Result<(), Error> {
    let output = Command::new(OPEN_REPORTS).stderr(Stdio::inherit()).output();
    let output = output.map_err(Error::io("finding the definitions of OpenReports"))?;
    let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    admin.text(&["create", "--filename", &folder])?;
    let names = ["reports", "clusterreports"].map(|plural| format!("crd/{plural}.openreports.io"));
    admin.text(&["wait", "--for=condition=Established", &names[0], &names[1], "--timeout=60s"]).map(drop)
}

impl Installed {
    /// A replica that is still down. The API server calls `url`, else the replica itself.
    pub fn new(cluster: &Cluster, name: &str, url: Option<&str>, flags: &[&str]) -> Result<Self, Error> {
        Self::on(cluster, name, [Port::reserve()?, Port::reserve()?], url, flags)
    }

    /// The same on given ports, for requests and for its health.
    pub fn on(
        cluster: &Cluster,
        name: &str,
        ports: [Port; 2],
        url: Option<&str>,
        flags: &[&str],
    ) -> Result<Self, Error> {
        let [webhook, health] = ports;
        let own = format!("https://127.0.0.1:{}", webhook.number());
        let mut arguments = vec!["serve".to_owned()];
        arguments.extend([
            format!("--kubeconfig={}", cluster.kubeconfig(&user().name)?.display()),
            format!("--namespace={NAMESPACE}"),
            format!("--identity={name}"),
            format!("--listen=127.0.0.1:{}", webhook.number()),
            format!("--health-listen=127.0.0.1:{}", health.number()),
            format!("--webhook-url={}", url.unwrap_or(&own)),
            "--drain-secs=0".to_owned(),
            format!("--request-timeout-secs={REQUEST_TIMEOUT_SECS}"),
        ]);
        arguments.extend(flags.iter().map(|&flag| flag.to_owned()));
        Ok(Self { process: cluster.attach(name, &program(), arguments), name: name.to_owned(), webhook, health })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is ready, and what is missing.
    pub fn ready(&self) -> Result<(), String> {
        ready(self.health.number())
    }

    /// The status and text of its readiness.
    pub fn readyz(&self) -> Result<(u16, String), Error> {
        get(self.health.number(), "/readyz")
    }

    /// Its metrics.
    pub fn metrics(&self) -> Result<String, Error> {
        get(self.health.number(), "/metrics").map(|(_, text)| text)
    }

    /// The value of a series, zero if there is none.
    pub fn counted(&self, series: &str) -> f64 {
        self.metrics().map_or(0.0, |text| value(&text, series))
    }

    /// The number of its webhook's port.
    pub fn port(&self) -> u16 {
        self.webhook.number()
    }

    /// Waits until it is ready.
    pub fn wait_ready(&self) -> Result<(), Error> {
        wait::until(&self.name, READY_MAX, || match (self.process.check(), self.ready()) {
            (Err(error), _) => Ok(Err(error)),
            (Ok(()), Ok(())) => Ok(Ok(())),
            (Ok(()), Err(missing)) => Err(missing),
        })?
    }
}

/// The requests of a user in the audit log of the API server.
pub fn requests(cluster: &Cluster, user: &str) -> Result<Vec<Value>, Error> {
    let path = cluster.audit_log();
    let text = std::fs::read_to_string(&path).map_err(Error::io(path.display().to_string()))?;
    // the last line may be half written
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(events.filter(|event| event.pointer("/user/username").and_then(Value::as_str) == Some(user)).collect())
}
