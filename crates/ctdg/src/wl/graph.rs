//! A stream as the test sees it: for every pair of nodes the sequence of times at which they met before `t`.
//!
//! This is the paper's historical dynamic adjacency tensor, held sparsely and interned: a pair that never met has the
//! link [`LinkId::NEVER`], every other pair the number of its sequence in one table.

use std::fmt;

use rayon::prelude::*;
use serde::Serialize;

use crate::error::{Problem, Result};
use crate::event::{EventStream, NodeId, NodeNames};
use crate::wl::intern::Table;

/// Whether an event's source and destination play different parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Meeting is mutual: `(u, v, t)` and `(v, u, t)` are the same. The paper's reading.
    #[default]
    Undirected,
    /// `u` met `v` and `v` met `u` are kept apart; a node sees both of its sequences with another.
    Directed,
}

/// How much of the times is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Times {
    /// Every time of every meeting, repeats included.
    #[default]
    Kept,
    /// Only whether two nodes ever met before `t`: the static graph, and the static tests.
    Dropped,
}

/// Where the nodes' labels come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Labels {
    /// All nodes are alike, as Proposition 1 of the paper asks.
    #[default]
    Constant,
    /// Nodes with equal rows of node features are alike, as Propositions 2 and 4 ask.
    Features,
    /// Sources of a bipartite stream are one kind, destinations the other.
    Sides,
    /// One number per node.
    Given(Vec<u64>),
}

/// How a stream is turned into a [`Graph`].
#[derive(Debug, Clone, Default)]
pub struct GraphOptions {
    /// Only events strictly before this time are seen; all of them when there is none. Nodes that have not met
    /// anybody by then are still nodes.
    pub until: Option<f64>,
    /// Whether direction matters.
    pub direction: Direction,
    /// Whether times matter.
    pub times: Times,
    /// What is known of each node beforehand.
    pub labels: Labels,
}

/// Stands for the times that were dropped; no event has it.
const SOME_TIME: f64 = f64::INFINITY;

/// Number of an interaction sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LinkId(pub(crate) u32);

impl LinkId {
    /// The empty sequence, first in every table.
    pub(crate) const NEVER: Self = Self(0);
}

/// One dynamic graph until a time.
#[derive(Debug, Clone)]
pub struct Graph {
    names: NodeNames,
    direction: Direction,
    n_events: usize,
    /// `starts[u]..starts[u + 1]` are the places of `u`'s neighbours.
    starts: Vec<u32>,
    neighbours: Vec<(NodeId, LinkId)>,
    links: Table,
    /// Number of each node's label in `label_rows`.
    labels: Vec<u32>,
    label_rows: Table,
}

impl Graph {
    /// Reads `stream`. Time O(events · log events), memory O(events + nodes).
    ///
    /// A time before the first event is no error: the graph then has its nodes and no meeting.
    pub fn new(stream: &EventStream, reading: &GraphOptions) -> Result<Self> {
        if let Some(until) = reading.until.filter(|until| until.is_nan()) {
            return Err(Problem::NonFiniteTime { found: until.to_string() }.into());
        }
        let n_events = reading.until.map_or(stream.len(), |until| stream.cut(until).n_events());
        let mut links = Table::default();
        links.number(&[0]);
        let mut half_links = half_links(stream, n_events, reading, &mut links);
        half_links.par_sort_unstable();
        let n_nodes = stream.n_nodes();
        let mut starts = vec![0; n_nodes + 1];
        for &(node, ..) in &half_links {
            starts[node.index() + 1] += 1;
        }
        for node in 0..n_nodes {
            starts[node + 1] += starts[node];
        }
        let neighbours = half_links.into_iter().map(|(_, neighbour, link)| (neighbour, link)).collect();
        let (labels, label_rows) = labels(stream, &reading.labels)?;
        let (names, direction) = (stream.names().clone(), reading.direction);
        Ok(Self { names, direction, n_events, starts, neighbours, links, labels, label_rows })
    }

    /// Number of nodes, those without a meeting included.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.labels.len()
    }

    /// Number of events seen.
    #[must_use]
    pub fn n_events(&self) -> usize {
        self.n_events
    }

    /// Number of different interaction sequences, the empty one included.
    #[must_use]
    pub fn n_sequences(&self) -> usize {
        self.links.len()
    }

    /// Number of pairs (node, neighbour), both ways.
    #[must_use]
    pub fn n_half_links(&self) -> usize {
        self.neighbours.len()
    }

    /// Whether direction matters.
    #[must_use]
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// The nodes' names in the input.
    #[must_use]
    pub fn names(&self) -> &NodeNames {
        &self.names
    }

    /// When `u` met each of its neighbours, in order of neighbour.
    ///
    /// # Panics
    /// When there is no such node.
    #[must_use]
    pub fn pair_events(&self, u: NodeId) -> impl ExactSizeIterator<Item = (NodeId, Sequence)> {
        self.neighbours(u).iter().map(|&(neighbour, link)| (neighbour, Sequence::of_row(self.links.row(link.0))))
    }

    pub(crate) fn neighbours(&self, u: NodeId) -> &[(NodeId, LinkId)] {
        &self.neighbours[self.starts[u.index()] as usize..self.starts[u.index() + 1] as usize]
    }

    pub(crate) fn links(&self) -> &Table {
        &self.links
    }

    pub(crate) fn labels(&self) -> (&[u32], &Table) {
        (&self.labels, &self.label_rows)
    }
}

