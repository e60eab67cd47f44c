//! How fast products alone run on this machine: what a training step is measured against.

use std::time::Instant;

use rayon::prelude::*;

use crate::gemm::{Into, View, product};
use crate::{Device, Result, cuda};

/// `count` products of `[m, k]` with `[k, n]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Product {
    /// Rows of the result.
    pub m: usize,
    /// The inner size.
    pub k: usize,
    /// Columns of the result.
    pub n: usize,
    /// Whether the left and the right factor lie transposed.
    pub transposed: [bool; 2],
    /// How often.
    pub count: usize,
}

/// The products of a linear layer over `rows`, forward and backward; without the gradient of its input if nobody wants
/// it.
#[must_use]
pub fn linear(rows: usize, n_in: usize, n_out: usize, with_dx: bool) -> Vec<Product> {
    let mut products = vec![
        Product { m: rows, k: n_in, n: n_out, transposed: [false, true], count: 1 },
        Product { m: n_out, k: rows, n: n_in, transposed: [true, false], count: 1 },
    ];
    if with_dx {
        products.push(Product { m: rows, k: n_out, n: n_in, transposed: [false, false], count: 1 });
    }
    products
}

/// The products of `count` heads of width `d` over `t` tokens, forward and backward.
#[must_use]
pub fn attention(t: usize, d: usize, count: usize) -> Vec<Product> {
    let products = [
        // Scores, and the gradient of the weights.
        Product { m: t, k: d, n: t, transposed: [false, true], count: 2 * count },
        // What the weights mix, and the gradient of the queries.
        Product { m: t, k: t, n: d, transposed: [false, false], count: 2 * count },
        // The gradients of keys and values.
        Product { m: t, k: t, n: d, transposed: [true, false], count: 2 * count },
    ];
    products.to_vec()
}

/// Multiplications and additions of all `products`.
#[must_use]
pub fn flops(products: &[Product]) -> f64 {
    products.iter().map(|p| 2.0 * (p.m * p.k * p.n * p.count) as f64).sum()
}

/// The flops a second of `products` on `device`: the best of `repeats`. On the CPU all threads run them at once, each
/// with its own operands; a card runs those that are not many small ones, which it does inside kernels of its own.
pub fn flops_per_second(device: &Device, products: &[Product], repeats: usize) -> Result<f64> {
    if let Some(cuda) = device.context() {
        let large: Vec<Product> = products.iter().copied().filter(|product| product.count == 1).collect();
        return Ok(flops(&large) / cuda::measure::seconds(cuda, &large, repeats)?);
    }
    let largest = products.iter().flat_map(|p| [p.m * p.k, p.k * p.n, p.m * p.n]).max().unwrap_or(0);
    let n_threads = rayon::current_num_threads();
    let mut memory: Vec<[Vec<f32>; 3]> = (0..n_threads).map(|_| [0.5, 0.25, 0.0].map(|x| vec![x; largest])).collect();
    let mut best = f64::INFINITY;
    for _ in 0..repeats.max(1) {
        let start = Instant::now();
        memory.par_iter_mut().with_max_len(1).for_each(|[a, b, out]| {
            for product in products {
                (0..product.count).for_each(|_| multiply(product, a, b, out));
            }
        });
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(n_threads as f64 * flops(products) / best)
}

fn multiply(p: &Product, a: &[f32], b: &[f32], out: &mut [f32]) {
    let [a_turned, b_turned] = p.transposed;
    let a = if a_turned { View::new(a, p.k, p.m).t() } else { View::new(a, p.m, p.k) };
    let b = if b_turned { View::new(b, p.n, p.k).t() } else { View::new(b, p.k, p.n) };
    product(a, b, 1.0, Into::Replace, out, p.n);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_layer_has_three_products_of_equal_size() {
        let products = linear(5, 7, 3, true);
        assert_eq!((products.len(), flops(&products)), (3, 3.0 * 2.0 * 105.0));
        assert_eq!(flops(&attention(4, 2, 3)), 6.0 * 3.0 * 2.0 * 32.0);
        assert!(flops_per_second(&Device::cpu(), &products, 2).unwrap() > 0.0);
    }
}
