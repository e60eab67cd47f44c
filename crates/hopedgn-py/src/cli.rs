//! The command line, for the script `hopedgn` that the package installs.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command with these arguments, the first of which names the program, and returns its exit status.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| hopedgn_cli::run(&hopedgn::ModelRegistry::default(), arguments))
}
