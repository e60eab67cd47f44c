//! Matrix products: the one place that calls the GEMM library.
//!
//! On processors with AVX2 and FMA the products are our own ([`wide`]), elsewhere those of `matrixmultiply`; both on one
//! thread per product. Either keeps the order of summation of each element fixed by the inner size alone, so that a row of
//! a product does not depend on the rows around it: that is what makes a sequence's result independent of its batch
//! (`a_row_does_not_depend_on_the_rows_around_it`).

#[cfg(target_arch = "x86_64")]
mod avx2;
mod weight;

use std::sync::OnceLock;

pub(crate) use weight::{Packs, Weight};

/// A matrix somewhere in a slice, possibly transposed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    values: &'a [f32],
    rows: usize,
    cols: usize,
    row_step: usize,
    col_step: usize,
}

impl<'a> View<'a> {
    /// Rows of `cols` values, one after another.
    pub(crate) fn new(values: &'a [f32], rows: usize, cols: usize) -> Self {
        Self::within(values, rows, cols, cols)
    }

    /// Rows of `cols` values, the beginnings of which lie `row_step` apart.
    pub(crate) fn within(values: &'a [f32], rows: usize, cols: usize, row_step: usize) -> Self {
        assert!(fits(values.len(), rows, cols, row_step), "a view stays inside its slice");
        Self { values, rows, cols, row_step, col_step: 1 }
    }

    /// The transpose.
    pub(crate) fn t(self) -> Self {
        let Self { values, rows, cols, row_step, col_step } = self;
        Self { values, rows: cols, cols: rows, row_step: col_step, col_step: row_step }
    }
}

fn fits(len: usize, rows: usize, cols: usize, row_step: usize) -> bool {
    rows == 0 || cols == 0 || (rows - 1) * row_step + cols <= len
}

/// What happens to the values that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Into {
    /// They are replaced.
    Replace,
    /// The product is added to them.
    Add,
}

/// `out = scale · a · b`, or that added to `out`. The rows of `out` lie `row_step` apart.
pub(crate) fn product(a: View<'_>, b: View<'_>, scale: f32, into: Into, out: &mut [f32], row_step: usize) {
    product_with(a, (b, None), scale, into, out, row_step);
}

