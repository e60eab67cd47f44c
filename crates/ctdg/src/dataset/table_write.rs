//! Writes a table of any columns.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use crate::dataset::atomic::PendingFile;
use crate::dataset::write::iso;
use crate::dataset::{WriteFormat, parquet};
use crate::error::Result;
use crate::time::{TimeFormat, exact_micros};

/// A column of a table to write.
///
/// See [`table`](crate::dataset::table) for an example.
#[derive(Debug)]
pub struct TableColumn<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its values.
    pub values: TableValues<'a>,
}

/// The values of a column, each made when it is written: nothing is kept but what the caller has.
pub enum TableValues<'a> {
    /// Any text.
    Text(Box<dyn Fn(usize) -> Cow<'a, str> + 'a>),
    /// Integers.
    Integers(Box<dyn Fn(usize) -> i64 + 'a>),
    /// Numbers, in text the shortest that are read as the same value.
    Floats(Box<dyn Fn(usize) -> f32 + 'a>),
    /// Times of a stream: numbers, or dates in UTC if it has dates and all of these are whole microseconds.
    Times(TimeFormat, Box<dyn Fn(usize) -> f64 + 'a>),
}

impl std::fmt::Debug for TableValues<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Text(_) => "Text",
            Self::Integers(_) => "Integers",
            Self::Floats(_) => "Floats",
            Self::Times(..) => "Times",
        })
    }
}

impl TableValues<'_> {
    /// Whether these are times that are written as dates.
    pub(crate) fn are_dates(&self, n_rows: usize) -> bool {
        match self {
            Self::Times(TimeFormat::Date, time) => (0..n_rows).all(|row| exact_micros(time(row)).is_some()),
            _ => false,
        }
    }
}

/// Writes the first `n_rows` rows of `columns` to `path`, as text or Parquet; the file appears complete or not at all.
pub fn write_table(path: &Path, format: WriteFormat, n_rows: usize, columns: &[TableColumn<'_>]) -> Result<()> {
    let delimiter = match format {
        WriteFormat::Text(delimiter) => Some(delimiter),
        WriteFormat::Parquet => None,
        WriteFormat::Binary => return Err(WriteFormat::refuse_binary(path)),
    };
    let pending = PendingFile::write(path, |out| match delimiter {
        Some(delimiter) => write_table_text(out, delimiter, n_rows, columns),
        None => parquet::write_table(out, n_rows, columns).map_err(io::Error::other),
    })?;
    pending.commit()
}

/// Writes the first `n_rows` rows of `columns` to `out` as delimited text with a header. Fields that need quotes get them.
///
/// ```
/// use ctdg::dataset::{TableColumn, TableValues, write_table_text};
///
/// let who = TableColumn { name: "who".into(), values: TableValues::Text(Box::new(|_| "ann, \"the\" ann".into())) };
/// let mut out = Vec::new();
/// write_table_text(&mut out, b',', 1, &[who])?;
/// assert_eq!(out, b"who\n\"ann, \"\"the\"\" ann\"\n");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write_table_text(
    out: &mut dyn Write,
    delimiter: u8,
    n_rows: usize,
    columns: &[TableColumn<'_>],
) -> io::Result<()> {
    let mut table = csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
    table.write_record(columns.iter().map(|column| column.name.as_bytes())).map_err(io_error)?;
    let are_dates: Vec<bool> = columns.iter().map(|column| column.values.are_dates(n_rows)).collect();
    for row in 0..n_rows {
        for (column, is_date) in columns.iter().zip(&are_dates) {
            let written = match &column.values {
                TableValues::Text(text) => table.write_field(text(row).as_bytes()),
                TableValues::Integers(integer) => table.write_field(integer(row).to_string()),
                TableValues::Floats(float) => table.write_field(float(row).to_string()),
                TableValues::Times(_, time) if *is_date => table.write_field(iso(time(row))),
                TableValues::Times(_, time) => table.write_field(TimeFormat::Number.show(time(row))),
            };
            written.map_err(io_error)?;
        }
        table.write_record(None::<&[u8]>).map_err(io_error)?;
    }
    table.flush()
}

/// The error of the system itself, so that its kind is not lost: a closed pipe is no failure.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
