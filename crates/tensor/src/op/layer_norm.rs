//! LayerNorm: each row to mean 0 and variance 1, then scaled and shifted.

pub(crate) mod cpu;
mod cuda;
#[cfg(test)]
mod tests;

use crate::tape::dispatch;
use crate::{Result, Shape, Tape, Var};
pub(crate) use cuda::KERNELS;

impl Tape<'_> {
    /// The rows of `x` `[M, D]`, normalised, times `scale` `[D]` plus `shift` `[D]`.
    pub fn layer_norm(&mut self, x: Var, scale: Var, shift: Var) -> Result<Var> {
        let cols = self.shape(x).cols();
        for (what, var) in [("the scale", scale), ("the shift", shift)] {
            if self.shape(var) != Shape::Vector(cols) {
                return Err(self.shape_error("layer norm", what, var, Shape::Vector(cols)));
            }
        }
        dispatch!(self.layer_norm(x, scale, shift))
    }
}
