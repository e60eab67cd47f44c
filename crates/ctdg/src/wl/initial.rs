//! Initial colors of tuples.

use crate::event::NodeId;
use crate::wl::graph::LinkId;
use crate::wl::joint::{Joint, TupleIndex};
use crate::wl::refine::{Interning, Partition, refine};
use crate::wl::rule::{Description, Rule};

/// The color of a tuple in round 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Initial {
    /// The labels of its nodes only: the paper's `l`, constant unless labels are given.
    #[default]
    Labels,
    /// Its isomorphism type: the labels, which of its nodes are equal, and the sequences among them, as in the static tests
    /// of the paper's appendix.
    Types,
}

/// The partition of round 0.
pub(crate) fn initial(
    joint: &Joint<'_>,
    tuple_index: &TupleIndex,
    initial: Initial,
    interning: Interning,
) -> Partition {
    let one_class = Partition::new(vec![0; tuple_index.len()]);
    refine(&InitialRule::new(joint, tuple_index, initial), &one_class, interning)
}

/// The initial properties of a tuple as terms of a rule; the high half of a word tells which property it is.
struct InitialRule<'a> {
    tuple_index: &'a TupleIndex,
    labels: Vec<&'a [u32]>,
    /// Only for [`Initial::Types`].
    types: Option<Types>,
}

struct Types {
    /// Each node's sequence with itself.
    loops: Vec<Vec<u32>>,
    /// All sequences; empty for `k = 1`, which has no two nodes to compare.
    matrices: Vec<Vec<u32>>,
}

impl<'a> InitialRule<'a> {
    fn new(joint: &'a Joint<'_>, tuple_index: &'a TupleIndex, initial: Initial) -> Self {
        let labels = joint.graphs.iter().map(|part| part.labels.as_slice()).collect();
        let types = (initial == Initial::Types).then(|| Types {
            loops: joint.graphs.iter().map(self_links).collect(),
            matrices: joint.graphs.iter().filter(|_| tuple_index.k > 1).map(super::joint::RunGraph::matrix).collect(),
        });
        Self { tuple_index, labels, types }
    }
}

fn self_links(part: &super::joint::RunGraph<'_>) -> Vec<u32> {
    let own = |node: NodeId| part.neighbors(node).find(|&(other, _)| other == node);
    let nodes = (0..part.n_nodes()).filter_map(NodeId::from_index);
    nodes.map(|node| own(node).map_or(LinkId::NEVER.0, |(_, link)| link)).collect()
}

impl Rule<1> for InitialRule<'_> {
    fn terms(&self, tuple: usize, _: &[u32], mut emit: impl FnMut(usize, [u64; 1])) {
        let part = self.tuple_index.part_of(tuple);
        let mut nodes = [0; super::MAX_K];
        let nodes = &mut nodes[..self.tuple_index.k];
        self.tuple_index.write_nodes(part, tuple, nodes);
        let mut property = 0u64;
        let mut push = |value: u32| {
            emit(0, [u64::from(value) | property << 32]);
            property += 1;
        };
        for &node in &*nodes {
            push(self.labels[part][node]);
        }
        let Some(Types { loops, matrices }) = &self.types else { return };
        for (place, &u) in nodes.iter().enumerate() {
            push(loops[part][u]);
            for &v in &nodes[..place] {
                push(u32::from(u == v));
                // The sequence in the other direction is equivalent.
                push(matrices[part][u * self.labels[part].len() + v]);
            }
        }
    }

    fn n_high(&self) -> Option<usize> {
        None
    }

    fn describe(_: [u64; 1]) -> Description {
        Description { position: None, colors: Vec::new(), links: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventStream;
    use crate::wl::graph::{Graph, GraphOptions, Labels};
    use crate::wl::refine::refine_colliding;

    fn classes(k: usize, start: Initial, labels: Labels) -> Vec<u32> {
        let stream = EventStream::from_events([(0, 1, 1.0), (2, 2, 1.0)]).unwrap();
        let graph = Graph::new(&stream, &GraphOptions { labels, ..GraphOptions::default() }).unwrap();
        let joint = Joint::new(&[&graph]).unwrap();
        initial(&joint, &TupleIndex::new(k, [3]), start, Interning::Exact).colors
    }

    #[test]
    fn constant_labels_give_one_class_and_others_one_per_combination() {
        assert_eq!(classes(2, Initial::Labels, Labels::Constant), [0; 9]);
        assert_eq!(classes(2, Initial::Labels, Labels::Given(vec![7, 7, 8])), [0, 0, 1, 0, 0, 1, 2, 2, 3]);
    }

    #[test]
    fn colliding_fingerprints_never_merge_initial_classes() {
        let stream = EventStream::from_events([(0, 1, 1.0), (2, 2, 1.0), (0, 3, 2.0)]).unwrap();
        let reading = GraphOptions { labels: Labels::Given(vec![5, 5, 6, 7]), ..GraphOptions::default() };
        let graph = Graph::new(&stream, &reading).unwrap();
        let joint = Joint::new(&[&graph]).unwrap();
        for (k, start) in [(1, Initial::Labels), (2, Initial::Labels), (2, Initial::Types), (3, Initial::Types)] {
            let tuple_index = TupleIndex::new(k, [4]);
            let one_class = Partition::new(vec![0; tuple_index.len()]);
            let colliding = refine_colliding(&InitialRule::new(&joint, &tuple_index, start), &one_class);
            assert_eq!(colliding, initial(&joint, &tuple_index, start, Interning::Exact));
        }
    }

    #[test]
    fn types_include_equal_nodes_and_sequences() {
        // (0,0) (0,1) (0,2) / (1,0) (1,1) (1,2) / (2,0) (2,1) (2,2): diagonal, edge, self-loop on either side.
        assert_eq!(classes(2, Initial::Types, Labels::Constant), [0, 1, 2, 1, 0, 2, 3, 3, 4]);
        assert_eq!(classes(1, Initial::Types, Labels::Constant), [0, 0, 1]);
    }
}
