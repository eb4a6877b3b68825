//! `suture serve` beside a control plane: its replicas, their certificate, and the webhook that sends them requests.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::authority::{Authority, HOST};
use crate::balancer::Balancer;
use crate::cluster::Cluster;
use crate::error::Error;
use crate::kubeconfig::User;
use crate::kubectl::Kubectl;
use crate::parts::REQUEST_TIMEOUT_SECS;
use crate::ports::Port;
use crate::process::Process;
use crate::wait;

/// The variable that names the program; without it, what `make build` makes.
const SUTURE: &str = "SUTURE";
/// Its namespace.
pub const NAMESPACE: &str = "suture-system";
/// Its service account.
const ACCOUNT: &str = "suture";
/// How long the API server waits for it, in seconds.
pub const TIMEOUT_SECS: u64 = 2;
/// How long it may take to be ready on a busy machine.
const READY_MAX: Duration = Duration::from_secs(60);
/// How long a probe may take.
const PROBE_MAX: Duration = Duration::from_secs(5);

/// How it is to run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How many replicas. Two or more stand behind a balancer, which asks those that are ready.
    pub replicas: usize,
    /// How they share the work: what `--replicas-mode` takes.
    pub mode: &'static str,
    /// Invariants, templates and whatever else `--invariants` takes.
    pub policy: Vec<Value>,
    /// Adapters.
    pub adapters: Vec<Value>,
    /// Further flags.
    pub flags: Vec<String>,
    /// The port on this machine where it finds the API server, if that is not the API server's own.
    pub server: Option<u16>,
    /// Whether it keeps its certificates and the webhook's configuration by itself; otherwise the suite does both, by
    /// [`Suture::rotate`] and [`Suture::register`].
    pub by_itself: bool,
}

impl Plan {
    /// One replica with an invariant for each shipped template.
    pub fn shipped() -> Self {
        Self { flags: vec!["--profile".to_owned(), "strict".to_owned()], ..Self::of(Vec::new()) }
    }

    /// One replica with these invariants.
    pub fn of(policy: Vec<Value>) -> Self {
        Self {
            replicas: 1,
            mode: "single",
            policy,
            adapters: Vec::new(),
            flags: Vec::new(),
            server: None,
            by_itself: false,
        }
    }
}

/// One process of it.
#[derive(Debug)]
pub struct Replica {
    /// The process.
    pub process: Process,
    webhook: Port,
    health: Port,
}

/// All of it. Ends with this value, or with the cluster's.
pub struct Suture {
    /// The replicas.
    pub replicas: Vec<Replica>,
    authority: Authority,
    _balancer: Option<Balancer>,
    url: String,
    folder: PathBuf,
    policy: Vec<String>,
    mode: &'static str,
}

/// Who it is in the cluster. To be named in the options of the cluster.
pub fn user() -> User {
    User::service_account(NAMESPACE, ACCOUNT)
}

/// The program under test.
pub fn program() -> PathBuf {
    let built = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/release/suture");
    env::var_os(SUTURE).map_or_else(built, PathBuf::from)
}

