//! Integration tests of `ctdg`, in one binary.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

mod fetch;
mod formats;
mod generate;
mod heuristic;
mod hops;
mod hostile;
mod leak;
mod malformed;
mod metric;
mod mite;
mod nasty;
mod negative;
mod protocol;
mod real_data;
mod store;
mod walk_counts;
mod wl;
