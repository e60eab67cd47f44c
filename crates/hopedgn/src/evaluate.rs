//! Evaluation passes of the protocol: AP and AUC per batch and over the split, and ranking.

mod beside_heuristics;
mod calibration;
mod range;
mod ranking;

use ctdg::Problem;
use ctdg::event::{EventId, EventStream, NodeId};
use ctdg::heuristic::Heuristic;
use ctdg::metric::{BatchMean, WholeSplit};
use ctdg::mite::PairQuery;
use ctdg::negative::{Pass, PastKind, PastNegatives, RandomNegatives};
use ctdg::random::RandomStream;
use ctdg::split::Split;
use hopedgn_tensor::Weights;
use serde::{Deserialize, Serialize};

use crate::callbacks::{Callback, Stage};
use crate::collate::PairBatch;
use crate::memory::Memory;
use crate::metrics::LinkMetrics;
use crate::score::{Output, PairScorer};
use crate::task::Task;
use crate::{Error, Result};

pub use crate::metrics::{Evaluation, RankingMetrics, RankingTest, TestedEvents};
pub use beside_heuristics::Evaluator;
pub(crate) use beside_heuristics::{PASSES, put};
pub use range::TestRange;
pub use ranking::rank;
pub(crate) use ranking::{RankedEvents, rank_some};

/// Kinds of negative pairs.
///
/// ```
/// use hopedgn::evaluate::Negatives;
///
/// assert_eq!(Negatives::ALL.map(Negatives::as_str), ["random", "historical", "inductive"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Negatives {
    /// The true source with a random destination: the setting that papers report first.
    Random,
    /// Pairs that interacted before, but not at this time.
    Historical,
    /// Of those, pairs that first interacted after the training part.
    Inductive,
}

impl Negatives {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Random, Self::Historical, Self::Inductive];

    /// The name in files and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Historical => "historical",
            Self::Inductive => "inductive",
        }
    }

    /// The output of a model that answers against them: random ones keep the source, others change it.
    #[must_use]
    pub fn output(self) -> Output {
        match self {
            Self::Random => Output::Partner,
            Self::Historical | Self::Inductive => Output::Pair,
        }
    }
}

/// A scorer of pairs: a model or a heuristic. Batches come in order of time.
///
/// ```
/// # use hopedgn::{*, ctdg::split::SplitMode, model::{ModelConfig, build}, task::Task, tensor::Weights};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let task = Task::new(&events, SplitMode::Dyglib)?;
/// # use hopedgn::{Result, collate::PairBatch, ctdg::{event::EventId, negative::Pass}};
/// use hopedgn::{callbacks::NoCallback, evaluate::{Negatives, Scorer, evaluate}};
///
/// struct Successor; // node i writes to node i + 1
/// impl Scorer for Successor {
///     fn score(&mut self, _: &[EventId], pairs: PairBatch<'_>) -> Result<Vec<f32>> {
///         Ok(pairs.queries.iter().map(|of| f32::from(of.dst.0 == (of.src.0 + 1) % 10)).collect())
///     }
/// }
/// let metrics = evaluate(&task, Pass::Test, Negatives::Random, 50, &mut [Successor], &mut NoCallback)?;
/// assert!(metrics.is_some_and(|metrics| metrics[0].auc > 0.8));
/// # Ok::<(), hopedgn::Error>(())
/// ```
pub trait Scorer {
    /// Scores `pairs` for the events of `batch`. An empty `batch` continues the previous one.
    fn score(&mut self, batch: &[EventId], pairs: PairBatch<'_>) -> Result<Vec<f32>>;

    /// Number of batches of `n_queries` that it prefers in one call.
    fn batches_per_call(&self, n_queries: usize) -> usize {
        let _ = n_queries;
        1
    }

    /// Scores several batches in order. `queries` holds two for each event of each batch.
    fn score_all(&mut self, batches: &[&[EventId]], queries: &[PairQuery]) -> Result<Vec<f32>> {
        let mut scores = Vec::with_capacity(queries.len());
        for batch in batches {
            let of_batch = &queries[scores.len()..scores.len() + 2 * batch.len()];
            scores.extend(self.score(batch, PairBatch::new(of_batch).padded_in_groups_of(batch.len()))?);
        }
        Ok(scores)
    }
}

/// A trained model as a [`Scorer`].
///
/// ```
/// # use hopedgn::{*, ctdg::split::SplitMode, model::{ModelConfig, build}, task::Task, tensor::Weights};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let task = Task::new(&events, SplitMode::Dyglib)?;
/// # let config = ModelConfig::new(ModelName::HopeDgn).with_known(&["d-channel=4", "length=4"])?;
/// # let (model, parameters) = build(&config, task.tables.widths(), 0)?;
/// # let weights = Weights::new(&Device::cpu(), parameters)?;
/// use hopedgn::{collate::PairBatch, evaluate::{ModelScorer, Scorer}, score::PairScorer};
///
/// let scorer = PairScorer::new(&*model, &task.tables, &task.full_store);
/// let mut scorer = ModelScorer::new(scorer, &weights, None); // HopeDGN has no memory
/// let batch = &task.split.test[..3];
/// assert_eq!(scorer.score(batch, PairBatch::new(&task.queries(batch)))?.len(), 3);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug)]
pub struct ModelScorer<'a> {
    scorer: PairScorer<'a>,
    weights: &'a Weights,
    memory: Option<Memory>,
    output: Output,
    /// The current batch, which the memory is not updated with yet.
    current: Vec<EventId>,
}

