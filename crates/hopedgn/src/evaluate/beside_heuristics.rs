//! Test of a trained model, with untrained heuristics beside it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use ctdg::heuristic::{self, Heuristic};
use ctdg::negative::{Candidates, Pass};
use hopedgn_tensor::Weights;

use crate::callbacks::Callback;
use crate::evaluate::{ModelScorer, Negatives, evaluate, rank};
use crate::memory::{Memory, MemoryState};
use crate::metrics::{LinkMetrics, PerSetting, RankingMetrics};
use crate::model::Model;
use crate::score::{Output, PairScorer};
use crate::task::Task;
use crate::{Error, Result};

/// Tests a model and the heuristics on a task.
///
/// ```
/// # use hopedgn::{*, ctdg::split::SplitMode, model::{ModelConfig, build}, task::Task, tensor::Weights};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let task = Task::new(&events, SplitMode::Dyglib)?;
/// # let config = ModelConfig::new(ModelName::HopeDgn).with_known(&["d-channel=4", "length=4"])?;
/// # let (model, parameters) = build(&config, task.tables.widths(), 0)?;
/// # let weights = Weights::new(&Device::cpu(), parameters)?;
/// use hopedgn::{callbacks::NoCallback, evaluate::{Evaluator, Negatives}};
///
/// let evaluator = Evaluator { task: &task, model: &*model, weights: &weights, memory: None, batch: 50 };
/// let by_scorer = evaluator.links(Negatives::Random, &mut NoCallback)?;
/// assert!(by_scorer["hopedgn"].transductive.is_some() && by_scorer.len() > 1); // heuristics beside it
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug)]
pub struct Evaluator<'a> {
    /// The dataset with its split.
    pub task: &'a Task<'a>,
    /// The model.
    pub model: &'a dyn Model,
    /// Its weights.
    pub weights: &'a Weights,
    /// Its node memory after validation, if it has one.
    pub memory: Option<&'a MemoryState>,
    /// Events of a batch.
    pub batch: usize,
}

/// A heuristic.
type Untrained<'a> = Box<dyn Heuristic + Send + 'a>;

/// The passes of a test: all events, then those with new nodes.
pub(crate) const PASSES: [Pass; 2] = [Pass::Test, Pass::NewNodeTest];

/// Metrics of one pass by scorer; empty if the pass has no events.
pub(crate) type OfPass<M> = Vec<(String, M)>;

