//! Histories of nodes, and tokens of pairs with MITE.

use std::ops::Range;
use std::sync::Arc;

use ctdg::mite::{MiteScope, PairEncoder, PairEncoderConfig, PairTokens, Side, TimePrecision};
use ctdg::random::RandomStream;
use ctdg::sample::{Histories, NeighborSampler, NodeQuery, Sampling};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::prelude::*;

use crate::error::Failure;
use crate::events::{Events, nodes_of};
use crate::names::{Names, event_number, event_numbers, numbers, pairs};
use crate::pool::compute;

/// The index of events: what happened to a node or a pair before a time.
#[pyclass(frozen, module = "hopedgn._native")]
pub(crate) struct Store {
    pub(crate) events: hopedgn::Events,
    pub(crate) inner: Arc<ctdg::store::Store>,
}

/// Offsets, neighbours, events and times.
type HistoryArrays<'py> =
    (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>);

#[pymethods]
impl Store {
    #[new]
    fn new(py: Python<'_>, events: &Bound<'_, Events>) -> Result<Self, Failure> {
        let events = events.get().inner.clone();
        let store = compute(py, || ctdg::store::Store::build(&events))??;
        Ok(Self { events, inner: Arc::new(store) })
    }

    /// Histories of nodes before times, the oldest event first: at most `k` events each.
    fn history<'py>(
        &self,
        py: Python<'py>,
        nodes: Names<'py>,
        times: PyReadonlyArray1<'py, f64>,
        k: usize,
        as_source: bool,
        sampling: &str,
        seed: u64,
    ) -> Result<HistoryArrays<'py>, Failure> {
        let (nodes, times) = (nodes.as_slice()?, times.as_slice()?);
        let sampling = sampling_of(sampling)?;
        let (events, store) = (&self.events, &*self.inner);
        let out = compute(py, || {
            let nodes = nodes_of(events, &nodes, as_source)?;
            let query = |(node, &time)| NodeQuery { node, cut: store.cut(time) };
            let queries: Vec<NodeQuery> = nodes.into_iter().zip(times).map(query).collect();
            let mut out = Histories::default();
            NeighborSampler::new(store, sampling, k).sample(&queries, &RandomStream::named(seed, "sample"), &mut out);
            Ok::<_, Failure>(out)
        })??;
        let entries = out.entries();
        Ok((
            offsets(out.offsets()).into_pyarray(py),
            numbers(bytemuck::cast_slice(entries.neighbors)).into_pyarray(py),
            event_numbers(entries.events).into_pyarray(py),
            entries.times.to_vec().into_pyarray(py),
        ))
    }

    /// Tokens of pairs with MITE, as a model sees them.
    #[pyo3(signature = (src, dst, time, *, length, k, full, f32_times, sampling, seed))]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        src: Names<'py>,
        dst: Names<'py>,
        time: PyReadonlyArray1<'py, f64>,
        length: usize,
        k: usize,
        full: bool,
        f32_times: bool,
        sampling: &str,
        seed: u64,
    ) -> Result<Bound<'py, PyDict>, Failure> {
        let (src, dst, time) = (src.as_slice()?, dst.as_slice()?, time.as_slice()?);
        let config = PairEncoderConfig {
            length: length.max(1),
            k,
            scope: if full { MiteScope::Full } else { MiteScope::Truncated },
            precision: if f32_times { TimePrecision::F32 } else { TimePrecision::F64 },
            sampling: sampling_of(sampling)?,
            ..PairEncoderConfig::default()
        };
        let (events, store) = (&self.events, &*self.inner);
        let arrays = compute(py, || {
            let pairs = pairs(events, &src, &dst, time)?;
            let mut encoder = PairEncoder::new(store, config);
            encoder.reseed(seed);
            let mut tokens = PairTokens::default();
            encoder.encode(pairs.queries(), &mut tokens);
            Ok::<_, Failure>(TokenArrays::of(&tokens))
        })??;
        arrays.into_dict(py)
    }
}

/// Values, and where there are any.
type MaskedArray<'py> = (Bound<'py, PyArray1<f32>>, Bound<'py, PyArray1<bool>>);

