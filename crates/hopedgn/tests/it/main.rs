//! The library from outside, in one binary.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod answer;
mod classify;
mod expressive;
mod learn;
mod models;
mod parity;
mod properties;
mod resume;