impl Suture {
    /// Starts the replicas and waits until they are ready. Nothing is sent to them before [`Self::register`].
    pub fn start(cluster: &Cluster, plan: &Plan) -> Result<Self, Error> {
        let admin = cluster.kubectl("admin")?;
        admin.apply(&home().to_string())?;
        let folder = cluster.folder().join("suture");
        fs::create_dir_all(&folder).map_err(Error::io(folder.display().to_string()))?;
        let mut policy = Vec::new();
        for (flag, file, documents) in
            [("--invariants", "policy.yaml", &plan.policy), ("--adapters", "adapters.yaml", &plan.adapters)]
        {
            if !documents.is_empty() {
                let texts: Vec<String> = documents.iter().map(|document| format!("---\n{document}\n")).collect();
                write(&folder.join(file), &texts.concat())?;
                policy.extend([flag.to_owned(), folder.join(file).display().to_string()]);
            }
        }
        let ports = (0..plan.replicas).map(|_| Ok([Port::reserve()?, Port::reserve()?]));
        let ports = ports.collect::<Result<Vec<[Port; 2]>, Error>>()?;
        let health: BTreeMap<u16, u16> =
            ports.iter().map(|[webhook, health]| (webhook.number(), health.number())).collect();
        let balancer = match ports.as_slice() {
            [] | [_] => None,
            several => {
                let is_ready = move |port: u16| health.get(&port).is_some_and(|health| ready(*health).is_ok());
                let targets = several.iter().map(|[webhook, _]| webhook.number());
                Some(Balancer::start_where(targets.collect(), is_ready)?)
            }
        };
        let first = ports.first().map(|[webhook, _]| webhook.number());
        let front = balancer.as_ref().map(Balancer::port).or(first);
        let url = format!("https://{HOST}:{}", front.unwrap_or_default());
        let (replicas, mode) = (Vec::new(), plan.mode);
        let mut suture =
            Self { replicas, authority: Authority::new()?, _balancer: balancer, url, folder, policy, mode };
        write(&suture.folder.join("authority.pem"), suture.authority.certificate())?;
        suture.rotate()?;
        for (number, ports) in ports.into_iter().enumerate() {
            let replica = suture.replica(cluster, number, ports, plan)?;
            suture.replicas.push(replica);
        }
        for replica in &suture.replicas {
            replica.process.launch()?;
        }
        suture.wait_ready()?;
        Ok(suture)
    }

    fn replica(&self, cluster: &Cluster, number: usize, ports: [Port; 2], plan: &Plan) -> Result<Replica, Error> {
        let [webhook, health] = ports;
        let name = format!("suture-{number}");
        let mut kubeconfig = cluster.kubeconfig(&user().name)?;
        if let Some(port) = plan.server {
            let text = fs::read_to_string(&kubeconfig).map_err(Error::io(kubeconfig.display().to_string()))?;
            kubeconfig = self.folder.join("kubeconfig");
            let own = format!(":{}", cluster.api_server_port());
            write(&kubeconfig, &text.replace(&own, &format!(":{port}")))?;
        }
        let file = |name: &str| self.folder.join(name).display().to_string();
        let own = [("webhook-url", self.url.clone()), ("name", HOST.to_owned())];
        let given = [("tls-cert", file("tls.crt")), ("tls-key", file("tls.key"))];
        let tls = if plan.by_itself { own.as_slice() } else { given.as_slice() };
        let mut flags: Vec<String> = [
            ("kubeconfig", kubeconfig.display().to_string()),
            ("namespace", NAMESPACE.to_owned()),
            ("identity", name.clone()),
            ("listen", format!("127.0.0.1:{}", webhook.number())),
            ("health-listen", format!("127.0.0.1:{}", health.number())),
            ("replicas-mode", plan.mode.to_owned()),
            ("request-timeout-secs", REQUEST_TIMEOUT_SECS.to_string()),
        ]
        .iter()
        .chain(tls)
        .map(|(flag, value)| format!("--{flag}={value}"))
        .collect();
        flags.extend(self.policy.iter().chain(&plan.flags).cloned());
        flags.insert(0, "serve".to_owned());
        Ok(Replica { process: cluster.attach(&name, &program(), flags), webhook, health })
    }

    /// Waits until every replica that is up is ready; where one decides at a time, until one is.
    pub fn wait_ready(&self) -> Result<(), Error> {
        if self.mode == "single" && self.replicas.len() > 1 {
            return wait::until("one of the replicas", READY_MAX, || {
                if self.replicas.iter().any(Replica::is_ready) { Ok(()) } else { Err("none is ready".to_owned()) }
            });
        }
        self.replicas.iter().filter(|replica| replica.process.pid().is_some()).try_for_each(Replica::wait_ready)
    }

    /// Has the API server send requests here.
    pub fn register(&self, admin: &Kubectl) -> Result<(), Error> {
        let bundle = self.folder.join("authority.pem").display().to_string();
        let mut arguments = vec!["manifests", "webhook", "--url", &self.url, "--ca-bundle", &bundle];
        arguments.extend(self.policy.iter().map(String::as_str));
        admin.apply(&run(&arguments)?)
    }

