//! GPU memory pool, pinned host memory, and copies between host and GPU.

use std::collections::BTreeMap;
use std::sync::Arc;

use cudarc::driver::{result, sys};

use super::context::{Context, driver};
use crate::{Error, Result};

/// Free blocks of GPU memory, by size.
#[derive(Default)]
pub(super) struct Pool {
    free: BTreeMap<usize, Vec<u64>>,
}

/// A block of GPU memory, which returns to the pool when it is dropped.
#[derive(Debug)]
pub(crate) struct Buffer {
    cuda: Arc<Context>,
    ptr: u64,
    size: usize,
}

impl Buffer {
    /// The device pointer.
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

/// Sizes are rounded up to one of four sizes for each power of two, so that batches of similar lengths reuse blocks.
fn rounded(bytes: usize) -> usize {
    let bytes = bytes.max(256);
    let step = bytes.next_power_of_two() / 8;
    bytes.next_multiple_of(step.max(256))
}

/// A ring of pinned segments for uploads; each is written again only after the GPU has read it.
#[derive(Default)]
pub(super) struct Staging {
    segments: Vec<Segment>,
    current: usize,
    used: usize,
}

struct Segment {
    memory: Pinned,
    /// Recorded after the last copy out of it.
    read: Event,
}

const N_SEGMENTS: usize = 4;
const SEGMENT_BYTES: usize = 16 << 20;

/// Page-locked host memory, which the GPU accesses directly.
#[derive(Debug)]
pub(super) struct Pinned {
    ptr: usize,
    size: usize,
}

impl Pinned {
    #[expect(unsafe_code, reason = "a driver call")]
    pub(super) fn new(size: usize) -> Result<Self> {
        // SAFETY: the memory is written before it is read. Without the write-combined flag, which slows host writes down.
        let ptr = unsafe { result::malloc_host(size, 0) }.map_err(driver("allocate host memory"))? as usize;
        Ok(Self { ptr, size })
    }

    /// Whether `count` values fit.
    pub(super) fn has_room(&self, count: usize) -> bool {
        4 * count <= self.size
    }

    /// The first `count` values, which the GPU has written.
    #[expect(unsafe_code, reason = "plain numbers in raw memory")]
    pub(super) fn floats(&self, count: usize) -> &[f32] {
        assert!(self.has_room(count), "the values fit");
        // SAFETY: the memory is large enough by the assertion, page-aligned, lives as long as `self`, and any bits are an
        // `f32`.
        unsafe { std::slice::from_raw_parts(self.ptr as *const f32, count) }
    }
}

impl Drop for Pinned {
    #[expect(unsafe_code, reason = "a driver call")]
    fn drop(&mut self) {
        // SAFETY: the driver allocated it, and it is freed once. An error repeats one that an earlier call has returned.
        let _ = unsafe { result::free_host(self.ptr as *mut _) };
    }
}

/// Values in pinned memory, ready for upload. The memory returns to the context when they are dropped.
#[derive(Debug)]
pub(crate) struct Staged {
    cuda: Arc<Context>,
    memory: Option<(Pinned, Event)>,
    bytes: usize,
}

impl Staged {
    pub(crate) fn is_of(&self, cuda: &Arc<Context>) -> bool {
        Arc::ptr_eq(&self.cuda, cuda)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        let Some((memory, read)) = self.memory.take() else { return };
        // After every copy submitted so far: the next user of the memory waits for it.
        if self.cuda.enter().and_then(|()| read.record(self.cuda.stream)).is_ok() {
            self.cuda.spare().push((memory, read));
        }
    }
}

/// Values on their way from the GPU to pinned memory, which returns to the context when they are dropped.
#[derive(Debug)]
pub(crate) struct PendingCopy {
    cuda: Arc<Context>,
    memory: Option<(Pinned, Event)>,
    count: usize,
}

impl PendingCopy {
    /// Waits for the values.
    pub(crate) fn wait(self) -> Result<Vec<f32>> {
        self.cuda.enter()?;
        let Some((memory, written)) = &self.memory else { return Ok(Vec::new()) };
        written.wait()?;
        Ok(memory.floats(self.count).to_vec())
    }
}

impl Drop for PendingCopy {
    fn drop(&mut self) {
        // Whoever takes the memory next waits for its event.
        self.cuda.spare().extend(self.memory.take());
    }
}

/// A CUDA event.
#[derive(Debug)]
pub(super) struct Event(sys::CUevent);

#[expect(unsafe_code, reason = "a driver handle, which may be used from any thread")]
// SAFETY: driver handles are valid on every thread.
unsafe impl Send for Event {}
#[expect(unsafe_code, reason = "a driver handle, which may be used from any thread")]
// SAFETY: as for `Send`; the driver locks the event itself.
unsafe impl Sync for Event {}

impl Event {
    pub(super) fn new() -> Result<Self> {
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING;
        Ok(Self(result::event::create(flags).map_err(driver("create an event"))?))
    }

