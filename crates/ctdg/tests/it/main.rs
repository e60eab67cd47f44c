//! One binary for all tests of the crate's public face.

mod wl;
