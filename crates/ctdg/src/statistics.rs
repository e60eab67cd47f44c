//! Exact statistics of a pair and of its two nodes over the whole past: how often, how recently, in which direction.
//!
//! A truncated sequence of neighbours does not know how old or how frequent things are; these numbers do. They are those of six lists of
//! events strictly before the query time:
//!
//! | columns | list | windows |
//! |---|---|---|
//! | [`PAIR`] | events from source to destination, and from destination to source | [`PAIR_WINDOWS`] |
//! | [`SOURCE`] | events of the source as a source, and as a destination | [`NODE_WINDOWS`] |
//! | [`DESTINATION`] | events of the destination as a source, and as a destination | [`NODE_WINDOWS`] |
//!
//! For each list: whether it has an event, the age of the newest one in events of the stream and in time, the number of events, and the
//! number among the newest `w` events of the stream for each window `w`. Ages and windows begin with a moment: events at one time
//! are as old as the first of them, so that their order in the input does not count. Where a list is empty the ages are twice those of the
//! first event of the stream.
//!
//! ```
//! use ctdg::event::{EventStream, NodeId};
//! use ctdg::mite::PairQuery;
//! use ctdg::statistics::{N_STATISTICS, PairStatistics};
//!
//! let stream = EventStream::from_events([(0, 1, 1.0), (2, 1, 4.0), (0, 1, 6.0), (1, 0, 9.0)])?;
//! let statistics = PairStatistics::build(&stream)?;
//! let mut row = [0.0; N_STATISTICS];
//! statistics.write(&PairQuery { src: NodeId(0), dst: NodeId(1), time: 8.0 }, &mut row);
//! // From 0 to 1: met, one event and two units of time ago, twice; both among the newest 4 events.
//! assert_eq!(row[..8], [1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0]);
//! assert_eq!(row[8], 0.0, "from 1 to 0 only later");
//! # Ok::<(), ctdg::Error>(())
//! ```
//!
//! # Complexity
//! A query takes O(log E) steps. An index over E events takes 12 bytes per event and 8 per node, and a pair index, which is that of the
//! [`Store`](crate::store::Store) where there is one.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::error::Result;
use crate::event::{
    Column, EventColumn, EventId, EventIds, EventList, EventStream, Form, NodeId, Number, PairQuery, narrow,
    strictly_before,
};
use crate::growing::{GrowingColumn, GrowingList, NodeTable};
use crate::index::{IndexFile, MappedPairs, Section, list_of};
use crate::pair_index::{PairIndex, check_number};

/// Newest events of the stream among which those of the pair are counted.
pub const PAIR_WINDOWS: [u32; 4] = [4, 64, 1 << 10, 1 << 14];

/// Newest events of the stream among which those of a node are counted.
pub const NODE_WINDOWS: [u32; 9] = [1, 4, 16, 64, 256, 1 << 10, 1 << 12, 1 << 14, 1 << 16];

/// Columns before those of the windows.
const N_PLAIN: usize = 4;
const N_PAIR: usize = N_PLAIN + PAIR_WINDOWS.len();
const N_NODE: usize = N_PLAIN + NODE_WINDOWS.len();

/// Columns of the pair.
pub const PAIR: Range<usize> = 0..2 * N_PAIR;
/// Columns of the source alone.
pub const SOURCE: Range<usize> = PAIR.end..PAIR.end + 2 * N_NODE;
/// Columns of the destination alone.
pub const DESTINATION: Range<usize> = SOURCE.end..SOURCE.end + 2 * N_NODE;
/// Number of columns.
pub const N_STATISTICS: usize = DESTINATION.end;

/// Statistics of pairs over a stream or a subset of its events. Clones share the index.
#[derive(Debug, Clone)]
pub struct PairStatistics {
    as_source: Arc<EventLists>,
    as_destination: Arc<EventLists>,
    /// The whole lists of nodes with later events, as source and as destination.
    grown: Option<Arc<NodeTable<[GrowingList<u32>; 2]>>>,
    pairs: PairIndex,
    /// For each event of the stream the first one at its time.
    moments: EventColumn,
    /// Times of the whole stream, shared with it.
    times: Column<f64>,
}

impl PairStatistics {
    /// Over all events of `stream`.
    pub fn build(stream: &EventStream) -> Result<Self> {
        Self::of_ids(stream, stream.ids())
    }

