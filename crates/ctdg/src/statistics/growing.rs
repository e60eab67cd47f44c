//! The same statistics over a stream that grows.

use rustc_hash::FxHashMap;

use super::{Past, write};
use crate::error::{Problem, Result};
use crate::event::{EventId, NodeId, PairQuery};

/// [`PairStatistics`](super::PairStatistics) of a live stream: an event is added in constant time, and every answer equals that of an
/// index over the events so far.
///
/// ```
/// use ctdg::event::NodeId;
/// use ctdg::mite::PairQuery;
/// use ctdg::statistics::{GrowingStatistics, N_STATISTICS};
///
/// let mut statistics = GrowingStatistics::default();
/// statistics.push(NodeId(0), NodeId(1), 1.0)?;
/// statistics.push(NodeId(0), NodeId(1), 3.0)?;
/// let mut row = [0.0; N_STATISTICS];
/// statistics.write(&PairQuery { src: NodeId(0), dst: NodeId(1), time: 4.0 }, &mut row);
/// assert_eq!(row[..4], [1.0, 1.0, 1.0, 2.0]); // met, one event and one unit of time ago, twice
/// assert!(statistics.push(NodeId(0), NodeId(1), 2.0).is_err(), "time never goes backwards");
/// # Ok::<(), ctdg::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct GrowingStatistics {
    as_source: Vec<Vec<EventId>>,
    as_destination: Vec<Vec<EventId>>,
    pairs: FxHashMap<(NodeId, NodeId), Vec<EventId>>,
    moments: Vec<u32>,
    times: Vec<f64>,
}

impl GrowingStatistics {
    /// Adds the next event. Refused if its time is before that of the newest one.
    pub fn push(&mut self, src: NodeId, dst: NodeId, time: f64) -> Result<()> {
        let id = EventId::from_index(self.times.len())
            .ok_or(Problem::TooMany { what: "events", max: u64::from(u32::MAX) })?;
        let moment = match self.times.last() {
            Some(&previous) if time < previous => return Err(Problem::TimeBackwards { found: time, previous }.into()),
            Some(&previous) if time == previous => self.moments[self.moments.len() - 1],
            _ => id.0,
        };
        self.times.push(time);
        self.moments.push(moment);
        for (lists, node) in [(&mut self.as_source, src), (&mut self.as_destination, dst)] {
            if lists.len() <= node.index() {
                lists.resize_with(node.index() + 1, Vec::new);
            }
            lists[node.index()].push(id);
        }
        self.pairs.entry((src, dst)).or_default().push(id);
        Ok(())
    }

    /// Number of events.
    #[must_use]
    pub fn n_events(&self) -> usize {
        self.times.len()
    }

    /// The statistics of one pair.
    ///
    /// # Panics
    /// When `row` has not [`N_STATISTICS`](super::N_STATISTICS) columns.
    pub fn write(&self, query: &PairQuery, row: &mut [f32]) {
        write(self, query, &[], row);
    }
}

impl Past for GrowingStatistics {
    fn times(&self) -> &[f64] {
        &self.times
    }

    fn moments(&self) -> &[u32] {
        &self.moments
    }

    fn as_source(&self, node: NodeId) -> &[EventId] {
        self.as_source.get(node.index()).map_or(&[], Vec::as_slice)
    }

    fn as_destination(&self, node: NodeId) -> &[EventId] {
        self.as_destination.get(node.index()).map_or(&[], Vec::as_slice)
    }

    fn directed(&self, src: NodeId, dst: NodeId) -> &[EventId] {
        self.pairs.get(&(src, dst)).map_or(&[], Vec::as_slice)
    }
}
