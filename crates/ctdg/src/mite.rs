//! The joint past of a pair as tokens, with the multi-interacted times of each (MITE).
//!
//! For a query `(u, v, t)` each side's tokens are the node itself and then its newest events before `t`, oldest first.
//! Each token stands for a node `w`; its MITE is the list of the last `K` intervals `t − t'` at which `w` met `u`, and
//! the same for `v`, newest first. Tokens of the same `w` share one row, so a batch holds each distinct row once: that,
//! and not padding every row to `2K` slots, is what makes encoding fast. Beside the intervals stand the plain counts
//! that DyGLib's neighbour co-occurrence encoding (NCOE) uses.

mod leave_out;
mod table;

use rayon::prelude::*;

use crate::event::{Cut, EventId, NodeId};
use crate::store::{History, Store};
pub use leave_out::LeaveOneOut;
use table::RowTable;

/// A pair and the time at which it is asked about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairQuery {
    /// Source.
    pub src: NodeId,
    /// Destination.
    pub dst: NodeId,
    /// Query time; only events strictly before it are seen.
    pub time: f64,
}

/// Which meetings of `w` and `u` count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// Those among the tokens of `u`, as NCOE counts them.
    #[default]
    Truncated,
    /// All that the store knows.
    Full,
}

/// How an event's time enters an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimePrecision {
    /// Subtracted as `f64`, then rounded.
    #[default]
    F64,
    /// Rounded to `f32` before subtracting, as DyGLib stores neighbour times.
    F32,
}

/// How a pair's past becomes tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairEncoding {
    /// Tokens a side at most, the node itself included; at least 1.
    pub length: usize,
    /// Intervals kept per token and side.
    pub k: usize,
    /// Which meetings count.
    pub scope: Scope,
    /// How times are rounded.
    pub precision: TimePrecision,
}

impl Default for PairEncoding {
    /// The paper's sizes: 32 tokens, 32 intervals.
    fn default() -> Self {
        Self { length: 32, k: 32, scope: Scope::Truncated, precision: TimePrecision::F64 }
    }
}

/// Source or destination of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The source.
    Src = 0,
    /// The destination.
    Dst = 1,
}

/// Tokens of many pairs, ragged. Made by [`PairEncoder`]; reused between batches.
///
/// Shapes: `B` pairs, `T` tokens of all sides, `R` rows (distinct nodes within a pair).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PairTokens {
    /// `[2B + 1]`: where the tokens of each side start; sides in the order source, destination, next pair's source, … .
    sides: Vec<u32>,
    /// `[T]`
    nodes: Vec<NodeId>,
    /// `[T]`, 0 for the node itself.
    ages: Vec<f32>,
    /// `[T − 2B]`: a side's first token is the node itself and has no event.
    events: Vec<EventId>,
    /// `[T]`
    rows: Vec<u32>,
    /// `[B + 1]`: where the rows of each pair start.
    pair_rows: Vec<u32>,
    /// `[R, 2]`
    counts: Vec<[u32; 2]>,
    /// `[2R + 1]`: where the intervals of each row and side start.
    row_starts: Vec<u32>,
    /// Intervals of all rows.
    intervals: Vec<f32>,
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
    pub fn tokens(&self, pair: usize, side: Side) -> std::ops::Range<usize> {
        let index = 2 * pair + side as usize;
        self.sides[index] as usize..self.sides[index + 1] as usize
    }

    /// Where the rows of pair `pair` lie.
    ///
    /// # Panics
    /// When there is no such pair.
    #[must_use]
    pub fn rows_of_pair(&self, pair: usize) -> std::ops::Range<usize> {
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
        let tokens = self.tokens(pair, side);
        let earlier_sides = 2 * pair + side as usize;
        &self.events[tokens.start - earlier_sides..tokens.end - earlier_sides - 1]
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

    /// NCOE: how often the node of `row` stands among the tokens of the source and of the destination, the node itself
    /// included. With [`Scope::Full`], among all their meetings instead.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    pub fn counts(&self, row: usize) -> [u32; 2] {
        self.counts[row]
    }

    /// Forgets all pairs but keeps the memory.
    pub fn clear(&mut self) {
        let Self { sides, nodes, ages, events, rows, pair_rows, counts, row_starts, intervals } = self;
        sides.clear();
        nodes.clear();
        ages.clear();
        events.clear();
        rows.clear();
        pair_rows.clear();
        counts.clear();
        row_starts.clear();
        intervals.clear();
        sides.push(0);
        pair_rows.push(0);
        row_starts.push(0);
    }

    /// Adds the pairs of `other` behind these.
    fn append(&mut self, other: &Self) {
        fn shifted(into: &mut Vec<u32>, starts: &[u32], by: usize) {
            let by = narrow(by);
            into.extend(starts[1..].iter().map(|start| start + by));
        }
        let (n_tokens, n_rows, n_intervals) = (self.n_tokens(), self.n_rows(), self.intervals.len());
        shifted(&mut self.sides, &other.sides, n_tokens);
        shifted(&mut self.pair_rows, &other.pair_rows, n_rows);
        shifted(&mut self.row_starts, &other.row_starts, n_intervals);
        let by = narrow(n_rows);
        self.rows.extend(other.rows.iter().map(|row| row + by));
        self.nodes.extend_from_slice(&other.nodes);
        self.ages.extend_from_slice(&other.ages);
        self.events.extend_from_slice(&other.events);
        self.counts.extend_from_slice(&other.counts);
        self.intervals.extend_from_slice(&other.intervals);
    }
}

