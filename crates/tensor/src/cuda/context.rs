//! The first GPU: its context, its stream, its kernels.

use std::collections::BTreeMap;
use std::ffi::{CString, c_void};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use cudarc::{cublaslt, nvrtc};

use super::compile;
use super::gemm::Products;
use super::memory::{Event, Pinned, Pool, Staging};
use super::streams::{self, Lane, Side};
use super::tune;
use crate::device::CudaOptions;
use crate::{Error, Precision, Result};

/// A GPU that is ready to compute.
pub(crate) struct Context {
    pub(crate) precision: Precision,
    pub(crate) card: String,
    handle: sys::CUcontext,
    pub(super) stream: sys::CUstream,
    pub(super) side: Side,
    functions: BTreeMap<&'static str, sys::CUfunction>,
    n_processors: u32,
    /// Whether kernels are sent to the card while those before them are still at work. In bf16 a step gains 4% from
    /// that; in TF32, whose kernels leave others less room, it loses 1.5%.
    is_sent_ahead: bool,
    /// Bytes of shared memory that a block of attention can have.
    pub(super) most_shared: u32,
    pool: Mutex<Pool>,
    staging: Mutex<Staging>,
    /// Pinned memory that nobody has, with the place behind which the card has read it.
    spare: Mutex<Vec<(Pinned, Event)>>,
    products: Mutex<Products>,
}

#[expect(unsafe_code, reason = "handles of the driver, which may be used from any thread")]
// SAFETY: the driver's handles are valid on every thread that makes the context current, which every entry does; what
// is changed lies behind a mutex.
unsafe impl Send for Context {}
#[expect(unsafe_code, reason = "handles of the driver, which may be used from any thread")]
// SAFETY: as above.
unsafe impl Sync for Context {}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("card", &self.card).field("precision", &self.precision).finish_non_exhaustive()
    }
}

/// An argument of a kernel: any value of at most 32 bytes.
#[derive(Clone, Copy)]
#[repr(align(8))]
pub(super) struct Arg(#[expect(dead_code, reason = "the driver reads it")] [u32; 8]);

impl From<u64> for Arg {
    #[expect(clippy::cast_possible_truncation, reason = "both halves are kept")]
    fn from(x: u64) -> Self {
        Self([x as u32, (x >> 32) as u32, 0, 0, 0, 0, 0, 0])
    }
}

impl From<u32> for Arg {
    fn from(x: u32) -> Self {
        u64::from(x).into()
    }
}

impl From<f32> for Arg {
    fn from(x: f32) -> Self {
        x.to_bits().into()
    }
}

impl From<f64> for Arg {
    fn from(x: f64) -> Self {
        x.to_bits().into()
    }
}

impl From<[u32; 4]> for Arg {
    fn from([a, b, c, d]: [u32; 4]) -> Self {
        Self([a, b, c, d, 0, 0, 0, 0])
    }
}

impl From<[f32; 7]> for Arg {
    fn from(x: [f32; 7]) -> Self {
        let mut bits = [0; 8];
        bits.iter_mut().zip(x).for_each(|(bits, x)| *bits = x.to_bits());
        Self(bits)
    }
}

/// Kernel arguments of mixed types.
macro_rules! args {
    ($($x:expr),* $(,)?) => { &[$($crate::cuda::context::Arg::from($x)),*] };
}
pub(super) use args;

/// How many threads a kernel gets.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    pub(super) blocks: (u32, u32),
    pub(super) threads: (u32, u32),
    /// Bytes of shared memory.
    pub(super) shared: u32,
}

pub(super) fn driver(doing: &'static str) -> impl Fn(DriverError) -> Error {
    move |error| {
        let name = error.error_string().ok().map(|text| text.to_string_lossy().into_owned());
        Error::Cuda { doing, detail: name.unwrap_or_else(|| format!("{error:?}")) }
    }
}

/// Free memory below which a card is of no use: weights, a small batch and the workspace of products.
const LEAST_MEMORY: usize = 512 << 20;

