//! The one path from pairs to logits: sampling, collation, forward pass. Training, evaluation and prediction all use it.

mod collator;
mod order;
mod plan;

use std::borrow::Cow;
use std::ops::Range;

use ctdg::event::EventId;
use ctdg::mite::{PairEncoder, PairEncoderConfig, PairQuery, PairTokens};
use ctdg::random::RandomStream;
use ctdg::store::Store;
use ctdg::walks::TemporalWalks;
use hopedgn_tensor::{BceTerm, Device, Dropout, Gradients, Mode, Tape, TrainState, Var, Weights};
use rayon::prelude::*;

use crate::collate::{FeatureTables, HopLayout, Input, Layout, PairBatch, WalkRows};
use crate::memory::Memory;
use crate::model::Model;
use crate::{Error, Result};
use collator::{Collator, Target, staged, with_memory};
pub(crate) use collator::{PendingScores, PreparedScores};
use plan::{Chunk, PairLengths};

/// Scores pairs from the events of one store; keeps its buffers between batches.
///
/// ```
/// # use hopedgn::{*, ctdg::split::SplitMode, model::{ModelConfig, build}, task::Task, tensor::Weights};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let task = Task::new(&events, SplitMode::Dyglib)?;
/// # let config = ModelConfig::new(ModelName::HopeDgn).with_known(&["d-channel=4", "length=4"])?;
/// # let (model, parameters) = build(&config, task.tables.widths(), 0)?;
/// # let weights = Weights::new(&Device::cpu(), parameters)?;
/// use hopedgn::{collate::PairBatch, score::PairScorer};
///
/// let mut scorer = PairScorer::new(&*model, &task.tables, &task.full_store);
/// let queries = task.queries(&task.split.test);
/// let logits = scorer.logits(&weights, PairBatch::new(&queries))?;
/// assert_eq!(scorer.logits(&weights, PairBatch::new(&queries[..1]))?, logits[..1]); // its batch does not matter
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug)]
pub struct PairScorer<'a> {
    collator: Collator<'a>,
    encoder: PairEncoder<'a>,
    /// Encodes the nodes of pairs alone, for updates of a memory.
    nodes_alone: Option<PairEncoder<'a>>,
    tokens: PairTokens,
    /// Of a model that reads walks.
    walks: Option<TemporalWalks>,
}

/// A training batch.
///
/// ```
/// # use hopedgn::{*, ctdg::split::SplitMode, model::{ModelConfig, build}, task::Task, tensor::Weights};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let task = Task::new(&events, SplitMode::Dyglib)?;
/// # let config = ModelConfig::new(ModelName::HopeDgn).with_known(&["d-channel=4", "length=4"])?;
/// # let (model, parameters) = build(&config, task.tables.widths(), 0)?;
/// # let weights = Weights::new(&Device::cpu(), parameters)?;
/// use hopedgn::{collate::PairBatch, score::{Loss, PairScorer, TrainBatch}};
/// use hopedgn::{ctdg::random::RandomStream, tensor::{AdamConfig, TrainState}};
///
/// let mut state = TrainState::new(&Device::cpu(), weights.parameters()?.into_owned(), AdamConfig::default())?;
/// let mut scorer = PairScorer::new(&*model, &task.tables, &task.train_store);
/// let (events, dropout) = (&task.split.train[..2], RandomStream::named(0, "dropout"));
/// let mut queries = task.queries(events);
/// queries.push(hopedgn::ctdg::mite::PairQuery { dst: queries[1].src, ..queries[0] }); // a negative
/// let batch = TrainBatch { pairs: PairBatch::new(&queries), loss: Loss::Mean(&[1.0, 1.0, 0.0]), events, dropout: &dropout };
/// let (before, _) = scorer.loss_and_gradients(&mut state, &batch, None)?;
/// scorer.train_step(&mut state, &batch, None)?;
/// assert_ne!(scorer.loss_and_gradients(&mut state, &batch, None)?.0, before);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct TrainBatch<'a> {
    /// Positive and negative pairs; with a memory, the positive ones first.
    pub pairs: PairBatch<'a>,
    /// What is minimised.
    pub loss: Loss<'a>,
    /// The events of the positive pairs, in order; a memory is updated with them.
    pub events: &'a [EventId],
    /// Micro-batch `i` seeds its dropout with fork `i`; sampling of neighbours uses the last fork.
    pub dropout: &'a RandomStream,
}

