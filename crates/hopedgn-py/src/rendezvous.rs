//! Where processes that train together meet.

use hopedgn::distributed;
use pyo3::prelude::*;

use crate::error::Failure;

/// A server at which the workers of a group meet, again and again if one is replaced. It ends with the object.
#[pyclass(frozen, module = "hopedgn._native")]
pub(crate) struct Rendezvous {
    inner: distributed::Rendezvous,
}

#[pymethods]
impl Rendezvous {
    #[new]
    fn new(address: &str, workers: usize) -> Result<Self, Failure> {
        Ok(Self { inner: distributed::Rendezvous::new(address, workers)? })
    }

    #[getter]
    fn port(&self) -> u16 {
        self.inner.address().port()
    }
}
