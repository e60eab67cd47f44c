//! The loop that learns labels: events in the order of time, Adam, the best AUC on validation.

use std::time::Instant;

use ctdg::metric::binary_scores;
use ctdg::random::Stream;
use hopedgn_tensor::{AdamConfig, Device, Dropout, Mode, Tape, TrainState, Var, Weights};

use super::{Batch, Classifier, LabelConfig, Sources};
use crate::callbacks::{Callback, Stage};
use crate::metrics::{LabelEpoch, LabelMetrics, Parts};
use crate::{Error, Result};

/// Steps that a card may be behind.
const BEHIND: usize = 8;

/// What came of it.
pub(super) struct Learned {
    pub(super) epochs: usize,
    pub(super) best_epoch: usize,
    pub(super) metrics: Parts<LabelMetrics>,
    pub(super) parameters: usize,
    /// Of all epochs.
    pub(super) seconds: f64,
}

/// Learns on `device` from the training batches of `sources`.
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
    let learner = TrainState::new(device, parameters, adam)?;
    let mut course = Course { classifier, learner, config, n_asked: 0, n_over: 0 };
    let (mut epochs, mut seconds) = (0, 0.0);
    while epochs < config.epochs && epochs - best.epoch < config.patience {
        callback.on_progress(Stage::Classify, epochs, config.epochs);
        let start = Instant::now();
        epochs += 1;
        let loss = course.epoch(epochs, &sources.batches.train, callback)?;
        let auc = metrics(&classifier, course.learner.weights(), &sources.batches.val)?.auc;
        // As in DyGLib a tie is better. Without both labels there is nothing to choose by, and the newest weights are kept.
        let better = auc.is_none_or(|auc| best.auc.is_none_or(|best| auc >= best));
        if better {
            best = Best { weights: course.learner.weights().parameters()?.into_owned(), epoch: epochs, auc };
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

/// The epoch whose weights are kept.
struct Best {
    weights: hopedgn_tensor::Parameters,
    epoch: usize,
    auc: Option<f64>,
}

struct Course<'a> {
    classifier: Classifier,
    learner: TrainState,
    config: &'a LabelConfig,
    /// Steps asked for.
    n_asked: u64,
    /// Of these, steps that are over.
    n_over: u64,
}

impl Course<'_> {
    /// Learns from each of `batches`, in order; the mean of their losses.
    fn epoch(&mut self, epoch: usize, batches: &[Batch], callback: &dyn Callback) -> Result<f64> {
        let (classifier, before) = (self.classifier, self.n_over);
        let mut sum = 0.0;
        for batch in batches {
            if callback.should_stop() {
                return Err(Error::Interrupted);
            }
            let seed = Stream::named(self.config.seed, "dropout/classifier").fork(self.n_asked).next_u64();
            let dropout = Dropout::new(self.config.dropout, seed, Mode::Train)?;
            let loss = |tape: &mut Tape<'_>, batch: &Batch| -> Result<Var> {
                let logits = classifier.logits(tape, &batch.nodes, dropout)?;
                Ok(tape.bce_with_logits(logits, &batch.targets, batch.targets.len())?)
            };
            self.learner.step(std::slice::from_ref(batch), loss)?;
            self.n_asked += 1;
            sum += self.settle(BEHIND, epoch, before)?;
        }
        sum += self.settle(0, epoch, before)?;
        Ok(sum / batches.len().max(1) as f64)
    }

    /// The sum of the losses of steps that are over, waiting for all but the newest `behind`; the epoch began after `before`.
    fn settle(&mut self, behind: usize, epoch: usize, before: u64) -> Result<f64> {
        let mut sum = 0.0;
        for step in self.learner.results(behind)? {
            self.n_over += 1;
            if !step.is_finite {
                let batch = usize::try_from(self.n_over - before).unwrap_or(usize::MAX);
                let (loss, seed) = (step.loss, self.config.seed);
                return Err(Error::Diverged { loss, step: self.n_over, epoch, batch, seed });
            }
            sum += step.loss;
        }
        Ok(sum)
    }
}

/// Over all `batches` at once; nothing where all have the same label.
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
