//! The CUDA context of the first GPU: streams, kernels and launches.

use std::collections::BTreeMap;
use std::ffi::{CString, c_void};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use cudarc::{cublaslt, nvrtc};

use super::compile;
use super::gemm::Gemms;
use super::kernels::{self, Arg, Call};
use super::memory::{Event, Pinned, Pool, Staging};
use super::streams::{self, GradStream, Stream};
use super::tune;
use crate::device::CudaOptions;
use crate::{Error, Precision, Result};

/// A GPU that is ready to compute.
pub(crate) struct Context {
    pub(crate) precision: Precision,
    pub(crate) gpu_name: String,
    handle: sys::CUcontext,
    pub(super) stream: sys::CUstream,
    pub(super) grad_stream: GradStream,
    functions: BTreeMap<&'static str, sys::CUfunction>,
    n_processors: u32,
    /// Whether kernels are launched while the previous one still runs (programmatic dependent launch). A training step
    /// gains 4% in bf16 and loses 1.5% in TF32, whose kernels leave less room on a multiprocessor.
    overlaps_launches: bool,
    /// Bytes of shared memory that a block of attention can use.
    pub(crate) max_shared_memory: u32,
    pool: Mutex<Pool>,
    staging: Mutex<Staging>,
    /// Free pinned memory, each with the event after which the GPU has read it.
    spare: Mutex<Vec<(Pinned, Event)>>,
    gemms: Mutex<Gemms>,
}

#[expect(unsafe_code, reason = "driver handles, which may be used from any thread")]
// SAFETY: driver handles are valid on every thread that makes the context current, which every entry point does; all
// mutable state is behind a mutex.
unsafe impl Send for Context {}
#[expect(unsafe_code, reason = "driver handles, which may be used from any thread")]
// SAFETY: as for `Send`; shared use only reads the handles or locks a mutex.
unsafe impl Sync for Context {}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("gpu_name", &self.gpu_name)
            .field("precision", &self.precision)
            .finish_non_exhaustive()
    }
}

/// The launch configuration of a kernel.
#[derive(Clone, Copy)]
pub(crate) struct Grid {
    pub(crate) blocks: (u32, u32),
    /// Threads of a block.
    pub(crate) threads: (u32, u32),
    /// Bytes of dynamic shared memory.
    pub(crate) shared: u32,
}

/// A grid with one warp for each row.
pub(crate) fn one_warp_per_row(rows: usize) -> Grid {
    Grid { blocks: (dim(rows.div_ceil(8)), 1), threads: (32, 8), shared: 0 }
}

/// A size as kernels take it.
#[expect(clippy::cast_possible_truncation, reason = "sizes of tensors in GPU memory")]
pub(crate) fn dim(n: usize) -> u32 {
    debug_assert!(u32::try_from(n).is_ok());
    n as u32
}

/// Refuses more rows than kernels count in 32 bits.
pub(crate) fn check_row_count(operation: &'static str, rows: usize) -> Result<()> {
    if i32::try_from(rows).is_ok() { Ok(()) } else { Err(Error::NotOnGpu { operation }) }
}

pub(super) fn driver(doing: &'static str) -> impl Fn(DriverError) -> Error {
    move |error| {
        let name = error.error_string().ok().map(|text| text.to_string_lossy().into_owned());
        Error::Cuda { doing, detail: name.unwrap_or_else(|| format!("{error:?}")) }
    }
}

/// The least free memory: weights, a small batch and the GEMM workspaces.
const MIN_FREE_MEMORY: usize = 512 << 20;

fn no_gpu(reason: impl Into<String>) -> Error {
    Error::NoGpu { reason: reason.into() }
}

/// An upper bound of the static shared memory of a kernel.
const STATIC_SHARED: i32 = 1024;

/// The largest second dimension of a grid.
const MAX_GRID_Y: u32 = 65_535;

