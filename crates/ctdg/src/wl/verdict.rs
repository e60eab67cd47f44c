//! Results of a run.

use crate::event::NodeId;
use crate::wl::joint::TupleIndex;
use crate::wl::refine::Partition;
use crate::wl::witness::Witness;

/// Whether the test separates two graphs or tuples, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The first round in which they differ, 0 for the initial colors; `None` if they never do.
    pub round: Option<usize>,
    /// The difference; present whenever there is a round.
    pub witness: Option<Witness>,
}

impl Verdict {
    /// Whether they are separated.
    #[must_use]
    pub fn separated(&self) -> bool {
        self.round.is_some()
    }
}

/// Result of a run on two graphs.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Whether the multisets of colors differ.
    pub graphs: Verdict,
    /// Whether the two tuples differ, if two were given.
    pub tuples: Option<Verdict>,
    /// The last coloring.
    pub coloring: Coloring,
}

impl Comparison {
    /// The verdict on the tuples if there are any, otherwise on the graphs.
    #[must_use]
    pub fn verdict(&self) -> &Verdict {
        self.tuples.as_ref().unwrap_or(&self.graphs)
    }
}

/// The color class of every tuple of every graph of a run; classes are comparable across the graphs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coloring {
    pub(crate) tuple_index: TupleIndex,
    pub(crate) partition: Partition,
    pub(crate) rounds: usize,
    pub(crate) stable: bool,
}

impl Coloring {
    /// Rounds that split a class. After them the partition is stable, unless they were limited.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.rounds
    }

    /// Whether the coloring is stable under refinement.
    #[must_use]
    pub fn is_stable(&self) -> bool {
        self.stable
    }

    /// Number of tuples of all graphs.
    #[must_use]
    pub fn n_tuples(&self) -> usize {
        self.tuple_index.len()
    }

    /// Number of classes.
    #[must_use]
    pub fn n_classes(&self) -> usize {
        self.partition.n_classes()
    }

    /// The class of the `k`-tuple `nodes` of graph `graph` (0 or 1).
    ///
    /// # Panics
    /// When there is no such graph or node, or not `k` of them.
    #[must_use]
    pub fn class(&self, graph: usize, nodes: &[NodeId]) -> u32 {
        assert_eq!(nodes.len(), self.tuple_index.k, "a k-tuple");
        self.partition.colors[self.tuple_index.number(graph, nodes)]
    }

    /// The class of each node of graph `graph`: for `k ≥ 2` that of the tuple `(v, …, v)`.
    ///
    /// # Panics
    /// When there is no such graph.
    #[must_use]
    pub fn node_classes(&self, graph: usize) -> Vec<u32> {
        let n_nodes = self.tuple_index.n_nodes_of(graph);
        let class = |node: NodeId| self.class(graph, &vec![node; self.tuple_index.k]);
        (0..n_nodes).filter_map(NodeId::from_index).map(class).collect()
    }

    /// All classes of graph `graph`, tuples in lexicographic order.
    ///
    /// # Panics
    /// When there is no such graph.
    #[must_use]
    pub fn classes(&self, graph: usize) -> &[u32] {
        &self.partition.colors[self.tuple_index.first_of(graph)..][..self.tuple_index.len_of(graph)]
    }
}
