//! The crate's error type: where in the input, what was found, what was expected, and what to do.

mod code;
mod counted;
pub(crate) mod limit;
mod printable;
mod problem;
mod remedy;

use std::fmt;
use std::path::{Path, PathBuf};

pub use counted::counted;
use printable::Printable;
pub use printable::{printable, printable_lines};
pub use problem::Problem;
pub use remedy::Remedy;

/// Result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong and where.
///
/// Displays as `file, line L, column C (name): problem; remedy`, leaving out what is not known, on one line and without
/// anything that a terminal would act on, whatever the file and its name hold ([`printable`]).
pub struct Error {
    inner: Box<Inner>,
}

/// As [`Display`](fmt::Display): a `main` that returns this error prints its message.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
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
            write!(f, "{}", Printable(file.display()))?;
            separator = ", ";
        }
        for (word, number) in [("line", self.line), ("row", self.row), ("column", self.column)] {
            if let Some(number) = number {
                write!(f, "{separator}{word} {number}")?;
                separator = ", ";
            }
        }
        match &self.name {
            Some(name) if self.column.is_some() => write!(f, " ({})", Printable(name)),
            Some(name) => write!(f, "{separator}{}", Printable(name)),
            None => Ok(()),
        }
    }
}

impl Error {
    /// An error with a known place.
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

    /// What can be done about it, where something can.
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        self.problem().remedy()
    }

    /// The message without the remedy: `file, line L, column C (name): problem`.
    ///
    /// A front end that words remedies itself prints this and then its own words for [`Error::remedy`].
    #[must_use]
    pub fn finding(&self) -> impl fmt::Display {
        Finding(&self.inner)
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

/// An error without its remedy.
struct Finding<'a>(&'a Inner);

impl fmt::Display for Finding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { place, problem } = self.0;
        if *place != Place::default() {
            write!(f, "{place}: ")?;
        }
        write!(f, "{}", Printable(problem))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.finding())?;
        match self.remedy() {
            Some(remedy) => write!(f, "; {}", Printable(remedy)),
            None => Ok(()),
        }
    }
}

/// No `source()`: the operating system's message is part of ours, so a chain does not print it twice.
impl std::error::Error for Error {}

/// Quotes input text, shortened to one line.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    const MAX_CHARS: usize = 40;
    let text = String::from_utf8_lossy(bytes);
    if text.is_empty() {
        return "an empty field".into();
    }
    let mut short: String = text.chars().take(MAX_CHARS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}