    /// An event that also records the time.
    pub(super) fn timed() -> Result<Self> {
        let flags = sys::CUevent_flags::CU_EVENT_DEFAULT;
        Ok(Self(result::event::create(flags).map_err(driver("create an event"))?))
    }

    /// Waits for the event and returns the milliseconds since `earlier`; both record the time.
    #[expect(unsafe_code, reason = "a driver call")]
    pub(super) fn elapsed_since(&self, earlier: &Self) -> Result<f32> {
        self.wait()?;
        // SAFETY: both events are alive and have been recorded.
        unsafe { result::event::elapsed(earlier.0, self.0) }.map_err(driver("measure a time"))
    }

    /// Records the event after all work submitted to `stream` so far.
    #[expect(unsafe_code, reason = "a driver call")]
    pub(super) fn record(&self, stream: sys::CUstream) -> Result<()> {
        // SAFETY: event and stream are alive.
        unsafe { result::event::record(self.0, stream) }.map_err(driver("record an event"))
    }

    /// Makes later work on `stream` wait for the event.
    #[expect(unsafe_code, reason = "a driver call")]
    pub(super) fn block_stream(&self, stream: sys::CUstream) -> Result<()> {
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: event and stream are alive.
        unsafe { result::stream::wait_event(stream, self.0, flags) }.map_err(driver("wait for the other stream"))
    }

    /// Waits on the host for the event; returns at once if it was never recorded.
    #[expect(unsafe_code, reason = "a driver call")]
    pub(super) fn wait(&self) -> Result<()> {
        // SAFETY: the event lives as long as `self`.
        unsafe { sys::cuEventSynchronize(self.0) }.result().map_err(driver("compute"))
    }
}

impl Drop for Event {
    #[expect(unsafe_code, reason = "a driver call")]
    fn drop(&mut self) {
        // SAFETY: the event is alive and destroyed once.
        let _ = unsafe { sys::cuEventDestroy_v2(self.0) };
    }
}

impl Context {
    /// `bytes` of uninitialised memory.
    #[expect(unsafe_code, reason = "driver calls")]
    pub(crate) fn alloc(self: &Arc<Self>, bytes: usize) -> Result<Arc<Buffer>> {
        let size = rounded(bytes);
        let found = self.pool().free.get_mut(&size).and_then(Vec::pop);
        let ptr = if let Some(ptr) = found {
            ptr
        } else {
            // SAFETY: kernels and copies write the memory before they read it.
            let fresh = || unsafe { result::malloc_sync(size) };
            fresh().or_else(|_| {
                self.free_all()?;
                let (free, total) = result::mem_get_info().unwrap_or_default();
                fresh().map_err(|_| Error::GpuMemory { wanted: size, free, total })
            })?
        };
        Ok(Arc::new(Buffer { cuda: Arc::clone(self), ptr, size }))
    }

    /// Uninitialised memory for `count` `f32` values.
    pub(crate) fn alloc_f32(self: &Arc<Self>, count: usize) -> Result<Arc<Buffer>> {
        self.alloc(4 * count)
    }

    #[expect(unsafe_code, reason = "driver calls")]
    fn free_all(&self) -> Result<()> {
        self.wait()?;
        for (_, blocks) in std::mem::take(&mut self.pool().free) {
            for ptr in blocks {
                // SAFETY: the block is in the pool, so that no buffer owns it, and all work that used it has finished.
                unsafe { result::free_sync(ptr) }.map_err(driver("free memory"))?;
            }
        }
        Ok(())
    }

