//! What a run found.

use crate::event::NodeId;
use crate::wl::joint::Numbering;
use crate::wl::refine::Partition;
use crate::wl::witness::Witness;

/// Told apart or not, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The first round in which they differ, 0 for the initial colours; `None` when they never do.
    pub round: Option<usize>,
    /// What makes the difference; there whenever there is a round.
    pub witness: Option<Witness>,
}

impl Verdict {
    /// Whether they are told apart.
    #[must_use]
    pub fn separated(&self) -> bool {
        self.round.is_some()
    }
}

/// The outcome of a run on two graphs.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Whether the multisets of colours differ.
    pub graphs: Verdict,
    /// Whether the two tuples differ, if two were given.
    pub tuples: Option<Verdict>,
    /// The last colouring.
    pub coloring: Coloring,
}

impl Comparison {
    /// The answer to what was asked: of the tuples if there were any, otherwise of the graphs.
    #[must_use]
    pub fn verdict(&self) -> &Verdict {
        self.tuples.as_ref().unwrap_or(&self.graphs)
    }
}

/// A class for every tuple of every graph of a run. Equal classes mean equal colours, in all graphs of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coloring {
    pub(crate) numbering: Numbering,
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

    /// Whether another round would change nothing.
    #[must_use]
    pub fn is_stable(&self) -> bool {
        self.stable
    }

    /// Number of tuples of all graphs.
    #[must_use]
    pub fn n_tuples(&self) -> usize {
        self.numbering.len()
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
        assert_eq!(nodes.len(), self.numbering.k, "a k-tuple");
        self.partition.colours[self.numbering.number(graph, nodes)]
    }

    /// The class of each node of graph `graph`: for `k ≥ 2` that of the tuple `(v, …, v)`.
    ///
    /// # Panics
    /// When there is no such graph.
    #[must_use]
    pub fn node_classes(&self, graph: usize) -> Vec<u32> {
        let n_nodes = self.numbering.n_nodes_of(graph);
        let class = |node: NodeId| self.class(graph, &vec![node; self.numbering.k]);
        (0..n_nodes).filter_map(NodeId::from_index).map(class).collect()
    }

    /// All classes of graph `graph`, tuples in lexicographic order.
    ///
    /// # Panics
    /// When there is no such graph.
    #[must_use]
    pub fn classes(&self, graph: usize) -> &[u32] {
        &self.partition.colours[self.numbering.first_of(graph)..][..self.numbering.len_of(graph)]
    }
}
