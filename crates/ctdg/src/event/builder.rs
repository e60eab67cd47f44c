//! Builds a stream row by row: maps names to dense ids, checks the order or sorts.

use std::io;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::error::{Problem, Result, quoted};
use crate::event::permute::{chronological, permuted, permuted_rows};
use crate::event::{Columns, EventStream, Features, NodeId, NodeNames, Spill, Spool, TextTable, time_backwards};
use crate::time::TimeFormat;

/// How node ids are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IdKind {
    /// Integers if both ids of the first row are, text otherwise.
    #[default]
    Auto,
    /// Integers from 0.
    Integer,
    /// Any text.
    Text,
}

/// Role of a field in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The source id.
    Source,
    /// The destination id.
    Destination,
    /// The time.
    Time,
    /// The label.
    Label,
}

/// A rejected row: which field, and why.
#[derive(Debug)]
pub struct RejectedRow {
    /// The field.
    pub role: Role,
    /// What is wrong; boxed to keep the result of accepted rows small.
    pub problem: Box<Problem>,
}

impl Role {
    /// Rejects a row because of `problem` in this field.
    fn rejects(self, problem: Problem) -> RejectedRow {
        RejectedRow { role: self, problem: Box::new(problem) }
    }
}

type RowResult<T> = std::result::Result<T, RejectedRow>;

/// Collects rows into an [`EventStream`]. Memory beyond the columns is one table of names and, when sorting is
/// needed, four bytes per event. With [`StreamBuilder::spilling`] the columns may be larger than memory.
///
/// ```
/// use ctdg::event::{IdKind, StreamBuilder};
///
/// let mut builder = StreamBuilder::new(IdKind::Text, false, true);
/// for (src, dst, time) in [("ann", "bob", 2.0), ("bob", "eve", 1.0)] {
///     builder.push(src.as_bytes(), dst.as_bytes(), time, 0.0).map_err(|rejected| *rejected.problem)?;
/// }
/// let stream = builder.finish(None)?;
/// assert_eq!(stream.times(), [1.0, 2.0], "sorted");
/// assert_eq!(stream.names().name(stream.src()[0]), "bob");
/// # Ok::<(), ctdg::Error>(())
/// ```
#[derive(Debug)]
pub struct StreamBuilder {
    ids: IdKind,
    sort: bool,
    sources: Interner,
    /// Only for a bipartite stream.
    destinations: Option<Interner>,
    src: Spool<NodeId>,
    dst: Spool<NodeId>,
    time: Spool<f64>,
    label: Spool<f32>,
    /// The time of the last row.
    newest: f64,
    in_order: bool,
    time_format: TimeFormat,
    feature_width: Option<usize>,
    features: Spool<f32>,
    spill: Option<Spill>,
}

impl StreamBuilder {
    /// An empty builder. `bipartite`: sources and destinations have separate namespaces, so that source `1` and
    /// destination `1` are two nodes. `sort`: rows may come in any order of time and are sorted.
    #[must_use]
    pub fn new(ids: IdKind, bipartite: bool, sort: bool) -> Self {
        Self {
            ids,
            sort,
            sources: Interner::default(),
            destinations: bipartite.then(Interner::default),
            src: Spool::with(None),
            dst: Spool::with(None),
            time: Spool::with(None),
            label: Spool::with(None),
            newest: f64::NEG_INFINITY,
            in_order: true,
            time_format: TimeFormat::Number,
            feature_width: None,
            features: Spool::with(None),
            spill: None,
        }
    }

    /// The same empty builder, whose columns may outgrow memory.
    #[must_use]
    pub fn spilling(self, spill: Option<&Spill>) -> Self {
        Self {
            src: Spool::with(spill),
            dst: Spool::with(spill),
            time: Spool::with(spill),
            label: Spool::with(spill),
            features: Spool::with(spill),
            spill: spill.cloned(),
            ..self
        }
    }

    /// How the input writes its times; as numbers by default.
    pub fn set_time_format(&mut self, time_format: TimeFormat) {
        self.time_format = time_format;
    }

