//! How the models get their weights: drawn, or learned from a small stream.

use ctdg::event::EventStream;
use ctdg::random::Stream;
use ctdg::split::Mode;
use hopedgn_tensor::{Device, Parameters, Weights};
use serde::Serialize;

use super::Subject;
use hopedgn::Result;
use hopedgn::callbacks::NoCallback;
use hopedgn::collate::FeatureWidths;
use hopedgn::config::{Config, ModelName, TrainConfig};
use hopedgn::memory::{Memory, MemoryState};
use hopedgn::model::{self, Model};
use hopedgn::task::Task;
use hopedgn::train::Trainer;

/// What training is, for people.
pub const TRAINING: &str = "ten epochs of Adam at a rate of 0.003, batches of 20 events with one random negative each, on 200 \
                            events of eight nodes, two circles of four in which everybody meets the next";

const N_NODES: u32 = 8;
const N_EVENTS: u32 = 200;
/// Global HopeDGN looks at all pairs of nodes for every question, so that the stream has few.
const LESSONS: TrainConfig = TrainConfig { epochs: 10, patience: 10, batch: 20, lr: 3e-3, save_every: 3600.0 };

/// A model with weights.
#[derive(Debug)]
pub struct Ready {
    pub(super) model: Box<dyn Model>,
    pub(super) weights: Weights,
    /// What was usual in the stream that it learned from: a constant of the model, whichever graph it looks at.
    pub(super) usual: Option<MemoryState>,
}

/// How one training went.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Training {
    /// The model.
    pub subject: String,
    /// Of weights and negatives.
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

/// Where models are taught.
#[derive(Debug)]
pub struct School {
    stream: EventStream,
}

impl School {
    /// With a stream drawn from `seed`.
    pub fn new(seed: u64) -> Result<Self> {
        let mut random = Stream::named(seed, "lab/school");
        let mut time = 0.0;
        let events = (0..N_EVENTS).map(|_| {
            let (circle, src) = (4 * random.below(N_NODES / 4), random.below(4));
            time += 0.1 + random.unit();
            (circle + src, circle + (src + 1) % 4, time)
        });
        Ok(Self { stream: EventStream::from_events(events)? })
    }

    /// `subject` with weights drawn from `seed`, [larger](spread) than learning would start with.
    pub fn drawn(&self, subject: &Subject, seed: u64) -> Result<Ready> {
        let (model, mut parameters) = model::build(&subject.config, FeatureWidths::default(), seed)?;
        spread(subject.config.name(), &mut parameters);
        self.ready(model, parameters)
    }

    /// `subject` after some training from `seed`, by the same code as `hopedgn train`.
    pub fn taught(&self, subject: &Subject, seed: u64) -> Result<(Ready, Training)> {
        let config = Config { seed, model: subject.config.clone(), train: LESSONS, ..Config::default() };
        let task = Task::new(&self.stream, Mode::Dyglib)?;
        let (model, parameters) = model::build(&config.model, task.tables.widths(), seed)?;
        let mut trainer = Trainer::new(&config, &task, &*model, parameters, &Device::cpu())?;
        while !trainer.is_done() {
            trainer.epoch(&mut NoCallback, &mut |_| Ok(()))?;
        }
        let parameters = trainer.weights().parameters()?.into_owned();
        let history = &trainer.progress().history;
        let (first, last) = (history.first(), history.last());
        let training = Training {
            subject: subject.name.clone(),
            seed,
            n_steps: trainer.progress().steps,
            first_loss: first.map_or(f64::NAN, |epoch| epoch.loss),
            last_loss: last.map_or(f64::NAN, |epoch| epoch.loss),
            val_ap: last.and_then(|epoch| epoch.val.transductive).map_or(f64::NAN, |metrics| metrics.ap),
        };
        drop(trainer);
        Ok((self.ready(model, parameters)?, training))
    }

    fn ready(&self, model: Box<dyn Model>, parameters: Parameters) -> Result<Ready> {
        let task = Task::new(&self.stream, Mode::Dyglib)?;
        let device = Device::cpu();
        let memory = model.memory().map(|form| Memory::new(&device, form, &self.stream, &task.split.train));
        let usual = memory.transpose()?.map(|memory| memory.snapshot()).transpose()?;
        Ok(Ready { model, weights: Weights::new(&device, parameters)?, usual })
    }
}

/// Makes weights larger: as they are drawn for learning, each layer brings values closer together, and differences that
/// come from far are lost in roundings.
///
/// They are doubled; those of global HopeDGN, which are larger to begin with, grow by a quarter.
pub fn spread(model: ModelName, parameters: &mut Parameters) {
    let factor = if model == ModelName::HopeDgnGlobal { 1.25 } else { 2.0 };
    let ids: Vec<_> = parameters.iter().map(|(id, ..)| id).collect();
    for id in ids {
        parameters.get_mut(id).values_mut().iter_mut().for_each(|weight| *weight *= factor);
    }
}
