//! Bytes of a text file on their way to the parser: delimiter, row length, runs of blanks, line ends.

use std::cell::{Cell, RefCell};
use std::io::{self, Read};
use std::rc::Rc;

use csv::ByteRecord;

use crate::dataset::time_column::looks_like_date;

/// Longer rows are refused as damage, so that memory stays bounded.
const MAX_ROW_BYTES: usize = 16 << 20;

/// The first line that is no comment, without line end.
pub(super) fn first_line(head: &[u8], comment: Option<u8>) -> &[u8] {
    let mut lines = head.split(|byte| b"\r\n".contains(byte)).map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    lines.find(|line| comment.is_none() || line.first().copied() != comment).unwrap_or_default()
}

/// The delimiter of a line, if it has one that is recognised. A line with both blanks and tabs is delimited by runs of
/// blanks, unless the blank is that of a date with a clock time.
pub(super) fn sniff_delimiter(line: &[u8]) -> Option<u8> {
    let has = |byte: u8| line.contains(&byte);
    if has(b'\t') && has(b' ') && !has(b',') {
        let is_spaced_date = |field: &[u8]| looks_like_date(field) && field.get(10) == Some(&b' ');
        return Some(if line.split(|&byte| byte == b'\t').any(is_spaced_date) { b'\t' } else { b' ' });
    }
    [b'\t', b',', b';', b' '].into_iter().find(|&delimiter| has(delimiter))
}

/// A character that cuts `line` into at least three fields, though it is not recognised as a delimiter by itself.
pub(super) fn guess_delimiter(line: &[u8]) -> Option<char> {
    let n_fields = |delimiter: u8| line.split(|&byte| byte == delimiter).count();
    let found = b"|~^:/!&@#$%*+=_".iter().copied().find(|&delimiter| n_fields(delimiter) >= 3);
    found.map(char::from)
}

/// The last bytes that the parser was given, from which it takes rows.
#[derive(Default)]
pub(super) struct Window {
    /// Offset of `bytes`.
    start: u64,
    bytes: Vec<u8>,
    /// The byte before `bytes`.
    before: Option<u8>,
}

impl Window {
    /// The byte before offset `at`, which lies in the window or at its ends.
    fn byte_before(&self, at: u64) -> Option<u8> {
        let index = usize::try_from(at.checked_sub(self.start)?).ok()?;
        index.checked_sub(1).map_or(self.before, |index| self.bytes.get(index).copied())
    }

    /// The line on which `row` starts, from 1, if the parser has just read it and stands at `position`.
    ///
    /// The parser counts the line feeds it has passed. After a row that is those of earlier lines, those inside quotes, and
    /// the row's own, unless a carriage return or the end of the file comes first.
    pub(super) fn line_of(&self, row: &ByteRecord, position: &csv::Position) -> u64 {
        let own = u64::from(self.byte_before(position.byte()) == Some(b'\n'));
        let quoted = row.as_slice().split(|&byte| byte == b'\n').count() as u64 - 1;
        position.line().saturating_sub(own + quoted).max(1)
    }
}

/// Keeps the last bytes that were read.
pub(super) struct Windowed<R> {
    pub(super) inner: R,
    pub(super) window: Rc<RefCell<Window>>,
}

impl<R: Read> Read for Windowed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        if n > 0 {
            let mut window = self.window.borrow_mut();
            window.start += window.bytes.len() as u64;
            window.before = window.bytes.last().copied().or(window.before);
            window.bytes.clear();
            window.bytes.extend_from_slice(&buffer[..n]);
        }
        Ok(n)
    }
}

#[derive(Debug)]
pub(super) struct RowTooLong;

impl std::fmt::Display for RowTooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a row of more than {} MiB", MAX_ROW_BYTES >> 20)
    }
}

impl std::error::Error for RowTooLong {}

/// Limits the length of a row, which an unclosed quote could make endless.
pub(super) struct RowGuard<R> {
    pub(super) inner: R,
    /// Bytes read since the last row was complete.
    pub(super) unfinished: Rc<Cell<usize>>,
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
pub(super) struct FoldBlanks<R> {
    pub(super) inner: R,
    pub(super) before: u8,
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
