//! Integration tests of `ctdg`, in one binary.

mod fetch;
mod formats;
mod generate;
mod hostile;
mod leak;
mod malformed;
mod metric;
mod mite;
mod nasty;
mod negative;
mod protocol;
mod store;
