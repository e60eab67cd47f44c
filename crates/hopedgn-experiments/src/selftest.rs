//! Self-test: a few seconds of checks that the program computes correctly on this machine.

use std::ops::Range;

use ctdg::event::EventStream;
use ctdg::mite::PairQuery;
use ctdg::random::RandomStream;
use hopedgn_tensor::{AdamConfig, Device, Gradients, Parameters, Precision, TrainState, Weights, measure};
use serde::Serialize;

use crate::device_parity;
use hopedgn::callbacks::{Callback, NoCallback};
use hopedgn::collate::PairBatch;
use hopedgn::config::{Config, ModelConfig, ModelName, TrainConfig};
use hopedgn::memory::Memory;
use hopedgn::model::{self, Model};
use hopedgn::score::{Loss, PairScorer, TrainBatch};
use hopedgn::task::Task;
use hopedgn::train::Trainer;
use hopedgn::{Error, Result};

/// One check with its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// What was checked.
    pub name: String,
    /// Whether it passed.
    pub ok: bool,
    /// Numbers behind it.
    pub detail: String,
}

/// Runs all checks; `seed` decides the inputs of the comparison of GPU and CPU operations.
pub fn run(device: &Device, seed: u64) -> Result<Vec<Check>> {
    let stream = toy_stream()?;
    let config = Config {
        model: ModelConfig::default().with_known(&[
            "length=8",
            "k=4",
            "d-channel=4",
            "d-time=8",
            "d-mite=4",
            "d-out=8",
        ])?,
        train: TrainConfig { epochs: 20, batch: 20, lr: 1e-2, ..TrainConfig::default() },
        ..Config::default()
    };
    let task = Task::new(&stream, config.split)?;
    let (model, parameters) = model::build(&config.model, task.tables.widths(), config.seed)?;
    let bench = Bench { config: &config, task: &task, model: &*model, parameters: &parameters, device };
    let mut checks = vec![bench.batches()?, bench.threads()?, bench.resume()?, bench.learning()?];
    if device.precision() == Precision::F32 {
        // Finite differences need f32; at lower precision gradients are compared with the CPU's.
        checks.insert(0, bench.gradients()?);
    }
    if device.is_gpu() {
        checks.extend(operations(device, seed)?);
        checks.push(bench.checkpoint()?);
        checks.push(nccl(device)?);
        for name in ModelName::ALL {
            checks.push(bench.step(name, &[])?);
        }
        for settings in [
            &["relations=true"][..],
            &["relations=true", "patch=2"],
            &["relations=true", "padding=dyglib"],
            &["length=100", "padding=dyglib"],
            &["length=100", "padding=dyglib", "relations=true"],
        ] {
            checks.push(bench.step(ModelName::HopeDgn, settings)?);
        }
        // Without MITE the two pairs of an event share their nodes.
        for name in [ModelName::Tgat, ModelName::GraphMixer, ModelName::Tgn, ModelName::DyRep] {
            checks.push(bench.step(name, &["mite=false"])?);
        }
    }
    Ok(checks)
}

/// Sums by NCCL, which several GPUs need, on this one. Without the library there is nothing to fail.
fn nccl(device: &Device) -> Result<Check> {
    const LEN: usize = 1_200_000;
    let (ok, detail) = match measure::nccl(device, LEN)? {
        None => (true, "not installed (libnccl); only training on several GPUs needs it".to_owned()),
        Some(measure::NcclCheck { version, difference, seconds }) => {
            let milliseconds = 1e3 * seconds;
            (
                difference == 0.0,
                format!("version {version}, one rank: {LEN} values in {milliseconds:.2} ms, error {difference:.1e}"),
            )
        }
    };
    Ok(Check { name: "nccl".to_owned(), ok, detail })
}

