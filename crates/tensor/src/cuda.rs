//! The same operations on an NVIDIA GPU. Driver, compiler and products are found at run time; nothing is linked.
//!
//! Everything runs in the order in which it was asked for, so that a buffer may be used again as soon as its owner lets
//! go of it; only gradients of parameters grow on a stream of their own, which the pass waits for at its end. The host
//! waits only where it reads a value.

mod cells;
mod compile;
mod context;
mod cross_attention;
mod encoder;
mod gemm;
mod gemm_cache;
mod linear;
pub(crate) mod measure;
mod memory;
mod narrow;
mod params;
mod rows;
mod state_table;
mod streams;
mod tape;
mod tune;
mod values;

pub(crate) use context::Context;
pub(crate) use cross_attention::{Attend, Columns};
pub(crate) use encoder::{Block, Stack, WIDEST, WIDEST_HEAD};
pub(crate) use memory::{Buffer, Staged};
pub(crate) use params::{CudaAdam, Resident};
pub(crate) use tape::Copies;
pub(crate) use tape::Record;
