//! The one way from pairs to scores, for training, evaluation and answers alike.

use std::borrow::Cow;
use std::ops::Range;

use ctdg::event::EventId;
use ctdg::mite::{PairEncoder, PairQuery, PairTokens, Side};
use ctdg::random::Stream;
use ctdg::store::Store;
use hopedgn_tensor::{Device, Dropout, Gradients, Mode, Tape, TrainState, Var, Weights};
use rayon::prelude::*;

use crate::collate::{
    FeatureTables, GlobalInput, HopCollator, Input, Layout, PaddedTo, PairBatch, PatchCollator, longest,
};
use crate::memory::Memory;
use crate::model::Model;
use crate::{Error, Result};

/// Scores pairs with the past that one store knows; keeps its buffers between batches.
#[derive(Debug)]
pub struct PairScorer<'a> {
    past: Past<'a>,
    encoder: PairEncoder<'a>,
    tokens: PairTokens,
}

/// Pairs to learn from.
#[derive(Debug, Clone, Copy)]
pub struct TrainBatch<'a> {
    /// The pairs, which do not see one another.
    pub pairs: PairBatch<'a>,
    /// 1 for each that happened, 0 for the others.
    pub targets: &'a [f32],
    /// The events that the first pairs are; what has a memory will remember them.
    pub events: &'a [EventId],
    /// Chunk `i` draws its dropout from fork `i`; what is drawn of the past comes from the last fork.
    pub dropout: &'a Stream,
}

impl TrainBatch<'_> {
    /// Decides what is drawn of the past: every lesson looks at other events.
    fn draws(&self) -> u64 {
        self.dropout.fork(u64::MAX).next_u64()
    }
}

/// Pairs that are run at once.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Chunk {
    index: u64,
    pairs: Range<usize>,
    padded_to: Option<PaddedTo>,
}

impl<'a> PairScorer<'a> {
    /// Scores with `model` over the past in `store`.
    #[must_use]
    pub fn new(model: &'a dyn Model, tables: &FeatureTables, store: &'a Store) -> Self {
        let encoder = PairEncoder::new(store, model.encoding());
        Self { past: Past { model, tables: tables.clone(), store }, encoder, tokens: PairTokens::default() }
    }

    /// The logit of each of `pairs`, which do not see one another.
    pub fn logits(&mut self, weights: &Weights, pairs: PairBatch<'_>) -> Result<Vec<f32>> {
        self.look_up(pairs.queries, 0);
        self.past.score(weights, &self.tokens, pairs, Wanted::Logits)
    }

    /// The same with what `memory` knows. It remembers `events`, which the first queries are, afterwards.
    pub fn logits_with(
        &mut self,
        weights: &Weights,
        queries: &[PairQuery],
        memory: &mut Memory<'_>,
        events: &[EventId],
    ) -> Result<Vec<f32>> {
        self.recalled(weights, queries, memory, events, Wanted::Logits)
    }

