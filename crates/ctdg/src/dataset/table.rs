//! Tables of any columns: read row by row as text, written column by column.
//!
//! Events have their own readers; these are for what goes with them, such as pairs to be scored and their scores.
//!
//! ```
//! use ctdg::dataset::{TableColumn, TableReader, TableRow, TableValues, WriteFormat, write_table};
//!
//! # let folder = tempfile::tempdir().expect("a folder");
//! for name in ["scores.csv", "scores.tsv.gz", "scores.parquet"] {
//!     let path = folder.path().join(name);
//!     let columns = [
//!         TableColumn { name: "who".into(), values: TableValues::Text(Box::new(|row| ["ann, ltd.", "bob"][row].into())) },
//!         TableColumn { name: "score".into(), values: TableValues::Floats(Box::new(|row| [0.25, 0.5][row])) },
//!     ];
//!     write_table(&path, WriteFormat::of_path(&path)?, 2, &columns)?;
//!
//!     let (mut reader, mut row) = (TableReader::open(&path, None)?, TableRow::default());
//!     if reader.names().is_none() {
//!         reader.next(&mut row)?; // text does not say which row is the header
//!         assert_eq!(row.iter().collect::<Vec<_>>(), ["who", "score"]);
//!     }
//!     assert!(reader.next(&mut row)?);
//!     assert_eq!(row.iter().collect::<Vec<_>>(), ["ann, ltd.", "0.25"]);
//! }
//! # Ok::<(), ctdg::Error>(())
//! ```

use std::io::Read;
use std::path::Path;

use csv::StringRecord;

use crate::dataset::parquet::ParquetRows;
use crate::dataset::source::{Compression, Source};
use crate::dataset::text::Records;
use crate::dataset::{Format, detect};
use crate::error::{Error, Place, Problem, Result};

/// Reads a table row by row: delimited text, plain, gzip or zstd, or Parquet. See the [module](self) for an example.
pub struct TableReader<'a> {
    rows: Rows<'a>,
}

enum Rows<'a> {
    Text(Records<'a>),
    Parquet(ParquetRows),
}

impl std::fmt::Debug for TableReader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableReader").field("path", &self.path()).finish_non_exhaustive()
    }
}

/// One row as text, exactly as it is in the file; reused between rows. A value that is missing is empty.
#[derive(Debug, Clone, Default)]
pub struct TableRow {
    pub(crate) fields: StringRecord,
    /// Line of a text file from 1, or row of a Parquet file from 0.
    at: u64,
}

impl TableRow {
    /// Number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The field at a position from 0, if the row is that long.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<&str> {
        self.fields.get(at)
    }

    /// All fields.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.fields.iter()
    }
}

impl<'a> TableReader<'a> {
    /// Opens a file. `delimiter` is that of text; `None` decides by the extension if it is `.tsv`, and by the first line otherwise.
    pub fn open(path: &Path, delimiter: Option<u8>) -> Result<Self> {
        // A line of a .tsv file may have blanks within its fields.
        let is_tsv = Compression::of_name(&path.to_string_lossy()).1.to_ascii_lowercase().ends_with(".tsv");
        let delimiter = delimiter.or(is_tsv.then_some(b'\t'));
        if detect(path, Format::Auto)? == Format::Parquet {
            return Ok(Self { rows: Rows::Parquet(ParquetRows::open(path)?) });
        }
        Ok(Self { rows: Rows::Text(Records::open(Source::open(path, None)?, delimiter)?) })
    }

    /// Reads text from elsewhere, such as standard input; errors call it `name`.
    pub fn from_reader(name: &Path, bytes: impl Read + 'a, delimiter: Option<u8>) -> Result<Self> {
        Ok(Self { rows: Rows::Text(Records::open(Source::new(name, bytes)?, delimiter)?) })
    }

    /// The names of the columns, if the format has them: those of Parquet. In text they are a row like the others.
    #[must_use]
    pub fn names(&self) -> Option<&[String]> {
        match &self.rows {
            Rows::Text(_) => None,
            Rows::Parquet(rows) => Some(rows.names()),
        }
    }

    /// The byte between the fields of text.
    #[must_use]
    pub fn delimiter(&self) -> Option<u8> {
        match &self.rows {
            Rows::Text(records) => Some(records.delimiter.byte),
            Rows::Parquet(_) => None,
        }
    }

    /// Reads the next row that is not empty; false at the end.
    pub fn next(&mut self, row: &mut TableRow) -> Result<bool> {
        match &mut self.rows {
            Rows::Text(records) => {
                let mut bytes = std::mem::take(&mut row.fields).into_byte_record();
                records.next(&mut bytes)?;
                row.at = records.line_of(&bytes);
                let place = || Place::file(records.path()).line(row.at);
                row.fields = StringRecord::from_byte_record(bytes).map_err(|_| Error::at(place(), Problem::NotUtf8))?;
                Ok(!row.is_empty())
            }
            Rows::Parquet(rows) => {
                row.at = rows.n_read();
                rows.next(&mut row.fields)
            }
        }
    }

    /// The file, as it was named.
    #[must_use]
    pub fn path(&self) -> &Path {
        match &self.rows {
            Rows::Text(records) => records.path(),
            Rows::Parquet(rows) => rows.path(),
        }
    }

    /// Where `row` is.
    #[must_use]
    pub fn place(&self, row: &TableRow) -> Place {
        let place = Place::file(self.path());
        match &self.rows {
            Rows::Text(_) => place.line(row.at),
            Rows::Parquet(_) => place.row(row.at),
        }
    }
}
