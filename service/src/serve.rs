//! `suture serve`: the admission backend in front of a cluster, all of its parts wired together.
//!
//! Watches tell the feed, which writes the store. The maintenance after each write ends what is in flight, and says which
//! kinds are wanted and whether this replica is ready. Requests come in through the router, wait for a worker, and are
//! judged with what the store and the in-flight log say.

use std::collections::BTreeSet;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs, UdpSocket};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use suture_model::kinds::Kind;
use tokio::runtime::Handle;
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::{Notify, oneshot, watch as latest};
use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::failure::Failure;

pub mod active;
pub mod announce;
pub mod answer;
pub mod api;
pub mod audits;
pub mod certificates;
pub mod cleared;
pub mod configuration;
pub mod connections;
pub mod costs;
pub mod disclosure;
pub mod emergency_switch;
pub mod events;
pub mod feed;
pub mod findings;
#[cfg(test)]
mod fixtures;
pub mod followers;
pub mod health;
pub mod in_flight_log;
pub mod judge;
pub mod kind_events;
pub mod kinds;
pub mod last_reads;
pub mod lease;
pub mod live;
pub mod loaded;
pub mod maintenance;
pub mod metrics;
pub mod near_audit;
pub mod off;
pub mod options;
pub mod overruns;
pub mod page;
pub mod paths;
pub mod pauses;
pub mod peers;
pub mod policies;
pub mod probe;
pub mod rbac;
pub mod register;
pub mod replica_tls;
pub mod reporter;
pub mod reports;
pub mod resources;
pub mod review;
pub mod router;
pub mod secret;
pub mod server;
pub mod spendings;
pub mod status;
pub mod store;
pub mod telemetry;
pub mod tls;
pub mod watch;
pub mod workers;

use active::Active;
use announce::Announcer;
use certificates::{CertificateError, Folder, Keeper, Lives, Vault, VaultError};
use disclosure::Disclosure;
use feed::{Feed, Probes};
use followers::{Followers, Leader};
use health::Readiness;
use in_flight_log::InFlightLog;
use judge::{JudgePool, Replicas, SharedState};
use kinds::Kinds;
use lease::{Candidacy, Candidate};
use loaded::Wanted;
use maintenance::Maintenance;
use metrics::Metrics;
use off::Off;
use options::{Options, ReplicasMode};
use overruns::Overruns;
use paths::Segments;
use peers::{Peer, There};
use policies::Policies;
use register::Registrar;
use reporter::Reporter;
use reports::Reports;
use reports::access::ApiServer;
use reports::api::Around;
use reports::board::Standing;
use reports::others::Others;
use reports::store::{Bounds, ReportStore};
use resources::{GROUP, RESOURCES, ResourceName};
use router::Terms;
use secret::SecretVault;
use server::{Drain, Listeners};
use spendings::Spendings;
use status::Said;
use store::Store;
use telemetry::Telemetry;
use tls::{Files, Rules, Tls};
use workers::{Limits, Workers};

/// What is added to the time that the API server gives a request, and to the lag that is borne, for clocks and scheduling.
const LIFETIME_MARGIN_SECS: u32 = 10;
/// Processors for each thread that serves connections and watches. With one thread each they wake one another for every
/// request, which takes more time than they share.
const CORES_PER_IO_THREAD: usize = 2;
/// How often the vault is opened anew when another replica has written to it meanwhile.
const VAULT_TRIES_MAX: usize = 5;
/// How often files with certificates are looked at.
const FILES_EVERY: Duration = Duration::from_secs(5);
/// Threads for Suture's own resources, which never wait for decisions: so many that no namespace takes all.
const OWN_WORKERS: usize = 2;
/// How long it waits for reports to be kept when it leaves.
const REPORTS_SETTLE_MAX: Duration = Duration::from_secs(3);

