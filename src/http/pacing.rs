//! HTTP/2: a connection that nobody uses is closed, and a stream whose reader takes nothing is reset.
//!
//! Over HTTP/1 the socket tells how long its peer has said or taken nothing (`socket.rs`). Over HTTP/2 a peer may keep the
//! socket busy with frames that ask for nothing, or take nothing of one stream while it takes all of another. So the streams
//! of a connection are counted, and each says whose turn it is: ours to have something to send, or the peer's to take it.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use futures_util::TryFutureExt as _;
use futures_util::future::MapOk;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::rt::Executor;
use hyper::service::Service;
use hyper_util::server::graceful::GracefulConnection;
use tokio::sync::watch;
use tokio::time::Sleep;

use crate::limits;

/// Serves a connection until it ends, nobody has used it for so long, or it is time to stop.
pub(super) async fn attend(
    connection: impl GracefulConnection,
    streams: Streams,
    patience: Duration,
    mut stopping: watch::Receiver<bool>,
) {
    let mut connection = pin!(connection);
    tokio::select! {
        // A peer that went away, or sent what is no HTTP, is no fault of ours.
        _ = connection.as_mut() => return,
        _ = stopping.wait_for(|stopping| *stopping) => {}
        () = streams.unused_for(patience) => {}
    }
    connection.as_mut().graceful_shutdown();
    let until = Duration::from_secs(limits::WRITE_STALL_S);
    tokio::select! {
        _ = connection => {}
        // It was told, behind all that it was sent, and has taken neither.
        () = streams.unused_for(until) => {}
    }
}

/// How many streams a connection has open; nothing while it is not known to speak HTTP/2.
#[derive(Debug, Clone)]
pub(super) struct Streams(Arc<watch::Sender<Option<usize>>>);

impl Default for Streams {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl Streams {
    /// It speaks HTTP/2.
    pub(super) fn begin(&self) {
        self.0.send_if_modified(|open| open.replace(open.unwrap_or(0)).is_none());
    }

    /// Ready when none was open for so long.
    async fn unused_for(&self, patience: Duration) {
        let mut open = self.0.subscribe();
        loop {
            // This one is ours: whoever counts is not gone.
            let _ = open.wait_for(|open| *open == Some(0)).await;
            tokio::select! {
                _ = open.changed() => {}
                () = tokio::time::sleep(patience) => return,
            }
        }
    }

    fn count(&self, change: impl FnOnce(usize) -> usize) {
        self.0.send_modify(|open| *open = Some(change(open.unwrap_or(0))));
    }
}

/// Runs the streams of a connection.
impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        self.count(|open| open + 1);
        let open = Open(self.clone());
        let paced = Paced {
            stream: Box::pin(stream),
            turn: Arc::default(),
            waits_for: 0,
            stalled: None,
            _open: open,
        };
        tokio::spawn(paced);
    }
}

/// A stream that is counted.
struct Open(Streams);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.count(|open| open.saturating_sub(1));
    }
}

/// Whose turn it is on a stream: the number of the piece that the peer has not taken yet, or 0.
#[derive(Debug, Default)]
struct Turn(AtomicU64);

tokio::task_local! {
    /// Of the stream that is being polled; none over HTTP/1.
    static TURN: Arc<Turn>;
}

/// A stream that is given up when its peer takes nothing of what is ready for it; dropping it resets it.
struct Paced<F> {
    stream: Pin<Box<F>>,
    turn: Arc<Turn>,
    /// The piece that the peer was last seen not to have taken, and running since then.
    waits_for: u64,
    stalled: Option<Pin<Box<Sleep>>>,
    _open: Open,
}

impl<F: Future<Output = ()>> Future for Paced<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { stream, turn, waits_for, stalled, .. } = &mut *self;
        if TURN.sync_scope(turn.clone(), || stream.as_mut().poll(context)).is_ready() {
            return Poll::Ready(());
        }
        let piece = turn.0.load(Ordering::Acquire);
        if piece == 0 {
            *stalled = None;
            return Poll::Pending;
        }
        if piece != *waits_for {
            (*waits_for, *stalled) = (piece, None);
        }
        let until = Duration::from_secs(limits::WRITE_STALL_S);
        stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(until))).as_mut().poll(context)
    }
}

/// A service whose answers go out in pieces where they are paced.
#[derive(Debug, Clone)]
pub(super) struct InPieces<S>(pub(super) S);

impl<S> Service<hyper::Request<Incoming>> for InPieces<S>
where
    S: Service<hyper::Request<Incoming>, Response = Response>,
{
    type Response = Response;
    type Error = S::Error;
    type Future = MapOk<S::Future, fn(Response) -> Response>;

    fn call(&self, request: hyper::Request<Incoming>) -> Self::Future {
        self.0.call(request).map_ok(in_pieces as fn(Response) -> Response)
    }
}

fn in_pieces(response: Response) -> Response {
    let Ok(turn) = TURN.try_with(Arc::clone) else { return response };
    response.map(|body| Body::new(Pieces { body, rest: Bytes::new(), turn, number: 0 }))
}

/// A body in pieces, so that it is seen whether its reader gets on. The pieces are parts of what it has, not copies.
struct Pieces {
    body: Body,
    rest: Bytes,
    turn: Arc<Turn>,
    number: u64,
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            // Whoever asks has sent all that there was.
            self.turn.0.store(0, Ordering::Release);
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                other => return Poll::Ready(other),
            }
        }
        let bytes = self.rest.len().min(limits::STREAM_PIECE_BYTES);
        let piece = self.rest.split_to(bytes);
        self.number += 1;
        self.turn.0.store(self.number, Ordering::Release);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}
