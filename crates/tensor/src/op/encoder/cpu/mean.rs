//! Means over pools of rows, and their gradients.

use crate::Ragged;
use crate::vector::{add_scaled, add_to};

/// The weight of each row in the mean of its pool.
#[expect(clippy::cast_precision_loss, reason = "a pool has far fewer than 2²⁴ rows")]
pub(super) fn share(length: usize) -> f32 {
    1.0 / length.max(1) as f32
}

/// Adds each pool's mean row of `rows` to its row of `means`.
pub(super) fn add_means(rows: &[f32], pools: &Ragged, means: &mut [f32]) {
    let cols = means.len() / pools.len().max(1);
    for (range, mean) in pools.ranges().zip(means.chunks_exact_mut(cols.max(1))) {
        for row in range.clone() {
            add_to(mean, &rows[row * cols..(row + 1) * cols]);
        }
        for value in mean.iter_mut() {
            *value *= share(range.len());
        }
    }
}

/// Adds to every row its share of the gradient of its pool.
pub(super) fn add_mean_gradients(grads: &[f32], pools: &Ragged, rows: &mut [f32]) {
    let cols = grads.len() / pools.len().max(1);
    for (range, grad) in pools.ranges().zip(grads.chunks_exact(cols.max(1))) {
        for row in range.clone() {
            add_scaled(&mut rows[row * cols..(row + 1) * cols], grad, share(range.len()));
        }
    }
}

/// Zeroes the rows of empty pools.
pub(super) fn clear_empty(rows: &mut [f32], pools: &Ragged) {
    let cols = rows.len() / pools.len().max(1);
    for (range, row) in pools.ranges().zip(rows.chunks_exact_mut(cols.max(1))) {
        if range.is_empty() {
            row.fill(0.0);
        }
    }
}
