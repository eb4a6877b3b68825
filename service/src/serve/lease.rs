//! One replica decides at a time: whoever holds a Lease, as long as it is sure to hold it.
//!
//! As in `client-go/tools/leaderelection/leaderelection.go`: a holder that does not renew for the Lease's duration, by
//! the clock of the one who looks, has lost it. The holder itself stops earlier, counting from before its last renewal
//! was sent. One that was late to renew and finds that nobody took over goes on where it stopped.
//!
//! What the holder admitted may not have landed when another one takes over:
//!
//! | the one that takes over | decides |
//! |---|---|
//! | is named by the Lease as one that has a copy of what is in flight ([`super::followers`]) | at once |
//! | finds that nobody holds the Lease, and that nobody is named: it was given back when nothing was in flight | when everything it watches was read after that |
//! | else | when the API server's own timeout has passed, and everything was read after that |
//!
//! Nobody is named before the holder itself may decide, and it does not give the Lease back before what was admitted
//! before it has landed: what it waits for, the next one would not.
//!
//! All of this runs on a thread that does nothing else, with a connection of its own.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use kube::Client;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};

use super::active::{Active, Predecessor};
use super::api::{brief, send};
use super::followers::{Followers, Leader};
use crate::clock::{Clock, now};

/// How long a Lease holds without being renewed.
const LEASE: Duration = Duration::from_millis(1_500);
/// The holder stops so much earlier than others may take over: two clocks' rates differ by far less.
const LEASE_MARGIN: Duration = Duration::from_millis(400);
/// How often it is renewed, or looked at. A renewal may take half of what the holder is sure of.
const RENEW_EVERY: Duration = Duration::from_millis(200);
/// How long an attempt may take.
const RENEW_TIMEOUT: Duration = Duration::from_millis(900);
/// How much longer one waits that has no copy of what is in flight, where the Lease names one that has.
const PRECEDENCE: Duration = Duration::from_secs(1);
/// How long one that leaves waits for what it admitted to land, where nobody has a copy of it.
const LANDED_MAX: Duration = Duration::from_secs(1);
/// How often it looks.
const LANDED_EVERY: Duration = Duration::from_millis(10);
/// How long handing over takes at most: an attempt that has begun, that wait, and a write.
pub const HANDOVER_MAX: Duration = Duration::from_secs(3);
/// The Lease's `leaseDurationSeconds`, which are whole: nobody but these replicas reads it.
const LEASE_SECS: u64 = 2;
/// The annotations of the Lease: which process holds it, where it is followed, and which processes have a copy of what is
/// in flight.
const PROCESS: &str = "suture.dev/process";
const ADDRESS: &str = "suture.dev/address";
const FOLLOWERS: &str = "suture.dev/followers";

/// The Lease names nobody.
static NOBODY: BTreeSet<String> = BTreeSet::new();

/// Who a candidate is.
pub struct Candidacy {
    /// The name of the replica, which another process has after a restart.
    pub identity: String,
    /// Where it can be followed.
    pub address: String,
    /// How long after it was admitted a write may land: the API server's own timeout.
    pub landing: Duration,
}

/// Takes and renews a Lease.
pub struct Candidate {
    client: Client,
    collection: String,
    own: Candidacy,
    active: Active,
    followers: Followers,
    /// Says whom to follow.
    leader: watch::Sender<Option<Leader>>,
    /// Lists everything again.
    again: watch::Sender<u64>,
    /// When that is to be done.
    again_at: Option<Instant>,
    /// When it tried last.
    sent: Instant,
    /// The Lease as this process wrote it last.
    written: Option<Value>,
    /// What was seen last of somebody else's Lease, and since when.
    seen: Option<(String, Instant)>,
    /// The number of times that the Lease had changed hands when this process took it last, unless it lost it since.
    term: Option<i64>,
    /// The number by which this process tried to take it last, and who held it before: such a write may have gone through
    /// without an answer.
    claimed: Option<(i64, Predecessor)>,
}

/// What became of an attempt to hold the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Held {
    /// By this process; how often it has changed hands, and who held it before, where that is more often than before.
    Here(i64, Predecessor),
    /// By another one.
    Elsewhere(String),
}

impl Candidate {
    /// A candidate for the Lease `suture` in a namespace.
    pub fn new(
        client: Client,
        namespace: &str,
        own: Candidacy,
        active: Active,
        followers: Followers,
        again: watch::Sender<u64>,
    ) -> Self {
        let collection = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
        let leader = watch::channel(None).0;
        Self {
            client,
            collection,
            own,
            active,
            followers,
            leader,
            again,
            again_at: None,
            sent: now(),
            written: None,
            seen: None,
            term: None,
            claimed: None,
        }
    }