/// The loss of a [`TrainBatch`].
#[derive(Debug, Clone, Copy)]
pub enum Loss<'a> {
    /// The mean binary cross-entropy: 1 for positives, 0 for negatives.
    Mean(&'a [f32]),
    /// The sum of weighted terms: for each pair one of its logit `z`, and one of `z + g` with the activity `g` of its source.
    Intensity(&'a [[BceTerm; 2]]),
}

/// Which output of a model answers a question. They differ for models of intensities only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Whom the source meets: `z`. For questions that keep the source, such as random negatives and ranking.
    Partner,
    /// Which pair interacts: `z + g`. For questions that change the source, such as historical and inductive negatives.
    Pair,
}

impl TrainBatch<'_> {
    /// Sampling seed, different for each batch.
    fn sampling_seed(&self) -> u64 {
        self.dropout.fork(u64::MAX).next_u64()
    }
}

impl<'a> PairScorer<'a> {
    /// Scores with `model` over the events of `store`.
    #[must_use]
    pub fn new(model: &'a dyn Model, tables: &FeatureTables, store: &'a Store) -> Self {
        Self::with_walks(model, tables, store, model.walks().map(|config| TemporalWalks::new(store, config)))
    }

    /// The same with walks that are known up to some event of `store`.
    pub(crate) fn with_walks(
        model: &'a dyn Model,
        tables: &FeatureTables,
        store: &'a Store,
        walks: Option<TemporalWalks>,
    ) -> Self {
        let encoder = PairEncoder::new(store, model.encoding());
        let collator = Collator { model, tables: tables.clone(), store, left_out: &[], walks: None, n_shares: 1 };
        Self { collator, encoder, nodes_alone: None, tokens: PairTokens::default(), walks }
    }

    /// The same with batches in at least so many chunks, where there are so many pairs.
    pub(crate) fn in_shares(mut self, n_shares: usize) -> Self {
        self.collator.n_shares = n_shares.max(1);
        self
    }

    /// The walks, advanced to the latest query.
    pub(crate) fn into_walks(self) -> Option<TemporalWalks> {
        self.walks
    }

    /// The logit of each of `pairs`.
    pub fn logits(&mut self, weights: &Weights, pairs: PairBatch<'_>) -> Result<Vec<f32>> {
        self.scores(weights, pairs, Output::Partner)
    }

    /// An output of the model for each of `pairs`.
    pub fn scores(&mut self, weights: &Weights, pairs: PairBatch<'_>, output: Output) -> Result<Vec<f32>> {
        let order = self.collator.order(pairs.queries);
        let queries = order.apply(pairs.queries);
        self.sample(&queries, 0);
        Ok(order.undo(self.collator.score(weights, &self.tokens, pairs.with(&queries), Target::Score(output))?))
    }

    /// A scorer of the same model and store with buffers of its own.
    pub(crate) fn fork(&self) -> Self {
        Self::new(self.collator.model, &self.collator.tables, self.collator.store)
    }

    /// Samples and collates `pairs` for [`submit`](Self::submit) on `device`; by any [fork](Self::fork), on any thread.
    pub(crate) fn prepare_scores(&mut self, device: &Device, pairs: PairBatch<'_>) -> Result<PreparedScores> {
        let order = self.collator.order(pairs.queries);
        let queries = order.apply(pairs.queries);
        self.sample(&queries, 0);
        Ok(PreparedScores { inputs: self.collator.inputs(device, &self.tokens, pairs.with(&queries))?, order })
    }