/// Serves until it is asked to leave.
///
/// # Errors
/// When it cannot start, or a listener fails.
pub fn run(options: &Options) -> Result<(), Failure> {
    // installed already if a test did
    _ = rustls::crypto::ring::default_provider().install_default();
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let runtime = |name: &str, threads: usize| {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(threads).thread_name(name).enable_all().build().map_err(Failure::invalid)
    };
    let (control, copying) = (runtime("suture-control", 1)?, runtime("suture-copies", 1)?);
    let served = runtime("suture-io", (cores / CORES_PER_IO_THREAD).max(1))?.block_on(async {
        let telemetry = Telemetry::start().map_err(Failure::invalid)?;
        let served = serve(options, control.handle(), copying.handle()).await;
        telemetry.stop();
        served
    });
    control.shutdown_background();
    copying.shutdown_background();
    served
}

/// Serves on this runtime; the Lease, readiness and health are on `control`, what passes between replicas is on `copying`.
async fn serve(options: &Options, control: &Handle, copying: &Handle) -> Result<(), Failure> {
    let mut policies = Policies::of_files(options.profile(), &options.invariants, &options.adapters)?;
    let listeners =
        Listeners::bind(options.listen, options.health_listen, control.clone()).map_err(Failure::invalid)?;
    let config = config(options.kubeconfig.as_deref(), options.context.as_deref()).await?;
    let client = Client::try_from(config.clone()).map_err(Failure::invalid)?;
    let metrics = Metrics::default();
    let store = Arc::new(Store::new(Arc::new(policies.load())));
    let in_flight_log = Arc::new(InFlightLog::lasting(lifetime_secs(options)));
    let again = latest::channel(0).0;
    let mut succession = match options.replicas_mode {
        ReplicasMode::Single => Some(Succession::start(options, control, &config, &in_flight_log, &again).await?),
        ReplicasMode::Announced | ReplicasMode::Audit => None,
    };
    let replicas = match &succession {
        Some(succession) => Replicas::Single(succession.active.clone()),
        None => replicas(options, &client, &store, &in_flight_log).await,
    };
    let (off, notices) = Off::new(metrics.clone());
    tokio::spawn(off::write_events(client.clone(), options.namespace.clone(), options.identity(), notices));
    let readiness = Readiness::expecting(&["policies", "kinds"]).unless_off(off.clone());
    let readiness = match &replicas {
        Replicas::Single(active) => readiness.while_active(active.clone()),
        Replicas::Announced(_) | Replicas::Audit => readiness,
    };
    let mut shared = SharedState::new(store.clone(), in_flight_log, replicas.clone());
    shared.unmodelled = options.unmodelled.into();
    shared.overruns = Arc::new(Overruns::counted(metrics.clone()));
    let mut kept = Kept::start(options, &config, &metrics)?;
    shared.reports = kept.as_ref().map(|kept| kept.reports.clone());
    let shared = Arc::new(shared);
    shared.pauses.watch({
        let again = again.clone();
        move || again.send_modify(|times| *times += 1)
    });
    follow(&client, policies, &shared, &again, options, &readiness, &metrics);
    let [workers, own] = crews(options, &shared, &metrics);
    let segments = Segments::default();
    let (tls, bundle, published) = certificates(options, &client, &readiness, &metrics, &segments).await?;
    if let Some(kept) = &mut kept {
        kept.serve(options.identity(), &client, &tls)?;
    }
    let followers = succession.as_mut().and_then(|succession| succession.follow(copying, &store, &tls));
    let registered = report(options, &client, &shared, &metrics, kept.as_ref());
    if let Some(target) = options.target() {
        let segments = segments.clone();
        let registrar =
            Registrar { store, target, bundle, segments, published, registered, off, readiness: readiness.clone() };
        tokio::spawn(registrar.run(client.clone()));
    }
    let terms = terms(options);
    let disclosure = Disclosure::by(Arc::new(ApiServer(client.clone())));
    let spendings = Spendings::start(&client, shared.in_flight_log.clone(), shared.store.clone());
    let confirmed_by = (followers, Some(spendings));
    let webhook =
        router::router([workers.clone(), own], terms, metrics.clone(), confirmed_by, segments, Some(disclosure));
    let health = health::router(readiness.clone(), metrics, workers);
    let said = |address: io::Result<SocketAddr>| address.map(|a| a.to_string()).unwrap_or_default();
    tracing::info!(webhook = said(listeners.webhook()), health = said(listeners.health()), "serving");
    // where one decides at a time, nobody else is ready before it has handed over
    let grace_secs = if succession.is_some() { 0 } else { options.drain_secs };
    let drain = Drain { grace: Duration::from_secs(grace_secs), ..Drain::default() };
    let stop = async {
        if let Err(error) = server::asked_to_leave().await {
            tracing::error!(%error, "signals cannot be heard");
        }
    };
    let hand_over = async {
        if let Some(succession) = succession {
            succession.hand_over().await;
        }
    };
    let served = listeners.serve(webhook, health, tls, readiness, drain, (stop, hand_over)).await;
    if let Some(kept) = kept {
        kept.reports.settle(REPORTS_SETTLE_MAX);
    }
    Peer::new(client, &options.namespace, options.identity()).leave().await;
    served.map_err(Failure::invalid)
}

