//! Builds the file of an index within a memory limit.

use std::io;
use std::path::Path;

use bytemuck::{Pod, Zeroable};

use super::external_sort::{Record, Sorter};
use super::file::{FIRST, Header, Key, Place64, SectionWriter, aligned, write_header};
use super::pairs::{self, PairRecord, PairWriter};
use crate::dataset::{set_default_permissions, sweep, temporary_prefix};
use crate::error::{Error, Result};
use crate::event::{EventId, EventStream, IdWidth, NodeId};

/// Memory beside a run: buffers of the columns that are written together.
const BUFFERS: u64 = 16 << 20;

/// An entry of a node's list.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Entry {
    node: NodeId,
    neighbor: NodeId,
    /// Twice the event, and one more if the node is its destination.
    event_and_side: u64,
    time: f64,
}

impl Record for Entry {
    type Key = (NodeId, u64);

    fn key(&self) -> Self::Key {
        (self.node, self.event_and_side)
    }
}

/// What an index is built of.
pub(super) struct Plan<'a> {
    pub(super) stream: &'a EventStream,
    pub(super) key: Key,
    /// How the numbers of events are stored.
    pub(super) width: IdWidth,
    /// Bytes of memory to build it within.
    pub(super) memory: u64,
    /// Called with what is done and the total.
    pub(super) progress: &'a dyn Fn(u64, u64),
}

impl Plan<'_> {
    /// Builds the index of the events `ids`, in order, as the file `target`, which appears whole or not at all.
    pub(super) fn build(&self, ids: impl ExactSizeIterator<Item = EventId> + Clone, target: &Path) -> Result<()> {
        let folder = target.parent().unwrap_or(Path::new("."));
        let failed = |source| Error::io(target, "write", source);
        sweep(folder);
        let (prefix, mut builder) = (temporary_prefix(), tempfile::Builder::new());
        set_default_permissions(builder.prefix(&prefix));
        let mut file = builder.tempfile_in(folder).map_err(failed)?;
        let mut draft = Draft { plan: self, folder, path: file.path(), done: 0 };
        let (header, end) = draft.write(ids).map_err(failed)?;
        write_header(file.as_file_mut(), &header, end).map_err(failed)?;
        file.persist(target).map_err(|error| failed(error.error))?;
        Ok(())
    }
}

/// A file that is being written.
struct Draft<'a> {
    plan: &'a Plan<'a>,
    folder: &'a Path,
    path: &'a Path,
    /// Of [`Draft::total`].
    done: u64,
}

impl Draft<'_> {
    /// Writes all columns. Returns the header and the end of the last column.
    fn write(&mut self, ids: impl ExactSizeIterator<Item = EventId> + Clone) -> io::Result<(Header, u64)> {
        let [offsets, neighbors, events, times, sources, of_sources, destinations, of_destinations] =
            self.adjacency(ids.clone())?;
        let moments = self.moments(aligned(end_of(&of_destinations)))?;
        let pairs = self.pairs(ids)?;
        let (lists, entries) = self.lists(pairs, aligned(end_of(&moments)))?;
        let n_buckets = pairs::n_buckets(entries.len());
        let mut slots = SectionWriter::new(self.path, aligned(end_of(&lists)))?;
        pairs::write_slots(&entries, n_buckets, &mut slots)?;
        let slots = slots.finish()?;
        let end = end_of(&slots);
        let sections = [
            offsets,
            neighbors,
            events,
            times,
            sources,
            of_sources,
            destinations,
            of_destinations,
            moments,
            lists,
            slots,
        ];
        (self.plan.progress)(self.total(), self.total());
        Ok((Header::new(self.plan.key, self.plan.width, self.plan.memory, n_buckets, &sections), end))
    }

    /// Bytes of a run.
    fn run_bytes(&self) -> usize {
        let memory = self.plan.memory;
        usize::try_from(memory.saturating_sub(BUFFERS).max(memory / 2)).unwrap_or(usize::MAX)
    }

    /// Entries that are sorted and merged.
    fn total(&self) -> u64 {
        6 * self.plan.key.n_events
    }

    fn advance(&mut self) {
        const STEP: u64 = 1 << 20;
        self.done += 1;
        if self.done.is_multiple_of(STEP) {
            (self.plan.progress)(self.done, self.total());
        }
    }

    /// The lists of all nodes: all events, and those as a source and as a destination.
    fn adjacency(&mut self, ids: impl ExactSizeIterator<Item = EventId>) -> io::Result<[Place64; 8]> {
        let stream = self.plan.stream;
        let (src, dst, stream_times) = (stream.src(), stream.dst(), stream.times());
        let mut sorter = Sorter::new(self.folder, 2 * ids.len(), self.run_bytes());
        for id in ids {
            let (u, v, time) = (src[id.index()], dst[id.index()], stream_times[id.index()]);
            for (side, node, neighbor) in [(0, u, v), (1, v, u)] {
                sorter.push(Entry { node, neighbor, event_and_side: 2 * id.index() as u64 + side, time })?;
                self.advance();
            }
        }
        let mut lists = ListWriter::new(self.path, &self.plan.key, self.plan.width)?;
        for entry in sorter.finish()? {
            lists.push(&entry)?;
            self.advance();
        }
        lists.finish(stream.n_nodes())
    }

    /// For each event of the stream the first one at its time; nothing in the index of a part.
    fn moments(&self, start: u64) -> io::Result<Place64> {
        let mut moments = SectionWriter::new(self.path, start)?;
        let times = if self.plan.key.ids == 0 { self.plan.stream.times() } else { &[] };
        let (mut first, mut previous) = (EventId(0), None);
        for (id, &time) in self.plan.stream.ids().zip(times) {
            if previous != Some(time) {
                (first, previous) = (id, Some(time));
            }
            moments.push_number(first.0, self.plan.width)?;
        }
        moments.finish()
    }

    /// The events by pair.
    fn pairs(&mut self, ids: impl ExactSizeIterator<Item = EventId>) -> io::Result<Sorter<PairRecord>> {
        let (src, dst) = (self.plan.stream.src(), self.plan.stream.dst());
        let mut sorter = Sorter::new(self.folder, ids.len(), self.run_bytes());
        for id in ids {
            sorter.push(PairRecord::new([src[id.index()], dst[id.index()]], id))?;
            self.advance();
        }
        Ok(sorter)
    }

    /// Writes the events of pairs that met several times. Returns what the table of pairs holds, in its order.
    fn lists(&mut self, pairs: Sorter<PairRecord>, start: u64) -> io::Result<(Place64, pairs::Slots)> {
        let most = usize::try_from(self.plan.memory / 8).unwrap_or(usize::MAX);
        let mut writer = PairWriter::new(self.folder, SectionWriter::new(self.path, start)?, self.plan.width, most);
        for record in pairs.finish()? {
            writer.push(record)?;
            self.advance();
        }
        writer.finish()
    }
}

