//! GEMM for processors with AVX2 and FMA, tuned for the shapes of our models: up to some thousand rows, a few hundred
//! columns.
//!
//! `b` is packed into panels of 16 columns (up to 24 at the end) with contiguous rows; `a` is read in place, or packed six
//! rows at a time where its rows are not contiguous. Operands that fit the L1 and L2 caches are read in place in any
//! layout. A tile of six rows and 16 columns of the result, or three and 24, stays in registers along the inner axis. Each
//! element is one chain of additions along the inner axis, split every [`MAX_DEPTH`] terms: it depends on its own row and
//! column alone.

use core::arch::x86_64::{
    __m256, _MM_HINT_T0, _mm_prefetch, _mm256_add_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_mul_ps,
    _mm256_permute2f128_ps, _mm256_set1_ps, _mm256_setzero_ps, _mm256_shuffle_ps, _mm256_storeu_ps, _mm256_unpackhi_ps,
    _mm256_unpacklo_ps,
};

use super::{View, WriteMode};
use crate::scratch;

/// Rows of a tile.
const ROWS: usize = 6;
/// Columns of a panel: two registers.
const COLS: usize = 16;
/// The most columns of the last panel: three registers. A panel of one register would load a value of `a` for every FMA.
const MAX_COLS: usize = 24;
/// Rows of a tile that is three registers wide.
const HALF_ROWS: usize = ROWS / 2;
/// Values in a register.
const LANES: usize = 8;
/// Terms of a sum between two updates of the result, for an `a` with contiguous rows and for another: a panel of that depth
/// fits the L2 or the L1 cache with its operands.
const MAX_DEPTH: [usize; 2] = [1024, 256];
/// Rows that are packed together: as many streams as the hardware prefetcher follows.
const STRIP: usize = 8;
/// Values of `a` that are multiplied with all panels of `b` from the L2 cache, where they are read in place and where they
/// are packed.
const L2_VALUES: [usize; 2] = [48 * 1024, 24 * 1024];

/// Values of `a` and `b` together that the L1 and L2 caches hold: such operands are read in place, as in attention.
const SMALL: usize = 16 * 1024;

