//! `evaluation.json`: what was measured on the test events of a run; and the checkpoint of an evaluation that was interrupted.

use std::fs;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::manifest::hex;
use super::{MODEL, RunFolder, read, read_text};
use crate::Result;
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
    /// What was measured on the test events of the run, if anything was. A file that cannot be read counts as missing.
    #[must_use]
    pub fn evaluation(&self) -> Option<Evaluation> {
        serde_json::from_str(&read_text(&self.path.join(EVALUATION)).ok()?).ok()
    }

    /// Adds a complete evaluation to `evaluation.json`.
    pub(crate) fn keep_evaluation(&self, evaluation: &Evaluation) -> Result<()> {
        let kept = match self.evaluation() {
            Some(earlier) => evaluation.clone().with_earlier(earlier),
            None => evaluation.clone(),
        };
        self.write_json(EVALUATION, &kept)?;
        // Best effort: its key tells that it is done.
        let _ = fs::remove_file(self.path.join(PARTIAL));
        Ok(())
    }

    /// The checkpoint of an interrupted evaluation with this key, if there is one.
    pub(crate) fn partial_evaluation(&self, key: &str) -> Option<PartialEvaluation> {
        let partial: PartialEvaluation = serde_json::from_str(&read_text(&self.path.join(PARTIAL)).ok()?).ok()?;
        (partial.key == key).then_some(partial)
    }

    pub(crate) fn write_partial_evaluation(&self, partial: &PartialEvaluation) -> Result<()> {
        self.write_json(PARTIAL, partial)
    }

    /// Identifies an evaluation: the weights of the run, its settings and split, and `asked`, which is all else that its metrics
    /// depend on.
    pub(crate) fn evaluation_key(&self, asked: &str) -> Result<String> {
        let mut hash = Sha256::new();
        for part in [
            &read(&self.path.join(MODEL))?,
            &read(&self.path.join(super::CONFIG))?,
            &read(&self.path.join(super::MANIFEST))?,
        ] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.update(asked);
        Ok(hex(&hash.finalize()))
    }
}
