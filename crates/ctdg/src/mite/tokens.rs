//! The tokens of a batch of pairs.

use std::ops::Range;

use super::{Side, narrow};
use crate::event::{EventId, NodeId};

/// The row of a node in a second hop that has no row in its pair.
pub const NO_ROW: u32 = u32::MAX;

/// Tokens of many pairs, ragged. Made by [`PairEncoder`](super::PairEncoder); reused between batches.
///
/// Shapes: `B` pairs, `T` tokens of all sides, `R` rows (distinct nodes within a pair), `S` events of the second hop.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PairTokens {
    /// `[2B + 1]`: where the tokens of each side start; sides in the order source, destination, next pair's source, … .
    pub(super) sides: Vec<u32>,
    /// `[T]`
    pub(super) nodes: Vec<NodeId>,
    /// `[T]`, 0 for the node itself.
    pub(super) ages: Vec<f32>,
    /// `[T − 2B]`: a side's first token is the node itself and has no event.
    pub(super) events: Vec<EventId>,
    /// `[T]`
    pub(super) rows: Vec<u32>,
    /// `[B + 1]`: where the rows of each pair start.
    pub(super) pair_rows: Vec<u32>,
    /// `[R, 2]`
    pub(super) counts: Vec<[u32; 2]>,
    /// `[2R + 1]`: where the intervals of each row and side start.
    pub(super) row_starts: Vec<u32>,
    /// Intervals of all rows.
    pub(super) intervals: Vec<f32>,
    /// `[T − 2B + 1]`: where the second hop of each token but the roots starts; a single 0 without a second hop.
    pub(super) second_starts: Vec<u32>,
    /// `[S]`, and so are the next three.
    pub(super) second_nodes: Vec<NodeId>,
    pub(super) second_ages: Vec<f32>,
    pub(super) second_events: Vec<EventId>,
    pub(super) second_rows: Vec<u32>,
}

impl PairTokens {
    /// Number of pairs.
    #[must_use]
    pub fn n_pairs(&self) -> usize {
        self.pair_rows.len().saturating_sub(1)
    }

    /// Number of tokens.
    #[must_use]
    pub fn n_tokens(&self) -> usize {
        self.nodes.len()
    }