impl Context {
    /// The first GPU.
    #[expect(unsafe_code, reason = "driver calls")]
    pub(crate) fn new(options: &CudaOptions) -> Result<Arc<Self>> {
        // SAFETY: these only try to load libraries.
        let (has_driver, has_compiler, has_cublaslt) =
            unsafe { (sys::is_culib_present(), nvrtc::sys::is_culib_present(), cublaslt::sys::is_culib_present()) };
        if !has_driver {
            return Err(no_gpu("no NVIDIA driver was found (libcuda)"));
        }
        if !has_cublaslt {
            return Err(no_gpu("cuBLASLt was not found (libcublasLt); install the CUDA libraries"));
        }
        result::init().map_err(|error| no_gpu(driver("start")(error).to_string()))?;
        if result::device::get_count().map_err(driver("count"))? == 0 {
            return Err(no_gpu("the NVIDIA driver knows no GPU"));
        }
        let device = result::device::get(0).map_err(driver("open"))?;
        let gpu_name = result::device::get_name(device).map_err(driver("name"))?;
        // SAFETY: the driver has just returned this device; its primary context is never released.
        let (handle, arch, n_processors, max_shared) = unsafe {
            use sys::CUdevice_attribute_enum as Attribute;
            let attribute = |which| result::device::get_attribute(device, which).map_err(driver("query the device"));
            let arch = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)? * 10
                + attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
            let n_processors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
            let max_shared = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
            let handle = result::primary_ctx::retain(device).map_err(driver("open"))?;
            result::ctx::set_current(handle).map_err(driver("open"))?;
            (handle, arch, n_processors, (max_shared - STATIC_SHARED).min(compile::ATTENTION_SHARED))
        };
        if arch < 80 {
            return Err(no_gpu(format!("{gpu_name} has compute capability {arch}; at least 80 (Ampere) is needed")));
        }
        let (free, total) = result::mem_get_info().map_err(driver("query the device"))?;
        if free < MIN_FREE_MEMORY {
            let [free, total, least] = [free, total, MIN_FREE_MEMORY].map(|bytes| bytes >> 20);
            let reason =
                format!("{gpu_name} has {free} of its {total} MiB of memory free; at least {least} are needed");
            return Err(no_gpu(reason));
        }
        let binary = compile::binary(arch, options, has_compiler)?;
        let (stream, grad_stream) = streams::create()?;
        let functions = load(&binary, max_shared).or_else(|_| {
            // The cached binary may be damaged.
            compile::remove_cached(arch, options);
            load(&compile::binary(arch, options, has_compiler)?, max_shared)
        })?;
        let streams = [stream, grad_stream.stream];
        let cache = tune::open_cache(options, &gpu_name);
        let gemms = Gemms::new(options.precision, streams, cache)?;
        let context = Self {
            precision: options.precision,
            gpu_name,
            handle,
            stream,
            grad_stream,
            functions,
            n_processors: u32::try_from(n_processors).unwrap_or(1),
            overlaps_launches: arch >= 90 && options.precision == Precision::Bf16,
            max_shared_memory: u32::try_from(max_shared).unwrap_or(0),
            pool: Mutex::default(),
            staging: Mutex::default(),
            spare: Mutex::default(),
            gemms: Mutex::new(gemms),
        };
        Ok(Arc::new(context))
    }

    /// Makes the context current on the calling thread.
    #[expect(unsafe_code, reason = "a driver call")]
    pub(crate) fn enter(&self) -> Result<()> {
        // SAFETY: the context is never released.
        unsafe { result::ctx::set_current(self.handle) }.map_err(driver("enter"))
    }

    /// Waits for all work on the main stream.
    #[expect(unsafe_code, reason = "a driver call")]
    pub(super) fn wait(&self) -> Result<()> {
        // SAFETY: the stream lives as long as `self`.
        unsafe { result::stream::synchronize(self.stream) }.map_err(driver("compute"))
    }

    /// Launches a kernel on the main stream.
    pub(crate) fn launch<const N: usize>(&self, grid: Grid, call: Call<N>) -> Result<()> {
        self.launch_on(Stream::Main, grid, call)
    }

    /// Launches a kernel.
    pub(crate) fn launch_on<const N: usize>(&self, stream: Stream, grid: Grid, call: Call<N>) -> Result<()> {
        let Call { name, args } = call;
        self.launch_with(stream, name, grid, &args)
    }

    /// Launches a 1D kernel whose threads stride over `n` values.
    pub(crate) fn launch_1d<const N: usize>(&self, n: usize, call: Call<N>) -> Result<()> {
        let blocks = u32::try_from(n.div_ceil(256)).unwrap_or(u32::MAX).min(16 * self.n_processors);
        self.launch(Grid { blocks: (blocks, 1), threads: (256, 1), shared: 0 }, call)
    }

    #[expect(unsafe_code, reason = "a kernel dereferences its pointer arguments")]
    fn launch_with(&self, stream: Stream, name: &'static str, grid: Grid, args: &[Arg]) -> Result<()> {
        if grid.blocks.0 == 0 || grid.blocks.1 == 0 {
            return Ok(());
        }
        if grid.blocks.1 > MAX_GRID_Y {
            return Err(Error::NotOnGpu { operation: "one batch of more than four million rows" });
        }
        let function = self.functions.get(name).copied();
        let function = function.ok_or(Error::Cuda { doing: name, detail: "there is no such kernel".into() })?;
        let mut arg_ptrs: Vec<*mut c_void> = args.iter().map(|arg| std::ptr::from_ref(arg) as *mut c_void).collect();
        let mut overlap = sys::CUlaunchAttribute {
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
            hStream: self.raw_stream(stream),
            attrs: &raw mut overlap,
            numAttrs: u32::from(self.overlaps_launches),
        };
        // SAFETY: the driver copies as many bytes of each argument as the kernel declares, at most the 32 of an `Arg`. A
        // `Call` has the parameters of the kernel's Rust declaration, which a test compares with the CUDA source. Pointer
        // arguments are device buffers that the caller keeps alive, or null where the kernel checks for it. A kernel that
        // overlaps the previous one waits for its writes first, which a test checks as well.
        unsafe { sys::cuLaunchKernelEx(&raw const config, function, arg_ptrs.as_mut_ptr(), std::ptr::null_mut()) }
            .result()
            .map_err(driver(name))
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

    pub(super) fn gemms(&self) -> MutexGuard<'_, Gemms> {
        self.gemms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Loads all kernels of a compiled module.
#[expect(unsafe_code, reason = "driver calls")]
fn load(binary: &[u8], max_shared: i32) -> Result<BTreeMap<&'static str, sys::CUfunction>> {
    use sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as SHARED;
    // SAFETY: the binary is an ELF file of NVRTC for this architecture, which the driver validates; the module is never
    // unloaded.
    let module = unsafe { result::module::load_data(binary.as_ptr().cast()) }.map_err(driver("load the kernels"))?;
    let mut functions = BTreeMap::new();
    for kernel in kernels::all() {
        let name = kernel.name;
        let c_name = CString::new(name).unwrap_or_default();
        // SAFETY: the module is loaded.
        let function = unsafe { result::module::get_function(module, c_name) }.map_err(driver(name))?;
        if kernel.needs_large_shared_memory() {
            // SAFETY: the function is loaded, and the device has this much shared memory.
            unsafe { result::function::set_function_attribute(function, SHARED, max_shared) }.map_err(driver(name))?;
        }
        functions.insert(name, function);
    }
    Ok(functions)
}