impl<'a> ModelScorer<'a> {
    /// Scores with `weights`, and with `memory` as it is before the first batch.
    #[must_use]
    pub fn new(scorer: PairScorer<'a>, weights: &'a Weights, memory: Option<Memory>) -> Self {
        Self { scorer, weights, memory, output: Output::Partner, current: Vec::new() }
    }

    /// Scores with another output of the model; by default whom the source meets.
    #[must_use]
    pub fn output(self, output: Output) -> Self {
        Self { output, ..self }
    }

    /// Embeddings of the source nodes of `queries`, the events of `batches` in order, `[queries, d]` in row-major order.
    pub(crate) fn sources(&mut self, batches: &[&[EventId]], queries: &[PairQuery]) -> Result<Vec<f32>> {
        let Some(memory) = &mut self.memory else {
            return self.scorer.sources(self.weights, in_batches(batches, queries));
        };
        let (mut sources, mut rest) = (Vec::new(), queries);
        for &batch in batches {
            let (of_batch, others) = rest.split_at(batch.len());
            sources.extend(self.scorer.sources_with(self.weights, of_batch, memory, batch)?);
            rest = others;
        }
        Ok(sources)
    }

    /// The memory, updated with all batches; after [`Scorer::score`] with all but the last.
    pub(crate) fn into_memory(self) -> Option<Memory> {
        self.memory
    }
}

impl Scorer for ModelScorer<'_> {
    fn score(&mut self, batch: &[EventId], pairs: PairBatch<'_>) -> Result<Vec<f32>> {
        let Some(memory) = &mut self.memory else { return self.scorer.scores(self.weights, pairs, self.output) };
        if !batch.is_empty() {
            let previous = std::mem::replace(&mut self.current, batch.to_vec());
            if !previous.is_empty() {
                let queries = memory.queries(&previous);
                self.scorer.logits_with(self.weights, &queries, memory, &previous)?;
            }
        }
        self.scorer.scores_with(self.weights, pairs.queries, memory, &[], self.output)
    }

    fn batches_per_call(&self, n_queries: usize) -> usize {
        /// Enough pairs to keep a GPU busy; few enough for memory, and to stop soon.
        const MAX_PAIRS: usize = 8192;
        let is_gpu = self.weights.device().is_gpu();
        if is_gpu && self.memory.is_none() { (MAX_PAIRS / n_queries.max(1)).clamp(1, 8) } else { 1 }
    }

    /// Without a memory all batches are scored in one call; they have the same size, so padding groups stay whole. A memory is
    /// updated between batches.
    fn score_all(&mut self, batches: &[&[EventId]], queries: &[PairQuery]) -> Result<Vec<f32>> {
        let Some(memory) = &mut self.memory else {
            return self.scorer.scores(self.weights, in_batches(batches, queries), self.output);
        };
        let mut scores = Vec::with_capacity(queries.len());
        for &batch in batches {
            let of_batch = &queries[scores.len()..scores.len() + 2 * batch.len()];
            scores.extend(self.scorer.scores_with(self.weights, of_batch, memory, batch, self.output)?);
        }
        Ok(scores)
    }
}

