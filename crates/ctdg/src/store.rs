//! Temporal adjacency: histories of nodes and of node pairs.
//!
//! A [`Store`] holds an undirected, time-sorted adjacency list (each event is in the lists of both its nodes, a self-loop
//! twice in the one list) and an index from unordered pairs to their events. Every query carries a [`Cut`] and returns
//! only events before it, so later events never change a result.
//!
//! # Memory
//! 32 bytes per event and 4 per node for the adjacency with its times ([`Store::adjacency_bytes`]); 6 to 12 bytes per distinct
//! pair for the pair index, and 16 and 4 to 8 per event for a pair that met several times ([`Store::pair_index_bytes`]). Building
//! takes linear time. Random sampling adds 8 bytes per node for keys of their names, [`Store::statistics`] what [`PairStatistics`]
//! says.
//!
//! A store over a `.ctdg` file with an [index] is mapped: it takes no memory of its own, and gives the same answers.

mod adjacency;
mod read_ahead;

use std::sync::{Arc, OnceLock};

use adjacency::Adjacency;

use crate::error::Result;
use crate::event::{
    Column, Cut, EventId, EventIds, EventList, EventStream, IdWidth, NodeId, NodeNames, narrow, strictly_before,
};
use crate::growing::{GrowingList, NodeTable};
use crate::index::{self, IndexFile, MappedPairs};
use crate::pair_index::{PairIndex, check_number};
use crate::random::RandomStream;
use crate::statistics::PairStatistics;
use crate::time::TimeFormat;

/// Time-sorted adjacency and pair index over a stream or a subset of its events.
///
/// ```
/// use ctdg::event::{EventStream, NodeId};
/// use ctdg::store::Store;
///
/// let stream = EventStream::from_events([(0, 1, 1.0), (1, 2, 2.0), (0, 1, 2.0), (0, 2, 3.0)])?;
/// let store = Store::build(&stream)?;
/// let past = store.history(NodeId(0), store.cut(3.0));
/// assert_eq!(past.neighbors, [NodeId(1), NodeId(1)]);
/// assert_eq!(past.times, [1.0, 2.0]);
/// assert_eq!(store.pair_events(NodeId(1), NodeId(0), store.cut(2.0)).len(), 1, "events at 2 are not before 2");
/// # Ok::<(), ctdg::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Store {
    base: Arc<Adjacency>,
    /// The index files of its events and of all, if it is mapped.
    files: Option<Arc<[IndexFile; 2]>>,
    /// The whole lists of nodes with later events.
    grown: Option<Arc<NodeTable<GrowingHistory>>>,
    /// Nodes of a stream that has grown since `base` was built.
    n_nodes: usize,
    /// With sources and destinations of the whole stream.
    pairs: PairIndex,
    /// Times of the whole stream, shared with it.
    stream_times: Column<f64>,
    /// Names of its nodes, shared with it.
    names: Arc<NodeNames>,
    /// Made at the first use.
    statistics: OnceLock<PairStatistics>,
    time_format: TimeFormat,
    /// Made at the first random sample.
    name_keys: OnceLock<Column<u64>>,
}

/// Consecutive interactions of one node, oldest first: neighbor, event and time in parallel columns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct History<'a> {
    /// The other node.
    pub neighbors: &'a [NodeId],
    /// The event.
    pub events: EventIds<'a>,
    /// The event's time.
    pub times: &'a [f64],
}

impl<'a> History<'a> {
    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The `k` most recent entries, or all if there are fewer.
    #[must_use]
    pub fn last(self, k: usize) -> History<'a> {
        let skip = self.len().saturating_sub(k);
        let events = self.events.slice(skip..self.len());
        History { neighbors: &self.neighbors[skip..], events, times: &self.times[skip..] }
    }

    /// Indices of the `k` most recent entries, newest first, whose event is not among `left_out`, which is in ascending order.
    pub fn last_without(self, k: usize, left_out: &[EventId]) -> impl Iterator<Item = usize> {
        let is_left = move |at: &usize| left_out.binary_search(&self.events.at(*at)).is_err();
        (0..self.len()).rev().filter(is_left).take(k)
    }
}

impl Store {
    /// Over all events of `stream`: its [index], if there is one beside the file that it was read from, and in memory otherwise.
    pub fn build(stream: &EventStream) -> Result<Self> {
        match index::of_all(stream)? {
            Some(file) => Ok(Self::mapped(stream, [file.clone(), file])),
            None => Self::over(stream, stream.ids()),
        }
    }

