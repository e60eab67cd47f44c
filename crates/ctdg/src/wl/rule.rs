//! Refinement rules: the multiset of terms that, with the old color of a tuple, determines its new color.
//!
//! A term is a key of machine words; equal keys mean equal terms. A word has a color in the low half and the id of an
//! interaction sequence (or a position) in the high half.

use crate::event::NodeId;
use crate::wl::joint::{Joint, TupleIndex};
use crate::wl::witness::Cause;

/// The terms of every tuple; keys are `N` words.
pub(crate) trait Rule<const N: usize>: Sync {
    /// What differs when terms with equal sequences do.
    const CAUSE: Cause = Cause::Classes;

    /// Calls `emit` with each term of `tuple` and the node `w` it comes from.
    fn terms(&self, tuple: usize, colors: &[u32], emit: impl FnMut(usize, [u64; N]));

    /// Upper bound of the high halves of keys, if the low halves are colors; `None` if both are unbounded.
    fn n_high(&self) -> Option<usize>;

    /// Decodes a key.
    fn describe(key: [u64; N]) -> Description;
}

/// A decoded key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Description {
    /// The position at which `w` is substituted, if the rule distinguishes positions.
    pub(crate) position: Option<usize>,
    /// The colors of the tuples with `w` substituted.
    pub(crate) colors: Vec<u32>,
    /// The sequences of `w` with the tuple's nodes; empty if the rule does not use them.
    pub(crate) links: Vec<u32>,
}

pub(crate) fn word(color: u32, high: u32) -> u64 {
    u64::from(color) | u64::from(high) << 32
}

pub(crate) fn halves(word: u64) -> (u32, u32) {
    let half = |bits: u64| u32::try_from(bits).expect("half a word");
    (half(word & u64::from(u32::MAX)), half(word >> 32))
}

/// `k = 1`: the neighbors of a node, each with its color and sequence.
pub(crate) struct Neighbors {
    /// First node of each graph.
    firsts: Vec<usize>,
    /// `entries[starts[u]..starts[u + 1]]` are the neighbors of `u`; nodes of all graphs are numbered consecutively.
    starts: Vec<usize>,
    /// A neighbor's consecutive number, its id in its own graph, and the sequence.
    entries: Vec<(u32, u32, u32)>,
    n_links: usize,
}

impl Neighbors {
    pub(crate) fn new(joint: &Joint<'_>) -> Self {
        let (mut starts, mut entries) = (vec![0], Vec::new());
        let (mut firsts, mut first) = (Vec::new(), 0);
        for part in &joint.graphs {
            firsts.push(first as usize);
            for node in (0..part.n_nodes()).filter_map(NodeId::from_index) {
                entries.extend(part.neighbors(node).map(|(other, link)| (first + other.0, other.0, link)));
                starts.push(entries.len());
            }
            first += u32::try_from(part.n_nodes()).expect("a stream counts its nodes in 32 bits");
        }
        Self { firsts, starts, entries, n_links: joint.links.len() }
    }

    /// The neighbors of node `w` of graph `part`: consecutive number, id in the graph, sequence.
    pub(crate) fn of(&self, part: usize, w: usize) -> &[(u32, u32, u32)] {
        self.of_number(self.firsts[part] + w)
    }

    pub(crate) fn n_links(&self) -> usize {
        self.n_links
    }

    fn of_number(&self, node: usize) -> &[(u32, u32, u32)] {
        &self.entries[self.starts[node]..self.starts[node + 1]]
    }
}

impl Rule<1> for Neighbors {
    fn terms(&self, tuple: usize, colors: &[u32], mut emit: impl FnMut(usize, [u64; 1])) {
        for &(node, neighbor, link) in self.of_number(tuple) {
            emit(neighbor as usize, [word(colors[node as usize], link)]);
        }
    }

    fn n_high(&self) -> Option<usize> {
        Some(self.n_links)
    }

    fn describe(key: [u64; 1]) -> Description {
        let (color, link) = halves(key[0]);
        Description { position: None, colors: vec![color], links: vec![link] }
    }
}