/// `queries` of equally large `batches`, each of which is padded by itself.
fn in_batches<'q>(batches: &[&[EventId]], queries: &'q [PairQuery]) -> PairBatch<'q> {
    PairBatch::new(queries).padded_in_groups_of(batches.first().map_or(1, |batch| batch.len()))
}

impl Scorer for Box<dyn Heuristic + Send + '_> {
    fn score(&mut self, batch: &[EventId], pairs: PairBatch<'_>) -> Result<Vec<f32>> {
        Ok(self.as_mut().score(batch, pairs.queries)?)
    }
}

impl Scorer for Box<dyn Scorer + '_> {
    fn score(&mut self, batch: &[EventId], pairs: PairBatch<'_>) -> Result<Vec<f32>> {
        self.as_mut().score(batch, pairs)
    }

    fn batches_per_call(&self, n_queries: usize) -> usize {
        self.as_ref().batches_per_call(n_queries)
    }

    fn score_all(&mut self, batches: &[&[EventId]], queries: &[PairQuery]) -> Result<Vec<f32>> {
        self.as_mut().score_all(batches, queries)
    }
}

/// Source of negatives of one pass.
enum Sampler<'t> {
    Random(Box<RandomNegatives>),
    Past(Box<PastNegatives<'t>>),
}

impl<'t> Sampler<'t> {
    fn new(stream: &'t EventStream, split: &Split, pass: Pass, negatives: Negatives) -> Self {
        let pool = pass.pool(split);
        let kind = match negatives {
            Negatives::Random => {
                return Self::Random(Box::new(RandomNegatives::new(stream, &pool, pass.seed())));
            }
            Negatives::Historical => PastKind::Historical,
            Negatives::Inductive => PastKind::Inductive { observed: pass.observed(stream, split) },
        };
        let random = RandomStream::named(u64::from(pass.seed()), &format!("negative-eval/{}", negatives.as_str()));
        Self::Past(Box::new(PastNegatives::new(stream, pool, kind, random)))
    }

    /// One negative for each of `positives`, at the same time.
    fn draw(&mut self, batch: &[EventId], index: u64, positives: &[PairQuery]) -> Result<Vec<PairQuery>> {
        let pairs: Vec<(NodeId, NodeId)> = match self {
            Self::Random(random) => positives.iter().map(|query| query.src).zip(random.draw(positives.len())).collect(),
            Self::Past(past) => past.draw(batch, index)?,
        };
        Ok(pairs.into_iter().zip(positives).map(|((src, dst), query)| PairQuery { src, dst, ..*query }).collect())
    }
}

/// The negatives that an evaluation compares the events of one pass with: one for each event, in order.
///
/// ```
/// # use hopedgn::{Events, ctdg::split::SplitMode, task::Task};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// use hopedgn::{ctdg::negative::Pass, evaluate::{Negatives, draw_negatives}};
///
/// let split = Task::new(&events, SplitMode::Dyglib)?.split;
/// let negatives = draw_negatives(&events, &split, Pass::Test, Negatives::Random, 200)?;
/// assert_eq!(negatives.len(), split.test.len());
/// assert_eq!(negatives[0].src, events.event(split.test[0]).src); // random ones keep the source
/// # Ok::<(), hopedgn::Error>(())
/// ```
pub fn draw_negatives(
    stream: &EventStream,
    split: &Split,
    pass: Pass,
    negatives: Negatives,
    batch_size: usize,
) -> Result<Vec<PairQuery>> {
    let mut sampler = Sampler::new(stream, split, pass, negatives);
    let mut drawn = Vec::new();
    for (index, batch) in (0..).zip(pass.events(split).chunks(batch_size.max(1))) {
        drawn.extend(sampler.draw(batch, index, &PairQuery::of(stream, batch))?);
    }
    Ok(drawn)
}

