//! Reads the pairs to be scored.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context;
use ctdg::event::{EventStream, NameLookup, NodeId};
use ctdg::mite::PairQuery;

/// Pairs in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    pub(crate) queries: Vec<PairQuery>,
    /// As they stand in the file.
    pub(crate) names: Vec<[String; 2]>,
    /// Names that the data does not know: node `n_nodes + i` is `unknown[i]`.
    pub(crate) unknown: Vec<String>,
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

impl Pairs {
    /// Reads `path` (`-`: stdin); a row without a time is asked about at `default_time`.
    pub(crate) fn read(path: &Path, stream: &EventStream, default_time: f64) -> anyhow::Result<Self> {
        let file: Box<dyn Read> = if path == Path::new("-") {
            Box::new(io::stdin())
        } else {
            Box::new(File::open(path).with_context(|| format!("{}: could not open", path.display()))?)
        };
        let mut rows =
            csv::ReaderBuilder::new().has_headers(false).flexible(true).trim(csv::Trim::All).from_reader(file);
        let lookup = stream.names().lookup()?;
        let mut reader = Reader { stream, lookup, default_time, new: Default::default(), pairs: Self::default() };
        let name = if path == Path::new("-") { "stdin".to_owned() } else { path.display().to_string() };
        let (mut columns, mut header) = (None, None);
        for row in rows.records() {
            let row = row.with_context(|| name.clone())?;
            if columns.is_none() {
                let named = Columns::of_header(&row).filter(|_| !reader.knows(&row));
                columns = Some(named.unwrap_or(Columns::IN_ORDER));
                if named.is_some() || reader.is_other_header(&row) {
                    header = Some(row.iter().collect::<Vec<_>>().join(","));
                    continue;
                }
            }
            let line = row.position().map_or(0, csv::Position::line);
            let columns = columns.unwrap_or(Columns::IN_ORDER);
            reader.push(&row, columns).with_context(|| format!("{name}, line {line}"))?;
        }
        let pairs = reader.pairs;
        let found = header.map_or("no pairs".to_owned(), |header| format!("the header {header:?} and no pairs"));
        let expected = "expected one a line: SRC,DST[,TIME]";
        anyhow::ensure!(!pairs.queries.is_empty(), "{name}: found {found}, {expected}");
        Ok(pairs)
    }
}

struct Reader<'s> {
    stream: &'s EventStream,
    lookup: NameLookup,
    default_time: f64,
    /// Nodes that the data does not know, as sources and as destinations where those have names of their own.
    new: [BTreeMap<String, NodeId>; 2],
    pairs: Pairs,
}

impl Reader<'_> {
    /// Whether the first two fields are nodes of the data, whatever else they might mean.
    fn knows(&self, row: &csv::StringRecord) -> bool {
        let known = |at: usize, node: &dyn Fn(&str) -> Option<NodeId>| row.get(at).and_then(node).is_some();
        known(0, &|name| self.lookup.source(name)) && known(1, &|name| self.lookup.destination(name))
    }

    /// Whether a first row cannot be data, since ids are numbers and these are not.
    fn is_other_header(&self, row: &csv::StringRecord) -> bool {
        let is_number = |at: usize| row.get(at).is_some_and(|field| field.parse::<u64>().is_ok());
        !self.stream.names().is_text() && !is_number(0) && !is_number(1)
    }

    fn push(&mut self, row: &csv::StringRecord, columns: Columns) -> anyhow::Result<()> {
        let field = |at: usize| row.get(at).filter(|field| !field.is_empty());
        let (Some(src), Some(dst)) = (field(columns.src), field(columns.dst)) else {
            anyhow::bail!("found {} fields, expected SRC,DST or SRC,DST,TIME", row.len());
        };
        let time = match columns.time.and_then(field) {
            Some(text) => {
                let time: Option<f64> = text.parse().ok().filter(|time: &f64| time.is_finite());
                time.with_context(|| format!("found the time {text:?}, expected a finite number"))?
            }
            None => self.default_time,
        };
        let (known_src, known_dst) = (self.lookup.source(src), self.lookup.destination(dst));
        let query = PairQuery {
            src: known_src.map_or_else(|| self.unknown(src, 0), Ok)?,
            dst: known_dst.map_or_else(|| self.unknown(dst, 1), Ok)?,
            time,
        };
        self.pairs.queries.push(query);
        self.pairs.names.push([src.to_owned(), dst.to_owned()]);
        Ok(())
    }

    /// The node that stands for an unknown name; the same name is the same node.
    fn unknown(&mut self, name: &str, side: usize) -> anyhow::Result<NodeId> {
        let side = if self.stream.names().n_sources().is_some() { side } else { 0 };
        if let Some(&node) = self.new[side].get(name) {
            return Ok(node);
        }
        let index = self.stream.n_nodes() + self.pairs.unknown.len();
        let node = NodeId::from_index(index).context("found too many nodes, expected fewer than 2³²")?;
        self.pairs.unknown.push(name.to_owned());
        self.new[side].insert(name.to_owned(), node);
        Ok(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> anyhow::Result<Pairs> {
        let stream = EventStream::from_events([(0, 1, 1.0), (1, 2, 2.0)])?;
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("pairs.csv");
        std::fs::write(&file, text)?;
        Pairs::read(&file, &stream, 9.0)
    }

    #[test]
    fn every_row_may_have_a_time_of_its_own() {
        let times = |text: &str| -> Vec<f64> { read(text).unwrap().queries.iter().map(|query| query.time).collect() };
        assert_eq!(times("0,1\n1,2,5\n0,2,6,a label\n"), [9.0, 5.0, 6.0]);
        assert_eq!(times("1,2,5\n0,1\n"), [5.0, 9.0]);
        assert_eq!(times("dst,time,src\n1,5,0\n2,,0\n"), [5.0, 9.0]);
        assert!(read("0,1\n1,2,banana\n").is_err());
    }

    #[test]
    fn what_is_taken_for_a_header_is_told_where_nothing_follows() {
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
