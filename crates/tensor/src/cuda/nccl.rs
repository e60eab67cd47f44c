//! Sums of gradients over the GPUs of a process group, by NCCL, which is loaded at run time.

use std::ffi::{c_char, c_void};
use std::fmt;
use std::sync::Arc;

use cudarc::nccl::result::{self, NcclError};
use cudarc::nccl::sys;

use super::context::Context;
use super::kernels::accumulate;
use super::memory::Buffer;
use crate::{Error, ProcessGroup, Result};

/// A communicator of all ranks of a group.
pub(crate) struct Nccl {
    communicator: sys::ncclComm_t,
    cuda: Arc<Context>,
    n_ranks: usize,
    /// Values of one rank.
    len: usize,
    /// The values of all ranks, `[n_ranks, len]`.
    gathered: Arc<Buffer>,
}

#[expect(unsafe_code, reason = "a handle of NCCL, which may be used from any thread")]
// SAFETY: a communicator may be used by any thread, one at a time, which `&mut self` ensures.
unsafe impl Send for Nccl {}
#[expect(unsafe_code, reason = "a handle of NCCL, which may be used from any thread")]
// SAFETY: nothing is done through a shared reference.
unsafe impl Sync for Nccl {}

impl fmt::Debug for Nccl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nccl").field("n_ranks", &self.n_ranks).field("len", &self.len).finish_non_exhaustive()
    }
}

fn nccl(doing: &'static str) -> impl Fn(NcclError) -> Error {
    move |error| Error::Cuda { doing, detail: format!("NCCL: {:?}", error.0) }
}

/// The version of NCCL, e.g. 22803; `None` if it is not installed.
#[expect(unsafe_code, reason = "looks for a library")]
pub(crate) fn version() -> Option<i32> {
    // SAFETY: this only tries to load the library.
    let is_present = unsafe { sys::is_culib_present() };
    is_present.then(result::get_nccl_version).and_then(Result::ok)
}

impl Nccl {
    /// Connects the GPUs of all ranks, for sums of `len` values.
    #[expect(unsafe_code, reason = "calls of NCCL")]
    pub(crate) fn new(cuda: &Arc<Context>, group: &ProcessGroup, len: usize) -> Result<Self> {
        if version().is_none() {
            let reason = "NCCL was not found (libnccl); install it to train on several GPUs".to_owned();
            return Err(Error::NoGpu { reason });
        }
        cuda.enter()?;
        let (rank, n_ranks) = (group.rank(), group.n_ranks());
        // One rank makes the name under which all meet.
        let mut id = sys::ncclUniqueId { internal: [0; 128] };
        if rank == 0 {
            id = result::get_uniqueid().map_err(nccl("name a group"))?;
        }
        let name: Vec<u8> = id.internal.iter().flat_map(|byte| byte.to_ne_bytes()).collect();
        let name = group.all_gather(&name)?.swap_remove(0);
        id.internal.iter_mut().zip(name).for_each(|(to, byte)| *to = c_char::from_ne_bytes([byte]));
        let count = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
        let mut communicator = std::ptr::null_mut();
        // SAFETY: the context is current, and `communicator` is written by the call.
        unsafe { result::comm_init_rank(&raw mut communicator, count(n_ranks), id, count(rank)) }
            .map_err(nccl("join the other GPUs"))?;
        let gathered = cuda.alloc_f32(n_ranks * len)?;
        Ok(Self { communicator, cuda: Arc::clone(cuda), n_ranks, len, gathered })
    }

    /// Replaces the `len` values at `values`, on the main stream, by their sums over all ranks, added in order of ranks.
    #[expect(unsafe_code, reason = "calls of NCCL")]
    pub(crate) fn sum_in_order(&mut self, values: u64) -> Result<()> {
        let Self { communicator, ref cuda, n_ranks, len, .. } = *self;
        let (from, to) = (values as *const c_void, self.gathered.ptr() as *mut c_void);
        let (kind, stream) = (sys::ncclDataType_t::ncclFloat32, cuda.stream.cast());
        // SAFETY: `values` holds `len` values and `gathered` so many of each rank; both live until the stream has read them, since
        // a buffer is reused only by later work of the same stream.
        unsafe { result::all_gather(from, to, len, kind, communicator, stream) }.map_err(nccl("gather gradients"))?;
        cuda.fill_zero(values, 4 * len)?;
        for rank in 0..n_ranks {
            let of_rank = self.gathered.ptr() + 4 * (rank * len) as u64;
            cuda.launch_1d(len.max(1), accumulate(values, of_rank, len as u64))?;
        }
        Ok(())
    }
}

impl Drop for Nccl {
    #[expect(unsafe_code, reason = "calls of NCCL")]
    fn drop(&mut self) {
        // SAFETY: made by `new` and not used after this. Best effort: the process may go on without it.
        let _ = unsafe { result::comm_destroy(self.communicator) };
    }
}
