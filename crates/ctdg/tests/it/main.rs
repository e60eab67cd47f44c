//! Integration tests of `ctdg`, in one binary.

mod generate;
mod metric;