    /// Takes memory for `n` more rows with `n_features` features at once.
    pub fn reserve(&mut self, n: usize, n_features: usize) {
        self.src.reserve(n);
        self.dst.reserve(n);
        self.time.reserve(n);
        self.label.reserve(n);
        self.features.reserve(n.saturating_mul(n_features));
    }

    /// Number of rows so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.time.len()
    }

    /// Whether there is no row yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an event whose ids are text, or integers written as text.
    pub fn push(&mut self, src: &[u8], dst: &[u8], time: f64, label: f32) -> RowResult<()> {
        if self.ids == IdKind::Auto {
            let integer = |id: &[u8]| id.strip_prefix(b"-").unwrap_or(id).iter().all(u8::is_ascii_digit);
            self.ids = if integer(src) && integer(dst) { IdKind::Integer } else { IdKind::Text };
        }
        if self.ids == IdKind::Text {
            let src = self.sources.text(src).map_err(|problem| Role::Source.rejects(problem))?;
            let dst = self.destinations.as_mut().unwrap_or(&mut self.sources).text(dst);
            let dst = dst.map_err(|problem| Role::Destination.rejects(problem))?;
            return self.push_interned(src, dst, time, label);
        }
        let src = parse_id(src).map_err(|problem| Role::Source.rejects(problem))?;
        let dst = parse_id(dst).map_err(|problem| Role::Destination.rejects(problem))?;
        self.push_integers(src, dst, time, label)
    }

    /// Adds an event whose ids are integers.
    pub fn push_integers(&mut self, src: u64, dst: u64, time: f64, label: f32) -> RowResult<()> {
        if self.ids == IdKind::Text {
            return self.push(src.to_string().as_bytes(), dst.to_string().as_bytes(), time, label);
        }
        self.ids = IdKind::Integer;
        let src = self.sources.integer(src).map_err(|problem| Role::Source.rejects(problem))?;
        let dst = self.destinations.as_mut().unwrap_or(&mut self.sources).integer(dst);
        let dst = dst.map_err(|problem| Role::Destination.rejects(problem))?;
        self.push_interned(src, dst, time, label)
    }

    fn push_interned(&mut self, src: NodeId, dst: NodeId, time: f64, label: f32) -> RowResult<()> {
        if !time.is_finite() {
            return Err(Role::Time.rejects(Problem::NonFiniteTime { found: time.to_string() }));
        }
        if !label.is_finite() {
            return Err(Role::Label.rejects(Problem::NonFiniteValue { found: label.to_string() }));
        }
        if time < self.newest {
            if !self.sort {
                return Err(Role::Time.rejects(time_backwards(time, self.newest, self.time_format)));
            }
            self.in_order = false;
        }
        self.newest = time;
        // -0.0 becomes 0.0, so that equal times are equal bits.
        let pushed = self.src.push(src).and_then(|()| self.dst.push(dst));
        let pushed = pushed.and_then(|()| self.time.push(time + 0.0)).and_then(|()| self.label.push(label));
        pushed.map_err(|source| Role::Time.rejects(Problem::spill(source)))
    }

    /// Adds the edge features of the event added last.
    pub fn push_features(&mut self, row: impl ExactSizeIterator<Item = f32>) -> Result<(), Problem> {
        let found = row.len();
        let expected = *self.feature_width.get_or_insert(found);
        if found != expected {
            return Err(Problem::FeatureWidth { found: found as u64, expected: expected as u64 });
        }
        for value in row {
            self.features.push(value).map_err(Problem::spill)?;
        }
        Ok(())
    }

    /// Removes the features pushed so far and returns them, row after row.
    pub(crate) fn take_features(&mut self) -> Result<Vec<f32>, Problem> {
        self.feature_width = None;
        let features = std::mem::replace(&mut self.features, Spool::with(self.spill.as_ref()));
        Ok(features.finish().map_err(Problem::spill)?.into_vec())
    }

    /// The stream, with `edge_features` unless features were pushed. Dense ids follow the sorted order of names.
    pub fn finish(mut self, edge_features: Option<Features>) -> Result<EventStream> {
        if self.is_empty() {
            return Err(Problem::Empty.into());
        }
        let mut edge_features = match self.feature_width.filter(|&width| width > 0) {
            Some(width) => Some(Features::new(width, self.features.finish().map_err(Problem::spill)?)?),
            None => edge_features,
        };
        if let Some(features) = &edge_features
            && features.n_rows() != self.time.len()
        {
            let (found, expected) = (features.n_rows() as u64, self.time.len() as u64);
            return Err(Problem::FeatureRows { found, expected, of: "events" }.into());
        }
        let names = self.sources.rename_sorted(self.destinations, &mut self.src, &mut self.dst);
        let names = names.map_err(Problem::spill)?;
        let finish =
            || io::Result::Ok((self.src.finish()?, self.dst.finish()?, self.time.finish()?, self.label.finish()?));
        let (mut src, mut dst, mut time, mut label) = finish().map_err(Problem::spill)?;
        if !self.in_order {
            let (order, spill) = (chronological(&time)?, self.spill.as_ref());
            src = permuted(&order, src, spill).map_err(Problem::spill)?;
            dst = permuted(&order, dst, spill).map_err(Problem::spill)?;
            time = permuted(&order, time, spill).map_err(Problem::spill)?;
            label = permuted(&order, label, spill).map_err(Problem::spill)?;
            edge_features = edge_features.map(|features| permuted_rows(&order, features, spill)).transpose()?;
        }
        EventStream::new(Columns {
            src,
            dst,
            time,
            label,
            edge_features,
            node_features: None,
            names,
            time_format: self.time_format,
        })
    }
}

