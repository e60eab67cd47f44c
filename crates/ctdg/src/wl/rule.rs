//! What a tuple looks at in one round: the terms whose multiset, together with its old colour, is its new colour.
//!
//! A rule gives each term as a key of machine words in which equal keys mean equal terms. Words hold a colour in the
//! low half and the number of an interaction sequence (or a position) in the high half.

use crate::event::NodeId;
use crate::wl::joint::{Joint, Numbering};

/// The terms of every tuple; keys are `N` words.
pub(crate) trait Rule<const N: usize>: Sync {
    /// Calls `emit` with each term of `tuple` and the node `w` it comes from.
    fn terms(&self, tuple: usize, colours: &[u32], emit: impl FnMut(usize, [u64; N]));

    /// Low halves of keys are colours; high halves are below this, or of unknown size, and then so are low ones.
    fn n_high(&self) -> Option<usize>;

    /// What a key means.
    fn describe(key: [u64; N]) -> Description;
}

/// A key taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Description {
    /// The place in the tuple that `w` was put in, where the rule tells places apart.
    pub(crate) position: Option<usize>,
    /// The colours of the tuples that arise by putting `w` in.
    pub(crate) colours: Vec<u32>,
    /// The sequences of `w` with the tuple's nodes; empty where the rule does not look at them.
    pub(crate) links: Vec<u32>,
}

fn word(colour: u32, high: u32) -> u64 {
    u64::from(colour) | u64::from(high) << 32
}

fn halves(word: u64) -> (u32, u32) {
    let half = |bits: u64| u32::try_from(bits).expect("half a word");
    (half(word & u64::from(u32::MAX)), half(word >> 32))
}

/// `k = 1`: the neighbours of a node, each with its colour and the whole sequence.
pub(crate) struct Neighbours {
    /// `starts[u]..starts[u + 1]` are the places of `u`'s neighbours, nodes of all graphs numbered through.
    starts: Vec<usize>,
    /// A neighbour, numbered through, its number in its own graph, and the sequence.
    entries: Vec<(u32, u32, u32)>,
    n_links: usize,
}

impl Neighbours {
    pub(crate) fn new(joint: &Joint<'_>) -> Self {
        let (mut starts, mut entries) = (vec![0], Vec::new());
        let mut first = 0;
        for part in &joint.parts {
            for node in (0..part.n_nodes()).filter_map(NodeId::from_index) {
                entries.extend(part.neighbours(node).map(|(other, link)| (first + other.0, other.0, link)));
                starts.push(entries.len());
            }
            first += u32::try_from(part.n_nodes()).expect("a stream counts its nodes in 32 bits");
        }
        Self { starts, entries, n_links: joint.links.len() }
    }
}

impl Rule<1> for Neighbours {
    fn terms(&self, tuple: usize, colours: &[u32], mut emit: impl FnMut(usize, [u64; 1])) {
        for &(place, neighbour, link) in &self.entries[self.starts[tuple]..self.starts[tuple + 1]] {
            emit(neighbour as usize, [word(colours[place as usize], link)]);
        }
    }

    fn n_high(&self) -> Option<usize> {
        Some(self.n_links)
    }

    fn describe(key: [u64; 1]) -> Description {
        let (colour, link) = halves(key[0]);
        Description { position: None, colours: vec![colour], links: vec![link] }
    }
}

/// What both rules for `k ≥ 2` walk over.
struct Places<const K: usize> {
    numbering: Numbering,
    /// Number of nodes of each graph.
    n_nodes: Vec<usize>,
    /// Distance in numbers between tuples that differ by one in place `i`, for each graph.
    strides: Vec<[usize; K]>,
}

impl<const K: usize> Places<K> {
    fn new(joint: &Joint<'_>) -> Self {
        let n_nodes: Vec<usize> = joint.parts.iter().map(super::joint::Part::n_nodes).collect();
        let strides = |&n: &usize| {
            let mut strides = [1; K];
            for place in (0..K - 1).rev() {
                strides[place] = strides[place + 1] * n;
            }
            strides
        };
        let strides = n_nodes.iter().map(strides).collect();
        Self { numbering: Numbering::new(K, n_nodes.iter().copied()), n_nodes, strides }
    }

    /// The graph of `tuple`, its nodes, and for each place the number of the tuple with node 0 put in there.
    fn of(&self, tuple: usize) -> (usize, [usize; K], [usize; K]) {
        let part = self.numbering.part_of(tuple);
        let mut nodes = [0; K];
        self.numbering.write_nodes(part, tuple, &mut nodes);
        let mut bases = [0; K];
        for place in 0..K {
            bases[place] = tuple - nodes[place] * self.strides[part][place];
        }
        (part, nodes, bases)
    }
}

/// `k ≥ 2`, folklore: for every node `w` the colours of the `k` tuples with `w` put in, seen together, and the `k`
/// sequences of `w` with the tuple's nodes.
pub(crate) struct Folklore<const K: usize> {
    places: Places<K>,
    matrices: Vec<Vec<u32>>,
    n_links: usize,
}

impl<const K: usize> Folklore<K> {
    pub(crate) fn new(joint: &Joint<'_>) -> Self {
        let matrices = joint.parts.iter().map(super::joint::Part::matrix).collect();
        Self { places: Places::new(joint), matrices, n_links: joint.links.len() }
    }
}

impl<const K: usize> Rule<K> for Folklore<K> {
    fn terms(&self, tuple: usize, colours: &[u32], mut emit: impl FnMut(usize, [u64; K])) {
        let (part, nodes, bases) = self.places.of(tuple);
        let (n, strides) = (self.places.n_nodes[part], self.places.strides[part]);
        // The sequence seen from the tuple's node: its row lies together in memory, and seen from `w` it is the same
        // with the two directions exchanged, so the same terms are equal.
        let rows: [&[u32]; K] = nodes.map(|node| &self.matrices[part][node * n..][..n]);
        for w in 0..n {
            let mut key = [0; K];
            for place in 0..K {
                key[place] = word(colours[bases[place] + w * strides[place]], rows[place][w]);
            }
            emit(w, key);
        }
    }

    fn n_high(&self) -> Option<usize> {
        Some(self.n_links)
    }

    fn describe(key: [u64; K]) -> Description {
        let (colours, links) = key.into_iter().map(halves).unzip();
        Description { position: None, colours, links }
    }
}

/// `k ≥ 2`, oblivious: for each place on its own the colours of the tuples with any node put in there.
pub(crate) struct Oblivious<const K: usize> {
    places: Places<K>,
}

impl<const K: usize> Oblivious<K> {
    pub(crate) fn new(joint: &Joint<'_>) -> Self {
        Self { places: Places::new(joint) }
    }
}

impl<const K: usize> Rule<1> for Oblivious<K> {
    fn terms(&self, tuple: usize, colours: &[u32], mut emit: impl FnMut(usize, [u64; 1])) {
        let (part, _, bases) = self.places.of(tuple);
        let strides = self.places.strides[part];
        for (place, tag) in (0..K).zip(0..) {
            for w in 0..self.places.n_nodes[part] {
                emit(w, [word(colours[bases[place] + w * strides[place]], tag)]);
            }
        }
    }

    fn n_high(&self) -> Option<usize> {
        Some(K)
    }

    fn describe(key: [u64; 1]) -> Description {
        let (colour, place) = halves(key[0]);
        Description { position: Some(place as usize), colours: vec![colour], links: Vec::new() }
    }
}
