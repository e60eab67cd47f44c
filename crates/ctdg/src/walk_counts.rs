//! Temporal walk counts between nodes: the positional features of PINT.
//!
//! `r[i, j]` counts the time-respecting walks from `i` to `j` by their length 0 to 3. Initially `r[i, i] = (1, 0, 0, 0)` and
//! all else is zero. An event `(u, v)` extends every walk to `u` by a step to `v` and vice versa: for every `i`,
//! `r[i, v] += shift(r[i, u])` and `r[i, u] += shift(r[i, v])` with old values on the right, where `shift` moves each entry
//! one length up and drops the last. For a self-loop both are the same, `r[i, u] += shift(r[i, u])`, and happen once
//! ([`SelfLoops`]).
//!
//! # Storage
//! - Length 0 is constant (1 for `i = j`, else 0) and not stored.
//! - Each other length is a layer of columns: column `j` of a layer holds the entries of `r[i, j]` for all `i`. An event adds
//!   column `u` of each layer to column `v` of the next and vice versa. Layers are updated from the longest walks to the
//!   shortest, so each column is read before it is written and no old values are copied.
//! - A column is sparse, or a dense window of ids where that takes about as little memory.
//!
//! # Difference from the original
//! PINT's code keeps for each node `u` a set `V[u]` (initially `u`; after an event both nodes get the union) and updates only
//! `i` in `V[u]`. The result is the same: `r[i, u] ≠ 0` implies `i ∈ V[u]`, by induction over events, so an `i` outside of
//! `V[u]` has a zero vector and adding `shift(0)` changes nothing.

mod column;

use crate::event::NodeId;
use column::Column;

/// How often a self-loop counts: as a step of the walks that reach its node, or as an interval of its node in MITE.
///
/// ```
/// use ctdg::event::NodeId;
/// use ctdg::walk_counts::{SelfLoops, WalkCounts};
///
/// let after_two = |self_loops| {
///     let mut counts = WalkCounts::new(1).with_self_loops(self_loops);
///     counts.advance(NodeId(0), NodeId(0));
///     counts.advance(NodeId(0), NodeId(0));
///     counts.get(NodeId(0), NodeId(0))
/// };
/// assert_eq!(after_two(SelfLoops::Once), [1.0, 2.0, 1.0, 0.0]);
/// assert_eq!(after_two(SelfLoops::Twice), [1.0, 4.0, 4.0, 0.0]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SelfLoops {
    /// Once, as in PINT's code and in the paper's adjacency tensor.
    #[default]
    Once,
    /// Once for each of its two ends, as the event occurs twice in its node's history.
    Twice,
}

/// Walk counts of all pairs of nodes; see the [module](self).
///
/// Counts are integers as `f32`: exact up to 2²⁴ and rounded beyond. An event takes time linear in the nodes with a walk to
/// either endpoint; memory is at most quadratic in the number of nodes ([`WalkCounts::bytes`]).
///
/// ```
/// use ctdg::event::NodeId;
/// use ctdg::walk_counts::WalkCounts;
///
/// let mut counts = WalkCounts::new(3);
/// counts.advance(NodeId(0), NodeId(1));
/// counts.advance(NodeId(1), NodeId(2));
/// assert_eq!(counts.get(NodeId(0), NodeId(2)), [0.0, 0.0, 1.0, 0.0], "one walk of length 2, via node 1");
/// assert_eq!(counts.get(NodeId(2), NodeId(0)), [0.0; 4], "times along that walk would descend");
/// ```
#[derive(Debug, Clone)]
pub struct WalkCounts {
    /// Walks of length 1, 2 and 3: one column per end node.
    layers: [Vec<Column>; 3],
    self_loops: SelfLoops,
}

impl WalkCounts {
    /// Counts before the first event, for nodes `0..n_nodes`.
    #[must_use]
    pub fn new(n_nodes: usize) -> Self {
        Self { layers: [(); 3].map(|()| vec![Column::default(); n_nodes]), self_loops: SelfLoops::default() }
    }

    /// The same with another rule for self-loops.
    #[must_use]
    pub fn with_self_loops(self, self_loops: SelfLoops) -> Self {
        Self { self_loops, ..self }
    }

    /// Number of nodes.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.layers[0].len()
    }

    /// Adds nodes, up to `n_nodes` of them.
    pub fn grow(&mut self, n_nodes: usize) {
        for layer in &mut self.layers {
            layer.resize(n_nodes.max(layer.len()), Column::default());
        }
    }

    /// Updates the counts with the next event.
    ///
    /// # Panics
    /// When a node is not below `n_nodes`.
    pub fn advance(&mut self, src: NodeId, dst: NodeId) {
        let [ones, twos, threes] = &mut self.layers;
        let both = [(src, dst), (dst, src)];
        let steps = if src == dst && self.self_loops == SelfLoops::Once { &both[..1] } else { &both };
        for (from, to) in steps {
            threes[to.index()].add(&twos[from.index()]);
        }
        for (from, to) in steps {
            twos[to.index()].add(&ones[from.index()]);
        }
        for (from, to) in steps {
            ones[to.index()].increment(from.0);
        }
    }

    /// `r[i, j]`: the number of walks of length 0, 1, 2 and 3 from `i` to `j`. Nodes beyond `n_nodes` have no walks.
    #[must_use]
    #[inline]
    pub fn get(&self, i: NodeId, j: NodeId) -> [f32; 4] {
        let [one, two, three] =
            [0, 1, 2].map(|layer| self.layers[layer].get(j.index()).map_or(0.0, |column: &Column| column.get(i.0)));
        [f32::from(u8::from(i == j)), one, two, three]
    }

    /// Resets to the state before the first event.
    pub fn reset(&mut self) {
        self.layers.iter_mut().flatten().for_each(|column| *column = Column::default());
    }

    /// Bytes of all columns.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.layers.iter().flatten().map(|column| size_of::<Column>() + column.bytes()).sum()
    }
}
