//! Integration tests of `ctdg`, in one binary.

mod fetch;
mod generate;
mod metric;
