//! HopeDGN: learn from a stream of timestamped interactions which pair meets next.
//!
//! In reading order:
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | every setting with its default, presets |
//! | [`task`] | a data set made ready: split, past, features |
//! | [`encode`] | tokens of pairs as tensors |
//! | [`model`], [`memory`] | HopeDGN and the models it is compared with; what some of them keep of each node |
//! | [`score`] | the one way from pairs to scores |
//! | [`evaluate`], [`examine`] | the protocol's passes, ranking; a model beside heuristics |
//! | [`answer`], [`explain`] | the scores of any pairs, and why a pair got its score |
//! | [`lab`] | which models tell which graphs and pairs apart |
//! | [`train`] | the training loop |
//! | [`classify`] | node classification with a trained model |
//! | [`run`] | run folders: state, metrics, summary, report |
//! | [`experiment`] | grids of runs as data, and their tables beside the paper's |
//! | [`report`], [`tensorboard`] | a run for people and for `TensorBoard` |
//! | [`selftest`], [`bench`](mod@bench) | checks and measurements of this machine |
//! | [`record`], [`observe`], [`number`] | what is written down, how long work is watched, numbers for people |

mod ahead;
pub mod answer;
pub mod bench;
pub mod classify;
pub mod config;
pub mod encode;
mod error;
pub mod evaluate;
pub mod examine;
pub mod experiment;
pub mod explain;
pub mod lab;
pub mod memory;
pub mod model;
mod nn;
pub mod number;
pub mod observe;
pub mod record;
pub mod report;
pub mod run;
pub mod score;
pub mod selftest;
pub mod task;
pub mod tensorboard;
pub mod train;

pub use error::{Error, Result};
pub use hopedgn_tensor::{CudaOptions, Device, Error as TensorError, Heads, Precision, Weights};