/// Turns pairs into tokens; keeps its buffers between batches.
#[derive(Debug)]
pub struct PairEncoder<'s> {
    store: &'s Store,
    encoding: PairEncoding,
    /// One per chunk of the largest batch so far.
    chunks: Vec<(RowTable, PairTokens)>,
}

/// Pairs handled by one task; fixed, so that results do not depend on the number of threads.
const CHUNK: usize = 64;

impl<'s> PairEncoder<'s> {
    /// An encoder of pairs over `store`.
    #[must_use]
    pub fn new(store: &'s Store, encoding: PairEncoding) -> Self {
        Self { store, encoding, chunks: Vec::new() }
    }

    /// Encodes `queries` into `out`, in parallel. A pair's tokens do not depend on the other pairs.
    ///
    /// # Complexity
    /// `O(log E + L)` a pair with [`Scope::Truncated`]; with [`Scope::Full`] one look-up and at most `K` intervals for
    /// each distinct neighbour and side besides.
    pub fn encode(&mut self, queries: &[PairQuery], out: &mut PairTokens) {
        let Self { store, encoding, chunks } = self;
        let n_chunks = queries.len().div_ceil(CHUNK);
        if chunks.len() < n_chunks {
            chunks.resize_with(n_chunks, Default::default);
        }
        queries.par_chunks(CHUNK).zip(&mut chunks[..n_chunks]).for_each(|(queries, (table, tokens))| {
            tokens.clear();
            for query in queries {
                let first_row = tokens.n_rows();
                PairPush { store, encoding, query, table, out: tokens, first_row }.run();
            }
        });
        out.clear();
        for (_, tokens) in &chunks[..n_chunks] {
            out.append(tokens);
        }
    }
}

/// Adds one pair to `out`: tokens of both sides, then the intervals of its rows.
struct PairPush<'a> {
    store: &'a Store,
    encoding: &'a PairEncoding,
    query: &'a PairQuery,
    table: &'a mut RowTable,
    out: &'a mut PairTokens,
    /// Rows of `out` before this pair.
    first_row: usize,
}