/// AP and AUC of one pass for each of `scorers`; `None` if the pass has no events or no negatives.
///
/// ```
/// # use hopedgn::{*, ctdg::split::SplitMode, model::{ModelConfig, build}, task::Task, tensor::Weights};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let task = Task::new(&events, SplitMode::Dyglib)?;
/// use hopedgn::ctdg::{heuristic, negative::Pass};
/// use hopedgn::{callbacks::NoCallback, evaluate::{Negatives, evaluate}};
///
/// let mut heuristics = heuristic::all(&events, &task.full_store, &Pass::Val.base(&task.split))?;
/// let metrics = evaluate(&task, Pass::Val, Negatives::Random, 50, &mut heuristics, &mut NoCallback)?;
/// assert!(metrics.is_some_and(|metrics| metrics.len() == heuristics.len()));
/// # Ok::<(), hopedgn::Error>(())
/// ```
pub fn evaluate<S: Scorer>(
    task: &Task<'_>,
    pass: Pass,
    negatives: Negatives,
    batch_size: usize,
    scorers: &mut [S],
    callback: &mut dyn Callback,
) -> Result<Option<Vec<LinkMetrics>>> {
    let events = pass.events(&task.split);
    if events.is_empty() {
        return Ok(None);
    }
    let mut sampler = Sampler::new(task.stream, &task.split, pass, negatives);
    let mut sums = vec![(BatchMean::new(), WholeSplit::new()); scorers.len()];
    let batches: Vec<&[EventId]> = events.chunks(batch_size).collect();
    let total = batches.len();
    let per_call = scorers.iter().map(|scorer| scorer.batches_per_call(2 * batch_size)).max().unwrap_or(1);
    let mut done = 0;
    while done < total {
        callback.on_progress(Stage::Evaluate, done, total);
        if callback.should_stop() {
            return Err(Error::Interrupted);
        }
        // Only the last batch may be smaller, and is scored alone.
        let whole = batches[done..].iter().take_while(|batch| batch.len() == batch_size).count();
        let window = &batches[done..done + whole.clamp(1, per_call)];
        let mut queries = Vec::new();
        for (index, batch) in (done as u64..).zip(window) {
            let positives = task.queries(batch);
            match sampler.draw(batch, index, &positives) {
                Ok(negatives) => queries.extend(positives.into_iter().chain(negatives)),
                // Few events of new nodes may leave no pair to draw.
                Err(Error::Data(error)) if matches!(error.problem(), Problem::NoNegative) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        for (scorer, (mean, whole)) in scorers.iter_mut().zip(&mut sums) {
            let scores = scorer.score_all(window, &queries)?;
            let mut rest = scores.as_slice();
            for batch in window {
                let (of_batch, others) = rest.split_at(2 * batch.len());
                let labels: Vec<bool> = (0..of_batch.len()).map(|at| at < batch.len()).collect();
                mean.push(of_batch, &labels)?;
                whole.push(of_batch, &labels)?;
                rest = others;
            }
        }
        done += window.len();
    }
    callback.on_progress(Stage::Evaluate, total, total);
    let metrics = |(mean, mut whole): (BatchMean, WholeSplit)| {
        let (mean, whole) = (mean.mean()?, whole.scores()?);
        Ok(LinkMetrics { ap: mean.ap, auc: mean.auc, ap_global: whole.ap, auc_global: whole.auc })
    };
    sums.into_iter().map(metrics).collect::<Result<_>>().map(Some)
}