/// Interval lists of tokens as arrays `[sides, length, 2, k]`: the first `k` of each list, zeros behind them, and where there are intervals.
/// The newest tokens of a side stand on the right.
#[pyfunction]
pub(crate) fn pad_intervals<'py>(
    py: Python<'py>,
    sides: PyReadonlyArray1<'py, i64>,
    rows: PyReadonlyArray1<'py, i64>,
    starts: PyReadonlyArray1<'py, i64>,
    intervals: PyReadonlyArray1<'py, f32>,
    length: usize,
    k: usize,
) -> Result<MaskedArray<'py>, Failure> {
    let (sides, rows, starts, intervals) =
        (sides.as_slice()?, rows.as_slice()?, starts.as_slice()?, intervals.as_slice()?);
    let list = |row: i64, side: usize| {
        let at = usize::try_from(row).ok()?.checked_mul(2)?.checked_add(side)?;
        intervals.get(range_at(starts, at)?)
    };
    let (values, mask) = compute(py, || {
        let n = sides.len().saturating_sub(1) * length * 2 * k;
        let (mut values, mut mask) = (vec![0.0; n], vec![false; n]);
        let chunk = (length * 2 * k).max(1);
        values.par_chunks_mut(chunk).zip(mask.par_chunks_mut(chunk)).enumerate().for_each(|(side, (values, mask))| {
            let rows = range_at(sides, side).and_then(|range| rows.get(range)).unwrap_or_default();
            let rows = &rows[rows.len().saturating_sub(length)..];
            for (slot, &row) in (length - rows.len()..).zip(rows) {
                for other in 0..2 {
                    let list = list(row, other).unwrap_or_default();
                    let (first, len) = ((2 * slot + other) * k, list.len().min(k));
                    values[first..first + len].copy_from_slice(&list[..len]);
                    mask[first..first + len].fill(true);
                }
            }
        });
        (values, mask)
    })?;
    Ok((values.into_pyarray(py), mask.into_pyarray(py)))
}

/// The range between two offsets.
fn range_at(offsets: &[i64], at: usize) -> Option<Range<usize>> {
    let offset = |at: usize| usize::try_from(*offsets.get(at)?).ok();
    Some(offset(at)?..offset(at + 1)?)
}

fn sampling_of(name: &str) -> PyResult<Sampling> {
    match name {
        "recent" => Ok(Sampling::Recent),
        "uniform" => Ok(Sampling::Uniform),
        other => Err(PyValueError::new_err(format!("found sampling {other:?}, expected \"recent\" or \"uniform\""))),
    }
}

fn offsets(offsets: &[usize]) -> Vec<i64> {
    offsets.iter().map(|&offset| i64::try_from(offset).unwrap_or(i64::MAX)).collect()
}

/// Tokens in the types that NumPy and PyTorch index with.
struct TokenArrays {
    sides: Vec<i64>,
    nodes: Vec<i64>,
    ages: Vec<f32>,
    events: Vec<i64>,
    rows: Vec<i64>,
    row_counts: Vec<i64>,
    interval_offsets: Vec<i64>,
    intervals: Vec<f32>,
}

impl TokenArrays {
    fn of(tokens: &PairTokens) -> Self {
        let mut sides = Vec::with_capacity(2 * tokens.n_pairs() + 1);
        // The root token of a side is the node itself and has no event.
        let mut events = Vec::with_capacity(tokens.n_tokens());
        sides.push(0);
        for pair in 0..tokens.n_pairs() {
            for side in [Side::Src, Side::Dst] {
                events.push(-1);
                events.extend(tokens.events(pair, side).iter().map(event_number));
                sides.push(i64::try_from(tokens.tokens(pair, side).end).unwrap_or(i64::MAX));
            }
        }
        let (starts, intervals) = tokens.interval_lists(0..tokens.n_rows());
        Self {
            sides,
            nodes: numbers(bytemuck::cast_slice(tokens.nodes())),
            ages: tokens.ages().to_vec(),
            events,
            rows: numbers(tokens.rows()),
            row_counts: (0..tokens.n_rows()).flat_map(|row| tokens.counts(row)).map(i64::from).collect(),
            interval_offsets: numbers(starts),
            intervals: intervals.to_vec(),
        }
    }

    fn into_dict(self, py: Python<'_>) -> Result<Bound<'_, PyDict>, Failure> {
        let arrays = PyDict::new(py);
        arrays.set_item("offsets", self.sides.into_pyarray(py))?;
        arrays.set_item("node", self.nodes.into_pyarray(py))?;
        arrays.set_item("age", self.ages.into_pyarray(py))?;
        arrays.set_item("event", self.events.into_pyarray(py))?;
        arrays.set_item("row", self.rows.into_pyarray(py))?;
        arrays.set_item("counts", self.row_counts.into_pyarray(py))?;
        arrays.set_item("interval_offsets", self.interval_offsets.into_pyarray(py))?;
        arrays.set_item("intervals", self.intervals.into_pyarray(py))?;
        Ok(arrays)
    }
}
