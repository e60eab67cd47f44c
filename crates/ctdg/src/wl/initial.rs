//! What is known of a tuple before the first round.

use crate::event::NodeId;
use crate::wl::graph::LinkId;
use crate::wl::joint::{Joint, Numbering};
use crate::wl::refine::{Interning, Partition, refine};
use crate::wl::rule::{Description, Rule};

/// The colour of a tuple in round 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Initial {
    /// The labels of its nodes and nothing else: the paper's `l`, constant unless labels are given.
    #[default]
    Labels,
    /// The labels, which of its nodes are the same, and the sequences among them: its isomorphism type, from which the
    /// static tests of the paper's appendix start.
    Types,
}

/// The partition of round 0.
pub(crate) fn initial(joint: &Joint<'_>, numbering: &Numbering, initial: Initial, interning: Interning) -> Partition {
    let one_class = Partition::new(vec![0; numbering.len()]);
    refine(&Facts::new(joint, numbering, initial), &one_class, interning)
}

/// A tuple's facts as terms of a rule: each fact says which one it is in the high half of its word.
struct Facts<'a> {
    numbering: &'a Numbering,
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

impl<'a> Facts<'a> {
    fn new(joint: &'a Joint<'_>, numbering: &'a Numbering, initial: Initial) -> Self {
        let labels = joint.parts.iter().map(|part| part.labels.as_slice()).collect();
        let types = (initial == Initial::Types).then(|| Types {
            loops: joint.parts.iter().map(self_links).collect(),
            matrices: joint.parts.iter().filter(|_| numbering.k > 1).map(super::joint::Part::matrix).collect(),
        });
        Self { numbering, labels, types }
    }
}

fn self_links(part: &super::joint::Part<'_>) -> Vec<u32> {
    let own = |node: NodeId| part.neighbours(node).find(|&(other, _)| other == node);
    let nodes = (0..part.n_nodes()).filter_map(NodeId::from_index);
    nodes.map(|node| own(node).map_or(LinkId::NEVER.0, |(_, link)| link)).collect()
}

impl Rule<1> for Facts<'_> {
    fn terms(&self, tuple: usize, _: &[u32], mut emit: impl FnMut(usize, [u64; 1])) {
        let part = self.numbering.part_of(tuple);
        let mut nodes = [0; super::MAX_K];
        let nodes = &mut nodes[..self.numbering.k];
        self.numbering.write_nodes(part, tuple, nodes);
        let mut question = 0u64;
        let mut fact = |answer: u32| {
            emit(0, [u64::from(answer) | question << 32]);
            question += 1;
        };
        for &node in &*nodes {
            fact(self.labels[part][node]);
        }
        let Some(Types { loops, matrices }) = &self.types else { return };
        for (place, &u) in nodes.iter().enumerate() {
            fact(loops[part][u]);
            for &v in &nodes[..place] {
                fact(u32::from(u == v));
                // The sequence the other way round says the same.
                fact(matrices[part][u * self.labels[part].len() + v]);
            }
        }
    }

    fn n_high(&self) -> Option<usize> {
        None
    }

    fn describe(_: [u64; 1]) -> Description {
        Description { position: None, colours: Vec::new(), links: Vec::new() }
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
        initial(&joint, &Numbering::new(k, [3]), start, Interning::Exact).colours
    }

    #[test]
    fn constant_labels_give_one_class_and_labels_one_per_combination() {
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
            let numbering = Numbering::new(k, [4]);
            let one_class = Partition::new(vec![0; numbering.len()]);
            let colliding = refine_colliding(&Facts::new(&joint, &numbering, start), &one_class);
            assert_eq!(colliding, initial(&joint, &numbering, start, Interning::Exact));
        }
    }

    #[test]
    fn types_know_equal_nodes_and_the_sequences_among_them() {
        // (0,0) (0,1) (0,2) / (1,0) (1,1) (1,2) / (2,0) (2,1) (2,2): diagonal, met, self-loop on either side.
        assert_eq!(classes(2, Initial::Types, Labels::Constant), [0, 1, 2, 1, 0, 2, 3, 3, 4]);
        assert_eq!(classes(1, Initial::Types, Labels::Constant), [0, 0, 1]);
    }
}
