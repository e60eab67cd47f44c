//! Synthetic event streams.
//!
//! - [`triadic`]: links depend on common past neighbors *and* on the times of those interactions. The best expected score
//!   is known, so a model can be compared with it.
//! - [`tastes`]: links depend on paths of three interactions, never on common neighbors.
//! - [`interactions`]: bipartite streams with the sizes of the public Reddit, MOOC and `LastFM` datasets, for
//!   benchmarks and offline runs. Accuracy on them says nothing about the real data.
//!
//! The same specification and seed give the same stream on every machine and in every release: all draws come from
//! [`random`](crate::random).
//!
//! ```
//! use ctdg::generate::{InteractionSpec, TriadicSpec};
//!
//! let triadic = TriadicSpec { n_episodes: 100, ..TriadicSpec::default() }.generate(0)?;
//! assert_eq!((triadic.stream.len(), triadic.queries.len()), (600, 400));
//! assert!(triadic.optimal().auc > 0.8);
//!
//! let mooc = InteractionSpec::like_mooc().scaled(0.01)?.generate(0)?;
//! assert_eq!(mooc.len(), 4_117);
//! # Ok::<(), ctdg::Error>(())
//! ```

pub mod interactions;
pub mod tastes;
pub mod triadic;

pub use interactions::InteractionSpec;
pub use tastes::TasteSpec;
pub use triadic::{OptimalScores, Query, Triadic, TriadicSpec};
