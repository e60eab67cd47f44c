//! HopeDGN: learn from a stream of timestamped interactions which pair meets next.
//!
//! ```
//! use hopedgn::{Events, LinkPredictor, ModelName};
//!
//! // Ten people, each of whom writes to the next one again and again.
//! let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
//! let events = Events::from_tuples(messages)?;
//! let builder = LinkPredictor::builder().model(ModelName::GraphMixer).set("model.d-out=8");
//! let predictor = builder.epochs(1).fit(&events)?;
//! let best = predictor.recommend("3", 2, events.end())?; // the two most likely destinations
//! assert_eq!(best[0].probability, predictor.predict("3", &best[0].dst, events.end())?);
//! # Ok::<(), hopedgn::Error>(())
//! ```
//!
//! In reading order:
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | every setting with its default, presets |
//! | [`task`] | a dataset prepared for training: split, stores, features |
//! | [`collate`] | tokens of pairs as tensors |
//! | [`model`], [`memory`], [`nn`] | HopeDGN and the baselines; node memories; layers |
//! | [`score`] | the one path from pairs to logits |
//! | [`train`], [`callbacks`] | the training loop; progress, reports, `TensorBoard` |
//! | [`evaluate`], [`metrics`] | the protocol's passes, ranking, heuristics beside the model |
//! | [`predict`], [`explain`] | scores of any pairs, and why a pair got its score |
//! | [`classify`] | node classification with a trained model |
//! | [`run`] | run folders: checkpoints, metrics, summary, report |
//! | [`fmt`] | numbers for people |

pub mod callbacks;
pub mod chart;
pub mod classify;
pub mod collate;
pub mod config;
mod error;
pub mod evaluate;
mod events;
pub mod explain;
pub mod fmt;
pub mod html;
pub mod memory;
pub mod metrics;
pub mod model;
pub mod nn;
pub mod predict;
mod predictor;
mod prefetch;
pub mod run;
pub mod score;
mod system;
pub mod task;
pub mod train;

pub use ctdg;
pub use hopedgn_tensor as tensor;

pub use config::{Config, ModelName, ModelRegistry, Preset};
pub use ctdg::dataset::ReadOptions;
pub use error::{Error, Result};
pub use evaluate::Evaluation;
pub use events::Events;
pub use explain::Explanation;
pub use hopedgn_tensor::{CudaOptions, Device, Precision};
pub use model::Model;
pub use predictor::{EvaluateOptions, LinkPredictor, LinkPredictorBuilder, LinkPredictorLoader, Recommendation};

/// The README's code, compiled with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
