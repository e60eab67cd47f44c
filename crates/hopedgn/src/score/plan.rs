//! How the pairs of a batch are divided into chunks, each computed in one forward pass.

use std::ops::Range;

use ctdg::mite::{PairTokens, Side};

use crate::collate::{Layout, PaddedTo, PairBatch, SIDES};

/// Limits of the grid dimensions of CUDA kernels.
const MAX_PAIRS: usize = 1 << 14;
const MAX_TOKENS: usize = 1 << 22;

/// A range of pairs computed in one forward pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) index: u64,
    /// Its pairs in the batch.
    pub(super) pairs: Range<usize>,
    /// Position of its first pair among those that are sampled: all, or those of the chunks that this process computes.
    pub(super) first_sampled: usize,
    pub(super) padded_to: Option<PaddedTo>,
}

impl Chunk {
    /// A batch of one chunk.
    pub(super) fn whole(n_pairs: usize) -> Self {
        Self::new(0, 0..n_pairs, None)
    }

    fn new(index: usize, pairs: Range<usize>, padded_to: Option<PaddedTo>) -> Self {
        Self { index: index as u64, first_sampled: pairs.start, pairs, padded_to }
    }

    /// Its pairs among those that are sampled.
    pub(super) fn sampled(&self) -> Range<usize> {
        self.first_sampled..self.first_sampled + self.pairs.len()
    }
}

/// How much is sampled of the sides of each pair, which is all that a plan depends on.
#[derive(Debug)]
pub(super) struct PairLengths {
    /// Tokens.
    tokens: Vec<[usize; 2]>,
    /// Second-hop neighbours; empty of a model without a second hop.
    second_hop: Vec<[usize; 2]>,
}

impl PairLengths {
    /// Of sampled pairs.
    pub(super) fn of(tokens: &PairTokens, has_second: bool) -> Self {
        let of_second = |pair: usize, side: Side| {
            let (drawn, starts) = (tokens.event_tokens(pair, side), tokens.second_starts());
            (starts[drawn.end] - starts[drawn.start]) as usize
        };
        let pairs = 0..tokens.n_pairs();
        let second_hop = if has_second { pairs.clone() } else { 0..0 };
        Self {
            tokens: pairs.map(|pair| SIDES.map(|side| tokens.tokens(pair, side).len())).collect(),
            second_hop: second_hop.map(|pair| SIDES.map(|side| of_second(pair, side))).collect(),
        }
    }

    /// Of pairs without a second hop.
    pub(super) fn of_one_hop(tokens: Vec<[usize; 2]>) -> Self {
        Self { tokens, second_hop: Vec::new() }
    }

    /// The longest sides of some pairs, in patches of `patch` tokens.
    fn longest(&self, pairs: Range<usize>, patch: usize) -> PaddedTo {
        let of_side = |side: usize| self.tokens[pairs.clone()].iter().map(move |pair| pair[side].div_ceil(patch));
        [0, 1].map(|side| of_side(side).max().unwrap_or(0))
    }

    /// Rows of one pair in patches of `patch` tokens, at least `slots` of each side.
    fn rows(&self, pair: usize, patch: usize, slots: usize) -> usize {
        // A second-hop neighbour costs about an eighth of a first-hop one.
        let of_second = |side: usize| self.second_hop.get(pair).map_or(0, |pair| pair[side] / 8);
        [0, 1].iter().map(|&side| self.tokens[pair][side].div_ceil(patch).max(slots) + of_second(side)).sum()
    }
}

/// Divides `pairs` into chunks of at most `n_rows` rows, or one pair, and so that there is one for each of `n_shares`. Without lengths
/// every pair is one row. The plan depends on the lengths alone.
pub(super) fn plan(
    layout: Layout,
    (n_rows, n_shares): (usize, usize),
    lengths: Option<&PairLengths>,
    pairs: PairBatch<'_>,
) -> Vec<Chunk> {
    let n_pairs = pairs.queries.len();
    let of_share = n_pairs.div_ceil(n_shares).max(1);
    let Some(lengths) = lengths else {
        let n_rows = n_rows.min(of_share).max(1);
        let chunk = |(index, start): (usize, usize)| Chunk::new(index, start..n_pairs.min(start + n_rows), None);
        return (0..n_pairs).step_by(n_rows).enumerate().map(chunk).collect();
    };
    let (patch, slots, max_pairs) = match layout {
        Layout::Patches(layout) => (layout.patch, 0, MAX_PAIRS),
        Layout::Hops(layout) => (1, layout.slots, MAX_PAIRS),
        // An embedding of one pair depends on those of thousands.
        Layout::Pairs(_) | Layout::Statistics => (1, 0, 1),
    };
    let is_padded = layout.is_padded();
    let group = if is_padded { pairs.padding_group() } else { n_pairs }.max(1);
    let room = n_rows.min(MAX_TOKENS / patch.max(1));
    let mut plan = Vec::new();
    for first in (0..n_pairs).step_by(group) {
        let in_group = first..n_pairs.min(first + group);
        let padded_to = is_padded.then(|| lengths.longest(in_group.clone(), patch));
        let n_patches =
            |pair: usize| padded_to.map_or_else(|| lengths.rows(pair, patch, slots), |[src, dst]| src + dst);
        let mut start = in_group.start;
        while start < in_group.end {
            let (mut end, mut rows) = (start, 0);
            let last = in_group.end.min(start + max_pairs.min(of_share));
            while end < last && (end == start || rows + n_patches(end) <= room) {
                rows += n_patches(end);
                end += 1;
            }
            plan.push(Chunk::new(plan.len(), start..end, padded_to));
            start = end;
        }
    }
    plan
}
