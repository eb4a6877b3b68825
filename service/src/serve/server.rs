//! The two listeners: the webhook over TLS, and health over plain HTTP; how they start, and how they drain.
//!
//! | on leaving | readiness | new connections | requests |
//! |---|---|---|---|
//! | at once | not ready | taken | answered |
//! | after the grace, and after handing over to another replica | not ready | refused | those at work are finished |
//! | when they are finished, or the patience ends | gone | refused | cut off |

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::time::Duration;

use axum::{Extension, Router};
use axum_server::Server;
use axum_server::accept::{Accept, NoDelayAcceptor};
use axum_server::tls_rustls::RustlsAcceptor;
use hyper_util::rt::TokioTimer;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio_rustls::server::TlsStream;

use super::connections::{Connections, Guarded};
use super::health::Readiness;
use super::tls::Tls;

/// Requests at once on one connection; the queue is shorter.
const STREAMS_MAX: u32 = 512;
/// A client that takes longer for a handshake is none.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);
/// An HTTP/1 connection that is silent for longer is closed: after Go's client, which keeps idle ones for 90 s
/// (`http.DefaultTransport`), so that no request meets a closing connection.
const SILENCE_MAX: Duration = Duration::from_secs(120);
/// How often a silent HTTP/2 connection is asked whether it is there, and how long it may take.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_MAX: Duration = Duration::from_secs(15);
/// How long probes and scrapes of the health listener may take after the webhook has left.
const HEALTH_LEAVES_MAX: Duration = Duration::from_secs(1);

/// How the webhook leaves.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    /// How long it goes on taking connections while not ready, before it hands over: what endpoints need to forget it.
    pub grace: Duration,
    /// How long requests at work may then take.
    pub patience: Duration,
}

impl Default for Drain {
    fn default() -> Self {
        // within the 30 s that a pod has by default
        Self { grace: Duration::from_secs(5), patience: Duration::from_secs(15) }
    }
}

/// The listeners, bound and not yet served.
pub struct Listeners {
    webhook: TcpListener,
    health: TcpListener,
    control: Handle,
}

impl Listeners {
    /// Binds them; port 0 takes a free one. Health will be served on `control`.
    ///
    /// # Errors
    /// When an address cannot be had.
    pub fn bind(webhook: SocketAddr, health: SocketAddr, control: Handle) -> io::Result<Self> {
        let listen = |address: SocketAddr| {
            let listener = TcpListener::bind(address)
                .map_err(|error| io::Error::new(error.kind(), format!("cannot listen on `{address}`: {error}")))?;
            listener.set_nonblocking(true)?;
            Ok::<_, io::Error>(listener)
        };
        Ok(Self { webhook: listen(webhook)?, health: listen(health)?, control })
    }

    /// Where the webhook listens.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn webhook(&self) -> io::Result<SocketAddr> {
        self.webhook.local_addr()
    }

    /// Where health listens.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn health(&self) -> io::Result<SocketAddr> {
        self.health.local_addr()
    }

    /// Serves until `stop`, then drains; `hand_over` is awaited when the grace is over. Health is served on the control
    /// runtime.
    ///
    /// # Errors
    /// When a listener fails.
    pub async fn serve(
        self,
        webhook: Router,
        health: Router,
        tls: Tls,
        readiness: Readiness,
        drain: Drain,
        (stop, hand_over): (impl Future<Output = ()>, impl Future<Output = ()>),
    ) -> io::Result<()> {
        let (handler, probes) = (axum_server::Handle::new(), axum_server::Handle::new());
        let acceptor = Acceptor {
            inner: RustlsAcceptor::new(tls.config()).handshake_timeout(HANDSHAKE_MAX).acceptor(NoDelayAcceptor::new()),
            tls,
            connections: Connections::default(),
        };
        let serving = limited(axum_server::from_tcp(self.webhook)?.handle(handler.clone()).acceptor(acceptor))
            .serve(webhook.into_make_service());
        let own = probes.clone();
        let probing = self.control.spawn(async move {
            limited(axum_server::from_tcp(self.health)?.handle(own)).serve(health.into_make_service()).await
        });
        let probing = async { probing.await.map_err(io::Error::other)? };
        let leaving = async {
            stop.await;
            tracing::info!("leaving: not ready from now on");
            readiness.set("serving", Err("leaving".to_owned()));
            tokio::time::sleep(drain.grace).await;
            hand_over.await;
            handler.graceful_shutdown(Some(drain.patience));
            // never ready: what ends the service is that the webhook's listener does
            std::future::pending::<()>().await;
        };
        let (mut serving, mut probing) = (std::pin::pin!(serving), std::pin::pin!(probing));
        readiness.set("serving", Ok(()));
        tokio::select! {
            served = &mut serving => served?,
            probed = &mut probing => return probed,
            () = leaving => {}
        }
        probes.graceful_shutdown(Some(HEALTH_LEAVES_MAX));
        probing.await
    }
}

/// Ready when the process is asked to leave.
///
/// # Errors
/// When signals cannot be heard.
pub async fn asked_to_leave() -> io::Result<()> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// A server with limits on what a connection may do.
fn limited<A>(mut server: Server<SocketAddr, A>) -> Server<SocketAddr, A> {
    let builder = server.http_builder();
    builder.http1().timer(TokioTimer::new()).header_read_timeout(SILENCE_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_MAX);
    server
}

/// Takes TLS connections, as many as may be ([`Connections`]), from clients that may come in.
#[derive(Clone)]
struct Acceptor {
    inner: RustlsAcceptor<NoDelayAcceptor>,
    tls: Tls,
    connections: Connections,
}

impl Accept<TcpStream, Router> for Acceptor {
    type Stream = Guarded<TlsStream<TcpStream>>;
    type Service = Router;
    type Future = Pin<Box<dyn Future<Output = io::Result<(Self::Stream, Router)>> + Send>>;

    fn accept(&self, stream: TcpStream, service: Router) -> Self::Future {
        let entered = stream.peer_addr().map(|peer| self.connections.enter(peer.ip()));
        let Ok(Some((connection, mut closing))) = entered else {
            tracing::warn!("a connection is refused, too many are open");
            return Box::pin(std::future::ready(Err(io::ErrorKind::ConnectionRefused.into())));
        };
        // the router says when somebody asks by it who may
        let service = service.layer(Extension(connection.clone()));
        let (accepting, tls) = (self.inner.accept(stream, service), self.tls.clone());
        Box::pin(async move {
            let accepted = tokio::select! {
                biased;
                _ = &mut closing => return Err(io::ErrorKind::ConnectionAborted.into()),
                accepted = accepting => accepted,
            };
            let (stream, service) = accepted.inspect_err(|error| tracing::debug!(%error, "no TLS connection"))?;
            if !tls.admits(stream.get_ref().1.peer_certificates()) {
                tracing::warn!("a connection is refused, its client's certificate has another name");
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            Ok((Guarded::new(stream, connection, closing), service))
        })
    }
}

#[cfg(test)]
mod tests;
