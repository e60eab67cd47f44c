//! Continuous-time dynamic graphs, without tensors.

pub mod dataset;
pub mod error;
pub mod event;
#[cfg(feature = "fetch")]
pub mod fetch;
pub mod generate;
pub mod metric;
pub mod mite;
pub mod negative;
pub mod python;
pub mod random;
pub mod sample;
pub mod split;
pub mod store;
pub mod summary;
pub mod wl;

pub use error::{Error, Problem, Result};
