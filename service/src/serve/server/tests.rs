//! The webhook over real sockets: certificates that change under a connection, clients that must show theirs, leaving.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use suture_specs::spec::OnUndecided;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use super::*;
use crate::serve::certificates::{Folder, Keeper, Lives};
use crate::serve::fixtures::{Scripted, review, series, terms, until, workers};
use crate::serve::metrics::Metrics;
use crate::serve::paths::Segments;
use crate::serve::tls::{Files, Identity, Rules};
use crate::serve::{health, router};

type Trouble = Box<dyn std::error::Error + Send + Sync>;

/// Certificates in a folder of their own, gone when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("suture-server-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn keeper(&self, part: &str, names: &[&str], lives: Lives) -> Keeper {
        let folder = self.0.join(part);
        std::fs::create_dir_all(&folder).unwrap();
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Keeper::open(Arc::new(Folder::at(folder)), names, lives).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Running {
    webhook: SocketAddr,
    health: SocketAddr,
    script: Arc<Scripted>,
    metrics: Metrics,
    readiness: Readiness,
    tls: Tls,
    stop: oneshot::Sender<()>,
    done: JoinHandle<io::Result<()>>,
}

fn run(identity: Identity, authority: Option<String>, rules: Rules, drain: Drain) -> Running {
    let (script, metrics) = (Arc::new(Scripted::default()), Metrics::default());
    let workers = workers(&script, 4, 8, &metrics);
    let crews = [workers.clone(), workers.clone()];
    let tls = Tls::new(identity, authority, rules, metrics.clone()).unwrap();
    let readiness = Readiness::expecting(&["serving"]);
    let listeners = Listeners::bind(([127, 0, 0, 1], 0).into(), ([127, 0, 0, 1], 0).into(), Handle::current()).unwrap();
    let (webhook, health) = (listeners.webhook().unwrap(), listeners.health().unwrap());
    let router =
        router::router(crews, terms(OnUndecided::Deny), metrics.clone(), (None, None), Segments::default(), None);
    let probes = health::router(readiness.clone(), metrics.clone(), workers);
    let (stop, stopped) = oneshot::channel();
    let leave = (async { _ = stopped.await }, async {});
    let done = tokio::spawn(listeners.serve(router, probes, tls.clone(), readiness.clone(), drain, leave));
    Running { webhook, health, script, metrics, readiness, tls, stop, done }
}

