//! Tiles of a product in vector registers: one kernel, compiled for AVX2 with FMA and for AVX-512.
//!
//! Each element is one chain of fused multiply-adds along the inner axis, so both give the same bits.

#![expect(unsafe_code, reason = "vector instructions take pointers, and a processor may lack them")]
#![expect(
    clippy::inline_always,
    reason = "instructions are compiled with the features of the kernel that they are inlined into"
)]

use core::arch::x86_64::{
    __m256, __m512, __mmask16, _MM_HINT_T0, _mm_prefetch, _mm256_add_ps, _mm256_fmadd_ps, _mm256_loadu_ps,
    _mm256_mul_ps, _mm256_set1_ps, _mm256_setzero_ps, _mm256_storeu_ps, _mm512_add_ps, _mm512_fmadd_ps,
    _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps, _mm512_mul_ps, _mm512_set1_ps, _mm512_setzero_ps,
};

use super::WriteMode;

/// Where a kernel reads and writes, and how much.
#[derive(Debug, Clone, Copy)]
pub(super) struct Addresses {
    /// The first row of `a`, the distance of its rows, and of values along the inner axis.
    pub(super) a: (*const f32, usize, usize),
    /// The first row of a panel of `b`, and the distance of its rows.
    pub(super) panel: (*const f32, usize),
    /// The first row of the result, and the distance of its rows.
    pub(super) out: (*mut f32, usize),
    pub(super) deep: usize,
    pub(super) scale: f32,
    pub(super) mode: WriteMode,
}

/// Instructions on vector registers of one kind.
///
/// # Safety
/// All methods need a processor with these instructions, and are inlined into functions that enable them.
pub(super) trait Registers {
    /// Values in a register.
    const LANES: usize;
    /// Registers of a row of a tile. The last tile of a row may be one wider.
    const WIDTH: usize;
    /// Rows of a tile, and of one that is one register wider.
    const ROWS: [usize; 2];
    /// Whether the last register of a row may be read and written in part.
    const MASKED: bool;
    type Vector: Copy;

    /// Computes `n_rows` rows of `n_cols` columns.
    ///
    /// # Safety
    /// The processor has these instructions. The tile has at most `ROWS[0]` rows of `WIDTH` registers, or `ROWS[1]` of one more. All
    /// addresses are valid, for whole registers unless `MASKED`.
    unsafe fn tile(n_rows: usize, n_cols: usize, at: Addresses);