    /// Takes the webhook away.
    pub fn unregister(&self, admin: &Kubectl) -> Result<(), Error> {
        admin.text(&["delete", "validatingwebhookconfiguration", "suture", "--ignore-not-found"]).map(drop)
    }

    /// Puts a new certificate of the same authority in the place of the one that is served.
    pub fn rotate(&self) -> Result<(), Error> {
        let identity = self.authority.identity()?;
        // each by a rename; between the two they do not belong together, which must be borne
        for (file, text) in [("tls.key", identity.key), ("tls.crt", identity.certificate)] {
            let (next, place) = (self.folder.join(format!("{file}.next")), self.folder.join(file));
            write(&next, &text)?;
            fs::rename(&next, &place).map_err(Error::io(place.display().to_string()))?;
        }
        Ok(())
    }

    /// The sum of a series over the replicas that are up.
    pub fn counted(&self, series: &str) -> f64 {
        self.replicas.iter().filter_map(|replica| replica.metrics().ok()).map(|text| value(&text, series)).sum()
    }
}

impl Replica {
    /// Waits until it is ready.
    pub fn wait_ready(&self) -> Result<(), Error> {
        wait::until("suture", READY_MAX, || {
            if let Err(error) = self.process.check() {
                return Ok(Err(error));
            }
            ready(self.health.number()).map(Ok)
        })?
    }

    /// Whether it says that it is ready.
    pub fn is_ready(&self) -> bool {
        ready(self.health.number()).is_ok()
    }

    /// Its metrics.
    pub fn metrics(&self) -> Result<String, Error> {
        self.get("/metrics").map(|(_, text)| text)
    }

    /// The value of a series, zero if there is none.
    pub fn counted(&self, series: &str) -> f64 {
        self.metrics().map_or(0.0, |text| value(&text, series))
    }

    /// The number of its webhook's port.
    pub fn port(&self) -> u16 {
        self.webhook.number()
    }

    fn get(&self, path: &str) -> Result<(u16, String), Error> {
        get(self.health.number(), path)
    }
}

/// Which replica holds the Lease, and which processes have a copy of what is in flight there (`NAME/...`, by commas).
pub fn lease(admin: &Kubectl) -> (String, String) {
    let lease = admin.json(&["get", "lease", "suture", "--namespace", NAMESPACE]).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&lease["spec"]["holderIdentity"]), text(&lease["metadata"]["annotations"]["suture.dev/followers"]))
}

/// Whether the replica whose health this port tells is ready, and what is missing.
pub fn ready(port: u16) -> Result<(), String> {
    match get(port, "/readyz") {
        Ok((200, _)) => Ok(()),
        Ok((_, missing)) => Err(missing),
        Err(error) => Err(error.to_string()),
    }
}

/// The status and text of a path of the health listener on this port.
pub fn get(port: u16, path: &str) -> Result<(u16, String), Error> {
    get_from("localhost", port, path)
}

/// The status and text of a path at this port of this machine, asked for by the name of a host.
pub fn get_from(host: &str, port: u16, path: &str) -> Result<(u16, String), Error> {
    let got = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).and_then(|mut stream| {
        stream.set_read_timeout(Some(PROBE_MAX))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    });
    let text = got.map_err(Error::io(path))?;
    let code = text.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    Ok((code, text.split_once("\r\n\r\n").map_or_else(String::new, |(_, body)| body.to_owned())))
}

/// The value of a series in the text of Prometheus, such as `suture_shed_total`; with labels, `name{label="value"}`.
pub fn value(metrics: &str, series: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

/// Its namespace, account and rights.
fn home() -> Value {
    let account = json!({"kind": "ServiceAccount", "namespace": NAMESPACE, "name": ACCOUNT});
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "suture"},
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
         "subjects": [account]},
    ]})
}

/// Runs `suture` to its end; what it prints.
pub fn run(arguments: &[&str]) -> Result<String, Error> {
    let output = Command::new(program()).args(arguments).output().map_err(Error::io("suture"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
    Err(Error::Suture { arguments: arguments.join(" "), stderr })
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(Error::io(path.display().to_string()))
}