    /// Submits the forward passes of prepared pairs.
    pub(crate) fn submit(&self, weights: &Weights, prepared: PreparedScores, output: Output) -> Result<PendingScores> {
        prepared.submit(self.collator.model, weights, Target::Score(output))
    }

    /// The same with a node memory, which is updated with `events`, those of the first queries, afterwards.
    pub fn logits_with(
        &mut self,
        weights: &Weights,
        queries: &[PairQuery],
        memory: &mut Memory,
        events: &[EventId],
    ) -> Result<Vec<f32>> {
        self.scores_with(weights, queries, memory, events, Output::Partner)
    }

    /// The same for an output of the model.
    pub fn scores_with(
        &mut self,
        weights: &Weights,
        queries: &[PairQuery],
        memory: &mut Memory,
        events: &[EventId],
        output: Output,
    ) -> Result<Vec<f32>> {
        self.forward_with_memory(weights, queries, memory, events, Target::Score(output))
    }

    /// Updates `memory` by `events`, the next batch. What [`logits_with`](Self::logits_with) of their pairs does to it, without scoring them where the
    /// model has a [`memory_updater`](Model::memory_updater).
    pub fn update_memory(&mut self, weights: &Weights, memory: &mut Memory, events: &[EventId]) -> Result<()> {
        let (queries, model) = (memory.queries(events), self.collator.model);
        let Some(updater) = model.memory_updater() else {
            return self.logits_with(weights, &queries, memory, events).map(drop);
        };
        let encoding = PairEncoderConfig { length: 1, k: model.encoding().k, ..PairEncoderConfig::default() };
        let nodes_alone = || PairEncoder::new(self.collator.store, encoding);
        self.nodes_alone.get_or_insert_with(nodes_alone).encode(&queries, &mut self.tokens);
        let input = self.collator.whole_past(&self.tokens, &queries)?;
        let input = with_memory(input, &self.tokens, &queries, memory, events)?;
        weights.evaluate(&[input], |tape, input| updater.advance(tape, input.hops()?).map(drop))?;
        Ok(())
    }

    /// Both outputs for each of `pairs`, [`Output::Partner`] and [`Output::Pair`], from one forward pass.
    pub(crate) fn both_scores(&mut self, weights: &Weights, pairs: PairBatch<'_>) -> Result<Vec<[f32; 2]>> {
        self.sample(pairs.queries, 0);
        let scores = self.collator.score(weights, &self.tokens, pairs, Target::BothScores)?;
        Ok(scores.as_chunks().0.to_vec())
    }

    /// The same with a node memory.
    pub(crate) fn both_scores_with(
        &mut self,
        weights: &Weights,
        queries: &[PairQuery],
        memory: &mut Memory,
    ) -> Result<Vec<[f32; 2]>> {
        let scores = self.forward_with_memory(weights, queries, memory, &[], Target::BothScores)?;
        Ok(scores.as_chunks().0.to_vec())
    }

