//! Marked DWL: a pair is colored by 1-DWL on the graph in which both of its nodes are marked.
//!
//! For every pair `(u, v)` each node `w` begins with the isomorphism type of `(u, v, w)`: labels, equal nodes, and the
//! sequences among the three. A round adds to the color of `w` the colors of the nodes that interacted with it, each with
//! its sequence. The color of the pair is the multiset of the colors of all `w`.
//!
//! Colors of different pairs are comparable, so that all pairs of all graphs are refined together, as triples.

use crate::event::NodeId;
use crate::wl::dwl::{Dwl, Round};
use crate::wl::graph::LinkId;
use crate::wl::initial::{Initial, initial};
use crate::wl::joint::{Joint, RunGraph, TupleIndex};
use crate::wl::judge::Judge;
use crate::wl::refine::{Partition, refine};
use crate::wl::rule::{Description, Neighbors, Rule, halves, word};
use crate::wl::verdict::{Coloring, Comparison};
use crate::wl::witness::Cause;

/// The nodes that a marked pair is colored by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Reach {
    /// All nodes of the graph.
    #[default]
    All,
    /// Nodes that interacted with one of the pair: what relational `HopeDGN` reads.
    Met,
}

/// Refines the colors of all nodes beside all pairs until they are stable.
pub(crate) fn refine_to_stability(
    test: &Dwl,
    reach: Reach,
    joint: &Joint<'_>,
    tuples: Option<(&[NodeId], &[NodeId])>,
    observe: &mut (dyn FnMut(Round) + Send),
) -> Comparison {
    let [pair_index, triple_index] = [2, 3].map(|k| TupleIndex::new(k, joint.graphs.iter().map(RunGraph::n_nodes)));
    let near = Near::new(joint, reach);
    let rule = NodesBesidePairs { neighbors: Neighbors::new(joint), triple_index: &triple_index, near: &near };
    let mut judge = Judge::new(joint, &pair_index, tuples);
    let mut triples = initial(joint, &triple_index, Initial::Types, test.interning);
    let mut pairs = initial(joint, &pair_index, Initial::Types, test.interning);
    let mut round = 0;
    let mut see = |round: usize, triples: &Partition, pairs: &mut Partition| {
        let triples = &triples.colors;
        let multiset = Multiset { triples, triple_index: &triple_index, pair_index: &pair_index, near: &near };
        if round == 0 {
            judge.see(&multiset, 0, None, pairs);
        }
        let next = refine(&multiset, pairs, test.interning);
        judge.see(&multiset, round, Some(&*pairs), &next);
        observe(Round { round, n_classes: next.n_classes() });
        *pairs = next;
    };
    see(0, &triples, &mut pairs);
    let mut stable = triples.is_discrete();
    while !stable && test.max_rounds.is_none_or(|max| round < max) {
        let next = refine(&rule, &triples, test.interning);
        if next.n_classes() == triples.n_classes() {
            stable = true;
            break;
        }
        round += 1;
        see(round, &next, &mut pairs);
        stable = next.is_discrete();
        triples = next;
    }
    let (graphs, tuples) = judge.verdicts();
    let coloring = Coloring { tuple_index: pair_index, partition: pairs, rounds: round, stable };
    Comparison { graphs, tuples, coloring }
}

/// The sequences between all nodes, and which nodes are within reach of a pair.
struct Near {
    /// Row-major, for each graph.
    links: Vec<Vec<u32>>,
    reach: Reach,
}

impl Near {
    fn new(joint: &Joint<'_>, reach: Reach) -> Self {
        Self { links: joint.graphs.iter().map(RunGraph::matrix).collect(), reach }
    }

    /// The sequences of `w` with the pair, if it is within reach. `n` is the number of nodes.
    fn links(&self, part: usize, n: usize, [u, v]: [usize; 2], w: usize) -> Option<[u32; 2]> {
        let links = [u, v].map(|node| self.links[part][node * n + w]);
        let is_near = self.reach == Reach::All || links.iter().any(|&link| link != LinkId::NEVER.0);
        is_near.then_some(links)
    }
}

/// Node `w` beside the pair `(u, v)`: the nodes within reach that interacted with `w`, beside the same pair.
struct NodesBesidePairs<'a> {
    neighbors: Neighbors,
    triple_index: &'a TupleIndex,
    near: &'a Near,
}

impl Rule<1> for NodesBesidePairs<'_> {
    fn terms(&self, tuple: usize, colors: &[u32], mut emit: impl FnMut(usize, [u64; 1])) {
        let part = self.triple_index.part_of(tuple);
        let mut nodes = [0; 3];
        self.triple_index.write_nodes(part, tuple, &mut nodes);
        let ([u, v, w], n_nodes) = (nodes, self.triple_index.n_nodes_of(part));
        let is_near = |node: usize| self.near.links(part, n_nodes, [u, v], node).is_some();
        if !is_near(w) {
            return;
        }
        for &(_, neighbor, link) in self.neighbors.of(part, w) {
            let neighbor = neighbor as usize;
            if is_near(neighbor) {
                emit(neighbor, [word(colors[tuple - w + neighbor], link)]);
            }
        }
    }

    fn n_high(&self) -> Option<usize> {
        Some(self.neighbors.n_links())
    }

    fn describe(key: [u64; 1]) -> Description {
        Neighbors::describe(key)
    }
}

/// A pair: the nodes within reach with their colors beside it, and their sequences with the pair. The color of a node
/// determines its sequences; they are there to be shown.
struct Multiset<'a> {
    /// Colors of all nodes beside all pairs.
    triples: &'a [u32],
    triple_index: &'a TupleIndex,
    pair_index: &'a TupleIndex,
    near: &'a Near,
}

impl Rule<2> for Multiset<'_> {
    const CAUSE: Cause = Cause::Nodes;

    fn terms(&self, tuple: usize, _: &[u32], mut emit: impl FnMut(usize, [u64; 2])) {
        let part = self.pair_index.part_of(tuple);
        let (mut pair, n) = ([0; 2], self.pair_index.n_nodes_of(part));
        self.pair_index.write_nodes(part, tuple, &mut pair);
        let first = self.triple_index.first_of(part) + (tuple - self.pair_index.first_of(part)) * n;
        for w in 0..n {
            if let Some([to_u, to_v]) = self.near.links(part, n, pair, w) {
                emit(w, [word(self.triples[first + w], to_u), word(0, to_v)]);
            }
        }
    }

    fn n_high(&self) -> Option<usize> {
        None
    }

    fn describe([first, second]: [u64; 2]) -> Description {
        let ((color, to_u), (_, to_v)) = (halves(first), halves(second));
        Description { position: None, colors: vec![color], links: vec![to_u, to_v] }
    }
}
