//! Certificates that Suture makes for itself: an authority, what it signs, and their rotation with an overlap.
//!
//! | step | bundle that the API server trusts | served |
//! |---|---|---|
//! | in use | `current` | by `current` |
//! | `current` has a third of its life left | `current`, `next` | by `current` |
//! | the bundle was published, and the overlap has passed | the same, as `previous`, `current` | by `current` |
//! | the overlap has passed again | `current` | by `current` |
//!
//! So whoever has the bundle of one overlap ago can still connect. All that a replica knows is in a [`Vault`]; replicas
//! that share one serve by the same authority.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::health::Readiness;
use super::paths::{Segments, derived, period};
use super::tls::{Identity, Tls, TlsError, end_secs};

/// Clocks of API servers may be behind ours by this much.
const SKEW_SECS: i64 = 300;
/// How often the vault is looked into: another replica may have rotated.
const VAULT_EVERY: Duration = Duration::from_secs(30);
/// The part of its life that is left of a certificate when its successor is made: one part in this many.
const RENEW_PART: i64 = 3;

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// It cannot be made.
    #[error("no certificate can be made: {0}")]
    Make(#[from] rcgen::Error),
    /// What was made cannot be served.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The vault holds something else.
    #[error("what is kept of the certificates cannot be read: {0}")]
    Kept(#[from] serde_json::Error),
    /// The vault fails.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

/// Why a vault did not keep something.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// Somebody else wrote since it was read; it is to be read again.
    #[error("another replica changed the certificates")]
    Changed,
    /// It cannot be reached.
    #[error("the certificates cannot be kept: {0}")]
    Failed(String),
}

/// Where the authority is kept between restarts and shared by replicas: a folder, or a Secret. Its text holds keys.
/// Both calls may block.
pub trait Vault: Send + Sync + 'static {
    /// What is kept.
    ///
    /// # Errors
    /// When it cannot be reached.
    fn load(&self) -> Result<Option<String>, VaultError>;

    /// Keeps a text if it still holds `previous`.
    ///
    /// # Errors
    /// When it does not, or cannot be reached.
    fn save(&self, text: &str, previous: Option<&str>) -> Result<(), VaultError>;
}

/// A folder as vault, of one process.
#[derive(Clone, Debug)]
pub struct Folder {
    file: PathBuf,
}

impl Folder {
    /// The vault in this folder, which exists.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { file: folder.into().join("authority.json") }
    }
}

impl Vault for Folder {
    fn load(&self) -> Result<Option<String>, VaultError> {
        match fs::read_to_string(&self.file) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(VaultError::Failed(format!("`{}`: {error}", self.file.display()))),
        }
    }

    fn save(&self, text: &str, previous: Option<&str>) -> Result<(), VaultError> {
        if self.load()?.as_deref() != previous {
            return Err(VaultError::Changed);
        }
        let new = self.file.with_extension("new");
        let write = || {
            let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
            io::Write::write_all(&mut file, text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &self.file)
        };
        write().map_err(|error: io::Error| VaultError::Failed(format!("`{}`: {error}", self.file.display())))
    }
}

/// How long certificates live.
#[derive(Clone, Copy, Debug)]
pub struct Lives {
    /// The authority's.
    pub authority: Duration,
    /// That of what it signs.
    pub serving: Duration,
    /// How long the API server may take to use a bundle that was published.
    pub overlap: Duration,
}

impl Default for Lives {
    fn default() -> Self {
        let day = Duration::from_secs(24 * 3_600);
        Self { authority: day * 365, serving: day * 30, overlap: Duration::from_secs(120) }
    }
}

/// All that is known of our own certificates.
#[derive(Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Kept {
    current: Authority,
    next: Option<Next>,
    previous: Option<Previous>,
    serving: Serving,
}

#[derive(Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Authority {
    name: String,
    certificate: String,
    key: String,
    end_secs: i64,
}

#[derive(Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Next {
    authority: Authority,
    published_secs: Option<i64>,
}

#[derive(Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Previous {
    certificate: String,
    /// The segments of the webhook's address that followed from its key.
    #[serde(default)]
    segments: Vec<String>,
    until_secs: i64,
}

#[derive(Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Serving {
    names: Vec<String>,
    certificate: String,
    key: String,
    end_secs: i64,
}

