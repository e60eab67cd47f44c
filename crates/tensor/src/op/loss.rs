//! Binary cross-entropy with logits: the loss of link prediction, plain and weighted.

mod cpu;
mod cuda;
#[cfg(test)]
mod tests;

use crate::tape::dispatch;
use crate::{Result, Tape, Var};
pub(crate) use cuda::KERNELS;

/// One term of a weighted binary cross-entropy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BceTerm {
    /// In `[0, 1]`.
    pub target: f32,
    /// Added to the logit: the logarithm of a known density, say.
    pub offset: f32,
    /// 0 leaves the logit out.
    pub weight: f32,
}

impl Tape<'_> {
    /// The binary cross-entropy of `logits` against `targets` in `[0, 1]`, summed and divided by `count`, `[1]`.
    ///
    /// With the number of targets as `count` it is their mean; with that of a larger batch it is this part's share of the
    /// batch's mean. It is computed from the logits, so that no probability is rounded to 0 or 1, and summed in `f64`. For
    /// no logits it is 0.
    pub fn bce_with_logits(&mut self, logits: Var, targets: &[f32], count: usize) -> Result<Var> {
        if self.shape(logits).len() != targets.len() {
            let needed = format!("{} values", targets.len());
            return Err(self.shape_error("binary cross-entropy", "the logits", logits, needed));
        }
        dispatch!(self.bce_with_logits(logits, targets, count))
    }

    /// The sum over all logits of `weight · BCE(logit + offset, target)`, `[1]`; one of `terms` for each logit, row by row.
    ///
    /// ```
    /// use hopedgn_tensor::{BceTerm, Parameters, Tape, Tensor};
    ///
    /// let parameters = Parameters::default();
    /// let mut tape = Tape::new(&parameters);
    /// let logits = tape.input(Tensor::vector(vec![1.5, 7.0]));
    /// let terms = [BceTerm { target: 1.0, offset: -1.5, weight: 2.0 }, BceTerm { target: 0.0, offset: 0.0, weight: 0.0 }];
    /// let loss = tape.weighted_bce_with_logits(logits, &terms)?;
    /// assert!((tape.read(loss)?[0] - 2.0 * 2.0_f32.ln()).abs() < 1e-6);
    /// # Ok::<(), hopedgn_tensor::Error>(())
    /// ```
    pub fn weighted_bce_with_logits(&mut self, logits: Var, terms: &[BceTerm]) -> Result<Var> {
        if self.shape(logits).len() != terms.len() {
            let needed = format!("{} values", terms.len());
            return Err(self.shape_error("weighted binary cross-entropy", "the logits", logits, needed));
        }
        dispatch!(self.weighted_bce_with_logits(logits, terms))
    }
}
