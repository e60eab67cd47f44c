//! The one place where a part of a node's past is drawn.

use super::Sampling;
use crate::event::{EventId, NodeId};
use crate::random::Stream;
use crate::store::{History, Store};

/// Draws from the past of one node at a time; shared by all threads.
#[derive(Debug)]
pub(crate) struct Draws<'s> {
    store: &'s Store,
    sampling: Sampling,
    /// For [`Sampling::TimeIntervalAware`]: running sums of the weights along each list.
    cumulative: Vec<f64>,
}

/// Where a draw is laid down; reused, so that drawing takes no memory of its own.
#[derive(Debug, Default)]
pub(crate) struct Drawn {
    places: Vec<u32>,
    neighbors: Vec<NodeId>,
    events: Vec<EventId>,
    times: Vec<f64>,
}

impl<'s> Draws<'s> {
    pub(crate) fn new(store: &'s Store, sampling: Sampling) -> Self {
        let cumulative = match sampling {
            Sampling::TimeIntervalAware { a } => cumulative_weights(store, a),
            Sampling::Recent | Sampling::Uniform => Vec::new(),
        };
        Self { store, sampling, cumulative }
    }

    pub(crate) fn store(&self) -> &'s Store {
        self.store
    }

    /// How many of `n` events are drawn where `k` are wanted.
    pub(crate) fn count(&self, n: usize, k: usize) -> usize {
        match self.sampling {
            Sampling::Recent => n.min(k),
            _ if n == 0 => 0,
            _ => k,
        }
    }

    /// `k` events of `history`, which is what `node` did before some cut; oldest first. The newest ones are not copied;
    /// only the others ask for randomness.
    #[inline]
    pub(crate) fn draw<'a>(
        &self,
        (node, history): (NodeId, History<'a>),
        k: usize,
        random: impl FnOnce() -> Stream,
        drawn: &'a mut Drawn,
    ) -> History<'a> {
        if self.sampling == Sampling::Recent || history.is_empty() || k == 0 {
            return history.last(k);
        }
        self.draw_places(node, history.len(), k, &mut random(), &mut drawn.places);
        let Drawn { places, neighbors, events, times } = drawn;
        neighbors.clear();
        neighbors.extend(places.iter().map(|&at| history.neighbors[at as usize]));
        events.clear();
        events.extend(places.iter().map(|&at| history.events[at as usize]));
        times.clear();
        times.extend(places.iter().map(|&at| history.times[at as usize]));
        History { neighbors, events, times }
    }

    /// Leaves `k` places below `n` in `places`, in ascending order.
    fn draw_places(&self, node: NodeId, n: usize, k: usize, random: &mut Stream, places: &mut Vec<u32>) {
        let start = self.store.list_start(node);
        places.clear();
        places.extend((0..k).map(|_| {
            let at = match self.sampling {
                Sampling::TimeIntervalAware { .. } => {
                    let sums = &self.cumulative[start..start + n];
                    let target = random.unit() * sums[n - 1];
                    sums.partition_point(|&sum| sum <= target).min(n - 1)
                }
                _ => random.position(n),
            };
            u32::try_from(at).expect("lists are shorter than u32::MAX")
        }));
        places.sort_unstable();
    }
}

/// Running sums of `exp(1 / S_i)` along each list; `S_i = 1 + S_{i−1} exp(−a (t_i − t_{i−1}))`.
fn cumulative_weights(store: &Store, a: f64) -> Vec<f64> {
    let mut cumulative = Vec::new();
    for times in store.lists_of_times() {
        let (mut crowding, mut sum) = (0.0, 0.0);
        let mut previous = times.first().copied().unwrap_or(0.0);
        for &time in times {
            crowding = 1.0 + crowding * f64::exp(-a * (time - previous));
            sum += f64::exp(1.0 / crowding);
            previous = time;
            cumulative.push(sum);
        }
    }
    cumulative
}
