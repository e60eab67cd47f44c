//! Likely destinations of a source, found without looking at all of them.

use ctdg::event::{Cut, EventId, NodeId};
use ctdg::store::Store;
use rustc_hash::{FxHashMap, FxHashSet};

/// Which destinations a recommendation compares.
///
/// ```
/// # use hopedgn::{Events, LinkPredictor};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
/// use hopedgn::{Candidates, RecommendOptions};
///
/// let near = RecommendOptions { candidates: Candidates::Near, ..RecommendOptions::at(200.0) };
/// let found = predictor.recommend_with("3", &near, &mut |_| {})?;
/// assert!(found.iter().any(|best| best.dst == "4"));
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Candidates {
    /// All of them: exact, and slow where there are many.
    #[default]
    All,
    /// Recent partners of the source, partners of partners, and destinations of the newest events: a few hundred, however many there are.
    Near,
}

/// Newest partners of a node that are followed, by step.
const PARTNERS: [usize; 3] = [64, 16, 8];
/// Newest events whose destinations are popular.
const NEWEST: usize = 2048;
/// Popular destinations.
const POPULAR: usize = 128;
/// Destinations in all.
const MOST: usize = 512;

/// Likely destinations of `src` before `cut`, the nearest first. Each was the destination of an event before it.
pub(crate) fn near(store: &Store, src: NodeId, cut: Cut) -> Vec<NodeId> {
    let mut found = Found { store, cut, src, nodes: Vec::new(), is_known: FxHashSet::default() };
    let mut reached = vec![src];
    for (step, n) in PARTNERS.into_iter().enumerate() {
        let mut next = Vec::new();
        for &node in &reached {
            next.extend(store.history(node, cut).last(n).neighbors.iter().rev());
        }
        let mut seen = FxHashSet::default();
        next.retain(|node| seen.insert(*node));
        let n_before = found.nodes.len();
        for &node in &next {
            found.add(node);
        }
        // In bipartite data every second step leads back to the side of the source.
        if step == 1 && found.nodes.len() > n_before {
            break;
        }
        reached = next;
    }
    for node in popular(store, cut) {
        found.add(node);
    }
    found.nodes
}

/// The destinations of the newest events, the most frequent first.
fn popular(store: &Store, cut: Cut) -> Vec<NodeId> {
    let newest = cut.n_events().saturating_sub(NEWEST)..cut.n_events();
    let mut counts: FxHashMap<NodeId, usize> = FxHashMap::default();
    for event in newest.map(EventId::from_index) {
        *counts.entry(store.destination(event)).or_default() += 1;
    }
    let mut counts: Vec<(NodeId, usize)> = counts.into_iter().collect();
    counts.sort_unstable_by(|(a, n_a), (b, n_b)| n_b.cmp(n_a).then_with(|| store.names().compare(*a, *b)));
    counts.into_iter().take(POPULAR).map(|(node, _)| node).collect()
}

struct Found<'a> {
    store: &'a Store,
    cut: Cut,
    src: NodeId,
    nodes: Vec<NodeId>,
    is_known: FxHashSet<NodeId>,
}

impl Found<'_> {
    /// Adds a node that has been a destination.
    fn add(&mut self, node: NodeId) {
        if self.nodes.len() >= MOST || !self.is_known.insert(node) {
            return;
        }
        let has_met_itself = || !self.store.pair_events(node, node, self.cut).is_empty();
        if node == self.src && !has_met_itself() {
            return;
        }
        let events = self.store.history(node, self.cut).events;
        if events.iter().rev().any(|event| self.store.destination(event) == node) {
            self.nodes.push(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use ctdg::event::EventStream;

    use super::*;

    #[test]
    fn partners_of_partners_are_found_and_sources_are_not() {
        // Users 0 to 2, items 3 to 6: 0 shares 3 with 1, who met 4.
        let stream =
            EventStream::from_events([(0, 3, 1.0), (1, 3, 2.0), (1, 4, 3.0), (2, 5, 4.0), (2, 6, 9.0)]).unwrap();
        let store = Store::build(&stream).unwrap();
        let found = near(&store, NodeId(0), store.cut(5.0));
        assert_eq!(found[..2], [3, 4].map(NodeId));
        assert_eq!(found[2..], [NodeId(5)], "popular, and not the later one");
        assert_eq!(near(&store, NodeId(99), store.cut(5.0)).len(), 3, "a new node gets popular ones");
    }
}