/// Every operation, compared with the CPU on random inputs.
fn operations(device: &Device, seed: u64) -> Result<Vec<Check>> {
    let mut random = RandomStream::named(seed.wrapping_add(2), "selftest");
    let tolerance = device_parity::tolerance(device.precision());
    let differences = device_parity::operations(device, &mut || random.unit())?;
    let check = |difference: device_parity::Difference| {
        let device_parity::Difference { name, value, gradient, repeats } = difference;
        let again = if repeats { "deterministic" } else { "not deterministic" };
        let detail = format!("error to the CPU: values {value:.1e}, gradients {gradient:.1e}; {again}");
        Check { name: name.to_owned(), ok: value <= tolerance && gradient <= tolerance && repeats, detail }
    };
    Ok(differences.into_iter().map(check).collect())
}

/// Name endings of biases before a ReLU, and a value far larger than what is added to them; memories and relations have no ReLU.
const RECTIFIED: [(&str, f32); 5] = [
    ("memory.hidden.bias", 0.0),
    ("relations.hidden.bias", 0.0),
    ("mite.hidden.bias", 20.0),
    ("hidden.bias", 8.0),
    ("up.bias", 8.0),
];

/// Moves biases so that no input of a ReLU is near 0, where rounding decides whether the gradient is zero.
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

