//! Candidate destinations for ranking, as in TGB.

use rustc_hash::FxHashSet;

use crate::event::{EventId, EventStream, NodeId, strictly_before, up_to};
use crate::random::RandomStream;
use crate::split::{Split, distinct_of};

/// Number of candidate destinations per true one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CandidateCount {
    /// At most this many: up to half of them past destinations of the source in training, the rest others.
    Some(usize),
    /// All destinations.
    All,
}

/// Negative destinations for each evaluation event, without those that are true for the same source at the same time.
#[derive(Debug)]
pub struct CandidateLists<'s> {
    stream: &'s EventStream,
    /// Events of the split; later ones are ignored.
    n_events: usize,
    /// All destinations of the split's events, ascending.
    destinations: Vec<NodeId>,
    /// Distinct training destinations of each source, ascending: those of node `u` are `past[starts[u]..starts[u + 1]]`.
    past: Vec<NodeId>,
    starts: Vec<usize>,
    count: CandidateCount,
    random: RandomStream,
}

impl<'s> CandidateLists<'s> {
    /// Destinations of all events of `split`. Past destinations include those of masked nodes, since TGB has no masking.
    /// Event `e` draws from `random.fork(e)`, so a list does not depend on the other events.
    #[must_use]
    pub fn new(stream: &'s EventStream, split: &Split, count: CandidateCount, random: RandomStream) -> Self {
        let n_events = split.rule.n_events;
        let destinations = distinct_of(stream.n_nodes(), stream.dst()[..n_events].iter().copied());
        let train = split.for_nodes().train.into_iter().map(|id| stream.event(id));
        let mut pairs: Vec<_> = train.map(|event| (event.src, event.dst)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let starts = (0..=stream.n_nodes()).map(|node| pairs.partition_point(|pair| pair.0.index() < node)).collect();
        let past = pairs.into_iter().map(|pair| pair.1).collect();
        Self { stream, n_events, destinations, past, starts, count, random }
    }

    /// The distinct negative destinations for `event`, in arbitrary order.
    #[must_use]
    pub fn of(&self, event: EventId) -> Vec<NodeId> {
        let src = self.stream.src()[event.index()];
        let positives = self.positives(event);
        let CandidateCount::Some(k) = self.count else {
            let all = self.destinations.iter().copied();
            return all.filter(|node| !positives.contains(node)).collect();
        };
        let mut random = self.random.fork(event.0);
        let past = &self.past[self.starts[src.index()]..self.starts[src.index() + 1]];
        let known: FxHashSet<NodeId> = past.iter().copied().collect();
        let mut list = choose(past, |node| !positives.contains(node), k / 2, &mut random);
        let others = |node: &NodeId| !positives.contains(node) && !known.contains(node);
        list.extend(choose(&self.destinations, others, k - list.len(), &mut random));
        list
    }

    /// Destinations of the same source at the same time.
    fn positives(&self, event: EventId) -> FxHashSet<NodeId> {
        let (times, src, dst) = (&self.stream.times()[..self.n_events], self.stream.src(), self.stream.dst());
        let time = times[event.index()];
        let same_time = strictly_before(times, time).n_events()..up_to(times, time).n_events();
        same_time.filter(|&other| src[other] == src[event.index()]).map(|other| dst[other]).collect()
    }
}

/// At most `n` distinct nodes of `nodes` that satisfy `allowed`.
fn choose(nodes: &[NodeId], allowed: impl Fn(&NodeId) -> bool, n: usize, random: &mut RandomStream) -> Vec<NodeId> {
    // Rejection sampling while most nodes are allowed; Floyd's algorithm would have to count them first.
    let mut taken = FxHashSet::default();
    let mut list = Vec::with_capacity(n.min(nodes.len()));
    let mut misses = 0;
    while list.len() < n && 4 * list.len() < nodes.len() && misses < n.saturating_mul(4).saturating_add(16) {
        let node = nodes[random.index(nodes.len())];
        if allowed(&node) && taken.insert(node) {
            list.push(node);
        } else {
            misses += 1;
        }
    }
    if list.len() < n {
        let mut left: Vec<NodeId> =
            nodes.iter().copied().filter(|node| allowed(node) && !taken.contains(node)).collect();
        random.shuffle(&mut left);
        left.truncate(n - list.len());
        list.extend(left);
    }
    list
}
