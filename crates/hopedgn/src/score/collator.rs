//! From sampled tokens to the input of a model, in chunks that are computed in one forward pass.

use std::ops::Range;

use ctdg::event::EventId;
use ctdg::mite::{PairQuery, PairTokens, Side};
use ctdg::store::Store;
use hopedgn_tensor::{Device, Dropout, PendingValues, Tape, Var, Weights};
use rayon::prelude::*;

use super::Output;
use crate::collate::{
    FeatureTables, GlobalInput, HopCollator, Input, Layout, PaddedTo, PairBatch, PastInput, PatchCollator, WalkRows,
    longest, rows_of, statistics,
};
use crate::memory::Memory;
use crate::model::Model;
use crate::{Error, Result};

/// A range of pairs computed in one forward pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) index: u64,
    pub(super) pairs: Range<usize>,
    padded_to: Option<PaddedTo>,
}

/// Builds the input of a model from sampled tokens.
#[derive(Debug)]
pub(super) struct Collator<'a> {
    pub(super) model: &'a dyn Model,
    pub(super) tables: FeatureTables,
    pub(super) store: &'a Store,
    /// For each pair, events that count as not in the store; empty if there are none.
    pub(super) left_out: &'a [&'a [EventId]],
    /// The walks of the pairs, of a model that reads them.
    pub(super) walks: Option<WalkRows>,
    /// Chunks of a batch at least, so that each of several GPUs has one.
    pub(super) n_shares: usize,
}

/// The output of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Score(Output),
    /// Both outputs of each pair, `[B, 2]`.
    BothScores,
    Sources,
}

