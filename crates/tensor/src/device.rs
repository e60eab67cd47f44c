//! Devices: the CPU, or an NVIDIA GPU through CUDA.

use std::path::PathBuf;
use std::sync::Arc;

use crate::cuda::Context;
use crate::op::encoder::{MAX_HEAD_WIDTH, MAX_WIDTH};
use crate::{Error, Heads, Indices, Ragged, Relations, Result, Tensor, chunks};

/// The precision of GEMMs on a GPU; they always accumulate in `f32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// `f32` without tensor cores.
    F32,
    /// TF32: `f32` values, of which tensor cores read 11 bits of significand.
    #[default]
    Tf32,
    /// bfloat16 activations; weights, their gradients and the residual stream stay `f32`.
    Bf16,
}

impl Precision {
    /// Bytes of an element of a GEMM operand.
    pub(crate) fn bytes(self) -> usize {
        if self == Self::Bf16 { 2 } else { 4 }
    }

    /// The name in files and settings: `f32`, `tf32` or `bf16`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Tf32 => "tf32",
            Self::Bf16 => "bf16",
        }
    }
}

/// Options of [`Device::cuda`].
#[derive(Debug, Clone, Default)]
pub struct CudaOptions {
    /// The precision of GEMMs.
    pub precision: Precision,
    /// The folder of compiled kernels and GEMM measurements. Without it kernels are compiled at every start.
    pub cache: Option<PathBuf>,
}

/// Where parameters live and operations run. A clone is the same device.
///
/// ```
/// use hopedgn_tensor::{CudaOptions, Device};
///
/// // The GPU if there is one, else the CPU.
/// let device = Device::cuda(&CudaOptions::default()).unwrap_or_else(|_| Device::cpu());
/// assert_eq!(device.is_gpu(), device.name() == "cuda");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Device {
    cuda: Option<Arc<Context>>,
}

impl Device {
    /// The CPU: the threads of the current `rayon` pool.
    #[must_use]
    pub fn cpu() -> Self {
        Self::default()
    }

    /// The first GPU of this machine. The driver, NVRTC and cuBLASLt are loaded at run time.
    ///
    /// # Errors
    /// If there is no usable GPU or one of the libraries is missing.
    pub fn cuda(options: &CudaOptions) -> Result<Self> {
        Ok(Self { cuda: Some(Context::new(options)?) })
    }

    /// `cpu` or `cuda`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        if self.is_gpu() { "cuda" } else { "cpu" }
    }

    /// Whether it is a GPU.
    #[must_use]
    pub fn is_gpu(&self) -> bool {
        self.cuda.is_some()
    }

    /// The precision of GEMMs; `f32` on the CPU.
    #[must_use]
    pub fn precision(&self) -> Precision {
        self.cuda.as_ref().map_or(Precision::F32, |cuda| cuda.precision)
    }

    /// The name of the GPU; `None` on the CPU.
    #[must_use]
    pub fn gpu_name(&self) -> Option<&str> {
        self.cuda.as_ref().map(|cuda| cuda.gpu_name.as_str())
    }

    /// Rows of a training chunk: what fits a core's cache, or what keeps a GPU busy.
    #[must_use]
    pub fn train_chunk_rows(&self) -> usize {
        /// More than any batch of the paper; larger ones are split so that memory stays bounded.
        const ON_GPU: usize = 1 << 17;
        if self.cuda.is_some() { ON_GPU } else { chunks::CHUNK_ROWS }
    }

    /// Rows of an evaluation chunk: small enough on a GPU that threads can prefetch the next one.
    #[must_use]
    pub fn eval_chunk_rows(&self) -> usize {
        /// Enough to keep a GPU busy.
        const ON_GPU: usize = 1 << 15;
        if self.cuda.is_some() { ON_GPU } else { chunks::CHUNK_ROWS }
    }

    /// Checks that an encoder of this width and number of heads runs on this device.
    ///
    /// # Errors
    /// If it is too wide for the GPU kernels.
    pub fn check_encoder(&self, d_model: usize, heads: Heads) -> Result<()> {
        if self.cuda.is_some() && (d_model > MAX_WIDTH || d_model / heads.0.max(1) > MAX_HEAD_WIDTH) {
            return Err(Error::NotOnGpu { operation: "a model wider than 1024, or with heads wider than 128" });
        }
        Ok(())
    }

    /// How many threads, at most `max`, should prefetch batches while the device computes; `None` on the CPU, which computes
    /// with those threads itself.
    #[must_use]
    pub fn prefetch_threads(&self, max: usize) -> Option<usize> {
        self.cuda.as_ref().map(|_| rayon::current_num_threads().saturating_sub(1).clamp(1, max))
    }

    /// Copies `tensor` to pinned memory, so that [`Tape::input`](crate::Tape::input) uploads it without waiting. For prefetch
    /// threads. Does nothing on the CPU, or if it is staged already.
    pub fn stage(&self, tensor: &Tensor) -> Result<()> {
        let Some(cuda) = self.cuda.as_ref().filter(|_| tensor.staged().is_none()) else { return Ok(()) };
        tensor.set_staged(cuda.stage(&[tensor.values()])?);
        Ok(())
    }

    /// [Stages](Self::stage) `indices`. If gradients flow back to the rows they gather from, `rows` is the number of those
    /// rows: the lists for the scatter are then staged as well.
    pub fn stage_indices(&self, indices: &Indices, rows: Option<usize>) -> Result<()> {
        let Some(cuda) = self.cuda.as_ref().filter(|_| indices.staged().is_none()) else { return Ok(()) };
        indices.set_staged(cuda.stage_indices(indices, rows)?);
        Ok(())
    }

    /// [Stages](Self::stage) the offsets of a ragged batch.
    pub fn stage_offsets(&self, batch: &Ragged) -> Result<()> {
        let Some(cuda) = self.cuda.as_ref().filter(|_| batch.staged().is_none()) else { return Ok(()) };
        batch.set_staged(cuda.stage_offsets(batch)?);
        Ok(())
    }

    /// [Stages](Self::stage) relations between tokens.
    pub fn stage_relations(&self, relations: &Relations) -> Result<()> {
        self.cuda.as_ref().map_or(Ok(()), |cuda| relations.stage(cuda))
    }

    pub(crate) fn context(&self) -> Option<&Arc<Context>> {
        self.cuda.as_ref()
    }
}