    /// The embedding of the source of each of `pairs`, `[pairs, d]` in row-major order, without dropout.
    pub fn sources(&mut self, weights: &Weights, pairs: PairBatch<'_>) -> Result<Vec<f32>> {
        let with_itself = |query: &PairQuery| PairQuery { dst: query.src, ..*query };
        let queries: Cow<'_, [PairQuery]> = match self.past.model.layout() {
            Layout::Pairs(_) => pairs.queries.iter().map(with_itself).collect(),
            _ => pairs.queries.into(),
        };
        self.look_up(&queries, 0);
        self.past.score(weights, &self.tokens, pairs.with(&queries), Wanted::Sources)
    }

    /// The same with what `memory` knows. It remembers `events`, which the first queries are, afterwards.
    pub fn sources_with(
        &mut self,
        weights: &Weights,
        queries: &[PairQuery],
        memory: &mut Memory<'_>,
        events: &[EventId],
    ) -> Result<Vec<f32>> {
        self.recalled(weights, queries, memory, events, Wanted::Sources)
    }

    fn recalled(
        &mut self,
        weights: &Weights,
        queries: &[PairQuery],
        memory: &mut Memory<'_>,
        events: &[EventId],
        wanted: Wanted,
    ) -> Result<Vec<f32>> {
        self.look_up(queries, 0);
        let input = self.past.remembered(&self.tokens, queries, memory, events)?;
        Ok(weights.evaluate(&[input], |tape, input| self.past.forward(tape, input, wanted))?.concat())
    }

    /// All that comes before the model, for measuring: looks up the past of `queries` and lays out the input. The number
    /// of tokens.
    pub fn encode_only(&mut self, pairs: PairBatch<'_>) -> Result<usize> {
        self.look_up(pairs.queries, 0);
        let (past, tokens) = (&self.past, &self.tokens);
        let plan = past.plan(Device::cpu().rows_to_learn(), tokens, pairs);
        plan.par_iter().try_for_each(|chunk| past.input(tokens, pairs.queries, chunk).map(drop))?;
        Ok(tokens.n_tokens())
    }

    /// Asks for one step against the mean loss of a lesson, of which `memory` remembers the events.
    pub fn learn(
        &mut self,
        learner: &mut TrainState,
        lesson: &TrainBatch<'_>,
        memory: Option<&mut Memory<'_>>,
    ) -> Result<()> {
        if let Some(memory) = memory {
            let piece = self.remembered(lesson, memory)?;
            return learner.step(&[piece], |tape, piece| piece.loss(self.past.model, tape, lesson.pairs.queries.len()));
        }
        let chunks = self.chunks(learner.weights().device(), lesson);
        let n_pairs = lesson.pairs.queries.len();
        learner.step(&chunks, |tape, chunk| self.piece(chunk, lesson)?.loss(self.past.model, tape, n_pairs))
    }

    /// The mean loss of a lesson and its gradients, without a step.
    pub fn differentiate(
        &mut self,
        learner: &mut TrainState,
        lesson: &TrainBatch<'_>,
        memory: Option<&mut Memory<'_>>,
    ) -> Result<(f64, Gradients)> {
        let n_pairs = lesson.pairs.queries.len();
        if let Some(memory) = memory {
            let piece = self.remembered(lesson, memory)?;
            return learner.differentiate(&[piece], |tape, piece| piece.loss(self.past.model, tape, n_pairs));
        }
        let chunks = self.chunks(learner.weights().device(), lesson);
        learner.differentiate(&chunks, |tape, chunk| self.piece(chunk, lesson)?.loss(self.past.model, tape, n_pairs))
    }

    /// All of a lesson that needs neither weights nor memory, to be learned from later on `device`.
    pub fn prepare(&mut self, device: &Device, lesson: &TrainBatch<'_>) -> Result<PreparedBatch> {
        let chunks = self.chunks(device, lesson);
        let mut pieces = Vec::with_capacity(chunks.len());
        for chunk in &chunks {
            let piece = self.piece(chunk, lesson)?;
            pieces.push(MicroBatch { input: staged(device, piece.input, true)?, ..piece });
        }
        Ok(PreparedBatch { pieces, n_pairs: lesson.pairs.queries.len() })
    }

    /// Leaves the tokens of `queries`; what is drawn at random depends on the seed and on each pair, on nothing else.
    fn look_up(&mut self, queries: &[PairQuery], seed: u64) {
        self.encoder.reseed(seed);
        self.encoder.encode(queries, &mut self.tokens);
    }

    fn chunks(&mut self, device: &Device, lesson: &TrainBatch<'_>) -> Vec<Chunk> {
        self.look_up(lesson.pairs.queries, lesson.draws());
        self.past.plan(device.rows_to_learn(), &self.tokens, lesson.pairs)
    }

    fn piece(&self, chunk: &Chunk, lesson: &TrainBatch<'_>) -> Result<MicroBatch> {
        Ok(MicroBatch {
            input: self.past.input(&self.tokens, lesson.pairs.queries, chunk)?,
            targets: lesson.targets[chunk.pairs.clone()].to_vec(),
            seed: lesson.dropout.fork(chunk.index).next_u64(),
        })
    }

    /// A lesson that a memory takes part in: one piece, since all pairs read the same nodes.
    fn remembered(&mut self, lesson: &TrainBatch<'_>, memory: &mut Memory<'_>) -> Result<MicroBatch> {
        self.look_up(lesson.pairs.queries, lesson.draws());
        let input = self.past.remembered(&self.tokens, lesson.pairs.queries, memory, lesson.events)?;
        let seed = lesson.dropout.fork(0).next_u64();
        Ok(MicroBatch { input, targets: lesson.targets.to_vec(), seed })
    }
}