fn no_gpu(reason: impl Into<String>) -> Error {
    Error::NoGpu { reason: reason.into() }
}

/// More than the shared memory that any kernel has besides what it asks for.
const STATIC_SHARED: i32 = 1024;

/// What a card counts in the second direction of a grid.
const MOST_STRIPS: u32 = 65_535;

impl Context {
    /// The first GPU.
    #[expect(unsafe_code, reason = "calls of the driver")]
    pub(crate) fn new(options: &CudaOptions) -> Result<Arc<Self>> {
        // SAFETY: these only look for libraries.
        let (has_driver, has_compiler, has_products) =
            unsafe { (sys::is_culib_present(), nvrtc::sys::is_culib_present(), cublaslt::sys::is_culib_present()) };
        if !has_driver {
            return Err(no_gpu("no NVIDIA driver was found (libcuda)"));
        }
        if !has_products {
            return Err(no_gpu("cuBLASLt was not found (libcublasLt); install the CUDA libraries"));
        }
        result::init().map_err(|error| no_gpu(driver("start")(error).to_string()))?;
        if result::device::get_count().map_err(driver("count"))? == 0 {
            return Err(no_gpu("the NVIDIA driver knows no GPU"));
        }
        let device = result::device::get(0).map_err(driver("open"))?;
        let card = result::device::get_name(device).map_err(driver("name"))?;
        // SAFETY: the device is one the driver has just given; a context of it is kept for as long as the program runs.
        let (handle, arch, n_processors, most_shared) = unsafe {
            use sys::CUdevice_attribute_enum as Attribute;
            let attribute = |which| result::device::get_attribute(device, which).map_err(driver("ask the card"));
            let arch = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)? * 10
                + attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
            let n_processors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
            let most_shared = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
            let handle = result::primary_ctx::retain(device).map_err(driver("open"))?;
            result::ctx::set_current(handle).map_err(driver("open"))?;
            (handle, arch, n_processors, (most_shared - STATIC_SHARED).min(compile::ATTENTION_SHARED))
        };
        if arch < 80 {
            return Err(no_gpu(format!("{card} has compute capability {arch}; at least 80 (Ampere) is needed")));
        }
        let (free, total) = result::mem_get_info().map_err(driver("ask the card"))?;
        if free < LEAST_MEMORY {
            let [free, total, least] = [free, total, LEAST_MEMORY].map(|bytes| bytes >> 20);
            let reason = format!("{card} has {free} of its {total} MiB of memory free; at least {least} are needed");
            return Err(no_gpu(reason));
        }
        let binary = compile::binary(arch, options, has_compiler)?;
        let (stream, side) = streams::streams()?;
        let functions = load(&binary, most_shared).or_else(|_| {
            // What was kept may have been damaged since.
            compile::forget(arch, options);
            load(&compile::binary(arch, options, has_compiler)?, most_shared)
        })?;
        let streams = [stream, side.stream];
        let choices = tune::choices(options, &card);
        let products = Products::new(options.precision, streams, choices)?;
        let context = Self {
            precision: options.precision,
            card,
            handle,
            stream,
            side,
            functions,
            n_processors: u32::try_from(n_processors).unwrap_or(1),
            is_sent_ahead: arch >= 90 && options.precision == Precision::Bf16,
            most_shared: u32::try_from(most_shared).unwrap_or(0),
            pool: Mutex::default(),
            staging: Mutex::default(),
            spare: Mutex::default(),
            products: Mutex::new(products),
        };
        Ok(Arc::new(context))
    }

    /// Makes the card the calling thread's own.
    #[expect(unsafe_code, reason = "a call of the driver")]
    pub(crate) fn enter(&self) -> Result<()> {
        // SAFETY: the context is never released.
        unsafe { result::ctx::set_current(self.handle) }.map_err(driver("enter"))
    }

    /// Waits for all that was asked for.
    #[expect(unsafe_code, reason = "a call of the driver")]
    pub(super) fn wait(&self) -> Result<()> {
        // SAFETY: the stream lives as long as `self`.
        unsafe { result::stream::synchronize(self.stream) }.map_err(driver("compute"))
    }

    /// Runs a kernel.
    pub(super) fn launch(&self, name: &'static str, grid: Grid, args: &[Arg]) -> Result<()> {
        self.launch_on(Lane::Main, name, grid, args)
    }

    /// Runs a kernel on one of the streams.
    #[expect(unsafe_code, reason = "a kernel reads what its arguments point to")]
    pub(super) fn launch_on(&self, lane: Lane, name: &'static str, grid: Grid, args: &[Arg]) -> Result<()> {
        if grid.blocks.0 == 0 || grid.blocks.1 == 0 {
            return Ok(());
        }
        if grid.blocks.1 > MOST_STRIPS {
            return Err(Error::NotOnGpu { operation: "one batch of more than four million rows" });
        }
        let function = self.functions.get(name).copied();
        let function = function.ok_or(Error::Cuda { doing: name, detail: "there is no such kernel".into() })?;
        let mut places: Vec<*mut c_void> = args.iter().map(|arg| std::ptr::from_ref(arg) as *mut c_void).collect();
        let mut ahead = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: [0; 4],
            value: sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
        };
        let config = sys::CUlaunchConfig {
            gridDimX: grid.blocks.0,
            gridDimY: grid.blocks.1,
            gridDimZ: 1,
            blockDimX: grid.threads.0,
            blockDimY: grid.threads.1,
            blockDimZ: 1,
            sharedMemBytes: grid.shared,
            hStream: self.stream_of(lane),
            attrs: &raw mut ahead,
            numAttrs: u32::from(self.is_sent_ahead),
        };
        // SAFETY: the driver copies as many bytes of each argument as the kernel declares, at most the 32 of an `Arg`;
        // each call stands beside the kernel's declaration in this folder. A kernel that is sent ahead waits by itself for
        // those before it.
        unsafe { sys::cuLaunchKernelEx(&raw const config, function, places.as_mut_ptr(), std::ptr::null_mut()) }
            .result()
            .map_err(driver(name))
    }

    /// Runs a kernel that walks over `n` values in steps of its whole grid.
    pub(super) fn each(&self, name: &'static str, n: usize, args: &[Arg]) -> Result<()> {
        let blocks = u32::try_from(n.div_ceil(256)).unwrap_or(u32::MAX).min(16 * self.n_processors);
        self.launch(name, Grid { blocks: (blocks, 1), threads: (256, 1), shared: 0 }, args)
    }

    pub(super) fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn staging(&self) -> MutexGuard<'_, Staging> {
        self.staging.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn spare(&self) -> MutexGuard<'_, Vec<(Pinned, Event)>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn products(&self) -> MutexGuard<'_, Products> {
        self.products.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All kernels of a compiled module.
#[expect(unsafe_code, reason = "calls of the driver")]
fn load(binary: &[u8], most_shared: i32) -> Result<BTreeMap<&'static str, sys::CUfunction>> {
    use sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as SHARED;
    // SAFETY: the binary is one that NVRTC made for this card; the module is never unloaded.
    let module = unsafe { result::module::load_data(binary.as_ptr().cast()) }.map_err(driver("load the kernels"))?;
    let mut functions = BTreeMap::new();
    for name in compile::KERNELS {
        let c_name = CString::new(name).unwrap_or_default();
        // SAFETY: the module is loaded.
        let function = unsafe { result::module::get_function(module, c_name) }.map_err(driver(name))?;
        if name.starts_with("attention") || name == "narrow_backward" {
            // SAFETY: the function exists, and the card has as much shared memory.
            unsafe { result::function::set_function_attribute(function, SHARED, most_shared) }.map_err(driver(name))?;
        }
        functions.insert(name, function);
    }
    Ok(functions)
}
