//! A trained model as a scorer of evaluations.

use ctdg::event::EventId;
use ctdg::mite::PairQuery;
use hopedgn_tensor::Weights;

use super::pipeline::Pipeline;
use super::window::one_by_one;
use super::{Scorer, Window};
use crate::Result;
use crate::collate::PairBatch;
use crate::memory::Memory;
use crate::score::{Output, PairScorer};

/// Prefetch threads of an evaluation, which needs less of a GPU for each pair than training does.
const PREFETCH_WORKERS: usize = 15;

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

    /// Scores without a memory. Every process that holds the weights scores its share, whole padding groups at a time.
    fn shared_scores(&mut self, pairs: PairBatch<'_>) -> Result<Vec<f32>> {
        let group = self.weights.group();
        if group.is_alone() {
            return self.scorer.scores(self.weights, pairs, self.output);
        }
        let (n, unit) = (pairs.queries.len(), pairs.padding_group().max(1));
        let share = group.share(n.div_ceil(unit));
        let own = &pairs.queries[n.min(share.start * unit)..n.min(share.end * unit)];
        let scores =
            if own.is_empty() { Vec::new() } else { self.scorer.scores(self.weights, pairs.with(own), self.output)? };
        Ok(group.concat(scores)?)
    }

    /// The memory, updated with all batches; after [`Scorer::score`] with all but the last.
    pub(crate) fn into_memory(self) -> Option<Memory> {
        self.memory
    }
}

impl Scorer for ModelScorer<'_> {
    fn score(&mut self, batch: &[EventId], pairs: PairBatch<'_>) -> Result<Vec<f32>> {
        let Some(memory) = &mut self.memory else { return self.shared_scores(pairs) };
        if !batch.is_empty() {
            let previous = std::mem::replace(&mut self.current, batch.to_vec());
            if !previous.is_empty() {
                self.scorer.update_memory(self.weights, memory, &previous)?;
            }
        }
        self.scorer.scores_with(self.weights, pairs.queries, memory, &[], self.output)
    }

    /// On a GPU other threads prepare windows that come next, unless a memory has to be updated in between or processes share windows.
    fn score_windows<'e>(
        &mut self,
        windows: &mut (dyn Iterator<Item = Result<Window<'e>>> + Send),
        consume: &mut dyn FnMut(Window<'e>, Vec<f32>) -> Result<()>,
    ) -> Result<()> {
        let device = self.weights.device();
        let is_alone = self.memory.is_none() && self.weights.group().is_alone();
        if let Some(n_workers) = device.prefetch_threads(PREFETCH_WORKERS).filter(|_| is_alone) {
            let Self { scorer, weights, output, .. } = self;
            return Pipeline { scorer, weights, output: *output, n_workers }.run(windows, consume);
        }
        one_by_one(self, windows, consume)
    }

    fn batches_per_call(&self, n_queries: usize, n_batches: usize) -> usize {
        /// Enough pairs to keep a GPU busy; few enough for memory, and to stop soon.
        const MAX_PAIRS: usize = 8192;
        /// A GPU waits for the first call, and every prefetch thread prepares a whole one: several calls for each of them.
        const MIN_CALLS: usize = 4 * PREFETCH_WORKERS;
        let n_ranks = self.weights.group().n_ranks();
        let most = match (self.weights.device().is_gpu(), n_ranks) {
            (true, 1) => (n_batches / MIN_CALLS).clamp(1, 8),
            (true, _) => 8 * n_ranks,
            (false, 1) => 1,
            // Enough that every rank has its share, and that all wait rarely for the slowest.
            (false, _) => 4 * n_ranks,
        };
        if self.memory.is_none() { (n_ranks * MAX_PAIRS / n_queries.max(1)).clamp(1, most) } else { 1 }
    }

    /// Without a memory all batches are scored in one call; they have the same size, so padding groups stay whole. A memory is
    /// updated between batches.
    fn score_all(&mut self, batches: &[&[EventId]], queries: &[PairQuery]) -> Result<Vec<f32>> {
        let Some(memory) = &mut self.memory else { return self.shared_scores(in_batches(batches, queries)) };
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
