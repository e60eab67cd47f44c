//! Continuous-time dynamic graphs, without tensors: streams of timestamped interactions, their files, their past, and
//! the rules by which predictions about them are compared.
//!
//! ```
//! use ctdg::event::NodeId;
//! use ctdg::split::{MASK_SEED, Mode, SplitRule};
//! use ctdg::store::Store;
//!
//! let stream = ctdg::dataset::collegemsg()?;
//! let split = SplitRule::of(&stream, Mode::Dyglib, MASK_SEED)?.apply(&stream)?;
//! let store = Store::of_events(&stream, &split.train)?;
//!
//! // All that node 0 did before the validation period, and nothing later.
//! let past = store.history(NodeId(0), stream.cut(split.rule.val_time));
//! assert!(past.times.iter().all(|&time| time < split.rule.val_time));
//! # Ok::<(), ctdg::Error>(())
//! ```
//!
//! In reading order:
//!
//! | module | what it holds |
//! |---|---|
//! | [`event`] | events, streams, names, and the one strictly-before cut |
//! | [`dataset`] | files in and out, the bundled set |
//! | [`fetch`] | the paper's data sets from their public homes |
//! | [`generate`] | seeded streams: a known best score, and known sizes |
//! | [`summary`] | what a data set looks like |
//! | [`store`] | the past of nodes and pairs |
//! | [`sample`], [`mite`] | bounded histories of nodes; tokens of pairs with their intervals |
//! | [`positions`] | how many walks lead from node to node |
//! | [`split`], [`negative`], [`metric`] | the protocol: parts, pairs that did not happen, scores |
//! | [`heuristic`] | untrained scores to print beside every model |
//! | [`wl`] | k-dimensional dynamic Weisfeiler-Lehman tests |
//! | [`random`], [`python`] | our named random streams; Python's and `NumPy`'s, bit for bit |

pub mod dataset;
pub mod error;
pub mod event;
#[cfg(feature = "fetch")]
pub mod fetch;
pub mod generate;
pub mod heuristic;
pub mod metric;
pub mod mite;
pub mod negative;
pub mod py_compat;
pub mod random;
pub mod sample;
pub mod split;
pub mod store;
pub mod summary;
pub mod svg;
pub mod walk_counts;
pub mod wl;

pub use error::{Error, Problem, Result};

/// The README's code, so that it is compiled and run with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
