//! The crate's one error: where in the input, what was found, what was expected, and the way out.

use std::fmt;
use std::path::{Path, PathBuf};

/// Result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong and where.
///
/// Displays as `file, line L, column C (name): problem; remedy`, leaving out what is not known.
#[derive(Debug)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Debug)]
struct Inner {
    place: Place,
    problem: Problem,
}

/// Where in an input a problem was found. Every part may be unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The file, as the caller named it.
    pub file: Option<PathBuf>,
    /// Line of a text file, counted from 1 and including the header.
    pub line: Option<u64>,
    /// Row of a binary table (Parquet, npy), counted from 0.
    pub row: Option<u64>,
    /// Field of the line, counted from 1.
    pub column: Option<u64>,
    /// Name of the column.
    pub name: Option<String>,
}

impl Place {
    /// Somewhere in `file`.
    pub fn file(file: impl AsRef<Path>) -> Self {
        Self { file: Some(file.as_ref().to_path_buf()), ..Self::default() }
    }

    /// The same place, on `line`.
    #[must_use]
    pub fn line(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }

    /// The same place, in `row` of a binary table.
    #[must_use]
    pub fn row(mut self, row: u64) -> Self {
        self.row = Some(row);
        self
    }

    /// The same place, in the `column`-th field, called `name`.
    #[must_use]
    pub fn column(mut self, column: u64, name: impl Into<String>) -> Self {
        self.column = Some(column);
        self.name = Some(name.into());
        self
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        if let Some(file) = &self.file {
            write!(f, "{}", file.display())?;
            separator = ", ";
        }
        for (word, number) in [("line", self.line), ("row", self.row), ("column", self.column)] {
            if let Some(number) = number {
                write!(f, "{separator}{word} {number}")?;
                separator = ", ";
            }
        }
        match &self.name {
            Some(name) if self.column.is_some() => write!(f, " ({name})"),
            Some(name) => write!(f, "{separator}{name}"),
            None => Ok(()),
        }
    }
}

/// The kinds of failure, each with its facts. [`Problem::remedy`] names the way out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The operating system refused a file operation.
    #[error("could not {action}: {source}")]
    Io {
        /// What was attempted, e.g. `open`.
        action: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A file without a single event.
    #[error("found no events, expected at least one")]
    Empty,
    /// No column plays a role that must be filled.
    #[error("found no {role} column among {have}, expected one of {expected}")]
    MissingColumn {
        /// `source`, `destination` or `time`.
        role: &'static str,
        /// The names that would have been taken.
        expected: String,
        /// The columns of the file.
        have: String,
    },
    /// Two columns of one name, or two roles on one column.
    #[error("found {what} twice, expected it once")]
    DuplicateColumn {
        /// The repeated column.
        what: String,
    },
    /// A column position past the end of the row.
    #[error("found {found} fields, expected at least {expected}")]
    ShortRow {
        /// Fields in the row.
        found: u64,
        /// Fields needed.
        expected: u64,
    },
    /// Text where a number must stand.
    #[error("found {found}, expected {expected}")]
    NotANumber {
        /// The text, quoted and shortened.
        found: String,
        /// e.g. `a number`.
        expected: &'static str,
    },
    /// A NaN or infinite time.
    #[error("found the time {found}, expected a finite number")]
    NonFiniteTime {
        /// The value as text.
        found: String,
    },
    /// A NaN or infinite feature or label.
    #[error("found {found}, expected a finite number")]
    NonFiniteValue {
        /// The value as text.
        found: String,
    },
    /// Time goes backwards and sorting was not asked for.
    #[error("found the time {found} after {previous}, expected times that never go backwards")]
    TimeBackwards {
        /// This event's time.
        found: f64,
        /// The time before it.
        previous: f64,
    },
    /// A negative integer id.
    #[error("found the negative node id {found}, expected an integer of at least 0")]
    NegativeId {
        /// The id.
        found: String,
    },
    /// An integer id beyond 64 bits.
    #[error("found the node id {found}, expected at most {max}", max = u64::MAX)]
    IdOverflow {
        /// The id as text.
        found: String,
    },
    /// More of something than this crate counts.
    #[error("found more than {max} {what}, expected at most that many")]
    TooMany {
        /// `nodes`, `events`, …
        what: &'static str,
        /// The limit.
        max: u64,
    },
    /// A null where a value must stand (Parquet).
    #[error("found no value, expected one in every row")]
    Null,
    /// A column of a type that cannot play its role (Parquet, npy).
    #[error("found values of type {found}, expected {expected}")]
    WrongType {
        /// The type in the file.
        found: String,
        /// What would do.
        expected: &'static str,
    },
    /// Feature rows and events (or nodes) do not agree in number.
    #[error("found {found} feature rows, expected {expected}, one for each of the {of}")]
    FeatureRows {
        /// Rows in the file.
        found: u64,
        /// Rows needed.
        expected: u64,
        /// `events`, `nodes`, …
        of: &'static str,
    },
    /// A row with another number of features than the first.
    #[error("found {found} features, expected {expected} as in the first row")]
    FeatureWidth {
        /// Features in this row.
        found: u64,
        /// Features in the first row.
        expected: u64,
    },
    /// A compressed stream ends too early.
    #[error("found the end of the {format} stream too early, expected its closing mark")]
    Truncated {
        /// `gzip`, `zstd`, …
        format: &'static str,
    },
    /// Bytes that are not what their format promises.
    #[error("found damaged {format} data ({detail}), expected a sound file")]
    Corrupt {
        /// `gzip`, `zstd`, `Parquet`, …
        format: &'static str,
        /// What the decoder says.
        detail: String,
    },
    /// A file of another format or version than asked for.
    #[error("found {found}, expected {expected}")]
    WrongFormat {
        /// What it looks like.
        found: String,
        /// What was asked for.
        expected: String,
    },
    /// Bytes that are not UTF-8 text.
    #[error("found bytes that are not UTF-8, expected text")]
    NotUtf8,
    /// A setting outside its range.
    #[error("found {name} = {found}, expected {expected}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// Its value.
        found: String,
        /// The range.
        expected: String,
    },
    /// A name that is neither bundled, known nor a file.
    #[error("found no data set or file called {name}, expected one of {known} or a path")]
    UnknownData {
        /// The name asked for.
        name: String,
        /// What is known.
        known: String,
    },
    /// A known data set that has not been fetched yet.
    #[error("the data set {name} is not on this machine")]
    NotFetched {
        /// The data set.
        name: String,
    },
    /// A set of pairs out of which nothing is left to draw.
    #[error("found no pair to draw a negative from, expected a source and destination that the batch does not hold")]
    NoNegative,
    /// A node that the stream does not have.
    #[error("found no node called {name}, expected a node of the stream")]
    UnknownNode {
        /// The name asked for.
        name: String,
    },
    /// A k-DWL run that would not fit in memory.
    #[error("found k = {k} with {tuples} tuples, which takes about {needed}, expected at most {allowed}; {largest}")]
    WlBudget {
        /// The dimension asked for.
        k: usize,
        /// Tuples of all graphs.
        tuples: u128,
        /// Memory estimated.
        needed: String,
        /// Memory allowed.
        allowed: String,
        /// The largest dimension within it, in words.
        largest: String,
    },
    /// A search for an isomorphism that grew too long.
    #[error("found neither an isomorphism nor a proof that there is none in {steps} steps, expected one of them")]
    WlSearch {
        /// Steps taken.
        steps: u64,
    },
}

