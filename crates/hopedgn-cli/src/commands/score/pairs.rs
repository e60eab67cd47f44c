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

    fn of_row(row: &csv::StringRecord) -> Self {
        Self { src: 0, dst: 1, time: (row.len() > 2).then_some(2) }
    }
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
        let mut columns = None;
        for row in rows.records() {
            let row = row.with_context(|| path.display().to_string())?;
            if columns.is_none() {
                let header = Columns::of_header(&row).filter(|_| !reader.knows(&row));
                columns = Some(header.unwrap_or_else(|| Columns::of_row(&row)));
                if header.is_some() || reader.is_other_header(&row) {
                    continue;
                }
            }
            let line = row.position().map_or(0, csv::Position::line);
            let columns = columns.unwrap_or_else(|| Columns::of_row(&row));
            reader.push(&row, columns).with_context(|| format!("{}, line {line}", path.display()))?;
        }
        let pairs = reader.pairs;
        let expected = "expected one a line: SRC,DST[,TIME]";
        anyhow::ensure!(!pairs.queries.is_empty(), "{}: found no pairs, {expected}", path.display());
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
