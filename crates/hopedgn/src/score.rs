//! The one way from pairs to scores, for training, evaluation and answers alike.

use std::ops::Range;

use ctdg::mite::{PairEncoder, PairQuery, PairTokens, Side};
use ctdg::random::Stream;
use ctdg::store::Store;
use hopedgn_tensor::chunks::{self, Chunks};
use hopedgn_tensor::{Dropout, Gradients, Mode, Parameters, Tape};
use rayon::prelude::*;

use crate::Result;
use crate::config::Padding;
use crate::encode::{Encode, FeatureTables, PaddedTo, PairInput, longest};
use crate::model::HopeDgn;

/// Scores pairs with the past that one store knows; keeps its buffers between batches.
#[derive(Debug)]
pub struct PairScorer<'a> {
    model: &'a HopeDgn,
    tables: FeatureTables<'a>,
    encoder: PairEncoder<'a>,
    tokens: PairTokens,
}

/// What a step of training changes.
#[derive(Debug)]
pub struct Learner<'a> {
    /// The weights, read only.
    pub parameters: &'a Parameters,
    /// Memory for summing gradients.
    pub chunks: &'a mut Chunks,
    /// Where the gradients are added.
    pub gradients: &'a mut Gradients,
}

/// Pairs that one thread runs at once.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Chunk {
    index: u64,
    pairs: Range<usize>,
    padded_to: Option<PaddedTo>,
}

impl<'a> PairScorer<'a> {
    /// Scores with `model` over the past in `store`.
    #[must_use]
    pub fn new(model: &'a HopeDgn, tables: FeatureTables<'a>, store: &'a Store) -> Self {
        let encoder = PairEncoder::new(store, model.config().encoding());
        Self { model, tables, encoder, tokens: PairTokens::default() }
    }

    /// The logit of each of `queries`, which do not see one another.
    ///
    /// Only [`Padding::Dyglib`] knows groups: every `group` consecutive queries are padded together.
    pub fn logits(&mut self, parameters: &Parameters, queries: &[PairQuery], group: usize) -> Result<Vec<f32>> {
        self.encoder.encode(queries, &mut self.tokens);
        let tokens = &self.tokens;
        score(self.model, self.tables, parameters, tokens, &plan(self.model, tokens, group))
    }

    /// All that comes before the model, for measuring: looks up the past of `queries` and lays out the input. The number
    /// of tokens.
    pub fn encode_only(&mut self, queries: &[PairQuery], group: usize) -> Result<usize> {
        self.encoder.encode(queries, &mut self.tokens);
        let (model, tables, tokens) = (self.model, self.tables, &self.tokens);
        let plan = plan(model, tokens, group);
        plan.par_iter().try_for_each(|chunk| input(model, tables, tokens, chunk).map(drop))?;
        Ok(tokens.n_tokens())
    }

    /// The mean loss of `queries` against `targets`; adds its gradients. Chunk `i` draws its dropout from
    /// `dropout.fork(i)`.
    pub fn learn(
        &mut self,
        learner: &mut Learner<'_>,
        queries: &[PairQuery],
        targets: &[f32],
        group: usize,
        dropout: &Stream,
    ) -> Result<f64> {
        self.encoder.encode(queries, &mut self.tokens);
        let (model, tables, tokens) = (self.model, self.tables, &self.tokens);
        let chunks = plan(model, tokens, group);
        let rate = model.config().dropout;
        let forward = |tape: &mut Tape<'_>, chunk: &Chunk| -> Result<_> {
            let input = input(model, tables, tokens, chunk)?;
            let dropout = Dropout::new(rate, dropout.fork(chunk.index).next_u64(), Mode::Train)?;
            let logits = model.logits(tape, &input, dropout)?;
            let loss = tape.bce_with_logits(logits, &targets[chunk.pairs.clone()], queries.len())?;
            Ok((loss, f64::from(tape.value(loss).values()[0])))
        };
        let losses = learner.chunks.run(learner.parameters, &chunks, learner.gradients, forward)?;
        Ok(losses.iter().sum())
    }
}

/// The logits of all pairs of `tokens`, however they were made, each as if it were alone.
pub(crate) fn score_tokens(
    model: &HopeDgn,
    tables: FeatureTables<'_>,
    parameters: &Parameters,
    tokens: &PairTokens,
) -> Result<Vec<f32>> {
    score(model, tables, parameters, tokens, &plan(model, tokens, 1))
}

fn score(
    model: &HopeDgn,
    tables: FeatureTables<'_>,
    parameters: &Parameters,
    tokens: &PairTokens,
    plan: &[Chunk],
) -> Result<Vec<f32>> {
    let forward = |tape: &mut Tape<'_>, chunk: &Chunk| -> Result<Vec<f32>> {
        let input = input(model, tables, tokens, chunk)?;
        let logits = model.logits(tape, &input, Dropout::NONE)?;
        Ok(tape.value(logits).values().to_vec())
    };
    Ok(chunks::evaluate(parameters, plan, forward)?.concat())
}

fn input(model: &HopeDgn, tables: FeatureTables<'_>, tokens: &PairTokens, chunk: &Chunk) -> Result<PairInput> {
    let Chunk { pairs, padded_to, .. } = chunk.clone();
    Encode { config: model.config(), tables, tokens, pairs, padded_to }.run()
}

/// Divides the pairs of `tokens` into chunks of about equal work. The plan depends on the tokens alone.
fn plan(model: &HopeDgn, tokens: &PairTokens, group: usize) -> Vec<Chunk> {
    let patch = model.config().patch;
    let is_padded = model.config().padding == Padding::Dyglib;
    let group = if is_padded { group } else { tokens.n_pairs() };
    let mut plan = Vec::new();
    for first in (0..tokens.n_pairs()).step_by(group.max(1)) {
        let in_group = first..tokens.n_pairs().min(first + group.max(1));
        let padded_to = is_padded.then(|| longest(tokens, in_group.clone(), patch));
        let n_patches = |pair: usize| match padded_to {
            Some([src, dst]) => src + dst,
            None => [Side::Src, Side::Dst].iter().map(|&side| tokens.tokens(pair, side).len().div_ceil(patch)).sum(),
        };
        let mut start = in_group.start;
        while start < in_group.end {
            let (mut end, mut rows) = (start, 0);
            while end < in_group.end && (end == start || rows + n_patches(end) <= chunks::ROWS) {
                rows += n_patches(end);
                end += 1;
            }
            plan.push(Chunk { index: plan.len() as u64, pairs: start..end, padded_to });
            start = end;
        }
    }
    plan
}
