//! Weights of the models: random, or trained on a small stream.

use ctdg::event::EventStream;
use ctdg::random::RandomStream;
use ctdg::split::SplitMode;
use hopedgn_tensor::{Device, Parameters, Weights};
use serde::Serialize;

use super::TestedModel;
use hopedgn::Result;
use hopedgn::callbacks::NoCallback;
use hopedgn::collate::FeatureWidths;
use hopedgn::config::{Config, ModelName, Objective, Schedule, Selection, TrainConfig};
use hopedgn::memory::{Memory, MemoryState};
use hopedgn::model::{self, Model};
use hopedgn::task::Task;
use hopedgn::train::Trainer;

/// The training in words.
pub const TRAINING: &str = "ten epochs of Adam at a rate of 0.003, batches of 20 events with one random negative each, on 200 \
                            events between eight nodes: two rings of four, each node linked to the next";

const N_NODES: u32 = 8;
const N_EVENTS: u32 = 200;
/// The stream has few nodes, since global HopeDGN computes all pairs of nodes for every query.
const TRAIN: TrainConfig = TrainConfig {
    epochs: 10,
    patience: 10,
    batch: 20,
    lr: 3e-3,
    objective: Objective::Dyglib,
    schedule: Schedule::Constant,
    unmet_positives: false,
    pair_weight: 0.5,
    select: Selection::Ap,
    select_events: 2000,
    select_candidates: 100,
    save_every: 3600.0,
};

/// A model with weights.
#[derive(Debug)]
pub struct WeightedModel {
    pub(super) model: Box<dyn Model>,
    pub(super) weights: Weights,
    /// Memory with the time scale of the training stream, a constant of the model for every graph.
    pub(super) time_scale: Option<MemoryState>,
}

/// Losses and metrics of one training.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Training {
    /// The model.
    #[serde(rename = "subject")]
    pub model: String,
    /// Seed of weights and negatives.
    pub seed: u64,
    /// Steps of Adam.
    pub n_steps: u64,
    /// Mean loss of the first epoch.
    pub first_loss: f64,
    /// Mean loss of the last epoch.
    pub last_loss: f64,
    /// Average precision on the validation events after it.
    pub val_ap: f64,
}

/// Makes models with weights, on one training stream.
#[derive(Debug)]
pub struct WeightSource {
    stream: EventStream,
}

impl WeightSource {
    /// With a training stream generated from `seed`.
    pub fn new(seed: u64) -> Result<Self> {
        let mut random = RandomStream::named(seed, "lab/school");
        let mut time = 0.0;
        let events = (0..N_EVENTS).map(|_| {
            let (circle, src) = (4 * random.below(N_NODES / 4), random.below(4));
            time += 0.1 + random.unit();
            (circle + src, circle + (src + 1) % 4, time)
        });
        Ok(Self { stream: EventStream::from_events(events)? })
    }

    /// `tested` with random weights of `seed`, [larger](enlarge) than the initial ones of training.
    pub fn random(&self, tested: &TestedModel, seed: u64) -> Result<WeightedModel> {
        let (model, mut parameters) = model::build(&tested.config, FeatureWidths::default(), seed)?;
        enlarge(tested.config.name(), &mut parameters);
        self.with_weights(model, parameters)
    }

    /// `tested` after a short training with `seed`, by the library's trainer.
    pub fn trained(&self, tested: &TestedModel, seed: u64) -> Result<(WeightedModel, Training)> {
        let config = Config { seed, model: tested.config.clone(), train: TRAIN, ..Config::default() };
        let task = Task::new(&self.stream, SplitMode::Dyglib)?;
        let (model, parameters) = model::build(&config.model, task.tables.widths(), seed)?;
        let mut trainer = Trainer::new(&config, &task, &*model, parameters, &Device::cpu())?;
        while !trainer.is_done() {
            trainer.epoch(&mut NoCallback, &mut |_| Ok(()))?;
        }
        let parameters = trainer.weights().parameters()?.into_owned();
        let history = &trainer.progress().history;
        let (first, last) = (history.first(), history.last());
        let training = Training {
            model: tested.name.clone(),
            seed,
            n_steps: trainer.progress().steps,
            first_loss: first.map_or(f64::NAN, |epoch| epoch.loss),
            last_loss: last.map_or(f64::NAN, |epoch| epoch.loss),
            val_ap: last.and_then(|epoch| epoch.val.transductive).map_or(f64::NAN, |metrics| metrics.ap),
        };
        drop(trainer);
        Ok((self.with_weights(model, parameters)?, training))
    }

    fn with_weights(&self, model: Box<dyn Model>, parameters: Parameters) -> Result<WeightedModel> {
        let task = Task::new(&self.stream, SplitMode::Dyglib)?;
        let device = Device::cpu();
        let memory = model.memory().map(|form| Memory::new(&device, form, &self.stream, &task.split.train));
        let time_scale = memory.transpose()?.map(|memory| memory.snapshot()).transpose()?;
        Ok(WeightedModel { model, weights: Weights::new(&device, parameters)?, time_scale })
    }
}

/// Multiplies all weights by 2, those of global HopeDGN by 1.25. With initial weights each layer brings values closer
/// together, and small differences are lost to rounding.
pub fn enlarge(model: ModelName, parameters: &mut Parameters) {
    let factor = if model == ModelName::HopeDgnGlobal { 1.25 } else { 2.0 };
    let ids: Vec<_> = parameters.iter().map(|(id, ..)| id).collect();
    for id in ids {
        parameters.get_mut(id).values_mut().iter_mut().for_each(|weight| *weight *= factor);
    }
}
