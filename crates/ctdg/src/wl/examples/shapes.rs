//! Edge sets of well-known hard cases for color refinement.

/// An undirected graph without self-loops; each pair occurs once, smaller node first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edges {
    pub(super) n_nodes: u32,
    pub(super) pairs: Vec<(u32, u32)>,
}

impl Edges {
    /// The graph in which `u < v` are joined when `joined(u, v)`.
    fn new(n_nodes: u32, joined: impl Fn(u32, u32) -> bool) -> Self {
        let pairs = (0..n_nodes).flat_map(|v| (0..v).map(move |u| (u, v))).filter(|&(u, v)| joined(u, v));
        Self { n_nodes, pairs: pairs.collect() }
    }
}

pub(super) fn two_triangles() -> Edges {
    Edges::new(6, |u, v| u / 3 == v / 3)
}

pub(super) fn hexagon() -> Edges {
    Edges::new(6, |u, v| v - u == 1 || v - u == 5)
}

pub(super) fn complete_graph(n_nodes: u32) -> Edges {
    Edges::new(n_nodes, |_, _| true)
}

pub(super) fn complete_bipartite(left: u32, right: u32) -> Edges {
    Edges::new(left + right, |u, v| u < left && left <= v)
}

/// Squares of a 4×4 board, joined when a rook moves from one to the other.
pub(super) fn rook() -> Edges {
    Edges::new(16, |u, v| u / 4 == v / 4 || u % 4 == v % 4)
}

/// The group ℤ₄ × ℤ₄, joined when the difference is ±(0, 1), ±(1, 0) or ±(1, 1).
pub(super) fn shrikhande() -> Edges {
    Edges::new(16, |u, v| {
        let difference = ((v / 4 + 4 - u / 4) % 4, (v % 4 + 4 - u % 4) % 4);
        matches!(difference, (0, 1 | 3) | (1 | 3, 0) | (1, 1) | (3, 3))
    })
}

/// Latin squares of order five that no exchange of rows, columns and symbols turns into each other: addition modulo 5, and
/// another.
pub(super) const LATIN: [[[u32; 5]; 5]; 2] = [
    [[0, 1, 2, 3, 4], [1, 2, 3, 4, 0], [2, 3, 4, 0, 1], [3, 4, 0, 1, 2], [4, 0, 1, 2, 3]],
    [[0, 1, 2, 3, 4], [1, 0, 3, 4, 2], [2, 3, 4, 0, 1], [3, 4, 1, 2, 0], [4, 2, 0, 1, 3]],
];

/// Cells of a Latin square, joined when they share row, column or symbol.
pub(super) fn latin(square: &[[u32; 5]; 5]) -> Edges {
    let symbol = |cell: u32| square[(cell / 5) as usize][(cell % 5) as usize];
    Edges::new(25, |u, v| u / 5 == v / 5 || u % 5 == v % 5 || symbol(u) == symbol(v))
}

/// The pairs of eight things, joined when they share one.
pub(super) fn triangular() -> Edges {
    chang(&[])
}

/// [`triangular`], switched: pairs in `switched` and pairs outside it are joined when they were not.
pub(super) fn chang(switched: &[(u32, u32)]) -> Edges {
    let things = complete_graph(8).pairs;
    let share = |(a, b): (u32, u32), (c, d): (u32, u32)| a == c || a == d || b == c || b == d;
    Edges::new(28, |u, v| {
        let [u, v] = [u, v].map(|pair| things[pair as usize]);
        share(u, v) != (switched.contains(&u) != switched.contains(&v))
    })
}

/// Four disjoint pairs of eight things: switching by them gives one of Chang's three graphs.
pub(super) const FOUR_PAIRS: [(u32, u32); 4] = [(0, 1), (2, 3), (4, 5), (6, 7)];

/// Three triangles in a row, each joined to the next: treewidth 2, and no two nodes are on all cycles.
pub(super) fn triangles_in_a_row() -> Edges {
    Edges::new(9, |u, v| u / 3 == v / 3 || (v == u + 1 && u % 3 == 2))
}

/// Corners of a cube, joined by its edges: treewidth 3, and no two nodes are on all cycles.
pub(super) fn cube() -> Edges {
    Edges::new(8, |u, v| (u ^ v).is_power_of_two())
}