    #[expect(unsafe_code, reason = "driver calls")]
    pub(crate) fn fill_zero(&self, ptr: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller owns `bytes` of device memory at `ptr`.
        unsafe { result::memset_d8_async(ptr, 0, bytes, self.stream) }.map_err(driver("clear memory"))
    }

    /// Copies `values` to the GPU. The host does not wait.
    pub(crate) fn upload<T: Copy>(self: &Arc<Self>, values: &[T]) -> Result<Arc<Buffer>> {
        self.upload_all(&[values])
    }

    /// Copies `parts`, one after another, to one buffer on the GPU. The host does not wait.
    #[expect(unsafe_code, reason = "driver calls")]
    pub(crate) fn upload_all<T: Copy>(self: &Arc<Self>, parts: &[&[T]]) -> Result<Arc<Buffer>> {
        let bytes = bytes_of(parts);
        let buffer = self.alloc(bytes)?;
        // Locked until the copy is submitted, so that the segment's event is recorded after it.
        let mut staging = self.staging();
        let place = staging.reserve(self, bytes.max(1))?;
        // SAFETY: `reserve` returns room for the bytes that no copy reads any more, and the buffer is at least as large.
        unsafe {
            copy_parts(parts, place);
            let from = std::slice::from_raw_parts(place as *const u8, bytes);
            result::memcpy_htod_async(buffer.ptr, from, self.stream).map_err(driver("upload"))?;
        }
        Ok(buffer)
    }

    /// Copies `parts`, one after another, to pinned memory. For prefetch threads: this may wait until the GPU has read the
    /// previous content.
    #[expect(unsafe_code, reason = "plain numbers in raw memory")]
    pub(crate) fn stage<T: Copy>(self: &Arc<Self>, parts: &[&[T]]) -> Result<Staged> {
        self.enter()?;
        let bytes = bytes_of(parts);
        let (memory, read) = self.pinned(bytes)?;
        read.wait()?;
        // SAFETY: the memory is at least as large, and the GPU has read its previous content.
        unsafe { copy_parts(parts, memory.ptr) };
        Ok(Staged { cuda: Arc::clone(self), memory: Some((memory, read)), bytes })
    }

    /// Pinned memory of at least `bytes`, with the event after which the host may write to it.
    fn pinned(&self, bytes: usize) -> Result<(Pinned, Event)> {
        let fits = |(memory, _): &(Pinned, Event)| (bytes..=2 * bytes.max(1 << 20)).contains(&memory.size);
        let found = {
            let mut spare = self.spare();
            spare.iter().position(fits).map(|at| spare.remove(at))
        };
        match found {
            Some(found) => Ok(found),
            None => Ok((Pinned::new(rounded(bytes))?, Event::new()?)),
        }
    }

    /// Copies `count` values to the host, which does not wait until [`PendingCopy::wait`].
    pub(crate) fn download_later(self: &Arc<Self>, from: u64, count: usize) -> Result<PendingCopy> {
        // Its earlier use was on the same stream, so that this copy comes after it.
        let (mut memory, written) = self.pinned(4 * count)?;
        self.download_async(from, &mut memory, count)?;
        written.record(self.stream)?;
        Ok(PendingCopy { cuda: Arc::clone(self), memory: Some((memory, written)), count })
    }

    /// Copies staged values to the GPU. The host does not wait, and may drop them.
    #[expect(unsafe_code, reason = "driver calls")]
    pub(crate) fn upload_staged(self: &Arc<Self>, staged: &Staged) -> Result<Arc<Buffer>> {
        let buffer = self.alloc(staged.bytes)?;
        if let Some((memory, _)) = &staged.memory {
            // SAFETY: the pinned memory and the buffer hold as many bytes; the memory is written again only after an event
            // that is recorded after this copy.
            unsafe {
                let from = std::slice::from_raw_parts(memory.ptr as *const u8, staged.bytes);
                result::memcpy_htod_async(buffer.ptr, from, self.stream).map_err(driver("upload"))?;
            }
        }
        Ok(buffer)
    }

