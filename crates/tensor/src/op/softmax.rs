//! Softmax over the values of a row.

pub(crate) mod cpu;
mod cuda;
#[cfg(test)]
mod tests;

use crate::tape::dispatch;
use crate::{Tape, Var};
pub(crate) use cuda::KERNELS;

impl Tape<'_> {
    /// The softmax of each row of `x` `[M, N]`.
    pub fn softmax(&mut self, x: Var) -> Var {
        dispatch!(self.softmax(x))
    }
}
