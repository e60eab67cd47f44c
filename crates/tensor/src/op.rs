//! The operations a tape can record, each with its forward and its backward in the file of its subject.

pub(crate) mod activation;
pub(crate) mod attention;
mod combine;
pub(crate) mod dropout;
pub(crate) mod encoder;
mod linear;
mod loss;
mod norm;
mod rows;
pub(crate) mod softmax;
