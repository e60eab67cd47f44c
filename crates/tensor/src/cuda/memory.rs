//! Memory of the card, used again and again, and the way there and back.

use std::collections::BTreeMap;
use std::sync::Arc;

use cudarc::driver::{result, sys};

use super::context::{Context, driver};
use crate::{Error, Result};

/// Free pieces of the card's memory by size.
#[derive(Default)]
pub(super) struct Pool {
    free: BTreeMap<usize, Vec<u64>>,
}

/// A piece of the card's memory; goes back to the pool when nobody has it.
#[derive(Debug)]
pub(crate) struct Buffer {
    cuda: Arc<Context>,
    ptr: u64,
    size: usize,
}

impl Buffer {
    /// Where it is on the card.
    pub(crate) fn ptr(&self) -> u64 {
        self.ptr
    }

    pub(super) fn is_of(&self, cuda: &Arc<Context>) -> bool {
        Arc::ptr_eq(&self.cuda, cuda)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.cuda.pool().free.entry(self.size).or_default().push(self.ptr);
    }
}

/// Sizes are rounded to four steps a power of two, so that batches of other lengths find the same pieces.
fn rounded(bytes: usize) -> usize {
    let bytes = bytes.max(256);
    let step = bytes.next_power_of_two() / 8;
    bytes.next_multiple_of(step.max(256))
}

/// Host memory that the card reads by itself: a ring of segments, each written again only after the card has read it.
#[derive(Default)]
pub(super) struct Staging {
    segments: Vec<Segment>,
    current: usize,
    used: usize,
}

struct Segment {
    memory: Pinned,
    /// Behind the last copy out of it.
    read: Event,
}

const N_SEGMENTS: usize = 4;
const SEGMENT: usize = 16 << 20;

/// Host memory that stays where it is, so that the card finds it.
#[derive(Debug)]
pub(super) struct Pinned {
    ptr: usize,
    size: usize,
}

impl Pinned {
    #[expect(unsafe_code, reason = "a call of the driver")]
    pub(super) fn new(size: usize) -> Result<Self> {
        // SAFETY: the memory is written before it is read. Without the write-combined flag, under which a host's writes
        // crawl.
        let ptr = unsafe { result::malloc_host(size, 0) }.map_err(driver("take host memory"))? as usize;
        Ok(Self { ptr, size })
    }

    /// Whether there is room for so many values.
    pub(super) fn has_room(&self, count: usize) -> bool {
        4 * count <= self.size
    }

    /// The first values, which the card has written.
    #[expect(unsafe_code, reason = "plain numbers as bytes")]
    pub(super) fn floats(&self, count: usize) -> &[f32] {
        assert!(self.has_room(count), "as much as there is");
        // SAFETY: the memory is large enough, aligned to pages, and any bits are a float.
        unsafe { std::slice::from_raw_parts(self.ptr as *const f32, count) }
    }
}

impl Drop for Pinned {
    #[expect(unsafe_code, reason = "a call of the driver")]
    fn drop(&mut self) {
        // SAFETY: it came from the driver. An error here has been reported by what failed before it.
        let _ = unsafe { result::free_host(self.ptr as *mut _) };
    }
}

/// Values in pinned memory, on their way to the card; the memory goes back to the context when nobody has them.
#[derive(Debug)]
pub(crate) struct Staged {
    cuda: Arc<Context>,
    memory: Option<(Pinned, Event)>,
    bytes: usize,
}

impl Staged {
    pub(super) fn is_for(&self, cuda: &Arc<Context>) -> bool {
        Arc::ptr_eq(&self.cuda, cuda)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        let Some((memory, read)) = self.memory.take() else { return };
        // Behind every copy that was asked for: who takes the memory next waits until then.
        if self.cuda.enter().and_then(|()| read.record(self.cuda.stream)).is_ok() {
            self.cuda.spare().push((memory, read));
        }
    }
}

/// A place in the card's work that the host can wait for.
#[derive(Debug)]
pub(super) struct Event(sys::CUevent);

