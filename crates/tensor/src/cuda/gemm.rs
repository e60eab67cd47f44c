//! Matrix products through cuBLASLt.
//!
//! The library thinks in columns. A row-major matrix is the transpose of what it sees, so that C = A·B is asked for as
//! Cᵀ = Bᵀ·Aᵀ: the operands change places and nothing is copied.

#![expect(clippy::many_single_char_names, reason = "matrices and their sizes are called as in the formulas")]

use std::collections::HashMap;
use std::ffi::c_void;
use std::mem::MaybeUninit;

use cudarc::cublaslt::result::{self, CublasError};
use cudarc::cublaslt::sys;
use cudarc::driver;

use super::context::Context;
use super::gemm_cache::Choices;
use super::streams::Lane;
use crate::{Error, Precision, Result};

/// C = op(A) · op(B), or C += where `add`; all row-major and dense.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each says one thing about one matrix")]
pub(super) struct Product {
    /// `[m, k]`, or `[k, m]` where turned.
    pub(super) a: u64,
    pub(super) a_turned: bool,
    /// `[k, n]`, or `[n, k]` where turned.
    pub(super) b: u64,
    pub(super) b_turned: bool,
    /// `[m, n]`
    pub(super) c: u64,
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) add: bool,
    /// Whether C holds `f32` whatever the factors hold.
    pub(super) wide: bool,
    /// `[n]`, added to every row of a wide C; 0 for none.
    pub(super) bias: u64,
}

impl Product {
    fn form(&self) -> Form {
        Form { turned: [self.a_turned, self.b_turned], has_bias: self.bias != 0 }
    }
}

/// What a description is made for.
#[derive(PartialEq, Eq, Hash, Clone, Copy)]
struct Form {
    /// Whether A and B are turned.
    turned: [bool; 2],
    has_bias: bool,
}

/// What the choice of an algorithm depends on.
#[derive(PartialEq, Eq, Hash, Clone, Copy)]
pub(super) struct Key {
    pub(super) sizes: [usize; 3],
    form: Form,
    add: bool,
    wide: bool,
}

impl Key {
    /// As it stands in a file; to be changed with what it means.
    pub(super) fn name(&self) -> String {
        let Self { sizes: [m, n, k], form: Form { turned: [a, b], has_bias }, add, wide } = *self;
        let flags = [(a, "a-turned"), (b, "b-turned"), (has_bias, "bias"), (add, "add"), (wide, "wide")];
        let flags = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| format!(" {name}"));
        format!("{m} {n} {k}{}", flags.collect::<String>())
    }

    fn new(p: &Product, sizes: [usize; 3]) -> Self {
        Self { sizes, form: p.form(), add: p.add, wide: p.wide }
    }
}

/// An algorithm of the library's.
pub(super) type Algo = sys::cublasLtMatmulAlgo_t;

/// The library's handle and the algorithms chosen so far.
pub(super) struct Products {
    handle: sys::cublasLtHandle_t,
    precision: Precision,
    preference: sys::cublasLtMatmulPreference_t,
    descriptions: HashMap<Form, sys::cublasLtMatmulDesc_t>,
    algorithms: HashMap<Key, Algo>,
    /// Those of the fastest, where they are kept.
    pub(super) choices: Option<Choices>,
    /// The main stream and that beside it, and a workspace for each.
    pub(super) streams: [driver::sys::CUstream; 2],
    pub(super) workspaces: [u64; 2],
}

pub(super) const WORKSPACE: usize = 64 << 20;

fn failed(error: CublasError) -> Error {
    Error::Cuda { doing: "multiply", detail: format!("{:?}", error.0) }
}

/// Lengths that vary from batch to batch share an algorithm with their neighbours.
fn bucket(size: usize) -> usize {
    if size < 1024 { size } else { size.next_multiple_of(size.next_power_of_two() / 8) }
}

struct Layouts([sys::cublasLtMatrixLayout_t; 3]);

impl Drop for Layouts {
    #[expect(unsafe_code, reason = "a call of the library")]
    fn drop(&mut self) {
        for layout in self.0 {
            // SAFETY: it was created with the others and is destroyed once.
            let _ = unsafe { result::destroy_matrix_layout(layout) };
        }
    }
}

