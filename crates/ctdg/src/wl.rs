//! k-dimensional dynamic Weisfeiler-Lehman tests (k-DWL), k = 1, 2, 3, 4.
//!
//! A test colors the `k`-tuples of nodes of a dynamic graph and refines the colors round by round until they are stable.
//! If two graphs have different multisets of colors in any round, they are not isomorphic until `t`. `docs/src/dwl.md`
//! explains the tests at length.
//!
//! # Complexity
//! With `n` nodes: time `O(n^(k+1))` per round, memory `O(n^k)`, about 80 bytes per tuple (1-DWL: time and memory linear in
//! the number of node pairs with events; marked DWL: time `O(n²)` times that of 1-DWL, memory `O(n³)`). [`Dwl::estimate`] predicts both; [`Dwl::max_memory`] limits the memory.
//!
//! | to | use |
//! |---|---|
//! | turn a stream into a graph until `t` | [`Graph`], [`GraphOptions`] |
//! | compare two graphs or two tuples | [`Dwl::compare`], [`Dwl::compare_tuples`] |
//! | color one graph, or several | [`Dwl::color`], [`Dwl::color_all`] |
//! | color pairs with both nodes marked, beyond 2-DWL | [`Dwl::marked`] |
//! | explain a difference | [`Witness`] |
//! | decide isomorphism of small graphs | [`isomorphism`] |
//! | draw both graphs | [`svg::draw`] |
//! | compare the power of each `k` | [`examples`] |
//!
//! # Differences from the paper
//! - The paper's equation of 1-DWL pairs the color of `w` with the sequence of `v`; here both belong to one neighbor.
//! - In the paper a neighbor occurs once per interaction; here once, with its whole sequence of times. The sequence
//!   determines the multiplicity, so the partitions are the same.
//! - With constant initial colors, as in Proposition 1, a tuple does not know which of its own nodes are equal: if `u` and
//!   `u'` have the same sequence with every node, `(u, u)` and `(u, u')` keep one color for every `k`. That is kept;
//!   [`Initial::Types`] starts from isomorphism types instead, as the appendix does for static graphs.
//! - As written, 1-DWL cannot distinguish a self-loop from an interaction with an equivalent node. Kept; `k ≥ 2` can.
//! - Tuples are isomorphic when their nodes correspond position by position; the paper also treats tuples as sets.
//! - The paper does not define directed interactions; with [`Direction::Directed`] a node sees both sequences.
//! - For `k = 1` the appendix' k-FWL and k-OWL use no edges if taken literally. Both are 1-WL here, as its remark on 1-OWL
//!   implies.

mod budget;
mod dwl;
pub mod examples;
mod graph;
mod initial;
mod intern;
mod isomorphism;
mod joint;
mod judge;
mod marked;
mod refine;
mod rule;
pub mod svg;
mod verdict;
mod witness;

pub use budget::{Bytes, DEFAULT_MAX_MEMORY, Estimate};
pub use dwl::{Dimension, Dwl, Round, Variant};
pub use graph::{Direction, Graph, GraphOptions, Labels, Sequence, Times};
pub use initial::Initial;
pub use isomorphism::{MAX_NODES, Mapping, isomorphism, tuple_isomorphism};
pub use marked::Reach;
pub use refine::Interning;
pub use verdict::{Coloring, Comparison, Verdict};
pub use witness::{Cause, ClassCount, Contrast, Term, Witness};

/// Largest dimension offered.
pub const MAX_K: usize = 4;
