//! GEMM for processors with AVX2 and FMA or with AVX-512, tuned for the shapes of our models: up to some thousand rows, a few
//! hundred columns.
//!
//! `b` is packed into panels a few registers wide (one more at the end) with contiguous rows; `a` is read in place, or packed in
//! the rows of a tile where its rows are not contiguous. Operands that fit the L1 and L2 caches are read in place in any layout.
//! A tile of the result, six rows and 16 columns with AVX2, eight and 48 with AVX-512, stays in registers along the inner axis.
//! Each element is one chain of additions along the inner axis, split every [`MAX_DEPTH`] terms: it depends on its own row and
//! column alone, and not on the width of registers.

use core::arch::x86_64::{
    __m256, _mm256_loadu_ps, _mm256_permute2f128_ps, _mm256_shuffle_ps, _mm256_storeu_ps, _mm256_unpackhi_ps,
    _mm256_unpacklo_ps,
};

use super::registers::{Addresses, Registers};
use super::{View, WriteMode};
use crate::scratch;

/// Terms of a sum between two updates of the result, for an `a` with contiguous rows and for another: a panel of that depth
/// fits the L2 or the L1 cache with its operands.
const MAX_DEPTH: [usize; 2] = [1024, 256];
/// Rows that are packed together: as many streams as the hardware prefetcher follows.
const STRIP: usize = 8;
/// Values of `a` that are multiplied with all panels of `b` from the L2 cache, where they are read in place and where they
/// are packed.
const L2_VALUES: [usize; 2] = [48 * 1024, 24 * 1024];

/// Columns of `b` that are transposed together.
const EIGHT: usize = 8;

/// Values of `a` and `b` together that the L1 and L2 caches hold: such operands are read in place, as in attention.
const SMALL: usize = 16 * 1024;

/// Rows of `a` for which packing `b` does not pay.
const FEW_ROWS: usize = 12;

/// Values that [`aligned`] leaves out at most, in `f32`.
const ALIGNMENT: usize = 15;

/// Values of a tile of registers without masks.
const MAX_TILE: usize = 6 * 24;