/// The times at which two nodes met, seen from the first.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sequence {
    /// Times of all meetings; with [`Direction::Directed`] of those that point away from the first node. With
    /// [`Times::Dropped`] a single infinity for "met, some time", which JSON calls `"met"`.
    #[serde(serialize_with = "serialize_times")]
    pub forth: Vec<f64>,
    /// With [`Direction::Directed`], times of the meetings that point to the first node.
    #[serde(serialize_with = "serialize_times")]
    pub back: Vec<f64>,
}

/// JSON has no infinity.
fn serialize_times<S: serde::Serializer>(times: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    if times.iter().any(|time| time.is_infinite()) {
        return serializer.collect_seq(["met"]);
    }
    serializer.collect_seq(times)
}

impl Sequence {
    /// A row is the number of times forth, those times, and then the times back.
    pub(crate) fn of_row(row: &[u64]) -> Self {
        let times = |bits: &[u64]| bits.iter().map(|&bits| f64::from_bits(bits)).collect();
        let n_forth = usize::try_from(row[0]).expect("a row counts its own words");
        Self { forth: times(&row[1..=n_forth]), back: times(&row[1 + n_forth..]) }
    }

    /// Whether the two never met.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.forth.is_empty() && self.back.is_empty()
    }
}

impl fmt::Display for Sequence {
    /// `1, 4, 9`, `→1, 4 ←9` where direction matters, `never` when empty; the middle of a long one is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 6;
        let list = |times: &[f64]| {
            let time = |time: &f64| if *time < SOME_TIME { time.to_string() } else { "met".to_owned() };
            let shown = |times: &[f64]| times.iter().map(time).collect::<Vec<_>>().join(", ");
            match times.len() {
                n if n <= SHOWN => shown(times),
                n => format!("{}, … ({n} times), {}", shown(&times[..SHOWN / 2]), times[n - 1]),
            }
        };
        match (self.forth.is_empty(), self.back.is_empty()) {
            (true, true) => f.write_str("never"),
            (false, true) => f.write_str(&list(&self.forth)),
            (true, false) => write!(f, "←{}", list(&self.back)),
            (false, false) => write!(f, "→{} ←{}", list(&self.forth), list(&self.back)),
        }
    }
}

/// Every pair that met, from both ends, with its interned sequence.
fn half_links(
    stream: &EventStream,
    n_events: usize,
    reading: &GraphOptions,
    links: &mut Table,
) -> Vec<(NodeId, NodeId, LinkId)> {
    let (src, dst) = (&stream.src()[..n_events], &stream.dst()[..n_events]);
    let mut meetings: Vec<(NodeId, NodeId, u32)> = Vec::with_capacity(n_events);
    for (event, (&src, &dst)) in (0..).zip(src.iter().zip(dst)) {
        meetings.push((src.min(dst), src.max(dst), event));
    }
    meetings.par_sort_unstable();
    let mut half_links = Vec::new();
    for same_pair in meetings.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let (lo, hi, _) = same_pair[0];
        let (mut forth, mut back) = (Vec::new(), Vec::new());
        for &(_, _, event) in same_pair {
            let points_back = reading.direction == Direction::Directed && src[event as usize] != lo;
            let times = if points_back { &mut back } else { &mut forth };
            match reading.times {
                // Adding 0 turns -0 into 0, which is the same time.
                Times::Kept => times.push((stream.times()[event as usize] + 0.0).to_bits()),
                Times::Dropped if times.is_empty() => times.push(SOME_TIME.to_bits()),
                Times::Dropped => {}
            }
        }
        if lo == hi && reading.direction == Direction::Directed {
            // A loop leads from the node to itself and back.
            back.clone_from(&forth);
        }
        half_links.push((lo, hi, LinkId(links.number(&row(&forth, &back)))));
        if lo != hi {
            let from_hi = if back.is_empty() && reading.direction == Direction::Undirected {
                row(&forth, &back)
            } else {
                row(&back, &forth)
            };
            half_links.push((hi, lo, LinkId(links.number(&from_hi))));
        }
    }
    half_links
}

