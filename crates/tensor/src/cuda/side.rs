//! A second stream for what nobody waits for until a pass has ended: the gradients of parameters.
//!
//! Memory goes back to the pool as soon as its owner lets go of it, in the order of the main stream. What the second
//! stream reads or writes is therefore held until the main one has waited for it.

use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::result::{self, stream::StreamKind};
use cudarc::driver::sys;

use super::context::{Context, driver};
use super::memory::Buffer;
use crate::Result;

/// The stream that work goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    Main,
    Side,
}

pub(super) struct Side {
    stream: sys::CUstream,
    forked: sys::CUevent,
    done: sys::CUevent,
    held: Mutex<Vec<Arc<Buffer>>>,
}

/// The main stream and the one beside it, which only fills what the main one leaves free.
pub(super) fn streams() -> Result<(sys::CUstream, Side)> {
    let failed = driver("open a stream");
    let (lowest, highest) = result::stream::get_priority_range().map_err(&failed)?;
    let main = result::stream::create_with_priority(StreamKind::NonBlocking, highest).map_err(&failed)?;
    let stream = result::stream::create_with_priority(StreamKind::NonBlocking, lowest).map_err(&failed)?;
    let event = || result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING).map_err(&failed);
    Ok((main, Side { stream, forked: event()?, done: event()?, held: Mutex::default() }))
}

/// Makes `waiting` wait for all that was asked of `first`.
#[expect(unsafe_code, reason = "calls of the driver")]
fn order(event: sys::CUevent, first: sys::CUstream, waiting: sys::CUstream) -> Result<()> {
    // SAFETY: streams and events live as long as the context.
    unsafe {
        result::event::record(event, first).map_err(driver("note a moment"))?;
        result::stream::wait_event(waiting, event, sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT)
            .map_err(driver("wait for the other stream"))
    }
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
        order(self.side.forked, self.stream, self.side.stream)?;
        Ok(Lane::Side)
    }

    /// Keeps what the work just asked for on `lane` uses.
    pub(super) fn hold<'b>(&self, lane: Lane, buffers: impl IntoIterator<Item = &'b Arc<Buffer>>) {
        if lane == Lane::Side {
            self.held().extend(buffers.into_iter().map(Arc::clone));
        }
    }

    /// Lets the main stream go on behind all that was asked of the side stream.
    pub(super) fn join(&self) -> Result<()> {
        let held = std::mem::take(&mut *self.held());
        if held.is_empty() { Ok(()) } else { order(self.side.done, self.side.stream, self.stream) }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Buffer>>> {
        self.side.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