impl Products {
    #[expect(unsafe_code, reason = "calls of the library")]
    pub(super) fn new(
        precision: Precision,
        streams: [driver::sys::CUstream; 2],
        choices: Option<Choices>,
    ) -> Result<Self> {
        let preference = result::create_matmul_pref().map_err(failed)?;
        let attribute = sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
        let size = WORKSPACE;
        // SAFETY: the attribute is a size; the memory is the library's own to write.
        let workspaces = unsafe {
            result::set_matmul_pref_attribute(preference, attribute, (&raw const size).cast(), size_of::<usize>())
                .map_err(failed)?;
            let take = || driver::result::malloc_sync(WORKSPACE).map_err(super::context::driver("take memory"));
            [take()?, take()?]
        };
        Ok(Self {
            handle: result::create_handle().map_err(failed)?,
            precision,
            preference,
            descriptions: HashMap::new(),
            algorithms: HashMap::new(),
            choices,
            streams,
            workspaces,
        })
    }

    fn kinds(&self, wide: bool) -> [sys::cudaDataType; 3] {
        use sys::cudaDataType_t::{CUDA_R_16BF, CUDA_R_32F};
        let narrow = if self.precision == Precision::Bf16 { CUDA_R_16BF } else { CUDA_R_32F };
        [narrow, narrow, if wide { CUDA_R_32F } else { narrow }]
    }

