//! Reading and writing event files, and the bundled dataset.
//!
//! [`read`] accepts these formats, plain, gzip or zstd, and detects which:
//!
//! | format | what it is |
//! |---|---|
//! | [`Format::Text`] | delimited by comma, tab, semicolon or blanks, with or without header; features in columns or in `NAME_features.npy` |
//! | [`Format::Jodie`] | `user,item,timestamp,label,feature…` under a header shorter than its rows |
//! | [`Format::Tgb`] | `timestamp,source,destination,…` edge lists |
//! | [`Format::Konect`] | `source destination weight timestamp` under `%` comments |
//! | [`Format::DyGLib`] | `ml_NAME.csv` with `ml_NAME.npy` and `ml_NAME_node.npy` |
//! | [`Format::Parquet`] | one row per event |
//! | [`Format::Binary`] | `.ctdg`: memory-mapped columns |
//! | [`Format::Log`] | the folder of a [log], to which a server appends |
//!
//! [`write()`] writes CSV, TSV, Parquet and `.ctdg`; a written file appears complete or not at all.
//!
//! ```
//! use ctdg::dataset::{ReadOptions, WriteFormat, read, write};
//! use ctdg::event::EventStream;
//!
//! let folder = std::env::temp_dir().join(format!("ctdg-example-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).expect("a writable folder");
//! let stream = EventStream::from_events([(0, 1, 1.0), (1, 2, 2.5)])?;
//! for name in ["events.csv", "events.parquet", "events.ctdg"] {
//!     let path = folder.join(name);
//!     write(&stream, &path, WriteFormat::of_path(&path)?)?;
//!     assert_eq!(read(&path, &ReadOptions::default())?, stream);
//! }
//! # std::fs::remove_dir_all(&folder).expect("our own folder");
//! # Ok::<(), ctdg::Error>(())
//! ```

mod atomic;
mod binary;
mod bundled;
mod columns;
mod dyglib;
mod dyglib_write;
mod layout;
mod litter;
pub mod log;
mod npy;
mod parquet;
mod report;
mod sidecar;
mod source;
pub mod table;
mod table_write;
mod text;
mod time_column;
mod write;

use std::num::NonZeroUsize;
use std::path::Path;
use std::str::FromStr;

pub use atomic::PendingFile;
pub(crate) use atomic::set_default_permissions;
pub use bundled::{COLLEGEMSG, collegemsg};
pub use columns::{ColumnBlock, ColumnKind, ColumnReader, ColumnValues, TextColumn};
pub use dyglib_write::{dyglib_files, write_dyglib};
pub use layout::PairColumns;
pub use litter::{sweep, temporary_prefix};
pub use parquet::catch_quietly;
pub use report::{ReadReport, UnusedColumn, UnusedReason};
use serde::{Deserialize, Deserializer, Serialize};
pub use sidecar::sidecar_path;
use source::OnProgress;
pub(crate) use source::Source;
pub use table::{TableReader, TableRow};
pub use table_write::{TableColumn, TableValues, write_table, write_table_text};
pub use time_column::TimeUnit;
pub use write::{WriteFormat, files_to_write, write, write_file, write_with};

use crate::error::{Error, Problem, Result};
use crate::event::{EventStream, IdKind, Spill};

/// Format of an event file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Decided by the file's name and first line.
    #[default]
    Auto,
    /// Delimited text.
    Text,
    /// JODIE's raw CSV; bipartite by default.
    Jodie,
    /// TGB's edge list.
    Tgb,
    /// KONECT's `out.*` file.
    Konect,
    /// DyGLib's three processed files, named by the CSV file.
    DyGLib,
    /// Parquet.
    Parquet,
    /// Memory-mapped columns, `.ctdg`.
    Binary,
    /// The folder of a [log], to which a server appends.
    Log,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 9] = [
        Self::Auto,
        Self::Text,
        Self::Jodie,
        Self::Tgb,
        Self::Konect,
        Self::DyGLib,
        Self::Parquet,
        Self::Binary,
        Self::Log,
    ];
}

/// A column of a table, by name or by position. In JSON and TOML a string or a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected the name of a column, or its position from 1")]
pub enum ColumnRef {
    /// The column of that name.
    Name(String),
    /// The column at that position, from 1.
    Position(#[serde(deserialize_with = "position_from_1")] usize),
}

fn position_from_1<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    NonZeroUsize::deserialize(deserializer).map(NonZeroUsize::get)
}