/// The same, bit for bit, with a place for the packed form of `b`: made there at its first use, read from there afterwards.
fn product_with(
    a: View<'_>,
    (b, packed): (View<'_>, Option<&OnceLock<Vec<f32>>>),
    scale: f32,
    into: Into,
    out: &mut [f32],
    row_step: usize,
) {
    assert_eq!(a.cols, b.rows, "the inner sizes of a product agree");
    let (rows, cols) = (a.rows, b.cols);
    assert!(cols <= row_step && fits(out.len(), rows, cols, row_step), "a product stays inside its slice");
    if rows == 0 || cols == 0 {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if crate::vector::is_wide() {
        let packed = packed.filter(|_| avx2::is_packed(a, b)).map(|packed| packed.get_or_init(|| avx2::packed(b)));
        avx2::product(a, (b, packed.map(Vec::as_slice)), scale, into, out, row_step);
        return;
    }
    // The library packs for itself.
    let _ = packed;
    library(a, b, scale, into, out, row_step);
}

/// The product by the library; sizes have been checked.
fn library(a: View<'_>, b: View<'_>, scale: f32, into: Into, out: &mut [f32], row_step: usize) {
    let (rows, cols) = (a.rows, b.cols);
    let beta = if into == Into::Add { 1.0 } else { 0.0 };
    let step = usize::cast_signed;
    #[expect(unsafe_code, reason = "the GEMM library takes pointers; the sizes were checked just above and in `View`")]
    // SAFETY: every element (i, j) of `a` and `b` lies inside its slice (`View::within` checked the last one, and a
    // transpose only swaps the axes); those of `out` do by the assertion above, and they are distinct because
    // `cols <= row_step`. `out` is borrowed mutably, so it overlaps neither.
    unsafe {
        matrixmultiply::sgemm(
            rows,
            a.cols,
            cols,
            scale,
            a.values.as_ptr(),
            step(a.row_step),
            step(a.col_step),
            b.values.as_ptr(),
            step(b.row_step),
            step(b.col_step),
            beta,
            out.as_mut_ptr(),
            step(row_step),
            1,
        );
    }
}

#[cfg(test)]
#[expect(clippy::many_single_char_names, reason = "the letters of every text on products")]
mod tests {
    use super::*;
    use crate::testkit::{matrix, noise};

    fn naive(a: &[f32], b: &[f32], (m, k, n): (usize, usize, usize)) -> Vec<f32> {
        let cell = |i: usize, j: usize| (0..k).map(|l| f64::from(a[i * k + l]) * f64::from(b[l * n + j])).sum::<f64>();
        #[expect(clippy::cast_possible_truncation, reason = "the reference is rounded once, at the end")]
        (0..m * n).map(|at| cell(at / n, at % n) as f32).collect()
    }

    #[test]
    fn products_of_all_orientations_agree_with_the_definition() {
        let (m, k, n) = (5, 7, 3);
        let (a, b) = (noise(1, m * k), noise(2, k * n));
        let transposed = |x: &[f32], rows: usize, cols: usize| -> Vec<f32> {
            (0..rows * cols).map(|at| x[(at % rows) * cols + at / rows]).collect()
        };
        let (at, bt) = (transposed(&a, m, k), transposed(&b, k, n));
        let expected = naive(&a, &b, (m, k, n));
        let views = [
            (View::new(&a, m, k), View::new(&b, k, n)),
            (View::new(&at, k, m).t(), View::new(&b, k, n)),
            (View::new(&a, m, k), View::new(&bt, n, k).t()),
        ];
        for (a, b) in views {
            let mut out = vec![1.0; m * n];
            product(a, b, 1.0, Into::Replace, &mut out, n);
            product(a, b, 1.0, Into::Add, &mut out, n);
            let close = |(got, expected): (&f32, &f32)| (got - 2.0 * expected).abs() < 1e-5;
            assert!(out.iter().zip(&expected).all(close));
        }
    }

    /// Around those of tiles, panels and depths.
    const SIZES: [(usize, usize, usize); 9] = [
        (1, 1, 1),
        (70, 1, 40),
        (6, 9, 16),
        (7, 30, 17),
        (13, 8, 8),
        (50, 33, 25),
        (8, 0, 5),
        (61, 1100, 40),
        (300, 200, 9),
    ];

    #[test]
    fn products_are_those_of_the_library() {
        for (m, k, n) in SIZES {
            let (a, b) = (noise(1, m * k + 5), noise(2, k * n + 5));
            let a_views = [View::new(&a, m, k), View::new(&a, k, m).t()];
            let b_views = [View::new(&b, k, n), View::new(&b, n, k).t()];
            for (a, b) in a_views.into_iter().flat_map(|a| b_views.map(|b| (a, b))) {
                for into in [Into::Replace, Into::Add] {
                    let row_step = n + 3;
                    let mut got = vec![0.5; m * row_step];
                    let mut expected = got.clone();
                    product(a, b, 0.25, into, &mut got, row_step);
                    library(a, b, 0.25, into, &mut expected, row_step);
                    // Up to a thousand roundings of sums of size 10, in two orders.
                    let off = got.iter().zip(&expected).map(|(got, expected)| (got - expected).abs());
                    let off = off.fold(0.0, f32::max);
                    assert!(off < 5e-5, "{m} {k} {n}: {off:e}");
                }
            }
        }
    }

    #[test]
    fn packed_once_or_every_time_is_the_same_bit_for_bit() {
        let is_same = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits());
        for (m, k, n) in SIZES {
            let weight = matrix(1, n, k);
            let values = View::new(weight.values(), n, k);
            let (x, dy) = (noise(2, m * k), noise(3, m * n));
            let (x, dy) = (View::new(&x, m, k), View::new(&dy, m, n));
            let packs = Packs::default();
            // The second time reads what the first has packed.
            for into in [Into::Replace, Into::Add] {
                let (mut got, mut expected) = (vec![0.5; m * n], vec![0.5; m * n]);
                Weight::new(&weight, Some(&packs)).forward(x, into, &mut got);
                product(x, values.t(), 1.0, into, &mut expected, n);
                assert!(is_same(&got, &expected), "{m} {k} {n}");
                let (mut got, mut expected) = (vec![0.5; m * k], vec![0.5; m * k]);
                Weight::new(&weight, Some(&packs)).back(dy, into, &mut got);
                product(dy, values, 1.0, into, &mut expected, k);
                assert!(is_same(&got, &expected), "{m} {k} {n}");
            }
        }
    }

    #[test]
    fn a_row_does_not_depend_on_the_rows_around_it() {
        // Inner sizes below and above the blocks of the inner axis.
        for k in [3, 200, 800, 1300] {
            let (m, n) = (150, 37);
            let (a, b) = (noise(3, m * k), noise(4, k * n));
            let mut whole = vec![0.0; m * n];
            product(View::new(&a, m, k), View::new(&b, n, k).t(), 1.0, Into::Replace, &mut whole, n);
            for (first, count) in [(0, 1), (17, 1), (60, 7), (149, 1), (64, 64)] {
                let mut part = vec![0.0; count * n];
                let rows = View::new(&a[first * k..], count, k);
                product(rows, View::new(&b, n, k).t(), 1.0, Into::Replace, &mut part, n);
                assert!(part.iter().zip(&whole[first * n..]).all(|(a, b)| a.to_bits() == b.to_bits()));
            }
        }
    }
}
