//! Exact isomorphism until `t`, for small graphs.
//!
//! Individualization-refinement: color the nodes by 1-DWL, match one node of the smallest non-trivial class with every
//! candidate in turn, refine, recurse. When all classes are single, the mapping is verified pair by pair, so
//! "isomorphic" is proved by the mapping and "not isomorphic" by exhaustive search.

use crate::error::{Problem, Result};
use crate::event::NodeId;
use crate::wl::graph::Graph;
use crate::wl::initial::{Initial, initial};
use crate::wl::joint::{Joint, RunGraph, TupleIndex};
use crate::wl::refine::{Interning, Partition, refine};
use crate::wl::rule::Neighbors;

/// Most nodes of a graph for [`isomorphism`].
pub const MAX_NODES: usize = 64;

/// Candidates tried before the search gives up. Graphs that are hard for color refinement, such as the
/// Cai-Fürer-Immerman examples here, need some hundreds.
const MAX_STEPS: u64 = 1_000_000;

/// A node of the second graph for each node of the first, in order.
pub type Mapping = Vec<NodeId>;

/// A mapping of the nodes of `a` onto those of `b` that keeps every interaction sequence and label, if there is one.
///
/// Graphs have at most [`MAX_NODES`] nodes. The worst case is exponential; a search that does not end within a million
/// steps is an error, never a guess.
///
/// ```
/// use ctdg::event::{EventStream, NodeId};
/// use ctdg::wl::{Graph, GraphOptions, isomorphism};
///
/// let read = |events: [(u32, u32, f64); 2]| Graph::new(&EventStream::from_events(events)?, &GraphOptions::default());
/// let (a, b) = (read([(0, 1, 1.0), (1, 2, 2.0)])?, read([(2, 0, 1.0), (0, 1, 2.0)])?);
/// assert_eq!(isomorphism(&a, &b)?, Some(vec![NodeId(2), NodeId(0), NodeId(1)]));
/// # Ok::<(), ctdg::Error>(())
/// ```
pub fn isomorphism(a: &Graph, b: &Graph) -> Result<Option<Mapping>> {
    tuple_isomorphism((a, &[]), (b, &[]))
}

/// [`isomorphism`] that maps the nodes of `s` to those of `t`, position by position.
#[expect(clippy::many_single_char_names, reason = "graphs a and b, tuples s and t, n nodes")]
pub fn tuple_isomorphism((a, s): (&Graph, &[NodeId]), (b, t): (&Graph, &[NodeId])) -> Result<Option<Mapping>> {
    for (graph, tuple) in [(a, s), (b, t)] {
        if graph.n_nodes() > MAX_NODES {
            return Err(Problem::Setting {
                name: "isomorphism",
                found: format!("{} nodes", graph.n_nodes()),
                expected: format!("at most {MAX_NODES}"),
            }
            .into());
        }
        if let Some(node) = tuple.iter().find(|node| node.index() >= graph.n_nodes()) {
            return Err(Problem::UnknownNode { name: node.0.to_string() }.into());
        }
    }
    let n = a.n_nodes();
    if n != b.n_nodes() || s.len() != t.len() {
        return Ok(None);
    }
    let joint = Joint::new(&[a, b])?;
    let matrices = [joint.graphs[0].matrix(), joint.graphs[1].matrix()];
    let mut search = Search { n, rule: Neighbors::new(&joint), graphs: &joint.graphs, matrices, steps: 0 };
    let mut start = initial(&joint, &TupleIndex::new(1, [n, n]), Initial::Types, Interning::Exact);
    for (u, v) in s.iter().zip(t) {
        if start.colors[u.index()] != start.colors[n + v.index()] {
            return Ok(None);
        }
        start = matched(&start, u.index(), n + v.index());
    }
    // Run inside the thread pool, for the many small parallel steps.
    let mapping = rayon::scope(|_| search.extend(&start))?;
    Ok(mapping.map(|images| images.into_iter().filter_map(NodeId::from_index).collect()))
}

struct Search<'a> {
    n: usize,
    rule: Neighbors,
    graphs: &'a [RunGraph<'a>],
    matrices: [Vec<u32>; 2],
    steps: u64,
}