    /// The embedding of the source of each of `pairs`, `[pairs, d]` in row-major order, without dropout.
    ///
    /// ```
    /// # use hopedgn::{*, ctdg::split::SplitMode, model::{ModelConfig, build}, task::Task, tensor::Weights};
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// # let task = Task::new(&events, SplitMode::Dyglib)?;
    /// # let config = ModelConfig::new(ModelName::GraphMixer).with_known(&["d-out=4", "neighbors=4"])?;
    /// # let (model, parameters) = build(&config, task.tables.widths(), 0)?;
    /// # let weights = Weights::new(&Device::cpu(), parameters)?;
    /// use hopedgn::{collate::PairBatch, score::PairScorer};
    ///
    /// let mut scorer = PairScorer::new(&*model, &task.tables, &task.full_store);
    /// let queries = task.queries(&task.split.test[..3]);
    /// assert_eq!(scorer.sources(&weights, PairBatch::new(&queries))?.len(), 3 * model.width());
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn sources(&mut self, weights: &Weights, pairs: PairBatch<'_>) -> Result<Vec<f32>> {
        let with_itself = |query: &PairQuery| PairQuery { dst: query.src, ..*query };
        let queries: Cow<'_, [PairQuery]> = match self.collator.model.layout() {
            Layout::Pairs(_) => pairs.queries.iter().map(with_itself).collect(),
            _ => pairs.queries.into(),
        };
        self.sample(&queries, 0);
        self.collator.score(weights, &self.tokens, pairs.with(&queries), Target::Sources)
    }

    /// The same with a node memory, which is updated with `events`, those of the first queries, afterwards.
    pub fn sources_with(
        &mut self,
        weights: &Weights,
        queries: &[PairQuery],
        memory: &mut Memory,
        events: &[EventId],
    ) -> Result<Vec<f32>> {
        self.forward_with_memory(weights, queries, memory, events, Target::Sources)
    }

    fn forward_with_memory(
        &mut self,
        weights: &Weights,
        queries: &[PairQuery],
        memory: &mut Memory,
        events: &[EventId],
        target: Target,
    ) -> Result<Vec<f32>> {
        self.sample(queries, 0);
        let input = self.collator.whole_input(&self.tokens, queries)?;
        let input = with_memory(input, &self.tokens, queries, memory, events)?;
        Ok(weights.evaluate(&[input], |tape, input| self.collator.forward(tape, input, target))?.concat())
    }

    /// Sampling and collation without the model, for benchmarks. Returns the number of tokens.
    pub fn collate_only(&mut self, pairs: PairBatch<'_>) -> Result<usize> {
        self.sample(pairs.queries, 0);
        let (collator, tokens) = (&self.collator, &self.tokens);
        let plan = collator.plan(Device::cpu().train_chunk_rows(), tokens, pairs);
        plan.par_iter().try_for_each(|chunk| collator.input(tokens, pairs.queries, chunk).map(drop))?;
        Ok(tokens.n_tokens())
    }

    /// Submits one optimizer step on the mean loss of `batch`, and updates `memory` with its events.
    pub fn train_step(
        &mut self,
        state: &mut TrainState,
        batch: &TrainBatch<'_>,
        memory: Option<&mut Memory>,
    ) -> Result<()> {
        if let Some(memory) = memory {
            let micro_batch = self.micro_batch_with_memory(batch, memory)?;
            return state.step(&[micro_batch], |tape, micro_batch| {
                micro_batch.loss(self.collator.model, tape, batch.pairs.queries.len())
            });
        }
        let (chunks, sampled) = self.own_chunks(state, batch);
        let n_pairs = batch.pairs.queries.len();
        state.step(&chunks, |tape, chunk| {
            self.micro_batch(chunk, &sampled, batch)?.loss(self.collator.model, tape, n_pairs)
        })
    }

    /// The mean loss of a batch and its gradients, without an optimizer step.
    pub fn loss_and_gradients(
        &mut self,
        state: &mut TrainState,
        batch: &TrainBatch<'_>,
        memory: Option<&mut Memory>,
    ) -> Result<(f64, Gradients)> {
        let n_pairs = batch.pairs.queries.len();
        if let Some(memory) = memory {
            let micro_batch = self.micro_batch_with_memory(batch, memory)?;
            return state.loss_and_gradients(&[micro_batch], |tape, micro_batch| {
                micro_batch.loss(self.collator.model, tape, n_pairs)
            });
        }
        let (chunks, sampled) = self.own_chunks(state, batch);
        state.loss_and_gradients(&chunks, |tape, chunk| {
            self.micro_batch(chunk, &sampled, batch)?.loss(self.collator.model, tape, n_pairs)
        })
    }

    /// Samples and collates a batch in advance, for a later step on `device`.
    pub fn prepare(&mut self, device: &Device, batch: &TrainBatch<'_>) -> Result<PreparedBatch> {
        let chunks = self.chunks(device, batch);
        let mut micro_batches = Vec::with_capacity(chunks.len());
        for chunk in &chunks {
            let micro_batch = self.micro_batch(chunk, batch.pairs.queries, batch)?;
            micro_batches.push(MicroBatch { input: staged(device, micro_batch.input, true)?, ..micro_batch });
        }
        Ok(PreparedBatch { micro_batches, n_pairs: batch.pairs.queries.len() })
    }

    /// Samples the tokens of `queries` and looks up their walks. Random samples depend on the seed and on the pair alone.
    fn sample(&mut self, queries: &[PairQuery], seed: u64) {
        let layout = self.collator.model.layout();
        if layout != Layout::Statistics {
            self.encoder.reseed(seed);
            self.encoder.encode(queries, &mut self.tokens);
        }
        if let Some(walks) = &mut self.walks {
            let of_nodes = matches!(layout, Layout::Hops(HopLayout { with_node_walks: true, .. }));
            self.collator.walks = Some(WalkRows::of(walks, queries, of_nodes.then_some(&self.tokens)));
        }
    }

    fn chunks(&mut self, device: &Device, batch: &TrainBatch<'_>) -> Vec<Chunk> {
        self.sample(batch.pairs.queries, batch.sampling_seed());
        self.collator.plan(device.train_chunk_rows(), &self.tokens, batch.pairs)
    }

    /// The chunks of `batch`, and the pairs that are sampled: where processes share the step, those of the chunks of this one.
    fn own_chunks<'b>(&mut self, state: &TrainState, batch: &TrainBatch<'b>) -> (Vec<Chunk>, Cow<'b, [PairQuery]>) {
        let (device, queries) = (state.weights().device(), batch.pairs.queries);
        let is_shared = !device.is_gpu() && !state.weights().group().is_alone();
        let has_tokens = self.collator.model.layout() != Layout::Statistics;
        let lengths = self.encoder.lengths(queries).filter(|_| is_shared && has_tokens).map(PairLengths::of_one_hop);
        if !is_shared || (has_tokens && lengths.is_none()) {
            return (self.chunks(device, batch), Cow::Borrowed(queries));
        }
        let mut chunks = self.collator.plan_of(device.train_chunk_rows(), lengths.as_ref(), batch.pairs);
        let mut own = Vec::new();
        for at in state.own_chunks(chunks.len()) {
            chunks[at].first_sampled = own.len();
            own.extend_from_slice(&queries[chunks[at].pairs.clone()]);
        }
        self.sample(&own, batch.sampling_seed());
        (chunks, Cow::Owned(own))
    }

    /// `sampled` are the pairs of the tokens.
    fn micro_batch(&self, chunk: &Chunk, sampled: &[PairQuery], batch: &TrainBatch<'_>) -> Result<MicroBatch> {
        Ok(MicroBatch {
            input: self.collator.input(&self.tokens, sampled, chunk)?,
            loss: OwnedLoss::of(batch.loss, chunk.pairs.clone()),
            seed: batch.dropout.fork(chunk.index).next_u64(),
        })
    }

    /// With a memory the batch is one micro-batch, since its pairs read the memory of the same nodes.
    fn micro_batch_with_memory(&mut self, batch: &TrainBatch<'_>, memory: &mut Memory) -> Result<MicroBatch> {
        self.sample(batch.pairs.queries, batch.sampling_seed());
        let input = self.collator.whole_input(&self.tokens, batch.pairs.queries)?;
        let input = with_memory(input, &self.tokens, batch.pairs.queries, memory, batch.events)?;
        let seed = batch.dropout.fork(0).next_u64();
        let loss = OwnedLoss::of(batch.loss, 0..batch.pairs.queries.len());
        Ok(MicroBatch { input, loss, seed })
    }
}

