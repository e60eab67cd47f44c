//! GEMM on the CPU, on the calling thread.
//!
//! On processors with AVX2 and FMA, or with AVX-512, it is our own, with the same bits on both; elsewhere that of `matrixmultiply`. In both the order of summation of an
//! element depends on the inner size alone, so that a row of a product does not depend on the other rows: that makes the
//! result of a sequence independent of its batch (`a_row_does_not_depend_on_the_rows_around_it`).

#[cfg(target_arch = "x86_64")]
mod registers;
#[cfg(target_arch = "x86_64")]
mod tiles;
mod weight;

use std::sync::OnceLock;

pub(crate) use weight::{Packs, Weight};

/// A strided matrix in a slice, possibly transposed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    values: &'a [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a> View<'a> {
    /// Rows of `cols` values, one after another.
    pub(crate) fn new(values: &'a [f32], rows: usize, cols: usize) -> Self {
        Self::within(values, rows, cols, cols)
    }

    /// Rows of `cols` values, `row_stride` values apart.
    pub(crate) fn within(values: &'a [f32], rows: usize, cols: usize, row_stride: usize) -> Self {
        assert!(fits(values.len(), rows, cols, row_stride), "a view stays inside its slice");
        Self { values, rows, cols, row_stride, col_stride: 1 }
    }

    /// The transpose.
    pub(crate) fn t(self) -> Self {
        let Self { values, rows, cols, row_stride, col_stride } = self;
        Self { values, rows: cols, cols: rows, row_stride: col_stride, col_stride: row_stride }
    }
}

fn fits(len: usize, rows: usize, cols: usize, row_stride: usize) -> bool {
    rows == 0 || cols == 0 || (rows - 1) * row_stride + cols <= len
}

/// What a GEMM does with the values of its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteMode {
    Overwrite,
    /// Adds the product to them.
    Accumulate,
}

/// `out = scale · a · b`, or `out += scale · a · b`. The rows of `out` are `row_stride` values apart.
pub(crate) fn gemm(a: View<'_>, b: View<'_>, scale: f32, mode: WriteMode, out: &mut [f32], row_stride: usize) {
    gemm_packed(a, (b, None), scale, mode, out, row_stride);
}

