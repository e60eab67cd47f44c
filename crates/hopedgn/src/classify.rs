//! Node classification: the label of an event, from what a trained model makes of its source.
//!
//! The protocol is DyGLib's. A model of link prediction is frozen; what it makes of the source of every event, at its time
//! and from what happened strictly before, is what a small [`Classifier`] learns from. Training events are all up to the
//! validation time, those of masked nodes included. Labels are rare, so AUC is taken over a whole part, and the epoch with
//! the best one on validation is tested.
//!
//! # Differences from DyGLib
//! - **Embedding** is done once: nothing that it depends on changes from epoch to epoch. A memory starts empty and lives
//!   through training, validation and test in order, as it does in each epoch there.
//! - **Gaps** of JODIE are long or short by what was usual in link prediction's training, which is part of what was learned.
//!   DyGLib takes them anew from the training events of this task.

mod classifier;
mod labels;
mod learn;
mod sources;

use std::time::Instant;

use crate::callbacks::Callback;
use crate::evaluate::Evaluator;
use crate::metrics::{LabelMetrics, Parts};
use crate::system;
use crate::{Error, Result};

pub use classifier::Classifier;
pub use labels::Labels;
pub use sources::{Batch, Sources};

/// How labels are learned; the defaults are DyGLib's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LabelConfig {
    /// Passes over the training events at most.
    pub epochs: usize,
    /// Epochs without a better one before learning ends.
    pub patience: usize,
    /// Adam's learning rate.
    pub lr: f64,
    /// Of the classifier's two hidden layers.
    pub dropout: f32,
    /// Decides initial weights and dropout.
    pub seed: u64,
    /// Bytes that embeddings may take; `None`: what the system reports as free.
    pub max_memory: Option<u64>,
}

impl Default for LabelConfig {
    fn default() -> Self {
        Self { epochs: 100, patience: 20, lr: 1e-4, dropout: 0.1, seed: 0, max_memory: None }
    }
}

impl LabelConfig {
    fn check(&self) -> Result<()> {
        for (name, found) in [("epochs", self.epochs), ("patience", self.patience)] {
            if found == 0 {
                return Err(Error::Setting { name, found: found.to_string(), expected: "at least 1".to_owned() });
            }
        }
        Ok(())
    }
}

/// How well labels are told.
#[derive(Debug, Clone, PartialEq)]
pub struct Classified {
    /// Epochs learned.
    pub epochs: usize,
    /// The epoch whose weights were tested.
    pub best_epoch: usize,
    /// Metrics with those weights, dropout left out.
    pub metrics: Parts<LabelMetrics>,
    /// Events of each part.
    pub events: Parts<usize>,
    /// Events of label 1 among them.
    pub positives: Parts<usize>,
    /// Weights of the classifier.
    pub parameters: usize,
    /// Seconds of embedding all events.
    pub embed_seconds: f64,
    /// Mean over epochs, validation included.
    pub seconds_per_epoch: f64,
}

/// Embeds the source of every event with the model of `of`, and learns labels from that. When the callback wants to stop,
/// [`Error::Interrupted`] comes after the batch at hand.
///
/// # Complexity
/// One pass of the model over all events, and `events · d-out` values of memory, which are refused beforehand where the
/// callback knows that there is less.
pub fn classify(of: &Evaluator<'_>, config: &LabelConfig, callback: &mut dyn Callback) -> Result<Classified> {
    config.check()?;
    let labels = Labels::of(of.task)?;
    let start = Instant::now();
    let sources = Sources::embed(of, &labels, config.max_memory.or_else(system::free_memory), callback)?;
    let embed_seconds = start.elapsed().as_secs_f64();
    let learned = learn::learn(of.weights.device(), &sources, config, callback)?;
    Ok(Classified {
        epochs: learned.epochs,
        best_epoch: learned.best_epoch,
        metrics: learned.metrics,
        events: labels.events(),
        positives: labels.positives(),
        parameters: learned.parameters,
        embed_seconds,
        seconds_per_epoch: learned.seconds / learned.epochs.max(1) as f64,
    })
}
