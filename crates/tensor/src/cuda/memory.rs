//! Memory of the card, used again and again, and the way there and back.

use std::collections::BTreeMap;
use std::sync::Arc;

use cudarc::driver::result;

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

/// Host memory that the card can read by itself.
#[derive(Default)]
pub(super) struct Staging {
    ptr: usize,
    size: usize,
    used: usize,
}

const STAGING: usize = 64 << 20;

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
    #[expect(unsafe_code, reason = "plain numbers as bytes, and calls of the driver")]
    pub(super) fn upload<T: Copy>(self: &Arc<Self>, values: &[T]) -> Result<Arc<Buffer>> {
        let bytes = size_of_val(values);
        let buffer = self.take(bytes)?;
        let mut staging = self.staging();
        if staging.used + bytes > staging.size {
            self.wait()?;
            staging.used = 0;
            if bytes > staging.size {
                staging.grow(bytes.max(STAGING))?;
            }
        }
        let place = staging.ptr + staging.used;
        staging.used += bytes.next_multiple_of(256);
        // SAFETY: the place has room for the bytes, nobody reads them any more, and the buffer is at least as large.
        unsafe {
            let to = place as *mut u8;
            std::ptr::copy_nonoverlapping(values.as_ptr().cast::<u8>(), to, bytes);
            let from = std::slice::from_raw_parts(to, bytes);
            result::memcpy_htod_async(buffer.ptr, from, self.stream).map_err(driver("upload"))?;
        }
        Ok(buffer)
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

impl Staging {
    #[expect(unsafe_code, reason = "calls of the driver")]
    fn grow(&mut self, size: usize) -> Result<()> {
        // SAFETY: the old memory, if any, came from the same function, and all copies out of it are done.
        unsafe {
            if self.size > 0 {
                result::free_host(self.ptr as *mut _).map_err(driver("free host memory"))?;
                self.size = 0;
            }
            // Without the write-combined flag, under which a host's writes crawl.
            self.ptr = result::malloc_host(size, 0).map_err(driver("take host memory"))? as usize;
        }
        self.size = size;
        Ok(())
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
