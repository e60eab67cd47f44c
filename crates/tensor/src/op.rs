//! The operations a tape can record, each with its forward and its backward in the file of its subject.

pub(crate) mod activation;
pub(crate) mod attention;
mod cells;
pub(crate) mod cross_attention;
pub(crate) mod dropout;
mod elementwise;
pub(crate) mod encoder;
mod layout;
mod linear;
mod loss;
mod norm;
pub(crate) mod pad_ragged;
pub(crate) mod rows;
mod segment;
pub(crate) mod softmax;

#[cfg(test)]
mod tests;
