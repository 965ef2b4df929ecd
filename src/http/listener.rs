//! Sockets: accepts connections within bounds, and lets them finish when it is time to stop.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsAcceptor;

use super::App;
use super::door::router;
use super::tls::acceptor;
use crate::limits;

/// A socket that is bound, before anything is served on it.
#[derive(Debug)]
pub struct Listening {
    listener: std::net::TcpListener,
    address: SocketAddr,
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
            Self::Tls(why) => write!(f, "tls: {why}"),
            Self::Io(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ListenFault {}

/// Binds a socket. Port 0 takes any that is free.
pub fn listen(address: SocketAddr) -> Result<Listening, ListenFault> {
    let bound = std::net::TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Listening { listener, address })
    });
    bound.map_err(|error| ListenFault::Bind { address, error })
}

impl Listening {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is ready; then no more is accepted, and what is under way may finish within the bound.
    pub async fn serve(
        self,
        app: Arc<App>,
        workspace: &Path,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ListenFault> {
        let tls = acceptor(&app.settings.tls, workspace).map_err(ListenFault::Tls)?;
        let listener = TcpListener::from_std(self.listener).map_err(ListenFault::Io)?;
        let service = TowerToHyperService::new(router(app.clone()));
        let server = app.settings.server.clone();
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(server.header_timeout)
            .max_buf_size(server.header_bytes_max.max(8 * 1024));
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_header_list_size(u32::try_from(server.header_bytes_max).unwrap_or(u32::MAX))
            .max_concurrent_streams(256)
            .keep_alive_interval(Some(Duration::from_secs(30)));
        let places = Arc::new(Semaphore::new(server.connections_max));
        let guests = Guests::new(server.connections_per_client_max);
        let graceful = GracefulShutdown::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            let place = tokio::select! {
                place = places.clone().acquire_owned() => place,
                () = &mut stop => break,
            };
            let Ok(place) = place else { break };
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
            // One that has too many already is cut off at once: its others go on.
            let Some(guest) = guests.admit(peer.ip()) else { continue };
            let _ = stream.set_nodelay(true);
            let (builder, service, watcher) = (builder.clone(), service.clone(), graceful.watcher());
            let (tls, app, patience) = (tls.clone(), app.clone(), server.header_timeout);
            tokio::spawn(async move {
                app.metrics.connected();
                let stream = Stalling::new(stream);
                match tls {
                    None => {
                        let connection = builder.serve_connection(TokioIo::new(stream), service);
                        // A peer that went away, or sent what is no HTTP, is no fault of ours.
                        let _ = watcher.watch(connection.into_owned()).await;
                    }
                    Some(tls) => {
                        if let Some(stream) = handshake(&tls, stream, patience).await {
                            let connection = builder.serve_connection(TokioIo::new(stream), service);
                            let _ = watcher.watch(connection.into_owned()).await;
                        }
                    }
                }
                app.metrics.disconnected();
                drop((place, guest));
            });
        }
        drop(listener);
        // Streams end by themselves when they see this.
        app.stopping.send_replace(true);
        if tokio::time::timeout(server.shutdown_timeout, graceful.shutdown()).await.is_err() {
            tracing::warn!("some connections did not finish in time");
        }
        Ok(())
    }
}

/// How many connections each client has, where that is bounded.
#[derive(Clone)]
struct Guests {
    each_max: Option<usize>,
    counts: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// A connection that is counted; given back when it is dropped.
struct Guest(Option<(Guests, IpAddr)>);

impl Guests {
    fn new(each_max: Option<usize>) -> Self {
        Self { each_max, counts: Arc::default() }
    }

    fn admit(&self, client: IpAddr) -> Option<Guest> {
        let Some(each_max) = self.each_max else { return Some(Guest(None)) };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(client).or_default();
        if *count >= each_max {
            return None;
        }
        *count += 1;
        Some(Guest(Some((self.clone(), client))))
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let Some((guests, client)) = self.0.take() else { return };
        let mut counts = guests.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&client);
            }
        }
    }
}

async fn handshake(
    tls: &TlsAcceptor,
    stream: Stalling,
    patience: Duration,
) -> Option<tokio_rustls::server::TlsStream<Stalling>> {
    match tokio::time::timeout(patience, tls.accept(stream)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a TLS handshake failed");
            None
        }
        Err(_) => None,
    }
}

/// A connection whose peer must take what is ready for it, sooner or later: one that does not is cut off, so that
/// nothing is kept for it without end.
struct Stalling {
    stream: TcpStream,
    /// Running while the peer takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Stalling {
    fn new(stream: TcpStream) -> Self {
        Self { stream, stalled: None }
    }

    fn guard<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let until = Duration::from_secs(limits::WRITE_STALL_S);
        let stalled =
            self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + until)));
        if stalled.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer takes nothing")));
        }
        Poll::Pending
    }
}

impl AsyncRead for Stalling {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stalling {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.guard(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.guard(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_so_many_connections_and_no_more_until_one_ends() {
        let [one, other] = [IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2])];
        let guests = Guests::new(Some(2));
        let first = guests.admit(one).unwrap();
        let _second = guests.admit(one).unwrap();
        assert!(guests.admit(one).is_none());
        assert!(guests.admit(other).is_some());
        drop(first);
        assert!(guests.admit(one).is_some());
        let unbounded = Guests::new(None);
        assert!((0..100).map(|_| unbounded.admit(one)).collect::<Option<Vec<_>>>().is_some());
    }
}
