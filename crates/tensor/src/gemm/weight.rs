//! Weights as right operands of GEMMs: packed once, and then read by every chunk of a batch.

use std::fmt;
use std::sync::OnceLock;

use super::{View, WriteMode, gemm_packed};
use crate::Tensor;

/// The packed forms of a weight, plain and transposed, each made at its first use.
///
/// They are a cache: a clone starts empty, and all compare equal. Changing the weight must [clear](Self::clear) them.
#[derive(Default)]
pub(crate) struct Packs([OnceLock<Vec<f32>>; 2]);

impl Packs {
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    #[cfg(test)]
    pub(crate) fn are_filled(&self) -> bool {
        self.0.iter().any(|form| form.get().is_some())
    }
}

impl Clone for Packs {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Packs {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Packs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Packs")
    }
}

/// The weight `[N, K]` of a linear layer, with its packed forms if it is a parameter.
#[derive(Clone, Copy)]
pub(crate) struct Weight<'a> {
    view: View<'a>,
    packs: Option<&'a Packs>,
}

impl<'a> Weight<'a> {
    pub(crate) fn new(tensor: &'a Tensor, packs: Option<&'a Packs>) -> Self {
        Self { view: View::new(tensor.values(), tensor.shape().rows(), tensor.shape().cols()), packs }
    }

    /// `out = x · Wᵀ`, or `out += x · Wᵀ`, of `x` `[M, K]`, `[M, N]`.
    pub(crate) fn forward(self, x: View<'_>, mode: WriteMode, out: &mut [f32]) {
        let packed = self.packs.map(|packs| &packs.0[1]);
        gemm_packed(x, (self.view.t(), packed), 1.0, mode, out, self.view.rows);
    }

    /// `out = dy · W`, or `out += dy · W`, of `dy` `[M, N]`, `[M, K]`.
    pub(crate) fn backward(self, dy: View<'_>, mode: WriteMode, out: &mut [f32]) {
        let packed = self.packs.map(|packs| &packs.0[0]);
        gemm_packed(dy, (self.view, packed), 1.0, mode, out, self.view.cols);
    }
}