/// A lesson with its past looked up and laid out.
#[derive(Debug)]
pub struct PreparedBatch {
    pieces: Vec<MicroBatch>,
    n_pairs: usize,
}

impl PreparedBatch {
    /// Asks for one step against its mean loss.
    pub fn learn(&self, model: &dyn Model, learner: &mut TrainState) -> Result<()> {
        learner.step(&self.pieces, |tape, piece| piece.loss(model, tape, self.n_pairs))
    }
}

/// What a lesson asks of one chunk.
#[derive(Debug)]
struct MicroBatch {
    input: Input,
    targets: Vec<f32>,
    /// Of its dropout.
    seed: u64,
}

impl MicroBatch {
    /// Its share of the mean loss of `n_pairs`.
    fn loss(&self, model: &dyn Model, tape: &mut Tape<'_>, n_pairs: usize) -> Result<Var> {
        let dropout = Dropout::new(model.dropout(), self.seed, Mode::Train)?;
        let logits = model.logits(tape, &self.input, dropout)?;
        Ok(tape.bce_with_logits(logits, &self.targets, n_pairs)?)
    }
}

/// The logits of all pairs of `tokens`, however they were made, each as if it were alone.
pub(crate) fn score_tokens(
    model: &dyn Model,
    tables: &FeatureTables,
    store: &Store,
    weights: &Weights,
    tokens: &PairTokens,
    queries: &[PairQuery],
) -> Result<Vec<f32>> {
    Past { model, tables: tables.clone(), store }.score(
        weights,
        tokens,
        PairBatch::new(queries).padded_alone(),
        Wanted::Logits,
    )
}

/// A model and what it looks back on.
#[derive(Debug)]
struct Past<'a> {
    model: &'a dyn Model,
    tables: FeatureTables,
    store: &'a Store,
}

/// What a model is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Logits,
    Sources,
}

