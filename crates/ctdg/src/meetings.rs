//! Meetings of two nodes: whether, how often and when last they interacted before a query.
//!
//! ```
//! use ctdg::event::{EventId, EventStream, NodeId};
//! use ctdg::store::Store;
//!
//! let store = Store::build(&EventStream::from_events([(0, 1, 1.0), (1, 0, 2.0), (0, 2, 3.0), (0, 1, 4.0)])?)?;
//! let (a, b, cut) = (NodeId(0), NodeId(1), store.cut(4.0));
//! let met = store.meetings(a, b, cut, &[]).expect("they met");
//! assert_eq!((met.count, met.last), (2, EventId(1)), "what happens at 4 is not before 4");
//! assert_eq!(store.meetings(a, b, cut, &[EventId(1)]).map(|met| met.last), Some(EventId(0)));
//! assert!(store.meetings(NodeId(1), NodeId(2), cut, &[]).is_none());
//! # Ok::<(), ctdg::Error>(())
//! ```

use crate::event::{Cut, EventId, NodeId};
use crate::row_table::RowTable;
use crate::store::Store;

/// The events of two nodes, in either direction, before a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meetings {
    /// How many there are, at least 1.
    pub count: usize,
    /// The last one.
    pub last: EventId,
}

impl Store {
    /// How `a` and `b` met before `cut`, as if the events of `left_out`, in ascending order, were not in the store. `None` if they did
    /// not. A self-loop is one meeting of a node with itself.
    ///
    /// One look-up in the pair index, then logarithmic in the number of meetings; with `left_out` linear in it.
    #[must_use]
    #[inline]
    pub fn meetings(&self, a: NodeId, b: NodeId, cut: Cut, left_out: &[EventId]) -> Option<Meetings> {
        let events = self.pair_events(a, b, cut);
        // A self-loop is in its list twice.
        let count = |n_entries: usize| if a == b { n_entries / 2 } else { n_entries };
        if left_out.is_empty() {
            return events.last().map(|last| Meetings { count: count(events.len()), last });
        }
        let mut left = events.iter().rev().filter(|event| left_out.binary_search(event).is_err());
        let last = left.next()?;
        Some(Meetings { count: count(left.count() + 1), last })
    }
}

/// Finds the meetings among a group of nodes. Keeps its allocations between groups.
///
/// ```
/// use ctdg::event::{EventStream, NodeId};
/// use ctdg::meetings::MeetingFinder;
/// use ctdg::store::Store;
///
/// let store = Store::build(&EventStream::from_events([(0, 1, 1.0), (5, 2, 2.0), (0, 1, 3.0), (2, 2, 4.0)])?)?;
/// let mut found = Vec::new();
/// let nodes = [NodeId(2), NodeId(1), NodeId(0)];
/// MeetingFinder::default().among(&store, &nodes, store.cut(9.0), &[], |pair, met| found.push((pair, met.count)));
/// assert_eq!(found, [([0, 0], 1), ([2, 1], 2)]); // node 2 with itself, nodes 0 and 1 twice
/// # Ok::<(), ctdg::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct MeetingFinder {
    positions: RowTable,
    /// For each position: entries of a history so far, and the event of the last one.
    entries: Vec<(usize, EventId)>,
    met: Vec<u32>,
}

impl MeetingFinder {
    /// Calls `found` with the positions in `nodes`, which are distinct, of each two that met before `cut`, and of each that met itself: the
    /// higher position first, in ascending order. `left_out` is as in [`Store::meetings`].
    ///
    /// A node is compared with those before it by its history where that is short, and by look-ups in the pair index otherwise.
    pub fn among(
        &mut self,
        store: &Store,
        nodes: &[NodeId],
        cut: Cut,
        left_out: &[EventId],
        mut found: impl FnMut([u32; 2], Meetings),
    ) {
        /// Entries of a history that are read, one after another, instead of one look-up at a random place. An estimate, not tuned.
        const ENTRIES_PER_LOOK_UP: usize = 8;
        self.positions.clear();
        for &node in nodes {
            self.positions.row(node);
        }
        debug_assert_eq!(self.positions.nodes().len(), nodes.len(), "nodes are distinct");
        self.entries.clear();
        self.entries.resize(nodes.len(), (0, EventId(0)));
        for (high, &node) in (0..).zip(nodes) {
            let history = store.history(node, cut);
            if history.len() > ENTRIES_PER_LOOK_UP * (high as usize + 1) {
                for (low, &other) in (0..=high).zip(nodes) {
                    if let Some(meetings) = store.meetings(node, other, cut, left_out) {
                        found([high, low], meetings);
                    }
                }
                continue;
            }
            for (&other, event) in history.neighbors.iter().zip(history.events) {
                let Some(low) = self.positions.get(other).filter(|&low| low <= high) else { continue };
                if !left_out.is_empty() && left_out.binary_search(&event).is_ok() {
                    continue;
                }
                let (count, last) = &mut self.entries[low as usize];
                if *count == 0 {
                    self.met.push(low);
                }
                *count += 1;
                *last = event;
            }
            self.met.sort_unstable();
            for low in self.met.drain(..) {
                let (count, last) = std::mem::replace(&mut self.entries[low as usize], (0, EventId(0)));
                // A self-loop is in its node's history twice.
                found([high, low], Meetings { count: if low == high { count / 2 } else { count }, last });
            }
        }
    }
}
