//! Random negatives: the true source with a random destination, as in DyGLib.

use crate::event::{EventId, EventStream, NodeId};
use crate::py_compat::NumpyRandom;
use crate::split::distinct_of;

/// Samples destinations uniformly from those of a set of events, bit-identical to DyGLib.
///
/// DyGLib also draws and discards a source for each negative; so does this, to stay in step with its generator.
/// Negatives are not checked against real events: one may happen to be true.
#[derive(Debug, Clone)]
pub struct RandomNegatives {
    /// Number of distinct sources of the pool.
    n_sources: u32,
    /// Distinct destinations of the pool, ascending.
    destinations: Vec<NodeId>,
    random: NumpyRandom,
}

impl RandomNegatives {
    /// Destinations of `pool`, sampled with `seed`: the run's seed for training, [`super::Pass::seed`] for evaluation.
    ///
    /// # Panics
    /// When there are more than `u32::MAX` sources, which no stream has.
    #[must_use]
    pub fn new(stream: &EventStream, pool: &[EventId], seed: u32) -> Self {
        Self::over(stream, &pool.iter().copied(), seed)
    }

    /// The same with a pool that need not be in memory.
    pub(super) fn over(stream: &EventStream, pool: &(impl Iterator<Item = EventId> + Clone), seed: u32) -> Self {
        let nodes = |column: &[NodeId]| distinct_of(stream.n_nodes(), pool.clone().map(|id| column[id.index()]));
        let n_sources = u32::try_from(nodes(stream.src()).len()).expect("nodes are counted in u32");
        Self { n_sources, destinations: nodes(stream.dst()), random: NumpyRandom::new(seed) }
    }

    /// The distinct destinations, ascending.
    #[must_use]
    pub fn destinations(&self) -> &[NodeId] {
        &self.destinations
    }

    /// Number of distinct sources.
    #[must_use]
    pub fn n_sources(&self) -> usize {
        self.n_sources as usize
    }

    /// Restarts the sequence, as at the beginning of an evaluation pass.
    pub fn reset(&mut self) {
        self.random.reset();
    }

    /// State of the generator: what a checkpoint saves.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.random.position()
    }

    /// Restores a saved [`position`](Self::position).
    pub fn advance_to(&mut self, position: u64) {
        self.random.advance_to(position);
    }

    /// Destinations for the next batch of `n`; empty if the pool is.
    ///
    /// # Panics
    /// When there are more than `u32::MAX` destinations, which no stream has.
    pub fn draw(&mut self, n: usize) -> Vec<NodeId> {
        let n_destinations = u32::try_from(self.destinations.len()).expect("nodes are counted in u32");
        if n_destinations == 0 {
            return Vec::new();
        }
        for _ in 0..n {
            self.random.below(self.n_sources);
        }
        (0..n).map(|_| self.destinations[self.random.below(n_destinations) as usize]).collect()
    }
}
