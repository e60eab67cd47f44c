//! Timestamped interactions (events) between nodes, and time-ordered streams of them.
//!
//! A stream is stored in columns and sorted by `(time, position in the input)`. The position in that order *is* the
//! [`EventId`], so once a query time is turned into a [`Cut`], "before" is a comparison of ids.

mod builder;
mod column;
mod duplicates;
mod event_list;
mod growing_names;
mod ids;
mod names;
mod nearest;
mod origin;
mod permute;
mod prefix;
mod query;
mod roles;
mod spool;

use std::path::Path;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

pub use builder::{IdKind, RejectedRow, Role, StreamBuilder};
pub use column::Column;
pub(crate) use column::map_file;
pub(crate) use event_list::EventIdsMut;
pub use event_list::EventList;
pub(crate) use growing_names::{GrowingNames, NameTable, NameWriter};
pub(crate) use ids::{EventColumn, Form, IdWidth, Number, narrow};
pub use ids::{EventIdIter, EventIds, MAX_NARROW};
pub use names::{NameLookup, NodeNames};
pub(crate) use names::{Names, TextTable};
pub(crate) use origin::MappedFile;
use origin::Origin;
pub use prefix::Prefix;
pub use query::PairQuery;
pub use roles::Roles;
pub use spool::Spill;
pub(crate) use spool::Spool;

use crate::error::{Place, Problem, Result, counted};
use crate::time::TimeFormat;

/// A node, numbered densely from 0. Its name in the input is in [`NodeNames`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable, Serialize, Deserialize)]
#[repr(transparent)]
pub struct NodeId(pub u32);

/// An event: its position in the order by `(time, position in the input)`, from 0. Columns of them are stored in fewer bits where that
/// suffices; see [`EventIds`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable, Serialize, Deserialize)]
#[repr(transparent)]
pub struct EventId(pub u64);

impl NodeId {
    /// As an index into a slice.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// From an index, if it fits 32 bits.
    #[must_use]
    pub fn from_index(index: usize) -> Option<Self> {
        u32::try_from(index).ok().map(Self)
    }
}

impl EventId {
    /// As an index into a slice.
    #[must_use]
    #[inline]
    pub fn index(self) -> usize {
        index(self.0)
    }

    /// From an index.
    #[must_use]
    #[inline]
    pub fn from_index(index: usize) -> Self {
        Self(index as u64)
    }
}

/// A number of events, or the number of one, as an index into a slice.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the crate is for 64-bit machines, as stated below")]
fn index(number: u64) -> usize {
    const _: () = assert!(size_of::<usize>() == size_of::<u64>(), "numbers of events are 64-bit indices");
    number as usize
}

/// A boundary between two events of a stream: the events before it are those strictly before some time.
///
/// Only [`strictly_before`] makes one for a query, so that the leakage rule is decided in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cut(pub(crate) u64);

impl Cut {
    /// Before the first event.
    pub const START: Self = Self(0);

    /// Whether `event` lies before the cut.
    #[must_use]
    pub fn sees(self, event: EventId) -> bool {
        event.0 < self.0
    }

    /// The event that follows the cut, if the stream has one.
    #[inline]
    pub(crate) fn first_unseen(self) -> EventId {
        EventId(self.0)
    }

    /// Number of events of the stream before the cut.
    #[must_use]
    pub fn n_events(self) -> usize {
        index(self.0)
    }
}

/// The cut at time `t`: events with `time < t` lie before it, events at `t` or later do not. `times` is the time
/// column of a stream. This is the project's only comparison of an event's time with a query's.
#[must_use]
pub fn strictly_before(times: &[f64], t: f64) -> Cut {
    Cut(times.partition_point(|&time| time < t) as u64)
}

/// The cut after time `t`: events with `time <= t` lie before it. For splitting a stream, never for a query.
#[must_use]
pub fn up_to(times: &[f64], t: f64) -> Cut {
    Cut(times.partition_point(|&time| time <= t) as u64)
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event {
    /// Source node.
    pub src: NodeId,
    /// Destination node.
    pub dst: NodeId,
    /// Time, in the input's unit.
    pub time: f64,
    /// The input's label, 0 where it has none.
    pub label: f32,
}

/// A table of `f32` rows, one per event or one per node.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    width: usize,
    values: Column<f32>,
}

impl Features {
    /// Rows of `width` values each, one row after the other.
    pub fn new(width: usize, values: impl Into<Column<f32>>) -> Result<Self> {
        let values = values.into();
        if width == 0 || !values.len().is_multiple_of(width) {
            let (found, expected) = (values.len().checked_rem(width).unwrap_or(0) as u64, width as u64);
            return Err(Problem::FeatureWidth { found, expected }.into());
        }
        Ok(Self { width, values })
    }

    /// Values per row.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of rows.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        self.values.len() / self.width
    }

    /// Row `index`.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    pub fn row(&self, index: usize) -> &[f32] {
        &self.values[index * self.width..][..self.width]
    }

    /// All values, row after row; copied only if they are shared or mapped.
    pub(crate) fn into_values(self) -> Vec<f32> {
        self.values.into_vec()
    }

    /// All values, row after row.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.values
    }
}

