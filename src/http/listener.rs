//! Sockets: accepts connections within bounds, and lets them finish when it is time to stop.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::App;
use super::a2a;
use super::door::router;
use super::head::room_for;
use super::pacing::{InPieces, Streams, attend};
use super::peer::{OfPeer, Peer};
use super::places::Places;
use super::socket::Patient;
use super::tls::Certificates;
use crate::limits;
use crate::settings::Tls;

/// A socket that is bound, before anything is served on it.
pub struct Listening {
    listener: std::net::TcpListener,
    address: SocketAddr,
    /// Nothing if it speaks in the clear.
    tls: Option<Arc<Certificates>>,
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Listening({})", self.address)
    }
}

/// Why nothing can be served.
#[derive(Debug)]
pub enum ListenFault {
    Bind { address: SocketAddr, error: io::Error },
    Tls(String),
    Io(io::Error),
}

impl std::fmt::Display for ListenFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bind { address, error } if error.kind() == io::ErrorKind::AddrInUse => {
                write!(f, "{address} is in use already; stop what listens there, or give another --listen")
            }
            Self::Bind { address, error } => write!(f, "{address}: {error}"),
            Self::Tls(why) => write!(f, "{why}"),
            Self::Io(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ListenFault {}

/// Binds a socket. Port 0 takes any that is free.
///
/// Certificates are read here, too: a file that is missing is told before anything is opened or promised.
pub fn listen(address: SocketAddr, tls: &Tls, workspace: &Path) -> Result<Listening, ListenFault> {
    let tls = Certificates::open(tls, workspace).map_err(|faults| {
        let whys: Vec<String> = faults.into_iter().map(|fault| fault.why).collect();
        ListenFault::Tls(whys.join("; "))
    })?;
    let bound = std::net::TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Listening { listener, address, tls })
    });
    bound.map_err(|error| ListenFault::Bind { address, error })
}

impl Listening {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it speaks TLS with; nothing if it speaks in the clear.
    pub(super) fn certificates(&self) -> Option<Arc<Certificates>> {
        self.tls.clone()
    }

    /// Serves the API, and `beside` it what another door has, until `stop` is ready; then no more is accepted, and what is under way may finish within the bound, or until `hurry` is ready.
    pub async fn serve(
        self,
        app: Arc<App>,
        beside: Router,
        stop: impl Future<Output = ()>,
        hurry: impl Future<Output = ()>,
    ) -> Result<(), ListenFault> {
        let tls = self.tls;
        let listener = TcpListener::from_std(self.listener).map_err(ListenFault::Io)?;
        let service = InPieces(TowerToHyperService::new(router(app.clone(), beside)));
        let server = app.settings.server.clone();
        let head_room = room_for(server.header_bytes_max);
        let builder_of = |streams: &Streams| {
            let mut builder = auto::Builder::new(streams.clone());
            builder
                .http1()
                .timer(TokioTimer::new())
                .header_read_timeout(server.header_timeout)
                .max_buf_size(head_room);
            builder
                .http2()
                .timer(TokioTimer::new())
                .max_header_list_size(u32::try_from(head_room).unwrap_or(u32::MAX))
                .max_concurrent_streams(limits::HTTP2_STREAMS_MAX)
                .keep_alive_interval(Some(Duration::from_secs(limits::HTTP2_PING_S)));
            builder
        };
        let places = Places::new(&server);
        let telling = tokio::spawn(a2a::deliver(app.clone()));
        let (closing, _) = watch::channel(false);
        let mut stop = std::pin::pin!(stop);
        loop {
            let permit = tokio::select! {
                permit = places.wait() => permit,
                () = &mut stop => break,
            };
            let Some(permit) = permit else { break };
            let (stream, peer) = tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        // Out of descriptors, most likely: others must close theirs first.
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                },
                () = &mut stop => break,
            };
            // One that has as many as it may is not worth a word: it would have to wait for it to be read.
            let Some(place) = places.take(permit, peer.ip()) else { continue };
            let _ = stream.set_nodelay(true);
            let nearby = app.settings.a2a.anonymous.then_some(Peer(peer.ip()));
            let service = OfPeer::new(service.clone(), nearby);
            let (streams, closing) = (Streams::default(), closing.subscribe());
            let builder = builder_of(&streams);
            let (tls, app, patience) =
                (tls.as_ref().map(|tls| tls.acceptor()), app.clone(), server.header_timeout);
            tokio::spawn(async move {
                app.metrics.connected();
                match tls {
                    None => {
                        let stream = Patient::new(stream, patience, streams.clone());
                        let connection = builder.serve_connection(TokioIo::new(stream), service);
                        attend(connection.into_owned(), streams, patience, closing).await;
                    }
                    Some(tls) => {
                        if let Some(stream) = handshake(&tls, stream, patience).await {
                            let stream = Patient::new(stream, patience, streams.clone());
                            let connection = builder.serve_connection(TokioIo::new(stream), service);
                            attend(connection.into_owned(), streams, patience, closing).await;
                        }
                    }
                }
                app.metrics.disconnected();
                drop(place);
            });
        }
        drop(listener);
        // Streams end by themselves when they see this.
        app.stopping.send_replace(true);
        closing.send_replace(true);
        let winding_up = async {
            finish(&closing, server.shutdown_timeout).await;
            // It has seen that, too, and writes down how far it has come.
            let _ = tokio::time::timeout(server.shutdown_timeout, telling).await;
        };
        tokio::select! {
            () = winding_up => {}
            () = hurry => tracing::warn!("told to stop once more: what is under way is cut off"),
        }
        Ok(())
    }
}

/// Waits for the connections that have seen that it is time to close, as long as that may take, and says so where it takes
/// long enough for somebody to wonder.
async fn finish(closing: &watch::Sender<bool>, patience: Duration) {
    let closed = async {
        let moment = Duration::from_millis(500);
        if tokio::time::timeout(moment, closing.closed()).await.is_ok() {
            return;
        }
        tracing::info!(
            connections = closing.receiver_count(),
            seconds = patience.as_secs(),
            "waiting for requests that are under way; a second Ctrl-C or SIGTERM ends that"
        );
        closing.closed().await;
    };
    if tokio::time::timeout(patience, closed).await.is_err() {
        tracing::warn!("some connections did not finish in time");
    }
}

async fn handshake(
    tls: &TlsAcceptor,
    stream: TcpStream,
    patience: Duration,
) -> Option<tokio_rustls::server::TlsStream<TcpStream>> {
    match tokio::time::timeout(patience, tls.accept(stream)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a TLS handshake failed");
            None
        }
        Err(_) => None,
    }
}