enum Sender {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

/// A connection as an API server makes it.
struct Client {
    sender: Sender,
    /// The certificate that was shown to it.
    shown: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    One,
    Two,
}

impl Client {
    async fn connect(
        address: SocketAddr,
        bundle: &str,
        own: Option<&Identity>,
        protocol: Protocol,
    ) -> Result<Self, Trouble> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
            roots.add(certificate?)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let config = config.with_root_certificates(roots);
        let mut config = match own {
            None => config.with_no_client_auth(),
            Some(own) => {
                let chain = vec![CertificateDer::from_pem_slice(own.chain.as_bytes())?];
                config.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(own.key.as_bytes())?)?
            }
        };
        config.alpn_protocols = vec![if protocol == Protocol::One { b"http/1.1".to_vec() } else { b"h2".to_vec() }];
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from("localhost")?;
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        let (_, tls) = stream.get_ref();
        assert_eq!(tls.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_3));
        let shown = tls.peer_certificates().unwrap()[0].to_vec();
        let stream = TokioIo::new(stream);
        let sender = match protocol {
            Protocol::One => {
                let (sender, connection) = http1::handshake(stream).await?;
                tokio::spawn(connection);
                Sender::One(sender)
            }
            Protocol::Two => {
                let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
                tokio::spawn(connection);
                Sender::Two(sender)
            }
        };
        Ok(Self { sender, shown })
    }

    async fn judge(&mut self, name: &str) -> Result<Value, Trouble> {
        let body = Full::new(Bytes::from(review("u-1", name).to_string()));
        let request = Request::post("https://localhost/validate?timeout=10s").header("host", "localhost").body(body)?;
        let response = match &mut self.sender {
            Sender::One(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Sender::Two(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
        };
        assert_eq!(response.status(), 200);
        let body = response.into_body().collect().await?.to_bytes();
        Ok(serde_json::from_slice::<Value>(&body)?["response"].clone())
    }
}

/// The status and text of the health listener.
async fn probe(address: SocketAddr, path: &str) -> Result<(u16, String), Trouble> {
    let stream = TokioIo::new(TcpStream::connect(address).await?);
    let (mut sender, connection) = http1::handshake(stream).await?;
    tokio::spawn(connection);
    let request = Request::get(path).header("host", "localhost").body(Full::new(Bytes::new()))?;
    let response = sender.send_request(request).await?;
    let status = response.status().as_u16();
    Ok((status, String::from_utf8(response.into_body().collect().await?.to_bytes().to_vec())?))
}

const AT_ONCE: Drain = Drain { grace: Duration::ZERO, patience: Duration::from_secs(5) };

#[tokio::test]
async fn a_certificate_rotates_under_a_connection_that_goes_on() {
    let scratch = Scratch::new("rotation");
    // an authority of 9 s is followed after 7 s
    let second = Duration::from_secs(1);
    let lives = Lives { authority: second * 9, serving: second * 8, overlap: second };
    let keeper = scratch.keeper("own", &["localhost"], lives);
    let first_bundle = keeper.bundle();
    let running = run(keeper.identity(), None, Rules::default(), AT_ONCE);
    for protocol in [Protocol::One, Protocol::Two] {
        let mut client = Client::connect(running.webhook, &first_bundle, None, protocol).await.unwrap();
        assert_eq!(client.judge("web").await.unwrap()["allowed"], true);
    }
    let mut old = Client::connect(running.webhook, &first_bundle, None, Protocol::Two).await.unwrap();
    let mut old_one = Client::connect(running.webhook, &first_bundle, None, Protocol::One).await.unwrap();

    let (bundle, published) = watch::channel(first_bundle.clone());
    let every = Some(Duration::from_millis(100));
    let keeping = keeper.keep(running.tls.clone(), bundle, published.clone(), running.readiness.clone(), every, None);
    let keeping = tokio::spawn(keeping);
    until("the first authority is not trusted any more", || {
        !published.borrow().contains(first_bundle.trim()) && running.readiness.ready().is_ok()
    })
    .await;
    let now = published.borrow().clone();
    let mut new = Client::connect(running.webhook, &now, None, Protocol::Two).await.unwrap();
    assert_ne!(new.shown, old.shown);
    assert!(Client::connect(running.webhook, &first_bundle, None, Protocol::Two).await.is_err());
    for client in [&mut old, &mut old_one, &mut new] {
        assert_eq!(client.judge("denied").await.unwrap()["allowed"], false);
    }
    assert!(series(&running.metrics, "suture_certificate_swaps_total") >= 2.0);
    keeping.abort();
}

#[tokio::test]
async fn certificates_are_taken_over_from_files_when_they_are_whole() {
    let scratch = Scratch::new("files");
    let [one, two] = ["one", "two"].map(|part| scratch.keeper(part, &["localhost"], Lives::default()));
    let (chain, key) = (scratch.0.join("tls.crt"), scratch.0.join("tls.key"));
    let write = |identity: &Identity| {
        std::fs::write(&chain, &identity.chain).unwrap();
        std::fs::write(&key, &identity.key).unwrap();
    };
    write(&one.identity());
    let files = Files { identity: Some((chain.clone(), key.clone())), client_authority: None };
    let running = run(files.identity().unwrap().unwrap(), None, Rules::default(), AT_ONCE);
    tokio::spawn(files.follow(running.tls.clone(), Duration::from_millis(20)));
    let mut old = Client::connect(running.webhook, &one.bundle(), None, Protocol::Two).await.unwrap();
    // half of the new pair is no pair
    std::fs::write(&chain, two.identity().chain).unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(Client::connect(running.webhook, &one.bundle(), None, Protocol::Two).await.is_ok());
    write(&two.identity());
    until("the new pair is served", || series(&running.metrics, "suture_certificate_swaps_total") >= 2.0).await;
    let new = Client::connect(running.webhook, &two.bundle(), None, Protocol::Two).await.unwrap();
    assert_ne!(new.shown, old.shown);
    assert_eq!(old.judge("web").await.unwrap()["allowed"], true);
}

#[tokio::test]
async fn only_clients_of_the_authority_and_of_the_name_are_served() {
    let scratch = Scratch::new("clients");
    let keeper = |part: &str, name: &str| scratch.keeper(part, &[name], Lives::default());
    let own = keeper("own", "localhost");
    let clients = [client_pair("kube-apiserver"), client_pair("somebody")];
    let [(authority, api_server), (others, somebody)] = &clients;
    let rules = Rules { client_names: BTreeSet::from(["kube-apiserver".to_owned()]), tls12: false };
    let running = run(own.identity(), Some(format!("{authority}{others}")), rules, AT_ONCE);
    let mut admitted = Vec::new();
    for client in [Some(api_server), Some(somebody), Some(&client_pair("kube-apiserver").1), None] {
        let connected = Client::connect(running.webhook, &own.bundle(), client, Protocol::Two).await;
        let judged = match connected {
            Ok(mut client) => client.judge("web").await,
            Err(error) => Err(error),
        };
        admitted.push(judged.is_ok());
    }
    // the second has the wrong name, the third another authority, the last no certificate
    assert_eq!(admitted, [true, false, false, false]);
}

/// An authority of clients, and a client's identity by it.
fn client_pair(name: &str) -> (String, Identity) {
    use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, format!("authority of {name}"));
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let (mut params, key) = (CertificateParams::default(), KeyPair::generate().unwrap());
    params.distinguished_name.push(DnType::CommonName, name);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let chain = params.signed_by(&key, &issuer).unwrap().pem();
    (authority, Identity { chain, key: key.serialize_pem() })
}