    /// Over `events` of `stream` only, in ascending order. Ages and windows still count all events of the stream.
    pub fn of_events(stream: &EventStream, events: &[EventId]) -> Result<Self> {
        stream.check_order(events)?;
        Self::of_ids(stream, events.iter().copied())
    }

    fn of_ids(stream: &EventStream, events: impl ExactSizeIterator<Item = EventId> + Clone) -> Result<Self> {
        check_number(events.len(), stream.len())?;
        let pairs = PairIndex::build(events.clone(), stream.endpoint_columns());
        Ok(Self::over(events, pairs, stream.time_column(), stream.n_nodes()))
    }

    /// Over `events`, ascending, with their index in a stream with these times.
    pub(crate) fn over(
        events: impl ExactSizeIterator<Item = EventId> + Clone,
        pairs: PairIndex,
        times: Column<f64>,
        n_nodes: usize,
    ) -> Self {
        // Not in parallel: `Store` holds a lock meanwhile, and a thread of rayon that waits for a part of this could take up a task that
        // waits for the lock.
        Self {
            as_source: Arc::new(EventLists::build(events.clone(), &pairs.endpoints()[0], n_nodes)),
            as_destination: Arc::new(EventLists::build(events, &pairs.endpoints()[1], n_nodes)),
            grown: None,
            pairs,
            moments: EventColumn::Narrow(moments(&times).into()),
            times,
        }
    }

    /// Those of an index file of some events, and of the one of all events, over a stream with these columns.
    pub(crate) fn mapped([part, all]: [&IndexFile; 2], endpoints: [Column<NodeId>; 2], times: Column<f64>) -> Self {
        let lists = |offsets, events| {
            Arc::new(EventLists::Mapped { offsets: part.column(offsets), events: part.events(events) })
        };
        Self {
            as_source: lists(Section::SourceOffsets, Section::SourceEvents),
            as_destination: lists(Section::DestinationOffsets, Section::DestinationEvents),
            grown: None,
            pairs: PairIndex::mapped(MappedPairs::of(part), endpoints),
            moments: all.events(Section::Moments),
            times,
        }
    }

    /// The same statistics, ready for later events.
    pub(crate) fn growing(&self) -> Self {
        Self { grown: Some(Arc::default()), pairs: self.pairs.growing(), ..self.clone() }
    }

    /// Adds the next event to statistics that are ready for it. It counts from the next [`PairStatistics::at`] on.
    pub(crate) fn push(&self, src: NodeId, dst: NodeId, event: EventId) {
        let grown = self.grown.as_ref().expect("statistics that are ready for later events");
        let lists = |node: NodeId| {
            let base = [&self.as_source, &self.as_destination];
            grown.get_or_init(node.index(), || {
                base.map(|lists| GrowingList::from_iter(lists.of(node).iter().map(narrow)))
            })
        };
        lists(src)[0].push(narrow(event));
        lists(dst)[1].push(narrow(event));
        self.pairs.push_from(src, dst, event);
    }

    /// The same over the events so far of `stream`, with their moments.
    pub(crate) fn at(&self, stream: &EventStream, moments: Column<u32>) -> Self {
        Self {
            as_source: Arc::clone(&self.as_source),
            as_destination: Arc::clone(&self.as_destination),
            grown: self.grown.clone(),
            pairs: self.pairs.at(stream.endpoint_columns()),
            times: stream.time_column(),
            moments: EventColumn::Narrow(moments),
        }
    }

