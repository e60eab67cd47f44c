//! The one way from pairs to scores, for training, evaluation and answers alike.

use std::ops::Range;

use ctdg::mite::{PairEncoder, PairQuery, PairTokens, Side};
use ctdg::random::Stream;
use ctdg::store::Store;
use hopedgn_tensor::{Device, Dropout, Gradients, Learner, Mode, Tape, Var, Weights};
use rayon::prelude::*;

use crate::Result;
use crate::config::Padding;
use crate::encode::{Encode, FeatureTables, PaddedTo, PairInput, longest};
use crate::model::HopeDgn;

/// Scores pairs with the past that one store knows; keeps its buffers between batches.
#[derive(Debug)]
pub struct PairScorer<'a> {
    model: &'a HopeDgn,
    tables: FeatureTables,
    encoder: PairEncoder<'a>,
    tokens: PairTokens,
}

/// Pairs to learn from.
#[derive(Debug, Clone, Copy)]
pub struct Lesson<'a> {
    /// The pairs, which do not see one another.
    pub queries: &'a [PairQuery],
    /// 1 for each that happened, 0 for the others.
    pub targets: &'a [f32],
    /// Only [`Padding::Dyglib`] knows groups: so many consecutive queries are padded together.
    pub group: usize,
    /// Chunk `i` draws its dropout from fork `i`.
    pub dropout: &'a Stream,
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
    pub fn new(model: &'a HopeDgn, tables: &FeatureTables, store: &'a Store) -> Self {
        let encoder = PairEncoder::new(store, model.config().encoding());
        Self { model, tables: tables.clone(), encoder, tokens: PairTokens::default() }
    }

    /// The logit of each of `queries`, which do not see one another.
    ///
    /// Only [`Padding::Dyglib`] knows groups: every `group` consecutive queries are padded together.
    pub fn logits(&mut self, weights: &Weights, queries: &[PairQuery], group: usize) -> Result<Vec<f32>> {
        self.encoder.encode(queries, &mut self.tokens);
        let tokens = &self.tokens;
        score(self.model, &self.tables, weights, tokens, group)
    }

    /// All that comes before the model, for measuring: looks up the past of `queries` and lays out the input. The number
    /// of tokens.
    pub fn encode_only(&mut self, queries: &[PairQuery], group: usize) -> Result<usize> {
        self.encoder.encode(queries, &mut self.tokens);
        let (model, tables, tokens) = (self.model, &self.tables, &self.tokens);
        let plan = plan(model, Device::cpu().rows_to_learn(), tokens, group);
        plan.par_iter().try_for_each(|chunk| input(model, tables, tokens, chunk).map(drop))?;
        Ok(tokens.n_tokens())
    }

    /// Asks for one step against the mean loss of a lesson.
    pub fn learn(&mut self, learner: &mut Learner, lesson: &Lesson<'_>) -> Result<()> {
        let chunks = self.chunks(learner.weights().device(), lesson);
        learner.step(&chunks, |tape, chunk| self.piece(chunk, lesson)?.loss(self.model, tape, lesson.queries.len()))
    }

    /// The mean loss of a lesson and its gradients, without a step.
    pub fn differentiate(&mut self, learner: &mut Learner, lesson: &Lesson<'_>) -> Result<(f64, Gradients)> {
        let chunks = self.chunks(learner.weights().device(), lesson);
        let n_pairs = lesson.queries.len();
        learner.differentiate(&chunks, |tape, chunk| self.piece(chunk, lesson)?.loss(self.model, tape, n_pairs))
    }

    /// All of a lesson that needs no weights, to be learned from later on `device`.
    pub fn prepare(&mut self, device: &Device, lesson: &Lesson<'_>) -> Result<Prepared> {
        let chunks = self.chunks(device, lesson);
        let mut pieces = Vec::with_capacity(chunks.len());
        for chunk in &chunks {
            let piece = self.piece(chunk, lesson)?;
            pieces.push(Piece { input: staged(device, piece.input)?, ..piece });
        }
        Ok(Prepared { pieces, n_pairs: lesson.queries.len() })
    }

    fn chunks(&mut self, device: &Device, lesson: &Lesson<'_>) -> Vec<Chunk> {
        self.encoder.encode(lesson.queries, &mut self.tokens);
        plan(self.model, device.rows_to_learn(), &self.tokens, lesson.group)
    }

    fn piece(&self, chunk: &Chunk, lesson: &Lesson<'_>) -> Result<Piece> {
        Ok(Piece {
            input: input(self.model, &self.tables, &self.tokens, chunk)?,
            targets: lesson.targets[chunk.pairs.clone()].to_vec(),
            seed: lesson.dropout.fork(chunk.index).next_u64(),
        })
    }
}

