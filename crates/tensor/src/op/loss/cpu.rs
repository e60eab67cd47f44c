//! Binary cross-entropy on the CPU.

use super::BceTerm;
use crate::math::sigmoid;
use crate::scratch::Scratch;
use crate::tape::{BackwardCtx, CpuTape, GradSink};
use crate::{Result, Shape, Tensor, Var};

/// The cross-entropy of a logit.
fn term(x: f32, y: f32) -> f64 {
    f64::from(x.max(0.0) - x * y + (-x.abs()).exp().ln_1p())
}

impl CpuTape<'_> {
    pub(crate) fn bce_with_logits(&mut self, logits: Var, targets: &[f32], count: usize) -> Result<Var> {
        let total: f64 = self.value(logits).values().iter().zip(targets).map(|(&x, &y)| term(x, y)).sum();
        #[expect(clippy::cast_possible_truncation, reason = "the mean is rounded once, at the end")]
        let mean = (total / count.max(1) as f64) as f32;
        let targets = targets.to_vec();
        let backward = move |grad: Scratch, ctx: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            let share = grad[0] / count.max(1) as f32;
            let x = ctx.value(logits).values();
            let grad: Vec<f32> = x.iter().zip(&targets).map(|(&x, &y)| (sigmoid(x) - y) * share).collect();
            sink.accumulate(logits, grad.into());
        };
        Ok(self.push(&[logits], Tensor::from_parts(Shape::Vector(1), vec![mean]), backward))
    }

    pub(crate) fn weighted_bce_with_logits(&mut self, logits: Var, terms: &[BceTerm]) -> Result<Var> {
        let weighted = |(&x, of): (&f32, &BceTerm)| f64::from(of.weight) * term(x + of.offset, of.target);
        let total: f64 = self.value(logits).values().iter().zip(terms).map(weighted).sum();
        #[expect(clippy::cast_possible_truncation, reason = "the sum is rounded once, at the end")]
        let total = total as f32;
        let terms = terms.to_vec();
        let backward = move |grad: Scratch, ctx: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            let of = |(&x, of): (&f32, &BceTerm)| (sigmoid(x + of.offset) - of.target) * of.weight * grad[0];
            let grads: Vec<f32> = ctx.value(logits).values().iter().zip(&terms).map(of).collect();
            sink.accumulate(logits, grads.into());
        };
        Ok(self.push(&[logits], Tensor::from_parts(Shape::Vector(1), vec![total]), backward))
    }
}
