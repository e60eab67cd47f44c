//! A second stream for the gradients of parameters, which nothing reads before the backward pass ends.
//!
//! Buffers return to the pool when they are dropped, in the order of the main stream. Those that the gradient stream uses
//! are therefore kept alive until the main stream has joined it.

use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::result::{self, stream::StreamKind};
use cudarc::driver::sys;

use super::context::{Context, Grid, dim, driver};
use super::kernels::add_partials;
use super::memory::{Buffer, Event};
use crate::Result;

/// The stream that work is submitted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Main,
    /// The stream of parameter gradients.
    Grad,
}

pub(super) struct GradStream {
    pub(super) stream: sys::CUstream,
    forked: Event,
    done: Event,
    /// Buffers that submitted work uses.
    kept_alive: Mutex<Vec<Arc<Buffer>>>,
    /// Sums that the next join adds.
    sums: Mutex<Vec<PartialSums>>,
}

/// Partial sums of a gradient: `n` rows of `cols` values, `stride` values apart, from value `first` on.
pub(super) struct PartialSums {
    pub(super) partials: Arc<Buffer>,
    pub(super) first: usize,
    pub(super) n: usize,
    pub(super) stride: usize,
    pub(super) cols: usize,
    pub(super) to: u64,
}

/// The main stream, and the gradient stream of lower priority.
pub(super) fn create() -> Result<(sys::CUstream, GradStream)> {
    let failed = driver("create a stream");
    let (lowest, highest) = result::stream::get_priority_range().map_err(&failed)?;
    let main = result::stream::create_with_priority(StreamKind::NonBlocking, highest).map_err(&failed)?;
    let stream = result::stream::create_with_priority(StreamKind::NonBlocking, lowest).map_err(&failed)?;
    let (forked, done) = (Event::new()?, Event::new()?);
    Ok((main, GradStream { stream, forked, done, kept_alive: Mutex::default(), sums: Mutex::default() }))
}

/// Makes later work on `waiting` wait for all work submitted to `first`.
fn order(event: &Event, first: sys::CUstream, waiting: sys::CUstream) -> Result<()> {
    event.record(first)?;
    event.block_stream(waiting)
}

impl Context {
    pub(super) fn raw_stream(&self, stream: Stream) -> sys::CUstream {
        match stream {
            Stream::Main => self.stream,
            Stream::Grad => self.grad_stream.stream,
        }
    }

    /// Makes the gradient stream wait for all work submitted to the main stream so far.
    pub(super) fn fork(&self) -> Result<Stream> {
        order(&self.grad_stream.forked, self.stream, self.grad_stream.stream)?;
        Ok(Stream::Grad)
    }

    /// Keeps the buffers of work that was just submitted to `stream` alive until the next join.
    pub(crate) fn keep_alive<'b>(&self, stream: Stream, buffers: impl IntoIterator<Item = &'b Arc<Buffer>>) {
        if stream == Stream::Grad {
            self.kept_alive().extend(buffers.into_iter().map(Arc::clone));
        }
    }

    /// Makes the main stream wait for the gradient stream, and adds the deferred sums.
    pub(super) fn join(self: &Arc<Self>) -> Result<()> {
        let sums = std::mem::take(&mut *self.sums());
        let kept_alive = std::mem::take(&mut *self.kept_alive());
        // Uploaded before the wait, so that the copy overlaps the gradient stream.
        let table = (!sums.is_empty()).then(|| self.upload_table(&sums)).transpose()?;
        if !kept_alive.is_empty() {
            order(&self.grad_stream.done, self.grad_stream.stream, self.stream)?;
        }
        table.map_or(Ok(()), |table| self.add_sums(&sums, &table))
    }

    /// Adds partial sums at the next join, all in one kernel: a step has many small ones.
    pub(super) fn add_at_join(self: &Arc<Self>, sums: Vec<PartialSums>) -> Result<()> {
        let is_waiting = |to: u64| self.sums().iter().any(|sum| sum.to == to);
        // One kernel adds to a gradient once.
        if sums.iter().any(|sum| is_waiting(sum.to)) {
            self.join()?;
            // Later work on the gradient stream may add to the same gradients.
            self.fork()?;
        }
        self.sums().extend(sums);
        Ok(())
    }

    /// Adds partial sums, which are ready on the main stream, to distinct gradients.
    pub(super) fn add_now(self: &Arc<Self>, sums: &[PartialSums]) -> Result<()> {
        let table = self.upload_table(sums)?;
        self.add_sums(sums, &table)
    }

    /// Drops the deferred sums of a pass that failed.
    pub(super) fn drop_sums(&self) {
        self.sums().clear();
    }

    /// The kernel's `struct PartialSums` of each.
    fn upload_table(self: &Arc<Self>, sums: &[PartialSums]) -> Result<Arc<Buffer>> {
        let pair = |low: usize, high: usize| u64::from(dim(low)) | u64::from(dim(high)) << 32;
        let mut col = 0;
        let rows = sums.iter().flat_map(|sum| {
            let begin = col;
            col += sum.cols;
            let from = sum.partials.ptr() + 4 * sum.first as u64;
            [from, sum.to, pair(sum.n, sum.stride), pair(sum.cols, begin)]
        });
        self.upload(&rows.collect::<Vec<u64>>())
    }

    fn add_sums(&self, sums: &[PartialSums], table: &Buffer) -> Result<()> {
        let cols = sums.iter().map(|sum| sum.cols).sum::<usize>();
        let grid = Grid { blocks: (dim(cols.div_ceil(32)), 1), threads: (32, 16), shared: 0 };
        self.launch(grid, add_partials(table.ptr(), dim(sums.len()), dim(cols)))
    }

    fn sums(&self) -> std::sync::MutexGuard<'_, Vec<PartialSums>> {
        self.grad_stream.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept_alive(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Buffer>>> {
        self.grad_stream.kept_alive.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
