//! From sampled tokens to the input of a model, in chunks that are computed in one forward pass.

use ctdg::event::EventId;
use ctdg::mite::{PairQuery, PairTokens};
use ctdg::store::Store;
use hopedgn_tensor::{Device, Dropout, PendingValues, Tape, Var, Weights};
use rayon::prelude::*;

use super::Output;
use super::order::SourceOrder;
use super::plan::{Chunk, PairLengths, plan};
use crate::collate::{
    FeatureTables, GlobalInput, HopCollator, Input, Layout, PairBatch, PastInput, PatchCollator, WalkRows, rows_of,
    statistics,
};
use crate::memory::Memory;
use crate::model::Model;
use crate::{Error, Result};

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
    /// In which order `queries` are scored.
    pub(super) fn order(&self, queries: &[PairQuery]) -> SourceOrder {
        // Events are left out of pairs by their places.
        if self.left_out.is_empty() { SourceOrder::of(self.model.layout(), queries) } else { SourceOrder::default() }
    }

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
            return PreparedScores { inputs, order: SourceOrder::default() }
                .submit(self.model, weights, target)?
                .wait();
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

    /// The input of `chunk`; `queries` are those of `tokens`.
    pub(super) fn input(&self, tokens: &PairTokens, queries: &[PairQuery], chunk: &Chunk) -> Result<Input> {
        let (pairs, store) = (chunk.sampled(), self.store);
        let left_out = if self.left_out.is_empty() { &[] } else { &self.left_out[pairs.clone()] };
        let statistics = || statistics(store, &queries[pairs.clone()], left_out, self.model.reads_triads());
        let statistics = self.model.reads_statistics().then(statistics).transpose()?;
        let rows = if self.model.layout() == Layout::Statistics { 0..0 } else { rows_of(tokens, &pairs) };
        let walks = self.walks.as_ref().map(|walks| walks.input(pairs, rows)).transpose()?;
        Ok(Input { past: self.past(tokens, queries, chunk)?, statistics, walks })
    }

    /// The same without what a head reads.
    fn past(&self, tokens: &PairTokens, queries: &[PairQuery], chunk: &Chunk) -> Result<PastInput> {
        let (pairs, padded_to) = (chunk.sampled(), chunk.padded_to);
        let (tables, store, left_out) = (&self.tables, self.store, self.left_out);
        Ok(match self.model.layout() {
            Layout::Patches(layout) => {
                let collator = PatchCollator { layout, tables, store, tokens, queries, left_out, pairs, padded_to };
                PastInput::Patches(collator.run()?)
            }
            Layout::Hops(layout) => {
                let has_second = self.model.encoding().second.is_some();
                let input =
                    HopCollator { layout, tables, store, tokens, queries, left_out, pairs, has_second }.run()?;
                PastInput::Hops(Box::new(input))
            }
            Layout::Pairs(layout) => {
                PastInput::Pairs(Box::new(GlobalInput::of(layout, tables, store, &queries[pairs])?))
            }
            Layout::Statistics => PastInput::Nothing,
        })
    }

    /// The input of all pairs, to which a memory can be added.
    pub(super) fn whole_input(&self, tokens: &PairTokens, queries: &[PairQuery]) -> Result<Input> {
        self.input(tokens, queries, &Chunk::whole(tokens.n_pairs()))
    }

    /// The same without what heads read.
    pub(super) fn whole_past(&self, tokens: &PairTokens, queries: &[PairQuery]) -> Result<Input> {
        let past = self.past(tokens, queries, &Chunk::whole(tokens.n_pairs()))?;
        Ok(Input { past, statistics: None, walks: None })
    }

    /// Divides all of `tokens`, those of `pairs`, into chunks.
    pub(super) fn plan(&self, n_rows: usize, tokens: &PairTokens, pairs: PairBatch<'_>) -> Vec<Chunk> {
        let lengths = match self.model.layout() {
            Layout::Statistics => None,
            _ => Some(PairLengths::of(tokens, self.model.encoding().second.is_some())),
        };
        self.plan_of(n_rows, lengths.as_ref(), pairs)
    }

    /// The same of pairs that need not be sampled; without lengths of a model that reads no tokens.
    pub(super) fn plan_of(&self, n_rows: usize, lengths: Option<&PairLengths>, pairs: PairBatch<'_>) -> Vec<Chunk> {
        plan(self.model.layout(), (n_rows, self.n_shares), lengths, pairs)
    }
}

/// `input`, that of `tokens` and `queries`, with the memory of its nodes, and the update of the memory by `events`.
pub(super) fn with_memory(
    mut input: Input,
    tokens: &PairTokens,
    queries: &[PairQuery],
    memory: &mut Memory,
    events: &[EventId],
) -> Result<Input> {
    let PastInput::Hops(hops) = &mut input.past else { return Err(Error::MissingInput) };
    let mut read = memory.read(tokens, queries, hops.of_pairs.as_ref(), hops.second.is_some())?;
    if !events.is_empty() {
        read.update = Some(memory.consume(events)?);
    }
    hops.memory = Some(read);
    Ok(input)
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
    pub(super) order: SourceOrder,
}

impl PreparedScores {
    /// Submits their forward passes; a GPU may still be computing when this returns.
    pub(super) fn submit(self, model: &dyn Model, weights: &Weights, target: Target) -> Result<PendingScores> {
        let forward = |tape: &mut Tape<'_>, input: &Input| -> Result<PendingValues> {
            let output = output(model, tape, input, target)?;
            Ok(tape.read_later(output)?)
        };
        Ok(PendingScores { values: weights.evaluate(&self.inputs, forward)?, order: self.order })
    }
}

/// Scores that a GPU may still be computing.
#[derive(Debug)]
pub(crate) struct PendingScores {
    values: Vec<PendingValues>,
    order: SourceOrder,
}

impl PendingScores {
    /// Waits for the scores, in the order of the pairs.
    pub(crate) fn wait(self) -> Result<Vec<f32>> {
        let mut scores = Vec::new();
        for values in self.values {
            scores.extend(values.wait()?);
        }
        Ok(self.order.undo(scores))
    }
}

/// `input`, copied to pinned memory if `device` is a GPU.
pub(super) fn staged(device: &Device, input: Input, for_training: bool) -> Result<Input> {
    input.stage(device, for_training)?;
    Ok(input)
}
