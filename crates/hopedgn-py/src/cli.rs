//! The command line, for the script `hopedgn` that the package installs.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command with these arguments, the first of which names the program, and returns its exit status. `program` starts it again.
#[pyfunction]
#[pyo3(signature = (arguments, program=None))]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>, program: Option<Vec<OsString>>) -> u8 {
    py.detach(|| hopedgn_cli::run_as(&hopedgn::ModelRegistry::default(), arguments, program))
}
