//! Sums and means over the rows of each sequence.

mod cpu;
mod cuda;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::tape::dispatch;
use crate::{Error, Ragged, Result, Shape, Tape, Tensor, Var};
pub(crate) use cuda::KERNELS;

impl Tape<'_> {
    /// The mean row of each sequence of `x` `[T, D]`, `[sequences, D]`; zeros for an empty one.
    pub fn segment_mean(&mut self, x: Var, batch: &Ragged) -> Result<Var> {
        self.check_segments("segment mean", x, batch)?;
        dispatch!(self.segment_mean(x, batch))
    }

    /// The sum of the rows of each sequence of `x` `[T, D]`, each times its weight of `[T, 1]` if there are weights,
    /// `[sequences, D]`; zeros for an empty one. The weights get no gradient.
    pub fn segment_sum(&mut self, x: Var, weights: Option<&Arc<Tensor>>, batch: &Ragged) -> Result<Var> {
        self.check_segments("segment sum", x, batch)?;
        if let Some(weights) = weights.filter(|weights| weights.shape() != Shape::Matrix(batch.total(), 1)) {
            let needed = Shape::Matrix(batch.total(), 1).to_string();
            let (operation, what) = ("segment sum", "the list of weights");
            return Err(Error::Shape { operation, what, got: weights.shape(), needed });
        }
        dispatch!(self.segment_sum(x, weights, batch))
    }

    fn check_segments(&self, operation: &'static str, x: Var, batch: &Ragged) -> Result<()> {
        let cols = self.shape(x).cols();
        if self.shape(x) == Shape::Matrix(batch.total(), cols) {
            return Ok(());
        }
        Err(self.shape_error(operation, "x", x, format_args!("[{}, D]", batch.total())))
    }
}
