//! A dynamic graph until `t`: for every pair of nodes the sequence of their interaction times.
//!
//! This is the paper's historical dynamic adjacency tensor, sparse and interned: a pair without interactions has the link
//! [`LinkId::NEVER`], every other pair the id of its sequence in one table.

use std::fmt;

use rayon::prelude::*;
use serde::Serialize;

use crate::error::{Problem, Result};
use crate::event::{EventStream, NodeId, NodeNames};
use crate::wl::intern::Table;

/// Whether the direction of events matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Direction {
    /// `(u, v, t)` and `(v, u, t)` are the same, as in the paper.
    #[default]
    Undirected,
    /// Events from `u` to `v` and from `v` to `u` are separate; a node sees both sequences.
    Directed,
}

/// Whether interaction times are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Times {
    /// All times of all interactions, repeats included.
    #[default]
    Kept,
    /// Only whether two nodes interacted before `t`: the static graph, for the static tests.
    Dropped,
}

/// Source of the node labels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Labels {
    /// All nodes have the same label, as in Proposition 1 of the paper.
    #[default]
    Constant,
    /// Nodes with equal node features have the same label, as in Propositions 2 and 4.
    Features,
    /// Sources of a bipartite stream have one label, destinations the other.
    Sides,
    /// One number per node.
    Given(Vec<u64>),
}

/// How a stream becomes a [`Graph`].
#[derive(Debug, Clone, Default)]
pub struct GraphOptions {
    /// Only events strictly before this time; all events if `None`. Nodes without events by then are kept.
    pub until: Option<f64>,
    /// Whether direction matters.
    pub direction: Direction,
    /// Whether times matter.
    pub times: Times,
    /// Labels of the nodes.
    pub labels: Labels,
}

/// Placeholder for dropped times; no event has it.
const DROPPED_TIME: f64 = f64::INFINITY;

/// Id of an interaction sequence.
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
    /// `neighbors[starts[u]..starts[u + 1]]` are the neighbors of `u`.
    starts: Vec<u32>,
    neighbors: Vec<(NodeId, LinkId)>,
    links: Table,
    /// Index of each node's label in `label_rows`.
    labels: Vec<u32>,
    label_rows: Table,
}

impl Graph {
    /// The graph of `stream`. Time O(events · log events), memory O(events + nodes).
    ///
    /// A time before the first event is no error: the graph then has all nodes and no interactions.
    pub fn new(stream: &EventStream, options: &GraphOptions) -> Result<Self> {
        if let Some(until) = options.until.filter(|until| until.is_nan()) {
            return Err(Problem::NonFiniteTime { found: until.to_string() }.into());
        }
        let n_events = options.until.map_or(stream.len(), |until| stream.cut(until).n_events());
        let mut links = Table::default();
        links.number(&[0]);
        let mut half_links = half_links(stream, n_events, options, &mut links);
        half_links.par_sort_unstable();
        let n_nodes = stream.n_nodes();
        let mut starts = vec![0; n_nodes + 1];
        for &(node, ..) in &half_links {
            starts[node.index() + 1] += 1;
        }
        for node in 0..n_nodes {
            starts[node + 1] += starts[node];
        }
        let neighbors = half_links.into_iter().map(|(_, neighbor, link)| (neighbor, link)).collect();
        let (labels, label_rows) = labels(stream, &options.labels)?;
        let (names, direction) = (stream.names().clone(), options.direction);
        Ok(Self { names, direction, n_events, starts, neighbors, links, labels, label_rows })
    }

    /// Number of nodes, including those without events.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.labels.len()
    }

    /// Number of events.
    #[must_use]
    pub fn n_events(&self) -> usize {
        self.n_events
    }

    /// Number of distinct interaction sequences, the empty one included.
    #[must_use]
    pub fn n_sequences(&self) -> usize {
        self.links.len()
    }

    /// Number of ordered (node, neighbor) pairs.
    #[must_use]
    pub fn n_half_links(&self) -> usize {
        self.neighbors.len()
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

    /// The neighbors of `u` and the interaction times with each, in order of neighbor.
    ///
    /// # Panics
    /// When there is no such node.
    #[must_use]
    pub fn pair_events(&self, u: NodeId) -> impl ExactSizeIterator<Item = (NodeId, Sequence)> {
        self.neighbors(u).iter().map(|&(neighbor, link)| (neighbor, Sequence::of_row(self.links.row(link.0))))
    }

    pub(crate) fn neighbors(&self, u: NodeId) -> &[(NodeId, LinkId)] {
        &self.neighbors[self.starts[u.index()] as usize..self.starts[u.index() + 1] as usize]
    }

    pub(crate) fn links(&self) -> &Table {
        &self.links
    }

    pub(crate) fn labels(&self) -> (&[u32], &Table) {
        (&self.labels, &self.label_rows)
    }
}