impl Problem {
    /// What the person can do about it, where there is something.
    #[must_use]
    pub fn remedy(&self) -> Option<&'static str> {
        Some(match self {
            Self::MissingColumn { .. } => {
                "name the columns with --src, --dst and --time (a name or a position from 1), or give --no-header"
            }
            Self::DuplicateColumn { .. } => "rename one, or choose columns by position with --src, --dst and --time",
            Self::TimeBackwards { .. } => "sort the file, or let --sort do it",
            Self::NegativeId { .. } | Self::IdOverflow { .. } => "take ids as names with --ids text",
            Self::NotANumber { expected: "an integer node id", .. } => "take ids as names with --ids text",
            Self::Truncated { .. } => "the file was cut off; fetch or copy it again",
            Self::Corrupt { .. } => "fetch or copy the file again",
            Self::NotUtf8 => "save the file as UTF-8",
            Self::Null => "drop the rows without a value, or fill them in",
            Self::FeatureRows { .. } => "make the feature file again from the same events",
            Self::FeatureWidth { .. } | Self::ShortRow { .. } => "make every row equally long",
            Self::Empty => "check that the right file and columns were given",
            Self::NotFetched { .. } => "fetch it with `hopedgn data fetch NAME`",
            Self::UnknownData { .. } => "see `hopedgn data list`",
            Self::WrongFormat { .. } => "name the format with --format",
            Self::UnknownNode { .. } => "name nodes as the input does",
            Self::WlBudget { .. } => "take a smaller k, or allow more with --max-memory",
            Self::WlSearch { .. } => "compare with k-DWL for k = 3 or 4 instead",
            _ => return None,
        })
    }
}

impl Error {
    /// An error of which the place is known.
    #[must_use]
    pub fn at(place: Place, problem: Problem) -> Self {
        Self { inner: Box::new(Inner { place, problem }) }
    }

    /// A failed file operation.
    pub fn io(path: impl AsRef<Path>, action: &'static str, source: std::io::Error) -> Self {
        Self::at(Place::file(path), Problem::Io { action, source })
    }

    /// What went wrong.
    #[must_use]
    pub fn problem(&self) -> &Problem {
        &self.inner.problem
    }

    /// Where it went wrong.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.inner.place
    }

    /// The same error, in `file` if no file was known.
    #[must_use]
    pub fn in_file(mut self, file: impl AsRef<Path>) -> Self {
        self.inner.place.file.get_or_insert_with(|| file.as_ref().to_path_buf());
        self
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self::at(Place::default(), problem)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { place, problem } = &*self.inner;
        if *place != Place::default() {
            write!(f, "{place}: ")?;
        }
        write!(f, "{problem}")?;
        match problem.remedy() {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.inner.problem)
    }
}

/// Quotes what was found in an input so that a message stays on one short line.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    const LONGEST: usize = 40;
    let text = String::from_utf8_lossy(bytes);
    if text.is_empty() {
        return "an empty field".into();
    }
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}