fn row(forth: &[u64], back: &[u64]) -> Vec<u64> {
    let mut row = Vec::with_capacity(1 + forth.len() + back.len());
    row.push(forth.len() as u64);
    row.extend_from_slice(forth);
    row.extend_from_slice(back);
    row
}

fn labels(stream: &EventStream, labels: &Labels) -> Result<(Vec<u32>, Table)> {
    let mut rows = Table::default();
    let n_nodes = stream.n_nodes();
    let numbers = match labels {
        Labels::Constant => (0..n_nodes).map(|_| rows.number(&[])).collect(),
        Labels::Features => {
            let features = stream.node_features().ok_or_else(|| Problem::Setting {
                name: "labels",
                found: "features".into(),
                expected: "a stream with node features".into(),
            })?;
            let bits = |value: &f32| u64::from((value + 0.0).to_bits());
            (0..n_nodes).map(|node| rows.number(&features.row(node).iter().map(bits).collect::<Vec<_>>())).collect()
        }
        Labels::Sides => {
            let n_sources = stream.names().n_sources().ok_or_else(|| Problem::Setting {
                name: "labels",
                found: "sides".into(),
                expected: "a bipartite stream".into(),
            })?;
            (0..n_nodes).map(|node| rows.number(&[u64::from(node < n_sources as usize)])).collect()
        }
        Labels::Given(given) => {
            if given.len() != n_nodes {
                return Err(Problem::Setting {
                    name: "labels",
                    found: format!("{} of them", given.len()),
                    expected: format!("one for each of the {n_nodes} nodes"),
                }
                .into());
            }
            given.iter().map(|&label| rows.number(&[label])).collect()
        }
    };
    Ok((numbers, rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(events: &[(u32, u32, f64)], reading: &GraphOptions) -> Graph {
        Graph::new(&EventStream::from_events(events.iter().copied()).unwrap(), reading).unwrap()
    }

    fn pair_events(graph: &Graph, node: u32) -> Vec<(u32, String)> {
        graph.pair_events(NodeId(node)).map(|(neighbour, sequence)| (neighbour.0, sequence.to_string())).collect()
    }

    const EVENTS: [(u32, u32, f64); 5] = [(0, 1, 1.0), (1, 0, 2.0), (2, 2, 2.0), (0, 1, 3.0), (1, 2, 3.0)];

    #[test]
    fn sequences_are_whole_and_mutual_unless_directed() {
        let undirected = graph(&EVENTS, &GraphOptions::default());
        assert_eq!(pair_events(&undirected, 0), [(1, "1, 2, 3".to_owned())]);
        assert_eq!(pair_events(&undirected, 1), [(0, "1, 2, 3".to_owned()), (2, "3".to_owned())]);
        assert_eq!(pair_events(&undirected, 2), [(1, "3".to_owned()), (2, "2".to_owned())], "a self-loop stands once");
        let directed = graph(&EVENTS, &GraphOptions { direction: Direction::Directed, ..GraphOptions::default() });
        assert_eq!(pair_events(&directed, 0), [(1, "→1, 3 ←2".to_owned())]);
        assert_eq!(pair_events(&directed, 1), [(0, "→2 ←1, 3".to_owned()), (2, "3".to_owned())]);
    }

    #[test]
    fn only_events_strictly_before_the_time_are_seen() {
        let until = |t| graph(&EVENTS, &GraphOptions { until: Some(t), ..GraphOptions::default() });
        assert_eq!(until(3.0).n_events(), 3);
        assert_eq!(pair_events(&until(2.0), 1), [(0, "1".to_owned())]);
        assert_eq!((until(0.0).n_events(), until(0.0).n_nodes()), (0, 3), "no meeting, all nodes");
    }

    #[test]
    fn without_times_repeats_do_not_count() {
        let reading = GraphOptions { times: Times::Dropped, ..GraphOptions::default() };
        let graph = graph(&EVENTS, &reading);
        assert_eq!(graph.n_sequences(), 2, "met or never met");
        assert_eq!(pair_events(&graph, 0), [(1, "met".to_owned())]);
    }

    #[test]
    fn equal_times_are_kept_as_often_as_they_occur() {
        let twice = graph(&[(0, 1, -0.0), (0, 1, 0.0)], &GraphOptions::default());
        assert_eq!(pair_events(&twice, 0), [(1, "0, 0".to_owned())]);
    }

    #[test]
    fn labels_must_exist_and_fit() {
        let stream = EventStream::from_events(EVENTS).unwrap();
        for labels in [Labels::Features, Labels::Sides, Labels::Given(vec![1, 2])] {
            assert!(Graph::new(&stream, &GraphOptions { labels, ..GraphOptions::default() }).is_err());
        }
        assert!(Graph::new(&stream, &GraphOptions { until: Some(f64::NAN), ..GraphOptions::default() }).is_err());
    }
}