    #[expect(unsafe_code, reason = "calls of the library")]
    fn description(&mut self, form: Form) -> Result<sys::cublasLtMatmulDesc_t> {
        use sys::cublasComputeType_t::{CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
        use sys::cublasLtMatmulDescAttributes_t as Attribute;
        if let Some(&known) = self.descriptions.get(&form) {
            return Ok(known);
        }
        let compute = if self.precision == Precision::Tf32 { CUBLAS_COMPUTE_32F_FAST_TF32 } else { CUBLAS_COMPUTE_32F };
        let description = result::create_matmul_desc(compute, sys::cudaDataType_t::CUDA_R_32F).map_err(failed)?;
        let [a_turned, b_turned] = form.turned;
        // The library's first operand is B.
        let epilogue = if form.has_bias {
            sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS
        } else {
            sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_DEFAULT
        };
        for (attribute, value) in [
            (Attribute::CUBLASLT_MATMUL_DESC_TRANSA, i32::from(b_turned)),
            (Attribute::CUBLASLT_MATMUL_DESC_TRANSB, i32::from(a_turned)),
            (Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue as i32),
        ] {
            // SAFETY: the attribute is a number of four bytes.
            unsafe {
                result::set_matmul_desc_attribute(description, attribute, (&raw const value).cast(), 4)
                    .map_err(failed)?;
            }
        }
        self.descriptions.insert(form, description);
        Ok(description)
    }

    fn layouts(&self, p: &Product, [m, n, k]: [usize; 3]) -> Result<Layouts> {
        let [b_kind, a_kind, c_kind] = self.kinds(p.wide);
        // As the library sees them: columns of the length of our rows.
        let layout = |kind, rows: usize, cols: usize| {
            result::create_matrix_layout(kind, rows as u64, cols as u64, i64::try_from(rows).unwrap_or(i64::MAX))
                .map_err(failed)
        };
        let b = if p.b_turned { layout(b_kind, k, n)? } else { layout(b_kind, n, k)? };
        let a = if p.a_turned { layout(a_kind, m, k)? } else { layout(a_kind, k, m)? };
        Ok(Layouts([b, a, layout(c_kind, n, m)?]))
    }

    /// The algorithms that the library thinks of for these sizes, the likeliest first, at most `most`.
    #[expect(unsafe_code, reason = "calls of the library")]
    pub(super) fn candidates(&mut self, p: &Product, sizes: [usize; 3], most: usize) -> Result<Vec<Algo>> {
        let description = self.description(p.form())?;
        let layouts = self.layouts(p, sizes)?;
        let [b, a, c] = layouts.0;
        let mut found = vec![MaybeUninit::<sys::cublasLtMatmulHeuristicResult_t>::uninit(); most];
        let mut count = 0;
        // SAFETY: all descriptors are alive, there is room for as many answers as are asked for, and as many as are
        // counted have been written.
        unsafe {
            let (wanted, answers) = (i32::try_from(most).unwrap_or(i32::MAX), found.as_mut_ptr().cast());
            let (handle, preference) = (self.handle, self.preference);
            sys::cublasLtMatmulAlgoGetHeuristic(
                handle,
                description,
                b,
                a,
                c,
                c,
                preference,
                wanted,
                answers,
                &raw mut count,
            )
            .result()
            .map_err(failed)?;
            let found = found.into_iter().take(usize::try_from(count).unwrap_or(0));
            let found = found.map(|answer| answer.assume_init());
            Ok(found.filter(|answer| answer.state.result().is_ok()).map(|answer| answer.algo).collect())
        }
    }

    /// The algorithm for these sizes: the one that was fastest, or where nothing is measured the likeliest.
    fn algorithm(&mut self, p: &Product, sizes: [usize; 3], lane: Lane) -> Result<Algo> {
        let key = Key::new(p, sizes);
        if let Some(known) = self.algorithms.get(&key) {
            return Ok(*known);
        }
        match self.fastest(p, &key, lane)? {
            Some(fastest) => Ok(*self.algorithms.entry(key).or_insert(fastest)),
            None => self.likeliest(p, key),
        }
    }

    fn likeliest(&mut self, p: &Product, key: Key) -> Result<Algo> {
        let [m, n, k] = key.sizes;
        let missing =
            || Error::Cuda { doing: "multiply", detail: format!("no algorithm for [{m}, {k}] · [{k}, {n}]") };
        let found = *self.candidates(p, key.sizes, 1)?.first().ok_or_else(missing)?;
        Ok(*self.algorithms.entry(key).insert_entry(found).get())
    }

    /// Computes a product with an algorithm of the library's.
    #[expect(unsafe_code, reason = "calls of the library")]
    pub(super) fn run_with(&mut self, algorithm: &Algo, p: &Product, lane: Lane) -> Result<()> {
        let description = self.description(p.form())?;
        if p.bias != 0 {
            let attribute = sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_BIAS_POINTER;
            // SAFETY: the attribute is a pointer; the library reads the description before the call below returns.
            unsafe {
                result::set_matmul_desc_attribute(description, attribute, (&raw const p.bias).cast(), size_of::<u64>())
                    .map_err(failed)?;
            }
        }
        let layouts = self.layouts(p, [p.m, p.n, p.k])?;
        let [b, a, c] = layouts.0;
        let (alpha, beta) = (1.0_f32, if p.add { 1.0_f32 } else { 0.0 });
        let lane = usize::from(lane == Lane::Side);
        // SAFETY: the matrices lie where `p` says, as large as it says; the workspace is used by one product at a time,
        // since it belongs to one stream.
        unsafe {
            result::matmul(
                self.handle,
                description,
                (&raw const alpha).cast(),
                (&raw const beta).cast(),
                p.b as *const c_void,
                b,
                p.a as *const c_void,
                a,
                p.c as *const c_void,
                c,
                p.c as *mut c_void,
                c,
                algorithm,
                self.workspaces[lane] as *mut c_void,
                WORKSPACE,
                self.streams[lane].cast(),
            )
        }
        .map_err(failed)
    }

    fn run(&mut self, p: &Product, lane: Lane) -> Result<()> {
        let Product { m, n, k, .. } = *p;
        // Only the number of rows varies from batch to batch, and no row's length depends on it.
        let near = if p.a_turned { [m, n, bucket(k)] } else { [bucket(m), n, k] };
        let algorithm = self.algorithm(p, near, lane)?;
        self.run_with(&algorithm, p, lane).or_else(|_| {
            // The neighbour's algorithm does not do for this size: ask for its own.
            let key = Key::new(p, [m, n, k]);
            let known = self.algorithms.get(&key).copied().filter(|_| near != key.sizes);
            let own = known.map_or_else(|| self.likeliest(p, key), Ok)?;
            self.run_with(&own, p, lane)
        })
    }
}

impl Context {
    /// Computes a product. Of an empty inner size it is 0.
    pub(super) fn multiply(&self, product: &Product) -> Result<()> {
        self.multiply_on(Lane::Main, product)
    }

    /// The same on one of the streams.
    pub(super) fn multiply_on(&self, lane: Lane, product: &Product) -> Result<()> {
        let Product { m, n, k, c, add, wide, .. } = *product;
        if m == 0 || n == 0 {
            return Ok(());
        }
        if k == 0 {
            let size = if wide { 4 } else { self.precision.bytes() };
            return if add { Ok(()) } else { self.fill_zero(c, m * n * size) };
        }
        self.products().run(product, lane)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn neighbours_share_a_bucket_and_small_sizes_do_not() {
        assert_eq!([1, 200, 1023].map(super::bucket), [1, 200, 1023]);
        assert_eq!(super::bucket(25_000), super::bucket(25_600));
    }
}
