//! Integration tests of `ctdg`, one binary.

mod fetch;
