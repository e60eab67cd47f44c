//! Data sets: files in and out, the bundled set, and the names of the sets that can be fetched.
//!
//! [`read`] takes any file this crate understands, plain, gzip or zstd:
//!
//! | format | what it is |
//! |---|---|
//! | [`Format::Text`] | CSV, TSV or blanks, with or without header; features in columns or in `NAME_features.npy` beside it |
//! | [`Format::Jodie`] | `user,item,timestamp,label,feature…` under a header shorter than its rows |
//! | [`Format::Tgb`] | `timestamp,source,destination,…` edge lists |
//! | [`Format::Konect`] | `source destination weight timestamp` under `%` comments |
//! | [`Format::DyGLib`] | `ml_NAME.csv` with `ml_NAME.npy` and `ml_NAME_node.npy` |
//! | [`Format::Parquet`] | one row per event |
//! | [`Format::Binary`] | our own columns, memory-mapped |

mod atomic;
mod binary;
mod bundled;
mod dyglib;
mod layout;
mod npy;
mod parquet;
mod sidecar;
mod source;
mod text;
mod write;

use std::path::Path;
use std::str::FromStr;

pub use bundled::{COLLEGEMSG, collegemsg};
pub use sidecar::beside;
pub use source::Progress;
use source::Source;
pub use write::{WriteFormat, write, write_file, write_with};

use crate::error::{Error, Problem, Result};
use crate::event::{EventStream, IdKind};

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Decided by the file's name and first line.
    #[default]
    Auto,
    /// Delimited text.
    Text,
    /// JODIE's raw CSV; bipartite unless told otherwise.
    Jodie,
    /// TGB's edge list.
    Tgb,
    /// KONECT's `out.*` file.
    Konect,
    /// DyGLib's processed trio, named by its CSV file.
    DyGLib,
    /// Parquet.
    Parquet,
    /// The compact binary form, `.ctdg`.
    Binary,
}

impl Format {
    /// Every way to read a file.
    pub const ALL: [Self; 8] =
        [Self::Auto, Self::Text, Self::Jodie, Self::Tgb, Self::Konect, Self::DyGLib, Self::Parquet, Self::Binary];
}

/// A column of a table, by name or by position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnRef {
    /// The column of that name.
    Name(String),
    /// The column at that place, from 1.
    Position(usize),
}

impl FromStr for ColumnRef {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.parse() {
            Ok(0) => {
                Err(Problem::Setting { name: "column", found: "0".into(), expected: "a position from 1".into() }.into())
            }
            Ok(position) => Ok(Self::Position(position)),
            Err(_) => Ok(Self::Name(text.to_owned())),
        }
    }
}

/// Which columns are edge features.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum FeatureColumns {
    /// What the format says; in plain text and Parquet, the columns called `feat…`.
    #[default]
    Auto,
    /// None.
    None,
    /// Every column without another role.
    Rest,
    /// These.
    Chosen(Vec<ColumnRef>),
}

/// How to read a file. The default reads anything that names its columns in a usual way.
#[derive(Clone, Default)]
pub struct ReadOptions<'a> {
    /// The format.
    pub format: Format,
    /// The source column.
    pub src: Option<ColumnRef>,
    /// The destination column.
    pub dst: Option<ColumnRef>,
    /// The time column.
    pub time: Option<ColumnRef>,
    /// The label column.
    pub label: Option<ColumnRef>,
    /// The feature columns.
    pub features: FeatureColumns,
    /// Whether the first row names the columns; unknown means look.
    pub header: Option<bool>,
    /// What stands between fields; unknown means look.
    pub delimiter: Option<u8>,
    /// How ids are read.
    pub ids: IdKind,
    /// Whether sources and destinations have names of their own; unknown means as the format has it.
    pub bipartite: Option<bool>,
    /// Put events in order of time instead of refusing times that go backwards.
    pub sort: bool,
    /// Told how far the file has been read.
    pub progress: Option<Progress<'a>>,
}

/// Reads the events of `path`.
///
/// # Complexity
/// One pass; memory is the loaded columns, one table of node names and small buffers. Sorting adds four bytes an event.
pub fn read(path: &Path, options: &ReadOptions<'_>) -> Result<EventStream> {
    let stream = match detect(path, options.format)? {
        Format::Parquet => parquet::read(path, options),
        Format::Binary => binary::read(path),
        Format::DyGLib => dyglib::read(path, options),
        format => text::read(path, format, options),
    };
    stream.map_err(|error| error.in_file(path))
}

/// The format of `path`; text of every kind stays [`Format::Auto`] until its first line is read.
fn detect(path: &Path, asked: Format) -> Result<Format> {
    // A pipe can be read only once, and only text can be read from one.
    let is_file = std::fs::metadata(path).map_err(|source| Error::io(path, "open", source))?.is_file();
    if asked != Format::Auto || !is_file {
        return Ok(asked);
    }
    let head = Source::open(path, None)?.head(binary::MAGIC.len())?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(match &head[..] {
        [b'P', b'A', b'R', b'1', ..] => Format::Parquet,
        head if head == binary::MAGIC => Format::Binary,
        _ if name.starts_with("ml_") && name.contains(".csv") => Format::DyGLib,
        _ => Format::Auto,
    })
}