/// `out = scale · a · b`, or `out += scale · a · b`; `fits` has been checked. `packed` is [`packed`] of `b`, if that [is
/// used](is_packed) and available.
pub(super) fn gemm(
    a: View<'_>,
    (b, packed): (View<'_>, Option<&[f32]>),
    scale: f32,
    mode: WriteMode,
    out: &mut [f32],
    row_stride: usize,
) {
    let (rows, depth, cols) = (a.rows, a.cols, b.cols);
    let a_in_place = a.col_stride == 1 || is_small(a, b);
    let b_in_place = is_in_place(a, b);
    // By the layout of `a` alone: the size of the product must not change the order of a sum.
    let max_depth = MAX_DEPTH[usize::from(a.col_stride != 1)];
    let mut first = 0;
    loop {
        let deep = (depth - first).min(max_depth);
        let mode = if first == 0 { mode } else { WriteMode::Accumulate };
        let panels = match packed {
            Some(packed) => Panels::cached(packed, cols, first, deep),
            None => Panels::new(b, first, deep, b_in_place),
        };
        let block_rows = (L2_VALUES[usize::from(!a_in_place)] / deep.max(1) / ROWS).max(1) * ROWS;
        for row in (0..rows).step_by(block_rows) {
            let n_rows_a = block_rows.min(rows - row);
            let block = View { values: a.values.get(row * a.row_stride..).unwrap_or_default(), rows: n_rows_a, ..a };
            let packed_a;
            let block = if a_in_place {
                let values = block.values.get(first * a.col_stride..).unwrap_or_default();
                Rows { values, tile_step: ROWS * a.row_stride, row_stride: a.row_stride, step: a.col_stride }
            } else {
                packed_a = pack_a(block, first, deep);
                Rows { values: &packed_a, tile_step: ROWS * deep, row_stride: 1, step: ROWS }
            };
            for (col, n_cols) in columns(cols) {
                let panel = panels.panel(col);
                for tile in (0..n_rows_a).step_by(ROWS) {
                    let n_rows = ROWS.min(n_rows_a - tile);
                    let values = block.values.get(tile / ROWS * block.tile_step..).unwrap_or_default();
                    let task = Tile { n_rows, n_cols, deep, a: Rows { values, ..block }, panel, scale, mode };
                    task.run(&mut out[(row + tile) * row_stride + col..], row_stride);
                }
            }
        }
        first += deep;
        if first >= depth {
            return;
        }
    }
}

/// The first column and the number of columns of each panel.
fn columns(cols: usize) -> impl Iterator<Item = (usize, usize)> {
    let last = first_of_last(cols);
    (0..last).step_by(COLS).map(|col| (col, COLS)).chain((last < cols).then_some((last, cols - last)))
}

/// The first column of the last panel, which has 9 to 24 columns, or all of them.
fn first_of_last(cols: usize) -> usize {
    cols.saturating_sub(LANES + 1) / COLS * COLS
}

fn is_small(a: View<'_>, b: View<'_>) -> bool {
    a.cols * (a.rows + b.cols) <= SMALL
}

/// Whether `b` is read in place: packing does not pay for few rows of `a` either.
fn is_in_place(a: View<'_>, b: View<'_>) -> bool {
    b.col_stride == 1 && (is_small(a, b) || a.rows <= 2 * ROWS)
}

/// Whether a GEMM of these reads [`packed`] of `b`, which has the depth blocks of an `a` with contiguous rows.
pub(super) fn is_packed(a: View<'_>, b: View<'_>) -> bool {
    a.col_stride == 1 && !is_in_place(a, b)
}

/// All of `b` packed, in blocks of [`MAX_DEPTH`] rows.
pub(super) fn packed(b: View<'_>) -> Vec<f32> {
    let width = b.cols.next_multiple_of(LANES);
    let mut values = vec![0.0; b.rows * width];
    for first in (0..b.rows).step_by(MAX_DEPTH[0]) {
        let deep = MAX_DEPTH[0].min(b.rows - first);
        pack_b(b, first, deep, &mut values[first * width..][..deep * width]);
    }
    values
}

/// The panels of `b`: packed, or the matrix itself as far as whole registers go.
struct Panels<'a> {
    /// Columns before this one are read in place.
    n_in_place: usize,
    values: &'a [f32],
    row_stride: usize,
    packed: Packed<'a>,
    deep: usize,
}

enum Packed<'a> {
    /// Packed for this GEMM.
    Now(scratch::Scratch),
    /// Packed once for as long as `b` does not change.
    Cached(&'a [f32]),
}

impl<'a> Panels<'a> {
    fn new(b: View<'a>, first: usize, deep: usize, in_place: bool) -> Self {
        let whole = if b.cols.is_multiple_of(LANES) { b.cols } else { first_of_last(b.cols) };
        let n_in_place = if in_place { whole } else { 0 };
        let rest = View {
            values: b.values.get(n_in_place * b.col_stride..).unwrap_or_default(),
            cols: b.cols - n_in_place,
            ..b
        };
        let mut packed = scratch::take(deep * rest.cols.next_multiple_of(LANES));
        pack_b(rest, first, deep, &mut packed);
        let values = b.values.get(first * b.row_stride..).unwrap_or_default();
        Self { n_in_place, values, row_stride: b.row_stride, packed: Packed::Now(packed), deep }
    }

    /// The panels of [`packed`].
    fn cached(packed: &'a [f32], cols: usize, first: usize, deep: usize) -> Self {
        let width = cols.next_multiple_of(LANES);
        let packed = Packed::Cached(&packed[first * width..][..deep * width]);
        Self { n_in_place: 0, values: &[], row_stride: 0, packed, deep }
    }