/// When answers are due.
fn terms(options: &Options) -> Terms {
    Terms {
        deadline: Duration::from_millis(options.deadline_ms),
        margin: Duration::from_millis(options.margin_ms),
        on_overload: options.on_overload.into(),
    }
}

/// Who decides about requests, and who about Suture's own resources.
fn crews(options: &Options, shared: &Arc<SharedState>, metrics: &Metrics) -> [Workers; 2] {
    [options.workers(), OWN_WORKERS].map(|workers| {
        let limits = Limits { workers, queue_len_max: options.queue };
        Workers::start(Arc::new(JudgePool(shared.clone())), limits, metrics.clone())
    })
}

/// Where reports are kept, if they are.
struct Kept {
    reports: Reports,
    store: ReportStore,
    /// Where readers ask, until they are served.
    listener: Option<TcpListener>,
    /// Where other replicas ask, if readers are served.
    address: Option<String>,
    /// Which replicas there are, once it is known.
    there: (latest::Sender<There>, latest::Receiver<There>),
    /// How the invariants stand, once it is known.
    standings: (latest::Sender<Vec<Standing>>, latest::Receiver<Vec<Standing>>),
}

impl Kept {
    /// Keeps reports from now on, if a folder is given for them.
    fn start(options: &Options, config: &Config, metrics: &Metrics) -> Result<Option<Self>, Failure> {
        let Some(folder) = &options.reports else { return Ok(None) };
        let bounds = Bounds {
            bytes_max: u64::from(options.reports_max_mib) << 20,
            age_max: Duration::from_secs(u64::from(options.reports_max_days) * 24 * 60 * 60),
        };
        let in_pod = std::env::var_os("POD_NAME").is_some();
        let pod = options.identity.as_deref().filter(|_| in_pod).map(|pod| (options.namespace.as_str(), pod));
        let opens = reports::opening_line(folder, pod);
        let started = Reports::start(folder, bounds, &options.identity(), metrics.clone(), &opens);
        let (reports, store) = started.map_err(Failure::invalid)?;
        let listener = options.reports_listen.map(TcpListener::bind).transpose().map_err(Failure::invalid)?;
        let at = listener.as_ref().map(|listener| address(listener, config)).transpose().map_err(Failure::invalid)?;
        let (address, there) = (at.map(|at| at.to_string()), latest::channel(There::default()));
        Ok(Some(Self { reports, store, listener, address, there, standings: latest::channel(Vec::new()) }))
    }

    /// Answers readers from now on, if an address is given for them.
    fn serve(&mut self, identity: String, client: &Client, tls: &Tls) -> Result<(), Failure> {
        let Some(listener) = self.listener.take() else { return Ok(()) };
        let own = Tls::new(tls.identity(), None, Rules::default(), Metrics::default()).map_err(Failure::invalid)?;
        let others = Others { identity, there: self.there.1.clone(), tls: tls.clone() };
        let around = Around { others: Some(others), standings: Some(self.standings.1.clone()) };
        let routes = reports::api::router(self.store.clone(), Arc::new(ApiServer(client.clone())), around);
        let serving = reports::api::serve(listener, tls.clone(), own, routes);
        tokio::spawn(async move {
            if let Err(error) = serving.await {
                tracing::error!(%error, "nobody can read reports here");
            }
        });
        Ok(())
    }
}

