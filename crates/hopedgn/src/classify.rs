//! Node classification: the label of an event from a frozen embedding of its source node.
//!
//! The protocol is DyGLib's. A link predictor is frozen and embeds the source node of every event from events strictly before it;
//! a small [`Classifier`] is trained on these embeddings. Training events are all up to the validation time, masked nodes
//! included. Labels are rare, so AUC is computed over a whole part; the epoch with the best validation AUC is tested.
//!
//! # Differences from DyGLib
//! - **Embeddings** are computed once, since nothing they depend on changes between epochs. A memory starts empty and is updated
//!   through training, validation and test events in order, as in each epoch of DyGLib.
//! - **Elapsed times** of JODIE are scaled by the statistics of link prediction's training events, which belong to the trained
//!   model. DyGLib computes them from the training events of this task.

mod classifier;
mod labels;
mod learn;
mod sources;

use std::time::Instant;

use crate::callbacks::Callback;
use crate::evaluate::Evaluator;
use crate::metrics::{LabelMetrics, Parts};
use crate::{Error, Result};

pub use classifier::Classifier;
pub use labels::Labels;
pub use sources::{Batch, Sources};

/// Settings of the node classifier; the defaults are DyGLib's.
///
/// ```
/// use hopedgn::classify::LabelConfig;
///
/// let config = LabelConfig { epochs: 20, seed: 1, ..LabelConfig::default() };
/// assert_eq!((config.patience, config.max_memory), (20, None));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LabelConfig {
    /// Training epochs at most.
    pub epochs: usize,
    /// Epochs without a better validation AUC before training stops.
    pub patience: usize,
    /// Learning rate of Adam.
    pub lr: f64,
    /// Dropout probability of both hidden layers.
    pub dropout: f32,
    /// Seed of initial weights and dropout.
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

/// Results of node classification.
///
/// Made by [`classify`].
#[derive(Debug, Clone, PartialEq)]
pub struct Classified {
    /// Epochs trained.
    pub epochs: usize,
    /// The epoch whose weights were tested.
    pub best_epoch: usize,
    /// Metrics with those weights.
    pub metrics: Parts<LabelMetrics>,
    /// Number of events of each part.
    pub events: Parts<usize>,
    /// Number of events with label 1.
    pub positives: Parts<usize>,
    /// Number of parameters of the classifier.
    pub parameters: usize,
    /// Seconds spent on embedding all events.
    pub embed_seconds: f64,
    /// Mean time of an epoch, validation included.
    pub seconds_per_epoch: f64,
}

/// Embeds the source node of every event with the model of `of`, then trains and tests a classifier of labels. When the callback
/// asks to stop, the current batch is completed and [`Error::Interrupted`] returned.
///
/// # Complexity
/// One forward pass over all events, and `events · d` values of memory; refused beforehand if that is more than
/// [`LabelConfig::max_memory`].
///
/// ```
/// # use hopedgn::{*, ctdg::split::SplitMode, model::{ModelConfig, build}, task::Task, tensor::Weights};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let task = Task::new(&events, SplitMode::Dyglib)?;
/// # let mut columns = (*events).clone().into_columns();
/// # columns.label = (0..100u8).map(|i| f32::from(i % 3 == 0)).collect::<Vec<_>>().into();
/// # let labelled = hopedgn::ctdg::event::EventStream::new(columns)?;
/// # let task = Task::new(&labelled, SplitMode::Dyglib)?;
/// # let config = ModelConfig::new(ModelName::GraphMixer).with_known(&["d-out=4", "neighbors=4"])?;
/// # let (model, parameters) = build(&config, task.tables.widths(), 0)?;
/// # let weights = Weights::new(&Device::cpu(), parameters)?;
/// use hopedgn::{callbacks::NoCallback, classify::{LabelConfig, classify}, evaluate::Evaluator};
///
/// let of = Evaluator { task: &task, model: &*model, weights: &weights, memory: None, batch: 50 };
/// let classified = classify(&of, &LabelConfig { epochs: 2, ..LabelConfig::default() }, &mut NoCallback)?;
/// assert_eq!(classified.events.iter().sum::<usize>(), 100);
/// assert!(classified.best_epoch <= 2 && classified.metrics.test.auc.is_some());
/// # Ok::<(), hopedgn::Error>(())
/// ```
pub fn classify(of: &Evaluator<'_>, config: &LabelConfig, callback: &mut dyn Callback) -> Result<Classified> {
    config.check()?;
    let labels = Labels::of(of.task)?;
    let start = Instant::now();
    let sources = Sources::embed(of, &labels, config.max_memory, callback)?;
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