    /// For each event of the stream the first one at its time.
    pub(crate) fn moments(&self) -> EventIds<'_> {
        self.moments.ids()
    }

    /// The statistics of one pair.
    ///
    /// # Panics
    /// When `row` has not [`N_STATISTICS`] columns.
    pub fn write(&self, query: &PairQuery, row: &mut [f32]) {
        write(self, query, &[], row);
    }

    /// The same as if the events of `left_out`, which are in ascending order, were not among those of the lists. Ages and windows
    /// still count all events of the stream.
    ///
    /// ```
    /// use ctdg::event::{EventId, EventStream, NodeId};
    /// use ctdg::mite::PairQuery;
    /// use ctdg::statistics::{N_STATISTICS, PairStatistics};
    ///
    /// let statistics = PairStatistics::build(&EventStream::from_events([(0, 1, 1.0), (0, 1, 6.0)])?)?;
    /// let mut row = [0.0; N_STATISTICS];
    /// let query = PairQuery { src: NodeId(0), dst: NodeId(1), time: 8.0 };
    /// statistics.write_without(&query, &[EventId(1)], &mut row);
    /// assert_eq!(row[..4], [1.0, 2.0, 7.0, 1.0]); // met, two events and seven units of time ago, once
    /// # Ok::<(), ctdg::Error>(())
    /// ```
    ///
    /// # Panics
    /// When `row` has not [`N_STATISTICS`] columns.
    pub fn write_without(&self, query: &PairQuery, left_out: &[EventId], row: &mut [f32]) {
        write(self, query, left_out, row);
    }

    /// One row of [`N_STATISTICS`] columns for each query, in parallel.
    #[must_use]
    pub fn rows(&self, queries: &[PairQuery]) -> Vec<f32> {
        /// Rows that are worth a task of their own.
        const CHUNK: usize = 256;
        let mut rows = vec![0.0; queries.len() * N_STATISTICS];
        rows.par_chunks_mut(CHUNK * N_STATISTICS).zip(queries.par_chunks(CHUNK)).for_each(|(rows, queries)| {
            for (row, query) in rows.chunks_exact_mut(N_STATISTICS).zip(queries) {
                self.write(query, row);
            }
        });
        rows
    }
}

/// Appends the first event at the time of the next event, whose time is the last of `times`.
pub(crate) fn push_moment(moments: &mut GrowingColumn<u32>, times: &[f64]) {
    let moment = match times {
        [.., previous, newest] if previous == newest => moments.values()[moments.values().len() - 1],
        _ => narrow(EventId::from_index(moments.values().len())),
    };
    moments.push(moment);
}

/// For each event the first one at its time.
fn moments(times: &[f64]) -> Vec<u32> {
    let mut first = 0;
    let moment = |(event, time): (u32, &f64)| {
        if times[first as usize] != *time {
            first = event;
        }
        first
    };
    (0..).zip(times).map(moment).collect()
}

/// Lists of events, one for each node.
#[derive(Debug)]
enum EventLists {
    InMemory {
        /// Start of each list, and the end of the last.
        offsets: Vec<u32>,
        events: Vec<u32>,
    },
    Mapped {
        offsets: Column<u64>,
        events: EventColumn,
    },
}

impl EventLists {
    /// Lists of `events` by their node in `nodes`. Counting sort: events come in order, so the lists are sorted.
    fn build(events: impl ExactSizeIterator<Item = EventId> + Clone, nodes: &[NodeId], n_nodes: usize) -> Self {
        let mut offsets = vec![0_u32; n_nodes + 1];
        for id in events.clone() {
            offsets[nodes[id.index()].index() + 1] += 1;
        }
        for node in 1..offsets.len() {
            offsets[node] += offsets[node - 1];
        }
        let mut sorted = vec![0_u32; events.len()];
        // While filling, `offsets[node]` is the slot of the next entry; afterwards it is the list's end.
        for id in events {
            let slot = &mut offsets[nodes[id.index()].index()];
            sorted[*slot as usize] = narrow(id);
            *slot += 1;
        }
        offsets.rotate_right(1);
        offsets[0] = 0;
        Self::InMemory { offsets, events: sorted }
    }

    #[inline]
    fn of(&self, node: NodeId) -> EventIds<'_> {
        match self {
            Self::InMemory { offsets, events } => EventIds::narrow(&events[list_of(offsets, node)]),
            Self::Mapped { offsets, events } => events.ids().slice(list_of(offsets, node)),
        }
    }
}

/// Lists of events, each ascending.
impl PairStatistics {
    fn as_source(&self, node: NodeId) -> EventIds<'_> {
        let grown = self.grown.as_ref().and_then(|grown| grown.get(node.index()));
        grown.map_or_else(|| self.as_source.of(node), |lists| EventIds::narrow(lists[0].as_slice()))
    }

    fn as_destination(&self, node: NodeId) -> EventIds<'_> {
        let grown = self.grown.as_ref().and_then(|grown| grown.get(node.index()));
        grown.map_or_else(|| self.as_destination.of(node), |lists| EventIds::narrow(lists[1].as_slice()))
    }
}

