//! The training loop under DyGLib's protocol: events in order of time, one negative each, Adam, two-metric selection.
//!
//! A [`Trainer`] can be saved after any step and restored; what it computes afterwards is the same to the last bit.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use ctdg::event::EventId;
use ctdg::mite::PairQuery;
use ctdg::negative::{Pass, RandomNegatives};
use ctdg::random::Stream;
use hopedgn_tensor::{AdamConfig, Device, Parameters, TrainState, Weights};
use serde::{Deserialize, Serialize};

use crate::callbacks::{Callback, Stage};
use crate::collate::Layout;
use crate::config::Config;
use crate::evaluate::{ModelScorer, Negatives, evaluate};
use crate::memory::{Memory, MemoryState};
use crate::metrics::{EpochRecord, LinkMetrics, PerSetting};
use crate::model::Model;
use crate::prefetch;
use crate::score::{PairScorer, PreparedBatch, TrainBatch};
use crate::task::Task;
use crate::{Error, Result};

/// How far training has come; with the weights and Adam's state, all there is to know.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Progress {
    /// Batches of the current epoch that are done.
    pub batch: usize,
    /// Steps since the beginning.
    pub steps: u64,
    /// Sum of the losses of the current epoch.
    pub loss_sum: f64,
    /// Seconds spent on the current epoch.
    pub seconds: f64,
    /// How much the generator of training negatives has drawn.
    pub negatives: u64,
    /// The best epoch so far.
    pub best: Option<Best>,
    /// Epochs since then.
    pub waited: usize,
    /// The epochs that are over.
    pub history: Vec<EpochRecord>,
}

/// The epoch whose weights are kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// From 1.
    pub epoch: usize,
    /// Of all validation events.
    pub ap: f64,
    /// Of all validation events.
    pub auc: f64,
}

impl Progress {
    /// Takes in an epoch's validation: better only if both metrics are at least the best so far, as DyGLib decides.
    fn take(&mut self, epoch: usize, val: LinkMetrics) -> bool {
        let better = self.best.is_none_or(|best| val.ap >= best.ap && val.auc >= best.auc);
        if better {
            self.best = Some(Best { epoch, ap: val.ap, auc: val.auc });
            self.waited = 0;
        } else {
            self.waited += 1;
        }
        better
    }
}

/// Weights being learned.
#[derive(Debug)]
pub struct Trainer<'a> {
    config: &'a Config,
    task: &'a Task<'a>,
    model: &'a dyn Model,
    learner: TrainState,
    /// What the model remembers of the epoch so far, if it does.
    memory: Option<Memory<'a>>,
    /// The same after the last validation.
    remembered: Option<MemoryState>,
    negatives: RandomNegatives,
    progress: Progress,
    /// Where the generator of negatives stood behind each batch whose step was asked for and is not over.
    asked: VecDeque<u64>,
    /// Threads that make batches ready while the device computes, if any.
    workers: Option<usize>,
    waited: f64,
}

/// Steps that a card may be behind: enough to have the next one waiting for it.
const BEHIND: usize = 2;

/// Threads that make batches as fast as a large card learns from them, also where histories are long.
const ENOUGH_WORKERS: usize = 9;

/// The key of [`Progress`] in a saved state.
const PROGRESS: &str = "progress";

