//! A store that grows while it is read: events are appended as they happen, and every answer is that of a store over all events so far.
//!
//! A [`LiveStore`] is written by one thread. It lends [`Snapshot`]s, each a stream and a store over the events of one time. They are cheap
//! to take, readers take no lock, and an event that is appended later changes nothing in them: a query sees events before its [`Cut`],
//! and a snapshot has no cut behind its last event.
//!
//! Under it lies an immutable index over the events of the last rebuild. The lists of nodes and pairs with later events are copied once and
//! grow from then on. [`Snapshot::rebuild`] makes a new index on any thread, meanwhile events are appended and read, and
//! [`LiveStore::adopt`] replaces the old one.
//!
//! ```
//! use ctdg::event::EventStream;
//! use ctdg::live::{LiveStore, NewEvent};
//!
//! let mut live = LiveStore::new(&EventStream::from_events([(0, 1, 1.0), (1, 2, 2.0)])?, true)?;
//! let before = live.snapshot();
//! live.append(&[NewEvent::new("0", "ann", 3.0), NewEvent::new("ann", "1", 3.0)])?;
//! let after = live.snapshot();
//!
//! let ann = after.lookup().source("ann").expect("she is known now");
//! assert_eq!(after.store().history(ann, after.store().cut(4.0)).len(), 2);
//! assert_eq!((before.stream().len(), before.lookup().source("ann")), (2, None));
//! assert!(live.append(&[NewEvent::new("1", "2", 2.5)]).is_err(), "time never goes backwards");
//!
//! let rebuilt = after.rebuild()?; // on any thread
//! live.adopt(rebuilt);
//! assert_eq!(live.snapshot().store().history(ann, after.store().cut(4.0)).len(), 2);
//! # Ok::<(), ctdg::Error>(())
//! ```
//!
//! # Memory
//! 20 bytes per event for columns without features and 32 for adjacency; with statistics 12 more. The pair index takes 6 to 12 bytes per
//! distinct pair, and 16 and 4 to 8 per event for one that met several times. Statistics share it. A server with 10 M events, most of
//! distinct pairs, holds 75 bytes an event. The lists of an event that came after the last rebuild take about 100 bytes, 150 with statistics,
//! and those of a node or pair are copied with its first such event; a rebuild frees all of that.

mod stream;

use std::ops::Range;

use crate::error::{Place, Problem, Result};
use crate::event::{Column, Cut, EventId, EventStream, NameLookup, NodeId, narrow, time_backwards};
use crate::growing::GrowingColumn;
use crate::pair_index::check_growing;
use crate::statistics::{PairStatistics, push_moment};
use crate::store::{Store, name_key, name_keys};
use stream::GrowingStream;

/// An event to append.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewEvent<'a> {
    /// The name of the source.
    pub src: &'a str,
    /// The name of the destination; in a bipartite stream names of both sides are apart.
    pub dst: &'a str,
    /// The time, not before that of the newest event.
    pub time: f64,
    /// The label.
    pub label: f32,
    /// As many features as other events have; zeros if there are none here.
    pub features: &'a [f32],
}

impl<'a> NewEvent<'a> {
    /// An event without label and features.
    #[must_use]
    pub fn new(src: &'a str, dst: &'a str, time: f64) -> Self {
        Self { src, dst, time, label: 0.0, features: &[] }
    }
}

/// A stream and its store, which grow. See the [module](self).
#[derive(Debug)]
pub struct LiveStore {
    stream: GrowingStream,
    name_keys: GrowingColumn<u64>,
    destinations: DestinationWriter,
    index: Index,
}

/// Lists of events, ready for later ones.
#[derive(Debug)]
struct Index {
    store: Store,
    /// With the first event of each moment.
    statistics: Option<(PairStatistics, GrowingColumn<u32>)>,
    /// Events when it was built.
    n_built: usize,
    /// Events that it has.
    n_events: usize,
}

/// Distinct destinations, in the order of their first event.
#[derive(Debug)]
struct DestinationWriter {
    nodes: GrowingColumn<NodeId>,
    /// The first event of each as a destination.
    first: GrowingColumn<EventId>,
    is_known: Vec<bool>,
    first_loop: Option<EventId>,
}

impl DestinationWriter {
    fn new() -> Self {
        let (nodes, first) = (GrowingColumn::new(&[]), GrowingColumn::new(&[]));
        Self { nodes, first, is_known: Vec::new(), first_loop: None }
    }

    fn push(&mut self, src: NodeId, dst: NodeId, event: EventId) {
        if self.is_known.len() <= dst.index() {
            self.is_known.resize(dst.index() + 1, false);
        }
        if !std::mem::replace(&mut self.is_known[dst.index()], true) {
            self.nodes.push(dst);
            self.first.push(event);
        }
        if src == dst {
            self.first_loop.get_or_insert(event);
        }
    }
}

