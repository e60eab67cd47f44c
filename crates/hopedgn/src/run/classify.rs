//! `classification.json`: the result of node classification with the model of a run.

use hopedgn_tensor::Device;

use crate::classify::{Classified, LabelConfig};
use crate::config::Config;
use crate::metrics::{Classification, Parts};
use crate::system;

impl Classification {
    /// The file's content for a model of these settings, computed on `device`.
    pub(crate) fn new(config: &Config, labels: &LabelConfig, device: &Device, classified: &Classified) -> Self {
        let Classified { metrics, epochs, best_epoch, events, positives, parameters, .. } = *classified;
        let Parts { train, val, test } = metrics;
        Self {
            data: config.data.clone(),
            model: config.model.name().as_str().to_owned(),
            seed: labels.seed,
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
            hardware: device.gpu_name().map(str::to_owned).or_else(system::processor),
            precision: Some(device.precision().as_str().to_owned()),
            parameters,
            dropout: labels.dropout,
            peak_memory: system::peak_memory(),
        }
    }
}
