//! Node names from Python and back.

use ctdg::event::{EventId, EventIds, NodeId};
use hopedgn::Events;
use hopedgn::predict::NamedPairs;
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use serde_json::Value;

use crate::error::Failure;

/// Names of nodes: integers from 0 in an array, or text.
#[derive(FromPyObject)]
pub(crate) enum Names<'py> {
    Integers(PyReadonlyArray1<'py, u64>),
    Texts(Vec<PyBackedStr>),
}

/// The same without Python's lock.
pub(crate) enum NameSlice<'a> {
    Integers(&'a [u64]),
    Texts(&'a [PyBackedStr]),
}

impl Names<'_> {
    pub(crate) fn as_slice(&self) -> Result<NameSlice<'_>, Failure> {
        Ok(match self {
            Self::Integers(names) => NameSlice::Integers(names.as_slice()?),
            Self::Texts(names) => NameSlice::Texts(names),
        })
    }
}

impl NameSlice<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Integers(names) => names.len(),
            Self::Texts(names) => names.len(),
        }
    }

    fn text(&self, index: usize) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Integers(names) => names[index].to_string().into(),
            Self::Texts(names) => (&*names[index]).into(),
        }
    }
}

/// Pairs of equally many sources, destinations and times, as the Python layer has checked.
pub(crate) fn pairs<'e>(
    events: &'e Events,
    src: &NameSlice<'_>,
    dst: &NameSlice<'_>,
    times: &[f64],
) -> Result<NamedPairs<'e>, Failure> {
    let mut pairs = NamedPairs::new(events)?;
    let n = times.len().min(src.len()).min(dst.len());
    for index in 0..n {
        match (src, dst) {
            (NameSlice::Integers(src), NameSlice::Integers(dst)) => {
                pairs.push_integers(src[index], dst[index], times[index])?;
            }
            _ => pairs.push(&src.text(index), &dst.text(index), times[index])?,
        }
    }
    Ok(pairs)
}

/// A name as JSON: a number where the names of the data are integers.
pub(crate) fn json(events: &Events, name: String) -> Value {
    match name.parse::<u64>() {
        Ok(number) if !events.names().is_text() => number.into(),
        _ => name.into(),
    }
}

/// Numbers of nodes as Python's usual integers.
pub(crate) fn numbers(ids: &[u32]) -> Vec<i64> {
    ids.iter().map(|&id| i64::from(id)).collect()
}

/// The node of number `index`, if it has one.
pub(crate) fn node(index: i64) -> Option<NodeId> {
    u32::try_from(index).ok().map(NodeId)
}

/// Event ids from numbers.
pub(crate) fn event_ids(events: &[i64]) -> Result<Vec<EventId>, Failure> {
    let id = |&event: &i64| u64::try_from(event).map(EventId);
    let ids: Result<Vec<EventId>, _> = events.iter().map(id).collect();
    ids.map_err(|_| PyValueError::new_err("found a negative event number, expected numbers from 0").into())
}

/// Numbers of events.
pub(crate) fn event_numbers<'a>(events: impl Into<EventIds<'a>>) -> Vec<i64> {
    events.into().iter().map(event_number).collect()
}

/// The number of an event, which is the position of a row and so below the largest integer.
pub(crate) fn event_number(event: EventId) -> i64 {
    i64::try_from(event.0).unwrap_or(i64::MAX)
}
