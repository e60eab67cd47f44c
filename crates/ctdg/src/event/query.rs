//! What is asked of a stream: a pair at a time.

use super::{EventId, EventStream, NodeId};

/// A node pair and a query time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairQuery {
    /// Source.
    pub src: NodeId,
    /// Destination.
    pub dst: NodeId,
    /// Query time; only events strictly before it are seen.
    pub time: f64,
}

impl PairQuery {
    /// The pairs of `events`, at their own times.
    #[must_use]
    pub fn of(stream: &EventStream, events: &[EventId]) -> Vec<Self> {
        let query = |&id: &EventId| {
            let event = stream.event(id);
            Self { src: event.src, dst: event.dst, time: event.time }
        };
        events.iter().map(query).collect()
    }
}