/// [`gemm`], bit for bit, with a cell for the packed form of `b`, which its first use fills.
fn gemm_packed(
    a: View<'_>,
    (b, packed): (View<'_>, Option<&OnceLock<Vec<f32>>>),
    scale: f32,
    mode: WriteMode,
    out: &mut [f32],
    row_stride: usize,
) {
    assert_eq!(a.cols, b.rows, "the inner sizes of a product agree");
    let (rows, cols) = (a.rows, b.cols);
    assert!(cols <= row_stride && fits(out.len(), rows, cols, row_stride), "a product stays inside its slice");
    if rows == 0 || cols == 0 {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if crate::vector::has_avx2() {
        let run = if crate::vector::has_avx512() { tiled::<registers::Avx512> } else { tiled::<registers::Avx2> };
        run(a, (b, packed), scale, mode, out, row_stride);
        return;
    }
    // `matrixmultiply` packs by itself.
    let _ = packed;
    matrixmultiply_gemm(a, b, scale, mode, out, row_stride);
}

/// Our own GEMM on registers that the processor has; sizes have been checked.
#[cfg(target_arch = "x86_64")]
fn tiled<R: registers::Registers>(
    a: View<'_>,
    (b, packed): (View<'_>, Option<&OnceLock<Vec<f32>>>),
    scale: f32,
    mode: WriteMode,
    out: &mut [f32],
    row_stride: usize,
) {
    let packed = packed.filter(|_| tiles::is_packed(a, b)).map(|packed| packed.get_or_init(|| tiles::packed::<R>(b)));
    tiles::gemm::<R>(a, (b, packed.map(Vec::as_slice)), scale, mode, out, row_stride);
}

/// The GEMM of `matrixmultiply`; sizes have been checked.
fn matrixmultiply_gemm(a: View<'_>, b: View<'_>, scale: f32, mode: WriteMode, out: &mut [f32], row_stride: usize) {
    let (rows, cols) = (a.rows, b.cols);
    let beta = if mode == WriteMode::Accumulate { 1.0 } else { 0.0 };
    let step = usize::cast_signed;
    #[expect(unsafe_code, reason = "the GEMM library takes pointers")]
    // SAFETY: every element (i, j) of `a` and `b` is inside its slice (`View::within` checked the last one, and a
    // transpose only swaps the axes); those of `out` do by the assertion above, and they are distinct because
    // `cols <= row_stride`. `out` is borrowed mutably, so it overlaps neither.
    unsafe {
        matrixmultiply::sgemm(
            rows,
            a.cols,
            cols,
            scale,
            a.values.as_ptr(),
            step(a.row_stride),
            step(a.col_stride),
            b.values.as_ptr(),
            step(b.row_stride),
            step(b.col_stride),
            beta,
            out.as_mut_ptr(),
            step(row_stride),
            1,
        );
    }
}

#[cfg(test)]
#[expect(clippy::many_single_char_names, reason = "the usual names of matrix sizes")]
mod tests {
    use super::*;
    use crate::testkit::{matrix, noise};

    fn naive(a: &[f32], b: &[f32], (m, k, n): (usize, usize, usize)) -> Vec<f32> {
        let cell = |i: usize, j: usize| (0..k).map(|l| f64::from(a[i * k + l]) * f64::from(b[l * n + j])).sum::<f64>();
        #[expect(clippy::cast_possible_truncation, reason = "the reference is rounded once, at the end")]
        (0..m * n).map(|at| cell(at / n, at % n) as f32).collect()
    }

    #[test]
    fn all_transpositions_agree_with_the_definition() {
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
            gemm(a, b, 1.0, WriteMode::Overwrite, &mut out, n);
            gemm(a, b, 1.0, WriteMode::Accumulate, &mut out, n);
            let close = |(got, expected): (&f32, &f32)| (got - 2.0 * expected).abs() < 1e-5;
            assert!(out.iter().zip(&expected).all(close));
        }
    }

    /// Around the sizes of tiles, panels and depth blocks.
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
    fn results_match_matrixmultiply() {
        for (m, k, n) in SIZES {
            let (a, b) = (noise(1, m * k + 5), noise(2, k * n + 5));
            let a_views = [View::new(&a, m, k), View::new(&a, k, m).t()];
            let b_views = [View::new(&b, k, n), View::new(&b, n, k).t()];
            for (a, b) in a_views.into_iter().flat_map(|a| b_views.map(|b| (a, b))) {
                for mode in [WriteMode::Overwrite, WriteMode::Accumulate] {
                    let row_stride = n + 3;
                    let mut got = vec![0.5; m * row_stride];
                    let mut expected = got.clone();
                    gemm(a, b, 0.25, mode, &mut got, row_stride);
                    matrixmultiply_gemm(a, b, 0.25, mode, &mut expected, row_stride);
                    // Up to a thousand roundings of sums of size 10, in different orders.
                    let difference = got.iter().zip(&expected).map(|(got, expected)| (got - expected).abs());
                    let difference = difference.fold(0.0, f32::max);
                    assert!(difference < 5e-5, "{m} {k} {n}: {difference:e}");
                }
            }
        }
    }

    /// The bits of `out + a · b / 4`, or of `a · b / 4`, from registers of one width.
    #[cfg(target_arch = "x86_64")]
    fn bits<R: registers::Registers>(a: View<'_>, b: View<'_>, mode: WriteMode, out: &[f32]) -> Vec<u32> {
        let (packed, mut out) = (OnceLock::new(), out.to_vec());
        tiled::<R>(a, (b, Some(&packed)), 0.25, mode, &mut out, b.cols + 3);
        out.into_iter().map(f32::to_bits).collect()
    }

    /// Says nothing on a processor without AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn registers_of_both_widths_give_the_same_bits() {
        let more_sizes = [(29, 70, 100), (45, 50, 45), (400, 300, 200), (12, 9, 48), (25, 40, 81)];
        let sizes = SIZES.into_iter().chain(more_sizes).filter(|_| crate::vector::has_avx512());
        for (m, k, n) in sizes {
            let (a, b, before) = (noise(1, m * k + 5), noise(2, k * n + 5), noise(3, m * (n + 3)));
            let a_views = [View::new(&a, m, k), View::new(&a, k, m).t()];
            let b_views = [View::new(&b, k, n), View::new(&b, n, k).t()];
            for (a, b) in a_views.into_iter().flat_map(|a| b_views.map(|b| (a, b))) {
                for mode in [WriteMode::Overwrite, WriteMode::Accumulate] {
                    let narrow = bits::<registers::Avx2>(a, b, mode, &before);
                    assert_eq!(narrow, bits::<registers::Avx512>(a, b, mode, &before), "{m} {k} {n}");
                }
            }
        }
    }

    #[test]
    fn cached_packing_changes_no_bit() {
        let is_same = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits());
        for (m, k, n) in SIZES {
            let weight = matrix(1, n, k);
            let values = View::new(weight.values(), n, k);
            let (x, dy) = (noise(2, m * k), noise(3, m * n));
            let (x, dy) = (View::new(&x, m, k), View::new(&dy, m, n));
            let packs = Packs::default();
            // The second use reads what the first has packed.
            for mode in [WriteMode::Overwrite, WriteMode::Accumulate] {
                let (mut got, mut expected) = (vec![0.5; m * n], vec![0.5; m * n]);
                Weight::new(&weight, Some(&packs)).forward(x, mode, &mut got);
                gemm(x, values.t(), 1.0, mode, &mut expected, n);
                assert!(is_same(&got, &expected), "{m} {k} {n}");
                let (mut got, mut expected) = (vec![0.5; m * k], vec![0.5; m * k]);
                Weight::new(&weight, Some(&packs)).backward(dy, mode, &mut got);
                gemm(dy, values, 1.0, mode, &mut expected, k);
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
            gemm(View::new(&a, m, k), View::new(&b, n, k).t(), 1.0, WriteMode::Overwrite, &mut whole, n);
            for (first, count) in [(0, 1), (17, 1), (60, 7), (149, 1), (64, 64)] {
                let mut part = vec![0.0; count * n];
                let rows = View::new(&a[first * k..], count, k);
                gemm(rows, View::new(&b, n, k).t(), 1.0, WriteMode::Overwrite, &mut part, n);
                assert!(part.iter().zip(&whole[first * n..]).all(|(a, b)| a.to_bits() == b.to_bits()));
            }
        }
    }
}
