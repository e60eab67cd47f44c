//! One training session: from the last checkpoint, or from initial weights, to the test metrics of the best epoch.

use std::path::Path;
use std::time::Instant;

use hopedgn_tensor::{Device, Error as TensorError, Parameters, ProcessGroup, Weights};

use super::handover::{AgreedCallback, hand_over};
use super::{MODEL, RunFolder, STATE, SUMMARY, damaged};
use crate::callbacks::{Callback, EpochEnd, TrainEnd, TrainStart};
use crate::config::Config;
use crate::evaluate::{Evaluator, Negatives};
use crate::file_format::{from_json, to_line};
use crate::memory::MemoryState;
use crate::metrics::{EpochRecord, Summary};
use crate::model::{LOG_SUM, Model};
use crate::task::Task;
use crate::train::Trainer;
use crate::{Error, Result, system};

/// What a training session needs.
///
/// ```
/// # use hopedgn::{*, ctdg::split::SplitMode, model::{ModelConfig, build}, task::Task, tensor::Weights};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let task = Task::new(&events, SplitMode::Dyglib)?;
/// # let config = ModelConfig::new(ModelName::HopeDgn).with_known(&["d-channel=4", "length=4"])?;
/// # let (model, parameters) = build(&config, task.tables.widths(), 0)?;
/// # let weights = Weights::new(&Device::cpu(), parameters)?;
/// use hopedgn::{callbacks::NoCallback, run::Session, tensor::ProcessGroup};
///
/// # let mut config = Config { model: config, ..Config::default() };
/// config.train.epochs = 1;
/// let (device, initial) = (&Device::cpu(), weights.parameters()?.into_owned());
/// let (folder, max_memory, group) = (None, None, ProcessGroup::default());
/// let session = Session { config: &config, task: &task, model: &*model, initial, device, folder, max_memory, group };
/// let trained = session.train(&mut NoCallback)?;
/// assert_eq!((trained.history.len(), trained.summary.best_epoch), (1, 1));
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug)]
pub struct Session<'a> {
    /// All settings.
    pub config: &'a Config,
    /// The dataset with its split.
    pub task: &'a Task<'a>,
    /// The model.
    pub model: &'a dyn Model,
    /// Its initial weights.
    pub initial: Parameters,
    /// Where to compute.
    pub device: &'a Device,
    /// Where checkpoints go; without it they are kept in memory. Of a process group rank 0 has one.
    pub folder: Option<&'a RunFolder>,
    /// Bytes that a node memory may take; what the system has by default.
    pub max_memory: Option<u64>,
    /// The processes that train together.
    pub group: ProcessGroup,
}

/// What training leaves.
///
/// Made by [`Session::train`].
#[derive(Debug)]
pub struct Trained {
    /// The weights of the best epoch.
    pub weights: Weights,
    /// The node memory after validating them, if the model has one.
    pub memory: Option<MemoryState>,
    /// One record for each epoch.
    pub history: Vec<EpochRecord>,
    /// Test metrics.
    pub summary: Summary,
    /// The last checkpoint, where no folder holds it.
    pub state: Option<Vec<u8>>,
}

/// Copies of a node memory at the peak of training: its own, those before and after validation, that of the best epoch, and those
/// of a checkpoint and of a test.
const MEMORY_COPIES: u64 = 6;

/// Weights of the best epoch since the session began, if one was better than all before. Every process of a group has them.
pub(super) type Best = Option<(Parameters, Option<MemoryState>)>;

/// Seconds between checkpoints at the ends of epochs at least: short epochs would take longer to write than to train.
const SECONDS_BETWEEN_CHECKPOINTS: f64 = 1.0;

/// What is not yet written to the run folder.
#[derive(Debug, Default)]
struct PendingCheckpoint {
    /// Whether there are better weights.
    best: bool,
    /// Whether there is a later state.
    state: bool,
    /// When both were written last.
    written: Option<Instant>,
}