impl<'a> Trainer<'a> {
    /// Nothing learned yet.
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
        Ok(Self {
            learner: TrainState::new(device, parameters, AdamConfig { lr: config.train.lr, ..AdamConfig::default() })?,
            remembered: None,
            negatives: RandomNegatives::new(task.stream, &task.split.train, seed),
            progress: Progress::default(),
            asked: VecDeque::new(),
            // What a memory knows depends on the batch before.
            workers: device.workers_beside(ENOUGH_WORKERS).filter(|_| model.memory().is_none()),
            memory: model.memory().map(|form| Memory::new(device, form, task.stream, &task.split.train)).transpose()?,
            waited: 0.0,
            config,
            task,
            model,
        })
    }

    /// The bytes of a safetensors file from which [`Trainer::restore`] goes on.
    pub fn save(&self) -> Result<Vec<u8>> {
        let progress = serde_json::to_string(&self.progress).map_err(|error| unreadable(&error))?;
        let metadata = BTreeMap::from([(PROGRESS.to_owned(), progress)]);
        let (parameters, adam) = self.learner.snapshot()?;
        let memory = self.memory.as_ref().map(Memory::snapshot).transpose()?;
        let beside = memory.map(|memory| memory.tensors()).unwrap_or_default();
        Ok(hopedgn_tensor::save_beside(&parameters, Some(&adam), &beside, &metadata)?)
    }

    /// Takes up what [`Trainer::save`] put down. On an error nothing has been changed.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let (mut parameters, mut adam) = self.learner.snapshot()?;
        let metadata = hopedgn_tensor::load(bytes, &mut parameters, Some(&mut adam))?;
        let text = metadata.get(PROGRESS).ok_or_else(|| unreadable(&"no progress is written in it"))?;
        let progress: Progress = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
        if let Some(memory) = &mut self.memory {
            let state = MemoryState::of(hopedgn_tensor::load_beside(bytes)?)?;
            let train = &self.task.split.train;
            memory.restore(&state, &train[..train.len().min(progress.batch * self.config.train.batch)])?;
        }
        self.learner.replace(parameters, adam)?;
        self.negatives.advance_to(progress.negatives);
        self.asked.clear();
        self.progress = progress;
        Ok(())
    }

    /// How far it has come.
    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// What the model remembered after the last validation, if it does.
    #[must_use]
    pub fn remembered(&self) -> Option<&MemoryState> {
        self.remembered.as_ref()
    }

    /// The model that is trained.
    #[must_use]
    pub fn model(&self) -> &'a dyn Model {
        self.model
    }

    /// The weights as they are now.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        self.learner.weights()
    }

    /// Seconds in which the next batch was not ready yet, where other threads make it ready.
    #[must_use]
    pub fn waited(&self) -> f64 {
        self.waited
    }

    /// Whether the last epoch is over or patience has run out.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let Progress { history, waited, .. } = &self.progress;
        history.len() >= self.config.train.epochs || *waited >= self.config.train.patience
    }

    /// Batches of an epoch.
    #[must_use]
    pub fn n_batches(&self) -> usize {
        self.task.split.train.len().div_ceil(self.config.train.batch)
    }

    /// Trains to the end of the current epoch and validates it. `save` is called whenever it is time for a saved state
    /// inside the epoch. When the callback wants to stop, [`Error::Interrupted`] comes after the step at hand, and the
    /// state can be saved.
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
                trainer.settle(0)?;
                save(trainer)?;
                (mark, saved) = (Instant::now(), Instant::now());
            }
            Ok(())
        });
        self.progress.seconds += mark.elapsed().as_secs_f64();
        trained?;
        let mark = Instant::now();
        let val = self.validate(callback)?;
        Ok(self.finish_epoch(val, mark.elapsed().as_secs_f64()))
    }

    /// Trains on the next `n` batches of the epoch, or to its end, and does nothing else; `after` is called behind each.
    pub fn steps(&mut self, n: usize, after: &mut dyn FnMut()) -> Result<()> {
        let end = self.n_batches().min(self.progress.batch + n);
        self.train_until(end, &mut |_| {
            after();
            Ok(())
        })
    }

    /// Trains until batch `end`; `after` is called behind each step that was asked for. Whatever it returns, afterwards
    /// all steps that were asked for are over.
    fn train_until(&mut self, end: usize, after: &mut dyn FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let Self { config, task, model, .. } = *self;
        let Progress { batch: first, steps, .. } = self.progress;
        let lessons = Lessons { config, task, model, negatives: self.negatives.clone(), first, end, steps };
        let device = self.learner.weights().device().clone();
        if let (Some(memory), 0) = (&mut self.memory, first) {
            memory.reset()?;
        }
        let Some(n_workers) = self.workers else {
            let mut scorer = lessons.scorer();
            let trained = lessons.each(|_| true, &mut |draft| {
                scorer.learn(&mut self.learner, &draft.lesson(), self.memory.as_mut())?;
                self.asked.push_back(draft.negatives);
                self.settle(BEHIND)?;
                after(self)
            });
            return self.end(trained);
        };
        let work = |worker: usize, give: &mut (dyn FnMut(Result<(PreparedBatch, u64)>) -> bool + Send)| {
            lessons.prepare(&device, (worker, n_workers), give);
        };
        let trained = prefetch::in_order(n_workers, work, |ready, waited| {
            self.waited += waited.as_secs_f64();
            let (prepared, negatives) = ready?;
            prepared.learn(model, &mut self.learner)?;
            self.asked.push_back(negatives);
            self.settle(BEHIND)?;
            after(self)
        });
        self.end(trained)
    }

    /// Waits for all steps that were asked for.
    fn end(&mut self, trained: Result<()>) -> Result<()> {
        let settled = self.settle(0);
        match trained {
            Ok(()) | Err(Error::Interrupted) => settled.and(trained),
            failed => failed,
        }
    }

    /// Takes in how the steps went that are over, waiting for all but the newest `behind`.
    fn settle(&mut self, behind: usize) -> Result<()> {
        for step in self.learner.results(behind)? {
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
            if let Some(negatives) = self.asked.pop_front() {
                self.progress.negatives = negatives;
                self.negatives.advance_to(negatives);
            }
        }
        Ok(())
    }

    /// Passes over the next batch of the epoch without learning from it, for measuring.
    pub fn skip_batch(&mut self) {
        self.progress.batch += 1;
    }

    /// Metrics of the weights as they are now, on all validation events and on those with new nodes. Both passes begin
    /// with what was remembered after training, and so does whoever comes back after an error.
    fn validate(&mut self, callback: &mut dyn Callback) -> Result<PerSetting> {
        let mut metrics = [None; 2];
        let trained = self.memory.as_ref().map(Memory::snapshot).transpose()?;
        for (metrics, pass) in metrics.iter_mut().zip([Pass::Val, Pass::NewNodeVal]) {
            if let (Some(memory), Some(trained)) = (&mut self.memory, &trained) {
                memory.restore(trained, &self.task.split.train)?;
            }
            let scorer = PairScorer::new(self.model, &self.task.tables, &self.task.full_store);
            let mut scorer = [ModelScorer::new(scorer, self.learner.weights(), self.memory.take())];
            let batch = self.config.train.batch;
            let of_pass = evaluate(self.task, pass, Negatives::Random, batch, &mut scorer, callback);
            let [scorer] = scorer;
            self.memory = scorer.into_memory();
            if let (Err(_), Some(memory), Some(trained)) = (&of_pass, &mut self.memory, &trained) {
                memory.restore(trained, &self.task.split.train)?;
            }
            *metrics = of_pass?.map(|of_pass| of_pass[0]);
            if pass == Pass::Val {
                self.remembered = self.memory.as_ref().map(Memory::snapshot).transpose()?;
            }
        }
        let [transductive, inductive] = metrics;
        Ok(PerSetting { transductive, inductive })
    }

    fn finish_epoch(&mut self, val: PerSetting, eval_seconds: f64) -> EpochRecord {
        let progress = &mut self.progress;
        let epoch = progress.history.len() + 1;
        let better = val.transductive.is_some_and(|metrics| progress.take(epoch, metrics));
        let n_pairs = 2 * self.task.split.train.len();
        let record = EpochRecord {
            epoch,
            loss: progress.loss_sum / progress.batch.max(1) as f64,
            val,
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

/// Batches to come: positives in the order of time, and as many negatives.
struct Lessons<'a> {
    config: &'a Config,
    task: &'a Task<'a>,
    model: &'a dyn Model,
    /// As it stands before the first batch.
    negatives: RandomNegatives,
    first: usize,
    end: usize,
    /// Steps before the first batch.
    steps: u64,
}

/// A batch whose negatives are drawn.
struct Draft<'a> {
    events: &'a [EventId],
    queries: Vec<PairQuery>,
    targets: Vec<f32>,
    dropout: Stream,
    /// Where the generator of negatives stands behind it.
    negatives: u64,
}

