//! Training loop: events in order of time, one random negative each, Adam, as in DyGLib; selection by AP and AUC, or by MRR.

mod batches;
mod constants;
mod intensity;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use ctdg::negative::{CandidateCount, Pass, RandomNegatives};
use hopedgn_tensor::{Device, Parameters, ProcessGroup, TrainState, Weights};
use serde::{Deserialize, Serialize};

use crate::callbacks::{Callback, Stage};
use crate::collate::Layout;
use crate::config::{Config, Selection};
use crate::evaluate::{ModelScorer, Negatives, RankedEvents, evaluate, rank_some};
use crate::memory::{Memory, MemoryState};
use crate::metrics::{EpochRecord, LinkMetrics, PerSetting};
use crate::model::Model;
use crate::prefetch;
use crate::score::{Output, PairScorer, PreparedBatch};
use crate::task::Task;
use crate::{Error, Result};
use batches::TrainBatches;
pub(crate) use constants::set_data_constants;
use intensity::IntensityNegatives;

/// Progress of training ([`Trainer::progress`]); with the weights and the optimizer state, all that a checkpoint holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Progress {
    /// Completed batches of the current epoch.
    pub batch: usize,
    /// Completed steps of all epochs.
    pub steps: u64,
    /// Sum of the losses of the current epoch.
    pub loss_sum: f64,
    /// Seconds spent on the current epoch.
    pub seconds: f64,
    /// Position of the random generator of training negatives.
    pub negatives: u64,
    /// The best epoch so far.
    pub best: Option<Best>,
    /// Epochs since the best one.
    pub waited: usize,
    /// Completed epochs.
    pub history: Vec<EpochRecord>,
}

/// The best epoch of a [`Progress`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// From 1.
    pub epoch: usize,
    /// Transductive validation AP.
    pub ap: f64,
    /// Transductive validation AUC.
    pub auc: f64,
}

/// Metrics of an epoch on validation.
struct Validation {
    /// Against random negatives.
    random: PerSetting,
    /// Against historical ones, all events; measured for [`Objective::Intensity`](crate::config::Objective).
    historical: Option<LinkMetrics>,
    /// Mean reciprocal rank of all events; measured for [`Selection::Mrr`].
    mrr: Option<f64>,
}

impl Validation {
    /// AP and AUC by which epochs are compared: of random negatives, as in DyGLib, or the mean AP of random and historical ones.
    /// MRR stands for both where it is measured.
    fn selection(&self) -> Option<(f64, f64)> {
        if let Some(mrr) = self.mrr {
            return Some((mrr, mrr));
        }
        let random = self.random.transductive?;
        Some(match self.historical {
            Some(historical) => [f64::midpoint(random.ap, historical.ap); 2].into(),
            None => (random.ap, random.auc),
        })
    }
}

impl Progress {
    /// Records the validation of an epoch. As in DyGLib, it is better if neither metric is below that of the best epoch.
    fn record_validation(&mut self, epoch: usize, ap: f64, auc: f64) -> bool {
        let better = self.best.is_none_or(|best| ap >= best.ap && auc >= best.auc);
        if better {
            self.best = Some(Best { epoch, ap, auc });
            self.waited = 0;
        } else {
            self.waited += 1;
        }
        better
    }
}

