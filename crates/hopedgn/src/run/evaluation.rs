//! `evaluation.json`: what was measured on the test events of a run; and the checkpoint of an evaluation that was interrupted.

use std::fs;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{MODEL, RunFolder, read};
use crate::Result;
use crate::file_format::{hex, to_line};
use crate::metrics::{EVALUATION, Evaluation};

/// The checkpoint of an interrupted evaluation.
pub(super) const PARTIAL: &str = "evaluation.partial.json";

/// An evaluation that is not complete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PartialEvaluation {
    /// Of weights, settings, split, and what was asked for: another evaluation does not continue this one.
    pub(crate) key: String,
    /// The passes that are complete.
    pub(crate) done: Vec<String>,
    /// Their metrics.
    pub(crate) evaluation: Evaluation,
}

impl RunFolder {
    /// What was measured on the test events of the run, if anything was.
    pub fn evaluation(&self) -> Result<Option<Evaluation>> {
        self.read_json_if_any(EVALUATION)
    }

    /// Replaces `evaluation.json`. The caller holds the lock.
    pub fn write_evaluation(&self, evaluation: &Evaluation) -> Result<()> {
        self.write_json(EVALUATION, evaluation)
    }

    /// Adds a complete evaluation to `evaluation.json`. One that cannot be read counts as missing.
    pub(crate) fn keep_evaluation(&self, evaluation: &Evaluation) -> Result<()> {
        let kept = match self.evaluation() {
            Ok(Some(earlier)) => evaluation.clone().with_earlier(earlier),
            _ => evaluation.clone(),
        };
        self.write_evaluation(&kept)?;
        // Best effort: its key tells that it is done.
        let _ = fs::remove_file(self.path.join(PARTIAL));
        self.settle([])
    }

    /// The checkpoint of an interrupted evaluation with this key, if there is one that can be read.
    pub(crate) fn partial_evaluation(&self, key: &str) -> Option<PartialEvaluation> {
        let partial: Option<PartialEvaluation> = self.read_json_if_any(PARTIAL).ok().flatten();
        partial.filter(|partial| partial.key == key)
    }

    /// Writes the checkpoint of an evaluation, unless another process writes to the run.
    pub(crate) fn write_partial_evaluation(&self, partial: &PartialEvaluation) -> Result<()> {
        let _lock = self.lock()?;
        self.write_json(PARTIAL, partial)
    }

    /// Identifies an evaluation: the weights of the run, its settings and split, and `asked`, which is all else that its metrics
    /// depend on.
    pub(crate) fn evaluation_key(&self, asked: &str) -> Result<String> {
        let mut hash = Sha256::new();
        let manifest = to_line(&self.manifest()?).unwrap_or_default().into_bytes();
        for part in [read(&self.path.join(MODEL))?, read(&self.path.join(super::CONFIG))?, manifest] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.update(asked);
        Ok(hex(&hash.finalize()))
    }
}
