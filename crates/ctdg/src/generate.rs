//! Seeded event streams that need no download.
//!
//! - [`triadic`]: who meets whom depends on common past neighbours *and* on when they were met. The best score any model
//!   can reach is known, so a model's distance from it can be stated.
//! - [`tastes`]: who meets whom depends on paths of three meetings, and never on common neighbours.
//! - [`interactions`]: bipartite streams with the sizes of the public Reddit, MOOC and `LastFM` data sets, for timing and
//!   for running the whole pipeline offline. They say nothing about accuracy on the real data.
//!
//! The same specification and seed give the same stream on every machine and in every release: all draws come from
//! [`random`](crate::random).

pub mod interactions;
pub mod tastes;
pub mod triadic;

pub use interactions::InteractionSpec;
pub use tastes::TasteSpec;
pub use triadic::{OptimalScores, Query, Triadic, TriadicSpec};