    unsafe fn zero() -> Self::Vector;
    unsafe fn splat(value: f32) -> Self::Vector;
    /// The first `n` values from `from` on, if `MASKED`, or all.
    unsafe fn load(from: *const f32, n: usize) -> Self::Vector;
    unsafe fn store(to: *mut f32, n: usize, values: Self::Vector);
    unsafe fn multiply(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a · b + c`, rounded once.
    unsafe fn multiply_add(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
}

/// `M` rows of `N` registers, the last of them with `n_last` columns.
///
/// # Safety
/// As [`Registers::tile`]; the caller enables the instructions.
#[inline(always)]
unsafe fn registers<R: Registers, const M: usize, const N: usize>(n_last: usize, at: Addresses) {
    let ((mut a, a_row, a_step), (mut panel, panel_step), (out, row_stride)) = (at.a, at.panel, at.out);
    let n_of = |lane: usize| if lane + 1 == N { n_last } else { R::LANES };
    // SAFETY: the caller guarantees that every address is valid. After the last step the two moving pointers are not
    // dereferenced, and `wrapping_add` may leave the slices.
    unsafe {
        for row in 0..M {
            // The result is read after the sums: prefetch it now.
            for lane in 0..N {
                _mm_prefetch::<_MM_HINT_T0>(out.wrapping_add(row * row_stride + lane * R::LANES).cast());
            }
        }
        let mut sums = [[R::zero(); N]; M];
        for _ in 0..at.deep {
            let mut b = [R::zero(); N];
            for (lane, b) in b.iter_mut().enumerate() {
                *b = R::load(panel.add(lane * R::LANES), n_of(lane));
            }
            for (row, sums) in sums.iter_mut().enumerate() {
                let value = R::splat(*a.add(row * a_row));
                for (sum, b) in sums.iter_mut().zip(b) {
                    *sum = R::multiply_add(value, b, *sum);
                }
            }
            a = a.wrapping_add(a_step);
            panel = panel.wrapping_add(panel_step);
        }
        let scale = R::splat(at.scale);
        for (row, sums) in sums.into_iter().enumerate() {
            for (lane, sum) in sums.into_iter().enumerate() {
                let to = out.add(row * row_stride + lane * R::LANES);
                let mut value = R::multiply(sum, scale);
                if at.mode == WriteMode::Accumulate {
                    value = R::add(value, R::load(to, n_of(lane)));
                }
                R::store(to, n_of(lane), value);
            }
        }
    }
}

/// [`Registers::tile`]: chooses the kernel of the tile's size.
macro_rules! tile {
    ($features:literal, $($width:literal: $($rows:literal)+),+) => {
        unsafe fn tile(n_rows: usize, n_cols: usize, at: Addresses) {
            #[target_feature(enable = $features)]
            unsafe fn kernel<const M: usize, const N: usize, R: Registers>(n_last: usize, at: Addresses) {
                // SAFETY: as the caller's.
                unsafe { registers::<R, M, N>(n_last, at) }
            }
            let n_registers = n_cols.div_ceil(Self::LANES);
            let n_last = n_cols - (n_registers - 1) * Self::LANES;
            // SAFETY: the caller guarantees the features and the addresses.
            unsafe {
                match (n_registers, n_rows) {
                    $($(($width, $rows) => kernel::<$rows, $width, Self>(n_last, at),)+)+
                    _ => unreachable!("a tile of {n_rows} rows and {n_cols} columns"),
                }
            }
        }
    };
}

/// Methods of [`Registers`] that are an intrinsic each.
macro_rules! instructions {
    ($($name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)? = $body:expr;)+) => {$(
        #[inline(always)]
        unsafe fn $name($($arg: $type),*) $(-> $result)? {
            // SAFETY: as the trait demands; lanes outside of a mask are neither read nor written.
            unsafe { $body }
        }
    )+};
}

/// Sixteen registers of eight values.
#[derive(Debug)]
pub(super) struct Avx2;

impl Registers for Avx2 {
    const LANES: usize = 8;
    const WIDTH: usize = 2;
    const ROWS: [usize; 2] = [6, 3];
    const MASKED: bool = false;
    type Vector = __m256;

    tile!("avx2,fma", 1: 1 2 3 4 5 6, 2: 1 2 3 4 5 6, 3: 1 2 3);
    instructions! {
        zero() -> __m256 = _mm256_setzero_ps();
        splat(value: f32) -> __m256 = _mm256_set1_ps(value);
        load(from: *const f32, _n: usize) -> __m256 = _mm256_loadu_ps(from);
        store(to: *mut f32, _n: usize, values: __m256) = _mm256_storeu_ps(to, values);
        multiply(a: __m256, b: __m256) -> __m256 = _mm256_mul_ps(a, b);
        add(a: __m256, b: __m256) -> __m256 = _mm256_add_ps(a, b);
        multiply_add(a: __m256, b: __m256, c: __m256) -> __m256 = _mm256_fmadd_ps(a, b, c);
    }
}

/// Thirty-two registers of sixteen values.
#[derive(Debug)]
pub(super) struct Avx512;

impl Registers for Avx512 {
    const LANES: usize = 16;
    const WIDTH: usize = 3;
    const ROWS: [usize; 2] = [8, 6];
    const MASKED: bool = true;
    type Vector = __m512;

    tile!("avx512f", 1: 1 2 3 4 5 6 7 8, 2: 1 2 3 4 5 6 7 8, 3: 1 2 3 4 5 6 7 8, 4: 1 2 3 4 5 6);
    instructions! {
        zero() -> __m512 = _mm512_setzero_ps();
        splat(value: f32) -> __m512 = _mm512_set1_ps(value);
        load(from: *const f32, n: usize) -> __m512 = _mm512_maskz_loadu_ps(mask(n), from);
        store(to: *mut f32, n: usize, values: __m512) = _mm512_mask_storeu_ps(to, mask(n), values);
        multiply(a: __m512, b: __m512) -> __m512 = _mm512_mul_ps(a, b);
        add(a: __m512, b: __m512) -> __m512 = _mm512_add_ps(a, b);
        multiply_add(a: __m512, b: __m512, c: __m512) -> __m512 = _mm512_fmadd_ps(a, b, c);
    }
}

/// The mask of the first `n` of sixteen lanes.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "a mask has sixteen bits")]
fn mask(n: usize) -> __mmask16 {
    ((1_u32 << n) - 1) as __mmask16
}
