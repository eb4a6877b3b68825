//! Which connections to the webhook are open. Strangers, who have not asked at the webhook's address yet, are few at a time
//! and for a short time: they never keep the API server out, which asks as soon as it has connected.
//!
//! | too many | then |
//! |---|---|
//! | strangers of one address | the oldest of these is closed |
//! | strangers | the oldest one is closed, of the address that has most |
//! | others | a new connection is refused |

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep};

/// Connections of those that have asked. An API server holds one or a few.
const KNOWN_MAX: usize = 512;
/// Connections of strangers, all and of one address.
const STRANGERS_MAX: usize = 512;
const STRANGERS_OF_ONE_MAX: usize = 256;
/// Who has not asked by then is closed. The API server connects when it has something to ask.
const STRANGER_MAX: Duration = Duration::from_secs(10);

/// All open connections; cheap to clone.
#[derive(Clone, Default)]
pub struct Connections {
    open: Arc<Mutex<Open>>,
}

#[derive(Default)]
struct Open {
    /// By the order in which they came.
    entries: BTreeMap<u64, Entry>,
    next: u64,
}

struct Entry {
    peer: IpAddr,
    known: bool,
    close: Option<oneshot::Sender<()>>,
}

/// One connection; it is open as long as this lives.
pub struct Connection {
    number: u64,
    known: AtomicBool,
    all: Connections,
}

/// Ready when a connection is to be closed.
pub type Closing = oneshot::Receiver<()>;

impl Connections {
    /// A connection of a stranger from there; none if it is refused.
    pub fn enter(&self, peer: IpAddr) -> Option<(Arc<Connection>, Closing)> {
        let mut open = self.open();
        if open.entries.values().filter(|entry| entry.known).count() >= KNOWN_MAX {
            return None;
        }
        open.make_room(peer);
        let (close, closing) = oneshot::channel();
        let number = open.next;
        open.next += 1;
        open.entries.insert(number, Entry { peer, known: false, close: Some(close) });
        Some((Arc::new(Connection { number, known: AtomicBool::new(false), all: self.clone() }), closing))
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Closes a stranger where one more would be too many.
    fn make_room(&mut self, peer: IpAddr) {
        let mut strangers: BTreeMap<IpAddr, Vec<u64>> = BTreeMap::new();
        for (number, entry) in self.entries.iter().filter(|(_, entry)| !entry.known) {
            strangers.entry(entry.peer).or_default().push(*number);
        }
        let all = strangers.values().map(Vec::len).sum::<usize>();
        let own = strangers.get(&peer).filter(|own| own.len() >= STRANGERS_OF_ONE_MAX);
        let most = || strangers.values().max_by_key(|numbers| numbers.len());
        let crowd = own.or_else(|| (all >= STRANGERS_MAX).then(most).flatten());
        if let Some(mut entry) = crowd.and_then(|crowd| self.entries.remove(crowd.first()?)) {
            // it may be closing already
            entry.close.take().map(|close| close.send(()));
        }
    }
}

impl Connection {
    /// Who is there has asked at the webhook's address.
    pub fn prove(&self) {
        if !self.known.swap(true, Ordering::AcqRel)
            && let Some(entry) = self.all.open().entries.get_mut(&self.number)
        {
            entry.known = true;
        }
    }

    fn is_known(&self) -> bool {
        self.known.load(Ordering::Acquire)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.all.open().entries.remove(&self.number);
    }
}

/// A stream that ends when its connection is to be closed, or its stranger has not asked in time.
pub struct Guarded<S> {
    stream: S,
    connection: Arc<Connection>,
    closing: Closing,
    /// None once it is known who is there.
    patience: Option<Pin<Box<Sleep>>>,
}

impl<S> Guarded<S> {
    /// The stream of a connection.
    pub fn new(stream: S, connection: Arc<Connection>, closing: Closing) -> Self {
        Self { stream, connection, closing, patience: Some(Box::pin(sleep(STRANGER_MAX))) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.connection.is_known() {
            self.patience = None;
        } else {
            let late = self.patience.as_mut().is_some_and(|patience| patience.as_mut().poll(cx).is_ready());
            if late || Pin::new(&mut self.closing).poll(cx).is_ready() {
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
        }
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_make_room_for_each_other_and_never_take_that_of_the_known() {
        let all = Connections::default();
        let peer = |number: u16| IpAddr::from([0, 0, 0, 0, 0, 0, 0, number]);
        let (known, mut known_closing) = all.enter(peer(0)).unwrap();
        known.prove();
        let mut crowd: Vec<_> = (0..STRANGERS_OF_ONE_MAX + 24).map(|_| all.enter(peer(1)).unwrap()).collect();
        let closed = |crowd: &mut Vec<(Arc<Connection>, Closing)>| {
            crowd.iter_mut().map(|(_, closing)| closing.try_recv().is_ok()).collect::<Vec<_>>()
        };
        assert_eq!(
            closed(&mut crowd),
            [vec![true; 24], vec![false; STRANGERS_OF_ONE_MAX]].concat(),
            "the oldest of one address"
        );
        let mut others: Vec<_> = (0..268).map(|number| all.enter(peer(10 + number)).unwrap()).collect();
        // who has most connections loses them first
        assert!(closed(&mut others).iter().all(|closed| !closed));
        assert_eq!(closed(&mut crowd).iter().filter(|closed| **closed).count(), 12);
        assert!(known_closing.try_recv().is_err());
        drop((crowd, others, known));
        assert!(all.open().entries.is_empty());
    }
}
