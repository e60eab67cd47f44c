//! What the command line does beyond a single model: grids of runs, the expressivity laboratory, device parity, benchmarks.
//!
//! | module | what it holds |
//! |---|---|
//! | [`experiment`] | grids of runs as TOML, their tables, figures and pages beside the paper's |
//! | [`expressivity`] | which models separate which graphs and pairs, beside k-DWL |
//! | [`device_parity`], [`selftest`] | every operation and every model on a GPU compared with the CPU |
//! | [`bench`](mod@bench) | one training step, measured |

pub mod bench;
pub mod device_parity;
pub mod experiment;
pub mod expressivity;
pub mod selftest;
