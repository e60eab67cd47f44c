//! The binary format `.ctdg`: columns in memory layout, loaded by memory map.
//!
//! A header of 128 bytes (magic, version, counts, form of times), then the columns one after the other, each starting at a multiple of
//! 64 bytes, little-endian: time `f64`, src `u32`, dst `u32`, label `f32`, edge features `f32`, node features `f32`,
//! node names (nothing if consecutive, `u64` each if integers, end offsets as `u64` and then the bytes if text). The counts
//! determine the offset of each column and the length of the file.

use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::Mmap;

use crate::dataset::ReadOptions;
use crate::dataset::source::Source;
use crate::dataset::time_column::unit_of_dates;
use crate::error::{Error, Place, Problem, Result};
use crate::event::{Column, Columns, EventStream, Features, Names, NodeNames, TextTable};
use crate::time::TimeFormat;

pub(crate) const MAGIC: &[u8; 8] = b"CTDG\r\n\x1a\n";
/// The newest version. Version 2 adds the form of times; a file whose times are numbers is written as version 1.
const VERSION: u64 = 2;
const ALIGNMENT: usize = 64;
const HEADER: usize = 128;

/// The numbers of the header, in file order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    n_events: u64,
    n_nodes: u64,
    edge_width: u64,
    node_width: u64,
    /// One more than the number of sources if bipartite, otherwise 0.
    n_sources_plus_one: u64,
    /// 0 consecutive, 1 integers, 2 text.
    names_kind: u64,
    /// First name if consecutive.
    names_first: u64,
    /// Bytes of all names if text.
    names_bytes: u64,
}

impl Counts {
    fn of(stream: &EventStream) -> Self {
        let names = stream.names();
        let (names_kind, names_first, names_bytes) = match &names.kind {
            Names::Consecutive { first, .. } => (0, *first, 0),
            Names::Integers(_) => (1, 0, 0),
            Names::Text(table) => (2, 0, table.bytes.len() as u64),
            Names::Growing(_) => unreachable!("`write` settles a stream that grows"),
        };
        let width = |features: Option<&Features>| features.map_or(0, |features| features.width() as u64);
        Self {
            n_events: stream.len() as u64,
            n_nodes: stream.n_nodes() as u64,
            edge_width: width(stream.edge_features()),
            node_width: width(stream.node_features()),
            n_sources_plus_one: names.n_sources().map_or(0, |n| u64::from(n) + 1),
            names_kind,
            names_first,
            names_bytes,
        }
    }

    fn words(&self) -> [u64; 8] {
        let Self { n_events, n_nodes, edge_width, node_width, .. } = *self;
        let Self { n_sources_plus_one, names_kind, names_first, names_bytes, .. } = *self;
        [n_events, n_nodes, edge_width, node_width, n_sources_plus_one, names_kind, names_first, names_bytes]
    }

    fn from_words(words: [u64; 8]) -> Self {
        let [n_events, n_nodes, edge_width, node_width, n_sources_plus_one, names_kind, names_first, names_bytes] =
            words;
        Self { n_events, n_nodes, edge_width, node_width, n_sources_plus_one, names_kind, names_first, names_bytes }
    }

    /// Byte range of each section and length of the file, or `None` on overflow.
    fn sections(&self) -> Option<([Range<usize>; 8], usize)> {
        let of = |count: u64, size: u64| count.checked_mul(size);
        let (n, nodes) = (self.n_events, self.n_nodes);
        let integers = if self.names_kind == 1 { nodes } else { 0 };
        let ends = if self.names_kind == 2 { nodes } else { 0 };
        let lengths = [
            of(n, 8)?,
            of(n, 4)?,
            of(n, 4)?,
            of(n, 4)?,
            of(of(n, self.edge_width)?, 4)?,
            of(of(nodes, self.node_width)?, 4)?,
            of(integers.max(ends), 8)?,
            self.names_bytes,
        ];
        let mut end = HEADER;
        let mut sections = std::array::from_fn(|_| 0..0);
        for (section, length) in sections.iter_mut().zip(lengths) {
            let start = end.checked_next_multiple_of(ALIGNMENT)?;
            end = start.checked_add(usize::try_from(length).ok()?)?;
            *section = start..end;
        }
        Some((sections, end))
    }
}

/// Writes `stream`.
pub(crate) fn write(out: &mut dyn Write, stream: &EventStream) -> std::io::Result<()> {
    let counts = Counts::of(stream);
    let (sections, _) = counts.sections().expect("the stream is in memory");
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(MAGIC);
    let [version, times] = match stream.time_format() {
        TimeFormat::Number => [1, 0],
        TimeFormat::Date => [2, 1],
    };
    for (place, word) in [version].into_iter().chain(counts.words()).chain([times]).enumerate() {
        header[8 * (place + 1)..][..8].copy_from_slice(&word.to_le_bytes());
    }
    out.write_all(&header)?;
    let edges = stream.edge_features().map_or(&[][..], Features::values);
    let nodes = stream.node_features().map_or(&[][..], Features::values);
    let (integers, bytes): (&[u64], &[u8]) = match &stream.names().kind {
        Names::Consecutive { .. } => (&[], &[]),
        Names::Integers(names) => (names, &[]),
        Names::Text(table) => (&table.ends, &table.bytes),
        Names::Growing(_) => unreachable!("`write` settles a stream that grows"),
    };
    let columns: [&[u8]; 8] = [
        bytemuck::cast_slice(stream.times()),
        bytemuck::cast_slice(stream.src()),
        bytemuck::cast_slice(stream.dst()),
        bytemuck::cast_slice(stream.labels()),
        bytemuck::cast_slice(edges),
        bytemuck::cast_slice(nodes),
        bytemuck::cast_slice(integers),
        bytes,
    ];
    let mut position = HEADER;
    for (column, section) in columns.iter().zip(sections) {
        out.write_all(&[0; ALIGNMENT][..section.start - position])?;
        out.write_all(column)?;
        position = section.end;
    }
    Ok(())
}

