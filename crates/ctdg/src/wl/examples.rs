//! Built-in example graphs and the verdict of each `k`.
//!
//! The paper's two figures are reconstructed from caption and proof: every fact stated there holds for the graphs here,
//! and a test checks each.

mod shapes;
mod table;

pub use table::{Row, Table, table};

use crate::error::Result;
use crate::event::{EventStream, IdKind, NodeId, StreamBuilder};
use shapes::{
    Edges, FOUR_PAIRS, LATIN, cfi, chang, complete_bipartite, complete_graph, cube, hexagon, latin, rook, shrikhande,
    triangles_in_a_row, triangular, two_triangles,
};

/// Two graphs, or two tuples, to compare.
#[derive(Debug, Clone)]
pub struct Example {
    /// Its name.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// The first graph.
    pub a: EventStream,
    /// The second graph; the first again where two tuples of one graph are compared.
    pub b: EventStream,
    /// The query time, if the example has one.
    pub until: Option<f64>,
    /// The tuples to compare; the graphs if `None`.
    pub tuples: Option<[Vec<NodeId>; 2]>,
}

impl Example {
    /// The tuples as text, `A,C=A,D`.
    #[must_use]
    pub fn tuple_argument(&self) -> Option<String> {
        let [s, t] = self.tuples.as_ref()?;
        let text = |stream: &EventStream, tuple: &[NodeId]| {
            tuple.iter().map(|&node| stream.names().name(node)).collect::<Vec<_>>().join(",")
        };
        Some(format!("{}={}", text(&self.a, s), text(&self.b, t)))
    }
}

/// All examples, in the order of the table.
pub fn all() -> Result<Vec<Example>> {
    let k33 = complete_bipartite(3, 3);
    let (cfi33, cfi33_twisted) = (cfi(&k33, false), cfi(&k33, true));
    let k5 = complete_graph(5);
    Ok(vec![
        figure_1()?,
        proof_figure()?,
        Example {
            name: "rings",
            about: "the proof's times around two rings of four, and around one of eight",
            a: named(&[
                ("a", "b", 1),
                ("e", "f", 1),
                ("b", "c", 2),
                ("f", "g", 2),
                ("c", "d", 3),
                ("g", "h", 3),
                ("d", "a", 4),
                ("h", "e", 4),
            ])?,
            b: ring_of_eight()?,
            until: Some(5.0),
            tuples: None,
        },
        Example {
            name: "square-order",
            about: "one square, times 1 2 1 2 or 1 1 2 2 around it",
            a: named(&[("a", "b", 1), ("c", "d", 1), ("b", "c", 2), ("d", "a", 2)])?,
            b: named(&[("a", "b", 1), ("b", "c", 1), ("c", "d", 2), ("d", "a", 2)])?,
            until: None,
            tuples: None,
        },
        at_once("triangles", "two triangles, and a hexagon", &two_triangles(), &hexagon())?,
        ordered(
            "triangles-order",
            "all pairs of six meet; first those of two triangles, or of a hexagon",
            &two_triangles(),
            &hexagon(),
        )?,
        at_once("rook", "the 4×4 rook's graph, and the Shrikhande graph", &rook(), &shrikhande())?,
        ordered(
            "rook-order",
            "all pairs of 16 meet; first those of the rook's graph, or of the Shrikhande graph",
            &rook(),
            &shrikhande(),
        )?,
        at_once("latin", "the graphs of two Latin squares of order five", &latin(&LATIN[0]), &latin(&LATIN[1]))?,
        ordered(
            "latin-order",
            "all pairs of 25 meet; first those of either graph of latin",
            &latin(&LATIN[0]),
            &latin(&LATIN[1]),
        )?,
        at_once("chang", "the pairs of eight things, and one of Chang's graphs", &triangular(), &chang(&FOUR_PAIRS))?,
        at_once("cfi-k33", "Cai-Fürer-Immerman over K₃,₃, and with one edge twisted", &cfi33, &cfi33_twisted)?,
        ordered(
            "cfi-k33-order",
            "all pairs of 24 meet; first those of either graph of cfi-k33",
            &cfi33,
            &cfi33_twisted,
        )?,
        at_once(
            "cfi-triangles",
            "Cai-Fürer-Immerman over three triangles in a row, and with one edge twisted",
            &cfi(&triangles_in_a_row(), false),
            &cfi(&triangles_in_a_row(), true),
        )?,
        at_once(
            "cfi-cube",
            "Cai-Fürer-Immerman over the cube, and with one edge twisted",
            &cfi(&cube(), false),
            &cfi(&cube(), true),
        )?,
        at_once("cfi-k5", "Cai-Fürer-Immerman over K₅, and with one edge twisted", &cfi(&k5, false), &cfi(&k5, true))?,
    ])
}

