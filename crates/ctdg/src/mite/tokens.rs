//! Ragged tokens of a batch of pairs.

use std::ops::Range;

use super::{Side, offset_u32};
use crate::event::{EventIds, EventList, NodeId};

/// Marks a second-hop node without a MITE row in its pair.
pub const NO_ROW: u32 = u32::MAX;

/// Tokens of a batch of pairs, ragged (no padding). Filled by [`PairEncoder`](super::PairEncoder), whose
/// [module](crate::mite) has an example; reused between batches.
///
/// Shapes: `B` pairs, `T` tokens of all sides, `R` rows (distinct nodes within a pair), `S` second-hop events.
/// A *root token* is the first of its side: the queried node itself. All others are *event tokens*.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PairTokens {
    /// `[2B + 1]`: offsets of the tokens of each side; sides in the order source, destination, next pair's source, … .
    pub(super) sides: Vec<u32>,
    /// `[T]`
    pub(super) nodes: Vec<NodeId>,
    /// `[T]`, 0 for root tokens.
    pub(super) ages: Vec<f32>,
    /// `[T − 2B]`: root tokens have no event.
    pub(super) events: EventList,
    /// `[T]`
    pub(super) rows: Vec<u32>,
    /// `[B + 1]`: offsets of the rows of each pair.
    pub(super) pair_rows: Vec<u32>,
    /// `[R, 2]`
    pub(super) counts: Vec<[u32; 2]>,
    /// `[2R + 1]`: offsets of the intervals of each row and side.
    pub(super) row_starts: Vec<u32>,
    /// Intervals of all rows.
    pub(super) intervals: Vec<f32>,
    /// `[T − 2B + 1]`: offsets of the second hop of each event token; a single 0 without a second hop.
    pub(super) second_starts: Vec<u32>,
    /// `[S]`, as are the next three.
    pub(super) second_nodes: Vec<NodeId>,
    pub(super) second_ages: Vec<f32>,
    pub(super) second_events: EventList,
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

    /// Range of the tokens of one side of `pair` in [`PairTokens::nodes`], [`PairTokens::ages`] and [`PairTokens::rows`].
    ///
    /// # Panics
    /// When there is no such pair.
    #[must_use]
    pub fn tokens(&self, pair: usize, side: Side) -> Range<usize> {
        let index = 2 * pair + side as usize;
        self.sides[index] as usize..self.sides[index + 1] as usize
    }

    /// Range of the rows of `pair`.
    ///
    /// # Panics
    /// When there is no such pair.
    #[must_use]
    pub fn rows_of_pair(&self, pair: usize) -> Range<usize> {
        self.pair_rows[pair] as usize..self.pair_rows[pair + 1] as usize
    }

    /// `[T]`: the node of each token.
    #[must_use]
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// `[T]`: query time minus the time of each token's event; 0 for root tokens.
    #[must_use]
    pub fn ages(&self) -> &[f32] {
        &self.ages
    }

    /// `[T]`: the MITE row of each token.
    #[must_use]
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// The events of the event tokens of one side of `pair`.
    ///
    /// # Panics
    /// When there is no such pair.
    #[must_use]
    pub fn events(&self, pair: usize, side: Side) -> EventIds<'_> {
        self.events.ids().slice(self.event_tokens(pair, side))
    }

    /// Range of the event tokens of one side of `pair` among all event tokens of the batch: the indices that
    /// [`PairTokens::second`] takes. The `i`-th of them is the `i + 1`-th of [`PairTokens::tokens`].
    ///
    /// # Panics
    /// When there is no such pair.
    #[must_use]
    pub fn event_tokens(&self, pair: usize, side: Side) -> Range<usize> {
        let tokens = self.tokens(pair, side);
        let earlier_roots = 2 * pair + side as usize;
        tokens.start - earlier_roots..tokens.end - earlier_roots - 1
    }

    /// Range of the second hop of an event token in [`PairTokens::second_nodes`] and the other `second_*` columns, oldest
    /// event first. `token` is an index of [`PairTokens::event_tokens`].
    ///
    /// # Panics
    /// When there is no such token, or no second hop at all.
    #[must_use]
    pub fn second(&self, token: usize) -> Range<usize> {
        self.second_starts[token] as usize..self.second_starts[token + 1] as usize
    }

    /// Range of the second hop of all event tokens of one side of `pair`.
    ///
    /// # Panics
    /// When there is no such pair, or no second hop.
    #[must_use]
    pub fn second_of(&self, pair: usize, side: Side) -> Range<usize> {
        let drawn = self.event_tokens(pair, side);
        self.second_starts[drawn.start] as usize..self.second_starts[drawn.end] as usize
    }

    /// `[T − 2B + 1]`: offsets of the second hop of each event token; a single 0 without a second hop.
    #[must_use]
    pub fn second_starts(&self) -> &[u32] {
        &self.second_starts
    }

    /// `[S]`: the other node of each second-hop event.
    #[must_use]
    pub fn second_nodes(&self) -> &[NodeId] {
        &self.second_nodes
    }

    /// `[S]`: age of each second-hop event, relative to the token's event or the query.
    #[must_use]
    pub fn second_ages(&self) -> &[f32] {
        &self.second_ages
    }

    /// `[S]`: the second-hop events.
    #[must_use]
    pub fn second_events(&self) -> EventIds<'_> {
        self.second_events.ids()
    }

    /// `[S]`: the MITE row of the node in its pair, or [`NO_ROW`]. With [`Truncated`](super::MiteScope::Truncated) only nodes
    /// of tokens have a row; with [`Full`](super::MiteScope::Full) also nodes that interacted with either side, so a pair may
    /// have rows that no token refers to.
    #[must_use]
    pub fn second_rows(&self) -> &[u32] {
        &self.second_rows
    }

    /// Intervals of the interactions of the row's node with that side of its pair, newest first.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    pub fn intervals(&self, row: usize, side: Side) -> &[f32] {
        let index = 2 * row + side as usize;
        &self.intervals[self.row_starts[index] as usize..self.row_starts[index + 1] as usize]
    }

    /// `(offsets, intervals)` of `rows`: for each row the list of its source side, then that of its destination side.
    /// `[2·rows + 1]` offsets; the first one is the base of all and need not be 0.
    ///
    /// # Panics
    /// When there are no such rows.
    #[must_use]
    pub fn interval_lists(&self, rows: Range<usize>) -> (&[u32], &[f32]) {
        if rows.is_empty() {
            return (&[0], &[]);
        }
        let starts = &self.row_starts[2 * rows.start..=2 * rows.end];
        let ends = [starts[0], starts[starts.len() - 1]].map(|at| at as usize);
        (starts, &self.intervals[ends[0]..ends[1]])
    }

    /// NCOE: how often the row's node occurs among the tokens of the source and of the destination, root tokens included.
    /// With [`Full`](super::MiteScope::Full), among all their interactions instead.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    pub fn counts(&self, row: usize) -> [u32; 2] {
        self.counts[row]
    }

    /// Removes all pairs; keeps the allocations.
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

    /// Appends the pairs of `other`.
    pub(super) fn append(&mut self, other: &Self) {
        fn shifted(into: &mut Vec<u32>, starts: &[u32], by: usize) {
            let by = offset_u32(by);
            into.extend(starts[1..].iter().map(|start| start + by));
        }
        let (n_tokens, n_rows, n_intervals) = (self.n_tokens(), self.n_rows(), self.intervals.len());
        shifted(&mut self.sides, &other.sides, n_tokens);
        shifted(&mut self.pair_rows, &other.pair_rows, n_rows);
        shifted(&mut self.row_starts, &other.row_starts, n_intervals);
        shifted(&mut self.second_starts, &other.second_starts, self.second_nodes.len());
        let by = offset_u32(n_rows);
        self.rows.extend(other.rows.iter().map(|row| row + by));
        let shift = |&row: &u32| if row == NO_ROW { NO_ROW } else { row + by };
        self.second_rows.extend(other.second_rows.iter().map(shift));
        self.nodes.extend_from_slice(&other.nodes);
        self.ages.extend_from_slice(&other.ages);
        self.events.extend_from(other.events.ids());
        self.counts.extend_from_slice(&other.counts);
        self.intervals.extend_from_slice(&other.intervals);
        self.second_nodes.extend_from_slice(&other.second_nodes);
        self.second_ages.extend_from_slice(&other.second_ages);
        self.second_events.extend_from(other.second_events.ids());
    }
}
