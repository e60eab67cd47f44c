//! An order of pairs in which a chunk embeds a source once.

use std::borrow::Cow;

use ctdg::mite::PairQuery;
use rustc_hash::FxHashMap;

use crate::collate::{HopLayout, Layout};

/// The pairs of a batch in an order in which those of one source and time follow each other: of each place there, the place in the batch;
/// nothing if the batch stays as it is.
#[derive(Debug, Default)]
pub(super) struct SourceOrder(Option<Vec<usize>>);

impl SourceOrder {
    /// Pairs stay as they are for a model that embeds nodes by their pair, or if they are in such an order.
    pub(super) fn of(layout: Layout, queries: &[PairQuery]) -> Self {
        if !matches!(layout, Layout::Hops(HopLayout { shares_roots: true, .. })) {
            return Self(None);
        }
        let mut seen = FxHashMap::default();
        let first = |(at, query): (usize, &PairQuery)| *seen.entry((query.src, query.time.to_bits())).or_insert(at);
        let firsts: Vec<usize> = queries.iter().enumerate().map(first).collect();
        if firsts.is_sorted() {
            return Self(None);
        }
        let mut order: Vec<usize> = (0..queries.len()).collect();
        order.sort_by_key(|&at| firsts[at]);
        Self(Some(order))
    }

    /// The pairs in this order.
    pub(super) fn apply<'q>(&self, queries: &'q [PairQuery]) -> Cow<'q, [PairQuery]> {
        match &self.0 {
            Some(order) => order.iter().map(|&at| queries[at]).collect(),
            None => queries.into(),
        }
    }

    /// The scores of these pairs in the order of the batch.
    pub(super) fn undo(&self, scores: Vec<f32>) -> Vec<f32> {
        let Some(order) = &self.0 else { return scores };
        let mut of_batch = vec![0.0; scores.len()];
        for (&at, score) in order.iter().zip(scores) {
            of_batch[at] = score;
        }
        of_batch
    }
}

#[cfg(test)]
mod tests {
    use ctdg::event::NodeId;

    use super::*;

    fn query(src: u32, dst: u32, time: f64) -> PairQuery {
        PairQuery { src: NodeId(src), dst: NodeId(dst), time }
    }

    #[test]
    fn pairs_of_a_source_follow_each_other_and_scores_return_to_their_places() {
        let layout = Layout::Hops(HopLayout { shares_roots: true, ..HopLayout::default() });
        let queries = [query(1, 2, 3.0), query(4, 2, 3.0), query(1, 5, 3.0), query(1, 5, 4.0), query(4, 6, 3.0)];
        let order = SourceOrder::of(layout, &queries);
        let [one, other, of_one, later, of_other] = queries;
        assert_eq!(*order.apply(&queries), [one, of_one, other, of_other, later]);
        assert_eq!(order.undo(vec![0.1, 0.2, 0.3, 0.4, 0.5]), [0.1, 0.3, 0.2, 0.5, 0.4]);
        assert!(SourceOrder::of(layout, &queries[..2]).0.is_none(), "in order");
        assert!(SourceOrder::of(Layout::Hops(HopLayout::default()), &queries).0.is_none());
    }
}
