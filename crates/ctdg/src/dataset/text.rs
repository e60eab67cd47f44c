//! Delimited text (CSV, TSV, blanks), read in one pass.

use std::cell::Cell;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use csv::ByteRecord;

use crate::dataset::dyglib::all_zero;
use crate::dataset::layout::{FeatureSpan, Layout, format_of_header, looks_like_header};
use crate::dataset::source::{Compression, OnProgress, Source};
use crate::dataset::{ColumnRef, Format, ReadOptions, npy, sidecar};
use crate::error::{Error, Place, Problem, Result, quoted};
use crate::event::{Columns, EventStream, RejectedRow, Role, StreamBuilder};

/// Longer rows are refused as damage, so that memory stays bounded.
const MAX_ROW_BYTES: usize = 16 << 20;
/// Bytes inspected for delimiter and comments.
const HEAD_BYTES: u64 = 1 << 16;

pub(crate) fn read(
    path: &Path,
    format: Format,
    options: &ReadOptions,
    progress: OnProgress<'_>,
) -> Result<EventStream> {
    let stream = read_from(Source::open(path, progress)?, format, options, progress)?;
    sidecar::with_node_features(path, stream)
}

/// The rows of a table, with its detected format.
pub(crate) struct Rows {
    pub(crate) builder: StreamBuilder,
    format: Format,
    has_features: bool,
}

/// Reads all rows of `source`.
pub(crate) fn read_rows(source: Source<'_>, format: Format, options: &ReadOptions) -> Result<Rows> {
    let mut table = Table::open(source, format, options)?;
    let bipartite = options.bipartite.unwrap_or(table.format == Format::Jodie);
    let mut builder = StreamBuilder::new(options.ids, bipartite, options.sort);
    let mut row = std::mem::take(&mut table.first);
    while !row.is_empty() {
        table.push(&row, &mut builder)?;
        table.next(&mut row)?;
    }
    let has_features = table.layout.features != FeatureSpan::At(Vec::new());
    Ok(Rows { builder, format: table.format, has_features })
}

/// Reads `source` as delimited text; the edge features of a sidecar are used if the rows have none.
fn read_from(
    source: Source<'_>,
    format: Format,
    options: &ReadOptions,
    progress: OnProgress<'_>,
) -> Result<EventStream> {
    let path = source.path().to_path_buf();
    let Rows { builder, format, has_features } = read_rows(source, format, options)?;
    let beside = if has_features { None } else { sidecar::find(&path, sidecar::EDGE_FEATURES) };
    let Some(beside) = beside else {
        let stream = builder.finish(None).map_err(|error| error.in_file(&path))?;
        let all_zero_features = stream.edge_features().is_some_and(|features| all_zero(features.values()));
        return if format == Format::Jodie && all_zero_features { without_edge_features(stream) } else { Ok(stream) };
    };
    let matrix = npy::read(&beside, progress)?;
    if matrix.rows != builder.len() {
        let (found, expected) = (matrix.rows as u64, builder.len() as u64);
        return Err(Error::at(Place::file(beside), Problem::FeatureRows { found, expected, of: "events" }));
    }
    builder.finish(matrix.into_features()?)
}

fn without_edge_features(stream: EventStream) -> Result<EventStream> {
    EventStream::new(Columns { edge_features: None, ..stream.into_columns() })
}

/// A text file whose layout is known, positioned after its first row of data.
struct Table<'a> {
    path: PathBuf,
    compression: Compression,
    format: Format,
    reader: csv::Reader<Box<dyn Read + 'a>>,
    header: Option<Vec<String>>,
    layout: Layout,
    /// Fields per row; rows may have more only if features extend to the end of the row.
    n_fields: usize,
    first: ByteRecord,
    /// Bytes read since the last row was complete.
    unfinished: Rc<Cell<usize>>,
}

