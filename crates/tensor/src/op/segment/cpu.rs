//! Segment sums and means on the CPU.

use std::sync::Arc;

use crate::scratch::{self, Scratch};
use crate::tape::{BackwardCtx, CpuTape, GradSink};
use crate::vector::{add_scaled, add_to};
use crate::{Ragged, Result, Shape, Tensor, Var};

impl CpuTape<'_> {
    pub(crate) fn segment_mean(&mut self, x: Var, batch: &Ragged) -> Result<Var> {
        let cols = self.shape(x).cols();
        let mut values = scratch::take_zeros(batch.len() * cols);
        let x_values = self.value(x).values();
        self.threads().rows(&mut values, cols, |first, means| {
            for (i, mean) in means.chunks_exact_mut(cols).enumerate() {
                let range = batch.range(first + i);
                for row in range.clone() {
                    add_to(mean, &x_values[row * cols..(row + 1) * cols]);
                }
                let share = 1.0 / range.len().max(1) as f32;
                for mean in mean.iter_mut() {
                    *mean *= share;
                }
            }
        });
        let shape = Shape::Matrix(batch.len(), cols);
        let batch = batch.clone();
        let backward = move |grad: Scratch, ctx: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            sink.accumulate_with(x, |sum| {
                ctx.threads.segments(sum, cols, &batch, |segment, rows| {
                    let share = 1.0 / batch.range(segment).len() as f32;
                    let grad = &grad[segment * cols..(segment + 1) * cols];
                    rows.chunks_exact_mut(cols).for_each(|row| add_scaled(row, grad, share));
                });
            });
        };
        Ok(self.push(&[x], Tensor::from_parts(shape, values), backward))
    }

    pub(crate) fn segment_sum(&mut self, x: Var, weights: Option<&Arc<Tensor>>, batch: &Ragged) -> Result<Var> {
        let cols = self.shape(x).cols();
        let mut values = scratch::take_zeros(batch.len() * cols);
        let x_values = self.value(x).values();
        let weights = weights.cloned();
        let weight = |row: usize| weights.as_ref().map_or(1.0, |weights| weights.values()[row]);
        self.threads().rows(&mut values, cols, |first, sums| {
            for (i, sum) in sums.chunks_exact_mut(cols).enumerate() {
                for row in batch.range(first + i) {
                    add_scaled(sum, &x_values[row * cols..(row + 1) * cols], weight(row));
                }
            }
        });
        let shape = Shape::Matrix(batch.len(), cols);
        let batch = batch.clone();
        let backward = move |grad: Scratch, ctx: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            let weight = |row: usize| weights.as_ref().map_or(1.0, |weights| weights.values()[row]);
            sink.accumulate_with(x, |sum| {
                ctx.threads.segments(sum, cols, &batch, |segment, rows| {
                    let grad = &grad[segment * cols..(segment + 1) * cols];
                    for (row, sum) in batch.range(segment).zip(rows.chunks_exact_mut(cols)) {
                        add_scaled(sum, grad, weight(row));
                    }
                });
            });
        };
        Ok(self.push(&[x], Tensor::from_parts(shape, values), backward))
    }
}
