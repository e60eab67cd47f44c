//! Weights as right factors of products: packed once, and then met by every chunk of a batch.

use std::fmt;
use std::sync::OnceLock;

use super::{Into, View, product_with};
use crate::Tensor;

/// The packed forms of a weight, as it is and transposed, each made by whoever needs it first.
///
/// They are no part of the weight's value: a copy starts without them, and all are equal. Whoever changes the weight has
/// to [forget](Self::forget) them.
#[derive(Default)]
pub(crate) struct Packs([OnceLock<Vec<f32>>; 2]);

impl Packs {
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    #[cfg(test)]
    pub(crate) fn are_made(&self) -> bool {
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

    /// `out = x · Wᵀ`, or that added to `out`: `[M, K]` gives `[M, N]`.
    pub(crate) fn forward(self, x: View<'_>, into: Into, out: &mut [f32]) {
        let packed = self.packs.map(|packs| &packs.0[1]);
        product_with(x, (self.view.t(), packed), 1.0, into, out, self.view.rows);
    }

    /// `out = dy · W`, or that added to `out`: `[M, N]` gives `[M, K]`.
    pub(crate) fn back(self, dy: View<'_>, into: Into, out: &mut [f32]) {
        let packed = self.packs.map(|packs| &packs.0[0]);
        product_with(dy, (self.view, packed), 1.0, into, out, self.view.cols);
    }
}
