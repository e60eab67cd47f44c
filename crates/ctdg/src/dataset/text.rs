//! Delimited text (CSV, TSV, blanks), read in one pass.

mod input;
mod records;

use std::path::Path;

use csv::ByteRecord;

use crate::dataset::dyglib::all_zero;
use crate::dataset::layout::{FeatureSpan, Layout, date_columns, format_of_header, looks_like_header};
use crate::dataset::report::{OptionalColumns, ReadReport, side_by_side};
use crate::dataset::source::{OnProgress, Source};
use crate::dataset::time_column::{TimeColumn, looks_like_clock, looks_like_date, looks_like_time};
use crate::dataset::{ColumnRef, FeatureColumns, Format, ReadOptions, npy, sidecar};
use crate::error::{Error, Place, Problem, Result, quoted};
use crate::event::{Columns, EventStream, Features, RejectedRow, Role, StreamBuilder};
pub(crate) use records::Records;

pub(crate) fn read(
    path: &Path,
    format: Format,
    options: &ReadOptions,
    progress: OnProgress<'_>,
) -> Result<(EventStream, ReadReport)> {
    let (stream, report) = read_from(Source::open(path, progress)?, format, options, progress)?;
    Ok((sidecar::with_node_features(path, stream)?, report))
}

/// The rows of a table, with its detected format.
pub(crate) struct Rows {
    pub(crate) builder: StreamBuilder,
    format: Format,
    layout: Layout,
    header: Option<Vec<String>>,
    optional: OptionalColumns,
}

/// Reads all rows of `source`.
pub(crate) fn read_rows(source: Source<'_>, format: Format, options: &ReadOptions) -> Result<Rows> {
    let mut table = Table::open(source, format, options)?;
    let bipartite = options.bipartite.unwrap_or(table.format == Format::Jodie);
    let mut builder = StreamBuilder::new(options.ids, bipartite, options.sort).spilling(options.spill.as_ref());
    builder.set_time_format(table.times.format());
    let mut optional = OptionalColumns::of(&table.layout);
    let mut row = std::mem::take(&mut table.first);
    while !row.is_empty() {
        table.push(&row, &mut builder, &mut optional)?;
        table.records.next(&mut row)?;
    }
    Ok(Rows { builder, format: table.format, layout: table.layout, header: table.header, optional })
}

/// Reads `source` as delimited text; the edge features of a sidecar are used if the rows have none.
fn read_from(
    source: Source<'_>,
    format: Format,
    options: &ReadOptions,
    progress: OnProgress<'_>,
) -> Result<(EventStream, ReadReport)> {
    let path = source.path().to_path_buf();
    let Rows { mut builder, format, layout, header, optional } = read_rows(source, format, options)?;
    let has_features = layout.features != FeatureSpan::At(Vec::new());
    let beside = sidecar::find(&path, sidecar::EDGE_FEATURES);
    let (beside, unused_sidecar) = match &options.features {
        FeatureColumns::Numeric => (beside, None),
        _ if has_features => (None, beside),
        _ => (beside, None),
    };
    let mut features = None;
    if options.features == FeatureColumns::Numeric {
        features = optional.kept(builder.take_features()?, builder.len())?;
    }
    if let Some(file) = beside {
        features = side_by_side(features, read_features(&file, builder.len(), progress)?)?;
    }
    let mut stream = builder.finish(features).map_err(|error| error.in_file(&path))?;
    let is_zero = stream.edge_features().is_some_and(|features| all_zero(features.values()));
    if format == Format::Jodie && has_features && is_zero {
        stream = EventStream::new(Columns { edge_features: None, ..stream.into_columns() })?;
    }
    let name = |at: usize| match header.as_ref().and_then(|header| header.get(at)).filter(|name| !name.is_empty()) {
        Some(name) => name.clone(),
        None => format!("column {}", at + 1),
    };
    let unused_columns = optional.unused(&layout, name);
    Ok((stream, ReadReport { unused_columns, unused_sidecar, n_duplicates: 0 }))
}

/// The features of a sidecar, one row per event.
fn read_features(file: &Path, n_events: usize, progress: OnProgress<'_>) -> Result<Option<Features>> {
    let matrix = npy::read(file, progress)?;
    if matrix.rows != n_events {
        let (found, expected) = (matrix.rows as u64, n_events as u64);
        return Err(Error::at(Place::file(file), Problem::FeatureRows { found, expected, of: "events" }));
    }
    matrix.into_features()
}

/// A text file whose layout is known, positioned after its first row of data.
struct Table<'a> {
    records: Records<'a>,
    format: Format,
    header: Option<Vec<String>>,
    layout: Layout,
    times: TimeColumn,
    /// Fields per row; rows may have more only if features extend to the end of the row.
    n_fields: usize,
    first: ByteRecord,
}

impl<'a> Table<'a> {
    fn open(source: Source<'a>, format: Format, options: &ReadOptions) -> Result<Self> {
        let records = Records::open(source, options.delimiter)?;
        let is_konect = format == Format::Auto && records.comment == Some(b'%');
        let mut table = Self {
            records,
            format: if is_konect { Format::Konect } else { format },
            header: None,
            layout: Layout::default(),
            times: TimeColumn::Number,
            n_fields: 0,
            first: ByteRecord::new(),
        };
        table.find_layout(options)?;
        Ok(table)
    }

