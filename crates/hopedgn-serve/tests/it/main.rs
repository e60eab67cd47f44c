//! The server as its clients meet it, in one binary.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;
mod connections;
mod kserve;
