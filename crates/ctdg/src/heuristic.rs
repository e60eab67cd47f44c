//! Link prediction baselines without training: [`EdgeBank`], and recency with popularity.
//!
//! | name | score of a pair |
//! |---|---|
//! | `edgebank-unlimited`, `-window-proportional`, `-window-interval`, `-repeat` | 1 if it is in the memory of an [`EdgeBank`], else 0 |
//! | `recency-popularity` | recency of its last event and popularity of its destination: [`RecencyPopularity`] |
//!
//! A pass scores batch after batch, in order, with new heuristics from [`all`].
//!
//! ```
//! use ctdg::event::{EventStream, NodeId};
//! use ctdg::heuristic;
//! use ctdg::mite::PairQuery;
//! use ctdg::store::Store;
//!
//! let stream = EventStream::from_events([(0, 1, 1.0), (2, 1, 2.0), (0, 1, 3.0)])?;
//! let store = Store::build(&stream)?;
//! let ids: Vec<_> = stream.ids().collect();
//! let (base, batch) = ids.split_at(2);
//! let event = stream.event(batch[0]);
//! let [known, unknown] = [event.dst, NodeId(2)].map(|dst| PairQuery { src: event.src, dst, time: event.time });
//! for mut heuristic in heuristic::all(&stream, &store, base)? {
//!     let scores = heuristic.score(batch, &[known, unknown])?;
//!     assert!(scores[0] >= scores[1], "{}", heuristic.name());
//! }
//! # Ok::<(), ctdg::Error>(())
//! ```

mod edge_bank;
mod recency;

pub use edge_bank::{EdgeBank, EdgeBankMode};
pub use recency::RecencyPopularity;

use crate::error::Result;
use crate::event::{EventId, EventStream};
use crate::mite::PairQuery;
use crate::store::Store;

/// The names of [`all`] heuristics.
pub const NAMES: [&str; 5] = [
    "edgebank-unlimited",
    "edgebank-window-proportional",
    "edgebank-window-interval",
    "edgebank-repeat",
    "recency-popularity",
];

/// An untrained link scorer.
pub trait Heuristic {
    /// Its name in tables.
    fn name(&self) -> String;

    /// One finite score per query, higher for likelier pairs. `batch` are the events of the pass being scored, ascending
    /// and later than those of all earlier calls; later batches see them as history. An error leaves the state unchanged.
    fn score(&mut self, batch: &[EventId], queries: &[PairQuery]) -> Result<Vec<f32>>;
}

/// All five, for one pass over `stream`. `base` are the events known before the pass
/// (`negative::Pass::base`); `store` is built over all of `stream`.
pub fn all<'s>(
    stream: &'s EventStream,
    store: &'s Store,
    base: &[EventId],
) -> Result<Vec<Box<dyn Heuristic + Send + 's>>> {
    let mut all: Vec<Box<dyn Heuristic + Send + 's>> = Vec::new();
    for mode in EdgeBankMode::ALL {
        all.push(Box::new(EdgeBank::new(stream, base, mode)?));
    }
    all.push(Box::new(RecencyPopularity::new(store)));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_all_heuristics() {
        let stream = EventStream::from_events([(0, 1, 1.0), (1, 2, 2.0), (0, 2, 3.0)]).unwrap();
        let store = Store::build(&stream).unwrap();
        let base: Vec<EventId> = stream.ids().collect();
        let mut found: Vec<String> = all(&stream, &store, &base).unwrap().iter().map(|h| h.name()).collect();
        let mut expected = NAMES.to_vec();
        found.sort();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}
