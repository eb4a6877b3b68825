//! A throwaway control plane: started in seconds, each part stoppable, gone without a trace at the end.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rcgen::KeyPair;

use crate::binaries::Binaries;
use crate::error::Error;
use crate::kubeconfig::{User, Users};
use crate::kubectl::Kubectl;
use crate::nodes::{Nodes, not_ready};
use crate::parts::{Layout, Part};
use crate::ports::Port;
use crate::process::{Process, Program};
use crate::wait;
use crate::watchdog::Watchdog;

/// Ten times what it takes on two idle processors.
const READY_MAX: Duration = Duration::from_secs(60);

/// If set, the folder with the logs is kept and named on standard error.
const KEEP: &str = "SUTURE_CONTROLPLANE_KEEP";

/// Everything, without bodies.
const AUDIT_POLICY: &str =
    "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: Metadata\n";

const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";
const SCHEDULER: &str = "system:kube-scheduler";
const KWOK: &str = "system:node:kwok";

/// What a cluster is to be like.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Who may ask besides `admin`, whom there always is. RBAC grants them nothing yet.
    pub users: Vec<User>,
    /// The nodes that it starts with.
    pub nodes: Nodes,
    /// An `AdmissionConfiguration` for the API server, such as one that names the client certificate for webhooks.
    pub admission_configuration: Option<PathBuf>,
    /// Further flags; one that is given twice counts the last time.
    pub flags: BTreeMap<Part, Vec<String>>,
}

/// A running control plane. Ends with this value, or with the process that holds it.
#[derive(Debug)]
pub struct Cluster {
    // they share the watchdog, which removes the folder when the last of them has been killed
    processes: BTreeMap<Part, Process>,
    users: Users,
    layout: Layout,
    binaries: Binaries,
    watchdog: Arc<Watchdog>,
}

impl Cluster {
    /// Starts a control plane and waits until it takes requests, its nodes take pods, and pods can be made.
    pub fn start(options: &Options) -> Result<Self, Error> {
        let Options { users, nodes, admission_configuration, flags } = options;
        let binaries = Binaries::find()?;
        let (folder, watchdog) = folder()?;
        let layout =
            Layout { folder, etcd: Port::reserve()?, etcd_peers: Port::reserve()?, api_server: Port::reserve()? };
        write(&layout.audit_policy(), AUDIT_POLICY)?;
        let key = KeyPair::generate()?;
        write(&layout.token_key(), &key.serialize_pem())?;
        write(&layout.token_public_key(), &key.public_key_pem())?;
        let users = [&essential_users(), users.as_slice()].concat();
        let users = Users::write(&layout.folder, &layout.server(), &layout.certificate(), &users)?;
        let admission = admission_configuration.as_deref();
        let mut processes = BTreeMap::new();
        for part in Part::ALL {
            let mut arguments = match part {
                Part::Etcd => layout.etcd_flags(),
                Part::ApiServer => layout.api_server_flags(&users.token_file(), admission),
                Part::ControllerManager => layout.controller_manager_flags(&users.kubeconfig(CONTROLLER_MANAGER)?),
                Part::Scheduler => layout.scheduler_flags(&users.kubeconfig(SCHEDULER)?),
                Part::Kwok => layout.kwok_flags(&users.kubeconfig(KWOK)?, &binaries.path("kwok-stages.yaml")),
            };
            arguments.extend(flags.get(&part).into_iter().flatten().cloned());
            let program = program(&layout.folder, part.name(), binaries.path(part.name()), arguments);
            processes.insert(part, Process::new(program, Arc::clone(&watchdog)));
        }
        let cluster = Self { processes, users, layout, binaries, watchdog };
        cluster.bring_up(nodes)?;
        Ok(cluster)
    }

    fn bring_up(&self, nodes: &Nodes) -> Result<(), Error> {
        self.launch(Part::Etcd)?;
        self.wait_listening(Part::Etcd, &self.layout.etcd)?;
        self.launch(Part::ApiServer)?;
        self.wait_ready()?;
        for part in [Part::ControllerManager, Part::Scheduler, Part::Kwok] {
            self.launch(part)?;
        }
        let admin = self.kubectl("admin")?;
        if nodes.count > 0 {
            admin.create(&nodes.manifest().to_string())?;
        }
        self.wait_for("nodes", || {
            let missing = not_ready(&admin.json(&["get", "nodes"]).map_err(|error| error.to_string())?, nodes.count);
            if missing.is_empty() { Ok(()) } else { Err(missing.join(", ")) }
        })?;
        // no pod is admitted in a namespace before its controller has made this (admission plugin ServiceAccount)
        self.wait_for("service account", || {
            admin.text(&["get", "serviceaccount", "default"]).map(drop).map_err(|error| error.to_string())
        })
    }

    /// Waits until the API server says that it is ready, as after it was launched again.
    pub fn wait_ready(&self) -> Result<(), Error> {
        self.wait_listening(Part::ApiServer, &self.layout.api_server)?;
        let admin = self.kubectl("admin")?;
        self.wait_for("API server", || {
            admin.text(&["get", "--raw=/readyz"]).map(drop).map_err(|error| error.to_string())
        })
    }

