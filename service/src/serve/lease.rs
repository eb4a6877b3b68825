//! One replica decides at a time: whoever holds a Lease, as long as it is sure to hold it.
//!
//! As in `client-go/tools/leaderelection/leaderelection.go`: a holder that does not renew for the Lease's duration, by
//! the clock of the one who looks, has lost it. The holder itself stops earlier, counting from before its last renewal
//! was sent. A replica that has just taken over decides only when everything it watches was read after that; one that was
//! late to renew and finds that nobody took over (`leaseTransitions` is the same) goes on where it stopped.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kube::Client;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::api::{brief, send};
use crate::clock::{Clock, now};

/// How long a Lease holds without being renewed.
const LEASE: Duration = Duration::from_secs(6);
/// The holder stops so much earlier than others may take over: two clocks' rates differ by far less.
const LEASE_MARGIN: Duration = Duration::from_secs(2);
/// How often it is renewed, or looked at.
const RENEW_EVERY: Duration = Duration::from_secs(1);
/// How long an attempt may take.
const RENEW_TIMEOUT: Duration = Duration::from_millis(900);

/// Whether this replica may decide; cheap to clone.
#[derive(Clone)]
pub struct Active {
    shared: Arc<Shared>,
}

struct Shared {
    began: Instant,
    /// Until when the Lease is held for sure, in microseconds after [`Shared::began`]; zero when it is not.
    until_micros: AtomicU64,
    /// Whether everything was read since it was taken.
    settled: AtomicBool,
    taken: Mutex<Option<Instant>>,
    holder: Mutex<String>,
}

impl Default for Active {
    fn default() -> Self {
        let shared = Shared {
            began: now(),
            until_micros: AtomicU64::new(0),
            settled: AtomicBool::new(false),
            taken: Mutex::default(),
            holder: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }
}

impl Active {
    /// Whether this replica may decide now.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), String> {
        if self.micros(now()) >= self.shared.until_micros.load(Ordering::Acquire) {
            let holder = self.shared.holder.lock().unwrap_or_else(PoisonError::into_inner).clone();
            return Err(if holder.is_empty() {
                "no replica is active yet".to_owned()
            } else {
                format!("replica `{holder}` is active, this one stands by")
            });
        }
        if !self.shared.settled.load(Ordering::Acquire) {
            return Err("this replica has just become active and reads the cluster first".to_owned());
        }
        Ok(())
    }

    /// When the Lease was taken, if this replica holds it and has not read everything since.
    pub fn unsettled(&self) -> Option<Instant> {
        let taken = *self.shared.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.filter(|_| !self.shared.settled.load(Ordering::Acquire))
    }

    /// Everything was read since the Lease was taken.
    pub fn settle(&self) {
        self.shared.settled.store(true, Ordering::Release);
    }

    /// Holds the Lease from before `sent`; `fresh` if another one may have held it since this one did.
    fn hold(&self, sent: Instant, fresh: bool) {
        if fresh {
            self.shared.settled.store(false, Ordering::Release);
            *self.shared.taken.lock().unwrap_or_else(PoisonError::into_inner) = Some(now());
        }
        let until = sent + (LEASE - LEASE_MARGIN);
        self.shared.until_micros.store(self.micros(until), Ordering::Release);
    }

    fn lose(&self, holder: &str) {
        self.shared.until_micros.store(0, Ordering::Release);
        *self.shared.taken.lock().unwrap_or_else(PoisonError::into_inner) = None;
        holder.clone_into(&mut self.shared.holder.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn micros(&self, instant: Instant) -> u64 {
        let micros = instant.saturating_duration_since(self.shared.began).as_micros();
        u64::try_from(micros).unwrap_or(u64::MAX)
    }
}

/// Takes and renews a Lease.
pub struct Candidate {
    client: Client,
    collection: String,
    name: String,
    identity: String,
    active: Active,
    /// Lists everything again.
    again: watch::Sender<u64>,
    /// What was seen last of somebody else's Lease, and since when.
    seen: Option<(String, Instant)>,
    /// The number of times that the Lease had changed hands when this one took it last, unless it lost it since.
    term: Option<i64>,
}

/// What became of an attempt to hold the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Held {
    /// By this replica; how often it has changed hands.
    Here(i64),
    /// By another one.
    Elsewhere(String),
}

impl Candidate {
    /// A candidate of this identity for the Lease `suture` in a namespace.
    pub fn new(client: Client, namespace: &str, identity: String, active: Active, again: watch::Sender<u64>) -> Self {
        let collection = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
        Self { client, collection, name: "suture".to_owned(), identity, active, again, seen: None, term: None }
    }

    /// Tries for ever; `left` ends it, and gives the Lease back.
    pub async fn run(mut self) {
        loop {
            self.attempt().await;
            sleep(RENEW_EVERY).await;
        }
    }

