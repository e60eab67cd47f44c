//! A second stream for what nobody waits for until a pass has ended: the gradients of parameters.
//!
//! Memory goes back to the pool as soon as its owner lets go of it, in the order of the main stream. What the second
//! stream reads or writes is therefore held until the main one has waited for it.

use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::result::{self, stream::StreamKind};
use cudarc::driver::sys;

use super::context::{Context, Grid, args, driver};
use super::linear::size;
use super::memory::{Buffer, Event};
use crate::Result;

/// The stream that work goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    Main,
    Side,
}

pub(super) struct Side {
    pub(super) stream: sys::CUstream,
    forked: Event,
    done: Event,
    held: Mutex<Vec<Arc<Buffer>>>,
    sums: Mutex<Vec<PartialSums>>,
}

/// Partial sums that are to be added to a gradient: `n` rows, `step` values apart, of `cols` values each from `first` on.
pub(super) struct PartialSums {
    pub(super) partials: Arc<Buffer>,
    pub(super) first: usize,
    pub(super) n: usize,
    pub(super) step: usize,
    pub(super) cols: usize,
    pub(super) to: u64,
}

/// The main stream and the one beside it, which only fills what the main one leaves free.
pub(super) fn streams() -> Result<(sys::CUstream, Side)> {
    let failed = driver("open a stream");
    let (lowest, highest) = result::stream::get_priority_range().map_err(&failed)?;
    let main = result::stream::create_with_priority(StreamKind::NonBlocking, highest).map_err(&failed)?;
    let stream = result::stream::create_with_priority(StreamKind::NonBlocking, lowest).map_err(&failed)?;
    let (forked, done) = (Event::new()?, Event::new()?);
    Ok((main, Side { stream, forked, done, held: Mutex::default(), sums: Mutex::default() }))
}

/// Makes `waiting` wait for all that was asked of `first`.
fn order(event: &Event, first: sys::CUstream, waiting: sys::CUstream) -> Result<()> {
    event.record(first)?;
    event.hold_back(waiting)
}

impl Context {
    pub(super) fn stream_of(&self, lane: Lane) -> sys::CUstream {
        match lane {
            Lane::Main => self.stream,
            Lane::Side => self.side.stream,
        }
    }

    /// Lets the side stream begin behind all that was asked for so far.
    pub(super) fn fork(&self) -> Result<Lane> {
        order(&self.side.forked, self.stream, self.side.stream)?;
        Ok(Lane::Side)
    }

    /// Keeps what the work just asked for on `lane` uses.
    pub(super) fn hold<'b>(&self, lane: Lane, buffers: impl IntoIterator<Item = &'b Arc<Buffer>>) {
        if lane == Lane::Side {
            self.held().extend(buffers.into_iter().map(Arc::clone));
        }
    }

    /// Lets the main stream go on behind all that was asked of the side stream, and adds the sums that were put off.
    pub(super) fn join(self: &Arc<Self>) -> Result<()> {
        let sums = std::mem::take(&mut *self.sums());
        let held = std::mem::take(&mut *self.held());
        // On its way while the side stream is waited for.
        let table = (!sums.is_empty()).then(|| self.table(&sums)).transpose()?;
        if !held.is_empty() {
            order(&self.side.done, self.side.stream, self.stream)?;
        }
        table.map_or(Ok(()), |table| self.add(&sums, &table))
    }

    /// Adds partial sums at the next `join`, all of them in one kernel: a step has many, each of them small.
    pub(super) fn add_later(self: &Arc<Self>, sums: Vec<PartialSums>) -> Result<()> {
        let is_waiting = |to: u64| self.sums().iter().any(|sum| sum.to == to);
        // One kernel adds to a place once.
        if sums.iter().any(|sum| is_waiting(sum.to)) {
            self.join()?;
            // What the side stream is asked for next may add to the same places.
            self.fork()?;
        }
        self.sums().extend(sums);
        Ok(())
    }

    /// Adds partial sums, which are ready on the main stream, to places that are all different.
    pub(super) fn add_now(self: &Arc<Self>, sums: &[PartialSums]) -> Result<()> {
        let table = self.table(sums)?;
        self.add(sums, &table)
    }

    /// Forgets what a pass that failed has left.
    pub(super) fn forget_sums(&self) {
        self.sums().clear();
    }

    /// What the kernel reads of each.
    fn table(self: &Arc<Self>, sums: &[PartialSums]) -> Result<Arc<Buffer>> {
        let pair = |low: usize, high: usize| u64::from(size(low)) | u64::from(size(high)) << 32;
        let mut col = 0;
        let rows = sums.iter().flat_map(|sum| {
            let begin = col;
            col += sum.cols;
            let from = sum.partials.ptr() + 4 * sum.first as u64;
            [from, sum.to, pair(sum.n, sum.step), pair(sum.cols, begin)]
        });
        self.upload(&rows.collect::<Vec<u64>>())
    }

    fn add(&self, sums: &[PartialSums], table: &Buffer) -> Result<()> {
        let cols = sums.iter().map(|sum| sum.cols).sum::<usize>();
        let grid = Grid { blocks: (size(cols.div_ceil(32)), 1), threads: (32, 16), shared: 0 };
        self.launch("add_partials", grid, args![table.ptr(), size(sums.len()), size(cols)])
    }

    fn sums(&self) -> std::sync::MutexGuard<'_, Vec<PartialSums>> {
        self.side.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Buffer>>> {
        self.side.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
