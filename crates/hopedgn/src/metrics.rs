//! Metrics that a run writes: one record for each epoch, the test summary, evaluation, node classification.

mod calibration;
mod evaluation;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use calibration::{Calibration, CalibrationCounts, ReliabilityBin};
pub use evaluation::{BetterHeuristic, EVALUATION, Evaluation, RankingMetrics, RankingTest, TestedEvents};

/// Link prediction metrics of one pass: fractions between 0 and 1.
///
/// See [`Summary`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LinkMetrics {
    /// Average precision: the mean over batches, as papers report it.
    pub ap: f64,
    /// Area under the ROC curve: the mean over batches.
    pub auc: f64,
    /// Average precision over the whole split at once.
    pub ap_global: f64,
    /// Area under the ROC curve over the whole split at once.
    pub auc_global: f64,
}

/// A value for each of the two settings of link prediction; `None` if the setting has no events.
///
/// ```
/// use hopedgn::metrics::PerSetting;
///
/// let mut recall = PerSetting::default();
/// recall.transductive = Some(0.9);
/// assert_eq!(recall, PerSetting { transductive: Some(0.9), inductive: None });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PerSetting<M = LinkMetrics> {
    /// All events of the part.
    pub transductive: Option<M>,
    /// Its events with at least one node that training never saw.
    pub inductive: Option<M>,
}

impl<M> Default for PerSetting<M> {
    fn default() -> Self {
        Self { transductive: None, inductive: None }
    }
}

/// One epoch, as a line of `metrics.jsonl`.
///
/// ```
/// # use hopedgn::{Events, LinkPredictor};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
/// let first = &predictor.history()[0];
/// assert!(first.epoch == 1 && first.better && first.loss > 0.0);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// From 1.
    pub epoch: usize,
    /// Mean of the batches' losses.
    pub loss: f64,
    /// Metrics on validation.
    pub val: PerSetting,
    /// The same against historical negatives, of all events, where epochs are selected by both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub val_historical: Option<LinkMetrics>,
    /// Mean reciprocal rank of validation events, where epochs are selected by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub val_mrr: Option<f64>,
    /// Whether transductive validation AP and AUC are both at least those of the best epoch so far, or the metric by
    /// which epochs are selected is.
    pub better: bool,
    /// Seconds of training.
    pub train_seconds: f64,
    /// Seconds of validation.
    pub eval_seconds: f64,
    /// Pairs trained on in a second.
    pub pairs_per_second: f64,
}

/// The whole run, as `summary.json`.
///
/// ```
/// # use hopedgn::{Events, LinkPredictor};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
/// let summary = predictor.summary().expect("training is complete");
/// let test = summary.test.transductive.expect("there are test events");
/// assert!((0.0..=1.0).contains(&test.ap) && (0.0..=1.0).contains(&test.auc_global));
/// println!("AP {:.4}, of heuristics: {:?}", test.ap, summary.heuristics.keys());
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Name of the dataset, as the user gave it.
    pub data: String,
    /// The model's name.
    pub model: String,
    /// Seed of the run.
    pub seed: u64,
    /// Epochs trained.
    pub epochs: usize,
    /// The epoch with the best validation metrics.
    pub best_epoch: usize,
    /// Validation metrics of that epoch.
    pub val: PerSetting,
    /// Test metrics with its weights.
    pub test: PerSetting,
    /// Test metrics of untrained heuristics, by name.
    pub heuristics: BTreeMap<String, PerSetting>,
    /// Mean time of an epoch, validation included.
    pub seconds_per_epoch: f64,
    /// `cpu` or `cuda`.
    pub device: String,
    /// Name of the GPU or processor, where the system reports it.
    #[serde(default)]
    pub hardware: Option<String>,
    /// Precision of matrix products: `f32`, `tf32` or `bf16`.
    #[serde(default)]
    pub precision: Option<String>,
    /// Number of parameters.
    pub parameters: usize,
    /// Peak memory of the process in bytes, where the system reports it.
    pub peak_memory: Option<u64>,
}

/// A value for each part of a split.
///
/// ```
/// use hopedgn::metrics::Parts;
///
/// let events = Parts { train: 70, val: 15, test: 15 };
/// assert_eq!(events.iter().sum::<usize>(), 100);
/// assert_eq!(events.map(|n| n / 5).train, 14);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts<T> {
    /// Training.
    pub train: T,
    /// Validation.
    pub val: T,
    /// Test.
    pub test: T,
}

impl<T> Parts<T> {
    /// Applies `make` to each value.
    pub fn map<U>(self, mut make: impl FnMut(T) -> U) -> Parts<U> {
        Parts { train: make(self.train), val: make(self.val), test: make(self.test) }
    }

    /// The same parts, borrowed.
    pub fn each_ref(&self) -> Parts<&T> {
        Parts { train: &self.train, val: &self.val, test: &self.test }
    }

    /// The values in order of time.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        [&self.train, &self.val, &self.test].into_iter()
    }
}

/// Metrics of node classification on one part, between 0 and 1; `None` if all labels are equal.
///
/// Part of a [`Classification`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LabelMetrics {
    /// Area under the ROC curve over the whole part.
    pub auc: Option<f64>,
    /// Average precision over the whole part; a random score gets the share of positives.
    pub ap: Option<f64>,
}

/// One epoch of the node classifier.
///
/// What [`Callback::on_label_epoch_end`](crate::callbacks::Callback::on_label_epoch_end) gets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LabelEpoch {
    /// From 1.
    pub epoch: usize,
    /// Mean of the batches' losses.
    pub loss: f64,
    /// Validation AUC.
    pub auc: Option<f64>,
    /// Whether it is at least that of the best epoch so far.
    pub better: bool,
}

/// Node classification with the model of a run, as `classification.json`.
///
/// Made by [`LinkPredictor::classify`](crate::LinkPredictor::classify), which has an example.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Classification {
    /// Name of the dataset, as the user gave it.
    pub data: String,
    /// The frozen model's name.
    pub model: String,
    /// Seed of the classifier.
    pub seed: u64,
    /// Epochs trained.
    pub epochs: usize,
    /// The epoch with the best validation metrics.
    pub best_epoch: usize,
    /// Training metrics of the best epoch.
    pub train: LabelMetrics,
    /// Validation metrics of the best epoch.
    pub val: LabelMetrics,
    /// Test metrics of the best epoch.
    pub test: LabelMetrics,
    /// Number of events of each part.
    pub events: Parts<usize>,
    /// Number of events with label 1.
    pub positives: Parts<usize>,
    /// Mean time of an epoch, validation included.
    pub seconds_per_epoch: f64,
    /// Seconds spent on embedding all source nodes.
    pub embed_seconds: f64,
    /// `cpu` or `cuda`.
    pub device: String,
    /// Name of the GPU or processor, where the system reports it.
    pub hardware: Option<String>,
    /// Precision of matrix products: `f32`, `tf32` or `bf16`.
    pub precision: Option<String>,
    /// Number of parameters of the classifier.
    pub parameters: usize,
    /// Dropout of the classifier.
    pub dropout: f32,
    /// Peak memory of the process in bytes, where the system reports it.
    pub peak_memory: Option<u64>,
}