impl Collator<'_> {
    pub(super) fn score(
        &self,
        weights: &Weights,
        tokens: &PairTokens,
        pairs: PairBatch<'_>,
        target: Target,
    ) -> Result<Vec<f32>> {
        let device = weights.device();
        if device.is_gpu() {
            // All host threads collate; the GPU reads the results.
            let inputs = self.inputs(device, tokens, pairs)?;
            return PreparedScores { inputs }.submit(self.model, weights, target)?.wait();
        }
        let plan = self.plan(device.eval_chunk_rows(), tokens, pairs);
        let forward = |tape: &mut Tape<'_>, chunk: &Chunk| -> Result<Vec<f32>> {
            self.forward(tape, &self.input(tokens, pairs.queries, chunk)?, target)
        };
        Ok(weights.evaluate(&plan, forward)?.concat())
    }

    pub(super) fn forward(&self, tape: &mut Tape<'_>, input: &Input, target: Target) -> Result<Vec<f32>> {
        let output = output(self.model, tape, input, target)?;
        Ok(tape.read(output)?)
    }

    /// The staged input of each chunk of `tokens`.
    pub(super) fn inputs(&self, device: &Device, tokens: &PairTokens, pairs: PairBatch<'_>) -> Result<Vec<Input>> {
        let plan = self.plan(device.eval_chunk_rows(), tokens, pairs);
        let collate = |chunk: &Chunk| staged(device, self.input(tokens, pairs.queries, chunk)?, false);
        plan.par_iter().with_max_len(1).map(collate).collect()
    }

    pub(super) fn input(&self, tokens: &PairTokens, queries: &[PairQuery], chunk: &Chunk) -> Result<Input> {
        let Chunk { pairs, padded_to, .. } = chunk.clone();
        let (tables, store) = (&self.tables, self.store);
        let left_out = if self.left_out.is_empty() { &[] } else { &self.left_out[pairs.clone()] };
        let statistics = || statistics(store, &queries[pairs.clone()], left_out, self.model.reads_triads());
        let statistics = self.model.reads_statistics().then(statistics).transpose()?;
        let rows = if self.model.layout() == Layout::Statistics { 0..0 } else { rows_of(tokens, &pairs) };
        let walks = self.walks.as_ref().map(|walks| walks.input(pairs.clone(), rows)).transpose()?;
        let past = match self.model.layout() {
            Layout::Patches(layout) => {
                let left_out = self.left_out;
                let collator = PatchCollator { layout, tables, store, tokens, queries, left_out, pairs, padded_to };
                PastInput::Patches(collator.run()?)
            }
            Layout::Hops(layout) => {
                let has_second = self.model.encoding().second.is_some();
                let left_out = self.left_out;
                let input =
                    HopCollator { layout, tables, store, tokens, queries, left_out, pairs, has_second }.run()?;
                PastInput::Hops(Box::new(input))
            }
            Layout::Pairs(layout) => {
                PastInput::Pairs(Box::new(GlobalInput::of(layout, tables, store, &queries[pairs])?))
            }
            Layout::Statistics => PastInput::Nothing,
        };
        Ok(Input { past, statistics, walks })
    }

    /// The input of all pairs with the memory of their nodes, and the update of the memory by `events`.
    pub(super) fn input_with_memory(
        &self,
        tokens: &PairTokens,
        queries: &[PairQuery],
        memory: &mut Memory,
        events: &[EventId],
    ) -> Result<Input> {
        let whole = Chunk { index: 0, pairs: 0..tokens.n_pairs(), padded_to: None };
        let mut input = self.input(tokens, queries, &whole)?;
        let PastInput::Hops(hops) = &mut input.past else { return Err(Error::MissingInput) };
        let mut read = memory.read(tokens, queries, hops.second.is_some())?;
        if !events.is_empty() {
            read.update = Some(memory.consume(events)?);
        }
        hops.memory = Some(read);
        Ok(input)
    }

    /// Divides the pairs of `tokens` into chunks of at most `n_rows` rows, or one pair. The plan depends on the tokens alone.
    pub(super) fn plan(&self, n_rows: usize, tokens: &PairTokens, pairs: PairBatch<'_>) -> Vec<Chunk> {
        let layout = self.model.layout();
        let of_share = pairs.queries.len().div_ceil(self.n_shares).max(1);
        if layout == Layout::Statistics {
            let (n, n_rows) = (pairs.queries.len(), n_rows.min(of_share));
            let chunk = |(index, start): (usize, usize)| Chunk {
                index: index as u64,
                pairs: start..n.min(start + n_rows),
                padded_to: None,
            };
            return (0..n).step_by(n_rows.max(1)).enumerate().map(chunk).collect();
        }
        let (patch, slots, max_pairs) = match layout {
            Layout::Patches(layout) => (layout.patch, 0, MAX_PAIRS),
            Layout::Hops(layout) => (1, layout.slots, MAX_PAIRS),
            // An embedding of one pair depends on those of thousands.
            Layout::Pairs(_) | Layout::Statistics => (1, 0, 1),
        };
        let has_second = self.model.encoding().second.is_some();
        let is_padded = layout.is_padded();
        let group = if is_padded { pairs.padding_group() } else { tokens.n_pairs() };
        let mut plan = Vec::new();
        for first in (0..tokens.n_pairs()).step_by(group.max(1)) {
            let in_group = first..tokens.n_pairs().min(first + group.max(1));
            let padded_to = is_padded.then(|| longest(tokens, in_group.clone(), patch));
            let of_side = |pair: usize, side: Side| {
                let drawn = tokens.event_tokens(pair, side);
                let starts = tokens.second_starts();
                // A second-hop neighbour costs about an eighth of a first-hop one.
                let second_hop = if has_second { (starts[drawn.end] - starts[drawn.start]) as usize / 8 } else { 0 };
                tokens.tokens(pair, side).len().div_ceil(patch).max(slots) + second_hop
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
                let room = n_rows.min(MAX_TOKENS / patch.max(1));
                let last = in_group.end.min(start + max_pairs.min(of_share));
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

/// What a model says of the pairs of `input`.
fn output(model: &dyn Model, tape: &mut Tape<'_>, input: &Input, target: Target) -> Result<Var> {
    if target != Target::Sources {
        let partner = model.logits(tape, input, Dropout::NONE)?; // [B, 1]
        let mut score = partner;
        if target != Target::Score(Output::Partner)
            && let Some(activity) = model.activity(tape, input)?
        {
            score = tape.add(partner, activity)?;
        }
        if target == Target::BothScores {
            score = tape.concat(&[partner, score])?; // [B, 2]
        }
        return Ok(score);
    }
    let nodes = model.nodes(tape, input, Dropout::NONE)?;
    if matches!(input.past, PastInput::Pairs(_)) {
        return Ok(nodes); // [B, d]
    }
    let (rows, cols) = (tape.shape(nodes).rows(), tape.shape(nodes).cols());
    let pairs = tape.reshape(nodes, rows / 2, 2 * cols)?; // [B, 2d]
    Ok(tape.columns(pairs, 0, cols)?) // [B, d]
}

/// Collated pairs, to be scored later.
#[derive(Debug)]
pub(crate) struct PreparedScores {
    pub(super) inputs: Vec<Input>,
}

impl PreparedScores {
    /// Submits their forward passes; a GPU may still be computing when this returns.
    pub(super) fn submit(&self, model: &dyn Model, weights: &Weights, target: Target) -> Result<PendingScores> {
        let forward = |tape: &mut Tape<'_>, input: &Input| -> Result<PendingValues> {
            let output = output(model, tape, input, target)?;
            Ok(tape.read_later(output)?)
        };
        Ok(PendingScores(weights.evaluate(&self.inputs, forward)?))
    }
}

/// Scores that a GPU may still be computing.
#[derive(Debug)]
pub(crate) struct PendingScores(Vec<PendingValues>);

impl PendingScores {
    /// Waits for the scores, in the order of the pairs.
    pub(crate) fn wait(self) -> Result<Vec<f32>> {
        let mut scores = Vec::new();
        for values in self.0 {
            scores.extend(values.wait()?);
        }
        Ok(scores)
    }
}

/// `input`, copied to pinned memory if `device` is a GPU.
pub(super) fn staged(device: &Device, input: Input, for_training: bool) -> Result<Input> {
    input.stage(device, for_training)?;
    Ok(input)
}

/// Limits of the grid dimensions of CUDA kernels.
const MAX_PAIRS: usize = 1 << 14;
const MAX_TOKENS: usize = 1 << 22;
