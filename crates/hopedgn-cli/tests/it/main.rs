//! The command from outside, in one binary.

mod wl;