/// Trains the weights of one model on one task. It can be saved after any step; a restored one continues bit-identically.
///
/// ```
/// # use hopedgn::{callbacks::NoCallback, ctdg::split::SplitMode, task::Task, train::Trainer, *};
/// # let events = Events::from_tuples((0..100).map(|i| ((i % 9).to_string(), ((i + 1) % 9).to_string(), f64::from(i))))?;
/// # let (task, config) = (Task::new(&events, SplitMode::Dyglib)?, Config::resolve(ModelName::Jodie, &[], &[])?);
/// let (model, parameters) = model::build(&config.model, task.tables.widths(), config.seed)?;
/// let mut trainer = Trainer::new(&config, &task, &*model, parameters, &Device::cpu())?;
/// assert!(trainer.epoch(&mut NoCallback, &mut |_| Ok(()))?.loss > 0.0);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug)]
pub struct Trainer<'a> {
    config: &'a Config,
    task: &'a Task<'a>,
    model: &'a dyn Model,
    state: TrainState,
    /// The node memory after the last batch, if the model has one.
    memory: Option<Memory>,
    /// The node memory after the last validation.
    validated_memory: Option<MemoryState>,
    negatives: RandomNegatives,
    /// Of [`Objective::Intensity`](crate::config::Objective).
    intensity: Option<Arc<IntensityNegatives<'a>>>,
    progress: Progress,
    /// Position of the generator of negatives after each batch whose step is submitted but not complete.
    pending: VecDeque<u64>,
    /// Prefetch threads, if the device computes beside the host.
    workers: Option<usize>,
    prefetch_wait: f64,
    submit_seconds: f64,
}

/// Steps that a GPU may lag behind the host, so that the next one is always queued.
const MAX_LAG: usize = 2;

/// Prefetch threads that keep an H200 busy, also with long histories.
const PREFETCH_WORKERS: usize = 9;

/// The key of [`Progress`] in the metadata of a checkpoint.
const PROGRESS: &str = "progress";

impl<'a> Trainer<'a> {
    /// Starts from initial weights.
    pub fn new(
        config: &'a Config,
        task: &'a Task<'a>,
        model: &'a dyn Model,
        parameters: Parameters,
        device: &Device,
    ) -> Result<Self> {
        config.check()?;
        if let Layout::Pairs(layout) = model.layout() {
            layout.check(&task.full_store)?;
        }
        let seed = u32::try_from(config.seed).unwrap_or(u32::MAX);
        let n_batches = task.split.train.len().div_ceil(config.train.batch);
        Ok(Self {
            state: TrainState::new(device, parameters, config.train.adam(n_batches))?,
            validated_memory: None,
            negatives: RandomNegatives::new(task.stream, &task.split.train, seed),
            intensity: IntensityNegatives::of(task, config).map(Arc::new),
            progress: Progress::default(),
            pending: VecDeque::new(),
            // A memory depends on the batch before, so its batches cannot be prefetched.
            workers: device.prefetch_threads(PREFETCH_WORKERS).filter(|_| model.memory().is_none()),
            memory: model.memory().map(|form| Memory::new(device, form, task.stream, &task.split.train)).transpose()?,
            prefetch_wait: 0.0,
            submit_seconds: 0.0,
            config,
            task,
            model,
        })
    }

    /// The same, trained by all processes of `group`.
    ///
    /// # Errors
    /// If there are several and the model has a memory.
    pub fn in_group(self, group: &ProcessGroup) -> Result<Self> {
        if self.memory.is_some() && !group.is_alone() {
            return Err(Error::OneWorker { model: self.config.model.name().title(), workers: group.n_ranks() });
        }
        Ok(Self { state: self.state.in_group(group), ..self })
    }

    /// A checkpoint: the bytes of a safetensors file for [`Trainer::restore`].
    pub fn save(&self) -> Result<Vec<u8>> {
        let progress = serde_json::to_string(&self.progress).map_err(|error| unreadable(&error))?;
        let mut metadata = self.config.metadata()?;
        metadata.insert(PROGRESS.to_owned(), progress);
        let (parameters, adam) = self.state.snapshot()?;
        let memory = self.memory.as_ref().map(Memory::snapshot).transpose()?;
        let beside = memory.as_ref().map(MemoryState::tensors);
        Ok(hopedgn_tensor::save_with_extras(
            &parameters,
            Some(&adam),
            beside.as_ref().map_or(&[], |all| all),
            &metadata,
        )?)
    }

