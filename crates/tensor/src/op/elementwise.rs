//! Elementwise sum and product.

mod cpu;
mod cuda;
#[cfg(test)]
mod tests;

use crate::tape::dispatch;
use crate::{Result, Tape, Var};
pub(crate) use cuda::{KERNELS, multiply_values};

impl Tape<'_> {
    /// `a + b`, elementwise; both have one shape.
    pub fn add(&mut self, a: Var, b: Var) -> Result<Var> {
        self.check_same_shape("add", a, b)?;
        dispatch!(self.add(a, b))
    }

    /// `a · b`, elementwise; both have one shape.
    pub fn mul(&mut self, a: Var, b: Var) -> Result<Var> {
        self.check_same_shape("mul", a, b)?;
        dispatch!(self.mul(a, b))
    }

    fn check_same_shape(&self, operation: &'static str, a: Var, b: Var) -> Result<()> {
        let shape = self.shape(a);
        if self.shape(b) == shape { Ok(()) } else { Err(self.shape_error(operation, "the second operand", b, shape)) }
    }
}
