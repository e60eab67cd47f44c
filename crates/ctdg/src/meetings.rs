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
            return events.last().map(|&last| Meetings { count: count(events.len()), last });
        }
        let mut left = events.iter().rev().filter(|event| left_out.binary_search(event).is_err());
        let &last = left.next()?;
        Some(Meetings { count: count(left.count() + 1), last })
    }
}