/// Names seen so far, numbered by first appearance.
#[derive(Debug, Default)]
struct Interner {
    integers: FxHashMap<u64, NodeId>,
    texts: FxHashMap<Box<[u8]>, NodeId>,
}

impl Interner {
    fn next(&self) -> Result<NodeId, Problem> {
        let next = NodeId::from_index(self.integers.len() + self.texts.len()).filter(|id| id.0 < u32::MAX);
        next.ok_or(Problem::TooMany { what: "nodes", max: u64::from(u32::MAX) })
    }

    fn integer(&mut self, id: u64) -> Result<NodeId, Problem> {
        if let Some(&node) = self.integers.get(&id) {
            return Ok(node);
        }
        let node = self.next()?;
        self.integers.insert(id, node);
        Ok(node)
    }

    fn text(&mut self, id: &[u8]) -> Result<NodeId, Problem> {
        if let Some(&node) = self.texts.get(id) {
            return Ok(node);
        }
        if std::str::from_utf8(id).is_err() {
            return Err(Problem::NotUtf8);
        }
        if id.is_empty() {
            return Err(Problem::NotANumber { found: quoted(id), expected: "a node id" });
        }
        let node = self.next()?;
        self.texts.insert(id.into(), node);
        Ok(node)
    }

    /// Renumbers the nodes in `src` and `dst` by sorted name and returns the names.
    fn rename_sorted(
        self,
        destinations: Option<Self>,
        src: &mut Spool<NodeId>,
        dst: &mut Spool<NodeId>,
    ) -> io::Result<NodeNames> {
        let mut table = SortedNames::default();
        let n_sources = table.add(self);
        table.renumber(src, 0)?;
        let Some(destinations) = destinations else {
            table.renumber(dst, 0)?;
            return Ok(table.into_names(None));
        };
        table.add(destinations);
        table.renumber(dst, n_sources)?;
        Ok(table.into_names(Some(n_sources)))
    }
}

/// Names in sorted order, and the rank of each first-appearance number among those added last.
#[derive(Default)]
struct SortedNames {
    integers: Vec<u64>,
    texts: TextTable,
    ranks: Vec<u32>,
}

