//! Candidate destinations from a file: JSON Lines, one line for each event.

use std::borrow::Cow;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use serde::Deserialize;

use crate::dataset::Source;
use crate::error::{Error, Place, Problem, Result, quoted};
use crate::event::{EventId, EventStream, NameLookup, NodeId};

/// Candidates by event, read from a file of lines such as
///
/// ```json
/// {"src": 7, "dst": 8301, "time": 1862652, "candidates": [8227, 8228, 8410]}
/// ```
///
/// Names are those of the data, as numbers or text; a time is a number, or a date if the data has dates. The file may be
/// compressed with gzip or zstd. Memory: four bytes for each candidate.
#[derive(Debug)]
pub struct CandidateFile {
    path: PathBuf,
    nodes: Vec<NodeId>,
    /// Where in `nodes` the list of a source, destination and time (as bits) stands.
    lists: FxHashMap<(NodeId, NodeId, u64), Range<usize>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'t> {
    #[serde(borrow)]
    src: Name<'t>,
    #[serde(borrow)]
    dst: Name<'t>,
    #[serde(borrow)]
    time: Time<'t>,
    #[serde(borrow)]
    candidates: Vec<Name<'t>>,
}

/// A node, as the data names it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Name<'t> {
    Number(u64),
    #[serde(borrow)]
    Text(Cow<'t, str>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Time<'t> {
    Number(f64),
    #[serde(borrow)]
    Date(Cow<'t, str>),
}

impl CandidateFile {
    /// Reads the candidates for events of `stream`. Nodes that `stream` does not have, a repeated event and a true destination
    /// among its own candidates are errors.
    pub fn read(path: &Path, stream: &EventStream) -> Result<Self> {
        let source = Source::open(path, None)?;
        let compression = source.compression();
        let lookup = stream.names().lookup()?;
        let mut file = Self { path: path.to_owned(), nodes: Vec::new(), lists: FxHashMap::default() };
        let mut reader = BufReader::with_capacity(1 << 16, source);
        let mut text = Vec::new();
        for number in 1_u64.. {
            text.clear();
            let n = reader.read_until(b'\n', &mut text).map_err(|error| Source::explain(path, compression, error))?;
            if n == 0 {
                break;
            }
            if !text.trim_ascii().is_empty() {
                let added = file.add(&text, stream, &lookup);
                added.map_err(|problem| Error::at(Place::file(path).line(number), problem))?;
            }
        }
        Ok(file)
    }

    fn add(&mut self, text: &[u8], stream: &EventStream, lookup: &NameLookup) -> Result<(), Problem> {
        let line: Line<'_> = serde_json::from_slice(text).map_err(|_| Problem::WrongFormat {
            found: quoted(text.trim_ascii()),
            expected: r#"an event with its candidates, {"src": …, "dst": …, "time": …, "candidates": […]}"#.to_owned(),
        })?;
        let src = line.src.find(|name| lookup.source(name))?;
        let dst = line.dst.find(|name| lookup.destination(name))?;
        let time = match &line.time {
            Time::Number(time) => *time,
            Time::Date(text) => stream.time_format().parse(text).ok_or_else(|| Problem::NotANumber {
                found: quoted(text.as_bytes()),
                expected: "a time as in the data",
            })?,
        };
        let start = self.nodes.len();
        for name in &line.candidates {
            let node = name.find(|name| lookup.destination(name))?;
            if node == dst {
                let found = "the true destination among its candidates".to_owned();
                return Err(Problem::WrongFormat { found, expected: "other destinations only".to_owned() });
            }
            self.nodes.push(node);
        }
        let key = (src, dst, time.to_bits());
        if self.lists.insert(key, start..self.nodes.len()).is_some() {
            let found = "an event that an earlier line has".to_owned();
            return Err(Problem::WrongFormat { found, expected: "one line for each event".to_owned() });
        }
        Ok(())
    }

    /// The candidates of `event`; an error if the file has none for it.
    pub fn of(&self, stream: &EventStream, event: EventId) -> Result<&[NodeId]> {
        let event = stream.event(event);
        if let Some(range) = self.lists.get(&(event.src, event.dst, event.time.to_bits())) {
            return Ok(&self.nodes[range.clone()]);
        }
        let (src, dst) = (stream.names().name(event.src), stream.names().name(event.dst));
        let time = stream.time_format().show(event.time);
        Err(Error::at(Place::file(&self.path), Problem::NoCandidates { src, dst, time }))
    }
}

impl Name<'_> {
    fn find(&self, find: impl Fn(&str) -> Option<NodeId>) -> Result<NodeId, Problem> {
        let name: Cow<'_, str> = match self {
            Self::Number(number) => number.to_string().into(),
            Self::Text(text) => Cow::Borrowed(text),
        };
        find(&name).ok_or_else(|| Problem::UnknownNode { name: quoted(name.as_bytes()) })
    }
}
