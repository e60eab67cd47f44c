//! A connection that waits only so long for its client.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// Ends a connection whose client does not take or send a single byte for some time.
#[derive(Debug)]
pub(crate) struct Patient<S> {
    stream: S,
    patience: Duration,
    reading: Pin<Box<Sleep>>,
    writing: Pin<Box<Sleep>>,
}

impl<S> Patient<S> {
    pub(crate) fn new(stream: S, patience: Duration) -> Self {
        let sleep = || Box::pin(tokio::time::sleep(patience));
        Self { stream, patience, reading: sleep(), writing: sleep() }
    }
}

/// The result of `done`, or an error if there has been none for too long.
fn waited<T>(
    done: Poll<io::Result<T>>,
    sleep: &mut Pin<Box<Sleep>>,
    patience: Duration,
    context: &mut Context<'_>,
) -> Poll<io::Result<T>> {
    if done.is_ready() {
        sleep.as_mut().reset(Instant::now() + patience);
        return done;
    }
    match sleep.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
        Poll::Pending => Poll::Pending,
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, patience, reading, .. } = &mut *self;
        let done = Pin::new(stream).poll_read(context, buffer);
        waited(done, reading, *patience, context)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Self { stream, patience, reading, writing } = &mut *self;
        let done = Pin::new(stream).poll_write(context, bytes);
        // Whoever takes an answer that goes on and on need not send anything.
        if done.is_ready() {
            reading.as_mut().reset(Instant::now() + *patience);
        }
        waited(done, writing, *patience, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, patience, reading, writing } = &mut *self;
        let done = Pin::new(stream).poll_write_vectored(context, bytes);
        if done.is_ready() {
            reading.as_mut().reset(Instant::now() + *patience);
        }
        waited(done, writing, *patience, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, patience, writing, .. } = &mut *self;
        let done = Pin::new(stream).poll_flush(context);
        waited(done, writing, *patience, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
