//! Node classification with a [`LinkPredictor`].

use super::LinkPredictor;
use crate::callbacks::Callback;
use crate::classify::{LabelConfig, classify};
use crate::metrics::Classification;
use crate::run::RunFolder;
use crate::{Error, Result};

impl LinkPredictor {
    /// Trains a classifier of event labels on frozen embeddings of the source nodes, and tests it. Labels are 0 and 1.
    ///
    /// A run folder keeps the result as `classification.json`. When the callback asks to stop, nothing is written and
    /// [`Error::Interrupted`] returned.
    pub fn classify(&self, labels: &LabelConfig, callback: &mut dyn Callback) -> Result<Classification> {
        let folder = self.folder.as_deref().map(RunFolder::open).transpose()?;
        let _lock = folder.as_ref().map(RunFolder::lock).transpose()?;
        if let (Some(folder), None) = (&folder, &self.summary) {
            return Err(Error::TrainingNotComplete { folder: folder.path().to_owned() });
        }
        let task = self.task(&self.events)?;
        let classified = classify(&self.evaluator(&task), labels, callback)?;
        let classification = Classification::new(&self.config, labels, self.device(), &classified);
        if let Some(folder) = &folder {
            folder.write_classification(&classification)?;
        }
        Ok(classification)
    }
}