/// How long what was admitted may be in flight.
fn lifetime_secs(options: &Options) -> i128 {
    i128::from(options.lag_max_secs + options.request_timeout_secs + LIFETIME_MARGIN_SECS)
}

/// Where one replica decides at a time: what it takes to become that one, and to be followed by another.
struct Succession {
    active: Active,
    followers: Followers,
    leader: latest::Receiver<Option<Leader>>,
    /// Where those that stand by connect to, until they are served.
    listener: Option<TcpListener>,
    leave: oneshot::Sender<()>,
    candidate: JoinHandle<()>,
}

impl Succession {
    /// Tries for the Lease, once and then for ever.
    async fn start(
        options: &Options,
        control: &Handle,
        config: &Config,
        in_flight_log: &Arc<InFlightLog>,
        again: &latest::Sender<u64>,
    ) -> Result<Self, Failure> {
        let listener = TcpListener::bind(options.replica_listen).map_err(Failure::invalid)?;
        let own = Candidacy {
            identity: options.identity(),
            address: address(&listener, config).map_err(Failure::invalid)?.to_string(),
            // the API server counts from the arrival of a request, which is before it asks
            landing: Duration::from_secs(options.request_timeout_secs.into()),
        };
        let client = {
            // its connections are driven there
            let _on = control.enter();
            Client::try_from(config.clone()).map_err(Failure::invalid)?
        };
        let active = Active::default();
        let followers = Followers::of(in_flight_log.clone(), active.clone(), &own.identity);
        let mut candidate =
            Candidate::new(client, &options.namespace, own, active.clone(), followers.clone(), again.clone());
        let leader = candidate.leader();
        let (leave, asked) = oneshot::channel();
        let first = control.spawn(async move {
            candidate.attempt().await;
            candidate
        });
        let candidate = control.spawn(first.await.map_err(Failure::invalid)?.run(asked));
        Ok(Self { active, followers, leader, listener: Some(listener), leave, candidate })
    }

    /// Starts to follow whoever decides, and to be followed. Gives those who follow.
    fn follow(&mut self, copying: &Handle, store: &Arc<Store>, tls: &Tls) -> Option<Followers> {
        let listener = self.listener.take()?;
        let serving = self.followers.clone().serve(listener, tls.clone());
        copying.spawn(async move {
            if let Err(error) = serving.await {
                tracing::error!(%error, "no replica can follow this one");
            }
        });
        copying.spawn(self.followers.clone().follow(store.clone(), self.leader.clone(), tls.clone()));
        Some(self.followers.clone())
    }

    /// Decides nothing any more, and lets another replica take over.
    async fn hand_over(self) {
        self.active.leave();
        // it has ended only where the process ends
        _ = self.leave.send(());
        _ = tokio::time::timeout(lease::HANDOVER_MAX, self.candidate).await;
    }
}

/// Where other replicas reach a listener: if it listens everywhere, the address from which this one calls the API server.
fn address(listener: &TcpListener, config: &Config) -> io::Result<SocketAddr> {
    let bound = listener.local_addr()?;
    if !bound.ip().is_unspecified() {
        return Ok(bound);
    }
    let host = config.cluster_url.host().unwrap_or_default().trim_matches(['[', ']']);
    let server = (host, config.cluster_url.port_u16().unwrap_or(443)).to_socket_addrs()?.next();
    let server = server.ok_or_else(|| io::Error::other(format!("`{host}` has no address")))?;
    let unspecified = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    // nothing is sent
    let socket = UdpSocket::bind(unspecified)?;
    socket.connect(server)?;
    Ok(SocketAddr::new(socket.local_addr()?.ip(), bound.port()))
}

