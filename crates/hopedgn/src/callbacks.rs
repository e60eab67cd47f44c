//! How long work tells where it is, and how it is asked to stop.

pub mod report;
pub mod tensorboard;

use crate::metrics::{EpochRecord, LabelEpoch};

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Batches of an epoch.
    Train,
    /// Batches of a pass.
    Evaluate,
    /// Events of a ranking.
    Rank,
    /// Batches whose sources are embedded.
    Embed,
    /// Epochs of learning labels.
    Classify,
}

/// Someone who watches long work. Every method may be left as it is.
pub trait Callback {
    /// Training begins, or goes on after some epochs, and ends after `n_epochs` at the latest.
    fn start(&mut self, epochs_done: usize, n_epochs: usize) {
        let _ = (epochs_done, n_epochs);
    }

    /// `done` of `total` parts of a stage are behind us.
    fn progress(&mut self, stage: Stage, done: usize, total: usize) {
        let _ = (stage, done, total);
    }

    /// An epoch is over.
    fn epoch(&mut self, record: &EpochRecord) {
        let _ = record;
    }

    /// An epoch of learning labels is over.
    fn label_epoch(&mut self, record: &LabelEpoch) {
        let _ = record;
    }

    /// Asked after every batch: whether to put everything down in good order.
    fn wants_to_stop(&self) -> bool {
        false
    }

    /// Seconds since 1970. The library reads no clock of its own.
    fn wall_time(&self) -> f64 {
        0.0
    }

    /// Most memory the program held, in bytes, if known.
    fn peak_memory(&self) -> Option<u64> {
        None
    }

    /// Memory that can still be had, in bytes, if known.
    fn free_memory(&self) -> Option<u64> {
        None
    }
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCallback;

impl Callback for NoCallback {}