/// A lesson with its past looked up and laid out.
#[derive(Debug)]
pub struct Prepared {
    pieces: Vec<Piece>,
    n_pairs: usize,
}

impl Prepared {
    /// Asks for one step against its mean loss.
    pub fn learn(&self, model: &HopeDgn, learner: &mut Learner) -> Result<()> {
        learner.step(&self.pieces, |tape, piece| piece.loss(model, tape, self.n_pairs))
    }
}

/// What a lesson asks of one chunk.
#[derive(Debug)]
struct Piece {
    input: PairInput,
    targets: Vec<f32>,
    /// Of its dropout.
    seed: u64,
}

impl Piece {
    /// Its share of the mean loss of `n_pairs`.
    fn loss(&self, model: &HopeDgn, tape: &mut Tape<'_>, n_pairs: usize) -> Result<Var> {
        let dropout = Dropout::new(model.config().dropout, self.seed, Mode::Train)?;
        let logits = model.logits(tape, &self.input, dropout)?;
        Ok(tape.bce_with_logits(logits, &self.targets, n_pairs)?)
    }
}

/// The logits of all pairs of `tokens`, however they were made, each as if it were alone.
pub(crate) fn score_tokens(
    model: &HopeDgn,
    tables: &FeatureTables,
    weights: &Weights,
    tokens: &PairTokens,
) -> Result<Vec<f32>> {
    score(model, tables, weights, tokens, 1)
}

fn score(
    model: &HopeDgn,
    tables: &FeatureTables,
    weights: &Weights,
    tokens: &PairTokens,
    group: usize,
) -> Result<Vec<f32>> {
    let device = weights.device();
    let plan = plan(model, device.rows_to_score(), tokens, group);
    let forward = |tape: &mut Tape<'_>, input: &PairInput| -> Result<Vec<f32>> {
        let logits = model.logits(tape, input, Dropout::NONE)?;
        Ok(tape.read(logits)?)
    };
    let scores = if device.is_gpu() {
        // All threads lay out what the card then reads.
        let ready = |chunk: &Chunk| staged(device, input(model, tables, tokens, chunk)?);
        let inputs: Vec<PairInput> = plan.par_iter().with_max_len(1).map(ready).collect::<Result<_>>()?;
        weights.evaluate(&inputs, forward)?
    } else {
        weights.evaluate(&plan, |tape, chunk| forward(tape, &input(model, tables, tokens, chunk)?))?
    };
    Ok(scores.concat())
}

/// `input`, where `device` reads it by itself.
fn staged(device: &Device, input: PairInput) -> Result<PairInput> {
    for tensor in [Some(&input.ages), input.mite.as_ref()].into_iter().flatten() {
        device.stage(tensor)?;
    }
    Ok(input)
}

fn input(model: &HopeDgn, tables: &FeatureTables, tokens: &PairTokens, chunk: &Chunk) -> Result<PairInput> {
    let Chunk { pairs, padded_to, .. } = chunk.clone();
    Encode { config: model.config(), tables, tokens, pairs, padded_to }.run()
}

/// What a card's kernels are certain to count: blocks of its grids.
const MOST_PAIRS: usize = 1 << 14;
const MOST_TOKENS: usize = 1 << 22;

/// Divides the pairs of `tokens` into chunks of at most so many rows, or one pair. The plan depends on the tokens alone.
fn plan(model: &HopeDgn, n_rows: usize, tokens: &PairTokens, group: usize) -> Vec<Chunk> {
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
            let room = n_rows.min(MOST_TOKENS / patch.max(1));
            let last = in_group.end.min(start + MOST_PAIRS);
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