/// A collated batch.
///
/// ```
/// # use hopedgn::{*, ctdg::split::SplitMode, model::{ModelConfig, build}, task::Task, tensor::Weights};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let task = Task::new(&events, SplitMode::Dyglib)?;
/// # let config = ModelConfig::new(ModelName::HopeDgn).with_known(&["d-channel=4", "length=4"])?;
/// # let (model, parameters) = build(&config, task.tables.widths(), 0)?;
/// # let weights = Weights::new(&Device::cpu(), parameters)?;
/// # use hopedgn::{collate::PairBatch, score::{Loss, PairScorer, TrainBatch}};
/// # use hopedgn::{ctdg::random::RandomStream, tensor::{AdamConfig, TrainState}};
/// # let mut state = TrainState::new(&Device::cpu(), weights.parameters()?.into_owned(), AdamConfig::default())?;
/// # let mut scorer = PairScorer::new(&*model, &task.tables, &task.train_store);
/// # let (events, dropout) = (&task.split.train[..2], RandomStream::named(0, "dropout"));
/// # let queries = task.queries(events);
/// let batch = TrainBatch { pairs: PairBatch::new(&queries), loss: Loss::Mean(&[1.0, 0.0]), events, dropout: &dropout };
/// let prepared = scorer.prepare(&Device::cpu(), &batch)?; // on any thread
/// prepared.train_step(&*model, &mut state)?; // later
/// assert_eq!(state.step_results(0)?.len(), 1);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug)]
pub struct PreparedBatch {
    micro_batches: Vec<MicroBatch>,
    n_pairs: usize,
}