impl PairPush<'_> {
    fn run(mut self) {
        let cut = self.store.cut(self.query.time);
        let roots = [self.query.src, self.query.dst];
        let most = self.encoding.length.saturating_sub(1);
        let histories = roots.map(|root| self.store.history(root, cut).last(most));
        self.table.clear();
        for side in 0..2 {
            self.push_side(roots[side], &histories[side], side);
        }
        self.out.pair_rows.push(narrow(self.out.n_rows()));
        match self.encoding.scope {
            Scope::Truncated => self.push_truncated(),
            Scope::Full => self.push_full(cut, roots),
        }
    }

    fn push_side(&mut self, root: NodeId, history: &History<'_>, side: usize) {
        self.push_token(root, 0.0, side);
        for (&node, &time) in history.neighbors.iter().zip(history.times) {
            self.push_token(node, interval(self.query.time, time, self.encoding.precision), side);
        }
        self.out.events.extend_from_slice(history.events);
        self.out.sides.push(narrow(self.out.nodes.len()));
    }

    #[inline]
    fn push_token(&mut self, node: NodeId, age: f32, side: usize) {
        let row = self.first_row + self.table.row(node) as usize;
        if row == self.out.counts.len() {
            self.out.counts.push([0; 2]);
        }
        self.out.counts[row][side] += 1;
        self.out.nodes.push(node);
        self.out.rows.push(narrow(row));
        self.out.ages.push(age);
    }

    /// The tokens of one side of this pair, the root's own first.
    fn side(&self, side: usize) -> std::ops::Range<usize> {
        let last = self.out.sides.len() - 3;
        self.out.sides[last + side] as usize..self.out.sides[last + side + 1] as usize
    }

    /// Intervals of each row among the tokens themselves: sized by the counts, filled from the newest token back.
    fn push_truncated(self) {
        let sides = [self.side(0), self.side(1)];
        let root_rows = [0, 1].map(|side| self.out.rows[sides[side].start] as usize);
        let next = self.table.cursors();
        let mut end = self.out.intervals.len();
        for (row, counts) in (self.first_row..).zip(&self.out.counts[self.first_row..]) {
            for (count, root_row) in counts.iter().zip(root_rows) {
                // The root itself is a token but no meeting.
                let n_meetings = *count as usize - usize::from(row == root_row);
                next.push(narrow(end));
                end += n_meetings.min(self.encoding.k);
                self.out.row_starts.push(narrow(end));
            }
        }
        self.out.intervals.resize(end, 0.0);
        for (side, tokens) in sides.into_iter().enumerate() {
            for at in (tokens.start + 1..tokens.end).rev() {
                let row = self.out.rows[at] as usize;
                let place = &mut next[2 * (row - self.first_row) + side];
                if *place < self.out.row_starts[2 * row + side + 1] {
                    self.out.intervals[*place as usize] = self.out.ages[at];
                    *place += 1;
                }
            }
        }
    }

    /// Intervals of each row in the whole past, from the pair index.
    fn push_full(self, cut: Cut, roots: [NodeId; 2]) {
        for (row, &node) in (self.first_row..).zip(self.table.nodes()) {
            for (side, root) in roots.into_iter().enumerate() {
                let meetings = self.store.meetings(node, root, cut);
                self.out.counts[row][side] = narrow(meetings.len()) + u32::from(node == root);
                let newest = meetings.iter().rev().take(self.encoding.k).map(|&event| self.store.time(event));
                let intervals = newest.map(|time| interval(self.query.time, time, self.encoding.precision));
                self.out.intervals.extend(intervals);
                self.out.row_starts.push(narrow(self.out.intervals.len()));
            }
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "intervals are f32; what is rounded away is below the model's noise"
)]
#[inline]
fn interval(t: f64, event: f64, precision: TimePrecision) -> f32 {
    // Far beyond any real span, but a number that stays one when a model multiplies it.
    const LONGEST: f32 = 1e30;
    let interval = match precision {
        TimePrecision::F64 => (t - event) as f32,
        TimePrecision::F32 => (t - f64::from(event as f32)) as f32,
    };
    interval.min(LONGEST)
}

/// Offsets within one batch.
#[inline]
fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).expect("a batch holds fewer than u32::MAX entries")
}