    /// The panel whose first column is `col`.
    fn panel(&self, col: usize) -> Panel<'_> {
        if col < self.n_in_place {
            return Panel { values: self.values.get(col..).unwrap_or_default(), step: Some(self.row_stride) };
        }
        let packed = match &self.packed {
            Packed::Now(packed) => packed,
            Packed::Cached(packed) => *packed,
        };
        Panel { values: &packed[(col - self.n_in_place) * self.deep..], step: None }
    }
}

/// Up to 24 columns of `b`; its rows are `step` values apart, or contiguous.
#[derive(Clone, Copy)]
struct Panel<'a> {
    values: &'a [f32],
    step: Option<usize>,
}

/// Rows of `a`, with the strides of tiles, of rows, and along a row.
#[derive(Clone, Copy)]
struct Rows<'a> {
    values: &'a [f32],
    tile_step: usize,
    row_stride: usize,
    step: usize,
}

/// Packs six rows of a transposed `a` at a time, with the six values of each inner index adjacent.
fn pack_a(a: View<'_>, first: usize, deep: usize) -> scratch::Scratch {
    let mut packed = scratch::take(a.rows.next_multiple_of(ROWS) * deep);
    for begin in (0..deep).step_by(STRIP) {
        let n_steps = STRIP.min(deep - begin);
        for tile in (0..a.rows).step_by(ROWS) {
            let n = ROWS.min(a.rows - tile);
            let to = &mut packed[tile * deep + begin * ROWS..][..n_steps * ROWS];
            let mut from = a.values[(first + begin) * a.col_stride + tile..].chunks(a.col_stride);
            for to in to.as_chunks_mut::<ROWS>().0 {
                let from = from.next().unwrap_or_default();
                if let (ROWS, Some(six)) = (n, from.first_chunk::<ROWS>()) {
                    *to = *six;
                } else {
                    to[..n].copy_from_slice(&from[..n]);
                }
            }
        }
    }
    packed
}

/// Packs panels of 16 columns, the last one of up to 24, with zeros beyond the last column.
fn pack_b(b: View<'_>, first: usize, deep: usize, packed: &mut [f32]) {
    if b.col_stride == 1 {
        for begin in (0..deep).step_by(STRIP) {
            for (col, n) in columns(b.cols) {
                let width = n.next_multiple_of(LANES);
                let to = &mut packed[col * deep + begin * width..][..STRIP.min(deep - begin) * width];
                for (step, to) in (first + begin..).zip(to.chunks_exact_mut(width)) {
                    // Not limited by `row_stride`: the transpose of a single column has longer rows.
                    let from = &b.values[step * b.row_stride + col..];
                    if let (COLS, Some(to), Some(from)) = (n, to.as_mut_array::<COLS>(), from.first_chunk::<COLS>()) {
                        *to = *from;
                    } else {
                        to[..n].copy_from_slice(&from[..n]);
                        to[n..].fill(0.0);
                    }
                }
            }
        }
    } else {
        for (col, n) in columns(b.cols) {
            let width = n.next_multiple_of(LANES);
            let panel = &mut packed[col * deep..][..width * deep];
            for half in (0..width).step_by(LANES) {
                pack_transposed(b, (first, deep), col + half, &mut panel[half..], width);
            }
        }
    }
}

/// Packs eight columns of a transposed `b` from `col` on, with the values of each inner index adjacent and `width` values
/// between them.
fn pack_transposed(b: View<'_>, (first, deep): (usize, usize), col: usize, to: &mut [f32], width: usize) {
    let n_cols = LANES.min(b.cols - col);
    let line = |lane: usize| &b.values[(col + lane) * b.col_stride + first..][..deep];
    let whole = if n_cols == LANES { deep / LANES * LANES } else { 0 };
    if whole > 0 {
        let lines: [&[f32]; LANES] = std::array::from_fn(line);
        assert!((whole - 1) * width + LANES <= to.len());
        for step in (0..whole).step_by(LANES) {
            #[expect(unsafe_code, reason = "vector loads and stores take pointers")]
            // SAFETY: `gemm` and `packed` are only called on processors with AVX2 and FMA. Each line has `deep >= step + 8`
            // values, and `to` has room for eight values at step `step + 7`, as asserted above.
            unsafe {
                transpose_8x8(lines.map(|line| line.as_ptr().add(step)), to.as_mut_ptr().add(step * width), width);
            }
        }
    }
    for step in whole..deep {
        let to = &mut to[step * width..][..LANES];
        for (lane, to) in to.iter_mut().enumerate() {
            *to = if lane < n_cols { line(lane)[step] } else { 0.0 };
        }
    }
}