impl<'a> Table<'a> {
    fn open(mut source: Source<'a>, format: Format, options: &ReadOptions) -> Result<Self> {
        let path = source.path().to_path_buf();
        let compression = source.compression();
        let mut head = Vec::new();
        let read = (&mut source).take(HEAD_BYTES).read_to_end(&mut head);
        read.map_err(|error| Source::explain(&path, compression, error))?;
        if head.starts_with(b"\xef\xbb\xbf") {
            head.drain(..3);
        }
        let comment = head.first().copied().filter(|byte| [b'%', b'#'].contains(byte));
        let format = if format == Format::Auto && comment == Some(b'%') { Format::Konect } else { format };
        let delimiter = options.delimiter.unwrap_or_else(|| sniff_delimiter(&head, comment));
        let unfinished = Rc::new(Cell::new(0));
        let guarded = RowGuard { inner: Cursor::new(head).chain(source), unfinished: Rc::clone(&unfinished) };
        let text: Box<dyn Read + 'a> = match delimiter {
            b' ' => Box::new(FoldBlanks { inner: guarded, before: b'\n' }),
            _ => Box::new(guarded),
        };
        let mut builder = csv::ReaderBuilder::new();
        let builder = builder.has_headers(false).flexible(true).delimiter(delimiter).comment(comment);
        let mut table = Self {
            reader: builder.buffer_capacity(1 << 16).from_reader(text),
            path,
            compression,
            format,
            header: None,
            layout: Layout { src: 0, dst: 0, time: 0, label: None, features: FeatureSpan::At(Vec::new()) },
            n_fields: 0,
            first: ByteRecord::new(),
            unfinished,
        };
        table.find_layout(options)?;
        Ok(table)
    }

    /// Reads the header, if there is one, and the first row of data.
    fn find_layout(&mut self, options: &ReadOptions) -> Result<()> {
        let mut first = ByteRecord::new();
        self.next(&mut first)?;
        if first.is_empty() {
            return Err(Error::at(Place::file(&self.path), Problem::Empty));
        }
        let place = Place::file(&self.path).line(line_of(&first));
        let names = first.iter().map(|field| std::str::from_utf8(field.trim_ascii()).map(str::to_owned));
        let names: Vec<String> =
            names.collect::<Result<_, _>>().map_err(|_| Error::at(place.clone(), Problem::NotUtf8))?;
        if self.has_header(options, &names) {
            if self.format == Format::Auto {
                self.format = format_of_header(&names);
            }
            self.header = Some(names);
            self.next(&mut first)?;
        }
        let fields: Vec<&[u8]> = first.iter().map(<[u8]>::trim_ascii).collect();
        let layout = Layout::resolve(self.format, options, self.header.as_deref(), &fields);
        self.layout = layout.map_err(|problem| Error::at(place, problem))?;
        if fields.is_empty() {
            return Err(Error::at(Place::file(&self.path), Problem::Empty));
        }
        self.n_fields = match (&self.header, &self.layout.features) {
            // JODIE: the header is shorter than the rows.
            (_, FeatureSpan::From(_)) => self.layout.n_needed(),
            (Some(header), _) => header.len(),
            (None, _) => fields.len(),
        };
        self.first = first;
        Ok(())
    }

    fn has_header(&self, options: &ReadOptions, row: &[String]) -> bool {
        options.header.unwrap_or_else(|| match self.format {
            Format::Jodie | Format::Tgb => true,
            Format::Konect => false,
            _ => {
                let is_number = |field: &String| field.parse::<f64>().is_ok();
                let time = match &options.time {
                    Some(ColumnRef::Position(position)) => position.saturating_sub(1),
                    Some(ColumnRef::Name(_)) => return true,
                    None => 2,
                };
                // Known column names, or no number in the time column of a file without header.
                looks_like_header(row) || !row.get(time).is_some_and(is_number)
            }
        })
    }

    /// Reads the next row; empty at the end.
    fn next(&mut self, row: &mut ByteRecord) -> Result<()> {
        self.unfinished.set(0);
        match self.reader.read_byte_record(row) {
            Ok(true) => Ok(()),
            Ok(false) => {
                row.clear();
                Ok(())
            }
            Err(error) => {
                let line = error.position().map(csv::Position::line);
                let error = match error.into_kind() {
                    csv::ErrorKind::Io(error) => error,
                    other => io::Error::new(io::ErrorKind::InvalidData, format!("{other:?}")),
                };
                if error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<RowTooLong>) {
                    let problem = Problem::Corrupt { format: "text", detail: RowTooLong.to_string() };
                    return Err(Error::at(Place { line, ..Place::file(&self.path) }, problem));
                }
                Err(Source::explain(&self.path, self.compression, error))
            }
        }
    }

    /// Adds one row to the stream.
    fn push(&self, row: &ByteRecord, builder: &mut StreamBuilder) -> Result<()> {
        let layout = &self.layout;
        let has_extra_fields = row.iter().skip(self.n_fields).any(|field| !field.trim_ascii().is_empty());
        if row.len() < self.n_fields || (has_extra_fields && !matches!(layout.features, FeatureSpan::From(_))) {
            let problem = Problem::RowLength { found: row.len() as u64, expected: self.n_fields as u64 };
            return Err(Error::at(Place::file(&self.path).line(line_of(row)), problem));
        }
        let field = |at: usize| row.get(at).unwrap_or_default().trim_ascii();
        let number = |at: usize| -> Result<f64> {
            let text = field(at);
            let value = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
            value.ok_or_else(|| self.problem(row, at, not_a_number(text)))
        };
        let time = number(layout.time)?;
        #[expect(clippy::cast_possible_truncation, reason = "labels are f32 whatever the file holds")]
        let label = layout.label.map_or(Ok(0.0), number)? as f32;
        let pushed = builder.push(field(layout.src), field(layout.dst), time, label);
        pushed.map_err(|RejectedRow { role, problem }| {
            self.problem(row, layout.position(role), with_original_time(role, *problem, field(layout.time)))
        })?;
        match &layout.features {
            FeatureSpan::At(at) if at.is_empty() => Ok(()),
            FeatureSpan::At(at) => self.push_features(row, at.iter().copied(), builder),
            FeatureSpan::From(from) => self.push_features(row, *from..row.len().max(*from), builder),
        }
    }

    fn push_features(
        &self,
        row: &ByteRecord,
        at: impl Iterator<Item = usize>,
        builder: &mut StreamBuilder,
    ) -> Result<()> {
        let mut values = Vec::new();
        for column in at {
            let text = row.get(column).unwrap_or_default().trim_ascii();
            let text = std::str::from_utf8(text).map_err(|_| self.problem(row, column, Problem::NotUtf8))?;
            // TGB puts a list of numbers into one quoted field.
            for part in text.split(',') {
                let value: f32 =
                    part.trim().parse().map_err(|_| self.problem(row, column, not_a_number(part.as_bytes())))?;
                if !value.is_finite() {
                    let found = part.trim().to_owned();
                    return Err(self.problem(row, column, Problem::NonFiniteValue { found }));
                }
                values.push(value);
            }
        }
        let place = Place::file(&self.path).line(line_of(row));
        builder.push_features(values.into_iter()).map_err(|problem| Error::at(place, problem))
    }

    fn problem(&self, row: &ByteRecord, at: usize, problem: Problem) -> Error {
        let place = Place::file(&self.path).line(line_of(row));
        let place = match self.header.as_ref().and_then(|header| header.get(at)) {
            Some(name) => place.column(at as u64 + 1, name),
            None => Place { column: Some(at as u64 + 1), ..place },
        };
        Error::at(place, problem)
    }
}

