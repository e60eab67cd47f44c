//! How long products alone take on the card.

use std::sync::Arc;
use std::time::Instant;

use super::context::Context;
use super::gemm::Product;
use crate::{Result, measure};

/// Seconds of one round of `products`, each once: the best of `repeats` groups of rounds.
pub(crate) fn seconds(cuda: &Arc<Context>, products: &[measure::Product], repeats: usize) -> Result<f64> {
    /// Rounds of a group, so that the host is ahead of the card.
    const ROUNDS: u32 = 10;
    cuda.enter()?;
    let largest = products.iter().flat_map(|p| [p.m * p.k, p.k * p.n, p.m * p.n]).max().unwrap_or(0);
    let [a, b, c] = [cuda.floats(largest)?, cuda.floats(largest)?, cuda.floats(largest)?];
    for buffer in [&a, &b] {
        cuda.fill_zero(buffer.ptr(), 4 * largest)?;
    }
    let mut best = f64::INFINITY;
    // One more than asked for: the first chooses algorithms.
    for _ in 0..=repeats.max(1) {
        cuda.wait()?;
        let start = Instant::now();
        for _ in 0..ROUNDS {
            for &measure::Product { m, k, n, transposed: [a_turned, b_turned], .. } in products {
                let (a, b, c) = (a.ptr(), b.ptr(), c.ptr());
                // The gradients of weights are `f32` whatever the factors are.
                cuda.multiply(&Product { a, a_turned, b, b_turned, c, m, n, k, add: false, wide: a_turned, bias: 0 })?;
            }
        }
        cuda.wait()?;
        best = best.min(start.elapsed().as_secs_f64() / f64::from(ROUNDS));
    }
    Ok(best)
}
