//! Copies of what is in flight, at the replicas that may take over from the one that decides.
//!
//! | step | so that |
//! |---|---|
//! | a replica that stands by connects to the holder of the Lease, is sent what is in flight, and acknowledges it | |
//! | from then on the holder, if it may decide itself, says "yes" only when that replica has acknowledged what was entered | no later change lands that it does not know of |
//! | it is told so, with what was entered meanwhile, and reads everything that it watches after that | it has seen what landed before, and was not sent since it had ended |
//! | the holder names it in the Lease | it knows that its copy is complete, when it takes over |
//! | one that does not acknowledge is waited for until the Lease is written without its name | it knows that its copy is none |
//! | who takes the Lease names nobody, and all have to connect again | no copy is of another term |
//!
//! The names are those of processes: one that was started again has no copy. What passes between replicas is lines of
//! text over TLS ([`super::replica_tls`]): `+` and an entry, `=` and the place in the log up to which that was all, or `!`
//! in its place where answers wait; back goes the process's name, once, then that place, and whether everything was read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io;
use std::net::TcpListener as Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, Lines, ReadHalf, WriteHalf, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::active::Active;
use super::announce::{read, written};
use super::in_flight_log::InFlightLog;
use super::replica_tls;
use super::store::Store;
use super::tls::Tls;
use crate::clock::{Clock, now};

/// How often a copy is asked about where nothing is entered.
const BEAT: Duration = Duration::from_millis(200);
/// How long an acknowledgement may take, then the replica is taken to be gone.
const ANSWER_MAX: Duration = Duration::from_millis(500);
/// How long it may take to connect.
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// How long nothing may come from the one that is followed.
const SILENCE_MAX: Duration = Duration::from_secs(2);
/// The pause before it is connected to again.
const PAUSE: Duration = Duration::from_millis(100);
/// What an acknowledgement ends in where everything was read since answers wait for it.
const COPIED: &str = " copied";
/// What a line begins with: an entry, the place after all entries, and the same where answers wait for this copy.
const ENTRY: char = '+';
const PLACE: char = '=';
const WAITED_FOR: char = '!';

/// The replica that decides, as its Lease says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// Its process.
    pub process: String,
    /// Where it can be followed.
    pub address: String,
}

/// Who has a copy of what is in flight here; cheap to clone.
#[derive(Clone)]
pub struct Followers {
    shared: Arc<Shared>,
}

struct Shared {
    /// What this process is called.
    process: String,
    log: Arc<InFlightLog>,
    active: Active,
    /// Whom answers wait for, and the Lease may name.
    copies: Mutex<BTreeMap<String, Copied>>,
    /// The place in the log up to which copies are wanted.
    wanted: watch::Sender<u64>,
    /// Changes with each acknowledgement, and when the Lease names fewer.
    progress: watch::Sender<u64>,
    /// Somebody is to be named in the Lease, or no more.
    changed: Notify,
}

/// One copy.
struct Copied {
    /// The connection that it was made over.
    connection: u64,
    /// The term since which answers wait for it.
    term: u64,
    /// What of the log it has.
    until: u64,
    /// Whether everything was read there since answers wait for it.
    complete: bool,
    /// Whether the Lease is to be written without it.
    gone: bool,
}