impl Authority {
    fn new(lives: &Lives, now: i64) -> Result<Self, CertificateError> {
        let key = KeyPair::generate()?;
        // two authorities of one bundle are told apart by their names
        let name = format!("suture authority {now}");
        let end = now + secs(lives.authority);
        let mut params = Self::params(&name);
        (params.not_before, params.not_after) = (at(now - SKEW_SECS), at(end));
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self { name, certificate, key: key.serialize_pem(), end_secs: end })
    }

    fn params(name: &str) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params
    }

    fn sign(&self, names: &[String], lives: &Lives, now: i64) -> Result<Serving, CertificateError> {
        let issuer = Issuer::new(Self::params(&self.name), KeyPair::from_pem(&self.key)?);
        let key = KeyPair::generate()?;
        let end = (now + secs(lives.serving)).min(self.end_secs);
        let mut params = CertificateParams::new(names.to_vec())?;
        params.distinguished_name = named(names.first().map_or("suture", String::as_str));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        (params.not_before, params.not_after) = (at(now - SKEW_SECS), at(end));
        let certificate = params.signed_by(&key, &issuer)?.pem();
        Ok(Serving { names: names.to_vec(), certificate, key: key.serialize_pem(), end_secs: end })
    }

    fn due(&self, lives: &Lives, now: i64) -> bool {
        self.end_secs - now <= secs(lives.authority) / RENEW_PART
    }
}

impl Kept {
    fn new(names: &[String], lives: &Lives, now: i64) -> Result<Self, CertificateError> {
        let current = Authority::new(lives, now)?;
        let serving = current.sign(names, lives, now)?;
        Ok(Self { current, next: None, previous: None, serving })
    }

    /// All authorities that may have signed what some replica serves, now or next.
    fn bundle(&self) -> String {
        let Self { current, next, previous, serving: _ } = self;
        let previous = previous.iter().map(|previous| previous.certificate.as_str());
        let next = next.iter().map(|next| next.authority.certificate.as_str());
        previous.chain([current.certificate.as_str()]).chain(next).collect()
    }

    /// The segment of the webhook's address, and those that some replica may have told the API server before or next.
    fn segments(&self, now: i64) -> (String, Vec<String>) {
        let period = period(now);
        let keys = self.next.iter().map(|next| &next.authority.key).chain([&self.current.key]);
        // clocks of replicas differ, and what was told before is heard late
        let around = keys.flat_map(|key| [period - 1, period, period + 1].map(|period| derived(key, period)));
        let previous = self.previous.iter().flat_map(|previous| previous.segments.clone());
        (derived(&self.current.key, period), around.chain(previous).collect())
    }

    /// Goes on by as much as is due; `published` is the bundle that the API server was given last.
    fn turn(&mut self, names: &[String], lives: &Lives, published: &str, now: i64) -> Result<(), CertificateError> {
        let overlap = secs(lives.overlap);
        if self.previous.as_ref().is_some_and(|previous| previous.until_secs <= now) {
            self.previous = None;
        }
        if self.next.is_none() && self.current.due(lives, now) {
            self.next = Some(Next { authority: Authority::new(lives, now)?, published_secs: None });
        }
        if let Some(next) = &mut self.next
            && next.published_secs.is_none()
            && published.contains(next.authority.certificate.trim())
        {
            next.published_secs = Some(now);
        }
        // an authority that has ended is trusted by nobody: nothing is lost by serving with its successor
        let over = self.current.end_secs <= now;
        if let Some(next) =
            self.next.take_if(|next| over || next.published_secs.is_some_and(|since| since + overlap <= now))
        {
            let current = std::mem::replace(&mut self.current, next.authority);
            let segments = [period(now) - 1, period(now)].map(|period| derived(&current.key, period)).to_vec();
            self.previous = Some(Previous { certificate: current.certificate, segments, until_secs: now + overlap });
            self.serving = self.current.sign(names, lives, now)?;
        }
        let left = self.serving.end_secs - now;
        if left <= secs(lives.serving) / RENEW_PART && self.serving.end_secs < self.current.end_secs
            || self.serving.names != names
        {
            self.serving = self.current.sign(names, lives, now)?;
        }
        Ok(())
    }
}

/// Keeps our certificates.
pub struct Keeper {
    vault: Arc<dyn Vault>,
    names: Vec<String>,
    lives: Lives,
    kept: Kept,
}