/// Three rings of four nodes, each node linked to the next, so that history predicts the destination.
fn toy_stream() -> Result<EventStream> {
    let mut random = RandomStream::named(1, "selftest");
    let events = (0..600_u32).map(|i| {
        let ring = random.below(3) * 4;
        let src = random.below(4);
        (ring + src, ring + (src + 1) % 4, f64::from(i))
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
        self.queries_of(100..120)
    }

    /// Training events, and as negatives the same the other way round.
    fn queries_of(&self, events: Range<usize>) -> (Vec<PairQuery>, Vec<f32>) {
        let n = events.len();
        let mut queries = self.task.queries(&self.task.split.train[events]);
        for at in 0..n {
            let PairQuery { src, dst, time } = queries[at];
            queries.push(PairQuery { src: dst, dst: src, time });
        }
        let targets = (0..2 * n).map(|at| if at < n { 1.0 } else { 0.0 }).collect();
        (queries, targets)
    }

    fn scorer(&self) -> PairScorer<'_> {
        PairScorer::new(self.model, &self.task.tables, &self.task.full_store)
    }

    /// Loss and gradients without dropout.
    fn loss(&self, parameters: &Parameters) -> Result<(f64, Gradients)> {
        let mut state = TrainState::new(self.device, parameters.clone(), AdamConfig::default())?;
        let plain = self.config.model.with("dropout", 0.0)?;
        let (model, _) = model::build(&plain, self.task.tables.widths(), self.config.seed)?;
        let (queries, targets) = self.queries();
        let mut scorer = PairScorer::new(&*model, &self.task.tables, &self.task.full_store);
        let dropout = RandomStream::named(0, "selftest");
        let batch = TrainBatch {
            pairs: PairBatch::new(&queries).padded_in_groups_of(20),
            loss: Loss::Mean(&targets),
            events: &[],
            dropout: &dropout,
        };
        scorer.loss_and_gradients(&mut state, &batch, None)
    }

    /// Finite difference along the gradient: the slope of the loss must be the squared norm of the gradient.
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
        let detail = format!("gradient and finite difference of the loss agree to {:.3}%", 100.0 * off);
        Ok(Check { name: "gradients".into(), ok: off < 0.01, detail })
    }

    fn batches(&self) -> Result<Check> {
        let (queries, _) = self.queries();
        let weights = Weights::new(self.device, self.parameters.clone())?;
        let together = self.scorer().logits(&weights, PairBatch::new(&queries))?;
        let (mut differing, mut furthest) = (0, 0.0_f32);
        for (query, logit) in queries.iter().zip(&together) {
            let alone = self.scorer().logits(&weights, PairBatch::new(&[*query]))?;
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

    /// Loss, gradients and weights after one training step with dropout, compared with the CPU. A memory has replayed some events
    /// before.
    fn step(&self, name: ModelName, settings: &[&str]) -> Result<Check> {
        let small =
            ["d-out=8", "d-time=8", "d-channel=4", "d-mite=4", "d-cooccurrence=4", "neighbors=5", "length=8", "k=4"];
        let config = ModelConfig::new(name).with_known(&small)?.with_known(&["mite=true"])?.with_known(settings)?;
        let (model, parameters) = model::build(&config, self.task.tables.widths(), self.config.seed)?;
        let parameters = smooth(parameters);
        // One chunk on every device: dropout depends on the chunk. A late pair has more tokens than one tile of keys.
        let (some, group) = if settings.contains(&"length=100") { (400..401, 2) } else { (110..120, 10) };
        let (queries, targets) = self.queries_of(some);
        let dropout = RandomStream::named(0, "selftest");
        let before = &self.task.split.train[60..100];
        // The first of them are events, and update the memory.
        let events = &self.task.split.train[110..120];
        let batch = TrainBatch {
            pairs: PairBatch::new(&queries).padded_in_groups_of(group),
            loss: Loss::Mean(&targets),
            events,
            dropout: &dropout,
        };
        let run = |device: &Device| -> Result<_> {
            let adam = AdamConfig { lr: 1e-4, ..AdamConfig::default() };
            let mut state = TrainState::new(device, parameters.clone(), adam)?;
            let mut scorer = PairScorer::new(&*model, &self.task.tables, &self.task.full_store);
            let stream = self.task.stream;
            let mut memory = model.memory().map(|form| Memory::new(device, form, stream, before)).transpose()?;
            if let Some(memory) = &mut memory {
                for events in before.chunks(20) {
                    scorer.update_memory(state.weights(), memory, events)?;
                }
            }
            let (loss, gradients) = scorer.loss_and_gradients(&mut state, &batch, memory.as_mut())?;
            scorer.train_step(&mut state, &batch, memory.as_mut())?;
            Ok((loss, gradients, state.snapshot()?.0))
        };
        let (cpu, got) = (run(&Device::cpu())?, run(self.device)?);
        // All parameters as one vector, so that gradients of pure rounding do not dominate.
        let ids: Vec<_> = parameters.iter().map(|(id, _, _)| id).collect();
        let gradients = |run: &(f64, Gradients, Parameters)| -> Vec<f32> {
            ids.iter().flat_map(|&id| run.1.parameter(id).values().to_vec()).collect()
        };
        let weights = |run: &(f64, Gradients, Parameters)| -> Vec<f32> {
            ids.iter().flat_map(|&id| run.2.get(id).values().to_vec()).collect()
        };
        let gradient = device_parity::relative_error(&gradients(&cpu), &gradients(&got));
        let weight = device_parity::relative_error(&weights(&cpu), &weights(&got));
        let loss = (cpu.0 - got.0).abs() / cpu.0.abs().max(1.0);
        let detail =
            format!("error to the CPU: loss {loss:.1e}, gradients {gradient:.1e}, updated weights {weight:.1e}");
        // A step is many operations deep.
        let tolerance = 2.0 * device_parity::tolerance(self.device.precision());
        let ok = loss <= tolerance && gradient <= tolerance;
        let with = if settings.is_empty() { String::new() } else { format!(" with {}", settings.join(", ")) };
        Ok(Check { name: format!("step of {}{with}", name.title()), ok, detail })
    }

    fn threads(&self) -> Result<Check> {
        let run = |n_threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build();
            pool.map_err(|error| Error::Threads { detail: error.to_string() })?.install(|| self.loss(self.parameters))
        };
        let ok = run(1)? == run(3)?;
        Ok(Check {
            name: "threads".into(),
            ok,
            detail: "loss and gradients on one and on three threads are equal".into(),
        })
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
        Ok(Check {
            name: "resume".into(),
            ok,
            detail: "weights after an interruption at step 7 and without one are equal".into(),
        })
    }

    /// A checkpoint of the device is resumed on the CPU, and then on the device again.
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
            detail: "a checkpoint is the same on the device and on the CPU".into(),
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

/// Interrupts after this many batches.
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
    fn every_check_passes_on_the_cpu() {
        for check in super::run(&hopedgn_tensor::Device::cpu(), 0).unwrap() {
            assert!(check.ok, "{}: {}", check.name, check.detail);
        }
    }
}
