//! Continuous-time dynamic graphs, without tensors.

pub mod error;
pub mod event;
pub mod wl;

pub use error::{Error, Problem, Result};
