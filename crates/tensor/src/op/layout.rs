//! Layout: concatenation, column slices and transposes of groups.

mod cpu;
mod cuda;
#[cfg(test)]
mod tests;

use crate::tape::dispatch;
use crate::{Result, Shape, Tape, Var};
pub(crate) use cuda::KERNELS;

impl Tape<'_> {
    /// The columns of all `parts`, `[M, ΣN]`: `torch.cat` along axis 1. All have the same number of rows.
    pub fn concat(&mut self, parts: &[Var]) -> Result<Var> {
        let rows = parts.first().map_or(0, |&part| self.shape(part).rows());
        if let Some(&odd) = parts.iter().find(|&&part| self.shape(part).rows() != rows) {
            return Err(self.shape_error("concat", "a part", odd, format_args!("[{rows}, N]")));
        }
        dispatch!(self.concat(parts, rows))
    }

    /// The rows of all `parts`, `[ΣM, N]`: `torch.cat` along axis 0. All have the same number of columns.
    pub fn concat_rows(&mut self, parts: &[Var]) -> Result<Var> {
        let cols = parts.first().map_or(0, |&part| self.shape(part).cols());
        if let Some(&odd) = parts.iter().find(|&&part| self.shape(part).cols() != cols) {
            return Err(self.shape_error("concat rows", "a part", odd, format_args!("[M, {cols}]")));
        }
        let rows = parts.iter().map(|&part| self.shape(part).rows()).sum();
        dispatch!(self.concat_rows(parts, Shape::Matrix(rows, cols)))
    }

    /// The columns `first..first + count` of `x` `[M, N]`, `[M, count]`.
    pub fn columns(&mut self, x: Var, first: usize, count: usize) -> Result<Var> {
        if first.checked_add(count).is_none_or(|end| end > self.shape(x).cols()) {
            let needed = format!("[M, N] with {count} columns from column {first} on");
            return Err(self.shape_error("columns", "x", x, needed));
        }
        dispatch!(self.columns(x, first, count))
    }

    /// `x` `[G·R, C]` as G matrices of R = `rows_per_group` rows, each transposed, `[G·C, R]`.
    pub fn swap_axes(&mut self, x: Var, rows_per_group: usize) -> Result<Var> {
        if rows_per_group == 0 || !self.shape(x).rows().is_multiple_of(rows_per_group) {
            return Err(self.shape_error("swap axes", "x", x, format_args!("[G · {rows_per_group}, C]")));
        }
        dispatch!(self.swap_axes(x, rows_per_group))
    }
}