    /// Whom to follow.
    pub fn leader(&self) -> watch::Receiver<Option<Leader>> {
        self.leader.subscribe()
    }

    /// Tries until it is asked to leave, and hands over then; it ends without that when nobody can ask any more. Nothing is
    /// to be decided from then on.
    pub async fn run(mut self, mut leave: oneshot::Receiver<()>) {
        loop {
            tokio::select! {
                () = sleep(self.pause()) => {}
                () = self.followers.changed() => {}
                asked = &mut leave => {
                    if asked.is_ok() {
                        self.hand_over().await;
                    }
                    return;
                }
            }
            self.attempt().await;
        }
    }

    /// How long until it tries again: when the Lease is due, or may be taken.
    fn pause(&self) -> Duration {
        let due = self.sent + RENEW_EVERY;
        let free = self.seen.as_ref().filter(|_| self.term.is_none()).map(|(_, since)| *since + LEASE);
        let time = now();
        let next = free.filter(|free| *free > time).map_or(due, |free| due.min(free));
        // a little later, so that the time is over then
        next.saturating_duration_since(time) + Duration::from_millis(1)
    }

    /// Tries once.
    pub async fn attempt(&mut self) {
        let sent = now();
        self.sent = sent;
        let names = self.followers.names();
        match timeout(RENEW_TIMEOUT, self.try_hold(&names)).await {
            Ok(Ok(Held::Here(term, before))) => {
                let fresh = self.term.replace(term) != Some(term);
                self.active.hold(sent + (LEASE - LEASE_MARGIN), fresh.then_some(before), self.own.landing);
                self.followers.named(if fresh { &NOBODY } else { &names });
                if fresh {
                    tracing::info!(identity = self.own.identity, ?before, "this replica is active");
                    self.again_at = self.active.unsettled();
                    self.leader.send_replace(None);
                }
                if self.again_at.take_if(|at| *at <= now()).is_some() {
                    self.again.send_modify(|times| *times += 1);
                }
            }
            Ok(Ok(Held::Elsewhere(holder))) => {
                (self.term, self.again_at, self.written) = (None, None, None);
                self.active.lose(&holder);
            }
            // a Lease that was held stays so until its time is up
            Ok(Err(why)) => tracing::warn!(why, "the lease cannot be renewed"),
            Err(_) => tracing::warn!("the lease cannot be renewed in time"),
        }
    }

    async fn try_hold(&mut self, names: &BTreeSet<String>) -> Result<Held, String> {
        // nobody else has written it since, or this write is refused
        if let (Some(lease), Some(term)) = (self.written.take(), self.term)
            && self.write("PUT", lease, term, names).await?
        {
            return Ok(Held::Here(term, Predecessor::Lost));
        }
        let found = match send(&self.client, "GET", &self.path(), None).await {
            Ok(found) => Some(found),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => return Err(brief(&error)),
        };
        let Some(lease) = found else { return self.create(names).await };
        let holder = lease.pointer("/spec/holderIdentity").and_then(Value::as_str).unwrap_or_default().to_owned();
        let transitions = lease.pointer("/spec/leaseTransitions").and_then(Value::as_i64).unwrap_or_default();
        let process = self.followers.process();
        if !holder.is_empty() && said(&lease, PROCESS) == process {
            let claimed = self.claimed.filter(|(number, _)| *number == transitions);
            let before = claimed.map_or(Predecessor::Lost, |(_, before)| before);
            return self.take("PUT", lease, transitions, names, before).await;
        }
        let followers = said(&lease, FOLLOWERS);
        let copied = followers.split(',').any(|name| name == process);
        if !holder.is_empty() || !(copied || followers.is_empty()) {
            let leader = Leader { process: said(&lease, PROCESS), address: said(&lease, ADDRESS) };
            self.leader.send_if_modified(|known| known.replace(leader.clone()) != Some(leader));
            let patience = if copied || followers.is_empty() { LEASE } else { LEASE + PRECEDENCE };
            if self.silence(version_of(&lease)) <= patience {
                return Ok(Held::Elsewhere(holder));
            }
        }
        let before = if copied {
            Predecessor::Copied
        } else if holder.is_empty() && followers.is_empty() {
            Predecessor::Gone
        } else {
            Predecessor::Lost
        };
        self.take("PUT", lease, transitions + 1, names, before).await
    }

