//! Dropout on the CPU.

use super::Mask;
use crate::scratch::{self, Scratch};
use crate::tape::{BackwardCtx, CpuTape, GradSink};
use crate::vector::vectorised;
use crate::{Dropout, Tensor, Var};

impl Dropout {
    /// Multiplies `values`, the first of which has `position`, by 0 or 1/(1 − rate).
    pub(crate) fn apply(self, position: usize, values: &mut [f32]) {
        self.apply_to_both(position, values, &mut []);
    }

    /// Multiplies `values` and as many of `others` as there are by the same factors.
    pub(crate) fn apply_to_both(self, position: usize, values: &mut [f32], others: &mut [f32]) {
        if self.is_active() {
            multiply_by_mask(&Mask::new(self), position, values, others);
        }
    }
}

vectorised! {
    fn multiply_by_mask(mask: &Mask, position: usize, values: &mut [f32], others: &mut [f32]) {
        // Up to the first whole block and after the last, position by position.
        let before = position.next_multiple_of(16).wrapping_sub(position).min(values.len());
        let whole = (values.len() - before) / 16 * 16;
        let others_len = others.len();
        for i in (0..before).chain(before + whole..values.len()) {
            let factor = mask.at(position + i);
            values[i] *= factor;
            if i < others_len {
                others[i] *= factor;
            }
        }
        #[expect(clippy::cast_possible_truncation, reason = "see `hash`")]
        let mut first = ((position + before) / 16 * 8) as u32;
        let (blocks, _) = values[before..].as_chunks_mut::<16>();
        let mut other_blocks = others.get_mut(before..).unwrap_or_default().as_chunks_mut::<16>().0.iter_mut();
        for block in blocks {
            let mut factors = [0.0; 16];
            for (i, lane) in (0..8).enumerate() {
                let hash = mask.hash(first.wrapping_add(lane));
                factors[i] = mask.factor(hash & 0xFFFF);
                factors[i + 8] = mask.factor(hash >> 16);
            }
            for (value, factor) in block.iter_mut().zip(factors) {
                *value *= factor;
            }
            if let Some(other) = other_blocks.next() {
                for (value, factor) in other.iter_mut().zip(factors) {
                    *value *= factor;
                }
            }
            first = first.wrapping_add(8);
        }
    }
}

impl CpuTape<'_> {
    pub(crate) fn dropout(&mut self, x: Var, dropout: Dropout) -> Var {
        let shape = self.shape(x);
        let cols = shape.cols();
        let mut values = scratch::copy_of(self.value(x).values());
        self.threads().rows(&mut values, cols, |first, rows| dropout.apply(first * cols, rows));
        let backward = move |mut grad: Scratch, ctx: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            ctx.threads.rows(&mut grad, cols, |first, rows| dropout.apply(first * cols, rows));
            sink.accumulate(x, grad);
        };
        self.push(&[x], Tensor::from_parts(shape, values), backward)
    }
}
