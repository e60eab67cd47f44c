//! GEMM throughput of the GPU, and sums by NCCL.

use std::sync::Arc;
use std::time::Instant;

use super::context::Context;
use super::gemm::Gemm;
use super::nccl::Nccl;
use crate::{ProcessGroup, Result, measure};

/// Seconds of one round of `gemms`, each once: the best of `repeats` groups of rounds.
pub(crate) fn seconds(cuda: &Arc<Context>, gemms: &[measure::Gemm], repeats: usize) -> Result<f64> {
    /// Rounds of a group: enough to hide launch latency.
    const ROUNDS: u32 = 10;
    cuda.enter()?;
    let largest = gemms.iter().flat_map(|p| [p.m * p.k, p.k * p.n, p.m * p.n]).max().unwrap_or(0);
    let [a, b, c] = [cuda.alloc_f32(largest)?, cuda.alloc_f32(largest)?, cuda.alloc_f32(largest)?];
    for buffer in [&a, &b] {
        cuda.fill_zero(buffer.ptr(), 4 * largest)?;
    }
    let mut best = f64::INFINITY;
    // One extra group: the first chooses algorithms.
    for _ in 0..=repeats.max(1) {
        cuda.wait()?;
        let start = Instant::now();
        for _ in 0..ROUNDS {
            for &measure::Gemm { m, k, n, transposed: [transpose_a, transpose_b], .. } in gemms {
                let (a, b, c) = (a.ptr(), b.ptr(), c.ptr());
                // Gradients of weights are `f32`, whatever their operands are.
                let c_is_f32 = transpose_a;
                let accumulate = false;
                cuda.gemm(&Gemm { a, transpose_a, b, transpose_b, c, m, n, k, accumulate, c_is_f32, bias: 0 })?;
            }
        }
        cuda.wait()?;
        best = best.min(start.elapsed().as_secs_f64() / f64::from(ROUNDS));
    }
    Ok(best)
}

/// Sums `len` values over this GPU alone: the largest difference to what they were, and the seconds of one sum.
pub(crate) fn nccl_of_one_rank(cuda: &Arc<Context>, len: usize) -> Result<(f32, f64)> {
    const REPEATS: usize = 10;
    let mut nccl = Nccl::new(cuda, &ProcessGroup::default(), len)?;
    let values: Vec<f32> = (0..len).map(|at| (at % 1000) as f32 / 7.0 - 50.0).collect();
    let on_gpu = cuda.upload(&values)?;
    let mut best = f64::INFINITY;
    for _ in 0..REPEATS {
        cuda.wait()?;
        let start = Instant::now();
        nccl.sum_in_order(on_gpu.ptr())?;
        cuda.wait()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    let mut found = vec![0.0; len];
    cuda.download(on_gpu.ptr(), &mut found)?;
    Ok((values.iter().zip(&found).map(|(a, b): (&f32, &f32)| (a - b).abs()).fold(0.0, f32::max), best))
}