/// The interaction times of two nodes, seen from the first.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sequence {
    /// Times of all interactions; with [`Direction::Directed`] only those directed away from the first node. With
    /// [`Times::Dropped`] a single infinity, in JSON `"met"`.
    #[serde(serialize_with = "serialize_times")]
    pub forth: Vec<f64>,
    /// With [`Direction::Directed`], times of the interactions directed to the first node.
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
    /// Decodes a row: the number of forward times, the forward times, the backward times.
    pub(crate) fn of_row(row: &[u64]) -> Self {
        let times = |bits: &[u64]| bits.iter().map(|&bits| f64::from_bits(bits)).collect();
        let n_forth = usize::try_from(row[0]).expect("a row counts its own words");
        Self { forth: times(&row[1..=n_forth]), back: times(&row[1 + n_forth..]) }
    }

    /// Whether there are no interactions.
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
            let time = |time: &f64| if *time < DROPPED_TIME { time.to_string() } else { "met".to_owned() };
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

/// Every pair with interactions, in both orders, with its interned sequence.
fn half_links(
    stream: &EventStream,
    n_events: usize,
    options: &GraphOptions,
    links: &mut Table,
) -> Vec<(NodeId, NodeId, LinkId)> {
    let (src, dst) = (&stream.src()[..n_events], &stream.dst()[..n_events]);
    let mut interactions: Vec<(NodeId, NodeId, u32)> = Vec::with_capacity(n_events);
    for (event, (&src, &dst)) in (0..).zip(src.iter().zip(dst)) {
        interactions.push((src.min(dst), src.max(dst), event));
    }
    interactions.par_sort_unstable();
    let mut half_links = Vec::new();
    for same_pair in interactions.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let (lo, hi, _) = same_pair[0];
        let (mut forth, mut back) = (Vec::new(), Vec::new());
        for &(_, _, event) in same_pair {
            let points_back = options.direction == Direction::Directed && src[event as usize] != lo;
            let times = if points_back { &mut back } else { &mut forth };
            match options.times {
                // Adding 0 maps -0 to 0.
                Times::Kept => times.push((stream.times()[event as usize] + 0.0).to_bits()),
                Times::Dropped if times.is_empty() => times.push(DROPPED_TIME.to_bits()),
                Times::Dropped => {}
            }
        }
        if lo == hi && options.direction == Direction::Directed {
            // A self-loop is both outgoing and incoming.
            back.clone_from(&forth);
        }
        half_links.push((lo, hi, LinkId(links.number(&row(&forth, &back)))));
        if lo != hi {
            let from_hi = if back.is_empty() && options.direction == Direction::Undirected {
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

    fn graph(events: &[(u32, u32, f64)], options: &GraphOptions) -> Graph {
        Graph::new(&EventStream::from_events(events.iter().copied()).unwrap(), options).unwrap()
    }

    fn pair_events(graph: &Graph, node: u32) -> Vec<(u32, String)> {
        graph.pair_events(NodeId(node)).map(|(neighbor, sequence)| (neighbor.0, sequence.to_string())).collect()
    }

    const EVENTS: [(u32, u32, f64); 5] = [(0, 1, 1.0), (1, 0, 2.0), (2, 2, 2.0), (0, 1, 3.0), (1, 2, 3.0)];

    #[test]
    fn sequences_are_complete_and_symmetric_unless_directed() {
        let undirected = graph(&EVENTS, &GraphOptions::default());
        assert_eq!(pair_events(&undirected, 0), [(1, "1, 2, 3".to_owned())]);
        assert_eq!(pair_events(&undirected, 1), [(0, "1, 2, 3".to_owned()), (2, "3".to_owned())]);
        assert_eq!(pair_events(&undirected, 2), [(1, "3".to_owned()), (2, "2".to_owned())], "a self-loop occurs once");
        let directed = graph(&EVENTS, &GraphOptions { direction: Direction::Directed, ..GraphOptions::default() });
        assert_eq!(pair_events(&directed, 0), [(1, "→1, 3 ←2".to_owned())]);
        assert_eq!(pair_events(&directed, 1), [(0, "→2 ←1, 3".to_owned()), (2, "3".to_owned())]);
    }

    #[test]
    fn only_events_strictly_before_the_time_are_used() {
        let until = |t| graph(&EVENTS, &GraphOptions { until: Some(t), ..GraphOptions::default() });
        assert_eq!(until(3.0).n_events(), 3);
        assert_eq!(pair_events(&until(2.0), 1), [(0, "1".to_owned())]);
        assert_eq!((until(0.0).n_events(), until(0.0).n_nodes()), (0, 3), "no interactions, all nodes");
    }

    #[test]
    fn dropping_times_drops_repeats() {
        let options = GraphOptions { times: Times::Dropped, ..GraphOptions::default() };
        let graph = graph(&EVENTS, &options);
        assert_eq!(graph.n_sequences(), 2, "with or without interactions");
        assert_eq!(pair_events(&graph, 0), [(1, "met".to_owned())]);
    }

    #[test]
    fn equal_times_keep_their_multiplicity() {
        let twice = graph(&[(0, 1, -0.0), (0, 1, 0.0)], &GraphOptions::default());
        assert_eq!(pair_events(&twice, 0), [(1, "0, 0".to_owned())]);
    }

    #[test]
    fn missing_or_mismatched_labels_are_refused() {
        let stream = EventStream::from_events(EVENTS).unwrap();
        for labels in [Labels::Features, Labels::Sides, Labels::Given(vec![1, 2])] {
            assert!(Graph::new(&stream, &GraphOptions { labels, ..GraphOptions::default() }).is_err());
        }
        assert!(Graph::new(&stream, &GraphOptions { until: Some(f64::NAN), ..GraphOptions::default() }).is_err());
    }
}
