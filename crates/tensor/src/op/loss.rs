//! Binary cross-entropy with logits: the loss of link prediction.

mod cpu;
mod cuda;
#[cfg(test)]
mod tests;

use crate::tape::dispatch;
use crate::{Result, Tape, Var};
pub(crate) use cuda::KERNELS;

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
}
