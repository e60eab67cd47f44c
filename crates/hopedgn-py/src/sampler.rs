//! Neighbours as DyGLib's sampler returns them: rows of fixed length, zeros on the left, the newest last.

use std::sync::Arc;

use ctdg::store::Store as Index;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::error::Failure;
use crate::names::node;
use crate::pool::compute;
use crate::store::Store;

/// The most recent neighbours of nodes before times.
#[pyclass(frozen, module = "hopedgn._native")]
pub(crate) struct RecentSampler {
    store: Arc<Index>,
    /// The id of each node in arrays; 0 is padding.
    node_ids: Vec<i64>,
    /// The id of each event in arrays.
    edge_ids: Vec<i64>,
}

/// Ids of neighbours and edges, and times.
type Neighbors<'py> = (Bound<'py, PyArray2<i64>>, Bound<'py, PyArray2<i64>>, Bound<'py, PyArray2<f32>>);

#[pymethods]
impl RecentSampler {
    #[new]
    fn new(
        store: &Bound<'_, Store>,
        node_ids: PyReadonlyArray1<'_, i64>,
        edge_ids: PyReadonlyArray1<'_, i64>,
    ) -> Result<Self, Failure> {
        let store = Arc::clone(&store.get().inner);
        Ok(Self { store, node_ids: node_ids.as_slice()?.to_vec(), edge_ids: edge_ids.as_slice()?.to_vec() })
    }

    /// The last `k` neighbours of each node, which is given by its number, before its time.
    fn recent<'py>(
        &self,
        py: Python<'py>,
        nodes: PyReadonlyArray1<'py, i64>,
        times: PyReadonlyArray1<'py, f64>,
        k: usize,
    ) -> Result<Neighbors<'py>, Failure> {
        let (nodes, times) = (nodes.as_slice()?, times.as_slice()?);
        let n = nodes.len();
        let (ids, edges, at) = compute(py, || {
            let (mut ids, mut edges, mut at) = (vec![0; n * k], vec![0; n * k], vec![0.0; n * k]);
            let rows =
                ids.par_chunks_mut(k.max(1)).zip(edges.par_chunks_mut(k.max(1))).zip(at.par_chunks_mut(k.max(1)));
            rows.zip(nodes.par_iter().zip(times)).for_each(|(((ids, edges), at), (&index, &time))| {
                let Some(node) = node(index) else { return };
                let history = self.store.history(node, self.store.cut(time)).last(k);
                let first = k - history.len();
                for (slot, i) in (first..).zip(0..history.len()) {
                    ids[slot] = self.node_ids[history.neighbors[i].index()];
                    edges[slot] = self.edge_ids[history.events.at(i).index()];
                    at[slot] = as_f32(history.times[i]);
                }
            });
            (ids, edges, at)
        })?;
        Ok((shaped(py, ids, n, k)?, shaped(py, edges, n, k)?, shaped(py, at, n, k)?))
    }

    /// The number of events of each node before its time.
    fn n_before<'py>(
        &self,
        py: Python<'py>,
        nodes: PyReadonlyArray1<'py, i64>,
        times: PyReadonlyArray1<'py, f64>,
    ) -> Result<Bound<'py, PyArray1<i64>>, Failure> {
        let (nodes, times) = (nodes.as_slice()?, times.as_slice()?);
        let count = |(&index, &time): (&i64, &f64)| {
            let len = node(index).map_or(0, |node| self.store.history(node, self.store.cut(time)).len());
            i64::try_from(len).unwrap_or(i64::MAX)
        };
        let counts: Vec<i64> = compute(py, || nodes.par_iter().zip(times).map(count).collect())?;
        Ok(counts.into_pyarray(py))
    }
}

/// DyGLib keeps times of neighbours in 32 bits.
#[expect(clippy::cast_possible_truncation, reason = "that is what DyGLib does")]
fn as_f32(time: f64) -> f32 {
    time as f32
}

fn shaped<T: numpy::Element>(
    py: Python<'_>,
    values: Vec<T>,
    n: usize,
    k: usize,
) -> Result<Bound<'_, PyArray2<T>>, Failure> {
    Ok(values.into_pyarray(py).reshape([n, k])?)
}