/// Strides for substituting nodes in tuples, for `k ≥ 2`.
struct TupleStrides<const K: usize> {
    tuple_index: TupleIndex,
    /// Number of nodes of each graph.
    n_nodes: Vec<usize>,
    /// Index distance of tuples that differ by one at position `i`, for each graph.
    strides: Vec<[usize; K]>,
}

impl<const K: usize> TupleStrides<K> {
    fn new(joint: &Joint<'_>) -> Self {
        let n_nodes: Vec<usize> = joint.graphs.iter().map(super::joint::RunGraph::n_nodes).collect();
        let strides = |&n: &usize| {
            let mut strides = [1; K];
            for position in (0..K - 1).rev() {
                strides[position] = strides[position + 1] * n;
            }
            strides
        };
        let strides = n_nodes.iter().map(strides).collect();
        Self { tuple_index: TupleIndex::new(K, n_nodes.iter().copied()), n_nodes, strides }
    }

    /// The graph of `tuple`, its nodes, and for each position the index of the tuple with node 0 substituted there.
    fn of(&self, tuple: usize) -> (usize, [usize; K], [usize; K]) {
        let part = self.tuple_index.part_of(tuple);
        let mut nodes = [0; K];
        self.tuple_index.write_nodes(part, tuple, &mut nodes);
        let mut bases = [0; K];
        for position in 0..K {
            bases[position] = tuple - nodes[position] * self.strides[part][position];
        }
        (part, nodes, bases)
    }
}

/// `k ≥ 2`, folklore: for every node `w` the vector of the colors of the `k` tuples with `w` substituted, and the `k`
/// sequences of `w` with the tuple's nodes.
pub(crate) struct Folklore<const K: usize> {
    tuples: TupleStrides<K>,
    matrices: Vec<Vec<u32>>,
    n_links: usize,
}

impl<const K: usize> Folklore<K> {
    pub(crate) fn new(joint: &Joint<'_>) -> Self {
        let matrices = joint.graphs.iter().map(super::joint::RunGraph::matrix).collect();
        Self { tuples: TupleStrides::new(joint), matrices, n_links: joint.links.len() }
    }
}

impl<const K: usize> Rule<K> for Folklore<K> {
    fn terms(&self, tuple: usize, colors: &[u32], mut emit: impl FnMut(usize, [u64; K])) {
        let (part, nodes, bases) = self.tuples.of(tuple);
        let (n, strides) = (self.tuples.n_nodes[part], self.tuples.strides[part]);
        // Sequences are seen from the tuple's node, whose row is contiguous in memory; seen from `w` the directions are
        // swapped, which does not change which terms are equal.
        let rows: [&[u32]; K] = nodes.map(|node| &self.matrices[part][node * n..][..n]);
        for w in 0..n {
            let mut key = [0; K];
            for position in 0..K {
                key[position] = word(colors[bases[position] + w * strides[position]], rows[position][w]);
            }
            emit(w, key);
        }
    }

    fn n_high(&self) -> Option<usize> {
        Some(self.n_links)
    }

    fn describe(key: [u64; K]) -> Description {
        let (colors, links) = key.into_iter().map(halves).unzip();
        Description { position: None, colors, links }
    }
}

/// `k ≥ 2`, oblivious: for each position separately the colors of the tuples with any node substituted there.
pub(crate) struct Oblivious<const K: usize> {
    tuples: TupleStrides<K>,
}

impl<const K: usize> Oblivious<K> {
    pub(crate) fn new(joint: &Joint<'_>) -> Self {
        Self { tuples: TupleStrides::new(joint) }
    }
}

impl<const K: usize> Rule<1> for Oblivious<K> {
    fn terms(&self, tuple: usize, colors: &[u32], mut emit: impl FnMut(usize, [u64; 1])) {
        let (part, _, bases) = self.tuples.of(tuple);
        let strides = self.tuples.strides[part];
        for (position, tag) in (0..K).zip(0..) {
            for w in 0..self.tuples.n_nodes[part] {
                emit(w, [word(colors[bases[position] + w * strides[position]], tag)]);
            }
        }
    }

    fn n_high(&self) -> Option<usize> {
        Some(K)
    }

    fn describe(key: [u64; 1]) -> Description {
        let (color, position) = halves(key[0]);
        Description { position: Some(position as usize), colors: vec![color], links: Vec::new() }
    }
}