/// The construction of Cai, Fürer and Immerman in its small form: a node for every base node and even set of its edges;
/// nodes of adjacent base nodes are joined when both sets hold the edge between them or neither does. `twisted`: for the
/// first edge, when exactly one of them does.
pub(super) fn cfi(base: &Edges, twisted: bool) -> Edges {
    let mut nodes: Vec<(u32, u32)> = Vec::new();
    for base_node in 0..base.n_nodes {
        let incident = (0u32..).zip(&base.pairs).filter(|(_, pair)| pair.0 == base_node || pair.1 == base_node);
        let own = incident.fold(0, |set, (edge, _)| set | 1 << edge);
        let even = (0..1u32 << base.pairs.len()).filter(|set| set & !own == 0 && set.count_ones() % 2 == 0);
        nodes.extend(even.map(|set| (base_node, set)));
    }
    let n_nodes = u32::try_from(nodes.len()).expect("a small base graph");
    Edges::new(n_nodes, |u, v| {
        let ((first, left), (second, right)) = (nodes[u as usize], nodes[v as usize]);
        let edge = base.pairs.iter().position(|&pair| pair == (first.min(second), first.max(second)));
        edge.is_some_and(|edge| (left >> edge & 1 == right >> edge & 1) != (twisted && edge == 0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(edges: &Edges, u: u32, v: u32) -> bool {
        edges.pairs.contains(&(u.min(v), u.max(v)))
    }

    fn common(edges: &Edges, u: u32, v: u32) -> usize {
        (0..edges.n_nodes).filter(|&w| joined(edges, u, w) && joined(edges, v, w)).count()
    }

    #[test]
    fn rook_and_shrikhande_are_strongly_regular_with_the_same_numbers() {
        for edges in [rook(), shrikhande()] {
            for v in 0..16 {
                assert_eq!(common(&edges, v, v), 6, "six neighbors");
                assert!((0..v).all(|u| common(&edges, u, v) == 2), "any two have two in common");
            }
        }
    }

    #[test]
    fn further_graphs_are_strongly_regular_with_the_same_numbers() {
        let check = |edges: &Edges, numbers: [usize; 3]| {
            for v in 0..edges.n_nodes {
                assert_eq!(common(edges, v, v), numbers[0], "neighbors");
                assert!((0..v).all(|u| common(edges, u, v) == numbers[if joined(edges, u, v) { 1 } else { 2 }]));
            }
        };
        for square in &LATIN {
            let is_latin = |line: &dyn Fn(usize, usize) -> u32| {
                (0..5).all(|i| (0..5).all(|symbol| (0..5).any(|j| line(i, j) == symbol)))
            };
            assert!(is_latin(&|i, j| square[i][j]) && is_latin(&|i, j| square[j][i]));
            check(&latin(square), [12, 5, 6]);
        }
        for edges in [triangular(), chang(&FOUR_PAIRS)] {
            check(&edges, [12, 6, 4]);
        }
    }

    #[test]
    fn no_two_nodes_are_on_all_cycles_of_the_bases() {
        for base in [triangles_in_a_row(), cube()] {
            for (u, v) in (0..base.n_nodes).flat_map(|v| (0..=v).map(move |u| (u, v))) {
                // A forest has fewer edges than nodes in every part: leaves are taken off until none is left.
                let mut rest: Vec<(u32, u32)> = base.pairs.clone();
                rest.retain(|&(a, b)| ![a, b].iter().any(|node| [u, v].contains(node)));
                loop {
                    let degree = |node: u32| rest.iter().filter(|&&(a, b)| a == node || b == node).count();
                    let leaves: Vec<u32> = (0..base.n_nodes).filter(|&node| degree(node) == 1).collect();
                    if leaves.is_empty() {
                        break;
                    }
                    rest.retain(|(a, b)| !leaves.contains(a) && !leaves.contains(b));
                }
                assert!(!rest.is_empty(), "a cycle without {u} and {v}");
            }
        }
    }

    #[test]
    fn twisting_keeps_all_degrees() {
        let base = complete_bipartite(3, 3);
        for twisted in [false, true] {
            let edges = cfi(&base, twisted);
            assert_eq!(edges.n_nodes, 6 * 4);
            assert!((0..24).all(|node| common(&edges, node, node) == 6));
        }
        assert_eq!(cfi(&complete_graph(5), true).n_nodes, 5 * 8);
    }

    #[test]
    fn over_a_triangle_the_construction_gives_hexagon_and_triangles() {
        let base = complete_graph(3);
        let sizes = [false, true].map(|twisted| {
            let edges = cfi(&base, twisted);
            (edges.n_nodes, edges.pairs.len(), edges.pairs.iter().filter(|&&(u, v)| common(&edges, u, v) == 1).count())
        });
        assert_eq!(sizes, [(6, 6, 6), (6, 6, 0)], "every edge in a triangle, then none");
    }
}
