//! Training loop of the node classifier: events in order of time, Adam, selection by validation AUC.

use std::time::Instant;

use ctdg::metric::binary_scores;
use ctdg::random::RandomStream;
use hopedgn_tensor::{AdamConfig, Device, Dropout, Mode, Tape, TrainState, Var, Weights};

use super::{Batch, Classifier, LabelConfig, Sources};
use crate::callbacks::{Callback, Stage};
use crate::metrics::{LabelEpoch, LabelMetrics, Parts};
use crate::{Error, Result};

/// Steps that a GPU may lag behind the host.
const MAX_LAG: usize = 8;

/// The trained classifier's results.
pub(super) struct Learned {
    pub(super) epochs: usize,
    pub(super) best_epoch: usize,
    pub(super) metrics: Parts<LabelMetrics>,
    pub(super) parameters: usize,
    /// Total of all epochs.
    pub(super) seconds: f64,
}

/// Trains on `device` with the training batches of `sources`.
pub(super) fn learn(
    device: &Device,
    sources: &Sources,
    config: &LabelConfig,
    callback: &mut dyn Callback,
) -> Result<Learned> {
    let (classifier, parameters) = Classifier::new(sources.width, config.seed)?;
    let n_values = parameters.n_values();
    let adam = AdamConfig { lr: config.lr, ..AdamConfig::default() };
    let mut best = Best { weights: parameters.clone(), epoch: 0, auc: None };
    let state = TrainState::new(device, parameters, adam)?;
    let mut training = Training { classifier, state, config, n_submitted: 0, n_done: 0 };
    let (mut epochs, mut seconds) = (0, 0.0);
    while epochs < config.epochs && epochs - best.epoch < config.patience {
        callback.on_progress(Stage::Classify, epochs, config.epochs);
        let start = Instant::now();
        epochs += 1;
        let loss = training.epoch(epochs, &sources.batches.train, callback)?;
        let auc = metrics(&classifier, training.state.weights(), &sources.batches.val)?.auc;
        // Ties count as better, as in DyGLib. Without both labels AUC is undefined, and the last weights are kept.
        let better = auc.is_none_or(|auc| best.auc.is_none_or(|best| auc >= best));
        if better {
            best = Best { weights: training.state.weights().parameters()?.into_owned(), epoch: epochs, auc };
        }
        seconds += start.elapsed().as_secs_f64();
        callback.on_label_epoch_end(&LabelEpoch { epoch: epochs, loss, auc, better });
    }
    callback.on_progress(Stage::Classify, config.epochs, config.epochs);
    let weights = Weights::new(device, best.weights)?;
    let of = |batches: &Vec<Batch>| metrics(&classifier, &weights, batches);
    let Parts { train, val, test } = &sources.batches;
    let metrics = Parts { train: of(train)?, val: of(val)?, test: of(test)? };
    Ok(Learned { epochs, best_epoch: best.epoch, metrics, parameters: n_values, seconds })
}

/// The best epoch so far.
struct Best {
    weights: hopedgn_tensor::Parameters,
    epoch: usize,
    auc: Option<f64>,
}

struct Training<'a> {
    classifier: Classifier,
    state: TrainState,
    config: &'a LabelConfig,
    /// Steps submitted to the device.
    n_submitted: u64,
    /// Steps whose loss is known.
    n_done: u64,
}

impl Training<'_> {
    /// One step for each of `batches`, in order; returns the mean loss.
    fn epoch(&mut self, epoch: usize, batches: &[Batch], callback: &dyn Callback) -> Result<f64> {
        let (classifier, before) = (self.classifier, self.n_done);
        let mut sum = 0.0;
        for batch in batches {
            if callback.should_stop() {
                return Err(Error::Interrupted);
            }
            let seed = RandomStream::named(self.config.seed, "dropout/classifier").fork(self.n_submitted).next_u64();
            let dropout = Dropout::new(self.config.dropout, seed, Mode::Train)?;
            let loss = |tape: &mut Tape<'_>, batch: &Batch| -> Result<Var> {
                let logits = classifier.logits(tape, &batch.nodes, dropout)?;
                Ok(tape.bce_with_logits(logits, &batch.targets, batch.targets.len())?)
            };
            self.state.step(std::slice::from_ref(batch), loss)?;
            self.n_submitted += 1;
            sum += self.collect_losses(MAX_LAG, epoch, before)?;
        }
        sum += self.collect_losses(0, epoch, before)?;
        Ok(sum / batches.len().max(1) as f64)
    }

    /// The sum of the losses of completed steps, waiting for all but the newest `lag`. The epoch started after step `before`.
    fn collect_losses(&mut self, lag: usize, epoch: usize, before: u64) -> Result<f64> {
        let mut sum = 0.0;
        for step in self.state.step_results(lag)? {
            self.n_done += 1;
            if !step.is_finite {
                let batch = usize::try_from(self.n_done - before).unwrap_or(usize::MAX);
                let (loss, seed) = (step.loss, self.config.seed);
                return Err(Error::Diverged { loss, step: self.n_done, epoch, batch, seed });
            }
            sum += step.loss;
        }
        Ok(sum)
    }
}

/// Metrics over all `batches` at once; `None` if all labels are equal.
fn metrics(classifier: &Classifier, weights: &Weights, batches: &[Batch]) -> Result<LabelMetrics> {
    let forward = |tape: &mut Tape<'_>, batch: &Batch| -> Result<Vec<f32>> {
        let logits = classifier.logits(tape, &batch.nodes, Dropout::NONE)?;
        Ok(tape.read(logits)?)
    };
    let scores = weights.evaluate(batches, forward)?.concat();
    let labels: Vec<bool> = batches.iter().flat_map(|batch| &batch.targets).map(|&target| target == 1.0).collect();
    if labels.iter().all(|label| *label == labels[0]) {
        return Ok(LabelMetrics { auc: None, ap: None });
    }
    let scores = binary_scores(&scores, &labels)?;
    Ok(LabelMetrics { auc: Some(scores.auc), ap: Some(scores.ap) })
}