    /// Over `events` of `stream` only (the training split, say), in ascending order. Where there is an [index] of the stream, the part is
    /// indexed beside it, the first time that it is asked for.
    pub fn of_events(stream: &EventStream, events: &[EventId]) -> Result<Self> {
        stream.check_order(events)?;
        match index::of_part(stream, events)? {
            Some(files) => Ok(Self::mapped(stream, files)),
            None => Self::over(stream, events.iter().copied()),
        }
    }

    /// Over the index files of its events and of all.
    fn mapped(stream: &EventStream, files: [IndexFile; 2]) -> Self {
        let pairs = PairIndex::mapped(MappedPairs::of(&files[0]), stream.endpoint_columns());
        let adjacency = Adjacency::mapped(&files[0]);
        Self { files: Some(Arc::new(files)), ..Self::new(stream, adjacency, pairs) }
    }

    /// Whether it is mapped from an [index] instead of in memory.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        self.files.is_some()
    }

    fn over(stream: &EventStream, ids: impl ExactSizeIterator<Item = EventId> + Clone + Send + Sync) -> Result<Self> {
        check_number(ids.len(), stream.len())?;
        let (of_nodes, of_pairs) = (ids.clone(), ids);
        let (adjacency, pairs) = rayon::join(
            || Adjacency::build(stream, of_nodes),
            || PairIndex::build_in_parallel(of_pairs, stream.endpoint_columns()),
        );
        Ok(Self::new(stream, adjacency, pairs))
    }

    fn new(stream: &EventStream, adjacency: Adjacency, pairs: PairIndex) -> Self {
        Self {
            base: Arc::new(adjacency),
            files: None,
            grown: None,
            n_nodes: stream.n_nodes(),
            pairs,
            stream_times: stream.time_column(),
            names: stream.shared_names(),
            statistics: OnceLock::new(),
            time_format: stream.time_format(),
            name_keys: OnceLock::new(),
        }
    }

    /// The boundary of what a query at time `t` may see: events strictly before `t`.
    #[must_use]
    pub fn cut(&self, t: f64) -> Cut {
        strictly_before(&self.stream_times, t)
    }

    /// Number of nodes; larger ids have an empty history.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.n_nodes
    }

    /// Number of events of the stream, all of which a store that grows has.
    pub(crate) fn n_events(&self) -> usize {
        self.stream_times.len()
    }

    /// How the numbers of events are stored in histories.
    pub(crate) fn id_width(&self) -> IdWidth {
        self.base.width()
    }

    /// All interactions of `node` before `cut`, oldest first. Logarithmic in the length of its list; copies nothing.
    #[must_use]
    #[inline]
    pub fn history(&self, node: NodeId, cut: Cut) -> History<'_> {
        let History { neighbors, events, times } = self.list(node);
        let n = events.n_before(cut.first_unseen());
        History { neighbors: &neighbors[..n], events: events.slice(0..n), times: &times[..n] }
    }

    /// All interactions of `node`.
    #[inline]
    fn list(&self, node: NodeId) -> History<'_> {
        let grown = self.grown.as_ref().and_then(|grown| grown.get(node.index()));
        grown.map_or_else(|| self.base.list(node), GrowingHistory::list)
    }

    /// Statistics of pairs over the events of the store; made at the first call, in linear time.
    ///
    /// ```
    /// use ctdg::event::{EventStream, NodeId, PairQuery};
    /// use ctdg::{statistics::N_STATISTICS, store::Store};
    ///
    /// let store = Store::build(&EventStream::from_events([(0, 1, 1.0), (0, 1, 2.0)])?)?;
    /// let query = PairQuery { src: NodeId(0), dst: NodeId(1), time: 3.0 };
    /// assert_eq!(store.statistics().rows(&[query]).len(), N_STATISTICS);
    /// # Ok::<(), ctdg::Error>(())
    /// ```
    pub fn statistics(&self) -> &PairStatistics {
        self.statistics.get_or_init(|| self.new_statistics())
    }

    /// Statistics over the events of the store, which share its pair index unless it has grown.
    pub(crate) fn new_statistics(&self) -> PairStatistics {
        if let (Some(files), None) = (&self.files, &self.grown) {
            let endpoints = self.pairs.endpoints().clone();
            return PairStatistics::mapped(files.each_ref(), endpoints, self.stream_times.clone());
        }
        let events = self.event_ids();
        let pairs = match self.grown {
            None => self.pairs.clone(),
            Some(_) => PairIndex::build(events.ids().iter(), self.pairs.endpoints().clone()),
        };
        PairStatistics::over(events.ids().iter(), pairs, self.stream_times.clone(), self.n_nodes())
    }

    /// Whether `node` is the source of `event`.
    ///
    /// # Panics
    /// When there is no such event.
    ///
    /// ```
    /// use ctdg::{event::{EventId, EventStream, NodeId}, store::Store};
    ///
    /// let store = Store::build(&EventStream::from_events([(0, 1, 1.0)])?)?;
    /// assert!(store.is_source(NodeId(0), EventId(0)) && !store.is_source(NodeId(1), EventId(0)));
    /// # Ok::<(), ctdg::Error>(())
    /// ```
    #[must_use]
    pub fn is_source(&self, node: NodeId, event: EventId) -> bool {
        self.pairs.endpoints()[0][event.index()] == node
    }

    /// The destination of `event`.
    ///
    /// # Panics
    /// When there is no such event.
    #[must_use]
    pub fn destination(&self, event: EventId) -> NodeId {
        self.pairs.endpoints()[1][event.index()]
    }

    /// The events of the store, in order.
    pub(crate) fn event_ids(&self) -> EventList {
        let n = self.stream_times.len();
        // A store that grows has all events of its stream.
        if self.grown.is_some() || self.base.events().len() == 2 * n {
            return (0..n).map(EventId::from_index).collect();
        }
        let mut is_in_store = vec![false; n];
        for event in self.base.events() {
            is_in_store[event.index()] = true;
        }
        (0..n).map(EventId::from_index).filter(|id| is_in_store[id.index()]).collect()
    }

    /// Source and destination of an event of the stream.
    pub(crate) fn endpoints(&self, event: EventId) -> [NodeId; 2] {
        self.pairs.ends(event)
    }

    /// The names of the nodes of the stream.
    #[must_use]
    pub fn names(&self) -> &NodeNames {
        &self.names
    }

    /// How the stream's input wrote its times.
    #[must_use]
    pub fn time_format(&self) -> TimeFormat {
        self.time_format
    }

    /// 64 bits for each node that depend on its name alone, and on its side in bipartite data. Numbers of nodes change when
    /// a stream gains others; names do not.
    pub(crate) fn name_keys(&self) -> &[u64] {
        self.name_keys.get_or_init(|| name_keys(&self.names).into())
    }

    /// Start of the list of `node` in the columns of a store that does not grow.
    pub(crate) fn list_start(&self, node: NodeId) -> usize {
        self.base.start(node)
    }

    /// Each node's list of times, in order of node. `None` of a store that grows, and of one that is mapped: what is computed from all of
    /// them would have to be in memory.
    pub(crate) fn lists_of_times(&self) -> Option<impl Iterator<Item = &[f64]>> {
        let nodes = (0..self.n_nodes).filter_map(NodeId::from_index);
        let lists = nodes.map(|node| self.base.list(node).times);
        (self.grown.is_none() && !self.is_mapped()).then_some(lists)
    }

    /// The same store, ready for later events.
    pub(crate) fn growing(&self) -> Self {
        Self { grown: Some(Arc::default()), pairs: self.pairs.growing(), ..self.clone() }
    }

    /// Adds the next event to a store that is ready for it. It is seen from the next [`Store::at`] on.
    pub(crate) fn push(&self, src: NodeId, dst: NodeId, event: EventId, time: f64) {
        let grown = self.grown.as_ref().expect("a store that is ready for later events");
        for (node, neighbor) in [(src, dst), (dst, src)] {
            let lists = grown.get_or_init(node.index(), || GrowingHistory::new(self.base.list(node)));
            lists.push(neighbor, event, time);
        }
        self.pairs.push(src, dst, event);
    }

    /// The same store with the events of `stream`, all of which have been pushed.
    pub(crate) fn at(&self, stream: &EventStream, statistics: Option<PairStatistics>, name_keys: Column<u64>) -> Self {
        Self {
            base: Arc::clone(&self.base),
            files: self.files.clone(),
            grown: self.grown.clone(),
            n_nodes: stream.n_nodes(),
            pairs: self.pairs.at(stream.endpoint_columns()),
            stream_times: stream.time_column(),
            names: stream.shared_names(),
            statistics: statistics.map_or_else(OnceLock::new, OnceLock::from),
            time_format: stream.time_format(),
            name_keys: OnceLock::from(name_keys),
        }
    }

    /// The events between `a` and `b`, in either direction, before `cut`, oldest first; as in the adjacency lists, a
    /// self-loop occurs twice.
    #[must_use]
    #[inline]
    pub fn pair_events(&self, a: NodeId, b: NodeId, cut: Cut) -> EventIds<'_> {
        let events = self.pairs.events(a, b);
        events.slice(0..events.n_before(cut.first_unseen()))
    }

    /// The time of an event of the stream.
    ///
    /// # Panics
    /// When the stream has no such event.
    #[must_use]
    #[inline]
    pub fn time(&self, event: EventId) -> f64 {
        self.stream_times[event.index()]
    }

    /// The times of all events of the stream, for loops that should not look the column up at every step.
    #[inline]
    pub(crate) fn times(&self) -> &[f64] {
        &self.stream_times
    }

    /// Bytes of the adjacency and its times, in memory or in the file of an [index].
    #[must_use]
    pub fn adjacency_bytes(&self) -> usize {
        self.base.bytes()
    }

    /// Bytes of the pair index, in memory or in the file of an [index].
    #[must_use]
    pub fn pair_index_bytes(&self) -> usize {
        self.pairs.bytes()
    }
}