impl Past<'_> {
    fn score(&self, weights: &Weights, tokens: &PairTokens, pairs: PairBatch<'_>, wanted: Wanted) -> Result<Vec<f32>> {
        let (device, queries) = (weights.device(), pairs.queries);
        let plan = self.plan(device.rows_to_score(), tokens, pairs);
        let scores = if device.is_gpu() {
            // All threads lay out what the card then reads.
            let ready = |chunk: &Chunk| staged(device, self.input(tokens, queries, chunk)?, false);
            let inputs: Vec<Input> = plan.par_iter().with_max_len(1).map(ready).collect::<Result<_>>()?;
            weights.evaluate(&inputs, |tape, input| self.forward(tape, input, wanted))?
        } else {
            weights.evaluate(&plan, |tape, chunk| self.forward(tape, &self.input(tokens, queries, chunk)?, wanted))?
        };
        Ok(scores.concat())
    }

    fn forward(&self, tape: &mut Tape<'_>, input: &Input, wanted: Wanted) -> Result<Vec<f32>> {
        if wanted == Wanted::Logits {
            let logits = self.model.logits(tape, input, Dropout::NONE)?;
            return Ok(tape.read(logits)?);
        }
        let nodes = self.model.nodes(tape, input, Dropout::NONE)?;
        if matches!(input, Input::Pairs(_)) {
            return Ok(tape.read(nodes)?); // A row for each.
        }
        let (rows, cols) = (tape.shape(nodes).rows(), tape.shape(nodes).cols());
        let beside = tape.reshape(nodes, rows / 2, 2 * cols)?; // [B, 2·d-out]
        let sources = tape.columns(beside, 0, cols)?;
        Ok(tape.read(sources)?)
    }

    fn input(&self, tokens: &PairTokens, queries: &[PairQuery], chunk: &Chunk) -> Result<Input> {
        let Chunk { pairs, padded_to, .. } = chunk.clone();
        let (tables, store) = (&self.tables, self.store);
        match self.model.layout() {
            Layout::Patches(layout) => {
                PatchCollator { layout, tables, tokens, pairs, padded_to }.run().map(Input::Patches)
            }
            Layout::Hops(layout) => {
                let has_second = self.model.encoding().second.is_some();
                let input = HopCollator { layout, tables, store, tokens, queries, pairs, has_second }.run()?;
                Ok(Input::Hops(Box::new(input)))
            }
            Layout::Pairs(layout) => {
                Ok(Input::Pairs(Box::new(GlobalInput::of(layout, tables, store, &queries[pairs])?)))
            }
        }
    }

    /// The input of all pairs with what `memory` knows of them, and what their events leave there.
    fn remembered(
        &self,
        tokens: &PairTokens,
        queries: &[PairQuery],
        memory: &mut Memory<'_>,
        events: &[EventId],
    ) -> Result<Input> {
        let whole = Chunk { index: 0, pairs: 0..tokens.n_pairs(), padded_to: None };
        let Input::Hops(mut input) = self.input(tokens, queries, &whole)? else { return Err(Error::MissingInput) };
        let mut recalled = memory.read(tokens, queries, input.second.is_some())?;
        if !events.is_empty() {
            recalled.update = Some(memory.consume(events)?);
        }
        input.memory = Some(recalled);
        Ok(Input::Hops(input))
    }

    /// Divides the pairs of `tokens` into chunks of at most so many rows, or one pair. The plan depends on the tokens
    /// alone.
    fn plan(&self, n_rows: usize, tokens: &PairTokens, pairs: PairBatch<'_>) -> Vec<Chunk> {
        let layout = self.model.layout();
        let (patch, slots, most_pairs) = match layout {
            Layout::Patches(layout) => (layout.patch, 0, MOST_PAIRS),
            Layout::Hops(layout) => (1, layout.slots, MOST_PAIRS),
            // An embedding of one pair depends on those of thousands.
            Layout::Pairs(_) => (1, 0, 1),
        };
        let has_second = self.model.encoding().second.is_some();
        let is_padded = layout.is_padded();
        let group = if is_padded { pairs.padding_group() } else { tokens.n_pairs() };
        let mut plan = Vec::new();
        for first in (0..tokens.n_pairs()).step_by(group.max(1)) {
            let in_group = first..tokens.n_pairs().min(first + group.max(1));
            let padded_to = is_padded.then(|| longest(tokens, in_group.clone(), patch));
            let of_side = |pair: usize, side: Side| {
                let drawn = tokens.drawn(pair, side);
                let starts = tokens.second_starts();
                // Less is done with a neighbour's neighbour than with a neighbour.
                let further = if has_second { (starts[drawn.end] - starts[drawn.start]) as usize / 8 } else { 0 };
                tokens.tokens(pair, side).len().div_ceil(patch).max(slots) + further
            };
            let n_patches = |pair: usize| {
                padded_to.map_or_else(
                    || of_side(pair, Side::Src) + of_side(pair, Side::Dst),
                    |[src, dst]: PaddedTo| src + dst,
                )
            };
            let mut start = in_group.start;
            while start < in_group.end {
                let (mut end, mut rows) = (start, 0);
                let room = n_rows.min(MOST_TOKENS / patch.max(1));
                let last = in_group.end.min(start + most_pairs);
                while end < last && (end == start || rows + n_patches(end) <= room) {
                    rows += n_patches(end);
                    end += 1;
                }
                plan.push(Chunk { index: plan.len() as u64, pairs: start..end, padded_to });
                start = end;
            }
        }
        plan
    }
}

/// `input`, where `device` reads it by itself.
fn staged(device: &Device, input: Input, to_learn: bool) -> Result<Input> {
    input.stage(device, to_learn)?;
    Ok(input)
}

/// What a card's kernels are certain to count: blocks of its grids.
const MOST_PAIRS: usize = 1 << 14;
const MOST_TOKENS: usize = 1 << 22;
