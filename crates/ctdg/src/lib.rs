//! Continuous-time dynamic graphs without tensors: event streams, files, temporal neighbor sampling, splits, negatives and
//! metrics for link prediction.
//!
//! ```
//! use ctdg::mite::{PairEncoder, PairEncoderConfig, PairQuery, PairTokens};
//! use ctdg::split::{MASK_SEED, SplitMode, SplitRule};
//! use ctdg::store::Store;
//!
//! // A bundled dataset, split in time as DyGLib does.
//! let stream = ctdg::dataset::collegemsg()?;
//! let split = SplitRule::of(&stream, SplitMode::Dyglib, MASK_SEED)?.apply(&stream)?;
//!
//! // Encode a batch of validation pairs: the histories of both nodes and their interaction intervals (MITE).
//! let store = Store::build(&stream)?;
//! let queries = PairQuery::of(&stream, &split.val[..200]);
//! let mut tokens = PairTokens::default();
//! PairEncoder::new(&store, PairEncoderConfig::default()).encode(&queries, &mut tokens);
//! assert_eq!(tokens.n_pairs(), 200);
//!
//! // A query sees only events strictly before its time.
//! let history = store.history(queries[0].src, store.cut(queries[0].time));
//! assert!(history.times.iter().all(|&time| time < queries[0].time));
//! # Ok::<(), ctdg::Error>(())
//! ```
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | [`event`] | events, streams, node names, the strictly-before cut |
//! | [`time`] | times as numbers and as dates |
//! | [`dataset`] | reading and writing files, the bundled dataset |
//! | [`fetch`] | downloads of public datasets |
//! | [`generate`] | synthetic streams |
//! | [`summary`] | statistics of a stream |
//! | [`index`] | the same as memory-mapped files, for streams larger than memory |
//! | [`store`] | temporal adjacency: histories of nodes and pairs |
//! | [`live`] | a store that grows while it is read |
//! | [`sample`] | temporal neighbor sampling |
//! | [`mite`] | tokens of node pairs with multi-interacted time encoding (MITE) |
//! | [`statistics`] | exact statistics of pairs and nodes over the whole past |
//! | [`triads`] | which common neighbours of a pair met each other |
//! | [`walk_counts`] | temporal walk counts (PINT's positional features) |
//! | [`walks`] | time-decayed temporal walks of pairs by random projections (TPNet's encoding) |
//! | [`split`], [`negative`], [`metric`] | evaluation protocol: splits, negative sampling, metrics |
//! | [`heuristic`] | untrained baselines (`EdgeBank`, recency and popularity) |
//! | [`audit`] | what a dataset and its protocol give away |
//! | [`wl`] | k-dimensional dynamic Weisfeiler-Lehman tests |
//! | [`error`] | the error type: what was found, what was expected, what to do |
//! | [`random`], [`py_compat`] | named random streams; bit-identical Python and NumPy draws |
//! | [`svg`] | SVG writer |

pub mod audit;
pub mod dataset;
pub mod error;
pub mod event;
#[cfg(feature = "fetch")]
pub mod fetch;
pub mod generate;
mod growing;
pub mod heuristic;
mod huge_pages;
pub mod index;
pub mod live;
pub mod meetings;
pub mod metric;
pub mod mite;
pub mod negative;
mod pair_index;
pub mod py_compat;
pub mod random;
mod row_table;
pub mod sample;
pub mod split;
pub mod statistics;
pub mod store;
pub mod summary;
pub mod svg;
pub mod time;
pub mod triads;
pub mod walk_counts;
pub mod walks;
pub mod wl;

pub use error::{Error, Problem, Result};
