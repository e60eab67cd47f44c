//! Continuous-time dynamic graphs, without tensors.

pub mod error;
pub mod event;
#[cfg(feature = "fetch")]
pub mod fetch;

pub use error::{Error, Problem, Result};
