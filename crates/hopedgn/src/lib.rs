//! Link prediction on continuous-time dynamic graphs: which pair of nodes interacts next, and with what probability.
//!
//! [`LinkPredictor`] trains, predicts, recommends, explains, evaluates, saves and loads:
//!
//! ```
//! use hopedgn::{Events, LinkPredictor, ModelName};
//!
//! // Twenty people in a circle; each one writes to the next.
//! let messages = (0..200).map(|i| ((i % 20).to_string(), ((i + 1) % 20).to_string(), f64::from(i)));
//! let events = Events::from_tuples(messages)?;
//! let predictor =
//!     LinkPredictor::builder().model(ModelName::HopeDgn).set("model.d-channel=4").epochs(1).fit(&events)?;
//! let p = predictor.predict("3", "4", events.end())?; // the probability of an interaction just after the last event
//! assert!(p > 0.0 && p < 1.0);
//! # Ok::<(), hopedgn::Error>(())
//! ```
//!
//! # Modules
//!
//! | for | module |
//! |---|---|
//! | settings | [`config`]: every setting with its default, presets |
//! | models of your own | [`model`]: the trait and the registry; [`nn`]: layers; [`collate`]: what a model reads; [`memory`]: node memories |
//! | training | [`callbacks`]: progress, interruption, reports; [`run`]: run folders; [`distributed`]: several workers |
//! | results | [`metrics`], [`evaluate`]: the protocols, with heuristics beside the model; [`explain`], [`classify`] |
//! | below the front door | [`task`], [`score`], [`train`], [`predict`] |
//!
//! [`ctdg`] (events, files, sampling, splits, negatives, metrics, k-DWL) and [`tensor`] (tape, operations, optimizer) are re-exported.
//! Probabilities are named probabilities or scores; logits are named logits.

pub mod callbacks;
#[doc(hidden)] // For the pages of hopedgn-experiments.
pub mod chart;
pub mod classify;
pub mod collate;
pub mod config;
pub mod distributed;
mod error;
pub mod evaluate;
mod events;
pub mod explain;
pub mod file_format;
#[doc(hidden)] // For the texts of hopedgn-experiments and hopedgn-cli.
pub mod fmt;
#[doc(hidden)] // For the pages of hopedgn-experiments.
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
#[doc(hidden)] // For hopedgn-cli.
pub mod system;
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
pub use predict::Candidates;
pub use predictor::{
    EvaluateOptions, LinkPredictor, LinkPredictorBuilder, LinkPredictorLoader, LivePredictor, RecommendOptions,
    Recommendation, ResidentMemory,
};

/// The programs of README and book, compiled with the doc tests.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/src/reference/library.md")]
    struct Library;
    #[doc = include_str!("../../../docs/src/tutorials/csv.md")]
    struct Csv;
    #[doc = include_str!("../../../docs/src/tutorials/event-log.md")]
    struct EventLog;
}