impl LiveStore {
    /// Begins with the events of `stream`, whose nodes keep their numbers. With `statistics` those of pairs are kept up to date; without
    /// them they are built again for each snapshot that is asked for them.
    pub fn new(stream: &EventStream, statistics: bool) -> Result<Self> {
        check_growing(stream.len())?;
        let mut destinations = DestinationWriter::new();
        for (id, (&src, &dst)) in stream.ids().zip(stream.src().iter().zip(stream.dst())) {
            destinations.push(src, dst, id);
        }
        let name_keys = GrowingColumn::new(&name_keys(stream.names()));
        let stream = GrowingStream::new(stream);
        // Over the columns that grow: it shares them, and would keep those of the stream.
        let index = Index::build(&stream.now(), statistics)?;
        Ok(Self { stream, name_keys, destinations, index })
    }

    /// Number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stream.time.values().len()
    }

    /// Whether there is no event yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of nodes.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.stream.names.len()
    }

    /// The time of the newest event.
    #[must_use]
    pub fn newest_time(&self) -> Option<f64> {
        self.stream.time.values().last().copied()
    }

    /// Features of an event, if events have any.
    #[must_use]
    pub fn edge_width(&self) -> Option<usize> {
        self.stream.edge_features.as_ref().map(|features| features.width)
    }

    /// Events that came after the last rebuild: [`Snapshot::rebuild`] when there are many.
    #[must_use]
    pub fn n_since_rebuild(&self) -> usize {
        self.len() - self.index.n_built
    }

    /// Appends `events`, all of them or, if one is refused, none. Returns their numbers. An error names the row.
    pub fn append(&mut self, events: &[NewEvent<'_>]) -> Result<Range<usize>> {
        self.check(events)?;
        let first = self.len();
        for event in events {
            self.push(event)?;
        }
        Ok(first..self.len())
    }

    /// Refuses what [`LiveStore::append`] would refuse.
    pub fn check(&self, events: &[NewEvent<'_>]) -> Result<()> {
        check_growing(self.len().saturating_add(events.len()))?;
        let mut previous = self.newest_time().unwrap_or(f64::NEG_INFINITY);
        for (row, event) in (0..).zip(events) {
            self.check_event(event, previous)
                .map_err(|problem| crate::Error::at(Place::default().row(row), problem))?;
            previous = event.time;
        }
        Ok(())
    }

    /// Refuses what is wrong with an event whenever it is appended: anything but its time.
    pub fn check_alone(&self, event: &NewEvent<'_>) -> Result<()> {
        Ok(self.check_event(event, f64::NEG_INFINITY)?)
    }

    fn check_event(&self, event: &NewEvent<'_>, previous: f64) -> std::result::Result<(), Problem> {
        let &NewEvent { src, dst, time, label, features } = event;
        if src.is_empty() || dst.is_empty() {
            return Err(Problem::NotANumber { found: "\"\"".to_owned(), expected: "a node id" });
        }
        if !time.is_finite() {
            return Err(Problem::NonFiniteTime { found: time.to_string() });
        }
        if time < previous {
            return Err(time_backwards(time, previous, self.stream.time_format));
        }
        if let Some(&value) = features.iter().chain([&label]).find(|value| !value.is_finite()) {
            return Err(Problem::NonFiniteValue { found: value.to_string() });
        }
        let width = self.edge_width().unwrap_or(0);
        if !features.is_empty() && features.len() != width {
            return Err(Problem::FeatureWidth { found: features.len() as u64, expected: width as u64 });
        }
        Ok(())
    }

    fn push(&mut self, event: &NewEvent<'_>) -> Result<()> {
        let id = EventId::from_index(self.len());
        let n_known = self.stream.names.len();
        let [src, dst] = self.stream.names.ends(event.src, event.dst)?;
        // At most one new node on each side, in this order.
        let new = [(src, event.src, true), (dst, event.dst, !self.stream.names.is_bipartite())];
        for (node, name, is_on_source_side) in new {
            if node.index() >= n_known && node.index() == self.name_keys.values().len() {
                self.name_keys.push(name_key(is_on_source_side, name.as_bytes()));
                self.stream.push_node();
            }
        }
        self.stream.push([src, dst], event);
        self.destinations.push(src, dst, id);
        self.index.push(src, dst, id, self.stream.time.values());
        Ok(())
    }

    /// The events so far, with their store.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let stream = self.stream.now();
        let of_index = self.index.statistics.as_ref();
        let statistics = of_index.map(|(statistics, moments)| statistics.at(&stream, Column::of_growing(moments)));
        Snapshot {
            store: self.index.store.at(&stream, statistics, Column::of_growing(&self.name_keys)),
            has_statistics: of_index.is_some(),
            lookup: self.stream.names.lookup(),
            destinations: Column::of_growing(&self.destinations.nodes),
            first_as_destination: Column::of_growing(&self.destinations.first),
            first_loop: self.destinations.first_loop,
            stream,
        }
    }

    /// Replaces the index by one that [`Snapshot::rebuild`] made from an earlier snapshot of this store. Snapshots that are out keep the
    /// old one.
    pub fn adopt(&mut self, rebuilt: Rebuilt) {
        let Rebuilt(mut index) = rebuilt;
        let GrowingStream { src, dst, time, .. } = &self.stream;
        index.extend([src.values(), dst.values()], time.values());
        self.index = index;
    }
}

