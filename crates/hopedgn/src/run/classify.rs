//! Learns labels with the model of a run folder.

use hopedgn_tensor::Weights;

use super::session::processor;
use super::{CLASSIFICATION, Session, TrainedModel};
use crate::callbacks::Callback;
use crate::classify::{Classified, LabelConfig, classify};
use crate::evaluate::Evaluator;
use crate::metrics::{Classification, Parts};
use crate::{Error, Result};

impl Session<'_> {
    /// Freezes the best weights of the run, whose training must be over, learns labels with them and writes down how well
    /// that went. When the callback wants to stop, nothing is written and [`Error::Interrupted`] returned.
    pub fn classify(&self, settings: &LabelConfig, callback: &mut dyn Callback) -> Result<Classification> {
        let _lock = self.folder.lock()?;
        self.folder.sweep();
        if self.folder.summary()?.is_none() {
            let path = self.folder.path();
            let detail = format!("training is not over; end it with `hopedgn train --resume {}`", path.display());
            return Err(Error::Run { folder: path.to_owned(), detail });
        }
        let (task, device, batch) = (self.task, self.device, self.config.train.batch);
        let TrainedModel { model, parameters, memory } = self.folder.model(self.config, task.tables.widths())?;
        let weights = Weights::new(device, parameters)?;
        let frozen = Evaluator { task, model: &*model, weights: &weights, memory: memory.as_ref(), batch };
        let classified = classify(&frozen, settings, callback)?;
        let Classified { metrics, epochs, best_epoch, events, positives, parameters, .. } = classified;
        let Parts { train, val, test } = metrics;
        let classification = Classification {
            data: self.config.data.clone(),
            model: self.config.model.name().as_str().to_owned(),
            seed: settings.seed,
            epochs,
            best_epoch,
            train,
            val,
            test,
            events,
            positives,
            seconds_per_epoch: classified.seconds_per_epoch,
            embed_seconds: classified.embed_seconds,
            device: device.name().to_owned(),
            hardware: device.card().map(str::to_owned).or_else(processor),
            precision: Some(device.precision().as_str().to_owned()),
            parameters,
            dropout: settings.dropout,
            peak_memory: callback.peak_memory(),
        };
        self.folder.write_json(CLASSIFICATION, &classification)?;
        Ok(classification)
    }
}
