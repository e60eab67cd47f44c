//! Reads the pairs to be scored from CSV.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context;
use ctdg::error::Place;
use ctdg::event::EventStream;
use hopedgn::Events;
use hopedgn::predict::NamedPairs;

use crate::plural::count;

/// Pairs in the order of the file.
#[derive(Debug)]
pub(crate) struct Pairs<'s> {
    pub(crate) named: NamedPairs<'s>,
    /// Source and destination as they are written in the file.
    pub(crate) ids: Vec<[String; 2]>,
}

const SRC: [&str; 6] = ["src", "source", "u", "user", "user_id", "from"];
const DST: [&str; 7] = ["dst", "destination", "v", "i", "item", "item_id", "to"];
const TIME: [&str; 4] = ["time", "timestamp", "ts", "t"];

/// Where the fields of a row are.
#[derive(Debug, Clone, Copy)]
struct Columns {
    src: usize,
    dst: usize,
    time: Option<usize>,
}

impl Columns {
    /// By name, if the first row is a header.
    fn of_header(row: &csv::StringRecord) -> Option<Self> {
        let find = |names: &[&str]| row.iter().position(|field| names.contains(&field.to_lowercase().as_str()));
        Some(Self { src: find(&SRC)?, dst: find(&DST)?, time: find(&TIME) })
    }

    /// Without a header; a row may have a time or not.
    const IN_ORDER: Self = Self { src: 0, dst: 1, time: Some(2) };
}

impl<'s> Pairs<'s> {
    /// Reads `path` (`-`: stdin); a row without a time gets `default_time`.
    pub(crate) fn read(path: &Path, events: &'s Events, default_time: f64) -> anyhow::Result<Self> {
        let name = if path == Path::new("-") { "stdin".to_owned() } else { path.display().to_string() };
        let file: Box<dyn Read> = if path == Path::new("-") {
            Box::new(io::stdin())
        } else {
            Box::new(File::open(path).with_context(|| format!("{name}: could not open the file of pairs"))?)
        };
        let mut rows =
            csv::ReaderBuilder::new().has_headers(false).flexible(true).trim(csv::Trim::All).from_reader(file);
        let mut pairs = Self { named: NamedPairs::new(events)?, ids: Vec::new() };
        let (mut columns, mut header) = (None, None);
        for row in rows.records() {
            let row = row.with_context(|| name.clone())?;
            if columns.is_none() {
                let named = Columns::of_header(&row).filter(|_| !pairs.knows(&row));
                columns = Some(named.unwrap_or(Columns::IN_ORDER));
                if named.is_some() || is_other_header(&row, events) {
                    header = Some(row.iter().collect::<Vec<_>>().join(","));
                    continue;
                }
            }
            let line = row.position().map_or(0, csv::Position::line);
            let columns = columns.unwrap_or(Columns::IN_ORDER);
            pairs.push(&row, columns, default_time).with_context(|| Place::file(&name).line(line))?;
        }
        let found = header.map_or("no pairs".to_owned(), |header| format!("the header {header:?} and no pairs"));
        let expected = "expected one a line: SRC,DST[,TIME]";
        anyhow::ensure!(!pairs.ids.is_empty(), "{name}: found {found}, {expected}");
        Ok(pairs)
    }

    /// Whether the first two fields are nodes of the data: such a row is no header.
    fn knows(&self, row: &csv::StringRecord) -> bool {
        matches!((row.get(0), row.get(1)), (Some(src), Some(dst)) if self.named.knows(src, dst))
    }

    fn push(&mut self, row: &csv::StringRecord, columns: Columns, default_time: f64) -> anyhow::Result<()> {
        let field = |at: usize| row.get(at).filter(|field| !field.is_empty());
        let (Some(src), Some(dst)) = (field(columns.src), field(columns.dst)) else {
            anyhow::bail!("found {}, expected SRC,DST or SRC,DST,TIME", count(row.len(), "field"));
        };
        let time = match columns.time.and_then(field) {
            Some(text) => {
                let time: Option<f64> = text.parse().ok().filter(|time: &f64| time.is_finite());
                time.with_context(|| format!("found the time {text:?}, expected a finite number"))?
            }
            None => default_time,
        };
        self.named.push(src, dst, time)?;
        self.ids.push([src.to_owned(), dst.to_owned()]);
        Ok(())
    }
}

/// Whether a first row cannot be data: ids are numbers, and these fields are not.
fn is_other_header(row: &csv::StringRecord, stream: &EventStream) -> bool {
    let is_number = |at: usize| row.get(at).is_some_and(|field| field.parse::<u64>().is_ok());
    !stream.names().is_text() && !is_number(0) && !is_number(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times of the pairs.
    fn read(text: &str) -> anyhow::Result<Vec<f64>> {
        let events = Events::from_stream("test", EventStream::from_events([(0, 1, 1.0), (1, 2, 2.0)])?);
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("pairs.csv");
        std::fs::write(&file, text)?;
        let pairs = Pairs::read(&file, &events, 9.0)?;
        Ok(pairs.named.queries().iter().map(|query| query.time).collect())
    }

    #[test]
    fn rows_without_a_time_get_the_default() {
        let times = |text: &str| read(text).unwrap();
        assert_eq!(times("0,1\n1,2,5\n0,2,6,a label\n"), [9.0, 5.0, 6.0]);
        assert_eq!(times("1,2,5\n0,1\n"), [5.0, 9.0]);
        assert_eq!(times("dst,time,src\n1,5,0\n2,,0\n"), [5.0, 9.0]);
        assert!(read("0,1\n1,2,banana\n").is_err());
    }

    #[test]
    fn a_header_without_pairs_is_quoted_in_the_error() {
        for text in ["a,b\n", "src,dst\n"] {
            let message = read(text).unwrap_err().to_string();
            let header = text.trim();
            assert!(
                message.ends_with(&format!(
                    "found the header {header:?} and no pairs, expected one a line: SRC,DST[,TIME]"
                ))
            );
        }
        assert!(read("").unwrap_err().to_string().contains("found no pairs"));
    }
}
