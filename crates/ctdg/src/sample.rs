//! Temporal neighbor sampling: bounded histories of many nodes at once.
//!
//! | sampling | result | time per query |
//! |---|---|---|
//! | [`Sampling::Recent`] | the `k` most recent events | `O(log n + k)` |
//! | [`Sampling::Uniform`] | `k` events with replacement, uniformly | `O(log n + k log k)` |
//! | [`Sampling::TimeIntervalAware`] | `k` events with replacement, biased to recent and isolated events | `O(k log n)` |
//!
//! `n` is the length of a node's history. Memory is the result itself (16 bytes an entry; 20 of a stream of more than 2³² − 1 events);
//! [`Sampling::TimeIntervalAware`] also stores one `f64` per adjacency entry. Results are ragged: a node without history
//! gets an empty row, never padding.
//!
//! ```
//! use ctdg::event::{EventStream, NodeId};
//! use ctdg::random::RandomStream;
//! use ctdg::sample::{Histories, NeighborSampler, NodeQuery, Sampling};
//! use ctdg::store::Store;
//!
//! let stream = EventStream::from_events([(0, 1, 1.0), (0, 2, 2.0), (0, 3, 3.0)])?;
//! let store = Store::build(&stream)?;
//! let sampler = NeighborSampler::new(&store, Sampling::Recent, 2);
//! let mut out = Histories::default();
//! let queries = [0, 3].map(|node| NodeQuery { node: NodeId(node), cut: store.cut(3.0) });
//! sampler.sample(&queries, &RandomStream::named(0, "sample"), &mut out);
//! assert_eq!(out.row(0).neighbors, [NodeId(1), NodeId(2)], "the event at time 3 is not before 3");
//! assert!(out.row(1).is_empty());
//! # Ok::<(), ctdg::Error>(())
//! ```

mod history_sampler;

use crate::event::{Cut, EventIdsMut, EventList, NodeId};
use crate::random::RandomStream;
use crate::store::{History, Store};
pub(crate) use history_sampler::{HistorySampler, SampleBuffers};

/// Which events of a node's history are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Sampling {
    /// The most recent events.
    #[default]
    Recent,
    /// Uniform, with replacement.
    Uniform,
    /// As CAWN draws its walks. With `S_i = Σ_{j≤i} exp(a (t_j − t_i))` over a node's events, event `i` is drawn in
    /// proportion to `exp(1 / S_i)`.
    ///
    /// DyGLib computes the same weight as a quotient of `exp(a (t − t_last))`, where `t_last` lies after the query and both
    /// terms may underflow to zero; here only events before the query enter.
    TimeIntervalAware {
        /// Decay rate per unit of time; DyGLib uses 1e-6.
        a: f64,
    },
}

/// A node and the boundary of its visible history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeQuery {
    /// The node.
    pub node: NodeId,
    /// Only events before this are sampled.
    pub cut: Cut,
}

/// Sampled histories of a batch of queries, ragged: row `i` is entries `offsets[i]..offsets[i + 1]`, oldest first. Reused
/// between batches.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Histories {
    offsets: Vec<usize>,
    neighbors: Vec<NodeId>,
    events: EventList,
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

    /// Start of each row, and the end of the last.
    #[must_use]
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// All rows, one after the other.
    #[must_use]
    pub fn entries(&self) -> History<'_> {
        History { neighbors: &self.neighbors, events: self.events.ids(), times: &self.times }
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
            events: self.events.ids().slice(part.clone()),
            times: &self.times[part],
        }
    }
}

/// Samples temporal neighbors from a [`Store`], in parallel. See the [module](self) for complexity and an example.
#[derive(Debug)]
pub struct NeighborSampler<'s> {
    sampler: HistorySampler<'s>,
    k: usize,
}

/// Queries per parallel task; fixed, so that results do not depend on the number of threads.
const CHUNK: usize = 256;

impl<'s> NeighborSampler<'s> {
    /// Samples at most `k` events per query.
    #[must_use]
    pub fn new(store: &'s Store, sampling: Sampling, k: usize) -> Self {
        Self { sampler: HistorySampler::new(store, sampling), k }
    }

    /// Samples for all `queries` into `out`, in parallel. Query `i` draws from `random.fork(i)`, so its result does not
    /// depend on threads or on the other queries.
    pub fn sample(&self, queries: &[NodeQuery], random: &RandomStream, out: &mut Histories) {
        out.offsets.clear();
        out.offsets.push(0);
        out.offsets.resize(queries.len() + 1, 0);
        self.count(queries, &mut out.offsets[1..]);
        for row in 0..queries.len() {
            out.offsets[row + 1] += out.offsets[row];
        }
        let total = out.offsets[queries.len()];
        out.neighbors.resize(total, NodeId(0));
        out.times.resize(total, 0.0);
        let events = out.events.resize(total, self.sampler.store().id_width());
        let rows = Rows { first: 0, neighbors: &mut out.neighbors, events, times: &mut out.times };
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
            *count = self.sampler.count(self.sampler.store().history(query.node, query.cut).len(), self.k);
        }
    }

    fn fill(&self, queries: &[NodeQuery], offsets: &[usize], random: &RandomStream, mut rows: Rows<'_>) {
        if queries.len() > CHUNK {
            let half = (queries.len() / 2).next_multiple_of(CHUNK);
            let (left, right) = rows.split(offsets[half] - offsets[0], half);
            rayon::join(
                || self.fill(&queries[..half], &offsets[..=half], random, left),
                || self.fill(&queries[half..], &offsets[half..], random, right),
            );
            return;
        }
        let mut buffers = SampleBuffers::default();
        for (index, query) in queries.iter().enumerate() {
            let row = offsets[index] - offsets[0]..offsets[index + 1] - offsets[0];
            let history = self.sampler.store().history(query.node, query.cut);
            let random = || random.fork((rows.first + index) as u64);
            let part = self.sampler.sample((query.node, history), self.k, random, &mut buffers);
            rows.neighbors[row.clone()].copy_from_slice(part.neighbors);
            rows.events.write(row.clone(), part.events);
            rows.times[row].copy_from_slice(part.times);
        }
    }
}

/// The output of consecutive queries, starting with query `first`.
struct Rows<'a> {
    first: usize,
    neighbors: &'a mut [NodeId],
    events: EventIdsMut<'a>,
    times: &'a mut [f64],
}

impl<'a> Rows<'a> {
    /// Splits after `entries` entries, which belong to the first `queries` queries.
    fn split(self, entries: usize, queries: usize) -> (Rows<'a>, Rows<'a>) {
        let (neighbors, more_neighbors) = self.neighbors.split_at_mut(entries);
        let (events, more_events) = self.events.split_at(entries);
        let (times, more_times) = self.times.split_at_mut(entries);
        let left = Rows { first: self.first, neighbors, events, times };
        let first = self.first + queries;
        (left, Rows { first, neighbors: more_neighbors, events: more_events, times: more_times })
    }
}