impl Evaluator<'_> {
    /// Metrics against one kind of negatives, by scorer.
    pub fn links(&self, negatives: Negatives, callback: &mut dyn Callback) -> Result<BTreeMap<String, PerSetting>> {
        both_settings(|pass| self.links_of(pass, negatives, callback))
    }

    /// The same in one pass.
    pub(crate) fn links_of(
        &self,
        pass: Pass,
        negatives: Negatives,
        callback: &mut dyn Callback,
    ) -> Result<OfPass<LinkMetrics>> {
        let model = |scorer: &mut ModelScorer<'_>, callback: &mut dyn Callback| {
            evaluate(self.task, pass, negatives, self.batch, std::slice::from_mut(scorer), callback)
        };
        let heuristics = |scorers: &mut [Untrained<'_>], callback: &mut dyn Callback| {
            evaluate(self.task, pass, negatives, self.batch, scorers, callback)
        };
        self.by_name(pass, negatives.output(), callback, model, heuristics)
    }

    /// Ranking metrics among other destinations, by scorer.
    pub fn ranks(
        &self,
        candidates: &Candidates,
        callback: &mut dyn Callback,
    ) -> Result<BTreeMap<String, PerSetting<RankingMetrics>>> {
        both_settings(|pass| self.ranks_of(pass, candidates, callback))
    }

    /// The same in one pass.
    pub(crate) fn ranks_of(
        &self,
        pass: Pass,
        candidates: &Candidates,
        callback: &mut dyn Callback,
    ) -> Result<OfPass<RankingMetrics>> {
        let model = |scorer: &mut ModelScorer<'_>, callback: &mut dyn Callback| {
            rank(self.task, pass, candidates, self.batch, std::slice::from_mut(scorer), callback)
        };
        let heuristics = |scorers: &mut [Untrained<'_>], callback: &mut dyn Callback| {
            rank(self.task, pass, candidates, self.batch, scorers, callback)
        };
        self.by_name(pass, Output::Partner, callback, model, heuristics)
    }

    /// Measures the model, and at the same time the heuristics on another thread of the pool.
    fn by_name<M: Send>(
        &self,
        pass: Pass,
        output: Output,
        callback: &mut dyn Callback,
        of_model: impl FnOnce(&mut ModelScorer<'_>, &mut dyn Callback) -> Result<Option<Vec<M>>>,
        of_heuristics: impl FnOnce(&mut [Untrained<'_>], &mut dyn Callback) -> Result<Option<Vec<M>>> + Send,
    ) -> Result<OfPass<M>> {
        let base = pass.base(&self.task.split);
        let mut heuristics = heuristic::all(self.task.stream, &self.task.full_store, &base)?;
        let mut names = vec![self.model.name().as_str().to_owned()];
        names.extend(heuristics.iter().map(|heuristic| heuristic.name()));
        let scorer = PairScorer::new(self.model, &self.task.tables, &self.task.full_store);
        let mut scorer = ModelScorer::new(scorer, self.weights, self.memory()?).output(output);
        let (is_over, mut untrained) = (AtomicBool::new(false), Ok(None));
        let model = rayon::in_place_scope(|scope| {
            scope.spawn(|_| untrained = of_heuristics(&mut heuristics, &mut UntilOver(&is_over)));
            let model = of_model(&mut scorer, callback);
            is_over.store(model.is_err(), Ordering::Relaxed);
            model
        })?;
        let metrics = model.into_iter().chain(untrained?).flatten();
        Ok(names.into_iter().zip(metrics).collect())
    }

    /// The memory at the start of the test: both passes start after validation.
    pub(super) fn memory(&self) -> Result<Option<Memory>> {
        let Some(form) = self.model.memory() else { return Ok(None) };
        let state = self.memory.ok_or(Error::NoMemory)?;
        let mut memory = Memory::new(self.weights.device(), form, self.task.stream, &self.task.split.train)?;
        memory.restore(state, &[self.task.split.train.as_slice(), &self.task.split.val].concat())?;
        Ok(Some(memory))
    }

    /// The model with the memory it has before the first event.
    pub(crate) fn scorer_from_start(&self) -> Result<ModelScorer<'_>> {
        let scorer = PairScorer::new(self.model, &self.task.tables, &self.task.full_store);
        let memory = self.model.memory().map(|form| -> Result<Memory> {
            let mut memory = Memory::new(self.weights.device(), form, self.task.stream, &[])?;
            memory.use_time_scale_of(self.memory.ok_or(Error::NoMemory)?);
            Ok(memory)
        });
        Ok(ModelScorer::new(scorer, self.weights, memory.transpose()?))
    }
}

/// Stops the heuristics if the model stopped.
struct UntilOver<'a>(&'a AtomicBool);

impl Callback for UntilOver<'_> {
    fn should_stop(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Runs both passes.
fn both_settings<M>(mut run: impl FnMut(Pass) -> Result<OfPass<M>>) -> Result<BTreeMap<String, PerSetting<M>>> {
    let mut by_name = BTreeMap::new();
    for pass in PASSES {
        put(&mut by_name, pass, run(pass)?);
    }
    Ok(by_name)
}

/// Adds the metrics of one pass.
pub(crate) fn put<M>(by_name: &mut BTreeMap<String, PerSetting<M>>, pass: Pass, metrics: OfPass<M>) {
    for (name, metrics) in metrics {
        let settings = by_name.entry(name).or_default();
        let place = if pass == Pass::NewNodeTest { &mut settings.inductive } else { &mut settings.transductive };
        *place = Some(metrics);
    }
}
