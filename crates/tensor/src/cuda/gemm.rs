//! GEMM through cuBLASLt.
//!
//! The library is column-major. A row-major matrix is the transpose of what it reads, so that C = A·B is computed as
//! Cᵀ = Bᵀ·Aᵀ: the operands are swapped and nothing is copied.

#![expect(clippy::many_single_char_names, reason = "matrices and their sizes are named as in the formulas")]

use std::collections::HashMap;
use std::ffi::c_void;
use std::mem::MaybeUninit;

use cudarc::cublaslt::result::{self, CublasError};
use cudarc::cublaslt::sys;
use cudarc::driver;

use super::context::Context;
use super::gemm_cache::GemmCache;
use super::streams::Stream;
use crate::{Error, Precision, Result};

/// C = op(A) · op(B) + bias, or C += op(A) · op(B) with `accumulate`; all row-major and dense.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of a BLAS call")]
pub(crate) struct Gemm {
    /// `[m, k]`, or `[k, m]` where transposed.
    pub(crate) a: u64,
    pub(crate) transpose_a: bool,
    /// `[k, n]`, or `[n, k]` where transposed.
    pub(crate) b: u64,
    pub(crate) transpose_b: bool,
    /// `[m, n]`
    pub(crate) c: u64,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) accumulate: bool,
    /// Whether C is `f32` rather than the element type of A and B.
    pub(crate) c_is_f32: bool,
    /// `[n]`, added to every row of an `f32` C; 0 for none.
    pub(crate) bias: u64,
}

impl Gemm {
    fn form(&self) -> Form {
        Form { transposed: [self.transpose_a, self.transpose_b], has_bias: self.bias != 0 }
    }
}

/// What a matmul descriptor depends on.
#[derive(PartialEq, Eq, Hash, Clone, Copy)]
struct Form {
    /// Whether A and B are transposed.
    transposed: [bool; 2],
    has_bias: bool,
}

/// What the choice of an algorithm depends on.
#[derive(PartialEq, Eq, Hash, Clone, Copy)]
pub(super) struct Key {
    pub(super) sizes: [usize; 3],
    form: Form,
    accumulate: bool,
    c_is_f32: bool,
}

impl Key {
    /// The key in the cache file, whose words therefore stay as they are.
    pub(super) fn name(&self) -> String {
        let Self { sizes: [m, n, k], form: Form { transposed: [a, b], has_bias }, accumulate, c_is_f32 } = *self;
        let flags = [(a, "a-turned"), (b, "b-turned"), (has_bias, "bias"), (accumulate, "add"), (c_is_f32, "wide")];
        let flags = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| format!(" {name}"));
        format!("{m} {n} {k}{}", flags.collect::<String>())
    }

    fn new(gemm: &Gemm, sizes: [usize; 3]) -> Self {
        Self { sizes, form: gemm.form(), accumulate: gemm.accumulate, c_is_f32: gemm.c_is_f32 }
    }
}

/// A cuBLASLt algorithm.
pub(super) type Algo = sys::cublasLtMatmulAlgo_t;

/// The cuBLASLt handle and the algorithms chosen so far.
pub(super) struct Gemms {
    handle: sys::cublasLtHandle_t,
    precision: Precision,
    preference: sys::cublasLtMatmulPreference_t,
    descriptors: HashMap<Form, sys::cublasLtMatmulDesc_t>,
    algorithms: HashMap<Key, Algo>,
    /// The fastest algorithms measured, if there is a cache.
    pub(super) cache: Option<GemmCache>,
    /// The main and the gradient stream, and a workspace for each.
    pub(super) streams: [driver::sys::CUstream; 2],
    pub(super) workspaces: [u64; 2],
}

pub(super) const WORKSPACE: usize = 64 << 20;

fn failed(error: CublasError) -> Error {
    Error::Cuda { doing: "multiply", detail: format!("{:?}", error.0) }
}

/// Row counts vary from batch to batch: similar ones share an algorithm, so that a new one costs no search.
fn bucket(size: usize) -> usize {
    size.next_multiple_of((size.next_power_of_two() / 8).max(32))
}

struct Layouts([sys::cublasLtMatrixLayout_t; 3]);

impl Drop for Layouts {
    #[expect(unsafe_code, reason = "a cuBLASLt call")]
    fn drop(&mut self) {
        for layout in self.0 {
            // SAFETY: the layout is alive and destroyed once.
            let _ = unsafe { result::destroy_matrix_layout(layout) };
        }
    }
}

