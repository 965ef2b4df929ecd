//! A connection with bounds on how long its peer may keep it waiting.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::pacing::Streams;
use crate::limits;

/// What HTTP/2 begins with. Until it is clear whether this is it, no other bound on the peer's time holds.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A peer must begin in time, and must take what is ready for it, sooner or later: one that does not is cut off,
/// so that nothing is kept for it without end.
pub(super) struct Patient<S> {
    stream: S,
    /// Running until the peer has said enough to be told what it speaks.
    beginning: Option<Pin<Box<Sleep>>>,
    /// How much of the preface has come so far.
    preface_bytes: usize,
    /// They are told when it was the whole of it.
    streams: Streams,
    /// Running while the peer takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub(super) fn new(stream: S, patience: Duration, streams: Streams) -> Self {
        let beginning = Some(Box::pin(tokio::time::sleep(patience)));
        Self { stream, beginning, preface_bytes: 0, streams, stalled: None }
    }

    fn heard(&mut self, bytes: &[u8]) {
        let expected = PREFACE.get(self.preface_bytes..).unwrap_or_default();
        let common = expected.len().min(bytes.len());
        self.preface_bytes += common;
        let is_preface = expected.get(..common) == bytes.get(..common);
        let is_over = self.preface_bytes >= PREFACE.len();
        if is_preface && is_over {
            self.streams.begin();
        }
        if !is_preface || is_over {
            self.beginning = None;
        }
    }

    fn guard<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let until = Duration::from_secs(limits::WRITE_STALL_S);
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(until)));
        if stalled.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer takes nothing")));
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if self.beginning.is_none() {
            return read;
        }
        if read.is_ready() {
            let bytes = buffer.filled().get(before..).unwrap_or_default().to_vec();
            self.heard(&bytes);
            return read;
        }
        let over =
            self.beginning.as_mut().is_some_and(|beginning| beginning.as_mut().poll(context).is_ready());
        if over {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer says nothing")));
        }
        Poll::Pending
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
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
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.guard(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(context);
        self.guard(context, ended)
    }
}