/// Events sorted by `(time, position in the input)`, stored in columns. Clones share the columns.
///
/// ```
/// use ctdg::event::{EventStream, NodeId};
///
/// let stream = EventStream::from_events([(0, 1, 10.0), (1, 2, 20.0), (0, 2, 20.0)])?;
/// assert_eq!(stream.n_nodes(), 3);
/// assert_eq!(stream.cut(20.0).n_events(), 1, "events at 20 do not see each other");
/// assert_eq!(stream.src()[2], NodeId(0));
/// # Ok::<(), ctdg::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct EventStream {
    src: Column<NodeId>,
    dst: Column<NodeId>,
    time: Column<f64>,
    label: Column<f32>,
    edge_features: Option<Features>,
    node_features: Option<Features>,
    names: Arc<NodeNames>,
    time_format: TimeFormat,
    origin: Origin,
}

/// The columns of an [`EventStream`] before they are checked.
#[derive(Debug, Clone)]
pub struct Columns {
    /// Sources.
    pub src: Column<NodeId>,
    /// Destinations.
    pub dst: Column<NodeId>,
    /// Times, finite and ascending.
    pub time: Column<f64>,
    /// Labels.
    pub label: Column<f32>,
    /// One row per event, if any.
    pub edge_features: Option<Features>,
    /// One row per node, if any.
    pub node_features: Option<Features>,
    /// Node names; as many as there are nodes.
    pub names: NodeNames,
    /// How the input wrote its times.
    pub time_format: TimeFormat,
}

impl EventStream {
    /// Validates `columns`. Linear in the number of events; copies nothing.
    pub fn new(columns: Columns) -> Result<Self> {
        let Columns { src, dst, time, label, edge_features, node_features, names, time_format } = columns;
        let n = time.len();
        let too_many = |_| Problem::TooMany { what: "nodes", max: u64::from(u32::MAX) };
        let n_nodes = u32::try_from(names.len()).map_err(too_many)?;
        for (what, len) in [("sources", src.len()), ("destinations", dst.len()), ("labels", label.len())] {
            if len != n {
                return Err(damaged(format!("{len} {what} for {}", counted(n, "event"))));
            }
        }
        if let Some(node) = src.iter().chain(dst.iter()).find(|node| node.0 >= n_nodes) {
            return Err(damaged(format!("node {} of {n_nodes}", node.0)));
        }
        if let Some(n_sources) = names.n_sources() {
            if let Some(node) = src.iter().find(|node| node.0 >= n_sources) {
                return Err(damaged(format!("node {} as a source, though it is a destination", node.0)));
            }
            if let Some(node) = dst.iter().find(|node| node.0 < n_sources) {
                return Err(damaged(format!("node {} as a destination, though it is a source", node.0)));
            }
        }
        let mut previous = f64::NEG_INFINITY;
        for (row, &found) in time.iter().enumerate() {
            if !found.is_finite() {
                let problem = Problem::NonFiniteTime { found: found.to_string() };
                return Err(crate::Error::at(Place::default().row(row as u64), problem));
            }
            if found < previous {
                let problem = time_backwards(found, previous, time_format);
                return Err(crate::Error::at(Place::default().row(row as u64), problem));
            }
            previous = found;
        }
        for (features, expected, of) in [(&edge_features, n, "events"), (&node_features, names.len(), "nodes")] {
            if let Some(features) = features.as_ref().filter(|features| features.n_rows() != expected) {
                let (found, expected) = (features.n_rows() as u64, expected as u64);
                return Err(Problem::FeatureRows { found, expected, of }.into());
            }
        }
        Ok(Self::of_checked(Columns { src, dst, time, label, edge_features, node_features, names, time_format }))
    }

    /// The same stream, all of whose columns are those of the `.ctdg` file `path`.
    pub(crate) fn mapped_from(self, path: &Path) -> Self {
        Self { origin: Origin::file(path), ..self }
    }

    /// The file that it is mapped from, if its columns are exactly those of the file.
    pub(crate) fn origin(&self) -> Option<&MappedFile> {
        self.origin.get()
    }

    /// The `.ctdg` file that it is mapped from, if its columns are exactly those of the file.
    ///
    /// ```
    /// let stream = ctdg::event::EventStream::from_events([(0, 1, 1.0)])?;
    /// assert_eq!(stream.mapped_file(), None);
    /// # Ok::<(), ctdg::Error>(())
    /// ```
    #[must_use]
    pub fn mapped_file(&self) -> Option<&Path> {
        self.origin().map(MappedFile::path)
    }

    /// Of columns that are checked already, such as those of a stream that grew.
    pub(crate) fn of_checked(columns: Columns) -> Self {
        let Columns { src, dst, time, label, edge_features, node_features, names, time_format } = columns;
        let (names, origin) = (Arc::new(names), Origin::default());
        Self { src, dst, time, label, edge_features, node_features, names, time_format, origin }
    }