impl Draft<'_> {
    fn lesson(&self) -> TrainBatch<'_> {
        let Self { events, queries, targets, dropout, .. } = self;
        TrainBatch { queries, targets, events, group: queries.len() / 2, dropout }
    }
}

impl<'a> Lessons<'a> {
    fn scorer(&self) -> PairScorer<'a> {
        PairScorer::new(self.model, &self.task.tables, &self.task.train_store)
    }

    /// Draws the negatives of every batch, and hands over those batches whose place is `wanted`.
    fn each(&self, wanted: impl Fn(usize) -> bool, hand_over: &mut dyn FnMut(Draft<'_>) -> Result<()>) -> Result<()> {
        let mut negatives = self.negatives.clone();
        let (size, train) = (self.config.train.batch, &self.task.split.train);
        for (place, batch) in (self.first..self.end).enumerate() {
            let events = &train[batch * size..train.len().min((batch + 1) * size)];
            let drawn = negatives.draw(events.len());
            if !wanted(place) {
                continue;
            }
            let mut queries = self.task.queries(events);
            for (at, dst) in drawn.into_iter().enumerate() {
                queries.push(PairQuery { dst, ..queries[at] });
            }
            let targets = (0..queries.len()).map(|at| if at < events.len() { 1.0 } else { 0.0 }).collect();
            let dropout = Stream::named(self.config.seed, "dropout").fork(self.steps + place as u64);
            hand_over(Draft { events, queries, targets, dropout, negatives: negatives.position() })?;
        }
        Ok(())
    }

    /// The batches of one worker of several, ready to be learned from. The worker keeps to its own thread.
    fn prepare(
        &self,
        device: &Device,
        (worker, n_workers): (usize, usize),
        give: &mut (dyn FnMut(Result<(PreparedBatch, u64)>) -> bool + Send),
    ) {
        let mut work = || {
            let mut scorer = self.scorer();
            self.each(|place| place % n_workers == worker, &mut |draft| {
                let ready = scorer.prepare(device, &draft.lesson());
                let wanted = give(ready.map(|prepared| (prepared, draft.negatives)));
                if wanted { Ok(()) } else { Err(Error::Interrupted) }
            })
        };
        // Nobody wants more: that is all that ends this early.
        let _ = match rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build() {
            Ok(alone) => alone.install(&mut work),
            Err(_) => work(),
        };
    }
}