/// For each node 64 bits that depend on its name, and on its side in bipartite data.
pub(crate) fn name_keys(names: &NodeNames) -> Vec<u64> {
    let mut keys = Vec::with_capacity(names.len());
    names.each_written(|name| {
        let node = NodeId::from_index(keys.len()).expect("nodes are numbered by u32");
        keys.push(name_key(names.is_on_source_side(node), name));
    });
    keys
}

/// That of one name.
pub(crate) fn name_key(is_on_source_side: bool, name: &[u8]) -> u64 {
    RandomStream::name_key(u64::from(!is_on_source_side), name)
}

/// The list of a node that grows; all three in parallel.
#[derive(Debug)]
struct GrowingHistory {
    neighbors: GrowingList<NodeId>,
    times: GrowingList<f64>,
    /// Written last: its length is that of the list.
    events: GrowingList<u32>,
}

impl GrowingHistory {
    fn new(History { neighbors, events, times }: History<'_>) -> Self {
        Self {
            neighbors: GrowingList::new(neighbors),
            times: GrowingList::new(times),
            events: GrowingList::from_iter(events.iter().map(narrow)),
        }
    }

    fn push(&self, neighbor: NodeId, event: EventId, time: f64) {
        self.neighbors.push(neighbor);
        self.times.push(time);
        self.events.push(narrow(event));
    }

