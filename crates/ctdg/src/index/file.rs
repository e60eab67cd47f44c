//! The file of an index: a header with counts and checksums, then columns in memory layout.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use crc32fast::Hasher;
use memmap2::Mmap;
use rayon::prelude::*;

use super::unusable;
use crate::error::{Error, Place, Problem, Result};
use crate::event::{Column, EventColumn, EventId, IdWidth, MappedFile, NodeId, map_file, narrow};

const MAGIC: [u8; 8] = *b"CTDGIX\r\n";
const VERSION: u64 = 1;
/// Bytes before the first column.
const HEADER: u64 = 512;
const ALIGNMENT: u64 = 64;
/// Bytes that are written or verified at once.
const CHUNK: usize = 1 << 20;

/// The columns of an index, in file order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    /// Start of each node's list, and the end of the last.
    Offsets,
    /// The other node of each entry.
    Neighbors,
    /// The event of each entry.
    Events,
    /// The time of each entry.
    Times,
    /// Start of each node's events as a source.
    SourceOffsets,
    SourceEvents,
    /// Start of each node's events as a destination.
    DestinationOffsets,
    DestinationEvents,
    /// For each event of the stream the first one at its time; empty in the index of a part.
    Moments,
    /// Events of pairs that met several times.
    PairLists,
    /// The table of pairs.
    PairSlots,
}

const N_SECTIONS: usize = Section::PairSlots as usize + 1;

/// Which events an index is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Key {
    /// Events in the index.
    pub(super) n_events: u64,
    /// Checksum of their numbers; 0 if they are all.
    pub(super) ids: u64,
    /// Events of the stream.
    pub(super) n_stream: u64,
    pub(super) n_nodes: u64,
    /// Checksums of times, sources and destinations of the stream.
    pub(super) columns: [u64; 3],
}

/// Where a column is.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Place64 {
    pub(super) start: u64,
    pub(super) bytes: u64,
    pub(super) checksum: u64,
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Header {
    magic: [u8; 8],
    version: u64,
    /// Bytes of an event's number.
    id_bytes: u64,
    pub(super) key: Key,
    /// Bytes of memory that it was built within.
    pub(super) memory: u64,
    /// Buckets of the table of pairs.
    pub(super) n_buckets: u64,
    sections: [Place64; N_SECTIONS],
    /// Of all before.
    checksum: u64,
}

impl Header {
    pub(super) fn new(key: Key, width: IdWidth, memory: u64, n_buckets: u64, sections: &[Place64; N_SECTIONS]) -> Self {
        let (version, id_bytes, sections) = (VERSION, width.bytes() as u64, *sections);
        let mut header = Self { magic: MAGIC, version, id_bytes, key, memory, n_buckets, sections, checksum: 0 };
        header.checksum = header.expected_checksum();
        header
    }

    fn expected_checksum(&self) -> u64 {
        let bytes = bytemuck::bytes_of(self);
        u64::from(crc32fast::hash(&bytes[..bytes.len() - size_of::<u64>()]))
    }

    /// How the numbers of events are stored, if in a way that this program knows.
    fn width(&self) -> Option<IdWidth> {
        [IdWidth::Narrow, IdWidth::Wide].into_iter().find(|width| width.bytes() as u64 == self.id_bytes)
    }

    fn section(&self, section: Section) -> Place64 {
        self.sections[section as usize]
    }
}

/// The first place for a column behind `end`.
pub(super) fn aligned(end: u64) -> u64 {
    end.next_multiple_of(ALIGNMENT)
}

/// The place of the first column.
pub(super) const FIRST: u64 = HEADER;

/// Writes one column of a file that others write to at other places.
#[derive(Debug)]
pub(super) struct SectionWriter {
    file: File,
    buffer: Vec<u8>,
    checksum: Hasher,
    start: u64,
    bytes: u64,
}

impl SectionWriter {
    pub(super) fn new(path: &Path, start: u64) -> io::Result<Self> {
        let mut file = File::options().write(true).open(path)?;
        file.seek(SeekFrom::Start(start))?;
        Ok(Self { file, buffer: Vec::with_capacity(CHUNK), checksum: Hasher::new(), start, bytes: 0 })
    }

    pub(super) fn push<T: Pod>(&mut self, value: T) -> io::Result<()> {
        if self.buffer.len() + size_of::<T>() > CHUNK {
            self.flush()?;
        }
        self.buffer.extend_from_slice(bytemuck::bytes_of(&value));
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.checksum.update(&self.buffer);
        self.file.write_all(&self.buffer)?;
        self.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// The number of an event, or a count of events.
    pub(super) fn push_number(&mut self, number: u64, width: IdWidth) -> io::Result<()> {
        match width {
            IdWidth::Narrow => self.push(u32::try_from(number).map_err(io::Error::other)?),
            IdWidth::Wide => self.push(number),
        }
    }

    pub(super) fn finish(mut self) -> io::Result<Place64> {
        self.flush()?;
        Ok(Place64 { start: self.start, bytes: self.bytes, checksum: u64::from(self.checksum.finalize()) })
    }
}

/// Writes the header into a file that has all columns, whose length becomes `end`.
pub(super) fn write_header(file: &mut File, header: &Header, end: u64) -> io::Result<()> {
    file.set_len(end)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(bytemuck::bytes_of(header))?;
    file.sync_all()
}

/// A mapped index whose every byte was verified.
#[derive(Debug, Clone)]
pub(crate) struct IndexFile {
    map: Arc<Mmap>,
    header: Header,
}

impl IndexFile {
    /// Opens `name` beside the file `origin`, and verifies it unless that was done before.
    pub(super) fn open(origin: &MappedFile, path: &Path, name: &str) -> Result<Self> {
        if let Some(map) = origin.sound(name) {
            let header = bytemuck::pod_read_unaligned(&map[..size_of::<Header>()]);
            return Ok(Self { map, header });
        }
        let file = File::open(path).map_err(|source| Error::io(path, "open", source))?;
        let map = Arc::new(map_file(&file).map_err(|source| Error::io(path, "map", source))?);
        let header = checked_header(&map).map_err(|problem| Error::at(Place::file(path), problem))?;
        for (at, place) in header.sections.iter().enumerate() {
            // In range, as `checked_header` found.
            let bytes = &map[offset(place.start)..offset(place.start + place.bytes)];
            if checksum(bytes) != place.checksum {
                return Err(unusable(path, format!("damage in column {} of it", at + 1)));
            }
        }
        // Best effort: lists are read here and there, and what lies beside them only takes memory.
        #[cfg(unix)]
        let _ = map.advise(memmap2::Advice::Random);
        origin.set_sound(name, &map);
        Ok(Self { map, header })
    }