fn unreadable(detail: &dyn std::fmt::Display) -> Error {
    Error::Progress { detail: detail.to_string() }
}

#[cfg(test)]
mod tests {
    use ctdg::generate::TriadicSpec;

    use super::*;
    use crate::config::ModelConfig;

    #[test]
    fn batches_made_ready_ahead_teach_the_same() {
        let stream = TriadicSpec { n_episodes: 400, ..TriadicSpec::default() }.generate(1).unwrap().stream;
        let mut config = Config::default();
        config.model = ModelConfig { length: 4, k: 2, d_channel: 4, d_time: 4, d_mite: 4, d_out: 4, ..config.model };
        let task = Task::new(&stream, config.split).unwrap();
        let (model, parameters) = crate::model::build(&config.model, task.tables.widths(), 1).unwrap();
        let train = |workers: Option<usize>, stop: usize| {
            let mut trainer = Trainer::new(&config, &task, &*model, parameters.clone(), &Device::cpu()).unwrap();
            trainer.workers = workers;
            trainer.steps(stop, &mut || {}).unwrap();
            trainer.steps(7 - stop, &mut || {}).unwrap();
            trainer.save().unwrap()
        };
        let expected = train(None, 3);
        for (n_workers, stop) in [(1, 7), (2, 3), (5, 2)] {
            assert_eq!(train(Some(n_workers), stop), expected);
        }
    }

    #[test]
    fn an_epoch_is_better_only_in_both_metrics_and_ties_count() {
        let metrics = |ap, auc| LinkMetrics { ap, auc, ap_global: 0.0, auc_global: 0.0 };
        let mut progress = Progress::default();
        assert!(progress.take(1, metrics(0.5, 0.5)));
        assert!(!progress.take(2, metrics(0.6, 0.4)));
        assert_eq!((progress.waited, progress.best.unwrap().epoch), (1, 1));
        assert!(progress.take(3, metrics(0.5, 0.5)), "a tie is taken");
        assert!(progress.take(4, metrics(0.5, 0.7)));
        assert!(!progress.take(5, metrics(0.9, 0.6)));
        assert_eq!((progress.waited, progress.best.unwrap().epoch), (1, 4));
    }
}
