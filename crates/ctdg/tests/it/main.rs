//! Integration tests of `ctdg`, in one binary.

mod fetch;
mod generate;
mod leak;
mod metric;
mod mite;
mod nasty;
mod negative;
mod protocol;
mod store;
