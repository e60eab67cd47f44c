//! Errors of the libraries as Python exceptions: the same texts, with remedies in the words of Python.

use std::io::ErrorKind;

use ctdg::Problem;
use hopedgn::Error;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::remedy;

/// An error on its way to Python.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Of a library.
    Library(Box<Error>),
    /// Of Python itself.
    Python(PyErr),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(Box::new(error))
    }
}

impl From<ctdg::Error> for Failure {
    fn from(error: ctdg::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        ctdg::Error::from(problem).into()
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<numpy::AsSliceError> for Failure {
    fn from(error: numpy::AsSliceError) -> Self {
        Self::Python(error.into())
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Python(error) => error,
            Failure::Library(error) => Python::attach(|py| exception(py, &error)),
        }
    }
}

/// The exception of `hopedgn.errors` for an error.
fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let message = remedy::message(error);
    let made = py
        .import("hopedgn.errors")
        .and_then(|errors| errors.getattr("make_error")?.call1((&message, error.code(), kind(error))));
    made.map_or_else(|_| PyRuntimeError::new_err(message), PyErr::from_value)
}

/// Which built-in exception it also is: `missing`, `type` or none.
fn kind(error: &Error) -> Option<&'static str> {
    match error {
        Error::Data(error) => match error.problem() {
            Problem::Io { source, .. } if source.kind() == ErrorKind::NotFound => Some("missing"),
            Problem::WrongType { .. } => Some("type"),
            _ => None,
        },
        Error::NotARunFolder { folder } if !folder.exists() => Some("missing"),
        _ => None,
    }
}