    /// Makes the Lease. Nobody held it, unless this process knows better: somebody has deleted it then.
    async fn create(&mut self, names: &BTreeSet<String>) -> Result<Held, String> {
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "suture"}});
        if let Some(term) = self.term {
            return self.take("POST", lease, term, names, Predecessor::Lost).await;
        }
        if self.seen.is_none() {
            return self.take("POST", lease, 0, names, Predecessor::Gone).await;
        }
        if self.silence(String::new()) <= LEASE {
            return Ok(Held::Elsewhere(String::new()));
        }
        self.take("POST", lease, 0, names, Predecessor::Lost).await
    }

    /// How long somebody else's Lease has had this version, by the clock of this replica.
    fn silence(&mut self, version: String) -> Duration {
        let time = now();
        let since = match &self.seen {
            Some((seen, since)) if *seen == version => *since,
            _ => time,
        };
        self.seen = Some((version, since));
        time.saturating_duration_since(since)
    }

    /// Takes the Lease, or keeps it where this process had it by the same number. Who takes it names nobody.
    async fn take(
        &mut self,
        method: &str,
        lease: Value,
        transitions: i64,
        names: &BTreeSet<String>,
        before: Predecessor,
    ) -> Result<Held, String> {
        let names = if self.term == Some(transitions) { names } else { &NOBODY };
        self.claimed = Some((transitions, before));
        if self.write(method, lease, transitions, names).await? {
            return Ok(Held::Here(transitions, before));
        }
        // perhaps this process, by a write that it did not wait for
        Err("somebody else has written it meanwhile".to_owned())
    }

    /// Writes the Lease; says whether nobody else has since it was read.
    async fn write(
        &mut self,
        method: &str,
        mut lease: Value,
        transitions: i64,
        names: &BTreeSet<String>,
    ) -> Result<bool, String> {
        let Candidacy { identity, address, .. } = &self.own;
        if let Some(fields) = lease.as_object_mut() {
            let spec = json!({
                "holderIdentity": identity,
                "leaseDurationSeconds": LEASE_SECS,
                "renewTime": micro_time(&Clock::now().to_string()),
                "leaseTransitions": transitions,
            });
            fields.insert("spec".to_owned(), spec);
        }
        if let Some(metadata) = lease.get_mut("metadata").and_then(Value::as_object_mut) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let annotations = json!({PROCESS: self.followers.process(), ADDRESS: address, FOLLOWERS: names.join(",")});
            metadata.insert("annotations".to_owned(), annotations);
            metadata.remove("managedFields");
        }
        let path = if method == "POST" { self.collection.clone() } else { self.path() };
        match send(&self.client, method, &path, Some(lease)).await {
            Ok(written) => {
                self.written = Some(written);
                Ok(true)
            }
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(brief(&error)),
        }
    }

    fn path(&self) -> String {
        format!("{}/suture", self.collection)
    }

    /// Gives the Lease back as soon as somebody has a copy of what is in flight, or nothing is, so that the next replica
    /// need not wait.
    async fn hand_over(self) {
        let Some(mut lease) = self.written.clone() else { return };
        if self.active.unsettled().is_some_and(|after| after > now()) {
            tracing::warn!("the lease is not given back, what was admitted before may still land");
            return;
        }
        let named = said(&lease, FOLLOWERS);
        let landed = async {
            while named.is_empty() && !self.followers.none_in_flight() {
                sleep(LANDED_EVERY).await;
            }
        };
        if timeout(LANDED_MAX, landed).await.is_err() {
            tracing::warn!("the lease is not given back, changes are in flight");
            return;
        }
        if let Some(holder) = lease.pointer_mut("/spec/holderIdentity") {
            *holder = Value::String(String::new());
        }
        match timeout(RENEW_TIMEOUT, send(&self.client, "PUT", &self.path(), Some(lease))).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(why = brief(&error), "the lease cannot be given back"),
            Err(_) => tracing::warn!("the lease cannot be given back in time"),
        }
    }
}

/// An annotation of the Lease.
fn said(lease: &Value, name: &str) -> String {
    let annotations = lease.pointer("/metadata/annotations");
    annotations.and_then(|all| all.get(name)?.as_str()).unwrap_or_default().to_owned()
}

fn version_of(lease: &Value) -> String {
    lease.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A time as `metav1.MicroTime` wants it: six decimals, no more and no less.
pub fn micro_time(time: &str) -> String {
    let whole = time.split(['.', 'Z']).next().unwrap_or(time);
    let decimals: String =
        time.split_once('.').map_or("", |(_, rest)| rest).chars().take_while(char::is_ascii_digit).collect();
    format!("{whole}.{:0<6.6}Z", decimals)
}

#[cfg(test)]
mod tests;
