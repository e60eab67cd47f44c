//! Products for processors with AVX2 and FMA, made for the shapes of our models: up to some thousand rows, a few hundred
//! columns.
//!
//! `b` is packed into panels of 16 columns (up to 24 at the end), whose rows lie one after another; `a` is read in place,
//! or packed six rows at a time where its rows do not lie along memory. Factors that fit the nearest caches are read where
//! they lie, whichever way they lie. A tile of six rows and 16 columns of the result, or three and 24, is kept in registers
//! while the inner axis runs by. Each element is one chain of additions along the inner axis, cut every [`DEEPEST`] terms:
//! it depends on its own row and column alone.

use core::arch::x86_64::{
    __m256, _MM_HINT_T0, _mm_prefetch, _mm256_add_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_mul_ps,
    _mm256_permute2f128_ps, _mm256_set1_ps, _mm256_setzero_ps, _mm256_shuffle_ps, _mm256_storeu_ps, _mm256_unpackhi_ps,
    _mm256_unpacklo_ps,
};

use super::{Into, View};
use crate::scratch;

/// Rows of a tile.
const ROWS: usize = 6;
/// Columns of a panel: two registers.
const COLS: usize = 16;
/// Columns of the last panel at most: three registers. A panel of one alone would read a value of `a` for every product.
const BROAD: usize = 24;
/// Rows of a tile that is three registers wide.
const HALF: usize = ROWS / 2;
/// Values of a register.
const LANES: usize = 8;
/// Terms of a sum between two visits to the result, where `a` lies along its rows and where it does not: a panel of that
/// depth fits the second or the first cache beside what it meets.
const DEEPEST: [usize; 2] = [1024, 256];
/// Rows that are packed side by side: as many as the processor follows through memory at once.
const STRIP: usize = 8;
/// Values of `a` that meet every panel of `b` in turn, from the second cache, where they are read in place and where they
/// are packed first.
const NEAR: [usize; 2] = [48 * 1024, 24 * 1024];

/// Values of `a` and `b` together that the nearest caches hold: such factors are read where they lie, as in attention.
const SMALL: usize = 16 * 1024;

