//! The operations of a tape, one folder each: shape rule and tape method, CPU, CUDA with its kernels, tests.
//!
//! `<operation>.rs` has the method of [`Tape`](crate::Tape), which checks shapes and dispatches; `cpu.rs` and `cuda.rs`
//! compute the value and store the backward function.

#![expect(clippy::unnecessary_wraps, reason = "CPU methods have the signatures of their CUDA counterparts")]

pub(crate) mod activation;
pub(crate) mod cross_attention;
pub(crate) mod dropout;
pub(crate) mod elementwise;
pub(crate) mod encoder;
pub(crate) mod layer_norm;
pub(crate) mod layout;
pub(crate) mod linear;
pub(crate) mod loss;
pub(crate) mod pad_ragged;
pub(crate) mod recurrent;
pub(crate) mod rows;
pub(crate) mod segment;
pub(crate) mod self_attention;
pub(crate) mod softmax;
pub(crate) mod state_table;

#[cfg(test)]
mod tests;
