//! A TCP balancer before the replicas, as a Service would be: each connection goes to the next replica that takes it.

use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::error::Error;
use crate::ports::Port;

/// A balancer on a port of its own. Its threads end with the process.
#[derive(Debug)]
pub struct Balancer {
    port: Port,
    /// The connections that were ever made.
    joined: Arc<Mutex<Vec<TcpStream>>>,
}

impl Balancer {
    /// Spreads connections over these ports on loopback.
    pub fn start(targets: Vec<u16>) -> Result<Self, Error> {
        Self::start_where(targets, |_| true)
    }

    /// The same, over those that are ready, as a Service does.
    pub fn start_where(targets: Vec<u16>, ready: impl Fn(u16) -> bool + Send + 'static) -> Result<Self, Error> {
        let port = Port::reserve()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.number())).map_err(Error::io("balancer"))?;
        let next = Arc::new(AtomicUsize::new(0));
        let joined: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let all = joined.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let first = next.fetch_add(1, Ordering::Relaxed);
                let turns = targets.iter().cycle().skip(first % targets.len()).take(targets.len());
                let found = turns
                    .filter(|port| ready(**port))
                    .map(|port| TcpStream::connect((Ipv4Addr::LOCALHOST, *port)))
                    .find_map(Result::ok);
                // nobody there: the client sees its connection closed
                if let Some(replica) = found {
                    all.lock().unwrap_or_else(PoisonError::into_inner).extend(client.try_clone());
                    join(client, replica);
                }
            }
        });
        Ok(Self { port, joined })
    }

    /// Ends all connections; new ones are taken as before.
    pub fn cut(&self) {
        let joined = std::mem::take(&mut *self.joined.lock().unwrap_or_else(PoisonError::into_inner));
        for connection in joined {
            // it may have ended by itself
            _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port.number()
    }
}

/// Copies both ways until both are done.
fn join(client: TcpStream, replica: TcpStream) {
    let pipe = |mut from: TcpStream, mut to: TcpStream| {
        thread::spawn(move || {
            _ = io::copy(&mut from, &mut to);
            // half a connection is of no use to HTTP
            _ = to.shutdown(Shutdown::Both);
            _ = from.shutdown(Shutdown::Both);
        });
    };
    _ = client.set_nodelay(true).and_then(|()| replica.set_nodelay(true));
    if let (Ok(answers), Ok(asked)) = (replica.try_clone(), client.try_clone()) {
        pipe(client, replica);
        pipe(answers, asked);
    }
}
