//! The CUDA backend: context, memory, streams, GEMM and kernel compilation for NVIDIA GPUs.
//!
//! The driver, NVRTC, cuBLASLt and, for several GPUs, NCCL are loaded at run time; nothing is linked. The kernels of an operation and their launches
//! are in the operation's folder in [`crate::op`].
//!
//! All work is submitted to one stream, in order, so a buffer can be reused as soon as it is dropped. Only gradients of
//! parameters are computed on a second stream, which the backward pass joins at its end. The host waits only where it
//! reads a value.

mod compile;
mod context;
mod gemm;
mod gemm_cache;
mod kernels;
pub(crate) mod measure;
mod memory;
mod nccl;
mod params;
mod reduce;
mod streams;
mod tape;
mod tune;

pub(crate) use context::{Context, Grid, check_row_count, dim, one_warp_per_row};
pub(crate) use gemm::Gemm;
pub(crate) use kernels::{Arg, Call, Kernel, kernels};
pub(crate) use memory::{Buffer, PendingCopy, Staged};
pub(crate) use nccl::version as nccl_version;
pub(crate) use params::{CudaAdam, CudaParams};
pub(crate) use reduce::{
    LinearGradPass, STRIP, add_column_sums, add_column_sums_elem, add_partials, add_partials_of_widths,
};
pub(crate) use streams::Stream;
pub(crate) use tape::{CudaBackwardCtx, CudaTape, DeviceCopy, DeviceIndices, GemmOperand, GradTarget};

/// The types of kernel parameters.
pub(crate) mod param {
    pub(crate) use super::kernels::{Double, Ends, Float, Int, Mask, Ptr, RelationSizes, Strides, U64, Update};
}
