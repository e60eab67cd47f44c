//! Untrained scores of links, to print beside every model: what memory and popularity alone can do.
//!
//! | name | score of a pair |
//! |---|---|
//! | `edgebank-unlimited`, `-window-proportional`, `-window-interval`, `-repeat` | 1 if an [`EdgeBank`] remembers it, else 0 |
//! | `recency-popularity` | how lately it met and how busy its destination is: [`RecencyPopularity`] |
//!
//! A pass goes batch after batch, in order, with heuristics made anew for it by [`all`].
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
//! let [met, strangers] = [event.dst, NodeId(2)].map(|dst| PairQuery { src: event.src, dst, time: event.time });
//! for mut heuristic in heuristic::all(&stream, &store, base)? {
//!     let scores = heuristic.score(batch, &[met, strangers])?;
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

/// Scores pairs without having learnt anything.
pub trait Heuristic {
    /// What to call it in a table.
    fn name(&self) -> String;

    /// One finite score for each of `queries`, higher for likelier pairs. `batch` are the pass's events that are being
    /// asked about, ascending and later than those of all calls before; they become part of the past of later batches.
    /// After an error everything is as it was.
    fn score(&mut self, batch: &[EventId], queries: &[PairQuery]) -> Result<Vec<f32>>;
}

/// All five for one pass over `stream`: `base` are the events known before the pass (`negative::Pass::base`),
/// `store` is what models ask about the past, built over all of `stream`.
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
