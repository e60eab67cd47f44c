//! Historical and inductive negatives: past pairs that are not in the batch.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{Problem, Result};
use crate::event::{Cut, EventId, EventStream, NodeId, strictly_before, up_to};
use crate::random::RandomStream;
use crate::split::distinct;

/// Which past pairs are candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastKind {
    /// All pairs with an event before the batch.
    Historical,
    /// Only pairs whose first event is after training.
    Inductive {
        /// End of the observed events; see [`super::Pass::observed`].
        observed: Cut,
    },
}

/// Samples pairs (source and destination) from the distinct pairs of a set of events.
///
/// Distinct pairs are sorted by their first event. The pairs known at some time are then a prefix of the list and those
/// that first occur after some time a suffix, so a draw is one index into a range, rejecting the pairs of the batch.
/// Memory is linear in the number of distinct pairs, never sources × destinations; a draw takes
/// `O(batch + log pairs)` expected time.
#[derive(Debug)]
pub struct PastNegatives<'s> {
    stream: &'s EventStream,
    /// The events whose pairs are candidates, ascending.
    pool: Vec<EventId>,
    pairs: Vec<(NodeId, NodeId)>,
    /// First event of each pair, ascending.
    first_event: Vec<EventId>,
    index_of: FxHashMap<(NodeId, NodeId), usize>,
    sources: Vec<NodeId>,
    destinations: Vec<NodeId>,
    kind: PastKind,
    random: RandomStream,
}

impl<'s> PastNegatives<'s> {
    /// Pairs of `pool`, ascending events of `stream`; batch `i` draws from `random.fork(i)`.
    #[must_use]
    pub fn new(stream: &'s EventStream, pool: Vec<EventId>, kind: PastKind, random: RandomStream) -> Self {
        let (mut pairs, mut first_event, mut index_of) = (Vec::new(), Vec::new(), FxHashMap::default());
        for &id in &pool {
            let event = stream.event(id);
            let pair = (event.src, event.dst);
            index_of.entry(pair).or_insert_with(|| {
                pairs.push(pair);
                first_event.push(id);
                pairs.len() - 1
            });
        }
        let sources = distinct(pairs.iter().map(|pair| pair.0));
        let destinations = distinct(pairs.iter().map(|pair| pair.1));
        Self { stream, pool, pairs, first_event, index_of, sources, destinations, kind, random }
    }

    /// One negative pair per event of `batch`; `index` is the number of the batch.
    ///
    /// Sampled without replacement. If there are too few past pairs, random pairs come first; only if those are too few
    /// as well does a pair repeat.
    pub fn draw(&self, batch: &[EventId], index: u64) -> Result<Vec<(NodeId, NodeId)>> {
        let (Some(&first), Some(&last)) = (batch.first(), batch.last()) else { return Ok(Vec::new()) };
        let mut random = self.random.fork(index);
        let times = self.stream.times();
        let start = strictly_before(times, times[first.index()]);
        let end = up_to(times, times[last.index()]);
        let now = self.pairs_between(start, end);
        // Candidates precede the time of the batch's first event; pairs of that time are excluded with the batch.
        let known = self.first_event.partition_point(|&id| start.sees(id));
        let seen = match self.kind {
            PastKind::Historical => 0,
            PastKind::Inductive { observed } => self.first_event.partition_point(|&id| observed.sees(id)).min(known),
        };
        let excluded = now.iter().filter(|pair| self.index_of.get(pair).is_some_and(|at| (seen..known).contains(at)));
        let excluded: FxHashSet<usize> = excluded.map(|pair| self.index_of[pair]).collect();
        let available = known - seen - excluded.len();
        let n_past = available.min(batch.len());
        let past = draw_distinct(seen..known, &excluded, n_past, &mut random);
        let mut negatives = self.draw_random(batch, batch.len() - n_past, &mut random)?;
        negatives.extend(past.into_iter().map(|at| self.pairs[at]));
        Ok(negatives)
    }

    /// The distinct pairs of the pool's events in `start..end`, in order of event.
    fn pairs_between(&self, start: Cut, end: Cut) -> Vec<(NodeId, NodeId)> {
        let from = self.pool.partition_point(|&id| start.sees(id));
        let to = self.pool.partition_point(|&id| end.sees(id));
        let mut seen = FxHashSet::default();
        let pairs = self.pool[from..to].iter().map(|&id| self.stream.event(id)).map(|event| (event.src, event.dst));
        pairs.filter(|pair| seen.insert(*pair)).collect()
    }

    /// Random pairs of the pool's sources and destinations that are not in the batch.
    fn draw_random(&self, batch: &[EventId], n: usize, random: &mut RandomStream) -> Result<Vec<(NodeId, NodeId)>> {
        if n == 0 {
            return Ok(Vec::new());
        }
        let (n_src, n_dst) = (self.sources.len(), self.destinations.len());
        let index_of = |pair: (NodeId, NodeId)| {
            let (src, dst) =
                (self.sources.binary_search(&pair.0).ok()?, self.destinations.binary_search(&pair.1).ok()?);
            Some(src * n_dst + dst)
        };
        let events = batch.iter().map(|&id| self.stream.event(id));
        let excluded: FxHashSet<usize> = events.filter_map(|event| index_of((event.src, event.dst))).collect();
        let available = n_src * n_dst - excluded.len();
        if available == 0 {
            return Err(Problem::NoNegative.into());
        }
        let mut drawn = draw_distinct(0..n_src * n_dst, &excluded, n.min(available), random);
        let n_distinct = drawn.len();
        while drawn.len() < n {
            drawn.push(drawn[random.index(n_distinct)]);
        }
        Ok(drawn.into_iter().map(|at| (self.sources[at / n_dst], self.destinations[at % n_dst])).collect())
    }
}

/// `n` distinct numbers of `range` outside `excluded`, of which there are at least `n`.
fn draw_distinct(
    range: std::ops::Range<usize>,
    excluded: &FxHashSet<usize>,
    n: usize,
    random: &mut RandomStream,
) -> Vec<usize> {
    let available = range.len() - excluded.len();
    // Rejection sampling while at least one draw in four succeeds; otherwise the range is small enough to enumerate.
    if 4 * (available - n) >= range.len() {
        let mut taken = FxHashSet::default();
        let draw = |_| {
            loop {
                let at = range.start + random.index(range.len());
                if !excluded.contains(&at) && taken.insert(at) {
                    return at;
                }
            }
        };
        return (0..n).map(draw).collect();
    }
    let mut left: Vec<usize> = range.filter(|at| !excluded.contains(at)).collect();
    for i in 0..n {
        let at = i + random.index(left.len() - i);
        left.swap(i, at);
    }
    left.truncate(n);
    left
}
