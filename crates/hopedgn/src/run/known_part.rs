//! The events of a run in a log that has grown since.

use ctdg::event::{EventId, EventStream, Features, NodeId, Prefix};

use super::DataRecord;
use crate::{Events, Result};

/// The events that a run knows; made by [`DataRecord::known_part`].
#[derive(Debug, Clone)]
pub struct KnownPart {
    /// The run's events alone, numbered as they were then.
    pub events: Events,
    /// For each of their nodes its number in the grown stream.
    pub nodes: Vec<NodeId>,
    /// How many events follow.
    pub n_newer: usize,
}

impl DataRecord {
    /// The events of the run in a stream that begins with them; refuses any other. New nodes change the numbers of the old ones,
    /// and splits, memories and checkpoints name nodes by number: the part has the numbers of then.
    ///
    /// ```
    /// use hopedgn::{Events, run::DataRecord};
    ///
    /// let events = Events::from_tuples([("bob", "eve", 1.0), ("eve", "bob", 2.0)])?;
    /// let record = DataRecord::of(&events);
    /// let grown = Events::from_tuples([("bob", "eve", 1.0), ("eve", "bob", 2.0), ("ann", "bob", 3.0)])?;
    /// let known = record.known_part(&grown)?;
    /// assert_eq!((known.events.len(), known.n_newer), (2, 1));
    /// assert_eq!(known.events.src(), events.src());
    /// # Ok::<(), hopedgn::Error>(())
    /// ```
    pub fn known_part(&self, events: &Events) -> Result<KnownPart> {
        let n_newer = events.len().saturating_sub(self.events);
        let is_same = |stream: &EventStream| self.check(stream).is_ok() && self.check_by_name(stream).is_ok();
        if n_newer == 0 && events.n_nodes() == self.nodes && is_same(events) {
            let nodes = (0..events.n_nodes()).filter_map(NodeId::from_index).collect();
            return Ok(KnownPart { events: events.clone(), nodes, n_newer });
        }
        let is_it = |part: &Prefix| part.stream.n_nodes() == self.nodes && is_same(&part.stream);
        let known = |part: Prefix| KnownPart { events: events.with_stream(part.stream), nodes: part.nodes, n_newer };
        if events.len() >= self.events && events.n_nodes() >= self.nodes {
            let part = events.prefix_stream(self.events)?;
            if is_it(&part) {
                return Ok(known(part));
            }
            if let Some(part) = events.prefix_of_integers(self.events)?.filter(is_it) {
                return Ok(known(part));
            }
            // Nodes without events, which some formats have, keep their numbers.
            if is_same(events) {
                return Ok(known(events.prefix_with_nodes(self.events, self.nodes)?));
            }
        }
        Err(self.mismatch(events))
    }
}

/// The first event in which two streams differ.
///
/// ```
/// use hopedgn::{Events, run::Difference};
///
/// let one = Events::from_tuples([("a", "b", 1.0), ("b", "a", 2.0)])?;
/// let other = Events::from_tuples([("a", "b", 1.0), ("b", "c", 2.0), ("c", "a", 3.0)])?;
/// let difference = Difference::first(&one, &other).expect("they differ");
/// assert_eq!(difference.to_string(), "event 2: found b, c at 2, expected b, a at 2");
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The event, counted from 1.
    pub event: usize,
    /// What is there.
    pub found: String,
    /// What the other stream has there.
    pub expected: String,
}

impl Difference {
    /// Where `found` first differs from the events of `expected`; more events at its end are no difference.
    #[must_use]
    pub fn first(expected: &EventStream, found: &EventStream) -> Option<Self> {
        for id in expected.ids() {
            if id.index() >= found.len() {
                let (event, expected) = (id.index() + 1, shown(expected, id));
                return Some(Self { event, found: "the end".to_owned(), expected });
            }
            let [mut one, mut other] = [shown(expected, id), shown(found, id)];
            if one == other && features(expected, id) != features(found, id) {
                one += " with other features";
                other += " with these features";
            }
            if one != other {
                return Some(Self { event: id.index() + 1, found: other, expected: one });
            }
        }
        None
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "event {}: found {}, expected {}", self.event, self.found, self.expected)
    }
}

fn shown(stream: &EventStream, id: EventId) -> String {
    let event = stream.event(id);
    let [src, dst] = [event.src, event.dst].map(|node| stream.names().name(node));
    format!("{src}, {dst} at {}", stream.time_format().show(event.time))
}

/// All that a model reads of an event beside its nodes and time.
fn features(stream: &EventStream, id: EventId) -> (u64, Vec<u32>) {
    let event = stream.event(id);
    let row = |table: Option<&Features>, row: usize| table.map_or(&[][..], |table| table.row(row)).to_vec();
    let nodes = [event.src, event.dst].map(|node| row(stream.node_features(), node.index())).concat();
    let all = [row(stream.edge_features(), id.index()), nodes].concat();
    (event.time.to_bits(), all.into_iter().filter(|&value| value != 0.0).map(f32::to_bits).collect())
}
