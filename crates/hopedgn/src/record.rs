//! What a run writes down: one record an epoch, and a summary at the end.

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
pub struct Settings<M = LinkMetrics> {
    /// All events of the part.
    pub transductive: Option<M>,
    /// Its events with a node that training never showed.
    pub inductive: Option<M>,
}

impl<M> Default for Settings<M> {
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
    pub val: Settings,
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
    pub val: Settings,
    /// Test with those weights.
    pub test: Settings,
    /// Test of scorers that learn nothing, by name.
    pub heuristics: BTreeMap<String, Settings>,
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
