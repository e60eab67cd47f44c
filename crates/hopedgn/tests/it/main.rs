//! The library from outside, in one binary.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod classify;
mod custom_model;
mod evaluation;
mod grown;
mod learn;
mod models;
mod numbering;
mod parity;
mod predict;
mod predictor;
mod properties;
mod resume;
