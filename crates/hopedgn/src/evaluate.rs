//! The protocol's passes: positives and negatives batch by batch, metrics per batch and over the split, and ranking.

mod beside_heuristics;

use std::collections::BTreeMap;

use ctdg::Problem;
use ctdg::event::{EventId, NodeId};
use ctdg::heuristic::Heuristic;
use ctdg::metric::{BatchMean, Ranking, WholeSplit};
use ctdg::mite::PairQuery;
use ctdg::negative::{CandidateCount, CandidateLists, Pass, PastKind, PastNegatives, RandomNegatives};
use ctdg::random::Stream;
use hopedgn_tensor::Weights;
use serde::{Deserialize, Serialize};

use crate::callbacks::{Callback, Stage};
use crate::collate::PairBatch;
use crate::memory::Memory;
use crate::metrics::{LinkMetrics, PerSetting};
use crate::score::PairScorer;
use crate::task::Task;
use crate::{Error, Result};

pub use beside_heuristics::Evaluator;

/// Which pairs that did not happen stand against those that did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Negatives {
    /// The true source with a random destination; what papers report first.
    Random,
    /// Pairs that met before, but not now.
    Historical,
    /// Of those, the pairs that first met after the model stopped learning.
    Inductive,
}

impl Negatives {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Random, Self::Historical, Self::Inductive];

    /// As in files and flags.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Historical => "historical",
            Self::Inductive => "inductive",
        }
    }
}

/// What `hopedgn evaluate` says of a run; experiments keep it beside the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The folder of the run.
    pub run: String,
    /// As the person named it.
    pub data: String,
    /// The model's name, which is that of its scorer.
    pub model: String,
    /// `cpu` or `cuda`.
    pub device: String,
    /// Negatives → scorer → setting → metrics.
    pub negatives: BTreeMap<String, BTreeMap<String, PerSetting>>,
    /// Places among candidates, if they were asked for.
    pub ranking: Option<RankingTest>,
}

/// Places of true destinations among others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankingTest {
    /// How many others there are at most; `"all"` where it was all.
    pub candidates: serde_json::Value,
    /// By scorer.
    pub scorers: BTreeMap<String, PerSetting<RankingMetrics>>,
}

/// Anything that scores the pairs of a pass, batch after batch in order.
pub trait Scorer {
    /// Scores `pairs` about the events `batch`; with no events, more pairs about the batch before.
    fn score(&mut self, batch: &[EventId], pairs: PairBatch<'_>) -> Result<Vec<f32>>;

    /// How many batches of so many queries it is best asked for at once.
    fn at_once(&self, n_queries: usize) -> usize {
        let _ = n_queries;
        1
    }

    /// Scores several batches one after another: `queries` holds those of each batch, twice as many as its events.
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
#[derive(Debug)]
pub struct ModelScorer<'a, 'm> {
    scorer: PairScorer<'a>,
    weights: &'a Weights,
    memory: Option<Memory<'m>>,
    /// The batch that is asked about, which the memory does not know yet.
    at_hand: Vec<EventId>,
}

impl<'a, 'm> ModelScorer<'a, 'm> {
    /// Scores with `weights`, and with what `memory` knows before the first batch.
    #[must_use]
    pub fn new(scorer: PairScorer<'a>, weights: &'a Weights, memory: Option<Memory<'m>>) -> Self {
        Self { scorer, weights, memory, at_hand: Vec::new() }
    }

    /// What stands for the source of each of `queries`, which are the events of `batches` one after another, row after row.
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

    /// The memory, which knows all batches but the one that was asked about last, if single scores were asked for.
    pub(crate) fn into_memory(self) -> Option<Memory<'m>> {
        self.memory
    }
}

impl Scorer for ModelScorer<'_, '_> {
    fn score(&mut self, batch: &[EventId], pairs: PairBatch<'_>) -> Result<Vec<f32>> {
        let Some(memory) = &mut self.memory else { return self.scorer.logits(self.weights, pairs) };
        if !batch.is_empty() {
            let over = std::mem::replace(&mut self.at_hand, batch.to_vec());
            if !over.is_empty() {
                let asked = memory.queries(&over);
                self.scorer.logits_with(self.weights, &asked, memory, &over)?;
            }
        }
        self.scorer.logits_with(self.weights, pairs.queries, memory, &[])
    }

    fn at_once(&self, n_queries: usize) -> usize {
        /// Enough for the helpers of a card, few enough for memory and to stop soon.
        const MOST: usize = 8192;
        let is_card = self.weights.device().is_gpu();
        if is_card && self.memory.is_none() { (MOST / n_queries.max(1)).clamp(1, 8) } else { 1 }
    }