/// Where the API server is, and who this is to it.
///
/// # Errors
/// When the kubeconfig cannot be read, or there is none.
pub async fn config(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Config, Failure> {
    let kube = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    match (kubeconfig, context) {
        (Some(path), _) => {
            let read = Kubeconfig::read_from(path).map_err(Failure::invalid)?;
            Config::from_custom_kubeconfig(read, &kube).await.map_err(Failure::invalid)
        }
        (None, Some(_)) => Config::from_kubeconfig(&kube).await.map_err(Failure::invalid),
        (None, None) => Config::infer().await.map_err(Failure::invalid),
    }
}

/// How replicas share the work where there is no Lease. Announcements are read before anything else is.
async fn replicas(options: &Options, client: &Client, store: &Arc<Store>, log: &Arc<InFlightLog>) -> Replicas {
    if options.replicas_mode != ReplicasMode::Announced {
        return Replicas::Audit;
    }
    let announcer = Arc::new(Announcer::new(client.clone(), &options.namespace, log.clone(), lifetime_secs(options)));
    let (events, told) = channel();
    tokio::spawn(watch::follow(client.clone(), announcer.place(), events, latest::channel(0).1));
    let (listening, shown) = (announcer.clone(), store.clone());
    thread::spawn(move || listening.listen(&told, &shown));
    while !announcer.listed() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Replicas::Announced(announcer)
}

/// Starts to follow the cluster: what the policy needs, and the policy itself.
fn follow(
    client: &Client,
    policies: Policies,
    shared: &Arc<SharedState>,
    again: &latest::Sender<u64>,
    options: &Options,
    readiness: &Readiness,
    metrics: &Metrics,
) {
    let probes = Probes::default();
    tokio::spawn(probe::run(client.clone(), probes.clone()));
    let (wanted, wants) = latest::channel(Wanted::default());
    let maintenance = Maintenance::new(shared.clone(), wanted, readiness.clone(), metrics.clone());
    let nudge = Arc::new(Notify::new());
    let lag_max = Duration::from_secs(options.lag_max_secs.into());
    let feed = Feed::new(shared.store.clone(), probes, lag_max, nudge.clone(), maintenance);
    let (events, told) = channel();
    thread::spawn(move || feed.run(&told));
    tokio::spawn(Kinds::new(client.clone(), events, nudge.clone(), again.subscribe()).run(wants));

    let (events, told) = channel();
    let own = RESOURCES.iter().map(|resource| Kind::new(GROUP, resource.kind));
    let own: BTreeSet<Kind> = own.chain(Kind::builtin(policies::DEFINITION)).collect();
    let (sender, own) = latest::channel(Wanted { kinds: own, every: false });
    let kinds = Kinds::new(client.clone(), events, nudge, latest::channel(0).1);
    tokio::spawn(async move {
        kinds.run(own).await;
        drop(sender);
    });
    let (shared, readiness) = (shared.clone(), readiness.clone());
    thread::spawn(move || policies.follow(&told, &shared.store, &shared.in_flight_log, &readiness));
}

/// Starts to say how Suture's own resources stand; gives back whom to tell whether the API server asks.
fn report(
    options: &Options,
    client: &Client,
    shared: &SharedState,
    metrics: &Metrics,
    kept: Option<&Kept>,
) -> latest::Sender<Result<(), String>> {
    let identity = options.identity();
    let (sender, there) = kept.map_or_else(|| latest::channel(There::default()), |kept| kept.there.clone());
    let peer = Peer::new(client.clone(), &options.namespace, identity.clone());
    tokio::spawn(peer.showing_reports(kept.and_then(|kept| kept.address.clone())).run(sender));
    // where somebody else registers the webhook, requests come or they do not
    let standing = if options.target().is_some() { Err("not registered yet".to_owned()) } else { Ok(()) };
    let (teller, registered) = latest::channel(standing);
    let SharedState { store, replicas, overruns, costs, .. } = shared;
    let (findings, found) = unbounded_channel();
    let reporter = Reporter {
        store: store.clone(),
        replicas: replicas.clone(),
        overruns: overruns.clone(),
        costs: costs.clone(),
        identity: identity.clone(),
        there,
        registered,
        standings: kept.map(|kept| kept.standings.0.clone()),
        metrics: metrics.clone(),
        telling: options.telling,
        findings,
    };
    tokio::spawn(findings::write(client.clone(), found, options.telling));
    let (sender, said) = latest::channel(Said::default());
    thread::spawn(move || reporter.run(&sender));
    let time = || Clock::now().to_string();
    let failed =
        |name: &ResourceName, why| tracing::warn!(resource = name.label(), why, "its status cannot be written");
    let writer = status::Writer { pod: identity, namespace: options.namespace.clone() };
    tokio::spawn(status::write(client.clone(), writer, said, time, failed));
    teller
}

/// TLS for the webhook, from files that somebody else keeps or with certificates of our own; what the API server is to
/// trust, and whom to tell what it was given.
async fn certificates(
    options: &Options,
    client: &Client,
    readiness: &Readiness,
    metrics: &Metrics,
    segments: &Segments,
) -> Result<(Tls, latest::Receiver<String>, latest::Sender<String>), Failure> {
    if let Some(path) = &options.path_token {
        let text = std::fs::read_to_string(path).map_err(|error| Failure::read(path, error))?;
        segments.set(paths::chosen(&text).map_err(Failure::invalid)?, Vec::new());
    }
    let rules = Rules { tls12: options.tls12, client_names: options.client_name.iter().cloned().collect() };
    let identity = options.tls_cert.clone().zip(options.tls_key.clone());
    let files = Files { identity, client_authority: options.client_ca.clone() };
    let client_authority = files.client_authority().map_err(Failure::invalid)?;
    let (published, given) = latest::channel(String::new());
    if let Some(identity) = files.identity().map_err(Failure::invalid)? {
        let tls = Tls::new(identity, client_authority, rules, metrics.clone()).map_err(Failure::invalid)?;
        let read = |path: &PathBuf| std::fs::read_to_string(path).map_err(|error| Failure::read(path, error));
        let authority = options.tls_ca.as_ref().map(read).transpose()?.unwrap_or_default();
        if segments.current().is_none() && options.client_ca.is_none() {
            tracing::warn!("whoever reaches the port may ask: give --path-token or --client-ca");
        }
        tokio::spawn(files.follow(tls.clone(), FILES_EVERY));
        return Ok((tls, latest::channel(authority).1, published));
    }
    let vault: Arc<dyn Vault> = match &options.certificates {
        Some(folder) => Arc::new(Folder::at(folder.clone())),
        None => Arc::new(SecretVault::new(client.clone(), &options.namespace)),
    };
    let names = options.names();
    let keeper = tokio::task::spawn_blocking(move || open(&vault, &names)).await;
    let keeper = keeper.map_err(Failure::invalid)??;
    let tls = Tls::new(keeper.identity(), client_authority, rules, metrics.clone()).map_err(Failure::invalid)?;
    let (sender, bundle) = latest::channel(keeper.bundle());
    // where nobody publishes, what is to be published counts as published
    let given = if options.target().is_some() { given } else { bundle.clone() };
    // who writes the configuration by hand cannot know it
    let derived = (options.target().is_some() && options.path_token.is_none()).then(|| segments.clone());
    if let Some(segments) = &derived {
        keeper.tell_segments(segments);
    }
    tokio::spawn(keeper.keep(tls.clone(), sender, given, readiness.clone(), None, derived));
    if files.client_authority.is_some() {
        tokio::spawn(files.follow(tls.clone(), FILES_EVERY));
    }
    Ok((tls, bundle, published))
}

/// Opens the vault; another replica may be opening it, too.
fn open(vault: &Arc<dyn Vault>, names: &[String]) -> Result<Keeper, Failure> {
    let mut tries = VAULT_TRIES_MAX;
    loop {
        match Keeper::open(vault.clone(), names.to_vec(), Lives::default()) {
            Err(CertificateError::Vault(VaultError::Changed)) if tries > 1 => tries -= 1,
            opened => return opened.map_err(Failure::invalid),
        }
    }
}
