//! Activation functions: ReLU, exact GELU, sigmoid, tanh, cos.

pub(crate) mod cpu;
pub(crate) mod cuda;
#[cfg(test)]
mod tests;

use crate::tape::dispatch;
use crate::{Tape, Var};
pub(crate) use cuda::KERNELS;

/// A function applied to each value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// max(x, 0), with derivative 0 at 0.
    Relu,
    /// The exact GELU x·Φ(x), not its tanh approximation.
    Gelu,
    /// 1 / (1 + e^−x).
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
    /// The cosine, for time encodings.
    Cos,
}

impl Tape<'_> {
    /// `function` of each value of `x`.
    pub fn activate(&mut self, x: Var, function: Activation) -> Var {
        dispatch!(self.activate(x, function))
    }
}
