//! Records of delimited text: delimiter, comments, line numbers, and rows of bounded length.

use std::cell::{Cell, RefCell};
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use csv::ByteRecord;

use super::input::{FoldBlanks, RowGuard, RowTooLong, Window, Windowed, first_line, guess_delimiter, sniff_delimiter};
use crate::dataset::source::{Compression, Source};
use crate::error::{Error, Place, Problem, Result, quoted};

/// Bytes inspected for delimiter and comments.
const HEAD_BYTES: u64 = 1 << 16;

/// The rows of a text file, whatever they mean.
pub(crate) struct Records<'a> {
    path: PathBuf,
    compression: Compression,
    pub(crate) delimiter: Delimiter,
    /// What a comment begins with, if the first line is one.
    pub(crate) comment: Option<u8>,
    reader: csv::Reader<Box<dyn Read + 'a>>,
    /// Bytes read since the last row was complete.
    unfinished: Rc<Cell<usize>>,
    /// For line numbers.
    window: Rc<RefCell<Window>>,
}

impl<'a> Records<'a> {
    /// Rows of `source`; the delimiter is decided by the first line unless it is given.
    pub(crate) fn open(mut source: Source<'a>, delimiter: Option<u8>) -> Result<Self> {
        let path = source.path().to_path_buf();
        let compression = source.compression();
        let mut head = Vec::new();
        let read = (&mut source).take(HEAD_BYTES).read_to_end(&mut head);
        read.map_err(|error| Source::explain(&path, compression, error))?;
        if head.starts_with(b"\xef\xbb\xbf") {
            head.drain(..3);
        }
        let comment = head.first().copied().filter(|byte| [b'%', b'#'].contains(byte));
        let line = first_line(&head, comment);
        let delimiter = Delimiter {
            byte: delimiter.or_else(|| sniff_delimiter(line)).unwrap_or(b','),
            guess: guess_delimiter(line).filter(|_| delimiter.is_none()),
            is_unknown: delimiter.is_none() && sniff_delimiter(line).is_none(),
            line: quoted(line),
        };
        let (unfinished, window) = (Rc::new(Cell::new(0)), Rc::new(RefCell::default()));
        let guarded = RowGuard { inner: Cursor::new(head).chain(source), unfinished: Rc::clone(&unfinished) };
        let text: Box<dyn Read + 'a> = match delimiter.byte {
            b' ' => {
                let inner = FoldBlanks { inner: guarded, before: b'\n' };
                Box::new(Windowed { inner, window: Rc::clone(&window) })
            }
            _ => Box::new(Windowed { inner: guarded, window: Rc::clone(&window) }),
        };
        let mut builder = csv::ReaderBuilder::new();
        let builder = builder.has_headers(false).flexible(true).delimiter(delimiter.byte).comment(comment);
        let reader = builder.buffer_capacity(1 << 16).from_reader(text);
        Ok(Self { path, compression, delimiter, comment, reader, unfinished, window })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the next row; empty at the end.
    pub(crate) fn next(&mut self, row: &mut ByteRecord) -> Result<()> {
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

    /// The line of the row that was read last.
    pub(crate) fn line_of(&self, row: &ByteRecord) -> u64 {
        self.window.borrow().line_of(row, self.reader.position())
    }

    pub(crate) fn place(&self, row: &ByteRecord) -> Place {
        Place::file(&self.path).line(self.line_of(row))
    }
}

/// How the fields of a file are separated, and what is said if no columns are found.
pub(crate) struct Delimiter {
    pub(crate) byte: u8,
    /// A character that seems to separate fields instead.
    guess: Option<char>,
    /// Whether nothing that separates fields was recognised.
    is_unknown: bool,
    /// The first line, quoted.
    line: String,
}

impl Delimiter {
    /// `problem`, or that the delimiter is not known if that is why a column is missing.
    pub(crate) fn explain(&self, problem: Problem) -> Problem {
        // A blank may be part of a name; these hardly are.
        let is_why = self.is_unknown || (self.byte == b' ' && matches!(self.guess, Some('|' | '~' | '^')));
        match problem {
            Problem::MissingColumn { .. } if is_why => {
                Problem::UnknownDelimiter { found: self.line.clone(), guess: self.guess }
            }
            problem => problem,
        }
    }
}
