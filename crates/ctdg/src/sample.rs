//! Draws a bounded part of each node's past, for many nodes at once.
//!
//! | sampling | what is drawn | cost of a query |
//! |---|---|---|
//! | [`Sampling::Recent`] | the `k` newest events | `O(log n + k)` |
//! | [`Sampling::Uniform`] | `k` events with replacement, all alike | `O(log n + k log k)` |
//! | [`Sampling::TimeIntervalAware`] | `k` events with replacement, newer and lonelier ones more often | `O(k log n)` |
//!
//! Answers are ragged: a node without a past gets an empty row, never padding.

mod draw;

use crate::event::{Cut, EventId, NodeId};
use crate::random::Stream;
use crate::store::{History, Store};
pub(crate) use draw::{Drawn, Draws};

/// Which part of the past is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Sampling {
    /// The newest events.
    #[default]
    Recent,
    /// Uniform, with replacement.
    Uniform,
    /// As CAWN draws its walks. With `S_i = Σ_{j≤i} exp(a (t_j − t_i))` over a node's events, event `i` is drawn in
    /// proportion to `exp(1 / S_i)`.
    ///
    /// DyGLib computes the same weight as a quotient of `exp(a (t − t_last))`, where `t_last` lies in the future of the
    /// query and both terms may underflow to zero; here nothing after the query enters.
    TimeIntervalAware {
        /// How fast older events fade, per unit of time; DyGLib uses 1e-6.
        a: f64,
    },
}

/// Who is asked about, and up to where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeQuery {
    /// The node.
    pub node: NodeId,
    /// What may be seen.
    pub cut: Cut,
}

/// Ragged answer to many queries: row `i` is entries `offsets[i]..offsets[i + 1]`, oldest first. Reused between batches.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Histories {
    offsets: Vec<usize>,
    neighbors: Vec<NodeId>,
    events: Vec<EventId>,
    times: Vec<f64>,
}

impl Histories {
    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where each row starts, one more at the end.
    #[must_use]
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// All rows, one after the other.
    #[must_use]
    pub fn entries(&self) -> History<'_> {
        History { neighbors: &self.neighbors, events: &self.events, times: &self.times }
    }

    /// Row `index`.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    pub fn row(&self, index: usize) -> History<'_> {
        let part = self.offsets[index]..self.offsets[index + 1];
        History {
            neighbors: &self.neighbors[part.clone()],
            events: &self.events[part.clone()],
            times: &self.times[part],
        }
    }
}

/// Draws histories from a store.
#[derive(Debug)]
pub struct NeighborSampler<'s> {
    draws: Draws<'s>,
    k: usize,
}

/// Queries handled by one task; fixed, so that results do not depend on the number of threads.
const CHUNK: usize = 256;

impl<'s> NeighborSampler<'s> {
    /// Draws at most `k` events a query.
    #[must_use]
    pub fn new(store: &'s Store, sampling: Sampling, k: usize) -> Self {
        Self { draws: Draws::new(store, sampling), k }
    }

    /// Answers `queries` into `out`, in parallel. Query `i` draws from `random.fork(i)`: the answer depends on nothing
    /// else, in particular not on threads or on the other queries.
    pub fn sample(&self, queries: &[NodeQuery], random: &Stream, out: &mut Histories) {
        out.offsets.clear();
        out.offsets.push(0);
        out.offsets.resize(queries.len() + 1, 0);
        self.count(queries, &mut out.offsets[1..]);
        for row in 0..queries.len() {
            out.offsets[row + 1] += out.offsets[row];
        }
        let total = out.offsets[queries.len()];
        out.neighbors.resize(total, NodeId(0));
        out.events.resize(total, EventId(0));
        out.times.resize(total, 0.0);
        let rows = Rows { first: 0, neighbors: &mut out.neighbors, events: &mut out.events, times: &mut out.times };
        self.fill(queries, &out.offsets, random, rows);
    }

    /// Writes how many entries each query gets.
    fn count(&self, queries: &[NodeQuery], counts: &mut [usize]) {
        if queries.len() > CHUNK {
            let half = (queries.len() / 2).next_multiple_of(CHUNK);
            let (left, right) = counts.split_at_mut(half);
            rayon::join(|| self.count(&queries[..half], left), || self.count(&queries[half..], right));
            return;
        }
        for (query, count) in queries.iter().zip(counts) {
            *count = self.draws.count(self.draws.store().history(query.node, query.cut).len(), self.k);
        }
    }

    fn fill(&self, queries: &[NodeQuery], offsets: &[usize], random: &Stream, rows: Rows<'_>) {
        if queries.len() > CHUNK {
            let half = (queries.len() / 2).next_multiple_of(CHUNK);
            let (left, right) = rows.split(offsets[half] - offsets[0], half);
            rayon::join(
                || self.fill(&queries[..half], &offsets[..=half], random, left),
                || self.fill(&queries[half..], &offsets[half..], random, right),
            );
            return;
        }
        let mut drawn = Drawn::default();
        for (index, query) in queries.iter().enumerate() {
            let row = offsets[index] - offsets[0]..offsets[index + 1] - offsets[0];
            let history = self.draws.store().history(query.node, query.cut);
            let random = || random.fork((rows.first + index) as u64);
            let part = self.draws.draw((query.node, history), self.k, random, &mut drawn);
            rows.neighbors[row.clone()].copy_from_slice(part.neighbors);
            rows.events[row.clone()].copy_from_slice(part.events);
            rows.times[row].copy_from_slice(part.times);
        }
    }
}

/// The parts of the answer that belong to a run of queries, the first of which is query `first`.
struct Rows<'a> {
    first: usize,
    neighbors: &'a mut [NodeId],
    events: &'a mut [EventId],
    times: &'a mut [f64],
}

impl<'a> Rows<'a> {
    /// Splits after `entries` entries, which belong to the first `queries` queries.
    fn split(self, entries: usize, queries: usize) -> (Rows<'a>, Rows<'a>) {
        let (neighbors, more_neighbors) = self.neighbors.split_at_mut(entries);
        let (events, more_events) = self.events.split_at_mut(entries);
        let (times, more_times) = self.times.split_at_mut(entries);
        let left = Rows { first: self.first, neighbors, events, times };
        let first = self.first + queries;
        (left, Rows { first, neighbors: more_neighbors, events: more_events, times: more_times })
    }
}
