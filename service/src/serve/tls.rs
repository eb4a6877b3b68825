//! What TLS connections are made with: our certificate, and by whom a client's must be signed. Both can be swapped while
//! connections go on; a new connection sees the new ones.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum_server::tls_rustls::RustlsConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig};
use x509_parser::parse_x509_certificate;

use super::metrics::Metrics;

/// How often files are looked at. A mounted Secret is itself up to a minute late.
pub const FILES_EVERY: Duration = Duration::from_secs(3);

/// Why a certificate, key or authority cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read `{path}`: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// Not PEM, or none of what it should hold.
    #[error("{what} cannot be read: {reason}")]
    Pem {
        /// What it should be.
        what: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// Certificate and key do not belong together, or are of no use.
    #[error("the certificate cannot be served: {0}")]
    Refused(#[from] rustls::Error),
    /// No client could be checked by them.
    #[error("clients cannot be checked: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// A certificate chain and its key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate, then those that signed it.
    pub chain: String,
    /// Its key.
    pub key: String,
}

impl Identity {
    /// The chain, not empty, and the key, as `rustls` takes them.
    ///
    /// # Errors
    /// When they are no PEM.
    pub fn parsed(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
        let chain = certificates(&self.chain, "the certificate")?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes())
            .map_err(|error| TlsError::Pem { what: "the key", reason: error.to_string() })?;
        Ok((chain, key))
    }
}

/// What does not change while serving.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Whether TLS 1.2 is spoken too.
    pub tls12: bool,
    /// The common names that a client's certificate may have; any when empty. Only where clients are checked at all.
    pub client_names: BTreeSet<String>,
}

/// The TLS side of the webhook; cheap to clone.
#[derive(Clone)]
pub struct Tls {
    config: RustlsConfig,
    rules: Arc<Rules>,
    held: Arc<Mutex<Held>>,
    metrics: Metrics,
}

#[derive(Clone)]
struct Held {
    identity: Identity,
    client_authority: Option<String>,
}

impl Tls {
    /// Serves this identity. With `client_authority`, PEM, only clients that it signed are served.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub fn new(
        identity: Identity,
        client_authority: Option<String>,
        rules: Rules,
        metrics: Metrics,
    ) -> Result<Self, TlsError> {
        let held = Held { identity, client_authority };
        let config = RustlsConfig::from_config(Arc::new(configure(&held, &rules)?));
        metrics.certificate(end_secs(&held.identity)?);
        Ok(Self { config, rules: Arc::new(rules), held: Arc::new(Mutex::new(held)), metrics })
    }

    /// Serves another identity from now on. Says whether it is another one.
    ///
    /// # Errors
    /// When it cannot be used; the old one stays.
    pub fn serve(&self, identity: &Identity) -> Result<bool, TlsError> {
        self.swap(|held| held.identity = identity.clone())
    }

    /// Checks clients by another authority from now on. Says whether it is another one.
    ///
    /// # Errors
    /// When it cannot be used; the old one stays.
    pub fn trust(&self, client_authority: &str) -> Result<bool, TlsError> {
        self.swap(|held| held.client_authority = Some(client_authority.to_owned()))
    }

    fn swap(&self, change: impl FnOnce(&mut Held)) -> Result<bool, TlsError> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = held.clone();
        change(&mut next);
        if next.identity == held.identity && next.client_authority == held.client_authority {
            return Ok(false);
        }
        let end = end_secs(&next.identity)?;
        self.config.reload_from_config(Arc::new(configure(&next, &self.rules)?));
        if next.identity != held.identity {
            self.metrics.certificate(end);
        }
        *held = next;
        Ok(true)
    }

    /// What new connections are made with.
    pub fn config(&self) -> RustlsConfig {
        self.config.clone()
    }

    /// What is served.
    pub fn identity(&self) -> Identity {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).identity.clone()
    }

    /// Whether a client with these certificates may come in. That they are signed as they must be was checked before.
    pub fn admits(&self, certificates: Option<&[CertificateDer<'_>]>) -> bool {
        let names = &self.rules.client_names;
        names.is_empty() || certificates.and_then(common_name).is_some_and(|name| names.contains(&name))
    }
}

fn common_name(certificates: &[CertificateDer<'_>]) -> Option<String> {
    let (_, certificate) = parse_x509_certificate(certificates.first()?).ok()?;
    let name = certificate.subject().iter_common_name().next()?.as_str().ok()?;
    Some(name.to_owned())
}

fn configure(held: &Held, rules: &Rules) -> Result<ServerConfig, TlsError> {
    let versions: &[_] = if rules.tls12 { &[&TLS13, &TLS12] } else { &[&TLS13] };
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone()).with_protocol_versions(versions)?;
    let builder = match &held.client_authority {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(pem, "the authority of clients")? {
                roots.add(certificate)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build()?)
        }
    };
    let (chain, key) = held.identity.parsed()?;
    let mut config = builder.with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn certificates(pem: &str, what: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match found {
        Ok(found) if found.is_empty() => Err(TlsError::Pem { what, reason: "it holds no certificate".to_owned() }),
        Ok(found) => Ok(found),
        Err(error) => Err(TlsError::Pem { what, reason: error.to_string() }),
    }
}

/// When the certificate of an identity ends, in seconds since 1970.
pub(super) fn end_secs(identity: &Identity) -> Result<i64, TlsError> {
    let what = "the certificate";
    let chain = certificates(&identity.chain, what)?;
    let first = chain.first().map_or(&[][..], |certificate| certificate);
    let parsed = parse_x509_certificate(first);
    let (_, certificate) = parsed.map_err(|error| TlsError::Pem { what, reason: error.to_string() })?;
    Ok(certificate.validity().not_after.timestamp())
}

/// Files that somebody else keeps, cert-manager for one.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// The certificate chain and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The authority of clients.
    pub client_authority: Option<PathBuf>,
}

impl Files {
    /// Reads the identity, if there is one.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn identity(&self) -> Result<Option<Identity>, TlsError> {
        let Some((chain, key)) = &self.identity else { return Ok(None) };
        Ok(Some(Identity { chain: read(chain)?, key: read(key)? }))
    }

    /// Reads the authority of clients, if there is one.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn client_authority(&self) -> Result<Option<String>, TlsError> {
        self.client_authority.as_ref().map(read).transpose()
    }

    /// Takes over what the files hold, again and again. While they are wrong, or half written, the old ones stay.
    pub async fn follow(self, tls: Tls, every: Duration) {
        let mut said = String::new();
        loop {
            tokio::time::sleep(every).await;
            let (files, held) = (self.clone(), tls.clone());
            let looked = tokio::task::spawn_blocking(move || files.take_over(&held)).await;
            let problem = match looked {
                Ok(Ok(false)) => String::new(),
                Ok(Ok(true)) => {
                    tracing::info!("certificates were taken over from their files");
                    String::new()
                }
                Ok(Err(error)) => error.to_string(),
                Err(error) => error.to_string(),
            };
            if !problem.is_empty() && problem != said {
                tracing::error!(problem, "new certificates cannot be used, the old ones stay");
            }
            said = problem;
        }
    }

    fn take_over(&self, tls: &Tls) -> Result<bool, TlsError> {
        let identity = self.identity()?.map_or(Ok(false), |identity| tls.serve(&identity))?;
        let authority = self.client_authority()?.map_or(Ok(false), |authority| tls.trust(&authority))?;
        Ok(identity || authority)
    }
}

fn read(path: &PathBuf) -> Result<String, TlsError> {
    fs::read_to_string(path).map_err(|source| TlsError::File { path: path.clone(), source })
}
