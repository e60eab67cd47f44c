//! Where weights live and operations run.

use std::path::PathBuf;
use std::sync::Arc;

use crate::cuda::{Context, WIDEST, WIDEST_HEAD};
use crate::{Error, Heads, Indices, Ragged, Result, Tensor, chunks};

/// The numbers that products on a GPU are made of; sums are always `f32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Precision {
    /// 24 bits of significand, without the matrix units.
    F32,
    /// `f32` values, of which products read 11 bits of significand.
    #[default]
    Tf32,
    /// Values between layers have 8 bits of significand; weights, their gradients and the residual stream stay `f32`.
    Bf16,
}

impl Precision {
    /// Bytes of a factor of a product.
    pub(crate) fn bytes(self) -> usize {
        if self == Self::Bf16 { 2 } else { 4 }
    }

    /// As in files and flags.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Tf32 => "tf32",
            Self::Bf16 => "bf16",
        }
    }
}

/// How to use a GPU.
#[derive(Debug, Clone, Default)]
pub struct CudaOptions {
    /// The numbers of products.
    pub precision: Precision,
    /// Where compiled kernels are kept; without it they are compiled at every start.
    pub cache: Option<PathBuf>,
}

/// Where weights live and operations run. A clone is the same device.
#[derive(Debug, Clone, Default)]
pub struct Device {
    cuda: Option<Arc<Context>>,
}

impl Device {
    /// The threads of the current pool.
    #[must_use]
    pub fn cpu() -> Self {
        Self::default()
    }

    /// The first GPU of this machine. What is needed for it is looked for now, at run time.
    pub fn cuda(options: &CudaOptions) -> Result<Self> {
        Ok(Self { cuda: Some(Context::new(options)?) })
    }

    /// `cpu` or `cuda`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        if self.is_gpu() { "cuda" } else { "cpu" }
    }

    /// Whether it computes beside the threads of the host.
    #[must_use]
    pub fn is_gpu(&self) -> bool {
        self.cuda.is_some()
    }

    /// What products are made of.
    #[must_use]
    pub fn precision(&self) -> Precision {
        self.cuda.as_ref().map_or(Precision::F32, |cuda| cuda.precision)
    }

    /// The name of the card, if it is one.
    #[must_use]
    pub fn card(&self) -> Option<&str> {
        self.cuda.as_ref().map(|cuda| cuda.card.as_str())
    }

    /// About as many rows as should learn at once: what a core's cache holds, or what keeps a card busy.
    #[must_use]
    pub fn rows_to_learn(&self) -> usize {
        /// Whole batches of any size of the paper; larger ones are cut so that memory stays bounded.
        const ON_A_CARD: usize = 1 << 17;
        if self.cuda.is_some() { ON_A_CARD } else { chunks::ROWS }
    }

    /// The same for scores alone, where threads can make the next rows ready.
    #[must_use]
    pub fn rows_to_score(&self) -> usize {
        /// Enough for a card, and many of them in what is scored at once.
        const ON_A_CARD: usize = 1 << 13;
        if self.cuda.is_some() { ON_A_CARD } else { chunks::ROWS }
    }

    /// Whether an encoder of this width with so many heads runs here.
    pub fn can_encode(&self, d_model: usize, heads: Heads) -> Result<()> {
        if self.cuda.is_some() && (d_model > WIDEST || d_model / heads.0.max(1) > WIDEST_HEAD) {
            return Err(Error::NotOnGpu { operation: "a model wider than 1024, or with heads wider than 128" });
        }
        Ok(())
    }

    /// How many threads, at most `enough`, should make batches ready while the device computes; nothing where it is those
    /// threads itself.
    #[must_use]
    pub fn workers_beside(&self, enough: usize) -> Option<usize> {
        self.cuda.as_ref().map(|_| rayon::current_num_threads().saturating_sub(1).clamp(1, enough))
    }

    /// Copies `tensor` to where the device reads it by itself, so that [`Tape::input`](crate::Tape::input) need not.
    ///
    /// What was staged once stays so, here and below.
    pub fn stage(&self, tensor: &Tensor) -> Result<()> {
        let Some(cuda) = self.cuda.as_ref().filter(|_| tensor.staged().is_none()) else { return Ok(()) };
        tensor.set_staged(cuda.stage(&[tensor.values()])?);
        Ok(())
    }

    /// The same of `indices`. Where a gradient comes back to the rows that they are picked from, `rows` says how many there
    /// are: what it takes to put it there is then made ready as well.
    pub fn stage_indices(&self, indices: &Indices, rows: Option<usize>) -> Result<()> {
        let Some(cuda) = self.cuda.as_ref().filter(|_| indices.staged().is_none()) else { return Ok(()) };
        indices.set_staged(cuda.stage_indices(indices, rows)?);
        Ok(())
    }

    /// The same of where sequences begin.
    pub fn stage_starts(&self, batch: &Ragged) -> Result<()> {
        let Some(cuda) = self.cuda.as_ref().filter(|_| batch.staged().is_none()) else { return Ok(()) };
        batch.set_staged(cuda.stage_starts(batch)?);
        Ok(())
    }

    pub(crate) fn context(&self) -> Option<&Arc<Context>> {
        self.cuda.as_ref()
    }
}