#[tokio::test]
async fn connections_that_ask_nothing_do_not_shut_the_api_server_out() {
    let scratch = Scratch::new("strangers");
    let own = scratch.keeper("own", &["localhost"], Lives::default());
    let running = run(own.identity(), None, Rules::default(), AT_ONCE);
    let bundle = own.bundle();
    let connect = || Client::connect(running.webhook, &bundle, None, Protocol::Two);
    let mut known = connect().await.unwrap();
    assert_eq!(known.judge("web").await.unwrap()["allowed"], true);
    let mut idle = Vec::new();
    for _ in 0..600 {
        idle.push(TcpStream::connect(running.webhook).await.unwrap());
    }
    // some that have shaken hands, too
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(connect().await.unwrap());
    }
    assert_eq!(known.judge("web").await.unwrap()["allowed"], true);
    for _ in 0..20 {
        assert_eq!(connect().await.unwrap().judge("denied").await.unwrap()["allowed"], false);
    }
    drop((idle, silent));
}

#[tokio::test]
async fn leaving_finishes_what_is_at_work() {
    let scratch = Scratch::new("drain");
    let own = scratch.keeper("own", &["localhost"], Lives::default());
    // the patience is longer than any pause of a busy machine, and than a listener that took the port over keeps silent
    let drain = Drain { grace: Duration::from_millis(500), patience: Duration::from_secs(120) };
    let running = run(own.identity(), None, Rules::default(), drain);
    let bundle = own.bundle();
    let connect = |protocol| Client::connect(running.webhook, &bundle, None, protocol);
    let (mut first, mut second) = (connect(Protocol::Two).await.unwrap(), connect(Protocol::One).await.unwrap());
    assert_eq!(first.judge("web").await.unwrap()["allowed"], true);
    assert_eq!(probe(running.health, "/readyz").await.unwrap(), (200, "ok\n".to_owned()));
    assert_eq!(probe(running.health, "/livez").await.unwrap().0, 200);
    assert!(probe(running.health, "/metrics").await.unwrap().1.contains("suture_ready 1"));

    let (waiting, other) = (tokio::spawn(async move { first.judge("waits").await }), second.judge("waits"));
    let counted = || series(&running.metrics, "suture_queue_wait_seconds_count");
    let leaving = async {
        until("both are at work", || counted() >= 3.0).await;
        running.stop.send(()).unwrap();
        until("it is not ready", || running.readiness.ready().is_err()).await;
        let (status, text) = probe(running.health, "/readyz").await.unwrap();
        assert_eq!((status, text.as_str()), (503, "serving: leaving\n"));
        // within the grace it still serves
        let mut late = connect(Protocol::Two).await.unwrap();
        assert_eq!(late.judge("denied").await.unwrap()["allowed"], false);
        tokio::time::sleep(drain.grace * 2).await;
        assert!(connect(Protocol::Two).await.is_err());
        assert!(!running.done.is_finished(), "what is at work is waited for");
        running.script.open();
    };
    let (other, ()) = tokio::join!(other, leaving);
    assert_eq!(other.unwrap()["allowed"], true);
    assert_eq!(waiting.await.unwrap().unwrap()["allowed"], true);
    running.done.await.unwrap().unwrap();
    assert!(probe(running.health, "/readyz").await.is_err());
}

#[tokio::test]
async fn tls_1_2_is_spoken_only_where_it_is_asked_for() {
    let scratch = Scratch::new("versions");
    let own = scratch.keeper("own", &["localhost"], Lives::default());
    let mut spoken = Vec::new();
    for tls12 in [false, true] {
        let running = run(own.identity(), None, Rules { tls12, ..Rules::default() }, AT_ONCE);
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(own.bundle().as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider);
        let config = config.with_protocol_versions(&[&rustls::version::TLS12]).unwrap();
        let config = config.with_root_certificates(roots).with_no_client_auth();
        let stream = TcpStream::connect(running.webhook).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        spoken.push(TlsConnector::from(Arc::new(config)).connect(name, stream).await.is_ok());
    }
    assert_eq!(spoken, [false, true]);
}
