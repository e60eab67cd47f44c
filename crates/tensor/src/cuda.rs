//! The same operations on an NVIDIA GPU. Driver, compiler and products are found at run time; nothing is linked.
//!
//! Everything runs in the order in which it was asked for, so that a buffer may be used again as soon as its owner lets
//! go of it; only gradients of parameters grow on a stream of their own, which the pass waits for at its end. The host
//! waits only where it reads a value.

mod attend;
mod bank;
mod cells;
mod choices;
mod compile;
mod context;
mod encoder;
mod linear;
pub(crate) mod measure;
mod memory;
mod narrow;
mod product;
mod record;
mod resident;
mod rows;
mod side;
mod tune;
mod values;

pub(crate) use attend::{Attend, Columns};
pub(crate) use context::Context;
pub(crate) use encoder::{Block, Stack, WIDEST, WIDEST_HEAD};
pub(crate) use memory::{Buffer, Staged};
pub(crate) use record::Copies;
pub(crate) use record::Record;
pub(crate) use resident::{Resident, Teacher};