impl Session<'_> {
    /// Trains until done, from the last checkpoint of the folder if there is one, then tests the best weights.
    ///
    /// When the callback asks to stop, a checkpoint is saved and [`Error::Interrupted`] returned. In a process group, a callback of any
    /// rank stops all; if a rank is lost, the others wait for its replacement and give it their state.
    pub fn train(self, callback: &mut dyn Callback) -> Result<Trained> {
        let trained = self.train_with(&mut AgreedCallback { callback, group: &self.group });
        if let Err(error) = &trained {
            self.group.abort(&error.to_string());
        }
        trained
    }

    fn train_with(&self, callback: &mut dyn Callback) -> Result<Trained> {
        if let Some(form) = self.model.memory() {
            form.check_fits(self.task.stream.n_nodes(), MEMORY_COPIES, self.max_memory)?;
        }
        let _lock = self.folder.map(RunFolder::lock).transpose()?;
        let trainer = Trainer::new(self.config, self.task, self.model, self.initial.clone(), self.device)?;
        let mut trainer = trainer.in_group(&self.group)?;
        if let Some(folder) = self.folder {
            folder.sweep();
            folder.settle([])?;
            restore(&mut trainer, folder)?;
        }
        let n_done = trainer.progress().history.len();
        if self.config.train.epochs < n_done {
            let (found, expected) =
                (self.config.train.epochs.to_string(), format!("at least the {n_done} that are trained"));
            return Err(Error::Setting { name: "train.epochs", found, expected });
        }
        if let Some(folder) = self.folder {
            folder.update_config(self.config)?;
            folder.write_metrics(&trainer.progress().history)?;
            if !trainer.is_done() {
                // Test results belong to weights that are about to be replaced.
                folder.remove_results()?;
            }
            folder.forget_views()?;
        }
        let start = TrainStart { config: self.config, task: self.task, history: &trainer.progress().history };
        callback.on_train_start(&start)?;
        let (mut best, mut pending) = (None, PendingCheckpoint::default());
        loop {
            match self.train_until_done(&mut trainer, (&mut best, &mut pending), callback) {
                // GPUs do not meet again: NCCL may wait for the lost one forever.
                Err(Error::Tensor(TensorError::LostRank { .. })) if !self.device.is_gpu() => {
                    // Nothing is lost, should no replacement come.
                    self.write(&trainer, &best, &mut pending)?;
                    self.group.reform()?;
                }
                trained => return trained,
            }
        }
    }

    /// Trains and tests from the most advanced state of all ranks.
    fn train_until_done(
        &self,
        trainer: &mut Trainer<'_>,
        (best, pending): (&mut Best, &mut PendingCheckpoint),
        callback: &mut dyn Callback,
    ) -> Result<Trained> {
        let n_known = trainer.progress().history.len();
        if !self.group.is_alone() && hand_over(self, trainer, best)? {
            pending.best = true;
            self.write(trainer, best, pending)?;
            let history = &trainer.progress().history;
            for n in n_known..history.len() {
                callback.on_epoch_end(&EpochEnd { record: &history[n], history: &history[..=n] })?;
            }
        }
        self.train_epochs(trainer, best, pending, callback)?;
        self.finish(trainer, best.clone(), callback)
    }

    fn train_epochs(
        &self,
        trainer: &mut Trainer<'_>,
        best: &mut Best,
        pending: &mut PendingCheckpoint,
        callback: &mut dyn Callback,
    ) -> Result<()> {
        while !trainer.is_done() {
            match trainer.epoch(callback, &mut |trainer| self.write(trainer, best, pending)) {
                Ok(record) => {
                    self.checkpoint(trainer, &record, best, pending)?;
                    let history = &trainer.progress().history;
                    if let Err(error) = callback.on_epoch_end(&EpochEnd { record: &record, history }) {
                        self.write(trainer, best, pending)?;
                        return Err(error);
                    }
                }
                Err(Error::Interrupted) => {
                    self.write(trainer, best, pending)?;
                    callback.on_train_end(&TrainEnd { history: &trainer.progress().history, summary: None })?;
                    return Err(Error::Interrupted);
                }
                Err(error) => {
                    // In the middle of an epoch, or with weights that are no numbers. The best ones are kept; the epochs since the last
                    // checkpoint are trained again.
                    self.write_best(best, pending)?;
                    return Err(error);
                }
            }
        }
        if pending.state { self.write(trainer, best, pending) } else { Ok(()) }
    }

    /// Keeps what an epoch gave, and writes it unless the last time was a moment ago: a process that dies in between trains these epochs
    /// again, to the same weights.
    fn checkpoint(
        &self,
        trainer: &Trainer<'_>,
        record: &EpochRecord,
        best: &mut Best,
        pending: &mut PendingCheckpoint,
    ) -> Result<()> {
        if record.better {
            *best = Some((trainer.weights().parameters()?.into_owned(), trainer.validated_memory().cloned()));
            pending.best = true;
        }
        let is_recent = |written: Instant| written.elapsed().as_secs_f64() < SECONDS_BETWEEN_CHECKPOINTS;
        pending.state = true;
        if pending.written.is_some_and(is_recent) { Ok(()) } else { self.write(trainer, best, pending) }
    }

    /// Writes the best weights first: if the process dies before the state is written, epochs are trained again and give the same
    /// weights.
    fn write(&self, trainer: &Trainer<'_>, best: &Best, pending: &mut PendingCheckpoint) -> Result<()> {
        let Some(folder) = self.folder else { return Ok(()) };
        self.write_best(best, pending)?;
        folder.write(STATE, trainer.save()?)?;
        folder.write_metrics(&trainer.progress().history)?;
        (pending.state, pending.written) = (false, Some(Instant::now()));
        Ok(())
    }

    fn write_best(&self, best: &Best, pending: &mut PendingCheckpoint) -> Result<()> {
        if let (Some(folder), Some((weights, memory)), true) = (self.folder, best, pending.best) {
            folder.write_all(&[(MODEL, &weights_file(self.config, weights, memory.as_ref())?)])?;
        }
        pending.best = false;
        Ok(())
    }

    /// Tests the best weights, unless the folder already holds their results.
    fn finish(&self, trainer: &Trainer<'_>, best: Best, callback: &mut dyn Callback) -> Result<Trained> {
        let mut parameters: Parameters = trainer.weights().parameters()?.into_owned();
        let memory = match (self.folder, best) {
            (_, Some((best, memory))) => {
                parameters = best;
                memory
            }
            (Some(folder), None) => folder.load_best(self.config, &mut parameters)?,
            // No epoch had validation events.
            (None, None) => trainer.validated_memory().cloned(),
        };
        let history = trainer.progress().history.clone();
        // A summary that cannot be read is made again.
        let known = self.folder.and_then(|folder| folder.summary().ok().flatten());
        let known = known.filter(|summary| summary.epochs == history.len());
        let known = self.agreed_summary(known)?;
        if known.is_none()
            && self.normalise(&mut parameters, callback)?
            && let Some(folder) = self.folder
        {
            folder.write_all(&[(MODEL, &weights_file(self.config, &parameters, memory.as_ref())?)])?;
        }
        let weights = Weights::new(self.device, parameters)?.in_group(&self.group);
        let summary = match known {
            Some(summary) => summary,
            None => self.test(trainer, &weights, memory.as_ref(), callback)?,
        };
        if let Some(folder) = self.folder {
            folder.write_json(SUMMARY, &summary)?;
        }
        callback.on_train_end(&TrainEnd { history: &history, summary: Some(&summary) })?;
        if let Some(folder) = self.folder {
            folder.record_views()?;
        }
        let state = self.folder.is_none().then(|| trainer.save()).transpose()?;
        // No process leaves while another one may still be lost; from here on every process is for itself.
        self.group.all_gather(&[])?;
        let weights = weights.in_group(&ProcessGroup::default());
        Ok(Trained { weights, memory, history, summary, state })
    }

    /// The summary that any rank knows, on all ranks: those who know it do not test again, so none may.
    fn agreed_summary(&self, known: Option<Summary>) -> Result<Option<Summary>> {
        if self.group.is_alone() {
            return Ok(known);
        }
        let text =
            known.map(|summary| to_line(&summary)).transpose().map_err(|error| damaged(Path::new(SUMMARY), &error))?;
        let found = self.group.all_gather(text.unwrap_or_default().as_bytes())?;
        let found = found.iter().find(|text| !text.is_empty()).map(|text| String::from_utf8_lossy(text));
        found.map(|text| from_json(Path::new(SUMMARY), &text)).transpose()
    }

    /// Makes probabilities sum to one on validation events, of a model whose scores are probabilities. False if nothing changes.
    fn normalise(&self, parameters: &mut Parameters, callback: &mut dyn Callback) -> Result<bool> {
        let Some(id) = parameters.id(LOG_SUM) else { return Ok(false) };
        parameters.get_mut(id).values_mut()[0] = 0.0;
        let weights = Weights::new(self.device, parameters.clone())?.in_group(&self.group);
        let batch = self.config.train.batch;
        let evaluator = Evaluator { task: self.task, model: self.model, weights: &weights, memory: None, batch };
        let Some(log_sum) = evaluator.log_sum(callback)? else { return Ok(false) };
        parameters.get_mut(id).values_mut()[0] = log_sum;
        Ok(true)
    }

    fn test(
        &self,
        trainer: &Trainer<'_>,
        weights: &Weights,
        memory: Option<&MemoryState>,
        callback: &mut dyn Callback,
    ) -> Result<Summary> {
        let evaluator =
            Evaluator { task: self.task, model: self.model, weights, memory, batch: self.config.train.batch };
        let mut heuristics = evaluator.links(Negatives::Random, callback)?;
        let test = heuristics.remove(self.config.model.name().as_str()).unwrap_or_default();
        let history = &trainer.progress().history;
        let best_epoch = trainer.progress().best.map_or(0, |best| best.epoch);
        let seconds: f64 = history.iter().map(|record| record.train_seconds + record.eval_seconds).sum();
        Ok(Summary {
            data: self.config.data.clone(),
            model: self.config.model.name().as_str().to_owned(),
            seed: self.config.seed,
            epochs: history.len(),
            best_epoch,
            val: history.iter().find(|record| record.epoch == best_epoch).map(|record| record.val).unwrap_or_default(),
            test,
            heuristics,
            seconds_per_epoch: seconds / history.len().max(1) as f64,
            device: self.device.name().to_owned(),
            hardware: self.device.gpu_name().map(str::to_owned).or_else(system::processor),
            precision: Some(self.device.precision().as_str().to_owned()),
            parameters: weights.parameters()?.n_values(),
            peak_memory: system::peak_memory(),
        })
    }
}

fn restore(trainer: &mut Trainer<'_>, folder: &RunFolder) -> Result<()> {
    let Some(state) = folder.state()? else {
        // Starting again would replace trained weights.
        return if folder.path().join(MODEL).exists() {
            Err(Error::NoCheckpoint { folder: folder.path().to_owned() })
        } else {
            Ok(())
        };
    };
    trainer.restore(&state).map_err(|error| match error {
        Error::Tensor(problem) if !problem.is_gpu_error() => {
            Error::Checkpoint { file: folder.path().join(STATE), problem }
        }
        Error::OtherSettings { differences, .. } => {
            Error::OtherSettings { file: folder.path().join(STATE), differences }
        }
        error => error,
    })
}

/// The bytes of `model.safetensors`: weights with their settings, and the node memory beside them.
pub(crate) fn weights_file(config: &Config, weights: &Parameters, memory: Option<&MemoryState>) -> Result<Vec<u8>> {
    let extras = memory.map(MemoryState::tensors);
    Ok(hopedgn_tensor::save_with_extras(weights, None, extras.as_ref().map_or(&[], |all| all), &config.metadata()?)?)
}