    /// Pairs do not see one another: the batches are one. They are equally large, so that groups stay whole. A memory
    /// takes them one after another.
    fn score_all(&mut self, batches: &[&[EventId]], queries: &[PairQuery]) -> Result<Vec<f32>> {
        let Some(memory) = &mut self.memory else {
            return self.scorer.logits(self.weights, in_batches(batches, queries));
        };
        let mut scores = Vec::with_capacity(queries.len());
        for &batch in batches {
            let of_batch = &queries[scores.len()..scores.len() + 2 * batch.len()];
            scores.extend(self.scorer.logits_with(self.weights, of_batch, memory, batch)?);
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

    fn at_once(&self, n_queries: usize) -> usize {
        self.as_ref().at_once(n_queries)
    }

    fn score_all(&mut self, batches: &[&[EventId]], queries: &[PairQuery]) -> Result<Vec<f32>> {
        self.as_mut().score_all(batches, queries)
    }
}

/// What is drawn against the events of one pass.
enum Sampler<'t> {
    Random(Box<RandomNegatives>),
    Past(Box<PastNegatives<'t>>),
}

impl<'t> Sampler<'t> {
    fn new(task: &'t Task<'_>, pass: Pass, negatives: Negatives) -> Self {
        let pool = pass.pool(&task.split);
        let kind = match negatives {
            Negatives::Random => {
                return Self::Random(Box::new(RandomNegatives::new(task.stream, &pool, pass.seed())));
            }
            Negatives::Historical => PastKind::Historical,
            Negatives::Inductive => PastKind::Inductive { observed: pass.observed(task.stream, &task.split) },
        };
        let random = Stream::named(u64::from(pass.seed()), &format!("negative-eval/{}", negatives.as_str()));
        Self::Past(Box::new(PastNegatives::new(task.stream, pool, kind, random)))
    }

    /// One negative for each of `positives`, at its time.
    fn draw(&mut self, batch: &[EventId], index: u64, positives: &[PairQuery]) -> Result<Vec<PairQuery>> {
        let pairs: Vec<(NodeId, NodeId)> = match self {
            Self::Random(random) => positives.iter().map(|query| query.src).zip(random.draw(positives.len())).collect(),
            Self::Past(past) => past.draw(batch, index)?,
        };
        Ok(pairs.into_iter().zip(positives).map(|((src, dst), query)| PairQuery { src, dst, ..*query }).collect())
    }
}

/// Runs one pass with each of `scorers`; nothing where it has no events, or no negatives to set against them.
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
    let mut sampler = Sampler::new(task, pass, negatives);
    let mut sums = vec![(BatchMean::new(), WholeSplit::new()); scorers.len()];
    let batches: Vec<&[EventId]> = events.chunks(batch_size).collect();
    let total = batches.len();
    let at_once = scorers.iter().map(|scorer| scorer.at_once(2 * batch_size)).max().unwrap_or(1);
    let mut done = 0;
    while done < total {
        callback.on_progress(Stage::Evaluate, done, total);
        if callback.should_stop() {
            return Err(Error::Interrupted);
        }
        // Only the last batch may be smaller, and is by itself.
        let whole = batches[done..].iter().take_while(|batch| batch.len() == batch_size).count();
        let window = &batches[done..done + whole.clamp(1, at_once)];
        let mut queries = Vec::new();
        for (index, batch) in (done as u64..).zip(window) {
            let positives = task.queries(batch);
            match sampler.draw(batch, index, &positives) {
                Ok(negatives) => queries.extend(positives.into_iter().chain(negatives)),
                // A few events of new nodes may leave no pair to set against them.
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

/// The place of the true destination among others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RankingMetrics {
    /// Mean of 1 / rank.
    pub mrr: f64,
    /// Share of ranks of at most 10.
    pub hits_at_10: f64,
}

/// Queries scored at once: what bounds the memory of ranking.
const RANKED_AT_ONCE: usize = 8192;

/// Ranks each event of the pass against other destinations; nothing where it has no events.
///
/// # Complexity
/// One score for each event and candidate; memory for one block of queries and one list of candidates.
pub fn rank<S: Scorer>(
    task: &Task<'_>,
    pass: Pass,
    count: CandidateCount,
    batch_size: usize,
    scorers: &mut [S],
    callback: &mut dyn Callback,
) -> Result<Option<Vec<RankingMetrics>>> {
    let events = pass.events(&task.split);
    if events.is_empty() {
        return Ok(None);
    }
    let random = Stream::named(u64::from(pass.seed()), "ranking");
    let lists = CandidateLists::new(task.stream, &task.split, count, random);
    let mut rankings = vec![Ranking::new(); scorers.len()];
    let mut done = 0;
    for batch in events.chunks(batch_size) {
        let mut asked = batch;
        for &event in batch {
            callback.on_progress(Stage::Rank, done, events.len());
            if callback.should_stop() {
                return Err(Error::Interrupted);
            }
            let positive = task.queries(&[event])[0];
            let mut queries = vec![positive];
            queries.extend(lists.of(event).into_iter().map(|dst| PairQuery { dst, ..positive }));
            for (scorer, ranking) in scorers.iter_mut().zip(&mut rankings) {
                let mut scores = Vec::with_capacity(queries.len());
                for (index, block) in queries.chunks(RANKED_AT_ONCE).enumerate() {
                    scores.extend(
                        scorer.score(if index == 0 { asked } else { &[] }, PairBatch::new(block).padded_alone())?,
                    );
                }
                ranking.push(scores[0], &scores[1..])?;
            }
            asked = &[];
            done += 1;
        }
    }
    callback.on_progress(Stage::Rank, done, events.len());
    let metrics = |ranking: Ranking| Ok(RankingMetrics { mrr: ranking.mrr()?, hits_at_10: ranking.hits_at(10)? });
    rankings.into_iter().map(metrics).collect::<Result<_>>().map(Some)
}