    /// Launches a part that was stopped or killed, on the ports and with the data that it had.
    pub fn launch(&self, part: Part) -> Result<(), Error> {
        self.process(part)?.launch()
    }

    /// Stops a part in good order.
    pub fn stop(&self, part: Part) -> Result<(), Error> {
        self.process(part)?.stop()
    }

    /// Kills a part with SIGKILL.
    pub fn kill(&self, part: Part) -> Result<(), Error> {
        self.process(part)?.kill()
    }

    /// Freezes a part: its connections stay open and nothing answers.
    pub fn pause(&self, part: Part) -> Result<(), Error> {
        self.process(part)?.pause()
    }

    /// Lets a paused part go on.
    pub fn resume(&self, part: Part) -> Result<(), Error> {
        self.process(part)?.resume()
    }

    /// The process of a part, for its number, memory and log.
    pub fn process(&self, part: Part) -> Result<&Process, Error> {
        self.processes.get(&part).ok_or_else(|| Error::State { part: part.to_string(), state: "not part of it" })
    }

    /// A further program beside the control plane, still down, such as a webhook that it calls. Its log is in the same folder,
    /// and it ends with whatever comes first: its value, or the process that holds it.
    pub fn attach(&self, name: &str, path: &Path, arguments: Vec<String>) -> Process {
        Process::new(program(self.folder(), name, path.to_owned(), arguments), Arc::clone(&self.watchdog))
    }

    /// kubectl as a user.
    pub fn kubectl(&self, user: &str) -> Result<Kubectl, Error> {
        Ok(Kubectl {
            program: self.binaries.path("kubectl"),
            kubeconfig: self.users.kubeconfig(user)?,
            cache: self.layout.folder.join("kubectl"),
        })
    }

    /// The kubeconfig of a user.
    pub fn kubeconfig(&self, user: &str) -> Result<PathBuf, Error> {
        self.users.kubeconfig(user)
    }

    /// The bearer token of a user.
    pub fn token(&self, user: &str) -> Result<&str, Error> {
        self.users.token(user)
    }

    /// The address of the API server.
    pub fn server(&self) -> String {
        self.layout.server()
    }

    /// The port of the API server.
    pub fn api_server_port(&self) -> u16 {
        self.layout.api_server.number()
    }

    /// The port of etcd, which speaks plain HTTP.
    pub fn etcd_port(&self) -> u16 {
        self.layout.etcd.number()
    }

    /// The certificates to trust the API server by, PEM.
    pub fn certificate(&self) -> PathBuf {
        self.layout.certificate()
    }

    /// Who asked for what, a JSON object a line (`audit.k8s.io/v1` `Event`).
    pub fn audit_log(&self) -> PathBuf {
        self.layout.audit_log()
    }

    /// Where everything is, logs included; what a test puts here goes with it.
    pub fn folder(&self) -> &Path {
        &self.layout.folder
    }

    /// The version of Kubernetes that it was built from, such as `v1.35.4`.
    pub fn version(&self) -> &str {
        self.binaries.version()
    }

    fn wait_listening(&self, part: Part, port: &Port) -> Result<(), Error> {
        self.wait_for(part.name(), || {
            let connected = TcpStream::connect((Ipv4Addr::LOCALHOST, port.number()));
            connected.map(drop).map_err(|error| error.to_string())
        })
    }

    /// Waits while all that was launched is still up.
    fn wait_for(&self, what: &str, mut attempt: impl FnMut() -> Result<(), String>) -> Result<(), Error> {
        wait::until(what, READY_MAX, || {
            let down =
                self.processes.values().filter(|process| process.pid().is_some()).find_map(|up| up.check().err());
            down.map_or_else(|| attempt().map(|()| Ok(())), |error| Ok(Err(error)))
        })?
    }
}

/// A new folder, and a watchdog that removes it.
fn folder() -> Result<(PathBuf, Arc<Watchdog>), Error> {
    let made = tempfile::Builder::new().prefix("suture-controlplane-").tempdir();
    let folder = made.map_err(Error::io(env::temp_dir().display().to_string()))?;
    let kept = env::var_os(KEEP).is_some_and(|value| !value.is_empty());
    let watchdog = Watchdog::start((!kept).then_some(folder.path()))?;
    if kept {
        eprintln!("controlplane: keeping {}", folder.path().display());
    }
    Ok((folder.keep(), Arc::new(watchdog)))
}

fn program(folder: &Path, name: &str, path: PathBuf, arguments: Vec<String>) -> Program {
    Program { name: name.to_owned(), path, arguments, home: folder.to_owned(), log: folder.join(format!("{name}.log")) }
}

/// Those without whom nothing works. RBAC has roles for the first ones; kwok writes for all kubelets, so it is of their group,
/// and no role lets one of them write for the others.
fn essential_users() -> Vec<User> {
    vec![
        User::admin(),
        User::new(CONTROLLER_MANAGER, &[]),
        User::new(SCHEDULER, &[]),
        User::new(KWOK, &["system:nodes", "system:masters"]),
    ]
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(Error::io(path.display().to_string()))
}