/// Figure 1: `A` and `C` have the common neighbor `B`, at times 1 and 2; `A` and `D` have none; `C` and `D` mirror each
/// other. The query time is 4.
///
/// ```text
/// A --1-- B --2-- C --3-- D --2-- E --1-- F
/// ```
fn figure_1() -> Result<Example> {
    let path = named(&[("A", "B", 1), ("E", "F", 1), ("B", "C", 2), ("D", "E", 2), ("C", "D", 3)])?;
    let tuples = Some([[0, 2], [0, 3]].map(|tuple| tuple.map(NodeId).to_vec()));
    let about = "the paper's Figure 1: (A, C) with B in common, (A, D) with no node";
    Ok(Example { name: "figure-1", about, a: path.clone(), b: path, until: Some(4.0), tuples })
}

/// The figure of the proof of Proposition 3: `b` interacts with `a` and `c` at times 1 and 2, `h` with `g` and `a` at times 3
/// and 4; `c` is equivalent to `g`. The query time is 5.
fn proof_figure() -> Result<Example> {
    let ring = ring_of_eight()?;
    let tuples = Some([[0, 2], [0, 6]].map(|tuple| tuple.map(NodeId).to_vec()));
    let about = "the figure of the paper's proof on MITE: (a, c) met b at 1, 2; (a, g) met h at 4, 3";
    Ok(Example { name: "proof-figure", about, a: ring.clone(), b: ring, until: Some(5.0), tuples })
}

/// ```text
/// a --1-- b --2-- c --3-- d
/// |                       |
/// 4                       4
/// |                       |
/// h --3-- g --2-- f --1-- e
/// ```
fn ring_of_eight() -> Result<EventStream> {
    named(&[
        ("a", "b", 1),
        ("e", "f", 1),
        ("b", "c", 2),
        ("f", "g", 2),
        ("c", "d", 3),
        ("g", "h", 3),
        ("d", "e", 4),
        ("h", "a", 4),
    ])
}

/// All edges at one time.
fn at_once(name: &'static str, about: &'static str, a: &Edges, b: &Edges) -> Result<Example> {
    let read = |edges: &Edges| EventStream::from_events(edges.pairs.iter().map(|&(u, v)| (u, v, 1.0)));
    Ok(Example { name, about, a: read(a)?, b: read(b)?, until: None, tuples: None })
}

/// All pairs of nodes interact once in either graph: the edges at time 1, the others at time 2. Without times both are the
/// same complete graph.
fn ordered(name: &'static str, about: &'static str, a: &Edges, b: &Edges) -> Result<Example> {
    let read = |edges: &Edges| {
        let first = edges.pairs.iter().map(|&(u, v)| (u, v, 1.0));
        let pairs = (0..edges.n_nodes).flat_map(|v| (0..v).map(move |u| (u, v)));
        let second = pairs.filter(|pair| !edges.pairs.contains(pair)).map(|(u, v)| (u, v, 2.0));
        EventStream::from_events(first.chain(second))
    };
    Ok(Example { name, about, a: read(a)?, b: read(b)?, until: None, tuples: None })
}

fn named(events: &[(&str, &str, u32)]) -> Result<EventStream> {
    let mut builder = StreamBuilder::new(IdKind::Text, false, false);
    for (u, v, time) in events {
        builder.push(u.as_bytes(), v.as_bytes(), f64::from(*time), 0.0).map_err(|rejected| *rejected.problem)?;
    }
    builder.finish(None)
}

/// A stream of `n_events` events between uniformly random nodes of `n_nodes`, at times 0, 1, 2, …, for benchmarks.
pub fn random(n_nodes: u32, n_events: u32, seed: u64) -> Result<EventStream> {
    let mut state = seed;
    let mut draw = || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^= word >> 31;
        u32::try_from((u64::from(n_nodes) * (word >> 32)) >> 32).unwrap_or(u32::MAX)
    };
    EventStream::from_events((0..n_events).map(|event| (draw(), draw(), f64::from(event))))
}

#[cfg(test)]
mod tests;