    pub(super) fn key(&self) -> Key {
        self.header.key
    }

    /// Bytes of memory that it was built within.
    pub(super) fn memory(&self) -> u64 {
        self.header.memory
    }

    /// Buckets of the table of pairs.
    pub(crate) fn n_buckets(&self) -> u64 {
        self.header.n_buckets
    }

    /// How the numbers of events are stored.
    pub(super) fn width(&self) -> IdWidth {
        self.header.width().expect("checked when it was opened")
    }

    /// A column of events.
    pub(crate) fn events(&self, section: Section) -> EventColumn {
        match self.width() {
            IdWidth::Narrow => EventColumn::Narrow(self.column(section)),
            IdWidth::Wide => EventColumn::Wide(self.column(section)),
        }
    }

    /// A column.
    pub(crate) fn column<T: Pod>(&self, section: Section) -> Column<T> {
        let Place64 { start, bytes, .. } = self.header.section(section);
        let column = Column::mapped(&self.map, offset(start)..offset(start + bytes));
        column.expect("checked when it was opened")
    }
}

fn offset(at: u64) -> usize {
    usize::try_from(at).expect("within a file that is mapped")
}

/// The header, if it is whole and describes a file of this length.
fn checked_header(map: &[u8]) -> std::result::Result<Header, Problem> {
    let unusable = |found: &str| Problem::UnusableIndex { found: found.to_owned() };
    if !map.starts_with(&MAGIC) || (map.len() as u64) < HEADER {
        return Err(unusable("no index, or the beginning of one"));
    }
    let header: Header = bytemuck::pod_read_unaligned(&map[..size_of::<Header>()]);
    if header.checksum != header.expected_checksum() {
        return Err(unusable("damage in its first bytes"));
    }
    if header.version != VERSION {
        return Err(unusable(&format!("version {} of its format instead of {VERSION}", header.version)));
    }
    let Some(width) = header.width() else {
        let found = header.id_bytes.saturating_mul(8);
        return Err(unusable(&format!("events numbered with {found} bits instead of 32 or 64")));
    };
    let mut end = HEADER;
    let lengths = lengths(&header.key, width);
    for (place, length) in header.sections.iter().zip(lengths) {
        let fits = place.start == aligned(end) && length.is_none_or(|length| length == place.bytes);
        end = place.start.checked_add(place.bytes).filter(|_| fits).ok_or_else(|| unusable("columns out of place"))?;
    }
    if map.len() as u64 != end {
        return Err(unusable(&format!("{} bytes instead of {end}", map.len())));
    }
    Ok(header)
}

/// Bytes of each column that the counts determine.
fn lengths(key: &Key, width: IdWidth) -> [Option<u64>; N_SECTIONS] {
    let of = |count: u64, size: usize| count.checked_mul(size as u64);
    let (offsets, entries) = (of(key.n_nodes + 1, 8), 2 * key.n_events);
    let events = of(key.n_events, width.bytes());
    let n_moments = if key.ids == 0 { key.n_stream } else { 0 };
    [
        offsets,
        of(entries, size_of::<NodeId>()),
        of(entries, width.bytes()),
        of(entries, size_of::<f64>()),
        offsets,
        events,
        offsets,
        events,
        of(n_moments, width.bytes()),
        None,
        None,
    ]
}

/// CRC-32, computed in parallel.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    let hashed = |part: &[u8]| {
        let mut hasher = Hasher::new();
        hasher.update(part);
        hasher
    };
    combined(&bytes.par_chunks(16 * CHUNK).map(hashed).collect::<Vec<_>>())
}

/// CRC-32 of the numbers of events of a stream with so many: of 32 bits each where that suffices, however an index stores them.
pub(super) fn checksum_of(events: &[EventId], n_stream: usize) -> u64 {
    if IdWidth::of(n_stream) == IdWidth::Wide {
        return checksum(bytemuck::cast_slice(events));
    }
    let hashed = |part: &[EventId]| {
        let numbers: Vec<u32> = part.iter().map(|&event| narrow(event)).collect();
        let mut hasher = Hasher::new();
        hasher.update(bytemuck::cast_slice(&numbers));
        hasher
    };
    combined(&events.par_chunks(CHUNK).map(hashed).collect::<Vec<_>>())
}

fn combined(parts: &[Hasher]) -> u64 {
    let mut whole = Hasher::new();
    for part in parts {
        whole.combine(part);
    }
    u64::from(whole.finalize())
}