impl Gemms {
    #[expect(unsafe_code, reason = "cuBLASLt calls")]
    pub(super) fn new(
        precision: Precision,
        streams: [driver::sys::CUstream; 2],
        cache: Option<GemmCache>,
    ) -> Result<Self> {
        let preference = result::create_matmul_pref().map_err(failed)?;
        let attribute = sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
        let size = WORKSPACE;
        // SAFETY: the attribute is a `size_t`, which `size` is; the workspaces are only used by the library.
        let workspaces = unsafe {
            result::set_matmul_pref_attribute(preference, attribute, (&raw const size).cast(), size_of::<usize>())
                .map_err(failed)?;
            let alloc = || driver::result::malloc_sync(WORKSPACE).map_err(super::context::driver("allocate memory"));
            [alloc()?, alloc()?]
        };
        Ok(Self {
            handle: result::create_handle().map_err(failed)?,
            precision,
            preference,
            descriptors: HashMap::new(),
            algorithms: HashMap::new(),
            cache,
            streams,
            workspaces,
        })
    }

    /// The element types of B, A and C.
    fn element_types(&self, c_is_f32: bool) -> [sys::cudaDataType; 3] {
        use sys::cudaDataType_t::{CUDA_R_16BF, CUDA_R_32F};
        let operand = if self.precision == Precision::Bf16 { CUDA_R_16BF } else { CUDA_R_32F };
        [operand, operand, if c_is_f32 { CUDA_R_32F } else { operand }]
    }