    /// Reads the header, if there is one, and the first row of data.
    fn find_layout(&mut self, options: &ReadOptions) -> Result<()> {
        let mut first = ByteRecord::new();
        self.records.next(&mut first)?;
        if first.is_empty() {
            return Err(Error::at(Place::file(self.records.path()), Problem::Empty));
        }
        let place = self.records.place(&first);
        let names = first.iter().map(|field| std::str::from_utf8(field.trim_ascii()).map(str::to_owned));
        let names: Vec<String> =
            names.collect::<Result<_, _>>().map_err(|_| Error::at(place.clone(), Problem::NotUtf8))?;
        if self.has_header(options, &names) {
            if self.format == Format::Auto {
                self.format = format_of_header(&names);
            }
            self.header = Some(names);
            self.records.next(&mut first)?;
        }
        let fields: Vec<&[u8]> = first.iter().map(<[u8]>::trim_ascii).collect();
        let dates = date_columns(&fields);
        let layout = Layout::resolve(self.format, options, self.header.as_deref(), &fields, &dates);
        self.layout = layout.map_err(|problem| Error::at(place, self.records.delimiter.explain(problem)))?;
        if fields.is_empty() {
            return Err(Error::at(Place::file(self.records.path()), Problem::Empty));
        }
        self.n_fields = match (&self.header, &self.layout.features) {
            // JODIE: the header is shorter than the rows.
            (_, FeatureSpan::From(_)) => self.layout.n_needed(),
            (Some(header), _) => header.len(),
            (None, _) => fields.len(),
        };
        let at = self.layout.time;
        let time = fields.get(at).copied().unwrap_or_default();
        self.times = TimeColumn::of(time, options.time_unit).map_err(|problem| self.problem(&first, at, problem))?;
        if let Some(clock) =
            fields.get(at + 1).filter(|next| self.records.delimiter.byte == b' ' && looks_like_clock(next))
            && looks_like_date(time)
            && time.len() == 10
        {
            let problem = Problem::SplitDate { date: quoted(time), clock: quoted(clock) };
            return Err(self.problem(&first, at, problem));
        }
        self.first = first;
        Ok(())
    }

    fn has_header(&self, options: &ReadOptions, row: &[String]) -> bool {
        options.header.unwrap_or_else(|| match self.format {
            Format::Jodie | Format::Tgb => true,
            Format::Konect => false,
            _ => {
                let time = match &options.time {
                    Some(ColumnRef::Position(position)) => position.saturating_sub(1),
                    Some(ColumnRef::Name(_)) => return true,
                    None => 2,
                };
                // Known column names, or neither a time where a file without header has it nor a date elsewhere.
                let is_data = row.get(time).is_some_and(|field| looks_like_time(field))
                    || row.iter().any(|field| looks_like_date(field.as_bytes()));
                looks_like_header(row) || !is_data
            }
        })
    }

    /// Adds one row to the stream.
    fn push(&self, row: &ByteRecord, builder: &mut StreamBuilder, optional: &mut OptionalColumns) -> Result<()> {
        let layout = &self.layout;
        let has_extra_fields = row.iter().skip(self.n_fields).any(|field| !field.trim_ascii().is_empty());
        if row.len() < self.n_fields || (has_extra_fields && !matches!(layout.features, FeatureSpan::From(_))) {
            let problem = Problem::RowLength { found: row.len() as u64, expected: self.n_fields as u64 };
            return Err(Error::at(self.records.place(row), problem));
        }
        let field = |at: usize| row.get(at).unwrap_or_default().trim_ascii();
        let number = |at: usize| -> Result<f64> {
            let text = field(at);
            let value = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
            value.ok_or_else(|| self.problem(row, at, not_a_number(text)))
        };
        let time = self.times.read(field(layout.time)).map_err(|problem| self.problem(row, layout.time, problem))?;
        #[expect(clippy::cast_possible_truncation, reason = "labels are f32 whatever the file holds")]
        let label = layout.label.map_or(Ok(0.0), number)? as f32;
        let pushed = builder.push(field(layout.src), field(layout.dst), time, label);
        pushed.map_err(|RejectedRow { role, problem }| {
            self.problem(row, layout.position(role), with_original_time(role, *problem, field(layout.time)))
        })?;
        match &layout.features {
            FeatureSpan::At(at) if at.is_empty() && optional.at.is_empty() => Ok(()),
            FeatureSpan::At(at) => self.push_features(row, at.iter().copied(), builder, optional),
            FeatureSpan::From(from) => self.push_features(row, *from..row.len().max(*from), builder, optional),
        }
    }

    fn push_features(
        &self,
        row: &ByteRecord,
        at: impl Iterator<Item = usize>,
        builder: &mut StreamBuilder,
        optional: &mut OptionalColumns,
    ) -> Result<()> {
        let mut values = Vec::with_capacity(at.size_hint().0 + optional.at.len());
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
        for index in 0..optional.at.len() {
            let text = row.get(optional.at[index]).unwrap_or_default().trim_ascii();
            let value = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
            let found = || format!("{} in line {}", quoted(text), self.records.line_of(row));
            values.push(optional.value(index, value, found));
        }
        builder.push_features(values.into_iter()).map_err(|problem| Error::at(self.records.place(row), problem))
    }

    fn problem(&self, row: &ByteRecord, at: usize, problem: Problem) -> Error {
        let place = self.records.place(row);
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
