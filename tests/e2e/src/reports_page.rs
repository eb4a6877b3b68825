//! `suture reports` of a user, as the cluster takes him to it: through the API server's proxy of a Service.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::error::Error;
use crate::kubectl::Kubectl;
use crate::objects::{list, pod_spec};
use crate::ports::Port;
use crate::suture::{NAMESPACE, Plan, Suture, get_from, program};

/// Suture with these invariants, whose reports are read on a port.
pub fn keeping_reports(cluster: &Cluster, port: &Port, invariants: Vec<Value>) -> Result<Suture, Error> {
    let folder = cluster.folder().join("reports").display().to_string();
    let flags = ["--reports", &folder, "--reports-listen", &format!("0.0.0.0:{}", port.number())];
    Suture::start(cluster, &Plan { flags: flags.map(str::to_owned).to_vec(), ..Plan::of(invariants) })
}

/// The id of the report that a denial names.
pub fn report_id(denial: &str) -> Option<String> {
    let (_, rest) = denial.split_once("--id ")?;
    rest.split(' ').next().map(str::to_owned)
}

/// A Service that leads to a port of this machine, by a pod that stands in for it: pods cannot run here, and an API server
/// proxies to addresses of pods alone (`isValidAddress` in Kubernetes' `pkg/registry/core/service/storage/storage.go`).
pub fn stand_in(admin: &Kubectl, port: u16) -> Result<(), Error> {
    let metadata = json!({"name": "suture-reports", "namespace": NAMESPACE});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec()});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata,
        "spec": {"ports": [{"name": "reports", "port": 9444}]}});
    let target = json!({"kind": "Pod", "name": "suture-reports", "namespace": NAMESPACE});
    let address = own_address().map_err(Error::io("finding an address of this machine"))?;
    let subset =
        json!({"addresses": [{"ip": address, "targetRef": target}], "ports": [{"name": "reports", "port": port}]});
    let endpoints = json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": [subset]});
    admin.create(&list(vec![pod, service, endpoints]))?;
    let status = json!({"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}});
    let scope = format!("--namespace={NAMESPACE}");
    let patch = ["patch", "pod", "suture-reports", &scope, "--subresource=status", "--type=merge", "--patch"];
    admin.text(&[&patch[..], &[&status.to_string()]].concat()).map(drop)
}

/// An address of this machine that a pod may have: not a loopback one. Nothing is sent.
fn own_address() -> std::io::Result<String> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect("192.0.2.1:9")?;
    Ok(socket.local_addr()?.ip().to_string())
}

/// `suture reports` of a user, which serves as long as this lives.
#[derive(Debug)]
pub struct ReportsPage {
    process: Child,
    port: u16,
    path: String,
}

impl ReportsPage {
    /// Opens it; what it says where it does not.
    pub fn open(cluster: &Cluster, user: &str) -> Result<Self, String> {
        let text = |error: Error| error.to_string();
        let mut command = Command::new(program());
        command.args(["reports", "--kubeconfig"]).arg(cluster.kubeconfig(user).map_err(text)?);
        let process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut process = process.map_err(|error| error.to_string())?;
        let mut line = String::new();
        if let Some(output) = process.stdout.take() {
            BufReader::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
        }
        let address = line.trim().split_once("http://127.0.0.1:").and_then(|(_, address)| address.split_once('/'));
        match address.and_then(|(port, path)| Some((port.parse().ok()?, format!("/{path}")))) {
            Some((port, path)) => Ok(Self { process, port, path }),
            None => {
                let output = process.wait_with_output().map_err(|error| error.to_string())?;
                Err(format!("{line}{}{}", output.status, String::from_utf8_lossy(&output.stderr)))
            }
        }
    }

    /// The address of the list, for a browser.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}{}", self.port, self.path)
    }

    /// The status and the text below its address.
    pub fn get(&self, path: &str) -> Result<(u16, String), Error> {
        self.get_of(&format!("127.0.0.1:{}", self.port), &format!("{}{path}", self.path))
    }

    /// The same of any path, asked of any host.
    pub fn get_of(&self, host: &str, path: &str) -> Result<(u16, String), Error> {
        get_from(host, self.port, path)
    }

    /// The path that only who was told its address knows.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for ReportsPage {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}
