//! Continuous-time dynamic graphs, without tensors.

pub mod error;
pub mod event;
pub mod generate;
pub mod metric;
pub mod random;

pub use error::{Error, Problem, Result};
