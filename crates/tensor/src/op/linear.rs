//! The linear layer x·Wᵀ + b with an activation in the same pass, and the plain product x·W.

mod cpu;
mod cuda;
mod skinny;
#[cfg(test)]
mod tests;

use crate::tape::dispatch;
use crate::{Activation, Result, Shape, Tape, Var};
pub(crate) use cuda::KERNELS;
pub(crate) use skinny::SKINNY_KERNELS;

impl Tape<'_> {
    /// `activation(x · weightᵀ + bias)`, `[M, N]`.
    ///
    /// `x` is `[M, K]`, `weight` `[N, K]` as PyTorch stores it, `bias` `[N]`.
    pub fn linear(&mut self, x: Var, weight: Var, bias: Option<Var>, activation: Option<Activation>) -> Result<Var> {
        let (k, n) = (self.shape(x).cols(), self.shape(weight).rows());
        if self.shape(weight).cols() != k {
            return Err(self.shape_error("linear", "the weight", weight, format_args!("[N, {k}]")));
        }
        if let Some(bias) = bias.filter(|&bias| self.shape(bias) != Shape::Vector(n)) {
            return Err(self.shape_error("linear", "the bias", bias, Shape::Vector(n)));
        }
        dispatch!(self.linear(x, weight, bias, activation))
    }

    /// `x · weight`, `[M, N]`, of `x` `[M, K]` and `weight` `[K, N]`.
    pub fn matmul(&mut self, x: Var, weight: Var) -> Result<Var> {
        let (k, n) = (self.shape(x).cols(), self.shape(weight).cols());
        if self.shape(weight) != Shape::Matrix(k, n) {
            return Err(self.shape_error("matmul", "the weight", weight, format_args!("[{k}, N]")));
        }
        dispatch!(self.matmul(x, weight))
    }
}