impl Followers {
    /// Nobody yet.
    pub fn of(log: Arc<InFlightLog>, active: Active, identity: &str) -> Self {
        let shared = Shared {
            process: format!("{identity}/{}", Clock::now().nanos()),
            log,
            active,
            copies: Mutex::default(),
            wanted: watch::channel(0).0,
            progress: watch::channel(0).0,
            changed: Notify::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// What this process is called.
    pub fn process(&self) -> &str {
        &self.shared.process
    }

    /// Whether nothing is in flight.
    pub fn none_in_flight(&self) -> bool {
        self.shared.log.is_empty()
    }

    /// Waits until whoever may take over knows of what was entered so far: to be called before an answer "yes" of this term
    /// goes out.
    ///
    /// # Errors
    /// When this replica is not, or no more, the one that decides.
    pub async fn confirm(&self, term: u64) -> Result<(), String> {
        let place = self.shared.log.place();
        self.shared.wanted.send_if_modified(|wanted| place > std::mem::replace(wanted, (*wanted).max(place)));
        let mut progress = self.shared.progress.subscribe();
        while self.copies().values().any(|copy| copy.until < place) {
            // never closed
            _ = progress.changed().await;
        }
        self.shared.active.still(term)
    }

    /// Those that the Lease is to name.
    pub fn names(&self) -> BTreeSet<String> {
        let (copies, term) = (self.copies(), self.shared.active.term());
        let named = |copy: &Copied| copy.complete && !copy.gone && copy.term == term;
        copies.iter().filter(|(_, copy)| named(copy)).map(|(name, _)| name.clone()).collect()
    }

    /// The Lease names these and nobody else.
    pub fn named(&self, names: &BTreeSet<String>) {
        let term = self.shared.active.term();
        self.copies().retain(|name, copy| (!copy.gone && copy.term == term) || names.contains(name));
        self.progressed();
    }

    /// Waits until the Lease is to name others.
    pub async fn changed(&self) {
        self.shared.changed.notified().await;
    }

    /// Takes connections for ever.
    ///
    /// # Errors
    /// When the listener cannot be used.
    pub async fn serve(self, listener: Bound, tls: Tls) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        for connection in 0.. {
            let (stream, _) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a replica cannot connect");
                    sleep(PAUSE).await;
                    continue;
                }
            };
            let (own, tls) = (self.clone(), tls.clone());
            tokio::spawn(async move {
                if let Err(why) = own.accept(stream, &tls, connection).await {
                    tracing::info!(why, "a replica follows no more");
                }
                own.left(connection);
            });
        }
        Ok(())
    }

    async fn accept(&self, stream: TcpStream, tls: &Tls, connection: u64) -> Result<(), String> {
        let config = replica_tls::server(&tls.identity()).map_err(|error| error.to_string())?;
        _ = stream.set_nodelay(true);
        let accepting = TlsAcceptor::from(Arc::new(config)).accept(stream);
        let stream = in_time(CONNECT_MAX, accepting).await?;
        self.send(stream, connection).await
    }

    /// Sends what is in flight, and what is entered, for as long as it is acknowledged.
    async fn send(&self, stream: impl AsyncRead + AsyncWrite, connection: u64) -> Result<(), String> {
        let (reader, mut writer) = split(stream);
        let mut lines = BufReader::new(reader).lines();
        let name = in_time(CONNECT_MAX, lines.next_line()).await?.ok_or("it says nothing")?;
        let mut wanted = self.shared.wanted.subscribe();
        let (mut sent, mut waited_for) = (0, None);
        loop {
            if waited_for.is_some_and(|term| term != self.shared.active.term()) {
                return Err("this replica has lost the lease since".to_owned());
            }
            let (requests, place) = self.shared.log.since(sent);
            let mut text = String::new();
            for request in requests {
                _ = writeln!(text, "{ENTRY}{}", written(&request)?);
            }
            let mark = if waited_for.is_some() { WAITED_FOR } else { PLACE };
            _ = writeln!(text, "{mark}{place}");
            let told = async {
                writer.write_all(text.as_bytes()).await?;
                writer.flush().await?;
                lines.next_line().await
            };
            let answer = in_time(ANSWER_MAX, told).await?.ok_or("it has closed the connection")?;
            let (until, copied) = match answer.strip_suffix(COPIED) {
                Some(until) => (until, true),
                None => (answer.as_str(), false),
            };
            if until.parse() != Ok(place) {
                return Err(format!("it acknowledges `{until}`, not {place}"));
            }
            sent = place;
            match waited_for {
                None => waited_for = self.wait_for(&name, connection, place),
                Some(_) => self.acknowledged(&name, connection, place, copied)?,
            }
            _ = timeout(BEAT, wanted.wait_for(|wanted| *wanted > sent)).await;
        }
    }

    /// Answers wait for a copy from now on; gives the term. Not before this replica may decide: the next one would not wait
    /// for what it waits for.
    fn wait_for(&self, name: &str, connection: u64, until: u64) -> Option<u64> {
        let term = self.shared.active.check().ok()?;
        let copy = Copied { connection, term, until, complete: false, gone: false };
        self.copies().insert(name.to_owned(), copy);
        self.progressed();
        Some(term)
    }

    fn acknowledged(&self, name: &str, connection: u64, until: u64, copied: bool) -> Result<(), String> {
        let mut copies = self.copies();
        let known = copies.get_mut(name).filter(|copy| copy.connection == connection);
        let copy = known.ok_or("it has connected again")?;
        copy.until = until;
        if copied && !copy.complete {
            copy.complete = true;
            tracing::info!(name, "a replica has a copy of what is in flight");
            self.shared.changed.notify_one();
        }
        drop(copies);
        self.progressed();
        Ok(())
    }

    /// What came over a connection is no copy any more.
    fn left(&self, connection: u64) {
        let mut copies = self.copies();
        for copy in copies.values_mut().filter(|copy| copy.connection == connection) {
            copy.gone = true;
            self.shared.changed.notify_one();
        }
    }

    fn progressed(&self) {
        self.shared.progress.send_modify(|times| *times = times.wrapping_add(1));
    }

    fn copies(&self) -> MutexGuard<'_, BTreeMap<String, Copied>> {
        self.shared.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a copy of what is in flight at whoever decides.
    pub async fn follow(self, store: Arc<Store>, mut leader: watch::Receiver<Option<Leader>>, tls: Tls) {
        loop {
            let followed = leader.borrow_and_update().clone();
            let copying = async {
                let Some(Leader { address, .. }) = followed else { return std::future::pending().await };
                let ended = self.connect(&address, &tls, &store).await;
                if let Err(why) = ended {
                    tracing::debug!(why, address, "the replica that decides cannot be followed");
                }
                sleep(PAUSE).await;
            };
            tokio::select! {
                () = copying => {}
                changed = leader.changed() => if changed.is_err() {
                    return;
                },
            }
        }
    }

    async fn connect(&self, address: &str, tls: &Tls, store: &Store) -> Result<(), String> {
        let config = replica_tls::client(&tls.identity()).map_err(|error| error.to_string())?;
        let stream = in_time(CONNECT_MAX, TcpStream::connect(address)).await?;
        _ = stream.set_nodelay(true);
        // whoever has the certificate is trusted, whatever its name
        let name = ServerName::try_from("suture").map_err(|error| error.to_string())?;
        let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
        let stream = in_time(CONNECT_MAX, connecting).await?;
        self.copy(stream, store).await
    }

    /// Enters what another replica sends, and acknowledges it.
    async fn copy(&self, stream: impl AsyncRead + AsyncWrite, store: &Store) -> Result<(), String> {
        let (reader, mut writer) = split(stream);
        let mut lines = BufReader::new(reader).lines();
        reply(&mut writer, &self.shared.process).await?;
        let mut waited_for = None;
        loop {
            let (place, waits) = self.batch(&mut lines, store).await?;
            if waits && waited_for.is_none() {
                let since = now();
                self.shared.active.read_after(since);
                waited_for = Some(since);
            }
            let read = waited_for.is_some_and(|since| self.shared.active.has_read_after(since));
            reply(&mut writer, &format!("{place}{}", if read { COPIED } else { "" })).await?;
        }
    }

    /// Enters what comes until the place is told up to which that is all, and says whether answers wait for it.
    async fn batch<R: AsyncRead>(
        &self,
        lines: &mut Lines<BufReader<ReadHalf<R>>>,
        store: &Store,
    ) -> Result<(String, bool), String> {
        loop {
            let line = in_time(SILENCE_MAX, lines.next_line()).await?.ok_or("it has closed the connection")?;
            for (mark, waits) in [(PLACE, false), (WAITED_FOR, true)] {
                if let Some(place) = line.strip_prefix(mark) {
                    return Ok((place.to_owned(), waits));
                }
            }
            let request = line.strip_prefix(ENTRY).and_then(read).ok_or("an entry cannot be read")?;
            self.shared.log.adopt(&request, store);
        }
    }
}

async fn reply<W: AsyncWrite>(writer: &mut WriteHalf<W>, text: &str) -> Result<(), String> {
    let told = async {
        writer.write_all(format!("{text}\n").as_bytes()).await?;
        writer.flush().await
    };
    in_time(SILENCE_MAX, told).await
}

/// What comes within a time.
async fn in_time<T>(limit: Duration, coming: impl Future<Output = io::Result<T>>) -> Result<T, String> {
    match timeout(limit, coming).await {
        Ok(came) => came.map_err(|error| error.to_string()),
        Err(_) => Err("it does not answer in time".to_owned()),
    }
}

#[cfg(test)]
mod tests;
