//! A few seconds of checks that this program computes rightly on this machine.

use ctdg::event::EventStream;
use ctdg::mite::PairQuery;
use ctdg::random::Stream;
use hopedgn_tensor::{AdamConfig, Device, Gradients, Parameters, Precision, TrainState, Weights};
use serde::Serialize;

use crate::device_parity;
use hopedgn::callbacks::{Callback, NoCallback};
use hopedgn::config::{Config, ModelConfig, ModelName, TrainConfig};
use hopedgn::memory::Memory;
use hopedgn::model::{self, Model};
use hopedgn::score::{PairScorer, TrainBatch};
use hopedgn::task::Task;
use hopedgn::train::Trainer;
use hopedgn::{Error, Result};

/// One check and how it came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// What was checked.
    pub name: String,
    /// Whether it holds.
    pub ok: bool,
    /// The figures behind it.
    pub detail: String,
}

/// Runs all checks; `seed` decides the inputs on which a GPU's operations are compared with the CPU's.
pub fn run(device: &Device, seed: u64) -> Result<Vec<Check>> {
    let stream = toy_stream()?;
    let config = Config {
        model: ModelConfig { length: 8, k: 4, d_channel: 4, d_time: 8, d_mite: 4, d_out: 8, ..ModelConfig::default() },
        train: TrainConfig { epochs: 20, batch: 20, lr: 1e-2, ..TrainConfig::default() },
        ..Config::default()
    };
    let task = Task::new(&stream, config.split)?;
    let (model, parameters) = model::build(&config.model, task.tables.widths(), config.seed)?;
    let bench = Bench { config: &config, task: &task, model: &*model, parameters: &parameters, device };
    let mut checks = vec![bench.batches()?, bench.threads()?, bench.resume()?, bench.learning()?];
    if device.precision() == Precision::F32 {
        // Of coarser numbers the difference of two losses says nothing; there gradients stand beside the CPU's.
        checks.insert(0, bench.gradients()?);
    }
    if device.is_gpu() {
        checks.extend(operations(device, seed)?);
        checks.push(bench.checkpoint()?);
        for name in ModelName::ALL {
            checks.push(bench.step(name)?);
        }
    }
    Ok(checks)
}

/// Every operation beside the CPU's, on random inputs.
fn operations(device: &Device, seed: u64) -> Result<Vec<Check>> {
    let mut random = Stream::named(seed.wrapping_add(2), "selftest");
    let tolerance = device_parity::tolerance(device.precision());
    let differences = device_parity::operations(device, &mut || random.unit())?;
    let check = |difference: device_parity::Difference| {
        let device_parity::Difference { name, value, gradient, repeats } = difference;
        let again = if repeats { "the same bits again" } else { "OTHER BITS AGAIN" };
        let detail = format!("off the CPU by {value:.1e}, gradients by {gradient:.1e}; {again}");
        Check { name: name.to_owned(), ok: value <= tolerance && gradient <= tolerance && repeats, detail }
    };
    Ok(differences.into_iter().map(check).collect())
}

/// The endings of biases of rectified layers, and what is far more than is added to them. A memory's are not rectified.
const RECTIFIED: [(&str, f32); 4] =
    [("memory.hidden.bias", 0.0), ("mite.hidden.bias", 20.0), ("hidden.bias", 8.0), ("up.bias", 8.0)];

/// Weights with which no value that is rectified lies near 0, where a rounding decides whether there is a gradient.
fn smooth(mut parameters: Parameters) -> Parameters {
    let names: Vec<_> = parameters.iter().map(|(id, name, _)| (id, name.to_owned())).collect();
    for (id, name) in names {
        let Some(&(_, far)) = RECTIFIED.iter().find(|(rectified, _)| name.ends_with(rectified)) else { continue };
        for (at, bias) in parameters.get_mut(id).values_mut().iter_mut().enumerate() {
            *bias = if at % 2 == 0 { far } else { -far };
        }
    }
    parameters
}

/// Three circles of friends who write to one another in turn, so that the past tells who is next.
fn toy_stream() -> Result<EventStream> {
    let mut random = Stream::named(1, "selftest");
    let events = (0..600_u32).map(|i| {
        let circle = random.below(3) * 4;
        let src = random.below(4);
        (circle + src, circle + (src + 1) % 4, f64::from(i))
    });
    Ok(EventStream::from_events(events.collect::<Vec<_>>())?)
}

struct Bench<'a> {
    config: &'a Config,
    task: &'a Task<'a>,
    model: &'a dyn Model,
    parameters: &'a Parameters,
    device: &'a Device,
}