    #[expect(unsafe_code, reason = "cuBLASLt calls")]
    fn descriptor(&mut self, form: Form) -> Result<sys::cublasLtMatmulDesc_t> {
        use sys::cublasComputeType_t::{CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
        use sys::cublasLtMatmulDescAttributes_t as Attribute;
        if let Some(&known) = self.descriptors.get(&form) {
            return Ok(known);
        }
        let compute = if self.precision == Precision::Tf32 { CUBLAS_COMPUTE_32F_FAST_TF32 } else { CUBLAS_COMPUTE_32F };
        let descriptor = result::create_matmul_desc(compute, sys::cudaDataType_t::CUDA_R_32F).map_err(failed)?;
        let [transpose_a, transpose_b] = form.transposed;
        // The first operand of the library is B.
        let epilogue = if form.has_bias {
            sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS
        } else {
            sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_DEFAULT
        };
        for (attribute, value) in [
            (Attribute::CUBLASLT_MATMUL_DESC_TRANSA, i32::from(transpose_b)),
            (Attribute::CUBLASLT_MATMUL_DESC_TRANSB, i32::from(transpose_a)),
            (Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue as i32),
        ] {
            // SAFETY: the attribute is a 32-bit integer, which `value` is.
            unsafe {
                result::set_matmul_desc_attribute(descriptor, attribute, (&raw const value).cast(), 4)
                    .map_err(failed)?;
            }
        }
        self.descriptors.insert(form, descriptor);
        Ok(descriptor)
    }

    fn layouts(&self, gemm: &Gemm, [m, n, k]: [usize; 3]) -> Result<Layouts> {
        let [b_type, a_type, c_type] = self.element_types(gemm.c_is_f32);
        // Column-major: columns of the length of our rows.
        let layout = |element_type, rows: usize, cols: usize| {
            result::create_matrix_layout(
                element_type,
                rows as u64,
                cols as u64,
                i64::try_from(rows).unwrap_or(i64::MAX),
            )
            .map_err(failed)
        };
        let b = if gemm.transpose_b { layout(b_type, k, n)? } else { layout(b_type, n, k)? };
        let a = if gemm.transpose_a { layout(a_type, m, k)? } else { layout(a_type, k, m)? };
        Ok(Layouts([b, a, layout(c_type, n, m)?]))
    }

    /// The algorithms that the heuristic of cuBLASLt proposes, best first, at most `most`.
    #[expect(unsafe_code, reason = "cuBLASLt calls")]
    pub(super) fn candidates(&mut self, gemm: &Gemm, sizes: [usize; 3], most: usize) -> Result<Vec<Algo>> {
        let descriptor = self.descriptor(gemm.form())?;
        let layouts = self.layouts(gemm, sizes)?;
        let [b, a, c] = layouts.0;
        let mut found = vec![MaybeUninit::<sys::cublasLtMatmulHeuristicResult_t>::uninit(); most];
        let mut count = 0;
        // SAFETY: all descriptors are alive, `found` has room for `most` results, and the library initialises the `count`
        // results that are read.
        unsafe {
            let (requested, results) = (i32::try_from(most).unwrap_or(i32::MAX), found.as_mut_ptr().cast());
            let (handle, preference) = (self.handle, self.preference);
            sys::cublasLtMatmulAlgoGetHeuristic(
                handle,
                descriptor,
                b,
                a,
                c,
                c,
                preference,
                requested,
                results,
                &raw mut count,
            )
            .result()
            .map_err(failed)?;
            let found = found.into_iter().take(usize::try_from(count).unwrap_or(0));
            let found = found.map(|result| result.assume_init());
            Ok(found.filter(|result| result.state.result().is_ok()).map(|result| result.algo).collect())
        }
    }

    /// The algorithm for these sizes: the fastest measured one, or without measurements the first of the heuristic.
    fn algorithm(&mut self, gemm: &Gemm, sizes: [usize; 3], stream: Stream) -> Result<Algo> {
        let key = Key::new(gemm, sizes);
        if let Some(known) = self.algorithms.get(&key) {
            return Ok(*known);
        }
        match self.fastest(gemm, &key, stream)? {
            Some(fastest) => Ok(*self.algorithms.entry(key).or_insert(fastest)),
            None => self.heuristic(gemm, key),
        }
    }

    fn heuristic(&mut self, gemm: &Gemm, key: Key) -> Result<Algo> {
        let [m, n, k] = key.sizes;
        let missing =
            || Error::Cuda { doing: "multiply", detail: format!("no algorithm for [{m}, {k}] · [{k}, {n}]") };
        let found = *self.candidates(gemm, key.sizes, 1)?.first().ok_or_else(missing)?;
        Ok(*self.algorithms.entry(key).insert_entry(found).get())
    }

    /// Runs a GEMM with a given algorithm.
    #[expect(unsafe_code, reason = "cuBLASLt calls")]
    pub(super) fn run_with(&mut self, algorithm: &Algo, gemm: &Gemm, stream: Stream) -> Result<()> {
        let descriptor = self.descriptor(gemm.form())?;
        if gemm.bias != 0 {
            let attribute = sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_BIAS_POINTER;
            // SAFETY: the attribute is a device pointer, which `bias` is; the library reads the descriptor before the call
            // below returns.
            unsafe {
                result::set_matmul_desc_attribute(
                    descriptor,
                    attribute,
                    (&raw const gemm.bias).cast(),
                    size_of::<u64>(),
                )
                .map_err(failed)?;
            }
        }
        let layouts = self.layouts(gemm, [gemm.m, gemm.n, gemm.k])?;
        let [b, a, c] = layouts.0;
        let (alpha, beta) = (1.0_f32, if gemm.accumulate { 1.0_f32 } else { 0.0 });
        let stream = usize::from(stream == Stream::Grad);
        // SAFETY: the caller owns matrices of these sizes at these device pointers; a workspace belongs to one stream, so
        // that one GEMM uses it at a time.
        unsafe {
            result::matmul(
                self.handle,
                descriptor,
                (&raw const alpha).cast(),
                (&raw const beta).cast(),
                gemm.b as *const c_void,
                b,
                gemm.a as *const c_void,
                a,
                gemm.c as *const c_void,
                c,
                gemm.c as *mut c_void,
                c,
                algorithm,
                self.workspaces[stream] as *mut c_void,
                WORKSPACE,
                self.streams[stream].cast(),
            )
        }
        .map_err(failed)
    }

    fn run(&mut self, gemm: &Gemm, stream: Stream) -> Result<()> {
        let Gemm { m, n, k, .. } = *gemm;
        // Only the number of rows varies from batch to batch.
        let rounded = if gemm.transpose_a { [m, n, bucket(k)] } else { [bucket(m), n, k] };
        let algorithm = self.algorithm(gemm, rounded, stream)?;
        self.run_with(&algorithm, gemm, stream).or_else(|_| {
            // The algorithm of the rounded size does not support this one: choose one for it.
            let key = Key::new(gemm, [m, n, k]);
            let known = self.algorithms.get(&key).copied().filter(|_| rounded != key.sizes);
            let own = known.map_or_else(|| self.heuristic(gemm, key), Ok)?;
            self.run_with(&own, gemm, stream)
        })
    }
}

impl Context {
    /// Submits a GEMM to the main stream. With `k = 0` the product is 0.
    pub(crate) fn gemm(&self, gemm: &Gemm) -> Result<()> {
        self.gemm_on(Stream::Main, gemm)
    }

    /// Submits a GEMM.
    pub(crate) fn gemm_on(&self, stream: Stream, gemm: &Gemm) -> Result<()> {
        let Gemm { m, n, k, c, accumulate, c_is_f32, .. } = *gemm;
        if m == 0 || n == 0 {
            return Ok(());
        }
        if k == 0 {
            let size = if c_is_f32 { 4 } else { self.precision.bytes() };
            return if accumulate { Ok(()) } else { self.fill_zero(c, m * n * size) };
        }
        self.gemms().run(gemm, stream)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn similar_sizes_share_a_bucket() {
        assert_eq!([1, 32, 33, 200, 400, 1023].map(super::bucket), [32, 32, 64, 224, 448, 1024]);
        assert_eq!(super::bucket(25_000), super::bucket(25_600));
        let buckets: std::collections::BTreeSet<usize> = (1..=1 << 16).map(super::bucket).collect();
        assert_eq!(buckets.len(), 40, "eight for each power of two, and few for small ones");
    }
}
