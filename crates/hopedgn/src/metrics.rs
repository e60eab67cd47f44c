//! What a run writes down: one record an epoch, a summary at the end, and how well labels are told afterwards.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Link prediction of one pass: fractions between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LinkMetrics {
    /// Average precision, the mean over batches that papers report.
    pub ap: f64,
    /// Area under the ROC curve, mean over batches.
    pub auc: f64,
    /// Average precision over the whole split at once.
    pub ap_global: f64,
    /// Area under the ROC curve over the whole split at once.
    pub auc_global: f64,
}

/// The two settings of link prediction; nothing where a pass has no events.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PerSetting<M = LinkMetrics> {
    /// All events of the part.
    pub transductive: Option<M>,
    /// Its events with a node that training never showed.
    pub inductive: Option<M>,
}

impl<M> Default for PerSetting<M> {
    fn default() -> Self {
        Self { transductive: None, inductive: None }
    }
}

/// One epoch, as a line of `metrics.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// From 1.
    pub epoch: usize,
    /// Mean of the batches' losses.
    pub loss: f64,
    /// Metrics on validation.
    pub val: PerSetting,
    /// Whether AP and AUC of all validation events were both at least as good as the best so far.
    pub better: bool,
    /// Seconds of training.
    pub train_seconds: f64,
    /// Seconds of validation.
    pub eval_seconds: f64,
    /// Pairs trained on in a second.
    pub pairs_per_second: f64,
}

/// The whole run, as `summary.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// As the person named it.
    pub data: String,
    /// The model's name.
    pub model: String,
    /// Of the run.
    pub seed: u64,
    /// Epochs trained.
    pub epochs: usize,
    /// The epoch whose weights were kept.
    pub best_epoch: usize,
    /// Validation with those weights.
    pub val: PerSetting,
    /// Test with those weights.
    pub test: PerSetting,
    /// Test of scorers that learn nothing, by name.
    pub heuristics: BTreeMap<String, PerSetting>,
    /// Mean over epochs, validation included.
    pub seconds_per_epoch: f64,
    /// `cpu` or `cuda`.
    pub device: String,
    /// The GPU's or the processor's name, where the system says.
    #[serde(default)]
    pub hardware: Option<String>,
    /// What products are made of there: `f32`, `tf32` or `bf16`.
    #[serde(default)]
    pub precision: Option<String>,
    /// Number of weights.
    pub parameters: usize,
    /// Most memory the program held, in bytes, where the system says.
    pub peak_memory: Option<u64>,
}

/// One of something for each part of a split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts<T> {
    /// Of training events.
    pub train: T,
    /// Of validation events.
    pub val: T,
    /// Of test events.
    pub test: T,
}

impl<T> Parts<T> {
    /// What `make` makes of each.
    pub fn map<U>(self, mut make: impl FnMut(T) -> U) -> Parts<U> {
        Parts { train: make(self.train), val: make(self.val), test: make(self.test) }
    }

    /// The same parts, borrowed.
    pub fn each_ref(&self) -> Parts<&T> {
        Parts { train: &self.train, val: &self.val, test: &self.test }
    }

    /// In the order of time.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        [&self.train, &self.val, &self.test].into_iter()
    }
}

/// How well the labels of one part are told, as fractions between 0 and 1; nothing where all are the same.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LabelMetrics {
    /// Area under the ROC curve over the whole part.
    pub auc: Option<f64>,
    /// Average precision over the whole part. Its chance level is the share of positives.
    pub ap: Option<f64>,
}

/// One epoch of learning labels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LabelEpoch {
    /// From 1.
    pub epoch: usize,
    /// Mean of the batches' losses.
    pub loss: f64,
    /// On validation.
    pub auc: Option<f64>,
    /// Whether it was at least as good as the best so far.
    pub better: bool,
}

/// Node classification with the model of a run, as `classification.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Classification {
    /// As the person named it.
    pub data: String,
    /// The frozen model's name.
    pub model: String,
    /// Of the classifier.
    pub seed: u64,
    /// Epochs learned.
    pub epochs: usize,
    /// The epoch whose weights were kept.
    pub best_epoch: usize,
    /// With those weights, on the events they were learned from.
    pub train: LabelMetrics,
    /// The same on validation, by which they were chosen.
    pub val: LabelMetrics,
    /// The same on test events.
    pub test: LabelMetrics,
    /// Events of each part.
    pub events: Parts<usize>,
    /// Events of label 1 among them.
    pub positives: Parts<usize>,
    /// Mean over epochs, validation included and embedding not.
    pub seconds_per_epoch: f64,
    /// Seconds of embedding the source of every event, which is done once.
    pub embed_seconds: f64,
    /// `cpu` or `cuda`.
    pub device: String,
    /// The GPU's or the processor's name, where the system says.
    pub hardware: Option<String>,
    /// What products are made of there: `f32`, `tf32` or `bf16`.
    pub precision: Option<String>,
    /// Number of the classifier's weights.
    pub parameters: usize,
    /// Between its layers.
    pub dropout: f32,
    /// Most memory the program held, in bytes, where the system says.
    pub peak_memory: Option<u64>,
}
