//! LayerNorm on the CPU.

use crate::math::{dot, sum};
use crate::scratch::{self, Scratch};
use crate::tape::{BackwardCtx, CpuTape, GradSink};
use crate::vector::{add_products, add_to, vectorised};
use crate::{Result, Tensor, Threads, Var};

/// Added to the variance, as PyTorch does by default.
const EPS: f32 = 1e-5;

/// A mean is large if its square is more than this many times the variance.
const LARGE_MEAN: f32 = 256.0;

impl CpuTape<'_> {
    pub(crate) fn layer_norm(&mut self, x: Var, scale: Var, shift: Var) -> Result<Var> {
        let shape = self.shape(x);
        let cols = shape.cols();
        let (normal, inv_std) = normalise(self.value(x), self.threads());
        let mut values = normal.clone();
        let (scale_values, shift_values) = (self.value(scale).values(), self.value(shift).values());
        self.threads().rows(&mut values, cols, |_, rows| scale_and_shift(rows, scale_values, shift_values));
        let backward = move |mut grad: Scratch, ctx: &BackwardCtx<'_>, sink: &mut GradSink<'_>| {
            let n_rows = inv_std.len();
            let row = |values: &[f32], i: usize| -> std::ops::Range<usize> {
                debug_assert_eq!(values.len(), n_rows * cols);
                i * cols..(i + 1) * cols
            };
            sink.accumulate_with(scale, |sums| {
                let add = |i, sums: &mut [f32]| add_products(sums, &grad[row(&grad, i)], &normal[row(&normal, i)]);
                ctx.threads.sum_rows(n_rows, sums, add);
            });
            sink.accumulate_with(shift, |sums| {
                ctx.threads.sum_rows(n_rows, sums, |i, sums| add_to(sums, &grad[row(&grad, i)]));
            });
            if sink.requires_grad(x) {
                input_gradient(&mut grad, &normal, &inv_std, ctx.value(scale).values(), ctx.threads);
                sink.accumulate(x, grad);
            }
        };
        Ok(self.push(&[x, scale, shift], Tensor::from_parts(shape, values), backward))
    }
}

/// The normalised rows and 1/σ of each.
fn normalise(x: &Tensor, threads: Threads) -> (Scratch, Scratch) {
    let cols = x.cols();
    let mut normal = scratch::copy_of(x.values());
    let mut inv_std = scratch::take(if cols == 0 { 0 } else { x.rows() });
    threads.rows_of_two((&mut normal, cols), (&mut inv_std, 1), |_, rows, inv_std| normalise_rows(rows, inv_std));
    (normal, inv_std)
}

/// Turns the gradient of the output into that of `x`.
fn input_gradient(grad: &mut [f32], normal: &[f32], inv_std: &[f32], scale: &[f32], threads: Threads) {
    let cols = scale.len();
    threads.rows(grad, cols, |first, rows| {
        let n_rows = rows.len() / cols;
        normalise_rows_backward(rows, &normal[first * cols..], &inv_std[first..][..n_rows], scale);
    });
}

vectorised! {
    /// Normalises rows to mean 0 and variance 1; `inv_std` has one value for each.
    pub(crate) fn normalise_rows(rows: &mut [f32], inv_std: &mut [f32]) {
        let cols = rows.len() / inv_std.len().max(1);
        if cols == 0 {
            return;
        }
        for (row, inv_std) in rows.chunks_exact_mut(cols).zip(inv_std) {
            let mean = sum(row) / cols as f32;
            for x in row.iter_mut() {
                *x -= mean;
            }
            let mut variance = dot(row, row) / cols as f32;
            if mean * mean > LARGE_MEAN * variance {
                // A nearly constant row: subtract what rounding the mean left over.
                let rest = sum(row) / cols as f32;
                for x in row.iter_mut() {
                    *x -= rest;
                }
                variance = dot(row, row) / cols as f32;
            }
            *inv_std = 1.0 / (variance + EPS).sqrt();
            for x in row.iter_mut() {
                *x *= *inv_std;
            }
        }
    }

    /// `row · scale + shift` for each row.
    pub(crate) fn scale_and_shift(rows: &mut [f32], scale: &[f32], shift: &[f32]) {
        for row in rows.chunks_exact_mut(scale.len().max(1)) {
            for ((x, scale), shift) in row.iter_mut().zip(scale).zip(shift) {
                *x = *x * scale + shift;
            }
        }
    }

    /// With g = dy·scale: dx = (g − mean(g) − x̂·mean(g·x̂)) / σ, written over dy.
    pub(crate) fn normalise_rows_backward(grads: &mut [f32], normal: &[f32], inv_std: &[f32], scale: &[f32]) {
        let cols = scale.len();
        let saved = normal.chunks_exact(cols.max(1)).zip(inv_std);
        for (grad, (normal, inv_std)) in grads.chunks_exact_mut(cols.max(1)).zip(saved) {
            for (grad, scale) in grad.iter_mut().zip(scale) {
                *grad *= scale;
            }
            let mean = sum(grad) / cols as f32;
            let along = dot(grad, normal) / cols as f32;
            for (grad, normal) in grad.iter_mut().zip(normal) {
                *grad = (*grad - mean - normal * along) * inv_std;
            }
        }
    }
}
