//! The operations a tape can record, each with its forward and its backward in the file of its subject.

pub(crate) mod activation;
pub(crate) mod attend;
pub(crate) mod attention;
mod cells;
mod combine;
pub(crate) mod dropout;
pub(crate) mod encoder;
mod layout;
mod linear;
mod loss;
mod norm;
pub(crate) mod rows;
mod segment;
pub(crate) mod slots;
pub(crate) mod softmax;

#[cfg(test)]
mod tests;