impl Keeper {
    /// Takes what the vault has, or makes new certificates for these names and addresses. Blocks as the vault does.
    ///
    /// # Errors
    /// When the vault fails or holds something else, or a name is none.
    pub fn open(vault: Arc<dyn Vault>, names: Vec<String>, lives: Lives) -> Result<Self, CertificateError> {
        let kept = step(&*vault, &names, &lives, "", now_secs())?;
        Ok(Self { vault, names, lives, kept })
    }

    /// What is to be served.
    pub fn identity(&self) -> Identity {
        identity(&self.kept)
    }

    /// What the API server is to trust: the `caBundle` of the webhook's configuration, PEM.
    pub fn bundle(&self) -> String {
        self.kept.bundle()
    }

    /// Says by which segments of the address the webhook is asked now.
    pub fn tell_segments(&self, segments: &Segments) {
        let (current, others) = self.kept.segments(now_secs());
        segments.set(current, others);
    }

    /// Rotates for ever, every `every` or when something was published. `bundle` says what is to be published, and
    /// `published` what was; where nobody publishes, it is a receiver of `bundle`. Part `certificates` of the readiness
    /// is whether the API server was given the authority by which this replica is served. `segments` are told which they are.
    pub async fn keep(
        mut self,
        tls: Tls,
        bundle: watch::Sender<String>,
        mut published: watch::Receiver<String>,
        readiness: Readiness,
        every: Option<Duration>,
        segments: Option<Segments>,
    ) {
        loop {
            let known = published.borrow_and_update().clone();
            self = self.look(known, &tls, &bundle, &readiness).await;
            if let Some(segments) = &segments {
                self.tell_segments(segments);
            }
            tokio::select! {
                () = tokio::time::sleep(every.unwrap_or(VAULT_EVERY)) => {}
                // nobody publishes any more when the sender is gone
                changed = published.changed() => if changed.is_err() {
                    tokio::time::sleep(every.unwrap_or(VAULT_EVERY)).await;
                },
            }
        }
    }

    async fn look(mut self, known: String, tls: &Tls, bundle: &watch::Sender<String>, readiness: &Readiness) -> Self {
        let (vault, names, lives) = (self.vault.clone(), self.names.clone(), self.lives);
        let published = known.clone();
        let stepped = tokio::task::spawn_blocking(move || step(&*vault, &names, &lives, &published, now_secs())).await;
        match stepped {
            Ok(Ok(kept)) => self.kept = kept,
            Ok(Err(CertificateError::Vault(VaultError::Changed))) => {}
            Ok(Err(error)) => tracing::error!(%error, "certificates cannot be rotated, the old ones stay"),
            Err(error) => tracing::error!(%error, "certificates cannot be rotated, the old ones stay"),
        }
        match tls.serve(&self.identity()) {
            Ok(true) => tracing::info!(end_secs = self.kept.serving.end_secs, "another certificate is served"),
            Ok(false) => {}
            Err(error) => tracing::error!(%error, "a certificate of our own cannot be served"),
        }
        let wanted = self.bundle();
        bundle.send_if_modified(|held| std::mem::replace(held, wanted.clone()) != wanted);
        let trusted = known.contains(self.kept.current.certificate.trim());
        let missing = || "the API server was not given the authority yet".to_owned();
        readiness.set("certificates", if trusted { Ok(()) } else { Err(missing()) });
        self
    }
}

/// One step, from what the vault has to what it has then.
fn step(
    vault: &dyn Vault,
    names: &[String],
    lives: &Lives,
    published: &str,
    now: i64,
) -> Result<Kept, CertificateError> {
    let before = vault.load()?;
    let mut kept = match &before {
        Some(text) => serde_json::from_str(text)?,
        None => Kept::new(names, lives, now)?,
    };
    kept.turn(names, lives, published, now)?;
    end_secs(&identity(&kept))?;
    let text = serde_json::to_string(&kept)?;
    if before.as_ref() != Some(&text) {
        vault.save(&text, before.as_deref())?;
    }
    Ok(kept)
}

fn identity(kept: &Kept) -> Identity {
    Identity { chain: kept.serving.certificate.clone(), key: kept.serving.key.clone() }
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

/// Seconds since 1970 as `rcgen` takes them.
fn at<T: From<SystemTime>>(secs: i64) -> T {
    let since = Duration::from_secs(u64::try_from(secs).unwrap_or_default());
    T::from(SystemTime::UNIX_EPOCH + since)
}

fn secs(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

#[expect(clippy::disallowed_methods, reason = "certificates end by the clock")]
fn now_secs() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    secs(since)
}

#[cfg(test)]
mod tests;
