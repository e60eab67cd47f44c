//! NumPy arrays as columns of events.

use ctdg::dataset::{ColumnBlock, ColumnKind, ColumnReader, ColumnValues, ReadOptions, TimeUnit};
use ctdg::event::{EventStream, Features};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use crate::error::Failure;
use crate::pool::compute;

/// One column from Python: an array of a usual type, times with their unit, text, or the name of another type.
#[derive(FromPyObject)]
pub(crate) enum Column<'py> {
    I64(PyReadonlyArray1<'py, i64>),
    F64(PyReadonlyArray1<'py, f64>),
    I32(PyReadonlyArray1<'py, i32>),
    F32(PyReadonlyArray1<'py, f32>),
    U32(PyReadonlyArray1<'py, u32>),
    U64(PyReadonlyArray1<'py, u64>),
    Times((PyReadonlyArray1<'py, i64>, String)),
    Text(Vec<PyBackedStr>),
    Other(String),
}

impl Column<'_> {
    fn kind(&self) -> ColumnKind {
        match self {
            Self::I64(_) | Self::I32(_) | Self::U32(_) | Self::U64(_) => ColumnKind::Integer,
            Self::F64(_) | Self::F32(_) => ColumnKind::Float,
            Self::Times(_) => ColumnKind::Date,
            Self::Text(_) => ColumnKind::Text,
            Self::Other(_) => ColumnKind::Other,
        }
    }

    fn block(&self) -> Result<ColumnBlock<'_>, Failure> {
        let mut first_null = None;
        let values = match self {
            Self::I64(values) => ColumnValues::I64(values.as_slice()?),
            Self::F64(values) => ColumnValues::F64(values.as_slice()?),
            Self::I32(values) => ColumnValues::I32(values.as_slice()?),
            Self::F32(values) => ColumnValues::F32(values.as_slice()?),
            Self::U32(values) => ColumnValues::U32(values.as_slice()?),
            Self::U64(values) => ColumnValues::U64(values.as_slice()?),
            Self::Times((values, unit)) => {
                let values = values.as_slice()?;
                // How NumPy writes "not a time".
                first_null = values.iter().position(|&time| time == i64::MIN);
                ColumnValues::Timestamp(values, time_unit(unit)?)
            }
            Self::Text(texts) => ColumnValues::Text(texts),
            Self::Other(name) => ColumnValues::Other(name),
        };
        Ok(ColumnBlock { values, first_null })
    }
}

fn time_unit(name: &str) -> PyResult<TimeUnit> {
    Ok(match name {
        "s" => TimeUnit::S,
        "ms" => TimeUnit::Ms,
        "us" => TimeUnit::Us,
        "ns" => TimeUnit::Ns,
        other => {
            return Err(PyTypeError::new_err(format!("found times in the unit {other}, expected s, ms, us or ns")));
        }
    })
}

/// Reads `n` events from columns with their names.
pub(crate) fn read(
    py: Python<'_>,
    columns: &[(String, Column<'_>)],
    n: usize,
    options: &ReadOptions,
    edge_features: Option<PyReadonlyArray2<'_, f32>>,
) -> Result<EventStream, Failure> {
    let kinds: Vec<(&str, ColumnKind)> = columns.iter().map(|(name, column)| (name.as_str(), column.kind())).collect();
    let blocks: Vec<ColumnBlock<'_>> = columns.iter().map(|(_, column)| column.block()).collect::<Result<_, _>>()?;
    let features = match &edge_features {
        Some(table) if table.as_array().ncols() > 0 => {
            Some(Features::new(table.as_array().ncols(), table.as_slice()?.to_vec())?)
        }
        _ => None,
    };
    compute(py, || {
        let mut reader = ColumnReader::new(&kinds, options)?;
        reader.reserve(n);
        reader.push(n, &blocks)?;
        Ok(reader.finish(features)?)
    })?
}