#[expect(unsafe_code, reason = "a handle of the driver, which may be used from any thread")]
// SAFETY: the driver's handles are valid on every thread.
unsafe impl Send for Event {}
#[expect(unsafe_code, reason = "a handle of the driver, which may be used from any thread")]
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    pub(super) fn new() -> Result<Self> {
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING;
        Ok(Self(result::event::create(flags).map_err(driver("make an event"))?))
    }

    /// One that also notes the time.
    pub(super) fn timed() -> Result<Self> {
        let flags = sys::CUevent_flags::CU_EVENT_DEFAULT;
        Ok(Self(result::event::create(flags).map_err(driver("make an event"))?))
    }

    /// Waits for it, and says how many milliseconds it came after `earlier`; both note the time.
    #[expect(unsafe_code, reason = "a call of the driver")]
    pub(super) fn since(&self, earlier: &Self) -> Result<f32> {
        self.wait()?;
        // SAFETY: both events are alive and have been recorded.
        unsafe { result::event::elapsed(earlier.0, self.0) }.map_err(driver("measure a time"))
    }

    /// Lets the card come here behind all that was asked of `stream` so far.
    #[expect(unsafe_code, reason = "a call of the driver")]
    pub(super) fn record(&self, stream: sys::CUstream) -> Result<()> {
        // SAFETY: event and stream are alive.
        unsafe { result::event::record(self.0, stream) }.map_err(driver("note a moment"))
    }

    /// Lets `stream` go on only after the card has come here.
    #[expect(unsafe_code, reason = "a call of the driver")]
    pub(super) fn hold_back(&self, stream: sys::CUstream) -> Result<()> {
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: as above.
        unsafe { result::stream::wait_event(stream, self.0, flags) }.map_err(driver("wait for the other stream"))
    }

    /// Waits until the card has come here; at once if it was never sent.
    #[expect(unsafe_code, reason = "a call of the driver")]
    pub(super) fn wait(&self) -> Result<()> {
        // SAFETY: the event lives as long as `self`.
        unsafe { sys::cuEventSynchronize(self.0) }.result().map_err(driver("compute"))
    }
}

impl Drop for Event {
    #[expect(unsafe_code, reason = "a call of the driver")]
    fn drop(&mut self) {
        // SAFETY: it is destroyed once.
        let _ = unsafe { sys::cuEventDestroy_v2(self.0) };
    }
}

impl Context {
    /// Memory for `bytes`, whatever is in it.
    #[expect(unsafe_code, reason = "calls of the driver")]
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> Result<Arc<Buffer>> {
        let size = rounded(bytes);
        let found = self.pool().free.get_mut(&size).and_then(Vec::pop);
        let ptr = if let Some(ptr) = found {
            ptr
        } else {
            // SAFETY: the memory is written before it is read, by the kernels it is handed to.
            let fresh = || unsafe { result::malloc_sync(size) };
            fresh().or_else(|_| {
                self.free_all()?;
                let (free, total) = result::mem_get_info().unwrap_or_default();
                fresh().map_err(|_| Error::GpuMemory { wanted: size, free, total })
            })?
        };
        Ok(Arc::new(Buffer { cuda: Arc::clone(self), ptr, size }))
    }

    /// Memory for `count` values.
    pub(super) fn floats(self: &Arc<Self>, count: usize) -> Result<Arc<Buffer>> {
        self.take(4 * count)
    }

    #[expect(unsafe_code, reason = "calls of the driver")]
    fn free_all(&self) -> Result<()> {
        self.wait()?;
        for (_, pieces) in std::mem::take(&mut self.pool().free) {
            for ptr in pieces {
                // SAFETY: nobody has it, and all work that used it is done.
                unsafe { result::free_sync(ptr) }.map_err(driver("free memory"))?;
            }
        }
        Ok(())
    }

    #[expect(unsafe_code, reason = "calls of the driver")]
    pub(super) fn fill_zero(&self, ptr: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller has this much memory there.
        unsafe { result::memset_d8_async(ptr, 0, bytes, self.stream) }.map_err(driver("clear memory"))
    }

    /// Brings `values` to the card. The host may go on at once.
    pub(super) fn upload<T: Copy>(self: &Arc<Self>, values: &[T]) -> Result<Arc<Buffer>> {
        self.upload_all(&[values])
    }

    /// Brings `parts` to the card, one behind another. The host may go on at once.
    #[expect(unsafe_code, reason = "calls of the driver")]
    pub(super) fn upload_all<T: Copy>(self: &Arc<Self>, parts: &[&[T]]) -> Result<Arc<Buffer>> {
        let bytes = bytes_of(parts);
        let buffer = self.take(bytes)?;
        // Held until the copy is asked for: only then does a segment's event stand behind it.
        let mut staging = self.staging();
        let place = staging.room(self, bytes.max(1))?;
        // SAFETY: the place has room for the bytes, nobody reads them any more, and the buffer is at least as large.
        unsafe {
            lay_down(parts, place);
            let from = std::slice::from_raw_parts(place as *const u8, bytes);
            result::memcpy_htod_async(buffer.ptr, from, self.stream).map_err(driver("upload"))?;
        }
        Ok(buffer)
    }

