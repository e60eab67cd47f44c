//! Rows: gather, scatter, reshape, repeat.

mod cpu;
mod cuda;
#[cfg(test)]
mod tests;

use crate::tape::dispatch;
use crate::{Indices, Result, Shape, Tape, Var};
pub(crate) use cuda::{KERNELS, gather_rows, scatter_rows};

impl Tape<'_> {
    /// Row `indices[i]` of `x` `[M, D]` as row `i`, `[indices, D]`.
    pub fn gather(&mut self, x: Var, indices: impl Into<Indices>) -> Result<Var> {
        let indices = indices.into();
        let Shape::Matrix(rows, _) = self.shape(x) else { return Err(self.shape_error("gather", "x", x, "[M, D]")) };
        indices.check("gather", rows)?;
        dispatch!(self.gather(x, indices))
    }

    /// Row `i` of `x` `[indices, D]` added to row `indices[i]` of zeros, `[n_rows, D]`.
    pub fn scatter(&mut self, x: Var, indices: impl Into<Indices>, n_rows: usize) -> Result<Var> {
        let indices = indices.into();
        if self.shape(x) != Shape::Matrix(indices.len(), self.shape(x).cols()) {
            return Err(self.shape_error("scatter", "x", x, format_args!("[{}, D]", indices.len())));
        }
        indices.check("scatter", n_rows)?;
        dispatch!(self.scatter(x, indices, n_rows))
    }

    /// The values of `x`, row-major, as `[rows, cols]`. The gradient is passed on without a copy.
    pub fn reshape(&mut self, x: Var, rows: usize, cols: usize) -> Result<Var> {
        let shape = Shape::Matrix(rows, cols);
        if self.shape(x).len() != shape.len() {
            return Err(self.shape_error("reshape", "x", x, format_args!("{} values for {shape}", shape.len())));
        }
        dispatch!(self.reshape(x, shape))
    }

    /// The single row `x` `[D]`, `n_rows` times, `[n_rows, D]`.
    pub fn repeat_row(&mut self, x: Var, n_rows: usize) -> Result<Var> {
        if self.shape(x).rows() != 1 {
            return Err(self.shape_error("repeat", "x", x, "[D]"));
        }
        dispatch!(self.repeat_row(x, n_rows))
    }
}