    /// A stream without labels and features from `(source, destination, time)` triples sorted by time. Nodes are
    /// `0..=largest id` and named by their ids.
    pub fn from_events(events: impl IntoIterator<Item = (u32, u32, f64)>) -> Result<Self> {
        let (mut src, mut dst, mut time) = (Vec::new(), Vec::new(), Vec::new());
        for (s, d, t) in events {
            src.push(NodeId(s));
            dst.push(NodeId(d));
            time.push(t);
        }
        let n_nodes = match src.iter().chain(&dst).max() {
            Some(last) => last.0.checked_add(1).ok_or(Problem::TooMany { what: "nodes", max: u64::from(u32::MAX) })?,
            None => 0,
        };
        Self::new(Columns {
            label: vec![0.0; time.len()].into(),
            src: src.into(),
            dst: dst.into(),
            time: time.into(),
            edge_features: None,
            node_features: None,
            names: NodeNames::counted(0, n_nodes),
            time_format: TimeFormat::Number,
        })
    }

    /// The columns of the stream.
    #[must_use]
    pub fn into_columns(self) -> Columns {
        let Self { src, dst, time, label, edge_features, node_features, names, time_format, origin: _ } = self;
        let names = Arc::unwrap_or_clone(names);
        Columns { src, dst, time, label, edge_features, node_features, names, time_format }
    }

    /// Refuses `events` that are not events of the stream in ascending order.
    pub(crate) fn check_order(&self, events: &[EventId]) -> Result<()> {
        if events.is_sorted_by(|a, b| a < b) && events.last().is_none_or(|last| last.index() < self.len()) {
            return Ok(());
        }
        let expected = "events of the stream in ascending order".into();
        Err(Problem::Setting { name: "events", found: "another order".into(), expected }.into())
    }

    /// Number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.time.len()
    }

    /// Whether there is no event.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }

    /// Number of nodes.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.names.len()
    }

    /// Sources, in order.
    #[must_use]
    pub fn src(&self) -> &[NodeId] {
        &self.src
    }

    /// Destinations, in order.
    #[must_use]
    pub fn dst(&self) -> &[NodeId] {
        &self.dst
    }

    /// Times, finite and ascending.
    #[must_use]
    pub fn times(&self) -> &[f64] {
        &self.time
    }

    /// The time just after the last event: every event lies strictly before it. Of dates it is the next whole microsecond, so that
    /// it can be written as one.
    ///
    /// ```
    /// let events = ctdg::event::EventStream::from_events([(0, 1, 1.0), (1, 0, 7.0)])?;
    /// assert!(events.end() > 7.0);
    /// assert_eq!(events.cut(events.end()).n_events(), 2);
    /// # Ok::<(), ctdg::Error>(())
    /// ```
    #[must_use]
    pub fn end(&self) -> f64 {
        self.times().last().map_or(0.0, |&last| self.time_format().just_after(last))
    }

    /// How the input wrote its times, and how they are shown.
    #[must_use]
    pub fn time_format(&self) -> TimeFormat {
        self.time_format
    }

    /// Labels, in order.
    #[must_use]
    pub fn labels(&self) -> &[f32] {
        &self.label
    }

    /// One row per event, if the input had any.
    #[must_use]
    pub fn edge_features(&self) -> Option<&Features> {
        self.edge_features.as_ref()
    }

    /// One row per node, if the input had any.
    #[must_use]
    pub fn node_features(&self) -> Option<&Features> {
        self.node_features.as_ref()
    }

    /// The nodes' names in the input.
    #[must_use]
    pub fn names(&self) -> &NodeNames {
        &self.names
    }

    /// The names, shared with the stream.
    pub(crate) fn shared_names(&self) -> Arc<NodeNames> {
        Arc::clone(&self.names)
    }

    /// Event `id`.
    ///
    /// # Panics
    /// When there is no such event.
    #[must_use]
    pub fn event(&self, id: EventId) -> Event {
        let i = id.index();
        Event { src: self.src[i], dst: self.dst[i], time: self.time[i], label: self.label[i] }
    }

    /// All event ids, in order.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = EventId> + Clone + use<> {
        (0..self.len()).map(EventId::from_index)
    }

    /// Sources and destinations; share their storage.
    pub(crate) fn endpoint_columns(&self) -> [Column<NodeId>; 2] {
        [self.src.clone(), self.dst.clone()]
    }

    /// The time column; shares its storage.
    #[must_use]
    pub fn time_column(&self) -> Column<f64> {
        self.time.clone()
    }

    /// The boundary of what a query at time `t` may see: events strictly before `t`. Logarithmic.
    #[must_use]
    pub fn cut(&self, t: f64) -> Cut {
        strictly_before(&self.time, t)
    }
}

/// A time before the `previous` one, in the form of the input.
pub(crate) fn time_backwards(found: f64, previous: f64, format: TimeFormat) -> Problem {
    match format {
        TimeFormat::Number => Problem::TimeBackwards { found, previous },
        TimeFormat::Date => Problem::DateBackwards { found: format.show(found), previous: format.show(previous) },
    }
}

fn damaged(detail: String) -> crate::Error {
    Problem::Corrupt { format: "event", detail }.into()
}