/// Maps `path`. The columns stay in the file, unless the unit of times is given; names are copied.
pub(crate) fn read(path: &Path, options: &ReadOptions) -> Result<EventStream> {
    let stream = map(path)?;
    let Some(unit) = options.time_unit else { return Ok(stream.mapped_from(path)) };
    if stream.time_format() == TimeFormat::Date {
        return Err(unit_of_dates(unit).into());
    }
    let mut columns = stream.into_columns();
    let times = columns.time.iter().enumerate().map(|(row, &time)| {
        unit.of_number(time).map_err(|problem| Error::at(Place::default().row(row as u64), problem))
    });
    columns.time = times.collect::<Result<Vec<_>>>()?.into();
    columns.time_format = TimeFormat::Date;
    EventStream::new(columns)
}

fn map(path: &Path) -> Result<EventStream> {
    let corrupt =
        |detail: &str| Error::at(Place::file(path), Problem::Corrupt { format: "ctdg", detail: detail.into() });
    if cfg!(target_endian = "big") {
        return Err(corrupt("it is little-endian and this machine is not"));
    }
    let map = Source::map(path)?;
    if !map.starts_with(MAGIC) {
        let problem = Problem::WrongFormat { found: "another kind of file".into(), expected: "a .ctdg file".into() };
        return Err(Error::at(Place::file(path), problem));
    }
    if map.len() < HEADER {
        return Err(Error::at(Place::file(path), Problem::Truncated { format: "ctdg" }));
    }
    let word = |place: usize| u64::from_le_bytes(map[8 * place..][..8].try_into().expect("eight bytes"));
    let time_format = match (word(1), word(10)) {
        (1, _) | (2, 0) => TimeFormat::Number,
        (2, 1) => TimeFormat::Date,
        (2, _) => return Err(corrupt("the form of its times")),
        (found, _) => return Err(Error::at(Place::file(path), Problem::Version { found, expected: VERSION })),
    };
    let counts = Counts::from_words(std::array::from_fn(|place| word(place + 2)));
    let (sections, length) = counts.sections().ok_or_else(|| corrupt("absurd counts"))?;
    if map.len() < length {
        return Err(Error::at(Place::file(path), Problem::Truncated { format: "ctdg" }));
    }
    if map.len() > length {
        return Err(corrupt("more bytes than its counts say"));
    }
    let map = Arc::new(map);
    let [time, src, dst, label, edges, nodes, integers, bytes] = sections;
    let names = read_names(&counts, &map[integers], &map[bytes]).ok_or_else(|| corrupt("node names"))?;
    EventStream::new(Columns {
        time: column(&map, time),
        src: column(&map, src),
        dst: column(&map, dst),
        label: column(&map, label),
        edge_features: features(&map, edges, counts.edge_width)?,
        node_features: features(&map, nodes, counts.node_width)?,
        names,
        time_format,
    })
}

fn column<T: Pod>(map: &Arc<Mmap>, section: Range<usize>) -> Column<T> {
    Column::mapped(map, section).expect("sections are aligned and inside the file")
}

fn features(map: &Arc<Mmap>, section: Range<usize>, width: u64) -> Result<Option<Features>> {
    let width = usize::try_from(width).unwrap_or(usize::MAX);
    if width == 0 { Ok(None) } else { Features::new(width, column(map, section)).map(Some) }
}

fn read_names(counts: &Counts, integers: &[u8], bytes: &[u8]) -> Option<NodeNames> {
    let len = u32::try_from(counts.n_nodes).ok()?;
    let integers: Vec<u64> = bytemuck::try_cast_slice(integers).ok()?.to_vec();
    let kind = match counts.names_kind {
        0 => {
            counts.names_first.checked_add(u64::from(len))?;
            Names::Consecutive { first: counts.names_first, len }
        }
        1 => Names::Integers(integers),
        2 => {
            let ordered = integers.is_sorted() && integers.last().copied().unwrap_or(0) == bytes.len() as u64;
            let text = std::str::from_utf8(bytes).ok()?;
            let whole = integers.iter().all(|&end| usize::try_from(end).is_ok_and(|end| text.is_char_boundary(end)));
            (ordered && whole).then_some(())?;
            Names::Text(TextTable { bytes: bytes.to_vec(), ends: integers })
        }
        _ => return None,
    };
    let n_sources = match counts.n_sources_plus_one {
        0 => None,
        n => Some(u32::try_from(n - 1).ok().filter(|&n| n <= len)?),
    };
    let names = NodeNames { kind, n_sources };
    names.are_sorted().then_some(names)
}