impl Search<'_> {
    /// An isomorphism that preserves the classes of `partition`, if there is one.
    fn extend(&mut self, partition: &Partition) -> Result<Option<Vec<usize>>> {
        let stable = self.stable(partition);
        let (first, second) = stable.colors.split_at(self.n);
        let mut counts = vec![[0usize; 2]; stable.n_classes()];
        for (side, colors) in [first, second].into_iter().enumerate() {
            for &color in colors {
                counts[color as usize][side] += 1;
            }
        }
        if counts.iter().any(|[a, b]| a != b) {
            return Ok(None);
        }
        let open = |&u: &usize| counts[first[u] as usize][0] > 1;
        let Some(u) = (0..self.n).filter(open).min_by_key(|&u| counts[first[u] as usize][0]) else {
            let image = |color: &u32| second.iter().position(|other| other == color);
            let images: Option<Vec<usize>> = first.iter().map(image).collect();
            return Ok(images.filter(|images| self.is_isomorphism(images)));
        };
        for v in (0..self.n).filter(|&v| second[v] == first[u]) {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return Err(Problem::WlSearch { steps: MAX_STEPS }.into());
            }
            if let Some(mapping) = self.extend(&matched(&stable, u, self.n + v))? {
                return Ok(Some(mapping));
            }
        }
        Ok(None)
    }

    fn stable(&self, partition: &Partition) -> Partition {
        let mut current = partition.clone();
        loop {
            let next = refine(&self.rule, &current, Interning::Exact);
            if next.n_classes() == current.n_classes() {
                return current;
            }
            current = next;
        }
    }

    fn is_isomorphism(&self, images: &[usize]) -> bool {
        let n = self.n;
        let labels = (0..n).all(|u| self.graphs[0].labels[u] == self.graphs[1].labels[images[u]]);
        let pairs = || (0..n).flat_map(|u| (0..n).map(move |v| (u, v)));
        labels && pairs().all(|(u, v)| self.matrices[0][u * n + v] == self.matrices[1][images[u] * n + images[v]])
    }
}

/// The partition with `u` and `v` in a new class.
fn matched(partition: &Partition, u: usize, v: usize) -> Partition {
    let mut colors = partition.colors.clone();
    let own = u32::try_from(partition.n_classes()).expect("fewer classes than nodes");
    (colors[u], colors[v]) = (own, own);
    Partition::new(renumbered(colors))
}

/// The same classes, numbered in order of their first node.
fn renumbered(colors: Vec<u32>) -> Vec<u32> {
    let mut order: Vec<u32> = Vec::new();
    let mut number = |color: u32| {
        let index = order.iter().position(|&seen| seen == color).unwrap_or_else(|| {
            order.push(color);
            order.len() - 1
        });
        u32::try_from(index).expect("fewer classes than nodes")
    };
    colors.into_iter().map(&mut number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventStream;
    use crate::wl::graph::{Direction, GraphOptions, Labels};

    fn graph(events: &[(u32, u32, f64)], reading: &GraphOptions) -> Graph {
        Graph::new(&EventStream::from_events(events.iter().copied()).unwrap(), reading).unwrap()
    }

    #[test]
    fn ring_rotations_are_isomorphisms_of_matching_pairs() {
        // Times 1, 2 alternate around 0 - 1 - 2 - 3 - 0.
        let events = [(0, 1, 1.0), (2, 3, 1.0), (1, 2, 2.0), (3, 0, 2.0)];
        let ring = graph(&events, &GraphOptions::default());
        let nodes = |nodes: [u32; 2]| nodes.map(NodeId);
        let isomorphic = |s, t| tuple_isomorphism((&ring, &nodes(s)), (&ring, &nodes(t))).unwrap().is_some();
        assert!(isomorphic([0, 1], [3, 2]), "both interact at 1");
        assert!(!isomorphic([0, 1], [1, 2]), "at 1 and at 2");
        assert!(!isomorphic([0, 0], [0, 1]), "one node twice is not two nodes");
        assert!(isomorphic([0, 2], [1, 3]) && isomorphic([0, 2], [2, 0]));
    }

    #[test]
    fn direction_and_labels_are_respected() {
        let (out, back) = ([(0, 1, 1.0), (0, 2, 1.0)], [(1, 0, 1.0), (2, 0, 1.0)]);
        let reading = |direction| GraphOptions { direction, ..GraphOptions::default() };
        let isomorphic = |reading: &GraphOptions| isomorphism(&graph(&out, reading), &graph(&back, reading)).unwrap();
        assert!(isomorphic(&reading(Direction::Undirected)).is_some());
        assert!(isomorphic(&reading(Direction::Directed)).is_none());
        let labelled = |labels| graph(&out, &GraphOptions { labels: Labels::Given(labels), ..GraphOptions::default() });
        let found = isomorphism(&labelled(vec![0, 1, 2]), &labelled(vec![0, 2, 1])).unwrap();
        assert_eq!(found, Some([0, 2, 1].map(NodeId).to_vec()));
        assert_eq!(isomorphism(&labelled(vec![0, 1, 1]), &labelled(vec![0, 2, 1])).unwrap(), None);
    }

    #[test]
    fn large_graphs_are_refused() {
        let large = graph(&[(0, 64, 1.0)], &GraphOptions::default());
        assert!(isomorphism(&large, &large).unwrap_err().to_string().contains("at most 64"));
    }
}