impl Bench<'_> {
    fn queries(&self) -> (Vec<PairQuery>, Vec<f32>) {
        let mut queries = self.task.queries(&self.task.split.train[100..120]);
        for at in 0..queries.len() {
            let PairQuery { src, dst, time } = queries[at];
            queries.push(PairQuery { src: dst, dst: src, time });
        }
        let targets = (0..queries.len()).map(|at| if at < 20 { 1.0 } else { 0.0 }).collect();
        (queries, targets)
    }

    fn scorer(&self) -> PairScorer<'_> {
        PairScorer::new(self.model, &self.task.tables, &self.task.full_store)
    }

    /// Loss and gradients without dropout.
    fn loss(&self, parameters: &Parameters) -> Result<(f64, Gradients)> {
        let mut learner = TrainState::new(self.device, parameters.clone(), AdamConfig::default())?;
        let plain = ModelConfig { dropout: 0.0, ..self.config.model.clone() };
        let (model, _) = model::build(&plain, self.task.tables.widths(), self.config.seed)?;
        let (queries, targets) = self.queries();
        let mut scorer = PairScorer::new(&*model, &self.task.tables, &self.task.full_store);
        let dropout = Stream::named(0, "selftest");
        let lesson = TrainBatch { queries: &queries, targets: &targets, events: &[], group: 20, dropout: &dropout };
        scorer.differentiate(&mut learner, &lesson, None)
    }

    /// Moves every parameter a little along its gradient; the loss must grow by the square of the gradient's length.
    fn gradients(&self) -> Result<Check> {
        let (_, gradients) = self.loss(self.parameters)?;
        let (mut above, mut below) = (self.parameters.clone(), self.parameters.clone());
        let ids: Vec<_> = self.parameters.iter().map(|(id, _, _)| id).collect();
        let mut square = 0.0;
        for &id in &ids {
            square += gradients.parameter(id).values().iter().map(|&g| f64::from(g) * f64::from(g)).sum::<f64>();
        }
        #[expect(clippy::cast_possible_truncation, reason = "a small step")]
        let step = (1e-3 / square.sqrt()) as f32;
        for &id in &ids {
            let moves = gradients.parameter(id).values();
            for (value, slope) in above.get_mut(id).values_mut().iter_mut().zip(moves) {
                *value += step * slope;
            }
            for (value, slope) in below.get_mut(id).values_mut().iter_mut().zip(moves) {
                *value -= step * slope;
            }
        }
        let difference = (self.loss(&above)?.0 - self.loss(&below)?.0) / (2.0 * f64::from(step));
        let off = (difference / square - 1.0).abs();
        let detail = format!("the loss changes as its gradient says to within {:.3}%", 100.0 * off);
        Ok(Check { name: "gradients".into(), ok: off < 0.01, detail })
    }

    fn batches(&self) -> Result<Check> {
        let (queries, _) = self.queries();
        let weights = Weights::new(self.device, self.parameters.clone())?;
        let together = self.scorer().logits(&weights, &queries, queries.len())?;
        let (mut differing, mut furthest) = (0, 0.0_f32);
        for (query, logit) in queries.iter().zip(&together) {
            let alone = self.scorer().logits(&weights, &[*query], 1)?;
            differing += usize::from(alone[0].to_bits() != logit.to_bits());
            furthest = furthest.max((alone[0] - logit).abs());
        }
        if self.device.is_gpu() {
            let detail = format!("scores alone and in a batch differ by at most {furthest:.1e}");
            let tolerance = device_parity::tolerance(self.device.precision());
            let ok = f64::from(furthest) <= tolerance && together.iter().all(|logit| logit.is_finite());
            return Ok(Check { name: "batches".into(), ok, detail });
        }
        let detail = format!("{differing} of {} scores differ between alone and in a batch", queries.len());
        Ok(Check { name: "batches".into(), ok: differing == 0, detail })
    }

    /// Loss, gradients and weights after one step of a model, with dropout, beside the CPU's. What has a memory has lived
    /// through some events before.
    fn step(&self, name: ModelName) -> Result<Check> {
        let small =
            ["d-out=8", "d-time=8", "d-channel=4", "d-mite=4", "d-cooccurrence=4", "neighbors=5", "length=8", "k=4"];
        let mut settings: Vec<String> = small.iter().map(|size| format!("model.{size}")).collect();
        settings.extend((name != ModelName::Jodie).then(|| "model.mite=true".to_owned()));
        let config = Config::resolve(name, &[], &settings)?.model;
        let (model, parameters) = model::build(&config, self.task.tables.widths(), self.config.seed)?;
        let parameters = smooth(parameters);
        let (mut queries, mut targets) = self.queries();
        // So few that they are one chunk everywhere: chunks draw their own dropout.
        let few = 10..30;
        (queries, targets) = (queries[few.clone()].to_vec(), targets[few].to_vec());
        let dropout = Stream::named(0, "selftest");
        let before = &self.task.split.train[60..100];
        // The first of them are events, and are remembered on the way.
        let events = &self.task.split.train[110..120];
        let lesson = TrainBatch { queries: &queries, targets: &targets, events, group: 10, dropout: &dropout };
        let run = |device: &Device| -> Result<_> {
            let adam = AdamConfig { lr: 1e-4, ..AdamConfig::default() };
            let mut learner = TrainState::new(device, parameters.clone(), adam)?;
            let mut scorer = PairScorer::new(&*model, &self.task.tables, &self.task.full_store);
            let stream = self.task.stream;
            let mut memory = model.memory().map(|form| Memory::new(device, form, stream, before)).transpose()?;
            if let Some(memory) = &mut memory {
                for events in before.chunks(20) {
                    scorer.logits_with(learner.weights(), &self.task.queries(events), memory, events)?;
                }
            }
            let (loss, gradients) = scorer.differentiate(&mut learner, &lesson, memory.as_mut())?;
            scorer.learn(&mut learner, &lesson, memory.as_mut())?;
            Ok((loss, gradients, learner.snapshot()?.0))
        };
        let (cpu, got) = (run(&Device::cpu())?, run(self.device)?);
        // All parameters as one vector: gradients that are nothing but rounding do not decide.
        let ids: Vec<_> = parameters.iter().map(|(id, _, _)| id).collect();
        let gradients = |run: &(f64, Gradients, Parameters)| -> Vec<f32> {
            ids.iter().flat_map(|&id| run.1.parameter(id).values().to_vec()).collect()
        };
        let weights = |run: &(f64, Gradients, Parameters)| -> Vec<f32> {
            ids.iter().flat_map(|&id| run.2.get(id).values().to_vec()).collect()
        };
        let gradient = device_parity::off(&gradients(&cpu), &gradients(&got));
        let weight = device_parity::off(&weights(&cpu), &weights(&got));
        let loss = (cpu.0 - got.0).abs() / cpu.0.abs().max(1.0);
        let detail = format!("off the CPU: loss {loss:.1e}, gradients {gradient:.1e}, weights after it {weight:.1e}");
        // A step is many operations deep.
        let tolerance = 2.0 * device_parity::tolerance(self.device.precision());
        let ok = loss <= tolerance && gradient <= tolerance;
        Ok(Check { name: format!("step of {}", name.title()), ok, detail })
    }

    fn threads(&self) -> Result<Check> {
        let run = |n_threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build();
            pool.map_err(|error| Error::Threads { detail: error.to_string() })?.install(|| self.loss(self.parameters))
        };
        let ok = run(1)? == run(3)?;
        Ok(Check { name: "threads".into(), ok, detail: "loss and gradients on one and on three threads".into() })
    }

    fn trainer(&self) -> Result<Trainer<'_>> {
        Trainer::new(self.config, self.task, self.model, self.parameters.clone(), self.device)
    }

    fn resume(&self) -> Result<Check> {
        let mut unbroken = self.trainer()?;
        unbroken.epoch(&mut NoCallback, &mut |_| Ok(()))?;
        let mut stopped = self.trainer()?;
        let interrupted = stopped.epoch(&mut StopAfter(7), &mut |_| Ok(()));
        let mut resumed = self.trainer()?;
        resumed.restore(&stopped.save()?)?;
        resumed.epoch(&mut NoCallback, &mut |_| Ok(()))?;
        let ok = matches!(interrupted, Err(Error::Interrupted))
            && resumed.weights().parameters()? == unbroken.weights().parameters()?;
        Ok(Check { name: "resume".into(), ok, detail: "weights after a stop at step 7 and without one".into() })
    }

    /// A state saved on the device goes on on the CPU, and from there on the device again.
    fn checkpoint(&self) -> Result<Check> {
        let (cpu, mut ok) = (Device::cpu(), true);
        let mut state: Option<Vec<u8>> = None;
        for device in [self.device, &cpu, self.device] {
            let mut trainer = Trainer::new(self.config, self.task, self.model, self.parameters.clone(), device)?;
            if let Some(state) = &state {
                trainer.restore(state)?;
                ok &= trainer.save()? == *state;
            }
            trainer.steps(3, &mut || {})?;
            state = Some(trainer.save()?);
        }
        Ok(Check {
            name: "checkpoint".into(),
            ok,
            detail: "a saved state is the same on the device and on the CPU".into(),
        })
    }

    fn learning(&self) -> Result<Check> {
        let mut trainer = self.trainer()?;
        let mut ap = 0.0;
        while !trainer.is_done() && ap < 0.9 {
            let record = trainer.epoch(&mut NoCallback, &mut |_| Ok(()))?;
            ap = record.val.transductive.map_or(0.0, |metrics| metrics.ap);
        }
        let n_epochs = trainer.progress().history.len();
        let detail = format!("validation AP {:.1} after {n_epochs} epochs on a toy stream", 100.0 * ap);
        Ok(Check { name: "learning".into(), ok: ap >= 0.9, detail })
    }
}

/// Wants to stop after so many batches.
struct StopAfter(usize);

impl Callback for StopAfter {
    fn on_progress(&mut self, _: hopedgn::callbacks::Stage, done: usize, _: usize) {
        self.0 -= usize::from(done > 0);
    }

    fn should_stop(&self) -> bool {
        self.0 <= 1
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_check_holds() {
        for check in super::run(&hopedgn_tensor::Device::cpu(), 0).unwrap() {
            assert!(check.ok, "{}: {}", check.name, check.detail);
        }
    }
}
