//! Trains in a run folder from wherever it stands to the end.

use std::collections::BTreeMap;

use ctdg::summary;
use hopedgn_tensor::{Device, Parameters, Weights};

use super::{EVENTS, MODEL, REPORT, RunFolder, STATE, SUMMARY};
use crate::callbacks::Callback;
use crate::callbacks::report::{self, Report};
use crate::callbacks::tensorboard::EventWriter;
use crate::config::Config;
use crate::evaluate::Evaluator;
use crate::evaluate::Negatives;
use crate::memory::MemoryState;
use crate::metrics::{EpochRecord, Summary};
use crate::model;
use crate::task::Task;
use crate::train::Trainer;
use crate::{Error, Result};

/// What a run needs besides its folder.
#[derive(Debug)]
pub struct Session<'a> {
    /// Where it writes.
    pub folder: &'a RunFolder,
    /// Its settings.
    pub config: &'a Config,
    /// Its data.
    pub task: &'a Task<'a>,
    /// Where it computes.
    pub device: &'a Device,
}

impl Session<'_> {
    /// Trains until done, from the saved state if there is one, then tests the best weights.
    ///
    /// When the callback wants to stop, the state is saved and [`Error::Interrupted`] returned.
    pub fn train(&self, callback: &mut dyn Callback) -> Result<Summary> {
        let _lock = self.folder.lock()?;
        self.folder.sweep();
        let (model, parameters) = model::build(&self.config.model, self.task.tables.widths(), self.config.seed)?;
        let mut trainer = Trainer::new(self.config, self.task, &*model, parameters, self.device)?;
        if let Some(state) = self.folder.state()? {
            let file = self.folder.path().join(STATE);
            trainer.restore(&state).map_err(|error| match error {
                Error::Tensor(problem) if !problem.is_of_gpu() => Error::Checkpoint { file, problem },
                error => error,
            })?;
        }
        let n_done = trainer.progress().history.len();
        if self.config.train.epochs < n_done {
            let (found, expected) =
                (self.config.train.epochs.to_string(), format!("at least the {n_done} that are over"));
            return Err(Error::Setting { name: "train.epochs", found, expected });
        }
        if self.folder.config()? != *self.config {
            self.folder.write_config(self.config)?;
        }
        let data = summary::Summary::of(self.task.stream);
        self.folder.write_metrics(&trainer.progress().history)?;
        let events = self.folder.path().join(format!("{EVENTS}.0.hopedgn"));
        let mut events = EventWriter::create(&events, callback.wall_time(), &trainer.progress().history)?;

        callback.start(trainer.progress().history.len(), self.config.train.epochs);
        if !trainer.is_done() {
            // What was tested is about to be replaced.
            self.folder.remove_results()?;
        }
        while !trainer.is_done() {
            let save = &mut |trainer: &Trainer<'_>| self.folder.write(STATE, trainer.save()?);
            match trainer.epoch(callback, save) {
                Ok(record) => {
                    self.keep(&trainer, &record)?;
                    events.epoch(callback.wall_time(), &record)?;
                    self.write_report(&data, &trainer.progress().history, None)?;
                    callback.epoch(&record);
                }
                Err(Error::Interrupted) => {
                    self.folder.write(STATE, trainer.save()?)?;
                    self.write_report(&data, &trainer.progress().history, None)?;
                    return Err(Error::Interrupted);
                }
                Err(error) => return Err(error),
            }
        }
        // One that cannot be read is made again.
        let known = self.folder.summary().ok().flatten();
        let known = known.filter(|summary| summary.epochs == trainer.progress().history.len());
        let summary = known.map_or_else(|| self.finish(&trainer, callback), Ok)?;
        self.folder.write_json(SUMMARY, &summary)?;
        self.write_report(&data, &trainer.progress().history, Some(&summary))?;
        Ok(summary)
    }

    /// The best weights first: should the program die before the state is written, the epoch is trained again and comes
    /// to the same weights.
    fn keep(&self, trainer: &Trainer<'_>, record: &EpochRecord) -> Result<()> {
        if record.better {
            let beside = trainer.remembered().map(MemoryState::tensors).unwrap_or_default();
            let weights = trainer.weights().parameters()?;
            self.folder.write(MODEL, hopedgn_tensor::save_beside(&weights, None, &beside, &BTreeMap::new())?)?;
        }
        self.folder.write(STATE, trainer.save()?)?;
        self.folder.write_metrics(&trainer.progress().history)
    }

    fn finish(&self, trainer: &Trainer<'_>, callback: &mut dyn Callback) -> Result<Summary> {
        let mut best: Parameters = trainer.weights().parameters()?.into_owned();
        let memory = self.folder.load_best(&mut best)?;
        let n_values = best.n_values();
        let best = Weights::new(self.device, best)?;
        let (task, batch) = (self.task, self.config.train.batch);
        let examination = Evaluator { task, model: trainer.model(), weights: &best, memory: memory.as_ref(), batch };
        let mut heuristics = examination.links(Negatives::Random, callback)?;
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
            // Its weights are those that were validated after it.
            val: history.iter().find(|record| record.epoch == best_epoch).map(|record| record.val).unwrap_or_default(),
            test,
            heuristics,
            seconds_per_epoch: seconds / history.len().max(1) as f64,
            device: self.device.name().to_owned(),
            hardware: self.device.card().map(str::to_owned).or_else(processor),
            precision: Some(self.device.precision().as_str().to_owned()),
            parameters: n_values,
            peak_memory: callback.peak_memory(),
        })
    }

    fn write_report(&self, data: &summary::Summary, history: &[EpochRecord], summary: Option<&Summary>) -> Result<()> {
        let Config { data: name, seed, model, .. } = self.config;
        let title = format!("{} on {name}, seed {seed}", model.name().title());
        let config_toml = self.config.to_toml()?;
        let report = Report { title: &title, config_toml: &config_toml, data: Some(data), history, summary };
        self.folder.write(REPORT, report::html(&report))
    }
}

/// The processor's name, where Linux tells it.
pub(super) fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    let cores = text.lines().filter(|line| line.starts_with("model name")).count();
    Some(format!("{}, {cores} cores", line.split_once(':')?.1.trim()))
}
