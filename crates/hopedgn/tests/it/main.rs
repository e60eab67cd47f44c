//! The library from outside, in one binary.

mod learn;
mod parity;
mod properties;
mod resume;