    /// Continues from a checkpoint of [`Trainer::save`]. On an error nothing is changed.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let (mut parameters, mut adam) = self.state.snapshot()?;
        let metadata = hopedgn_tensor::load(bytes, &mut parameters, Some(&mut adam))?;
        let text = metadata.get(PROGRESS).ok_or_else(|| unreadable(&"it holds no progress"))?;
        let progress: Progress = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
        self.config.check_metadata(&metadata, Path::new("checkpoint"))?;
        if let Some(memory) = &mut self.memory {
            let state = MemoryState::of(hopedgn_tensor::load_extras(bytes)?)?;
            let train = &self.task.split.train;
            memory.restore(&state, &train[..train.len().min(progress.batch * self.config.train.batch)])?;
        }
        self.state.restore(parameters, adam)?;
        self.negatives.advance_to(progress.negatives);
        self.pending.clear();
        self.progress = progress;
        Ok(())
    }

    /// Progress so far.
    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The node memory after the last validation, if the model has one.
    #[must_use]
    pub fn validated_memory(&self) -> Option<&MemoryState> {
        self.validated_memory.as_ref()
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &'a dyn Model {
        self.model
    }

    /// The current weights.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        self.state.weights()
    }

    /// Seconds spent waiting for prefetched batches.
    #[must_use]
    pub fn prefetch_wait(&self) -> f64 {
        self.prefetch_wait
    }

    /// Seconds that the host spent submitting steps. A GPU that has to wait for them is idle meanwhile; on the CPU they are the steps themselves.
    #[must_use]
    pub fn submit_seconds(&self) -> f64 {
        self.submit_seconds
    }

    /// Whether all epochs are trained, or patience has run out.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let Progress { history, waited, .. } = &self.progress;
        history.len() >= self.config.train.epochs || *waited >= self.config.train.patience
    }

    /// Number of batches of an epoch.
    #[must_use]
    pub fn n_batches(&self) -> usize {
        self.task.split.train.len().div_ceil(self.config.train.batch)
    }

    /// Trains to the end of the current epoch and validates. `save` is called for every checkpoint inside the epoch. When the
    /// callback asks to stop, the current step is completed and [`Error::Interrupted`] returned; a checkpoint can be saved then.
    pub fn epoch(
        &mut self,
        callback: &mut dyn Callback,
        save: &mut dyn FnMut(&Self) -> Result<()>,
    ) -> Result<EpochRecord> {
        let (mut mark, mut saved) = (Instant::now(), Instant::now());
        let n_batches = self.n_batches();
        let save_every = self.config.train.save_every;
        callback.on_progress(Stage::Train, self.progress.batch, n_batches);
        let trained = self.train_until(n_batches, &mut |trainer| {
            trainer.progress.seconds += mark.elapsed().as_secs_f64();
            mark = Instant::now();
            callback.on_progress(Stage::Train, trainer.progress.batch, n_batches);
            if callback.should_stop() {
                return Err(Error::Interrupted);
            }
            if saved.elapsed().as_secs_f64() > save_every {
                trainer.collect_losses(0)?;
                save(trainer)?;
                (mark, saved) = (Instant::now(), Instant::now());
            }
            Ok(())
        });
        self.progress.seconds += mark.elapsed().as_secs_f64();
        trained?;
        let mark = Instant::now();
        let val = self.validate(callback)?;
        Ok(self.finish_epoch(&val, mark.elapsed().as_secs_f64()))
    }

    /// Trains on the next `n` batches, or to the end of the epoch, without validation. `on_step` is called after each.
    pub fn steps(&mut self, n: usize, on_step: &mut dyn FnMut()) -> Result<()> {
        let end = self.n_batches().min(self.progress.batch + n);
        self.train_until(end, &mut |_| {
            on_step();
            Ok(())
        })
    }

    /// Trains until batch `end`. `on_step` is called after each submitted step. On return all submitted steps are complete.
    fn train_until(&mut self, end: usize, on_step: &mut dyn FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let Self { config, task, model, .. } = *self;
        let Progress { batch: first, steps, .. } = self.progress;
        let (negatives, intensity) = (self.negatives.clone(), self.intensity.clone());
        let device = self.state.weights().device().clone();
        // On the CPU a batch has chunks enough, and their number is that of one process.
        let n_shares = if device.is_gpu() { self.state.weights().group().n_ranks() } else { 1 };
        let batches = TrainBatches { config, task, model, negatives, first, end, steps, intensity, n_shares };
        if let (Some(memory), 0) = (&mut self.memory, first) {
            memory.reset()?;
        }
        let Some(n_workers) = self.workers else {
            let mut scorer = batches.scorer();
            let trained = batches.each(|_| true, &mut |drawn| {
                let start = Instant::now();
                scorer.train_step(&mut self.state, &drawn.batch(), self.memory.as_mut())?;
                self.submit_seconds += start.elapsed().as_secs_f64();
                self.pending.push_back(drawn.negatives);
                self.collect_losses(MAX_LAG)?;
                on_step(self)
            });
            return self.complete(trained);
        };
        let work = |worker: usize, send: &mut (dyn FnMut(Result<(PreparedBatch, u64)>) -> bool + Send)| {
            batches.prefetch(&device, worker, n_workers, send);
        };
        let trained = prefetch::in_order(n_workers, work, |ready, waited| {
            self.prefetch_wait += waited.as_secs_f64();
            let (prepared, negatives) = ready?;
            let start = Instant::now();
            prepared.train_step(model, &mut self.state)?;
            self.submit_seconds += start.elapsed().as_secs_f64();
            self.pending.push_back(negatives);
            self.collect_losses(MAX_LAG)?;
            on_step(self)
        });
        self.complete(trained)
    }

    /// Waits for all submitted steps.
    fn complete(&mut self, trained: Result<()>) -> Result<()> {
        let collected = self.collect_losses(0);
        match trained {
            Ok(()) | Err(Error::Interrupted) => collected.and(trained),
            failed => failed,
        }
    }

    /// Reads the losses of completed steps, waiting for all but the newest `lag`.
    fn collect_losses(&mut self, lag: usize) -> Result<()> {
        for step in self.state.step_results(lag)? {
            if !step.is_finite {
                return Err(Error::Diverged {
                    loss: step.loss,
                    step: self.progress.steps + 1,
                    epoch: self.progress.history.len() + 1,
                    batch: self.progress.batch + 1,
                    seed: self.config.seed,
                });
            }
            self.progress.loss_sum += step.loss;
            self.progress.batch += 1;
            self.progress.steps += 1;
            if let Some(negatives) = self.pending.pop_front() {
                self.progress.negatives = negatives;
                self.negatives.advance_to(negatives);
            }
        }
        Ok(())
    }

    /// Skips the next batch, for benchmarks.
    pub fn skip_batch(&mut self) {
        self.progress.batch += 1;
    }

    /// Validation metrics of the current weights. Every pass starts with the memory after training, restored even on an error.
    fn validate(&mut self, callback: &mut dyn Callback) -> Result<Validation> {
        let trained = self.memory.as_ref().map(Memory::snapshot).transpose()?;
        let random = Negatives::Random;
        let transductive = self.validate_pass(Pass::Val, random, trained.as_ref(), callback)?;
        self.validated_memory = self.memory.as_ref().map(Memory::snapshot).transpose()?;
        let historical = match self.intensity {
            Some(_) => self.validate_pass(Pass::Val, Negatives::Historical, trained.as_ref(), callback)?,
            None => None,
        };
        let inductive = self.validate_pass(Pass::NewNodeVal, random, trained.as_ref(), callback)?;
        let mrr = match self.config.train.select {
            Selection::Ap => None,
            Selection::Mrr => self.validate_ranks(trained.as_ref(), callback)?,
        };
        Ok(Validation { random: PerSetting { transductive, inductive }, historical, mrr })
    }

    /// AP and AUC of one pass, if it has events, with the current weights and the memory as the last training step or validation left it.
    pub fn evaluate(
        &mut self,
        pass: Pass,
        negatives: Negatives,
        callback: &mut dyn Callback,
    ) -> Result<Option<LinkMetrics>> {
        let trained = self.memory.as_ref().map(Memory::snapshot).transpose()?;
        let metrics = self.validate_pass(pass, negatives, trained.as_ref(), callback);
        self.restore_memory(trained.as_ref())?;
        metrics
    }

    fn validate_pass(
        &mut self,
        pass: Pass,
        negatives: Negatives,
        trained: Option<&MemoryState>,
        callback: &mut dyn Callback,
    ) -> Result<Option<LinkMetrics>> {
        let (task, batch) = (self.task, self.config.train.batch);
        self.with_scorer(negatives.output(), trained, |scorer| {
            let metrics = evaluate(task, pass, negatives, batch, std::slice::from_mut(scorer), callback)?;
            Ok(metrics.map(|of_pass| of_pass[0]))
        })
    }

    /// Mean reciprocal rank of validation events among candidates that are drawn by TGB's rule, the same in every epoch and run.
    fn validate_ranks(&mut self, trained: Option<&MemoryState>, callback: &mut dyn Callback) -> Result<Option<f64>> {
        let (task, Config { train, .. }) = (self.task, self.config);
        let candidates = CandidateCount::Some(train.select_candidates).into();
        let at_most = if train.select_events == 0 { usize::MAX } else { train.select_events };
        let events = RankedEvents { pass: Pass::Val, at_most, batch_size: train.batch };
        self.with_scorer(Output::Partner, trained, |scorer| {
            let scorers = std::slice::from_mut(scorer);
            let metrics = rank_some(task, events, &candidates, scorers, callback)?;
            Ok(metrics.map(|of_pass| of_pass[0].mrr))
        })
    }

    /// Measures something with the current weights and with the memory after training.
    fn with_scorer<T>(
        &mut self,
        output: Output,
        trained: Option<&MemoryState>,
        measure: impl FnOnce(&mut ModelScorer<'_>) -> Result<T>,
    ) -> Result<T> {
        self.restore_memory(trained)?;
        let scorer = PairScorer::new(self.model, &self.task.tables, &self.task.full_store);
        let mut scorer = ModelScorer::new(scorer, self.state.weights(), self.memory.take()).output(output);
        let measured = measure(&mut scorer);
        self.memory = scorer.into_memory();
        if measured.is_err() {
            self.restore_memory(trained)?;
        }
        measured
    }

    fn restore_memory(&mut self, trained: Option<&MemoryState>) -> Result<()> {
        let (Some(memory), Some(trained)) = (&mut self.memory, trained) else { return Ok(()) };
        memory.restore(trained, &self.task.split.train)
    }

    fn finish_epoch(&mut self, val: &Validation, eval_seconds: f64) -> EpochRecord {
        let progress = &mut self.progress;
        let epoch = progress.history.len() + 1;
        let better = val.selection().is_some_and(|(ap, auc)| progress.record_validation(epoch, ap, auc));
        // With past partners and past pairs there are three negatives for each event.
        let n_per_event = if val.historical.is_some() { 4 } else { 2 };
        let n_pairs = n_per_event * self.task.split.train.len();
        let record = EpochRecord {
            epoch,
            loss: progress.loss_sum / progress.batch.max(1) as f64,
            val: val.random,
            val_historical: val.historical,
            val_mrr: val.mrr,
            better,
            train_seconds: progress.seconds,
            eval_seconds,
            pairs_per_second: n_pairs as f64 / progress.seconds.max(f64::MIN_POSITIVE),
        };
        progress.history.push(record.clone());
        (progress.batch, progress.loss_sum, progress.seconds) = (0, 0.0, 0.0);
        record
    }
}

fn unreadable(detail: &dyn std::fmt::Display) -> Error {
    Error::Progress { detail: detail.to_string() }
}