impl PreparedBatch {
    /// Submits one optimizer step on its mean loss.
    pub fn train_step(&self, model: &dyn Model, state: &mut TrainState) -> Result<()> {
        state.step(&self.micro_batches, |tape, micro_batch| micro_batch.loss(model, tape, self.n_pairs))
    }
}

/// A chunk of a training batch: forward and backward run on one tape.
#[derive(Debug)]
struct MicroBatch {
    input: Input,
    loss: OwnedLoss,
    /// Dropout seed.
    seed: u64,
}

/// The part of a [`Loss`] that belongs to a chunk.
#[derive(Debug)]
enum OwnedLoss {
    Mean(Vec<f32>),
    Intensity(Vec<BceTerm>),
}

impl OwnedLoss {
    fn of(loss: Loss<'_>, pairs: Range<usize>) -> Self {
        match loss {
            Loss::Mean(targets) => Self::Mean(targets[pairs].to_vec()),
            Loss::Intensity(terms) => Self::Intensity(terms[pairs].concat()),
        }
    }
}

impl MicroBatch {
    /// Its share of the loss of `n_pairs`.
    fn loss(&self, model: &dyn Model, tape: &mut Tape<'_>, n_pairs: usize) -> Result<Var> {
        let dropout = Dropout::new(model.dropout(), self.seed, Mode::Train)?;
        let logits = model.logits(tape, &self.input, dropout)?; // [B, 1]
        match &self.loss {
            OwnedLoss::Mean(targets) => Ok(tape.bce_with_logits(logits, targets, n_pairs)?),
            OwnedLoss::Intensity(terms) => {
                let activity = model.activity(tape, &self.input)?.ok_or(Error::MissingInput)?; // [B, 1]
                let pair = tape.add(logits, activity)?;
                let both = tape.concat(&[logits, pair])?; // [B, 2]
                Ok(tape.weighted_bce_with_logits(both, terms)?)
            }
        }
    }
}

/// The logits of one pair with other tokens each time, as if it were alone. `tokens` were encoded as if the events of `left_out`,
/// one list for each time, were not in the store.
pub(crate) fn score_tokens(
    model: &dyn Model,
    (tables, store): (&FeatureTables, &Store),
    weights: &Weights,
    tokens: &PairTokens,
    query: PairQuery,
    left_out: &[&[EventId]],
) -> Result<Vec<f32>> {
    let queries = vec![query; tokens.n_pairs()];
    Collator { model, tables: tables.clone(), store, left_out, walks: None, n_shares: 1 }.score(
        weights,
        tokens,
        PairBatch::new(&queries).padded_alone(),
        Target::Score(Output::Partner),
    )
}