fn write(past: &PairStatistics, query: &PairQuery, left_out: &[EventId], row: &mut [f32]) {
    assert_eq!(row.len(), N_STATISTICS, "columns of a row of statistics");
    let PairQuery { src, dst, time } = *query;
    let at = Moment::new(past, time);
    let node_starts = NODE_WINDOWS.map(|window| at.window_start(window));
    let pair_starts = PAIR_WINDOWS.map(|window| at.window_start(window));
    let (pair, nodes) = row.split_at_mut(PAIR.end);
    for (columns, list) in pair.chunks_exact_mut(N_PAIR).zip(past.pairs.events_both_ways(src, dst)) {
        at.summarise_without(list, left_out, &pair_starts, columns);
    }
    let lists = [past.as_source(src), past.as_destination(src), past.as_source(dst), past.as_destination(dst)];
    for (columns, list) in nodes.chunks_exact_mut(N_NODE).zip(lists) {
        at.summarise_without(list, left_out, &node_starts, columns);
    }
}

/// A query time.
struct Moment<'a> {
    /// For each event of the stream the first one at its time.
    moments: EventIds<'a>,
    /// Times of the stream.
    times: &'a [f64],
    /// Number of events before it.
    n_before: u64,
    time: f64,
    /// Time since the first event of the stream.
    since_start: f64,
}

impl<'a> Moment<'a> {
    fn new(past: &'a PairStatistics, time: f64) -> Self {
        let times: &[f64] = &past.times;
        let n_before = strictly_before(times, time).0;
        let since_start = if n_before == 0 { 0.0 } else { time - times[0] };
        Self { moments: past.moments.ids(), times, n_before, time, since_start }
    }

    /// The first event of a window of the newest events: it begins with a moment.
    fn window_start(&self, window: u32) -> EventId {
        let first = self.n_before.checked_sub(u64::from(window)).map(EventId);
        first.map_or(EventId(0), |event| self.moments.at(event.index()))
    }

    /// The same of `list` without the events of `left_out`, both ascending.
    #[inline]
    fn summarise_without(&self, list: EventIds<'_>, left_out: &[EventId], starts: &[EventId], columns: &mut [f32]) {
        if left_out.is_empty() {
            return self.summarise(list, starts, columns);
        }
        let left: EventList = list.iter().filter(|event| left_out.binary_search(event).is_err()).collect();
        self.summarise(left.ids(), starts, columns);
    }

    /// Writes the columns of one list. `starts` are the first events of its windows, the latest first.
    fn summarise(&self, list: EventIds<'_>, starts: &[EventId], columns: &mut [f32]) {
        match list.form() {
            Form::Narrow(list) => self.summarise_list(list, starts, columns),
            Form::Wide(list) => self.summarise_list(list, starts, columns),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "a model's input")]
    fn summarise_list<T: Number>(&self, list: &[T], starts: &[EventId], columns: &mut [f32]) {
        let end = T::bound(EventId(self.n_before));
        let list = &list[..list.partition_point(|event| *event < end)];
        let (plain, windows) = columns.split_at_mut(N_PLAIN);
        let Some(newest) = list.last().map(|event| event.id()) else {
            plain.copy_from_slice(&[0.0, 2.0 * self.n_before as f32, (2.0 * self.since_start) as f32, 0.0]);
            windows.fill(0.0);
            return;
        };
        let age = self.n_before - self.moments.at(newest.index()).0;
        let elapsed = self.time - self.times[newest.index()];
        plain.copy_from_slice(&[1.0, age as f32, elapsed as f32, list.len() as f32]);
        let mut start = list.len();
        for (count, first) in windows.iter_mut().zip(starts) {
            start = first_from(&list[..start], T::bound(*first));
            *count = (list.len() - start) as f32;
        }
    }
}

/// The position in `list` of the first event from `first` on, searched from the end in steps that double.
fn first_from<T: Ord + Copy>(list: &[T], first: T) -> usize {
    let (mut end, mut step) = (list.len(), 1);
    while end > 0 {
        let probe = end.saturating_sub(step);
        if list[probe] < first {
            return probe + 1 + list[probe + 1..end].partition_point(|event| *event < first);
        }
        end = probe;
        step *= 2;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_from_the_end_equals_a_partition_point() {
        for n in 0..40 {
            let list: Vec<u64> = (0..n).map(|i| 3 * i).collect();
            for first in 0..130 {
                let expected = list.partition_point(|&event| event < first);
                assert_eq!(first_from(&list, first), expected, "{n} {first}");
            }
        }
    }

    #[test]
    fn columns_are_those_of_the_documentation() {
        assert_eq!((PAIR, SOURCE, DESTINATION, N_STATISTICS), (0..16, 16..42, 42..68, 68));
    }
}
