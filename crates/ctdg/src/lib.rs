//! Continuous-time dynamic graphs, without tensors.

pub mod dataset;
pub mod error;
pub mod event;

pub use error::{Error, Problem, Result};
