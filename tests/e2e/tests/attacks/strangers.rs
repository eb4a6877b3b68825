//! Who reaches the webhook's port and is not the API server: learns nothing, shuts nobody out, and takes no memory.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use suture_e2e::objects::{list, place};

use super::attackers::Attackers;
use super::honest::{MEMORY_MAX_BYTES, WAIT_MAX, honest};
use super::{launched, prepared, seconds, table};

/// Connections that ask nothing: as many as once shut the API server out.
const IDLE: usize = 512;
/// Bodies at once, and their length: as many as once took 1.46 GiB.
const BODIES: usize = 16;
const BODY_BYTES: usize = 8 << 20;
/// How long each attack lasts.
const LASTS: Duration = Duration::from_secs(5);

type Tls = StreamOwned<ClientConnection, TcpStream>;

#[test]
fn strangers_neither_learn_anything_nor_shut_anybody_out() {
    let (cluster, admin) = prepared(0);
    admin.create(&list(place("shop").to_vec())).expect("namespace");
    let suture = launched(&cluster, &["--profile=strict"]);
    let mut address = String::new();
    super::until("the webhook", || {
        let found = admin.json(&["get", "validatingwebhookconfiguration", "suture"]).map_err(|e| e.to_string())?;
        let url = found.pointer("/webhooks/0/clientConfig/url").and_then(|url| url.as_str()).unwrap_or_default();
        let path = url.find("/validate").and_then(|at| url.get(at..)).unwrap_or_default();
        path.clone_into(&mut address);
        let secret = path.split('/').any(|segment| segment.len() >= 32);
        if secret { Ok(()) } else { Err(format!("`{url}` can be guessed")) }
    });
    let mut table = table();
    for (attack, asks) in [
        ("512 connections that ask nothing", None),
        ("16 bodies of 8 MiB, again and again", Some(Flood::of("/validate", vec![b'x'; BODY_BYTES], &["404"]))),
        ("16 reviews of 8 MiB, of who stole the address", Some(Flood::of(&address, review(), &["200", "408"]))),
    ] {
        let answers = Arc::new(Mutex::new(Vec::new()));
        let port = suture.port();
        let count = if asks.is_some() { BODIES } else { 1 };
        let attackers = Attackers::start(count, |_| -> Box<dyn FnMut() + Send> {
            match asks.clone() {
                Some(flood) => {
                    let answers = answers.clone();
                    Box::new(move || flood.once(port, &answers))
                }
                None => {
                    let mut open = Vec::new();
                    Box::new(move || idle(port, &mut open))
                }
            }
        });
        let longest = honest(&cluster, LASTS).longest();
        attackers.stop();
        let began = Instant::now();
        honest(&cluster, Duration::ZERO);
        let recovery = began.elapsed();
        let answers = answers.lock().expect("answers");
        let wanted = asks.as_ref().map_or(&[][..], |flood| flood.statuses);
        let status = |answer: &String| answer.split(' ').nth(1).unwrap_or_default().to_owned();
        assert!(answers.iter().all(|answer| wanted.contains(&&*status(answer))), "{answers:?}");
        let first = answers.iter().filter(|answer| wanted.first() == Some(&&*status(answer))).count();
        assert!(asks.is_none() || (answers.len() >= BODIES && first > 0), "{answers:?}");
        let resident = suture.process.resident_bytes().expect("memory");
        let saw = format!("longest wait {} s; Suture has {} MiB", seconds(longest), resident >> 20);
        table.row([attack.to_owned(), "nothing".to_owned(), saw, seconds(recovery)]);
        assert!(longest < WAIT_MAX, "{attack}: an honest client waited for {longest:?}");
    }
    table.print();
    let most = suture.process.resident_max_bytes().expect("memory");
    println!("  Suture took {} MiB at most", most >> 20);
    assert!(most < MEMORY_MAX_BYTES, "{} MiB", most >> 20);
}

/// Keeps so many connections open: those that were closed are opened again.
fn idle(port: u16, open: &mut Vec<TcpStream>) {
    while open.len() < IDLE {
        open.push(TcpStream::connect(("127.0.0.1", port)).expect("connection"));
    }
    thread::sleep(Duration::from_millis(100));
    open.retain_mut(|stream| {
        _ = stream.set_nonblocking(true);
        !matches!(stream.read(&mut [0]), Ok(0) | Err(_)) || is_open(stream)
    });
}

fn is_open(stream: &TcpStream) -> bool {
    matches!(stream.peek(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
}

/// A review whose object has as many values as its bytes allow.
fn review() -> Vec<u8> {
    let head = r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"CREATE",
        "kind":{"group":"","version":"v1","kind":"Service"},"resource":{"group":"","version":"v1","resource":"services"},
        "name":"a","namespace":"shop","userInfo":{"username":"eve"},"dryRun":true,
        "object":{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","namespace":"shop"},"spec":{"ports":[0"#;
    let tail = "]}}}}";
    let mut body = head.as_bytes().to_vec();
    while body.len() + 2 + tail.len() <= BODY_BYTES {
        body.extend(b",0");
    }
    body.extend(tail.as_bytes());
    body
}

/// The same body to the same address, again and again.
#[derive(Clone)]
struct Flood {
    path: String,
    body: Arc<Vec<u8>>,
    /// Which status an answer may have; there is always one of the first.
    statuses: &'static [&'static str],
}

impl Flood {
    fn of(path: &str, body: Vec<u8>, statuses: &'static [&'static str]) -> Self {
        Self { path: path.to_owned(), body: Arc::new(body), statuses }
    }

    fn once(&self, port: u16, answers: &Mutex<Vec<String>>) {
        let Self { path, body, statuses } = self;
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len());
        // who is turned away for the address is before he has sent the body
        let early = *statuses == ["404"];
        let Some(mut stream) = connect(port) else { return };
        _ = stream.write_all(head.as_bytes()).and_then(|()| stream.flush());
        if !early {
            _ = stream.write_all(body).and_then(|()| stream.flush());
        }
        let mut answer = [0; 64];
        if let Ok(read) = stream.read(&mut answer) {
            let text = String::from_utf8_lossy(answer.get(..read).unwrap_or_default()).into_owned();
            if !text.is_empty() {
                answers.lock().expect("answers").push(text);
            }
        }
        if early {
            // whether it is wanted or not
            _ = stream.write_all(body);
        }
    }
}

fn connect(port: u16) -> Option<Tls> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().ok()?;
    let mut config = config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
    config.dangerous().set_certificate_verifier(Arc::new(anybody::Anybody));
    let name = ServerName::try_from("localhost").ok()?;
    let connection = ClientConnection::new(Arc::new(config), name).ok()?;
    let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
    stream.set_write_timeout(Some(Duration::from_secs(2))).ok()?;
    Some(StreamOwned::new(connection, stream))
}

/// A stranger does not care who answers.
mod anybody {
    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use rustls::{DigitallySignedStruct, Error, SignatureScheme};

    #[derive(Debug)]
    pub struct Anybody;

    impl ServerCertVerifier for Anybody {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, Error> {
            Ok(ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
        }
    }
}