    /// Copies `parts`, one behind another, to where the card reads them by itself. For threads ahead of their use: this may
    /// wait until the card has read what was there before.
    #[expect(unsafe_code, reason = "plain numbers as bytes")]
    pub(crate) fn stage<T: Copy>(self: &Arc<Self>, parts: &[&[T]]) -> Result<Staged> {
        self.enter()?;
        let bytes = bytes_of(parts);
        let fits = |(memory, _): &(Pinned, Event)| (bytes..=2 * bytes.max(1 << 20)).contains(&memory.size);
        let found = {
            let mut spare = self.spare();
            spare.iter().position(fits).map(|at| spare.remove(at))
        };
        let (memory, read) = match found {
            Some(found) => found,
            None => (Pinned::new(rounded(bytes))?, Event::new()?),
        };
        read.wait()?;
        // SAFETY: there is room for the bytes, and the card has read what was there.
        unsafe { lay_down(parts, memory.ptr) };
        Ok(Staged { cuda: Arc::clone(self), memory: Some((memory, read)), bytes })
    }

    /// Brings staged values to the card. The host may go on at once, and let go of them.
    #[expect(unsafe_code, reason = "calls of the driver")]
    pub(super) fn bring(self: &Arc<Self>, staged: &Staged) -> Result<Arc<Buffer>> {
        let buffer = self.take(staged.bytes)?;
        if let Some((memory, _)) = &staged.memory {
            // SAFETY: the memory holds as many bytes, and is written again only behind an event that comes after this.
            unsafe {
                let from = std::slice::from_raw_parts(memory.ptr as *const u8, staged.bytes);
                result::memcpy_htod_async(buffer.ptr, from, self.stream).map_err(driver("upload"))?;
            }
        }
        Ok(buffer)
    }

    /// Brings `count` values to pinned memory. The host may go on at once; it reads them behind an event.
    #[expect(unsafe_code, reason = "calls of the driver")]
    pub(super) fn report(&self, from: u64, to: &mut Pinned, count: usize) -> Result<()> {
        assert!(to.has_room(count), "as much as there is room for");
        // SAFETY: there is room, and the caller has as many values on the card.
        unsafe {
            let to = std::slice::from_raw_parts_mut(to.ptr as *mut f32, count);
            result::memcpy_dtoh_async(to, from, self.stream).map_err(driver("download"))
        }
    }

    /// Brings `values` back. Waits for all that was asked for before.
    #[expect(unsafe_code, reason = "calls of the driver")]
    pub(super) fn download(&self, from: u64, values: &mut [f32]) -> Result<()> {
        // SAFETY: the caller has as many values there; the host waits before it reads them.
        unsafe { result::memcpy_dtoh_async(values, from, self.stream) }.map_err(driver("download"))?;
        self.wait()
    }

    #[expect(unsafe_code, reason = "calls of the driver")]
    pub(super) fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller has as much memory at both places.
        unsafe { result::memcpy_dtod_async(to, from, bytes, self.stream) }.map_err(driver("copy"))
    }
}

fn bytes_of<T>(parts: &[&[T]]) -> usize {
    parts.iter().map(|part| size_of_val(*part)).sum()
}

/// Copies `parts`, one behind another.
///
/// # Safety
/// There is room for all of them at `place`, and nobody reads or writes it meanwhile.
#[expect(unsafe_code, reason = "plain numbers as bytes")]
unsafe fn lay_down<T: Copy>(parts: &[&[T]], place: usize) {
    let mut to = place as *mut u8;
    for part in parts {
        let bytes = size_of_val(*part);
        // SAFETY: as the caller promises.
        unsafe {
            std::ptr::copy_nonoverlapping(part.as_ptr().cast::<u8>(), to, bytes);
            to = to.add(bytes);
        }
    }
}

impl Staging {
    /// Room for so many bytes, out of which nothing is copied any more.
    fn room(&mut self, cuda: &Context, bytes: usize) -> Result<usize> {
        let end = self.segments.get(self.current).map_or(0, |segment| segment.memory.size);
        if self.used + bytes > end {
            if let Some(full) = self.segments.get(self.current) {
                full.read.record(cuda.stream)?;
                self.current = (self.current + 1) % N_SEGMENTS;
            }
            self.used = 0;
            let size = bytes.max(SEGMENT);
            match self.segments.get_mut(self.current) {
                None => self.segments.push(Segment { memory: Pinned::new(size)?, read: Event::new()? }),
                Some(next) => {
                    next.read.wait()?;
                    if next.memory.size < bytes {
                        next.memory = Pinned::new(size)?;
                    }
                }
            }
        }
        let place = self.segments[self.current].memory.ptr + self.used;
        self.used += bytes.next_multiple_of(256);
        Ok(place)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_are_rounded_by_less_than_a_seventh() {
        for bytes in [1, 256, 257, 5000, 25_600 * 800 * 4] {
            let size = super::rounded(bytes);
            assert!(size >= bytes && size <= (bytes + bytes / 7).max(bytes + 256), "{bytes} {size}");
            assert_eq!(super::rounded(size), size);
        }
    }
}
