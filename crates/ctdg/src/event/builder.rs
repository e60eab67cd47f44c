//! Builds a stream row by row: maps names to dense ids, checks the order or sorts.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::error::{Problem, Result, quoted};
use crate::event::{Columns, EventStream, Features, NodeId, NodeNames, TextTable, time_backwards};
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
/// needed, four bytes per event.
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
    src: Vec<NodeId>,
    dst: Vec<NodeId>,
    time: Vec<f64>,
    label: Vec<f32>,
    in_order: bool,
    time_format: TimeFormat,
    feature_width: Option<usize>,
    features: Vec<f32>,
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
            src: Vec::new(),
            dst: Vec::new(),
            time: Vec::new(),
            label: Vec::new(),
            in_order: true,
            time_format: TimeFormat::Number,
            feature_width: None,
            features: Vec::new(),
        }
    }

    /// How the input writes its times; as numbers by default.
    pub fn set_time_format(&mut self, time_format: TimeFormat) {
        self.time_format = time_format;
    }

    /// Takes memory for `n` more rows with `n_features` features at once.
    pub fn reserve(&mut self, n: usize, n_features: usize) {
        self.src.reserve_exact(n);
        self.dst.reserve_exact(n);
        self.time.reserve_exact(n);
        self.label.reserve_exact(n);
        self.features.reserve_exact(n.saturating_mul(n_features));
    }

    /// Number of rows so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.time.len()
    }

    /// Whether there is no row yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
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
        if self.time.len() >= u32::MAX as usize {
            return Err(Role::Time.rejects(Problem::TooMany { what: "events", max: u64::from(u32::MAX) }));
        }
        if let Some(&previous) = self.time.last()
            && time < previous
        {
            if !self.sort {
                return Err(Role::Time.rejects(time_backwards(time, previous, self.time_format)));
            }
            self.in_order = false;
        }
        self.src.push(src);
        self.dst.push(dst);
        self.time.push(time + 0.0); // -0.0 becomes 0.0, so that equal times are equal bits
        self.label.push(label);
        Ok(())
    }

    /// Adds the edge features of the event added last.
    pub fn push_features(&mut self, row: impl ExactSizeIterator<Item = f32>) -> Result<(), Problem> {
        let found = row.len();
        let expected = *self.feature_width.get_or_insert(found);
        if found != expected {
            return Err(Problem::FeatureWidth { found: found as u64, expected: expected as u64 });
        }
        self.features.extend(row);
        Ok(())
    }

    /// Removes the features pushed so far and returns them, row after row.
    pub(crate) fn take_features(&mut self) -> Vec<f32> {
        self.feature_width = None;
        std::mem::take(&mut self.features)
    }

    /// The stream, with `edge_features` unless features were pushed. Dense ids follow the sorted order of names.
    pub fn finish(mut self, edge_features: Option<Features>) -> Result<EventStream> {
        if self.time.is_empty() {
            return Err(Problem::Empty.into());
        }
        self.features.shrink_to_fit();
        let mut edge_features = match self.feature_width.filter(|&width| width > 0) {
            Some(width) => Some(Features::new(width, self.features)?),
            None => edge_features,
        };
        if let Some(features) = &edge_features
            && features.n_rows() != self.time.len()
        {
            let (found, expected) = (features.n_rows() as u64, self.time.len() as u64);
            return Err(Problem::FeatureRows { found, expected, of: "events" }.into());
        }
        let names = self.sources.rename_sorted(self.destinations, &mut self.src, &mut self.dst);
        if !self.in_order {
            let order = chronological(&self.time);
            permute(&order, &mut self.src);
            permute(&order, &mut self.dst);
            permute(&order, &mut self.time);
            permute(&order, &mut self.label);
            edge_features = edge_features.map(|features| permuted_rows(&order, features)).transpose()?;
        }
        EventStream::new(Columns {
            src: shrunk(self.src).into(),
            dst: shrunk(self.dst).into(),
            time: shrunk(self.time).into(),
            label: shrunk(self.label).into(),
            edge_features,
            node_features: None,
            names,
            time_format: self.time_format,
        })
    }
}

fn shrunk<T>(mut values: Vec<T>) -> Vec<T> {
    values.shrink_to_fit();
    values
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
    fn rename_sorted(self, destinations: Option<Self>, src: &mut [NodeId], dst: &mut [NodeId]) -> NodeNames {
        let mut table = SortedNames::default();
        let n_sources = table.add(self);
        table.renumber(src, 0);
        let Some(destinations) = destinations else {
            table.renumber(dst, 0);
            return table.into_names(None);
        };
        table.add(destinations);
        table.renumber(dst, n_sources);
        table.into_names(Some(n_sources))
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

    fn renumber(&self, column: &mut [NodeId], offset: u32) {
        for node in column {
            node.0 = self.ranks[node.index()] + offset;
        }
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

/// Input positions sorted by `(time, position)`.
fn chronological(time: &[f64]) -> Vec<u32> {
    let n = u32::try_from(time.len()).expect("checked when pushed");
    let mut order: Vec<u32> = (0..n).collect();
    order.sort_unstable_by(|&a, &b| time[a as usize].total_cmp(&time[b as usize]).then(a.cmp(&b)));
    order
}

/// Moves `values[order[i]]` to `i` for all `i`, in place.
fn permute<T: Copy>(order: &[u32], values: &mut [T]) {
    let mut saved = None;
    follow_cycles(order, |step| match step {
        Step::Save(from) => saved = Some(values[from]),
        Step::Move { from, to } => values[to] = values[from],
        Step::Restore(to) => values[to] = saved.expect("saved before"),
    });
}

/// The same for rows of features.
fn permuted_rows(order: &[u32], features: Features) -> Result<Features> {
    let width = features.width();
    let mut values = features.into_values();
    let mut saved = Vec::with_capacity(width);
    follow_cycles(order, |step| match step {
        Step::Save(from) => saved.splice(.., values[from * width..][..width].iter().copied()).for_each(drop),
        Step::Move { from, to } => values.copy_within(from * width..(from + 1) * width, to * width),
        Step::Restore(to) => values[to * width..][..width].copy_from_slice(&saved),
    });
    Features::new(width, values)
}

/// One step of an in-place permutation.
enum Step {
    /// Save the value at this index.
    Save(usize),
    Move {
        from: usize,
        to: usize,
    },
    /// Write the saved value to this index.
    Restore(usize),
}

/// Calls `apply` with the steps that move `order[i]` to `i`, cycle by cycle.
fn follow_cycles(order: &[u32], mut apply: impl FnMut(Step)) {
    let mut done = vec![false; order.len()];
    for start in 0..order.len() {
        if done[start] {
            continue;
        }
        apply(Step::Save(start));
        let mut to = start;
        loop {
            done[to] = true;
            let from = order[to] as usize;
            if from == start {
                apply(Step::Restore(to));
                break;
            }
            apply(Step::Move { from, to });
            to = from;
        }
    }
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