    /// Copies `count` values to pinned memory. The host does not wait; it reads them after an event.
    #[expect(unsafe_code, reason = "driver calls")]
    pub(super) fn download_async(&self, from: u64, to: &mut Pinned, count: usize) -> Result<()> {
        assert!(to.has_room(count), "the values fit");
        // SAFETY: the pinned memory is large enough by the assertion, and the caller owns as many values on the GPU.
        unsafe {
            let to = std::slice::from_raw_parts_mut(to.ptr as *mut f32, count);
            result::memcpy_dtoh_async(to, from, self.stream).map_err(driver("download"))
        }
    }

    /// Copies values to the host, and waits for all work submitted before.
    #[expect(unsafe_code, reason = "driver calls")]
    pub(crate) fn download(&self, from: u64, values: &mut [f32]) -> Result<()> {
        // SAFETY: the caller owns as many values at `from`; the wait below ends before `values` is read or dropped.
        unsafe { result::memcpy_dtoh_async(values, from, self.stream) }.map_err(driver("download"))?;
        self.wait()
    }

    /// `count` zeros, on any thread.
    pub(crate) fn alloc_zeros(self: &Arc<Self>, count: usize) -> Result<Arc<Buffer>> {
        self.enter()?;
        let buffer = self.alloc_f32(count)?;
        self.fill_zero(buffer.ptr(), 4 * count)?;
        Ok(buffer)
    }

    /// Waits and reads the first `count` values of a buffer, on any thread.
    pub(crate) fn read_buffer(&self, buffer: &Buffer, count: usize) -> Result<Vec<f32>> {
        self.enter()?;
        let mut values = vec![0.0; count];
        self.download(buffer.ptr(), &mut values)?;
        Ok(values)
    }

    /// Overwrites the first values of a buffer, on any thread.
    pub(crate) fn write_buffer(self: &Arc<Self>, buffer: &Buffer, values: &[f32]) -> Result<()> {
        self.enter()?;
        let uploaded = self.upload(values)?;
        self.copy(uploaded.ptr(), buffer.ptr(), size_of_val(values))
    }

    /// Zeroes the first `count` values of a buffer, on any thread.
    pub(crate) fn zero_buffer(&self, buffer: &Buffer, count: usize) -> Result<()> {
        self.enter()?;
        self.fill_zero(buffer.ptr(), 4 * count)
    }

    /// Copies `bytes` on the GPU.
    #[expect(unsafe_code, reason = "driver calls")]
    pub(crate) fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller owns `bytes` of device memory at both pointers.
        unsafe { result::memcpy_dtod_async(to, from, bytes, self.stream) }.map_err(driver("copy"))
    }
}

fn bytes_of<T>(parts: &[&[T]]) -> usize {
    parts.iter().map(|part| size_of_val(*part)).sum()
}

/// Copies `parts`, one after another, to host memory.
///
/// # Safety
/// All of them fit at `place`, and nothing else reads or writes that memory meanwhile.
#[expect(unsafe_code, reason = "plain numbers in raw memory")]
unsafe fn copy_parts<T: Copy>(parts: &[&[T]], place: usize) {
    let mut to = place as *mut u8;
    for part in parts {
        let bytes = size_of_val(*part);
        // SAFETY: the caller guarantees room for the remaining parts at `to`; the source is a slice.
        unsafe {
            std::ptr::copy_nonoverlapping(part.as_ptr().cast::<u8>(), to, bytes);
            to = to.add(bytes);
        }
    }
}

impl Staging {
    /// Reserves `bytes` that no copy reads any more.
    fn reserve(&mut self, cuda: &Context, bytes: usize) -> Result<usize> {
        let end = self.segments.get(self.current).map_or(0, |segment| segment.memory.size);
        if self.used + bytes > end {
            if let Some(full) = self.segments.get(self.current) {
                full.read.record(cuda.stream)?;
                self.current = (self.current + 1) % N_SEGMENTS;
            }
            self.used = 0;
            let size = bytes.max(SEGMENT_BYTES);
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
    fn sizes_are_rounded_up_by_at_most_a_seventh() {
        for bytes in [1, 256, 257, 5000, 25_600 * 800 * 4] {
            let size = super::rounded(bytes);
            assert!(size >= bytes && size <= (bytes + bytes / 7).max(bytes + 256), "{bytes} {size}");
            assert_eq!(super::rounded(size), size);
        }
    }
}
