//! Integration tests of `ctdg`, in one binary.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

mod audit;
mod corruption;
mod edge_cases;
mod fetch;
mod formats;
mod generate;
mod heuristic;
mod index;
mod leak;
mod lines;
mod live;
mod log;
mod malformed;
mod metric;
mod mite;
mod negative;
mod protocol;
mod real_data;
mod second_hop;
mod statistics;
mod store;
mod table;
mod tgb;
mod times;
mod triads;
mod tries;
mod walk_counts;
mod walks;
mod wl;
