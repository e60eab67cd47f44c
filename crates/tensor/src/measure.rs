//! GEMM throughput of a device: the upper bound that a training step is compared with.

use std::time::Instant;

use rayon::prelude::*;

use crate::gemm::{View, WriteMode, gemm};
use crate::{Device, Result, cuda};

/// `count` GEMMs of `[m, k]` with `[k, n]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gemm {
    /// Rows of the result.
    pub m: usize,
    /// The inner size.
    pub k: usize,
    /// Columns of the result.
    pub n: usize,
    /// Whether the left and the right operand are stored transposed.
    pub transposed: [bool; 2],
    /// The number of GEMMs.
    pub count: usize,
}

/// The GEMMs of a linear layer over `rows`, forward and backward, with or without the input gradient.
#[must_use]
pub fn linear(rows: usize, n_in: usize, n_out: usize, with_dx: bool) -> Vec<Gemm> {
    let mut gemms = vec![
        Gemm { m: rows, k: n_in, n: n_out, transposed: [false, true], count: 1 },
        Gemm { m: n_out, k: rows, n: n_in, transposed: [true, false], count: 1 },
    ];
    if with_dx {
        gemms.push(Gemm { m: rows, k: n_out, n: n_in, transposed: [false, false], count: 1 });
    }
    gemms
}

/// The GEMMs of `count` attention heads of width `d` over `t` tokens, forward and backward.
#[must_use]
pub fn attention(t: usize, d: usize, count: usize) -> Vec<Gemm> {
    let gemms = [
        // Scores, and the gradient of the weights.
        Gemm { m: t, k: d, n: t, transposed: [false, true], count: 2 * count },
        // The output, and the gradient of the queries.
        Gemm { m: t, k: t, n: d, transposed: [false, false], count: 2 * count },
        // The gradients of keys and values.
        Gemm { m: t, k: t, n: d, transposed: [true, false], count: 2 * count },
    ];
    gemms.to_vec()
}

/// What NCCL did on this GPU alone.
#[derive(Debug, Clone, PartialEq)]
pub struct NcclCheck {
    /// Its version, e.g. 22803.
    pub version: i32,
    /// The largest difference to the values that a sum over one rank must leave as they are.
    pub difference: f32,
    /// Seconds of a sum of `len` values, the best of ten.
    pub seconds: f64,
}

/// Sums `len` values over a group of one rank by NCCL, as a training step on several GPUs does. `None` without a GPU or without NCCL.
pub fn nccl(device: &Device, len: usize) -> Result<Option<NcclCheck>> {
    let (Some(cuda), Some(version)) = (device.context(), cuda::nccl_version()) else { return Ok(None) };
    let (difference, seconds) = cuda::measure::nccl_of_one_rank(cuda, len)?;
    Ok(Some(NcclCheck { version, difference, seconds }))
}

/// Floating-point operations of all `gemms`.
#[must_use]
pub fn flops(gemms: &[Gemm]) -> f64 {
    gemms.iter().map(|p| 2.0 * (p.m * p.k * p.n * p.count) as f64).sum()
}

/// The floating-point operations per second of `gemms` on `device`: the best of `repeats`. On the CPU every thread runs all
/// of them with its own operands; on a GPU those with `count` 1 are run, since kernels contain the many small ones.
pub fn flops_per_second(device: &Device, gemms: &[Gemm], repeats: usize) -> Result<f64> {
    if let Some(cuda) = device.context() {
        let large: Vec<Gemm> = gemms.iter().copied().filter(|gemm| gemm.count == 1).collect();
        return Ok(flops(&large) / cuda::measure::seconds(cuda, &large, repeats)?);
    }
    let largest = gemms.iter().flat_map(|p| [p.m * p.k, p.k * p.n, p.m * p.n]).max().unwrap_or(0);
    let n_threads = rayon::current_num_threads();
    let mut memory: Vec<[Vec<f32>; 3]> = (0..n_threads).map(|_| [0.5, 0.25, 0.0].map(|x| vec![x; largest])).collect();
    let mut best = f64::INFINITY;
    for _ in 0..repeats.max(1) {
        let start = Instant::now();
        memory.par_iter_mut().with_max_len(1).for_each(|[a, b, out]| {
            for gemm in gemms {
                (0..gemm.count).for_each(|_| multiply(gemm, a, b, out));
            }
        });
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(n_threads as f64 * flops(gemms) / best)
}

fn multiply(p: &Gemm, a: &[f32], b: &[f32], out: &mut [f32]) {
    let [transpose_a, transpose_b] = p.transposed;
    let a = if transpose_a { View::new(a, p.k, p.m).t() } else { View::new(a, p.m, p.k) };
    let b = if transpose_b { View::new(b, p.n, p.k).t() } else { View::new(b, p.k, p.n) };
    gemm(a, b, 1.0, WriteMode::Overwrite, out, p.n);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_layer_has_three_gemms_of_equal_size() {
        let gemms = linear(5, 7, 3, true);
        assert_eq!((gemms.len(), flops(&gemms)), (3, 3.0 * 2.0 * 105.0));
        assert_eq!(flops(&attention(4, 2, 3)), 6.0 * 3.0 * 2.0 * 32.0);
        assert!(flops_per_second(&Device::cpu(), &gemms, 2).unwrap() > 0.0);
    }
}