/// The transpose of 8 × 8 values.
///
/// # Safety
/// The processor has AVX2. Eight values can be read at each of `from`, and written at `to + i · width` for i in 0..8.
#[expect(unsafe_code, reason = "vector loads and stores take pointers")]
#[target_feature(enable = "avx2,fma")]
unsafe fn transpose_8x8(from: [*const f32; LANES], to: *mut f32, width: usize) {
    // SAFETY: the caller guarantees eight readable values at each line.
    let r = from.map(|line| unsafe { _mm256_loadu_ps(line) });
    let pairs = |a: __m256, b: __m256| (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    let ((a0, a1), (a2, a3)) = (pairs(r[0], r[1]), pairs(r[2], r[3]));
    let ((a4, a5), (a6, a7)) = (pairs(r[4], r[5]), pairs(r[6], r[7]));
    let fours = |a: __m256, b: __m256| (_mm256_shuffle_ps::<0x44>(a, b), _mm256_shuffle_ps::<0xEE>(a, b));
    let ((b0, b1), (b2, b3)) = (fours(a0, a2), fours(a1, a3));
    let ((b4, b5), (b6, b7)) = (fours(a4, a6), fours(a5, a7));
    let low = |a: __m256, b: __m256| _mm256_permute2f128_ps::<0x20>(a, b);
    let high = |a: __m256, b: __m256| _mm256_permute2f128_ps::<0x31>(a, b);
    let transposed =
        [low(b0, b4), low(b1, b5), low(b2, b6), low(b3, b7), high(b0, b4), high(b1, b5), high(b2, b6), high(b3, b7)];
    for (step, values) in transposed.into_iter().enumerate() {
        // SAFETY: the caller guarantees eight writable values at each of the eight rows.
        unsafe { _mm256_storeu_ps(to.add(step * width), values) };
    }
}

/// Up to six rows and 24 columns of the result.
#[derive(Clone, Copy)]
struct Tile<'a> {
    n_rows: usize,
    n_cols: usize,
    deep: usize,
    a: Rows<'a>,
    panel: Panel<'a>,
    scale: f32,
    mode: WriteMode,
}

