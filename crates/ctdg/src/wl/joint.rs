//! The graphs of one run with common ids of sequences, labels and tuples, so that colors are comparable.

use crate::error::{Problem, Result};
use crate::event::NodeId;
use crate::wl::graph::{Graph, LinkId};
use crate::wl::intern::Table;

/// The graphs of one run.
#[derive(Debug)]
pub(crate) struct Joint<'a> {
    pub(crate) graphs: Vec<RunGraph<'a>>,
    pub(crate) links: Table,
}

/// One graph of a run, in the run's ids.
#[derive(Debug)]
pub(crate) struct RunGraph<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) labels: Vec<u32>,
    /// The run's id of each of the graph's sequences.
    links: Vec<u32>,
}

impl<'a> Joint<'a> {
    pub(crate) fn new(graphs: &[&'a Graph]) -> Result<Self> {
        let (mut links, mut label_rows) = (Table::default(), Table::default());
        let mut run_graphs = Vec::with_capacity(graphs.len());
        for &graph in graphs {
            if graph.direction() != graphs[0].direction() {
                let found = [graphs[0].direction(), graph.direction()].map(|direction| format!("{direction:?}"));
                return Err(Problem::Setting {
                    name: "direction",
                    found: found.join(" and ").to_lowercase(),
                    expected: "the same direction for both graphs".into(),
                }
                .into());
            }
            let (labels, rows) = graph.labels();
            let numbers: Vec<u32> = rows.rows().map(|row| label_rows.number(row)).collect();
            let labels = labels.iter().map(|&label| numbers[label as usize]).collect();
            let links = graph.links().rows().map(|row| links.number(row)).collect();
            run_graphs.push(RunGraph { graph, labels, links });
        }
        Ok(Self { graphs: run_graphs, links })
    }
}

impl RunGraph<'_> {
    pub(crate) fn n_nodes(&self) -> usize {
        self.labels.len()
    }

    /// Neighbors of `node` and the run's id of the sequence, in order of neighbor.
    pub(crate) fn neighbors(&self, node: NodeId) -> impl ExactSizeIterator<Item = (NodeId, u32)> {
        self.graph.neighbors(node).iter().map(|&(neighbor, link)| (neighbor, self.links[link.0 as usize]))
    }

    /// The full matrix of sequence ids, row-major.
    pub(crate) fn matrix(&self) -> Vec<u32> {
        let n = self.n_nodes();
        let mut matrix = vec![LinkId::NEVER.0; n * n];
        for node in (0..n).filter_map(NodeId::from_index) {
            for (neighbor, link) in self.neighbors(node) {
                matrix[node.index() * n + neighbor.index()] = link;
            }
        }
        matrix
    }
}

/// Maps `k`-tuples of nodes to indices: graph after graph, each in lexicographic order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TupleIndex {
    pub(crate) k: usize,
    /// First tuple and number of nodes of each graph.
    graphs: Vec<(usize, usize)>,
    len: usize,
}

impl TupleIndex {
    /// # Panics
    /// On overflow; the memory limit excludes such a run.
    pub(crate) fn new(k: usize, n_nodes: impl IntoIterator<Item = usize>) -> Self {
        let power = u32::try_from(k).expect("k is at most 4");
        let (mut graphs, mut len) = (Vec::new(), 0usize);
        for n in n_nodes {
            graphs.push((len, n));
            len = n.checked_pow(power).and_then(|n_tuples| len.checked_add(n_tuples)).expect("within the budget");
        }
        Self { k, graphs, len }
    }

    /// Number of tuples in all.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Number of tuples of graph `part`.
    pub(crate) fn len_of(&self, part: usize) -> usize {
        self.graphs.get(part + 1).map_or(self.len, |next| next.0) - self.graphs[part].0
    }

    /// Number of nodes of graph `part`.
    pub(crate) fn n_nodes_of(&self, part: usize) -> usize {
        self.graphs[part].1
    }

    /// Number of the first tuple of graph `part`.
    pub(crate) fn first_of(&self, part: usize) -> usize {
        self.graphs[part].0
    }

    /// The graph that tuple number `tuple` belongs to.
    pub(crate) fn part_of(&self, tuple: usize) -> usize {
        self.graphs.partition_point(|&(first, _)| first <= tuple) - 1
    }

    /// Number of the tuple `nodes` of graph `part`.
    pub(crate) fn number(&self, part: usize, nodes: &[NodeId]) -> usize {
        let (first, n) = self.graphs[part];
        first + nodes.iter().fold(0, |number, node| number * n + node.index())
    }

    /// The nodes of tuple number `tuple` of graph `part`, written to `nodes` of length `k`.
    pub(crate) fn write_nodes(&self, part: usize, tuple: usize, nodes: &mut [usize]) {
        let (first, n) = self.graphs[part];
        let mut rest = tuple - first;
        for node in nodes.iter_mut().rev() {
            *node = rest % n;
            rest /= n;
        }
    }

    /// The graph and the nodes of tuple number `tuple`.
    pub(crate) fn nodes(&self, tuple: usize) -> (usize, Vec<NodeId>) {
        let part = self.part_of(tuple);
        let mut nodes = vec![0; self.k];
        self.write_nodes(part, tuple, &mut nodes);
        (part, nodes.into_iter().filter_map(NodeId::from_index).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuples_of_both_graphs_have_consecutive_indices() {
        let tuple_index = TupleIndex::new(2, [0, 3, 2]);
        assert_eq!(tuple_index.len(), 9 + 4);
        let tuples: Vec<_> = (0..tuple_index.len()).map(|tuple| tuple_index.nodes(tuple)).collect();
        assert_eq!(tuples[5], (1, vec![NodeId(1), NodeId(2)]));
        assert_eq!(tuples[10], (2, vec![NodeId(0), NodeId(1)]));
        for (number, (part, nodes)) in tuples.iter().enumerate() {
            assert_eq!(tuple_index.number(*part, nodes), number);
        }
    }
}
