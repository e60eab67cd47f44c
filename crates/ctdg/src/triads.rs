//! Triads around a pair: which of its common past neighbours met each other, and how recently.
//!
//! Counts of meetings with `u` and `v` do not show whether the nodes that met both form a group of their own; these columns do, and so
//! reach beyond what 2-DWL separates. With `C` the newest common neighbours of `u` and `v` strictly before the query, at most
//! [`MOST_COMMON`]:
//!
//! | column | is |
//! |---|---|
//! | 0 | \|C\| |
//! | 1 | the number of two nodes of `C` that met each other |
//! | 2 … | for each half-life `h` of [`HALF_LIVES`] the sum over them of 2^(−a / h), `a` the age of their last meeting in events of the stream |
//!
//! An age begins with a moment, as those of [statistics](crate::statistics). Common neighbours are looked for among the newest
//! [`MOST_EVENTS`] events of whichever of the two nodes has fewer.
//!
//! ```
//! use ctdg::event::{EventStream, NodeId, PairQuery};
//! use ctdg::store::Store;
//! use ctdg::triads::{N_TRIADS, TriadFinder};
//!
//! // 2 and 3 met both 0 and 1, and each other in the newest event.
//! let stream = EventStream::from_events([(0, 2, 1.0), (1, 2, 2.0), (0, 3, 3.0), (3, 1, 4.0), (2, 3, 5.0)])?;
//! let mut row = [0.0; N_TRIADS];
//! let query = PairQuery { src: NodeId(0), dst: NodeId(1), time: 6.0 };
//! TriadFinder::new(&Store::build(&stream)?).write(&query, &[], &mut row);
//! assert_eq!(row[..2], [2.0, 1.0]);
//! assert_eq!(row[2], (-1.0_f32 / 64.0).exp2());
//! # Ok::<(), ctdg::Error>(())
//! ```

use crate::event::{EventId, NodeId, PairQuery};
use crate::meetings::MeetingFinder;
use crate::row_table::RowTable;
use crate::store::{History, Store};

/// Common neighbours that are compared, at most: 496 pairs of them.
pub const MOST_COMMON: usize = 32;

/// Newest events of a node among which they are looked for.
pub const MOST_EVENTS: usize = 512;

/// Half-lives of a meeting, in events of the stream.
pub const HALF_LIVES: [f32; 4] = [64.0, 1024.0, 16_384.0, 262_144.0];

/// Number of columns.
pub const N_TRIADS: usize = 2 + HALF_LIVES.len();

/// 1 as a fixed-point number. Sums of those do not depend on the order of nodes.
const ONE: f32 = (1 << 24) as f32;

/// A number of at most 1.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 2^24")]
fn fixed_point(value: f32) -> u32 {
    (value * ONE).round() as u32
}

/// Computes the columns of pairs. Keeps its allocations between pairs.
#[derive(Debug)]
pub struct TriadFinder<'a> {
    store: &'a Store,
    seen: RowTable,
    common: Vec<NodeId>,
    meetings: MeetingFinder<'a>,
}

impl<'a> TriadFinder<'a> {
    /// Looks for triads in `store`.
    #[must_use]
    pub fn new(store: &'a Store) -> Self {
        Self { store, seen: RowTable::default(), common: Vec::new(), meetings: MeetingFinder::new(store) }
    }

    /// Writes the columns of one pair, as if the events of `left_out`, in ascending order, were not in the store. Ages still count all
    /// events of the stream.
    ///
    /// # Panics
    /// When `row` has not [`N_TRIADS`] columns.
    pub fn write(&mut self, query: &PairQuery, left_out: &[EventId], row: &mut [f32]) {
        assert_eq!(row.len(), N_TRIADS, "columns of a row of triads");
        let store = self.store;
        let cut = store.cut(query.time);
        self.find_common(query, left_out);
        let moments = store.statistics().moments();
        let mut n_met = 0;
        let mut weights = [0_u64; HALF_LIVES.len()];
        self.meetings.among_in_any_order(&self.common, cut, left_out, |[high, low], met| {
            if high == low {
                return;
            }
            n_met += 1;
            let age = (cut.0 - moments.at(met.last.index()).0) as f32;
            for (sum, half_life) in weights.iter_mut().zip(HALF_LIVES) {
                *sum += u64::from(fixed_point((-age / half_life).exp2()));
            }
        });
        row[..2].copy_from_slice(&[self.common.len() as f32, n_met as f32]);
        for (column, weight) in row[2..].iter_mut().zip(weights) {
            *column = weight as f32 / ONE;
        }
    }

    /// Fills `self.common`, the newest first.
    fn find_common(&mut self, query: &PairQuery, left_out: &[EventId]) {
        let store = self.store;
        let PairQuery { src, dst, time } = *query;
        let cut = store.cut(time);
        self.common.clear();
        self.seen.clear();
        let is_left = |event: &EventId| left_out.is_empty() || left_out.binary_search(event).is_err();
        let [of_src, of_dst] = [src, dst].map(|node| store.history(node, cut));
        let n_left = |history: &History<'_>| match left_out {
            [] => history.len(),
            _ => history.events.iter().filter(|event| is_left(event)).count(),
        };
        let (shorter, other) = if n_left(&of_dst) < n_left(&of_src) { (of_dst, src) } else { (of_src, dst) };
        let events = shorter.neighbors.iter().zip(shorter.events).rev().filter(|(_, event)| is_left(event));
        for (&node, _) in events.take(MOST_EVENTS) {
            if self.seen.get(node).is_some() || node == src || node == dst {
                continue;
            }
            self.seen.row(node);
            if store.meetings(node, other, cut, left_out).is_some() {
                self.common.push(node);
                if self.common.len() == MOST_COMMON {
                    return;
                }
            }
        }
    }
}