    /// Tries once.
    pub async fn attempt(&mut self) {
        let sent = now();
        match timeout(RENEW_TIMEOUT, self.try_hold()).await {
            Ok(Ok(Held::Here(term))) => {
                let fresh = self.term.replace(term) != Some(term);
                self.active.hold(sent, fresh);
                if fresh {
                    tracing::info!(identity = self.identity, "this replica is active");
                    self.again.send_modify(|times| *times += 1);
                }
            }
            Ok(Ok(Held::Elsewhere(holder))) => {
                self.term = None;
                self.active.lose(&holder);
            }
            // a Lease that was held stays so until its time is up
            Ok(Err(why)) => tracing::warn!(why, "the lease cannot be renewed"),
            Err(_) => tracing::warn!("the lease cannot be renewed in time"),
        }
    }

    async fn try_hold(&mut self) -> Result<Held, String> {
        let path = format!("{}/{}", self.collection, self.name);
        let found = match send(&self.client, "GET", &path, None).await {
            Ok(found) => Some(found),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => return Err(brief(&error)),
        };
        let Some(mut lease) = found else {
            self.term = None;
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": self.name}, "spec": self.spec(0),
            });
            return self.written("POST", &self.collection, lease, 0).await;
        };
        let holder = lease.pointer("/spec/holderIdentity").and_then(Value::as_str).unwrap_or_default().to_owned();
        let transitions = lease.pointer("/spec/leaseTransitions").and_then(Value::as_i64).unwrap_or_default();
        let ours = holder == self.identity;
        if !ours && !holder.is_empty() {
            let version = lease.pointer("/metadata/resourceVersion").map(Value::to_string).unwrap_or_default();
            let since = match &self.seen {
                Some((seen, since)) if *seen == version => *since,
                _ => now(),
            };
            self.seen = Some((version, since));
            if now().saturating_duration_since(since) <= LEASE {
                return Ok(Held::Elsewhere(holder));
            }
        }
        let term = transitions + i64::from(!ours);
        if let Some(fields) = lease.as_object_mut() {
            fields.insert("spec".to_owned(), self.spec(term));
        }
        self.written("PUT", &path, lease, term).await
    }

    /// Writes the Lease; another one may have been quicker.
    async fn written(&self, method: &str, path: &str, lease: Value, term: i64) -> Result<Held, String> {
        match send(&self.client, method, path, Some(lease)).await {
            Ok(_) => Ok(Held::Here(term)),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Held::Elsewhere("another one".to_owned())),
            Err(error) => Err(brief(&error)),
        }
    }

    fn spec(&self, transitions: i64) -> Value {
        json!({
            "holderIdentity": self.identity,
            "leaseDurationSeconds": LEASE.as_secs(),
            "renewTime": micro_time(&Clock::now().to_string()),
            "leaseTransitions": transitions,
        })
    }

    /// Gives the Lease back, so that the next replica need not wait.
    pub async fn release(client: Client, namespace: &str, identity: &str) {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/suture");
        let Ok(mut lease) = send(&client, "GET", &path, None).await else { return };
        let holder = lease.pointer_mut("/spec/holderIdentity");
        let Some(holder) = holder.filter(|holder| holder.as_str() == Some(identity)) else { return };
        *holder = Value::String(String::new());
        if let Err(error) = send(&client, "PUT", &path, Some(lease)).await {
            tracing::warn!(why = brief(&error), "the lease cannot be given back");
        }
    }
}

/// A time as `metav1.MicroTime` wants it: six decimals, no more and no less.
pub fn micro_time(time: &str) -> String {
    let whole = time.split(['.', 'Z']).next().unwrap_or(time);
    let decimals: String =
        time.split_once('.').map_or("", |(_, rest)| rest).chars().take_while(char::is_ascii_digit).collect();
    format!("{whole}.{:0<6.6}Z", decimals)
}

#[cfg(test)]
impl Active {
    /// One that holds the Lease for as long as a test takes.
    pub fn held() -> Self {
        let active = Self::default();
        active.shared.until_micros.store(u64::MAX, Ordering::Release);
        active.settle();
        active
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_six_decimals() {
        assert_eq!(micro_time("2026-11-21T14:00:00Z"), "2026-11-21T14:00:00.000000Z");
        assert_eq!(micro_time("2026-11-21T14:00:00.5Z"), "2026-11-21T14:00:00.500000Z");
        assert_eq!(micro_time("2026-11-21T14:00:00.123456789Z"), "2026-11-21T14:00:00.123456Z");
    }

    #[test]
    fn a_replica_decides_only_while_it_holds_the_lease_and_has_read_everything_since() {
        let active = Active::default();
        assert!(active.check().is_err());
        active.hold(now(), true);
        assert!(active.check().is_err_and(|why| why.contains("just become active")));
        assert!(active.unsettled().is_some());
        active.settle();
        assert_eq!(active.check(), Ok(()));
        let long_ago = now().checked_sub(LEASE).unwrap();
        active.hold(long_ago, false);
        assert!(active.check().is_err(), "counted from when it was sent");
        active.hold(now(), false);
        assert_eq!(active.check(), Ok(()), "renewed late, and nobody else held it");
        active.lose("other");
        assert!(active.check().is_err_and(|why| why.contains("`other` is active")));
        active.hold(now(), true);
        assert!(active.check().is_err_and(|why| why.contains("just become active")));
    }
}