impl Tile<'_> {
    fn run(self, out: &mut [f32], row_stride: usize) {
        let Self { n_rows, n_cols, deep, a, .. } = self;
        let width = n_cols.next_multiple_of(LANES);
        let panel = deep.saturating_sub(1) * self.panel.step.unwrap_or(width) + width;
        assert!(deep == 0 || panel <= self.panel.values.len(), "a panel is as deep as the product");
        let last = (n_rows - 1) * a.row_stride + deep.saturating_sub(1) * a.step;
        assert!(deep == 0 || last < a.values.len(), "rows are as deep as the product");
        if n_cols == width {
            assert!((n_rows - 1) * row_stride + width <= out.len(), "a tile stays inside its slice");
            self.compute(out, row_stride);
        } else {
            let mut whole = [0.0; ROWS * MAX_COLS];
            Self { mode: WriteMode::Overwrite, ..self }.compute(&mut whole, width);
            for (row, values) in whole.chunks_exact(width).take(n_rows).enumerate() {
                for (out, value) in out[row * row_stride..][..n_cols].iter_mut().zip(values) {
                    *out = if self.mode == WriteMode::Accumulate { *out + value } else { *value };
                }
            }
        }
    }

    /// Computes a tile; `out` has room for whole registers.
    fn compute(self, out: &mut [f32], row_stride: usize) {
        #[expect(unsafe_code, reason = "vector loads and stores take pointers")]
        // SAFETY: `gemm` is only called on processors with AVX2 and FMA; `run` has checked the three slices.
        unsafe {
            match (self.n_cols.div_ceil(LANES), self.n_rows) {
                (3, 1) => self.registers::<1, 3>(out, row_stride),
                (3, 2) => self.registers::<2, 3>(out, row_stride),
                (3, HALF_ROWS) => self.registers::<HALF_ROWS, 3>(out, row_stride),
                (3, n_rows) => {
                    let rest = Rows { values: &self.a.values[HALF_ROWS * self.a.row_stride..], ..self.a };
                    self.registers::<HALF_ROWS, 3>(out, row_stride);
                    Self { n_rows: n_rows - HALF_ROWS, a: rest, ..self }
                        .compute(&mut out[HALF_ROWS * row_stride..], row_stride);
                }
                (2, 1) => self.registers::<1, 2>(out, row_stride),
                (2, 2) => self.registers::<2, 2>(out, row_stride),
                (2, 3) => self.registers::<3, 2>(out, row_stride),
                (2, 4) => self.registers::<4, 2>(out, row_stride),
                (2, 5) => self.registers::<5, 2>(out, row_stride),
                (2, _) => self.registers::<ROWS, 2>(out, row_stride),
                (_, 1) => self.registers::<1, 1>(out, row_stride),
                (_, 2) => self.registers::<2, 1>(out, row_stride),
                (_, 3) => self.registers::<3, 1>(out, row_stride),
                (_, 4) => self.registers::<4, 1>(out, row_stride),
                (_, 5) => self.registers::<5, 1>(out, row_stride),
                (_, _) => self.registers::<ROWS, 1>(out, row_stride),
            }
        }
    }

    /// # Safety
    /// The processor has AVX2 and FMA. `a` has `M` rows and the panel `N` registers of `deep` inner indices; `out` has room for
    /// `M` rows of `N` registers.
    #[expect(unsafe_code, reason = "vector loads and stores take pointers")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn registers<const M: usize, const N: usize>(self, out: &mut [f32], row_stride: usize) {
        let Self { deep, a: Rows { row_stride: a_row, step: a_step, .. }, scale, mode, .. } = self;
        let (mut a, mut panel, out) = (self.a.values.as_ptr(), self.panel.values.as_ptr(), out.as_mut_ptr());
        let panel_step = self.panel.step.unwrap_or(N * LANES);
        // SAFETY: the caller guarantees that every address is inside the slices. After the last step the two moving pointers
        // are not dereferenced, and `wrapping_add` may leave the slices.
        unsafe {
            for row in 0..M {
                // The result is read after the sums: prefetch it now.
                _mm_prefetch::<_MM_HINT_T0>(out.add(row * row_stride).cast());
                _mm_prefetch::<_MM_HINT_T0>(out.add(row * row_stride + N * LANES - 1).cast());
            }
            let mut sums = [[_mm256_setzero_ps(); N]; M];
            for _ in 0..deep {
                let mut b = [_mm256_setzero_ps(); N];
                for (lane, b) in b.iter_mut().enumerate() {
                    *b = _mm256_loadu_ps(panel.add(lane * LANES));
                }
                for (row, sums) in sums.iter_mut().enumerate() {
                    let value = _mm256_set1_ps(*a.add(row * a_row));
                    for (sum, b) in sums.iter_mut().zip(b) {
                        *sum = _mm256_fmadd_ps(value, b, *sum);
                    }
                }
                a = a.wrapping_add(a_step);
                panel = panel.wrapping_add(panel_step);
            }
            let scale = _mm256_set1_ps(scale);
            for (row, sums) in sums.into_iter().enumerate() {
                for (lane, sum) in sums.into_iter().enumerate() {
                    let to = out.add(row * row_stride + lane * LANES);
                    let mut value = _mm256_mul_ps(sum, scale);
                    if mode == WriteMode::Accumulate {
                        value = _mm256_add_ps(value, _mm256_loadu_ps(to));
                    }
                    _mm256_storeu_ps(to, value);
                }
            }
        }
    }
}
