//! LayerNorm: each row to mean 0 and variance 1, then scaled and shifted.

use crate::math::{dot, sum};
use crate::scratch::{self, Scratch};
use crate::tape::{At, Sink};
use crate::vector::{add_to, vectorised};
use crate::{Result, Shape, Tape, Tensor, Threads, Var};

/// Added to the variance, as PyTorch does by default.
const EPS: f32 = 1e-5;

/// The square of how many deviations away from 0 a row's mean is far.
const FAR: f32 = 256.0;

impl Tape<'_> {
    /// Rows of `x` `[M, D]`, normalised, times `scale` `[D]` plus `shift` `[D]`.
    pub fn layer_norm(&mut self, x: Var, scale: Var, shift: Var) -> Result<Var> {
        let shape = self.shape(x);
        let cols = shape.cols();
        for (what, var) in [("the scale", scale), ("the shift", shift)] {
            if self.shape(var) != Shape::Vector(cols) {
                return Err(self.misfit("layer norm", what, var, Shape::Vector(cols)));
            }
        }
        if let Some(record) = self.record() {
            return record.layer_norm(x.0, [scale.0, shift.0]).map(Var);
        }
        let (normal, inv_std) = normalise(self.value(x), self.threads());
        let mut values = normal.clone();
        let (scale_values, shift_values) = (self.value(scale).values(), self.value(shift).values());
        self.threads().rows(&mut values, cols, |_, rows| scale_and_shift(rows, scale_values, shift_values));
        let backward = move |mut grad: Scratch, at: &At<'_>, sink: &mut Sink<'_>| {
            let n_rows = inv_std.len();
            let row = |values: &[f32], i: usize| -> std::ops::Range<usize> {
                debug_assert_eq!(values.len(), n_rows * cols);
                i * cols..(i + 1) * cols
            };
            sink.add(scale, |sums| {
                let add = |i, sums: &mut [f32]| add_products(sums, &grad[row(&grad, i)], &normal[row(&normal, i)]);
                at.threads.sum_rows(n_rows, sums, add);
            });
            sink.add(shift, |sums| {
                at.threads.sum_rows(n_rows, sums, |i, sums| add_to(sums, &grad[row(&grad, i)]));
            });
            if sink.wants(x) {
                turn_into_dx(&mut grad, &normal, &inv_std, at.value(scale).values(), at.threads);
                sink.give(x, grad);
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

/// Turns the gradient of the result into that of `x`.
fn turn_into_dx(grad: &mut [f32], normal: &[f32], inv_std: &[f32], scale: &[f32], threads: Threads) {
    let cols = scale.len();
    threads.rows(grad, cols, |first, rows| {
        let n_rows = rows.len() / cols;
        normalise_rows_backward(rows, &normal[first * cols..], &inv_std[first..][..n_rows], scale);
    });
}

vectorised! {
    /// Each of the rows, one for each of `inv_std`, to mean 0 and variance 1.
    pub(super) fn normalise_rows(rows: &mut [f32], inv_std: &mut [f32]) {
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
            if mean * mean > FAR * variance {
                // Nearly constant: what rounding the mean left over shows.
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
    pub(super) fn scale_and_shift(rows: &mut [f32], scale: &[f32], shift: &[f32]) {
        for row in rows.chunks_exact_mut(scale.len().max(1)) {
            for ((x, scale), shift) in row.iter_mut().zip(scale).zip(shift) {
                *x = *x * scale + shift;
            }
        }
    }

    /// `sums += a · b`, value by value.
    pub(super) fn add_products(sums: &mut [f32], a: &[f32], b: &[f32]) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }

    /// With g = dy·scale: dx = (g − mean(g) − x̂·mean(g·x̂)) / σ, in the place of dy.
    pub(super) fn normalise_rows_backward(grads: &mut [f32], normal: &[f32], inv_std: &[f32], scale: &[f32]) {
        let cols = scale.len();
        let beside = normal.chunks_exact(cols.max(1)).zip(inv_std);
        for (grad, (normal, inv_std)) in grads.chunks_exact_mut(cols.max(1)).zip(beside) {
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

#[cfg(test)]
mod tests {
    use crate::testkit::{Case, check_gradients, matrix, vector};

    #[test]
    fn gradients_match_differences() {
        // Rows wide enough that none is nearly constant: 1/σ would bend inside the step of a difference.
        for (rows, cols) in [(4, 11), (70, 8)] {
            let inputs = [matrix(1, rows, cols), vector(2, cols), vector(3, cols)];
            check_gradients(&inputs, |tape, x| tape.layer_norm(x[0], x[1], x[2]));
        }
    }

    #[test]
    fn values_and_gradients_are_those_of_pytorch() {
        Case::load("layer_norm").check(&["x", "scale", "shift"], |tape, x| tape.layer_norm(x[0], x[1], x[2]));
    }
}
