//! PINT's positional state: for each ordered pair of nodes, how many walks of each length lead from one to the other.
//!
//! `r[i, j]` counts walks from `i` to `j` along events in the order in which they happened, by their length 0 to 3. At the
//! start `r[i, i] = (1, 0, 0, 0)` and all else is zero. An event `(u, v)` makes every walk to `u` also one to `v` that is a
//! step longer, and the other way round: for every `i`, `r[i, v] += shift(r[i, u])` and `r[i, u] += shift(r[i, v])` with old
//! values on the right, where `shift` moves each entry one place later and drops the last. A self-loop is both at once:
//! it adds `shift(r[i, u])` twice, as it stands twice in a node's history.
//!
//! # What is stored
//! - Entry 0 never changes: `shift` writes nothing there. It is 1 for `i = j` and else 0, and takes no memory.
//! - Each other length is a layer of its own, held as columns: column `j` of a layer has the entry of `r[i, j]` for each
//!   `i`. An event adds column `u` of each layer to column `v` of the next and the reverse. From the longest walks to the
//!   shortest, each source is read before it is written, so that nothing is ever copied to keep old values.
//! - A column holds only what is not zero, or a window of ids where that takes about as little. In a graph with two
//!   kinds of nodes each layer knows only one kind in each column.
//!
//! # Why there are no reach sets
//! The original keeps for each node `u` a set `V[u]` (at first `u` itself; after an event both nodes have the union), and
//! updates only `i` in `V[u]`. That changes nothing: `r[i, u] ≠ 0` implies `i ∈ V[u]`. It holds at the start; and `r[i, v]`
//! can become non-zero only by an event `(u, v)` with `r[i, u] ≠ 0` before it, hence `i ∈ V[u]`, and that is part of the new
//! `V[v]`. So an `i` outside of `V[u]` has a zero vector, and adding `shift(0)` is adding nothing.

mod column;

use crate::event::NodeId;
use column::Column;

/// The counts of all pairs of nodes; see the [module](self).
///
/// Counts are whole numbers as `f32`: exact up to 2²⁴ and rounded beyond.
///
/// ```
/// use ctdg::event::NodeId;
/// use ctdg::walk_counts::WalkCounts;
///
/// let mut positions = WalkCounts::new(3);
/// positions.advance(NodeId(0), NodeId(1));
/// positions.advance(NodeId(1), NodeId(2));
/// assert_eq!(positions.get(NodeId(0), NodeId(2)), [0.0, 0.0, 1.0, 0.0], "by way of 1");
/// assert_eq!(positions.get(NodeId(2), NodeId(0)), [0.0; 4], "2 came too late for that");
/// ```
#[derive(Debug, Clone)]
pub struct WalkCounts {
    /// Walks of length 1, 2 and 3: one column for each node that they lead to.
    layers: [Vec<Column>; 3],
}

impl WalkCounts {
    /// Before the first event, for nodes `0..n_nodes`.
    #[must_use]
    pub fn new(n_nodes: usize) -> Self {
        Self { layers: [(); 3].map(|()| vec![Column::default(); n_nodes]) }
    }

    /// Number of nodes.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.layers[0].len()
    }

    /// Takes in the next event.
    ///
    /// # Panics
    /// When a node is beyond the number of nodes.
    pub fn advance(&mut self, src: NodeId, dst: NodeId) {
        let [ones, twos, threes] = &mut self.layers;
        for (from, to) in [(src, dst), (dst, src)] {
            threes[to.index()].add(&twos[from.index()]);
        }
        for (from, to) in [(src, dst), (dst, src)] {
            twos[to.index()].add(&ones[from.index()]);
        }
        for (from, to) in [(src, dst), (dst, src)] {
            ones[to.index()].increment(from.0);
        }
    }

    /// `r[i, j]`: the number of walks of length 0, 1, 2 and 3 from `i` to `j`. A node beyond the number of nodes has met
    /// nobody.
    #[must_use]
    #[inline]
    pub fn get(&self, i: NodeId, j: NodeId) -> [f32; 4] {
        let [one, two, three] =
            [0, 1, 2].map(|layer| self.layers[layer].get(j.index()).map_or(0.0, |column: &Column| column.get(i.0)));
        [f32::from(u8::from(i == j)), one, two, three]
    }

    /// Forgets all events.
    pub fn reset(&mut self) {
        self.layers.iter_mut().flatten().for_each(|column| *column = Column::default());
    }

    /// Bytes of all columns.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.layers.iter().flatten().map(|column| size_of::<Column>() + column.bytes()).sum()
    }
}
