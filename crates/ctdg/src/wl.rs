//! The k-dimensional dynamic Weisfeiler-Lehman tests (k-DWL), k = 1, 2, 3, 4.
//!
//! A test colours the `k`-tuples of nodes of a dynamic graph and refines the colours by what the tuples see of each
//! other until nothing changes. If two graphs end (or ever stand) with different multisets of colours, they are not
//! isomorphic until `t`. `docs/dwl.md` says it at length.
//!
//! | to | use |
//! |---|---|
//! | read a stream until `t` | [`Graph`], [`GraphOptions`] |
//! | compare two graphs or two tuples | [`Dwl::compare`], [`Dwl::compare_tuples`] |
//! | colour one graph | [`Dwl::color`] |
//! | know why | [`Witness`] |
//! | know for certain, when small | [`isomorphism`] |
//! | draw both graphs | [`svg::draw`] |
//! | see what each `k` can do | [`examples`] |
//!
//! # Differences from the paper
//! - Its equation of 1-DWL pairs the colour of `w` with the sequence of `v`; read as one neighbour.
//! - There a neighbour stands once for every time it was met; here once, with its whole sequence. The sequence says
//!   how often, so the partitions are the same.
//! - With constant initial colours, as Proposition 1 asks, a tuple does not know which of its own nodes are the same:
//!   if `u` and `u'` have the same sequence with every node, `(u, u)` and `(u, u')` keep one colour for every `k`. That
//!   is kept as written; [`Initial::Types`] starts from isomorphism types instead, as the appendix does for static
//!   graphs.
//! - As written, 1-DWL cannot tell a node that met itself from one that met a node like itself. Kept; `k ≥ 2` can.
//! - Tuples are isomorphic when their first nodes correspond, their second nodes, and so on; the paper also speaks of
//!   tuples as sets.
//! - The paper does not say what a directed interaction is; [`Direction::Directed`] lets a node see both sequences.
//! - For `k = 1` the appendix' k-FWL and k-OWL look at no edge at all when taken to the letter. Both are 1-WL here, as
//!   its remark on 1-OWL presumes.

mod budget;
mod dwl;
pub mod examples;
mod graph;
mod initial;
mod intern;
mod isomorphism;
mod joint;
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
pub use refine::Interning;
pub use verdict::{Coloring, Comparison, Verdict};
pub use witness::{Cause, ClassCount, Contrast, Term, Witness};

/// Largest dimension offered.
pub const MAX_K: usize = 4;