fn not_a_number(text: &[u8]) -> Problem {
    match std::str::from_utf8(text) {
        Ok(_) => Problem::NotANumber { found: quoted(text), expected: "a number" },
        Err(_) => Problem::NotUtf8,
    }
}

/// The problem with the time as it is written in the file.
fn with_original_time(role: Role, problem: Problem, time: &[u8]) -> Problem {
    match (role, problem) {
        (Role::Time, Problem::NonFiniteTime { .. }) => Problem::NonFiniteTime { found: quoted(time) },
        (_, problem) => problem,
    }
}

fn line_of(row: &ByteRecord) -> u64 {
    row.position().map_or(0, csv::Position::line)
}

/// The delimiter of the first line that is no comment. A line with both blanks and tabs is delimited by runs of blanks.
fn sniff_delimiter(head: &[u8], comment: Option<u8>) -> u8 {
    let mut lines = head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let line = lines.find(|line| comment.is_none() || line.first().copied() != comment).unwrap_or_default();
    if line.contains(&b'\t') && line.contains(&b' ') && !line.contains(&b',') {
        return b' ';
    }
    [b'\t', b',', b';', b' '].into_iter().find(|delimiter| line.contains(delimiter)).unwrap_or(b',')
}

#[derive(Debug)]
struct RowTooLong;

impl std::fmt::Display for RowTooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a row of more than {} MiB", MAX_ROW_BYTES >> 20)
    }
}

impl std::error::Error for RowTooLong {}

/// Limits the length of a row, which an unclosed quote could make endless.
struct RowGuard<R> {
    inner: R,
    unfinished: Rc<Cell<usize>>,
}

impl<R: Read> Read for RowGuard<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        let unfinished = self.unfinished.get() + n;
        self.unfinished.set(unfinished);
        if unfinished > MAX_ROW_BYTES {
            return Err(io::Error::other(RowTooLong));
        }
        Ok(n)
    }
}

/// Turns each run of blanks and tabs into one blank, and drops those at the start of a line.
struct FoldBlanks<R> {
    inner: R,
    before: u8,
}

impl<R: Read> Read for FoldBlanks<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let n = self.inner.read(buffer)?;
            let mut kept = 0;
            for at in 0..n {
                let byte = if buffer[at] == b'\t' { b' ' } else { buffer[at] };
                if byte != b' ' || (self.before != b' ' && self.before != b'\n') {
                    buffer[kept] = byte;
                    kept += 1;
                }
                self.before = byte;
            }
            if kept > 0 || n == 0 {
                return Ok(kept);
            }
        }
    }
}
