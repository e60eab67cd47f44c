//! Reads the histories of several queries ahead, so that their waits for memory overlap.
//!
//! In a store larger than the caches every step of a binary search, and every line of a history, waits for memory. Steps of one search
//! depend on each other, those of different searches do not: taken in turns, they wait at the same time. No answer depends on it.

use std::hint::black_box;

use super::{History, Store};
use crate::event::{Cut, NodeId};

/// Histories whose searches are taken in turns.
const GROUP: usize = 32;

/// Adjacency from which it pays, about the size of the last cache. Measured by pairs encoded on one thread: 12% slower at 5 MB, 3 to 5%
/// faster at 20 MB, 11% at 41 MB, 22% at 500 MB.
const MIN_BYTES: usize = 32 << 20;

/// Entries of a list in one line of 64 bytes: nodes or narrow event ids, and times.
const PER_LINE: [usize; 2] = [16, 8];

impl Store {
    /// Whether reading ahead pays.
    pub(crate) fn is_beyond_caches(&self) -> bool {
        self.base.bytes() > MIN_BYTES
    }

    /// Brings the newest `most` entries of each node's history before its cut into the caches, in `O(log d + most)` for a list of `d`.
    pub(crate) fn read_ahead(&self, mut histories: impl Iterator<Item = (NodeId, Cut)>, most: usize) {
        let mut group = Vec::with_capacity(GROUP);
        let mut touched = 0;
        loop {
            group.clear();
            group.extend(histories.by_ref().take(GROUP).map(|(node, cut)| Search::new(self.list(node), cut)));
            if group.is_empty() {
                break;
            }
            while group.iter_mut().fold(false, |moved, search| search.step() | moved) {}
            touched += group.iter().map(|search| search.touch(most)).sum::<usize>();
        }
        black_box(touched);
    }
}

/// A binary search for the end of a history.
struct Search<'a> {
    list: History<'a>,
    cut: Cut,
    /// The end lies in `low..=high`.
    low: usize,
    high: usize,
}

impl<'a> Search<'a> {
    fn new(list: History<'a>, cut: Cut) -> Self {
        Self { list, cut, low: 0, high: list.events.len() }
    }

    /// Halves the range; whether there was anything to halve.
    #[inline]
    fn step(&mut self) -> bool {
        if self.low >= self.high {
            return false;
        }
        let middle = usize::midpoint(self.low, self.high);
        if self.cut.sees(self.list.events.at(middle)) {
            self.low = middle + 1;
        } else {
            self.high = middle;
        }
        true
    }

    /// Reads one entry of each line of the newest `most` entries.
    fn touch(&self, most: usize) -> usize {
        let newest = self.low.saturating_sub(most)..self.low;
        let [ids, times] = PER_LINE.map(|per_line| newest.clone().rev().step_by(per_line));
        let of_ids = ids.map(|at| self.list.neighbors[at].index() ^ self.list.events.at(at).index());
        let of_times = times.map(|at| usize::from(self.list.times[at] > 0.0));
        of_ids.fold(0, usize::wrapping_add).wrapping_add(of_times.sum())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::EventStream;

    proptest! {
        #[test]
        fn searches_in_turns_end_where_histories_do(
            events in prop::collection::vec((0_u32..5, 0_u32..5, 0_u8..20), 1..80),
            most in 0_usize..40,
        ) {
            let mut events = events;
            events.sort_by_key(|event| event.2);
            let stream = EventStream::from_events(events.into_iter().map(|(u, v, time)| (u, v, f64::from(time)))).unwrap();
            let store = Store::build(&stream).unwrap();
            // Also a node without events, and times before and after all.
            let queries = (0..7).flat_map(|node| (0..22).map(move |time| (NodeId(node), f64::from(time))));
            let queries: Vec<_> = queries.map(|(node, time)| (node, store.cut(time))).collect();
            store.read_ahead(queries.iter().copied(), most);
            for (node, cut) in queries {
                let mut search = Search::new(store.list(node), cut);
                while search.step() {}
                prop_assert_eq!(search.low, store.history(node, cut).len());
                search.touch(most);
            }
        }
    }
}
