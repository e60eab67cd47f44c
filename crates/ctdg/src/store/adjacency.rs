//! Lists of the interactions of each node, in memory or mapped.

use super::History;
use crate::event::{Column, EventColumn, EventId, EventIds, EventStream, IdWidth, NodeId, narrow};
use crate::huge_pages;
use crate::index::{IndexFile, Section, list_of};

/// Time-sorted lists of all nodes, one after the other.
#[derive(Debug)]
pub(super) enum Adjacency {
    InMemory {
        /// Start of each node's list, and the end of the last.
        offsets: Vec<u32>,
        neighbors: Vec<NodeId>,
        events: Vec<u32>,
        times: Vec<f64>,
    },
    Mapped {
        offsets: Column<u64>,
        neighbors: Column<NodeId>,
        events: EventColumn,
        times: Column<f64>,
    },
}

impl Adjacency {
    /// Those of an index file.
    pub(super) fn mapped(file: &IndexFile) -> Self {
        Self::Mapped {
            offsets: file.column(Section::Offsets),
            neighbors: file.column(Section::Neighbors),
            events: file.events(Section::Events),
            times: file.column(Section::Times),
        }
    }

    /// The list of a node.
    #[inline]
    pub(super) fn list(&self, node: NodeId) -> History<'_> {
        match self {
            Self::InMemory { offsets, neighbors, events, times } => {
                let list = list_of(offsets, node);
                let events = EventIds::narrow(&events[list.clone()]);
                History { neighbors: &neighbors[list.clone()], events, times: &times[list] }
            }
            Self::Mapped { offsets, neighbors, events, times } => {
                let list = list_of(offsets, node);
                let events = events.ids().slice(list.clone());
                History { neighbors: &neighbors[list.clone()], events, times: &times[list] }
            }
        }
    }

    /// Where the list of a node begins.
    pub(super) fn start(&self, node: NodeId) -> usize {
        match self {
            Self::InMemory { offsets, .. } => list_of(offsets, node).start,
            Self::Mapped { offsets, .. } => list_of(offsets, node).start,
        }
    }

    /// How the numbers of its events are stored.
    pub(super) fn width(&self) -> IdWidth {
        match self {
            Self::InMemory { .. } | Self::Mapped { events: EventColumn::Narrow(_), .. } => IdWidth::Narrow,
            Self::Mapped { events: EventColumn::Wide(_), .. } => IdWidth::Wide,
        }
    }

    /// The events of all lists.
    pub(super) fn events(&self) -> EventIds<'_> {
        match self {
            Self::InMemory { events, .. } => EventIds::narrow(events),
            Self::Mapped { events, .. } => events.ids(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        fn bytes<T>(values: &Vec<T>) -> usize {
            values.capacity() * size_of::<T>()
        }
        match self {
            Self::InMemory { offsets, neighbors, events, times } => {
                bytes(offsets) + bytes(neighbors) + bytes(events) + bytes(times)
            }
            Self::Mapped { offsets, neighbors, events, times } => {
                size_of_val(&**offsets) + size_of_val(&**neighbors) + events.bytes() + size_of_val(&**times)
            }
        }
    }

    /// Counting sort: events come in order, so the lists are sorted. They are no more than
    /// [`check_number`](crate::pair_index::check_number) takes.
    pub(super) fn build(stream: &EventStream, ids: impl ExactSizeIterator<Item = EventId> + Clone) -> Self {
        let (src, dst, stream_times) = (stream.src(), stream.dst(), stream.times());
        let mut offsets = vec![0u32; stream.n_nodes() + 1];
        for id in ids.clone() {
            offsets[src[id.index()].index() + 1] += 1;
            offsets[dst[id.index()].index() + 1] += 1;
        }
        for node in 1..offsets.len() {
            offsets[node] += offsets[node - 1];
        }
        let n = 2 * ids.len();
        let mut neighbors = vec![NodeId(0); n];
        let mut events = vec![0_u32; n];
        let mut times = vec![0.0; n];
        huge_pages::advise(&mut neighbors);
        huge_pages::advise(&mut events);
        huge_pages::advise(&mut times);
        // While filling, `offsets[node]` is the slot of the next entry; afterwards it is the list's end.
        for id in ids {
            let (u, v) = (src[id.index()], dst[id.index()]);
            for (node, neighbor) in [(u, v), (v, u)] {
                let slot = offsets[node.index()] as usize;
                neighbors[slot] = neighbor;
                events[slot] = narrow(id);
                times[slot] = stream_times[id.index()];
                offsets[node.index()] += 1;
            }
        }
        offsets.rotate_right(1);
        offsets[0] = 0;
        Self::InMemory { offsets, neighbors, events, times }
    }
}
