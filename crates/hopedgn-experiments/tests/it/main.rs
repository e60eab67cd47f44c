//! Tests over the whole crate.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod expressivity;
