//! NumPy arrays over memory of this module.

use numpy::{PyArray1, PyArray2, ndarray};
use pyo3::prelude::*;

/// A read-only array over `values`, which `owner` keeps alive. No copy.
///
/// `values` must be memory of `owner` that neither moves nor changes as long as `owner` lives.
#[expect(unsafe_code, reason = "an array over memory of another object")]
pub(crate) fn column<'py, T: numpy::Element>(
    owner: &Bound<'py, PyAny>,
    values: &[T],
) -> PyResult<Bound<'py, PyArray1<T>>> {
    let values = ndarray::ArrayView1::from(values);
    // SAFETY: the caller's promise; the array holds a reference to the owner and is made read-only.
    let array = unsafe { PyArray1::borrow_from_array(&values, owner.clone()) };
    array.call_method1("setflags", (false,))?;
    Ok(array)
}

/// A read-only array of rows of `width` values. No copy.
#[expect(unsafe_code, reason = "an array over memory of another object")]
pub(crate) fn table<'py>(
    owner: &Bound<'py, PyAny>,
    values: &[f32],
    width: usize,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let rows = values.len() / width.max(1);
    let values = ndarray::ArrayView2::from_shape((rows, width), values)
        .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
    // SAFETY: as in `column`.
    let array = unsafe { PyArray2::borrow_from_array(&values, owner.clone()) };
    array.call_method1("setflags", (false,))?;
    Ok(array)
}
