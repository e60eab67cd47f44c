//! Samples from the history of one node; used by all samplers and encoders.

use super::Sampling;
use crate::event::{EventId, EventList, NodeId};
use crate::random::RandomStream;
use crate::store::{History, Store};

/// Samples from the history of one node at a time; shared by all threads.
#[derive(Debug)]
pub(crate) struct HistorySampler<'s> {
    store: &'s Store,
    sampling: Sampling,
    /// For [`Sampling::TimeIntervalAware`]: cumulative weights along each adjacency list. A store that grows has none in advance.
    cumulative: Option<Vec<f64>>,
    /// For random sampling: what draws from a node's history are keyed on.
    name_keys: &'s [u64],
}

/// Buffers for a sample; reused to avoid allocation.
#[derive(Debug, Default)]
pub(crate) struct SampleBuffers {
    indices: Vec<usize>,
    neighbors: Vec<NodeId>,
    events: EventList,
    times: Vec<f64>,
}

impl SampleBuffers {
    /// The `k` most recent entries of `history` without the events `left_out`, which are in ascending order; oldest first.
    pub(crate) fn last_without(&mut self, history: History<'_>, k: usize, left_out: &[EventId]) -> History<'_> {
        self.indices.clear();
        self.indices.extend(history.last_without(k, left_out));
        self.indices.reverse();
        self.gather(history)
    }

    /// The entries of `history` at the chosen indices.
    fn gather(&mut self, history: History<'_>) -> History<'_> {
        let Self { indices, neighbors, events, times } = self;
        neighbors.clear();
        neighbors.extend(indices.iter().map(|&at| history.neighbors[at]));
        events.clear();
        events.extend_at(history.events, indices);
        times.clear();
        times.extend(indices.iter().map(|&at| history.times[at]));
        History { neighbors, events: events.ids(), times }
    }
}

impl<'s> HistorySampler<'s> {
    pub(crate) fn new(store: &'s Store, sampling: Sampling) -> Self {
        let cumulative = match sampling {
            Sampling::TimeIntervalAware { a } => cumulative_weights(store, a),
            Sampling::Recent | Sampling::Uniform => None,
        };
        let name_keys = if sampling == Sampling::Recent { &[] } else { store.name_keys() };
        Self { store, sampling, cumulative, name_keys }
    }

    pub(crate) fn store(&self) -> &'s Store {
        self.store
    }

    /// What draws from `history`, a history of `node`, are keyed on: the node's name. Nodes without a history are all alike:
    /// whether such a node is unknown, or first occurs after the query, must make no difference. 0 if nothing is drawn.
    #[inline]
    pub(crate) fn key(&self, node: NodeId, history: &History<'_>) -> u64 {
        if history.is_empty() { 0 } else { self.name_keys.get(node.index()).copied().unwrap_or(0) }
    }

    /// Size of a sample of at most `k` from `n` events.
    pub(crate) fn count(&self, n: usize, k: usize) -> usize {
        match self.sampling {
            Sampling::Recent => n.min(k),
            _ if n == 0 => 0,
            _ => k,
        }
    }

    /// `k` events of `history`, a history of `node`; oldest first. [`Sampling::Recent`] copies nothing and never calls
    /// `random`.
    #[inline]
    pub(crate) fn sample<'a>(
        &self,
        (node, history): (NodeId, History<'a>),
        k: usize,
        random: impl FnOnce() -> RandomStream,
        buffers: &'a mut SampleBuffers,
    ) -> History<'a> {
        if self.sampling == Sampling::Recent || history.is_empty() || k == 0 {
            return history.last(k);
        }
        self.sample_indices(node, history.times, k, &mut random(), &mut buffers.indices);
        buffers.gather(history)
    }

    /// Writes `k` sampled indices of the events at `times` to `indices`, in ascending order.
    fn sample_indices(
        &self,
        node: NodeId,
        times: &[f64],
        k: usize,
        random: &mut RandomStream,
        indices: &mut Vec<usize>,
    ) {
        let n = times.len();
        let mut here = Vec::new();
        let sums = match (self.sampling, &self.cumulative) {
            (Sampling::TimeIntervalAware { .. }, Some(all)) => {
                let start = self.store.list_start(node);
                &all[start..start + n]
            }
            (Sampling::TimeIntervalAware { a }, None) => {
                push_cumulative_weights(times, a, &mut here);
                &here
            }
            _ => &[][..],
        };
        indices.clear();
        indices.extend((0..k).map(|_| match sums {
            [] => random.index(n),
            [.., total] => {
                let target = random.unit() * total;
                sums.partition_point(|&sum| sum <= target).min(n - 1)
            }
        }));
        indices.sort_unstable();
    }
}

fn cumulative_weights(store: &Store, a: f64) -> Option<Vec<f64>> {
    let mut cumulative = Vec::new();
    for times in store.lists_of_times()? {
        push_cumulative_weights(times, a, &mut cumulative);
    }
    Some(cumulative)
}

/// Appends the cumulative sums of `exp(1 / S_i)` along a list; `S_i = 1 + S_{i−1} exp(−a (t_i − t_{i−1}))`.
fn push_cumulative_weights(times: &[f64], a: f64, cumulative: &mut Vec<f64>) {
    let (mut crowding, mut sum) = (0.0, 0.0);
    let mut previous = times.first().copied().unwrap_or(0.0);
    for &time in times {
        crowding = 1.0 + crowding * f64::exp(-a * (time - previous));
        sum += f64::exp(1.0 / crowding);
        previous = time;
        cumulative.push(sum);
    }
}