    #[inline]
    fn list(&self) -> History<'_> {
        // First, since the others are at least as long.
        let events = EventIds::narrow(self.events.as_slice());
        History { events, neighbors: self.neighbors.as_slice(), times: self.times.as_slice() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ```text
    /// time 1   2   2   3   4
    ///      0-1 1-2 2-2 0-1 2-0      3 is alone
    /// ```
    fn small() -> EventStream {
        EventStream::from_events([(0, 1, 1.0), (1, 2, 2.0), (2, 2, 2.0), (0, 1, 3.0), (2, 0, 4.0), (3, 3, 9.0)])
            .unwrap()
    }

    #[test]
    fn self_loop_is_twice_in_its_list() {
        let stream = small();
        let store = Store::build(&stream).unwrap();
        let past = store.history(NodeId(2), store.cut(100.0));
        assert_eq!(past.events, [1, 2, 2, 4].map(EventId));
        assert_eq!(past.neighbors, [1, 2, 2, 0].map(NodeId));
        assert_eq!(store.pair_events(NodeId(2), NodeId(2), store.cut(100.0)), [2, 2].map(EventId));
    }

    #[test]
    fn events_at_the_query_time_are_excluded() {
        let stream = small();
        let store = Store::build(&stream).unwrap();
        assert_eq!(store.history(NodeId(1), store.cut(2.0)).events, [EventId(0)]);
        assert_eq!(store.pair_events(NodeId(1), NodeId(0), store.cut(3.0)), [EventId(0)]);
        assert!(store.history(NodeId(3), store.cut(9.0)).is_empty());
        assert!(store.history(NodeId(77), store.cut(9.0)).is_empty(), "an unknown node has no history");
    }

    #[test]
    fn store_of_a_subset_contains_only_its_events() {
        let stream = small();
        let store = Store::of_events(&stream, &[EventId(0), EventId(4)]).unwrap();
        assert_eq!(store.history(NodeId(0), store.cut(100.0)).events, [0, 4].map(EventId));
        assert!(Store::of_events(&stream, &[EventId(4), EventId(0)]).is_err());
        assert!(Store::of_events(&stream, &[EventId(6)]).is_err());
    }
}