impl Index {
    fn build(stream: &EventStream, statistics: bool) -> Result<Self> {
        let store = Store::build(stream)?;
        let statistics = statistics.then(|| {
            let statistics = store.new_statistics();
            let moments: Vec<u32> = statistics.moments().iter().map(narrow).collect();
            let moments = GrowingColumn::new(&moments);
            (statistics.at(stream, Column::of_growing(&moments)).growing(), moments)
        });
        Ok(Self { store: store.growing(), statistics, n_built: stream.len(), n_events: stream.len() })
    }

    /// Adds those of these events that it does not have yet.
    fn extend(&mut self, [src, dst]: [&[NodeId]; 2], times: &[f64]) {
        for at in self.n_events..times.len() {
            self.push(src[at], dst[at], EventId::from_index(at), &times[..=at]);
        }
    }

    /// Adds the next event; `times` ends with its own.
    fn push(&mut self, src: NodeId, dst: NodeId, id: EventId, times: &[f64]) {
        self.n_events = id.index() + 1;
        self.store.push(src, dst, id, times[id.index()]);
        if let Some((statistics, moments)) = &mut self.statistics {
            statistics.push(src, dst, id);
            push_moment(moments, times);
        }
    }
}

/// An index over the events of a snapshot, made by [`Snapshot::rebuild`].
#[derive(Debug)]
pub struct Rebuilt(Index);

impl Rebuilt {
    /// Adds the events of a later snapshot, so that [`LiveStore::adopt`] has less to do. Returns how many there were.
    pub fn catch_up(&mut self, snapshot: &Snapshot) -> usize {
        let n_before = self.0.n_events;
        let stream = snapshot.stream();
        self.0.extend([stream.src(), stream.dst()], stream.times());
        self.0.n_events - n_before
    }
}

/// The events of a [`LiveStore`] at one time, with their store. Later events change nothing in it.
#[derive(Debug)]
pub struct Snapshot {
    stream: EventStream,
    store: Store,
    has_statistics: bool,
    lookup: NameLookup,
    destinations: Column<NodeId>,
    first_as_destination: Column<EventId>,
    first_loop: Option<EventId>,
}

impl Snapshot {
    /// The events.
    #[must_use]
    pub fn stream(&self) -> &EventStream {
        &self.stream
    }

    /// Their store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Finds nodes by name.
    #[must_use]
    pub fn lookup(&self) -> &NameLookup {
        &self.lookup
    }

    /// The distinct destinations of the events before `cut`, in the order of their first event.
    ///
    /// ```
    /// use ctdg::event::{EventStream, NodeId};
    /// use ctdg::live::LiveStore;
    ///
    /// let live = LiveStore::new(&EventStream::from_events([(0, 2, 1.0), (1, 2, 2.0), (2, 1, 3.0)])?, false)?;
    /// let now = live.snapshot();
    /// assert_eq!(now.destinations(now.store().cut(3.0)), [NodeId(2)]);
    /// assert_eq!(now.destinations(now.store().cut(4.0)), [NodeId(2), NodeId(1)]);
    /// # Ok::<(), ctdg::Error>(())
    /// ```
    #[must_use]
    pub fn destinations(&self, cut: Cut) -> &[NodeId] {
        &self.destinations[..self.first_as_destination.partition_point(|&event| cut.sees(event))]
    }

    /// Whether a node interacted with itself before `cut`.
    #[must_use]
    pub fn has_loops(&self, cut: Cut) -> bool {
        self.first_loop.is_some_and(|event| event.index() < self.stream.len() && cut.sees(event))
    }

    /// A new index over these events, for [`LiveStore::adopt`]. Linear in the number of events; events may be appended meanwhile.
    pub fn rebuild(&self) -> Result<Rebuilt> {
        Index::build(&self.stream, self.has_statistics).map(Rebuilt)
    }
}
