//! Integration tests of hopedgn-experiments.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod expressivity;