fn end_of(place: &Place64) -> u64 {
    place.start + place.bytes
}

/// Writes lists of nodes, which come in order.
struct ListWriter {
    /// All entries, those as a source, and those as a destination.
    offsets: [SectionWriter; 3],
    n: [u64; 3],
    neighbors: SectionWriter,
    events: [SectionWriter; 3],
    times: SectionWriter,
    width: IdWidth,
    /// Nodes whose offsets are written.
    n_nodes: usize,
}

impl ListWriter {
    /// At the beginning of the file `path`.
    fn new(path: &Path, key: &Key, width: IdWidth) -> io::Result<Self> {
        let mut end = FIRST;
        let mut next = |count: u64, size: usize| {
            let start = aligned(end);
            end = start + count * size as u64;
            SectionWriter::new(path, start)
        };
        let (n_offsets, n) = (key.n_nodes + 1, key.n_events);
        let all = next(n_offsets, 8)?;
        let neighbors = next(2 * n, size_of::<NodeId>())?;
        let events = next(2 * n, width.bytes())?;
        let times = next(2 * n, size_of::<f64>())?;
        let (sources, of_sources) = (next(n_offsets, 8)?, next(n, width.bytes())?);
        let (destinations, of_destinations) = (next(n_offsets, 8)?, next(n, width.bytes())?);
        Ok(Self {
            offsets: [all, sources, destinations],
            n: [0; 3],
            neighbors,
            events: [events, of_sources, of_destinations],
            times,
            width,
            n_nodes: 0,
        })
    }

    fn push(&mut self, entry: &Entry) -> io::Result<()> {
        self.begin_lists(entry.node.index() + 1)?;
        let (event, side) = (entry.event_and_side / 2, entry.event_and_side % 2);
        let of_side = if side == 0 { 1 } else { 2 };
        self.neighbors.push(entry.neighbor)?;
        self.times.push(entry.time)?;
        for list in [0, of_side] {
            self.events[list].push_number(event, self.width)?;
            self.n[list] += 1;
        }
        Ok(())
    }

    /// Writes the offsets of the first `n_nodes` nodes that are not written yet.
    fn begin_lists(&mut self, n_nodes: usize) -> io::Result<()> {
        while self.n_nodes < n_nodes {
            for (offsets, n) in self.offsets.iter_mut().zip(self.n) {
                offsets.push(n)?;
            }
            self.n_nodes += 1;
        }
        Ok(())
    }

    /// In the order of the file.
    fn finish(mut self, n_nodes: usize) -> io::Result<[Place64; 8]> {
        self.begin_lists(n_nodes + 1)?;
        let [all, sources, destinations] = self.offsets;
        let [events, of_sources, of_destinations] = self.events;
        Ok([
            all.finish()?,
            self.neighbors.finish()?,
            events.finish()?,
            self.times.finish()?,
            sources.finish()?,
            of_sources.finish()?,
            destinations.finish()?,
            of_destinations.finish()?,
        ])
    }
}