/// `out = scale · a · b`, or that added to `out`; `fits` has been checked. `packed` is what [`packed`] makes of `b`, if
/// that [is wanted](is_packed) and at hand.
pub(super) fn product(
    a: View<'_>,
    (b, packed): (View<'_>, Option<&[f32]>),
    scale: f32,
    into: Into,
    out: &mut [f32],
    row_step: usize,
) {
    let (rows, depth, cols) = (a.rows, a.cols, b.cols);
    let a_in_place = a.col_step == 1 || is_small(a, b);
    let b_in_place = is_in_place(a, b);
    // By the way `a` lies alone: how large the product is must not change the order of a sum.
    let deepest = DEEPEST[usize::from(a.col_step != 1)];
    let mut first = 0;
    loop {
        let deep = (depth - first).min(deepest);
        let into = if first == 0 { into } else { Into::Add };
        let panels = match packed {
            Some(packed) => Panels::kept(packed, cols, first, deep),
            None => Panels::new(b, first, deep, b_in_place),
        };
        let near = (NEAR[usize::from(!a_in_place)] / deep.max(1) / ROWS).max(1) * ROWS;
        for row in (0..rows).step_by(near) {
            let n_near = near.min(rows - row);
            let near = View { values: a.values.get(row * a.row_step..).unwrap_or_default(), rows: n_near, ..a };
            let turned;
            let near = if a_in_place {
                let values = near.values.get(first * a.col_step..).unwrap_or_default();
                Rows { values, tile_step: ROWS * a.row_step, row_step: a.row_step, step: a.col_step }
            } else {
                turned = pack_a(near, first, deep);
                Rows { values: &turned, tile_step: ROWS * deep, row_step: 1, step: ROWS }
            };
            for (col, n_cols) in columns(cols) {
                let panel = panels.from(col);
                for tile in (0..n_near).step_by(ROWS) {
                    let n_rows = ROWS.min(n_near - tile);
                    let values = near.values.get(tile / ROWS * near.tile_step..).unwrap_or_default();
                    let task = Tile { n_rows, n_cols, deep, a: Rows { values, ..near }, panel, scale, into };
                    task.run(&mut out[(row + tile) * row_step + col..], row_step);
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

/// Whether `b` is read where it lies: few rows of `a` do not make up for packing either.
fn is_in_place(a: View<'_>, b: View<'_>) -> bool {
    b.col_step == 1 && (is_small(a, b) || a.rows <= 2 * ROWS)
}

/// Whether a product of these reads what [`packed`] makes of `b`, which is cut as for an `a` that lies along its rows.
pub(super) fn is_packed(a: View<'_>, b: View<'_>) -> bool {
    a.col_step == 1 && !is_in_place(a, b)
}

/// All of `b` packed, [`DEEPEST`] steps after another.
pub(super) fn packed(b: View<'_>) -> Vec<f32> {
    let width = b.cols.next_multiple_of(LANES);
    let mut values = vec![0.0; b.rows * width];
    for first in (0..b.rows).step_by(DEEPEST[0]) {
        let deep = DEEPEST[0].min(b.rows - first);
        pack_b(b, first, deep, &mut values[first * width..][..deep * width]);
    }
    values
}

/// The panels of `b`: packed, or as far as whole registers go the matrix itself.
struct Panels<'a> {
    /// Columns before this one are read in place.
    n_in_place: usize,
    values: &'a [f32],
    row_step: usize,
    packed: Packed<'a>,
    deep: usize,
}

enum Packed<'a> {
    /// For this product.
    Now(scratch::Scratch),
    /// For as long as `b` stays what it is.
    Kept(&'a [f32]),
}

impl<'a> Panels<'a> {
    fn new(b: View<'a>, first: usize, deep: usize, in_place: bool) -> Self {
        let whole = if b.cols.is_multiple_of(LANES) { b.cols } else { first_of_last(b.cols) };
        let n_in_place = if in_place { whole } else { 0 };
        let rest = View {
            values: b.values.get(n_in_place * b.col_step..).unwrap_or_default(),
            cols: b.cols - n_in_place,
            ..b
        };
        let mut packed = scratch::take(deep * rest.cols.next_multiple_of(LANES));
        pack_b(rest, first, deep, &mut packed);
        let values = b.values.get(first * b.row_step..).unwrap_or_default();
        Self { n_in_place, values, row_step: b.row_step, packed: Packed::Now(packed), deep }
    }

    /// Those of [`packed`].
    fn kept(packed: &'a [f32], cols: usize, first: usize, deep: usize) -> Self {
        let width = cols.next_multiple_of(LANES);
        let packed = Packed::Kept(&packed[first * width..][..deep * width]);
        Self { n_in_place: 0, values: &[], row_step: 0, packed, deep }
    }

    /// The panel whose first column is `col`.
    fn from(&self, col: usize) -> Panel<'_> {
        if col < self.n_in_place {
            return Panel { values: self.values.get(col..).unwrap_or_default(), step: Some(self.row_step) };
        }
        let packed = match &self.packed {
            Packed::Now(packed) => packed,
            Packed::Kept(packed) => *packed,
        };
        Panel { values: &packed[(col - self.n_in_place) * self.deep..], step: None }
    }
}

/// Up to 24 columns of `b`; its rows lie `step` apart, or one behind the other.
#[derive(Clone, Copy)]
struct Panel<'a> {
    values: &'a [f32],
    step: Option<usize>,
}

/// Rows of `a`: how far apart tiles, rows and the steps along a row are.
#[derive(Clone, Copy)]
struct Rows<'a> {
    values: &'a [f32],
    tile_step: usize,
    row_step: usize,
    step: usize,
}

/// Six rows of a transposed `a` at a time, the six values of each step along them side by side.
fn pack_a(a: View<'_>, first: usize, deep: usize) -> scratch::Scratch {
    let mut packed = scratch::take(a.rows.next_multiple_of(ROWS) * deep);
    for begin in (0..deep).step_by(STRIP) {
        let n_steps = STRIP.min(deep - begin);
        for tile in (0..a.rows).step_by(ROWS) {
            let n = ROWS.min(a.rows - tile);
            let to = &mut packed[tile * deep + begin * ROWS..][..n_steps * ROWS];
            let mut from = a.values[(first + begin) * a.col_step + tile..].chunks(a.col_step);
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

/// Panels of 16 columns, the last one of up to 24; zeros beyond the last column.
fn pack_b(b: View<'_>, first: usize, deep: usize, packed: &mut [f32]) {
    if b.col_step == 1 {
        for begin in (0..deep).step_by(STRIP) {
            for (col, n) in columns(b.cols) {
                let width = n.next_multiple_of(LANES);
                let to = &mut packed[col * deep + begin * width..][..STRIP.min(deep - begin) * width];
                for (step, to) in (first + begin..).zip(to.chunks_exact_mut(width)) {
                    // Not cut by `row_step`: the transpose of a single column has rows longer than that.
                    let from = &b.values[step * b.row_step + col..];
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
                turn(b, (first, deep), col + half, &mut panel[half..], width);
            }
        }
    }
}

/// Eight columns of a transposed `b` from `col` on, the values of each step side by side, steps `width` apart.
fn turn(b: View<'_>, (first, deep): (usize, usize), col: usize, to: &mut [f32], width: usize) {
    let n_cols = LANES.min(b.cols - col);
    let line = |lane: usize| &b.values[(col + lane) * b.col_step + first..][..deep];
    let whole = if n_cols == LANES { deep / LANES * LANES } else { 0 };
    if whole > 0 {
        let lines: [&[f32]; LANES] = std::array::from_fn(line);
        assert!((whole - 1) * width + LANES <= to.len());
        for step in (0..whole).step_by(LANES) {
            #[expect(unsafe_code, reason = "vector loads and stores take pointers")]
            // SAFETY: this module is entered on processors with AVX2 only. Each line has `deep >= step + 8` values, and
            // `to` has room for eight values at step `step + 7`, as asserted above.
            unsafe {
                turn_eight(lines.map(|line| line.as_ptr().add(step)), to.as_mut_ptr().add(step * width), width);
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
/// Eight values can be read at each of `from`, and written at `to` and each of the seven places `width` apart behind it.
#[expect(unsafe_code, reason = "vector loads and stores take pointers")]
#[target_feature(enable = "avx2,fma")]
unsafe fn turn_eight(from: [*const f32; LANES], to: *mut f32, width: usize) {
    // SAFETY: as this function's caller promises.
    let r = from.map(|line| unsafe { _mm256_loadu_ps(line) });
    let pairs = |a: __m256, b: __m256| (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    let ((a0, a1), (a2, a3)) = (pairs(r[0], r[1]), pairs(r[2], r[3]));
    let ((a4, a5), (a6, a7)) = (pairs(r[4], r[5]), pairs(r[6], r[7]));
    let fours = |a: __m256, b: __m256| (_mm256_shuffle_ps::<0x44>(a, b), _mm256_shuffle_ps::<0xEE>(a, b));
    let ((b0, b1), (b2, b3)) = (fours(a0, a2), fours(a1, a3));
    let ((b4, b5), (b6, b7)) = (fours(a4, a6), fours(a5, a7));
    let low = |a: __m256, b: __m256| _mm256_permute2f128_ps::<0x20>(a, b);
    let high = |a: __m256, b: __m256| _mm256_permute2f128_ps::<0x31>(a, b);
    let turned =
        [low(b0, b4), low(b1, b5), low(b2, b6), low(b3, b7), high(b0, b4), high(b1, b5), high(b2, b6), high(b3, b7)];
    for (step, values) in turned.into_iter().enumerate() {
        // SAFETY: as this function's caller promises.
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
    into: Into,
}

impl Tile<'_> {
    fn run(self, out: &mut [f32], row_step: usize) {
        let Self { n_rows, n_cols, deep, a, .. } = self;
        let width = n_cols.next_multiple_of(LANES);
        let panel = deep.saturating_sub(1) * self.panel.step.unwrap_or(width) + width;
        assert!(deep == 0 || panel <= self.panel.values.len(), "a panel is as deep as the product");
        let last = (n_rows - 1) * a.row_step + deep.saturating_sub(1) * a.step;
        assert!(deep == 0 || last < a.values.len(), "rows are as deep as the product");
        if n_cols == width {
            assert!((n_rows - 1) * row_step + width <= out.len(), "a tile stays inside its slice");
            self.compute(out, row_step);
        } else {
            let mut whole = [0.0; ROWS * BROAD];
            Self { into: Into::Replace, ..self }.compute(&mut whole, width);
            for (row, values) in whole.chunks_exact(width).take(n_rows).enumerate() {
                for (out, value) in out[row * row_step..][..n_cols].iter_mut().zip(values) {
                    *out = if self.into == Into::Add { *out + value } else { *value };
                }
            }
        }
    }

    /// With `out` large enough for whole registers.
    fn compute(self, out: &mut [f32], row_step: usize) {
        #[expect(unsafe_code, reason = "vector loads and stores take pointers")]
        // SAFETY: this module is entered on processors with AVX2 and FMA only; `run` has checked the three slices.
        unsafe {
            match (self.n_cols.div_ceil(LANES), self.n_rows) {
                (3, 1) => self.registers::<1, 3>(out, row_step),
                (3, 2) => self.registers::<2, 3>(out, row_step),
                (3, HALF) => self.registers::<HALF, 3>(out, row_step),
                (3, n_rows) => {
                    let rest = Rows { values: &self.a.values[HALF * self.a.row_step..], ..self.a };
                    self.registers::<HALF, 3>(out, row_step);
                    Self { n_rows: n_rows - HALF, a: rest, ..self }.compute(&mut out[HALF * row_step..], row_step);
                }
                (2, 1) => self.registers::<1, 2>(out, row_step),
                (2, 2) => self.registers::<2, 2>(out, row_step),
                (2, 3) => self.registers::<3, 2>(out, row_step),
                (2, 4) => self.registers::<4, 2>(out, row_step),
                (2, 5) => self.registers::<5, 2>(out, row_step),
                (2, _) => self.registers::<ROWS, 2>(out, row_step),
                (_, 1) => self.registers::<1, 1>(out, row_step),
                (_, 2) => self.registers::<2, 1>(out, row_step),
                (_, 3) => self.registers::<3, 1>(out, row_step),
                (_, 4) => self.registers::<4, 1>(out, row_step),
                (_, 5) => self.registers::<5, 1>(out, row_step),
                (_, _) => self.registers::<ROWS, 1>(out, row_step),
            }
        }
    }

    /// # Safety
    /// `a` has `M` rows and the panel `N` registers of `deep` steps; `out` has room for `M` rows of `N` registers.
    #[expect(unsafe_code, reason = "vector loads and stores take pointers")]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn registers<const M: usize, const N: usize>(self, out: &mut [f32], row_step: usize) {
        let Self { deep, a: Rows { row_step: a_row, step: a_step, .. }, scale, into, .. } = self;
        let (mut a, mut panel, out) = (self.a.values.as_ptr(), self.panel.values.as_ptr(), out.as_mut_ptr());
        let panel_step = self.panel.step.unwrap_or(N * LANES);
        // SAFETY: every address lies inside the slices as this function's caller promises; after the last step the two
        // moving pointers are not read.
        unsafe {
            for row in 0..M {
                // The result is needed only after the sums: fetched now, it is there by then.
                _mm_prefetch::<_MM_HINT_T0>(out.add(row * row_step).cast());
                _mm_prefetch::<_MM_HINT_T0>(out.add(row * row_step + N * LANES - 1).cast());
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
                    let to = out.add(row * row_step + lane * LANES);
                    let mut value = _mm256_mul_ps(sum, scale);
                    if into == Into::Add {
                        value = _mm256_add_ps(value, _mm256_loadu_ps(to));
                    }
                    _mm256_storeu_ps(to, value);
                }
            }
        }
    }
}