    /// Number of rows.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        self.counts.len()
    }

    /// Where the tokens of one side of pair `pair` lie in [`PairTokens::nodes`] and its like.
    ///
    /// # Panics
    /// When there is no such pair.
    #[must_use]
    pub fn tokens(&self, pair: usize, side: Side) -> Range<usize> {
        let index = 2 * pair + side as usize;
        self.sides[index] as usize..self.sides[index + 1] as usize
    }

    /// Where the rows of pair `pair` lie.
    ///
    /// # Panics
    /// When there is no such pair.
    #[must_use]
    pub fn rows_of_pair(&self, pair: usize) -> Range<usize> {
        self.pair_rows[pair] as usize..self.pair_rows[pair + 1] as usize
    }

    /// The node of each token.
    #[must_use]
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// Query time minus the time of each token's event; 0 for the node itself.
    #[must_use]
    pub fn ages(&self) -> &[f32] {
        &self.ages
    }

    /// The MITE row of each token.
    #[must_use]
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// The events of a side's tokens from the second on; the first is the node itself.
    ///
    /// # Panics
    /// When there is no such pair.
    #[must_use]
    pub fn events(&self, pair: usize, side: Side) -> &[EventId] {
        &self.events[self.drawn(pair, side)]
    }

    /// Which of all tokens but the roots, counted through the batch, stand on one side of pair `pair`: the numbers that
    /// [`PairTokens::second`] takes. Token `i` of them is [`PairTokens::tokens`]' `i + 1`.
    ///
    /// # Panics
    /// When there is no such pair.
    #[must_use]
    pub fn drawn(&self, pair: usize, side: Side) -> Range<usize> {
        let tokens = self.tokens(pair, side);
        let earlier_roots = 2 * pair + side as usize;
        tokens.start - earlier_roots..tokens.end - earlier_roots - 1
    }

    /// Where the second hop of a token lies in [`PairTokens::second_nodes`] and its like, oldest event first; the tokens
    /// are numbered without the roots, see [`PairTokens::drawn`].
    ///
    /// # Panics
    /// When there is no such token, or no second hop at all.
    #[must_use]
    pub fn second(&self, token: usize) -> Range<usize> {
        self.second_starts[token] as usize..self.second_starts[token + 1] as usize
    }

    /// `[T − 2B + 1]`: where the second hop of each token but the roots starts, one more at the end; a single 0 where the
    /// encoding has no second hop.
    #[must_use]
    pub fn second_starts(&self) -> &[u32] {
        &self.second_starts
    }

    /// `[S]`: whom the token's node met.
    #[must_use]
    pub fn second_nodes(&self) -> &[NodeId] {
        &self.second_nodes
    }

    /// `[S]`: how long before the token's event, or before the query.
    #[must_use]
    pub fn second_ages(&self) -> &[f32] {
        &self.second_ages
    }

    /// `[S]`: in which event.
    #[must_use]
    pub fn second_events(&self) -> &[EventId] {
        &self.second_events
    }

    /// `[S]`: the MITE row that the node has in its pair, or [`NO_ROW`]. With [`Truncated`](super::Scope::Truncated) the
    /// nodes of tokens have one; with [`Full`](super::Scope::Full) all that ever met a side, so that a pair may have more
    /// rows than its tokens need.
    #[must_use]
    pub fn second_rows(&self) -> &[u32] {
        &self.second_rows
    }

    /// Intervals at which the node of `row` met that side of its pair, newest first.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    pub fn intervals(&self, row: usize, side: Side) -> &[f32] {
        let index = 2 * row + side as usize;
        &self.intervals[self.row_starts[index] as usize..self.row_starts[index + 1] as usize]
    }

    /// The intervals of all `rows`, one list behind another: for each row those with the source, then those with the
    /// destination. First where each list begins and, behind the last, where it ends, counted from a common start that
    /// need not be 0.
    ///
    /// # Panics
    /// When there are no such rows.
    #[must_use]
    pub fn lists(&self, rows: Range<usize>) -> (&[u32], &[f32]) {
        if rows.is_empty() {
            return (&[0], &[]);
        }
        let starts = &self.row_starts[2 * rows.start..=2 * rows.end];
        let ends = [starts[0], starts[starts.len() - 1]].map(|at| at as usize);
        (starts, &self.intervals[ends[0]..ends[1]])
    }

    /// NCOE: how often the node of `row` stands among the tokens of the source and of the destination, the node itself
    /// included. With [`Full`](super::Scope::Full), among all their meetings instead.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    pub fn counts(&self, row: usize) -> [u32; 2] {
        self.counts[row]
    }

    /// Forgets all pairs but keeps the memory.
    pub fn clear(&mut self) {
        let Self { sides, nodes, ages, events, rows, pair_rows, counts, row_starts, intervals, .. } = self;
        for starts in [sides, pair_rows, row_starts, &mut self.second_starts] {
            starts.clear();
            starts.push(0);
        }
        rows.clear();
        nodes.clear();
        ages.clear();
        events.clear();
        counts.clear();
        intervals.clear();
        self.second_nodes.clear();
        self.second_ages.clear();
        self.second_events.clear();
        self.second_rows.clear();
    }

    /// Adds the pairs of `other` behind these.
    pub(super) fn append(&mut self, other: &Self) {
        fn shifted(into: &mut Vec<u32>, starts: &[u32], by: usize) {
            let by = narrow(by);
            into.extend(starts[1..].iter().map(|start| start + by));
        }
        let (n_tokens, n_rows, n_intervals) = (self.n_tokens(), self.n_rows(), self.intervals.len());
        shifted(&mut self.sides, &other.sides, n_tokens);
        shifted(&mut self.pair_rows, &other.pair_rows, n_rows);
        shifted(&mut self.row_starts, &other.row_starts, n_intervals);
        shifted(&mut self.second_starts, &other.second_starts, self.second_nodes.len());
        let by = narrow(n_rows);
        self.rows.extend(other.rows.iter().map(|row| row + by));
        let shift = |&row: &u32| if row == NO_ROW { NO_ROW } else { row + by };
        self.second_rows.extend(other.second_rows.iter().map(shift));
        self.nodes.extend_from_slice(&other.nodes);
        self.ages.extend_from_slice(&other.ages);
        self.events.extend_from_slice(&other.events);
        self.counts.extend_from_slice(&other.counts);
        self.intervals.extend_from_slice(&other.intervals);
        self.second_nodes.extend_from_slice(&other.second_nodes);
        self.second_ages.extend_from_slice(&other.second_ages);
        self.second_events.extend_from_slice(&other.second_events);
    }
}
