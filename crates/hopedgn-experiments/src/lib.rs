//! Experiments of the command line: grids of runs, expressivity, device parity, benchmarks.
//!
//! | module | what it holds |
//! |---|---|
//! | [`experiment`] | grids of runs as TOML; tables, figures and pages beside the paper's values |
//! | [`expressivity`] | which models separate which graphs and pairs, beside k-DWL |
//! | [`device_parity`], [`selftest`] | every operation and model on a GPU, compared with the CPU |
//! | [`bench`](mod@bench) | benchmark of a training step |

pub mod bench;
pub mod device_parity;
pub mod experiment;
pub mod expressivity;
pub mod selftest;