/// `out = scale · a · b`, or `out += scale · a · b`; `fits` has been checked. `packed` is [`packed`] of `b`, if that [is
/// used](is_packed) and available.
pub(super) fn gemm<R: Registers>(
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
            Some(packed) => Panels::cached::<R>(packed, cols, first, deep),
            None => Panels::new::<R>(b, first, deep, b_in_place),
        };
        let block_rows = (L2_VALUES[usize::from(!a_in_place)] / deep.max(1) / R::ROWS[0]).max(1) * R::ROWS[0];
        for row in (0..rows).step_by(block_rows) {
            let n_rows_a = block_rows.min(rows - row);
            let block = View { values: a.values.get(row * a.row_stride..).unwrap_or_default(), rows: n_rows_a, ..a };
            let packed_a;
            let block = if a_in_place {
                let values = block.values.get(first * a.col_stride..).unwrap_or_default();
                Rows { values, tile_step: R::ROWS[0] * a.row_stride, row_stride: a.row_stride, step: a.col_stride }
            } else {
                packed_a = pack_a::<R>(block, first, deep);
                Rows { values: &packed_a, tile_step: R::ROWS[0] * deep, row_stride: 1, step: R::ROWS[0] }
            };
            for (col, n_cols) in columns::<R>(cols) {
                let panel = panels.panel(col);
                for tile in (0..n_rows_a).step_by(R::ROWS[0]) {
                    let n_rows = R::ROWS[0].min(n_rows_a - tile);
                    let values = block.values.get(tile / R::ROWS[0] * block.tile_step..).unwrap_or_default();
                    let task = Tile { n_rows, n_cols, deep, a: Rows { values, ..block }, panel, scale, mode };
                    task.run::<R>(&mut out[(row + tile) * row_stride + col..], row_stride);
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
fn columns<R: Registers>(cols: usize) -> impl Iterator<Item = (usize, usize)> {
    let (last, width) = (first_of_last::<R>(cols), R::WIDTH * R::LANES);
    (0..last).step_by(width).map(move |col| (col, width)).chain((last < cols).then_some((last, cols - last)))
}

/// The first column of the last panel, which is up to a register wider than the others and takes two at least, unless there are no
/// others: with one register, every FMA would need a value of `a` of its own.
fn first_of_last<R: Registers>(cols: usize) -> usize {
    let width = R::WIDTH * R::LANES;
    cols.saturating_sub(R::LANES + 1) / width * width
}

fn is_small(a: View<'_>, b: View<'_>) -> bool {
    a.cols * (a.rows + b.cols) <= SMALL
}

/// Whether `b` is read in place: packing does not pay for few rows of `a` either.
fn is_in_place(a: View<'_>, b: View<'_>) -> bool {
    b.col_stride == 1 && (is_small(a, b) || a.rows <= FEW_ROWS)
}

/// Whether a GEMM of these reads [`packed`] of `b`, which has the depth blocks of an `a` with contiguous rows.
pub(super) fn is_packed(a: View<'_>, b: View<'_>) -> bool {
    a.col_stride == 1 && !is_in_place(a, b)
}

/// All of `b` packed, in blocks of [`MAX_DEPTH`] rows.
pub(super) fn packed<R: Registers>(b: View<'_>) -> Vec<f32> {
    let width = b.cols.next_multiple_of(R::LANES);
    let mut values = vec![0.0; b.rows * width + ALIGNMENT];
    let lines = aligned_mut(&mut values);
    for first in (0..b.rows).step_by(MAX_DEPTH[0]) {
        let deep = MAX_DEPTH[0].min(b.rows - first);
        pack_b::<R>(b, first, deep, &mut lines[first * width..][..deep * width]);
    }
    values
}

/// `values` from the first on that begins a cache line: a register that lies in two of them takes twice as long to load.
fn aligned(values: &[f32]) -> &[f32] {
    values.get(values.as_ptr().align_offset(64)..).unwrap_or_default()
}

/// [`aligned`], to write.
fn aligned_mut(values: &mut [f32]) -> &mut [f32] {
    values.get_mut(values.as_ptr().align_offset(64)..).unwrap_or_default()
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
    fn new<R: Registers>(b: View<'a>, first: usize, deep: usize, in_place: bool) -> Self {
        let whole = if R::MASKED || b.cols.is_multiple_of(R::LANES) { b.cols } else { first_of_last::<R>(b.cols) };
        let n_in_place = if in_place { whole } else { 0 };
        let rest = View {
            values: b.values.get(n_in_place * b.col_stride..).unwrap_or_default(),
            cols: b.cols - n_in_place,
            ..b
        };
        let mut packed = scratch::take(deep * rest.cols.next_multiple_of(R::LANES) + ALIGNMENT);
        pack_b::<R>(rest, first, deep, aligned_mut(&mut packed));
        let values = b.values.get(first * b.row_stride..).unwrap_or_default();
        Self { n_in_place, values, row_stride: b.row_stride, packed: Packed::Now(packed), deep }
    }

    /// The panels of [`packed`].
    fn cached<R: Registers>(packed: &'a [f32], cols: usize, first: usize, deep: usize) -> Self {
        let width = cols.next_multiple_of(R::LANES);
        let packed = Packed::Cached(&aligned(packed)[first * width..][..deep * width]);
        Self { n_in_place: 0, values: &[], row_stride: 0, packed, deep }
    }

    /// The panel whose first column is `col`.
    fn panel(&self, col: usize) -> Panel<'_> {
        if col < self.n_in_place {
            return Panel { values: self.values.get(col..).unwrap_or_default(), step: Some(self.row_stride) };
        }
        let packed = match &self.packed {
            Packed::Now(packed) => aligned(packed),
            Packed::Cached(packed) => *packed,
        };
        Panel { values: &packed[(col - self.n_in_place) * self.deep..], step: None }
    }
}

/// The columns of `b` that a tile reads; its rows are `step` values apart, or contiguous.
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

/// Packs the rows of a tile of a transposed `a` at a time, with the values of each inner index adjacent.
fn pack_a<R: Registers>(a: View<'_>, first: usize, deep: usize) -> scratch::Scratch {
    let mut packed = scratch::take(a.rows.next_multiple_of(R::ROWS[0]) * deep);
    for begin in (0..deep).step_by(STRIP) {
        let n_steps = STRIP.min(deep - begin);
        for tile in (0..a.rows).step_by(R::ROWS[0]) {
            let n = R::ROWS[0].min(a.rows - tile);
            let to = &mut packed[tile * deep + begin * R::ROWS[0]..][..n_steps * R::ROWS[0]];
            let mut from = a.values[(first + begin) * a.col_stride + tile..].chunks(a.col_stride);
            for to in to.chunks_exact_mut(R::ROWS[0]) {
                let from = from.next().unwrap_or_default();
                // A length that the compiler knows is copied without a call.
                if n == R::ROWS[0] && from.len() >= R::ROWS[0] {
                    to.copy_from_slice(&from[..R::ROWS[0]]);
                } else {
                    to[..n].copy_from_slice(&from[..n]);
                }
            }
        }
    }
    packed
}

/// Packs panels of columns, with zeros beyond the last column.
fn pack_b<R: Registers>(b: View<'_>, first: usize, deep: usize, packed: &mut [f32]) {
    if b.col_stride == 1 {
        for begin in (0..deep).step_by(STRIP) {
            for (col, n) in columns::<R>(b.cols) {
                let width = n.next_multiple_of(R::LANES);
                let to = &mut packed[col * deep + begin * width..][..STRIP.min(deep - begin) * width];
                for (step, to) in (first + begin..).zip(to.chunks_exact_mut(width)) {
                    // Not limited by `row_stride`: the transpose of a single column has longer rows.
                    let from = &b.values[step * b.row_stride + col..];
                    if n == R::WIDTH * R::LANES && to.len() == R::WIDTH * R::LANES {
                        to.copy_from_slice(&from[..R::WIDTH * R::LANES]);
                    } else {
                        to[..n].copy_from_slice(&from[..n]);
                        to[n..].fill(0.0);
                    }
                }
            }
        }
    } else if deep > 0 {
        for (col, n) in columns::<R>(b.cols) {
            let width = n.next_multiple_of(R::LANES);
            let panel = &mut packed[col * deep..][..width * deep];
            for eight in (0..width).step_by(EIGHT) {
                pack_transposed(b, (first, deep), col + eight, &mut panel[eight..], width);
            }
        }
    }
}

/// Packs eight columns of a transposed `b` from `col` on, with the values of each inner index adjacent and `width` values
/// between them.
fn pack_transposed(b: View<'_>, (first, deep): (usize, usize), col: usize, to: &mut [f32], width: usize) {
    let n_cols = EIGHT.min(b.cols.saturating_sub(col));
    let line = |lane: usize| &b.values[(col + lane) * b.col_stride + first..][..deep];
    let whole = if n_cols == EIGHT { deep / EIGHT * EIGHT } else { 0 };
    if whole > 0 {
        let lines: [&[f32]; EIGHT] = std::array::from_fn(line);
        assert!((whole - 1) * width + EIGHT <= to.len());
        for step in (0..whole).step_by(EIGHT) {
            #[expect(unsafe_code, reason = "vector loads and stores take pointers")]
            // SAFETY: `gemm` and `packed` are only called on processors with AVX2 and FMA. Each line has `deep >= step + 8`
            // values, and `to` has room for eight values at step `step + 7`, as asserted above.
            unsafe {
                transpose_8x8(lines.map(|line| line.as_ptr().add(step)), to.as_mut_ptr().add(step * width), width);
            }
        }
    }
    for step in whole..deep {
        let to = &mut to[step * width..][..EIGHT];
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
unsafe fn transpose_8x8(from: [*const f32; EIGHT], to: *mut f32, width: usize) {
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

/// A tile of the result.
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
    fn run<R: Registers>(self, out: &mut [f32], row_stride: usize) {
        let Self { n_rows, n_cols, deep, a, .. } = self;
        let width = n_cols.next_multiple_of(R::LANES);
        let read = if R::MASKED { n_cols } else { width };
        let panel = deep.saturating_sub(1) * self.panel.step.unwrap_or(width) + read;
        assert!(deep == 0 || panel <= self.panel.values.len(), "a panel is as deep as the product");
        let last = (n_rows - 1) * a.row_stride + deep.saturating_sub(1) * a.step;
        assert!(deep == 0 || last < a.values.len(), "rows are as deep as the product");
        if n_cols == read {
            assert!((n_rows - 1) * row_stride + read <= out.len(), "a tile stays inside its slice");
            self.compute::<R>(out, row_stride);
        } else {
            let mut whole = [0.0; MAX_TILE];
            Self { n_cols: width, mode: WriteMode::Overwrite, ..self }.compute::<R>(&mut whole, width);
            for (row, values) in whole.chunks_exact(width).take(n_rows).enumerate() {
                for (out, value) in out[row * row_stride..][..n_cols].iter_mut().zip(values) {
                    *out = if self.mode == WriteMode::Accumulate { *out + value } else { *value };
                }
            }
        }
    }

    /// Computes a tile; `out` has room for what the registers write.
    fn compute<R: Registers>(self, out: &mut [f32], row_stride: usize) {
        // Three registers a row leave room for half of the rows.
        let at_once = R::ROWS[usize::from(self.n_cols > R::WIDTH * R::LANES)];
        for row in (0..self.n_rows).step_by(at_once) {
            let n_rows = at_once.min(self.n_rows - row);
            let addresses = Addresses {
                a: (
                    self.a.values.get(row * self.a.row_stride..).unwrap_or_default().as_ptr(),
                    self.a.row_stride,
                    self.a.step,
                ),
                panel: (self.panel.values.as_ptr(), self.panel.step.unwrap_or(self.n_cols.next_multiple_of(R::LANES))),
                out: (out[row * row_stride..].as_mut_ptr(), row_stride),
                deep: self.deep,
                scale: self.scale,
                mode: self.mode,
            };
            #[expect(unsafe_code, reason = "vector loads and stores take pointers")]
            // SAFETY: `gemm` is only called on processors with these instructions; `run` has checked the three slices.
            unsafe {
                R::tile(n_rows, self.n_cols, addresses);
            }
        }
    }
}