/// The column of that name, whatever it looks like.
impl From<&str> for ColumnRef {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
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
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FeatureColumns {
    /// As the format defines; in plain text and Parquet, the columns named `feat…`.
    #[default]
    Auto,
    /// None.
    None,
    /// Every column without another role.
    Rest,
    /// Those of `Auto`, then every other column without a role whose values are all numbers, then the features of a sidecar.
    Numeric,
    /// The given columns.
    Chosen(Vec<ColumnRef>),
}

/// How to read a file. The default reads anything that names its columns in a usual way.
///
/// Plain data: a manifest can carry it as JSON or TOML and read the same file in the same way again. Missing fields take
/// their defaults; unknown ones are refused.
///
/// ```
/// use ctdg::dataset::{ColumnRef, ReadOptions};
///
/// let options: ReadOptions = serde_json::from_str(r#"{"src": "sender", "time": 4, "delimiter": ";"}"#)?;
/// assert_eq!(options.time, Some(ColumnRef::Position(4)));
/// assert!(!options.sort);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ReadOptions {
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
    /// Whether the first row names the columns; `None` decides by the row itself.
    pub header: Option<bool>,
    /// The byte between fields; `None` decides by the first lines. One character in JSON and TOML.
    #[serde(with = "delimiter")]
    pub delimiter: Option<u8>,
    /// How ids are read.
    pub ids: IdKind,
    /// Whether sources and destinations are two kinds of nodes with separate names; `None` leaves it to the format.
    pub bipartite: Option<bool>,
    /// Sort the events by time instead of refusing times that go backwards.
    pub sort: bool,
    /// The times are Unix times in this unit: they are converted to seconds and shown as dates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_unit: Option<TimeUnit>,
    /// Drop events that are equal to an earlier one in source, destination, time, label and features.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dedup: bool,
    /// Where columns go that outgrow memory; they never do by default. Says nothing of what is read, so no manifest carries it.
    #[serde(skip)]
    pub spill: Option<Spill>,
}

/// A delimiter as a string of one character.
mod delimiter {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    #[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
    pub(super) fn serialize<S: Serializer>(delimiter: &Option<u8>, serializer: S) -> Result<S::Ok, S::Error> {
        delimiter.map(char::from).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u8>, D::Error> {
        let Some(delimiter) = Option::<char>::deserialize(deserializer)? else { return Ok(None) };
        let byte = u8::try_from(delimiter).ok().filter(u8::is_ascii);
        byte.map(Some).ok_or_else(|| de::Error::custom("expected one ASCII character as the delimiter"))
    }
}

/// Reads the events of `path`.
///
/// # Complexity
/// One pass; memory is the loaded columns, one table of node names and small buffers. Sorting adds four bytes an event.
///
/// # Example
/// ```no_run
/// use ctdg::dataset::{ReadOptions, read};
///
/// let stream = read("events.csv".as_ref(), &ReadOptions { sort: true, ..ReadOptions::default() })?;
/// println!("{} events of {} nodes", stream.len(), stream.n_nodes());
/// # Ok::<(), ctdg::Error>(())
/// ```
pub fn read(path: &Path, options: &ReadOptions) -> Result<EventStream> {
    read_any(path, options, None).map(|(stream, _)| stream)
}

/// [`read`], calling `progress` with what has been read and the total, about once a megabyte: bytes of a text file, rows
/// of a Parquet file. A `.ctdg` file is memory-mapped and reports nothing.
pub fn read_with_progress(path: &Path, options: &ReadOptions, progress: &dyn Fn(u64, u64)) -> Result<EventStream> {
    read_any(path, options, Some(progress)).map(|(stream, _)| stream)
}

/// [`read_with_progress`], and what was left out: columns without a role, duplicates.
pub fn read_with_report(
    path: &Path,
    options: &ReadOptions,
    progress: &dyn Fn(u64, u64),
) -> Result<(EventStream, ReadReport)> {
    read_any(path, options, Some(progress))
}

fn read_any(path: &Path, options: &ReadOptions, progress: OnProgress<'_>) -> Result<(EventStream, ReadReport)> {
    let loaded = match detect(path, options.format)? {
        Format::Parquet => parquet::read(path, options, progress),
        Format::Binary => binary::read(path, options).map(|stream| (stream, ReadReport::default())),
        Format::Log => log::read(path).map(|stream| (stream, ReadReport::default())),
        Format::DyGLib => dyglib::read(path, options, progress).map(|stream| (stream, ReadReport::default())),
        format => text::read(path, format, options, progress),
    };
    let (stream, mut report) = loaded.map_err(|error| error.in_file(path))?;
    if !options.dedup {
        return Ok((stream, report));
    }
    let n_events = stream.len();
    let stream = stream.without_duplicates()?;
    report.n_duplicates = n_events - stream.len();
    Ok((stream, report))
}

/// The format of `path`; text formats stay [`Format::Auto`] until the first line is read.
fn detect(path: &Path, asked: Format) -> Result<Format> {
    // A pipe can be read only once, so its first bytes cannot be inspected; it must hold text.
    let is_file = std::fs::metadata(path).map_err(|source| Error::io(path, "open", source))?.is_file();
    if asked == Format::Auto && log::is_log(path) {
        return Ok(Format::Log);
    }
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
