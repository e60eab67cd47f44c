//! The library from outside, in one binary.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod classify;
mod custom_model;
mod damage;
mod distributed;
mod evaluation;
mod explain;
mod grown;
mod intensity;
mod learn;
mod live;
mod models;
mod numbering;
mod parity;
mod predict;
mod predictor;
mod properties;
mod resume;
mod tgb;
#[path = "../../../ctdg/tests/it/tries.rs"]
mod tries;