impl SortedNames {
    /// Appends the names of `interner` in order and returns how many there were.
    fn add(&mut self, interner: Interner) -> u32 {
        let mut integers: Vec<_> = interner.integers.into_iter().collect();
        let mut texts: Vec<_> = interner.texts.into_iter().collect();
        integers.sort_unstable();
        texts.sort_unstable();
        self.ranks = vec![0; integers.len() + texts.len()];
        let mut rank = 0;
        let ordered = integers.iter().map(|entry| entry.1).chain(texts.iter().map(|entry| entry.1));
        for first_seen in ordered {
            self.ranks[first_seen.index()] = rank;
            rank += 1;
        }
        self.integers.extend(integers.iter().map(|entry| entry.0));
        for (text, _) in &texts {
            self.texts.push(text);
        }
        rank
    }

    fn renumber(&self, column: &mut Spool<NodeId>, offset: u32) -> io::Result<()> {
        column.map(|node| NodeId(self.ranks[node.index()] + offset))
    }

    fn into_names(self, n_sources: Option<u32>) -> NodeNames {
        if self.texts.ends.is_empty() {
            NodeNames::integers(self.integers, n_sources)
        } else {
            NodeNames::text(self.texts, n_sources)
        }
    }
}

fn parse_id(text: &[u8]) -> Result<u64, Problem> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if std::str::from_utf8(text).is_err() {
        return Err(Problem::NotUtf8);
    }
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Problem::NotANumber { found: quoted(text), expected: "an integer node id" });
    }
    let found = || String::from_utf8_lossy(text).into_owned();
    if digits.len() < text.len() {
        return Err(Problem::NegativeId { found: found() });
    }
    let id = digits.iter().try_fold(0u64, |id, digit| id.checked_mul(10)?.checked_add(u64::from(digit - b'0')));
    id.ok_or_else(|| Problem::IdOverflow { found: found() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(rows: &[(&str, &str, f64)], bipartite: bool, sort: bool) -> EventStream {
        let mut builder = StreamBuilder::new(IdKind::Auto, bipartite, sort);
        for (src, dst, time) in rows {
            builder.push(src.as_bytes(), dst.as_bytes(), *time, 0.0).expect("a good row");
        }
        builder.finish(None).expect("a good stream")
    }

    #[test]
    fn integer_names_are_numbered_in_numeric_order() {
        let stream = build(&[("100", "9", 0.0), ("20", "100", 1.0)], false, false);
        assert_eq!(stream.src(), [NodeId(2), NodeId(1)]);
        assert_eq!(stream.dst(), [NodeId(0), NodeId(2)]);
        assert_eq!(stream.names().name(NodeId(1)), "20");
    }

    #[test]
    fn one_text_id_in_the_first_row_makes_all_ids_text() {
        let stream = build(&[("7", "b", 0.0), ("10", "7", 1.0)], false, false);
        let names: Vec<_> = (0..3).map(|i| stream.names().name(NodeId(i))).collect();
        assert_eq!(names, ["10", "7", "b"], "bytewise order");
    }

    #[test]
    fn bipartite_sides_have_separate_namespaces() {
        let stream = build(&[("1", "1", 0.0), ("0", "5", 1.0)], true, false);
        assert_eq!(stream.src(), [NodeId(1), NodeId(0)]);
        assert_eq!(stream.dst(), [NodeId(2), NodeId(3)]);
        assert_eq!(stream.names().n_sources(), Some(2));
        let lookup = stream.names().lookup().expect("few nodes");
        assert_eq!((lookup.source("1"), lookup.destination("1")), (Some(NodeId(1)), Some(NodeId(2))));
    }

    #[test]
    fn sorting_keeps_the_input_order_of_equal_times() {
        let rows = [("3", "0", 5.0), ("1", "0", 2.0), ("2", "0", 5.0), ("0", "1", 2.0)];
        let stream = build(&rows, false, true);
        assert_eq!(stream.times(), [2.0, 2.0, 5.0, 5.0]);
        assert_eq!(stream.src(), [1, 0, 3, 2].map(NodeId));
    }
}
