//! HopeDGN: learn from a stream of timestamped interactions which pair meets next.

pub mod config;
mod error;
pub mod record;
pub mod report;
pub mod tensorboard;

pub use error::{Error, Result};
