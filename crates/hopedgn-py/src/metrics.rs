//! Metrics of link prediction.

use ctdg::metric;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::error::Failure;
use crate::pool::compute;

/// Average precision and ROC AUC.
#[pyfunction]
pub(crate) fn binary_scores(
    py: Python<'_>,
    labels: PyReadonlyArray1<'_, bool>,
    scores: PyReadonlyArray1<'_, f64>,
) -> Result<(f64, f64), Failure> {
    let (labels, scores) = (labels.as_slice()?, scores.as_slice()?);
    let both = compute(py, || metric::binary_scores(scores, labels))??;
    Ok((both.ap, both.auc))
}

/// The rank of each positive among its own negatives: those of row `i` are `negatives[offsets[i]..offsets[i + 1]]`.
#[pyfunction]
pub(crate) fn ranks<'py>(
    py: Python<'py>,
    positives: PyReadonlyArray1<'py, f64>,
    negatives: PyReadonlyArray1<'py, f64>,
    offsets: PyReadonlyArray1<'py, i64>,
) -> Result<Bound<'py, PyArray1<f64>>, Failure> {
    let (positives, negatives, offsets) = (positives.as_slice()?, negatives.as_slice()?, offsets.as_slice()?);
    let ranks = compute(py, || {
        let rank = |(positive, row): (&f64, &[i64])| {
            let row = usize::try_from(row[0]).unwrap_or(0)..usize::try_from(row[1]).unwrap_or(0);
            metric::rank(*positive, &negatives[row])
        };
        positives.iter().zip(offsets.windows(2)).map(rank).collect::<ctdg::Result<Vec<f64>>>()
    })??;
    Ok(ranks.into_pyarray(py))
}

/// Mean reciprocal rank.
#[pyfunction]
pub(crate) fn mrr(ranks: PyReadonlyArray1<'_, f64>) -> Result<f64, Failure> {
    Ok(metric::mrr(ranks.as_slice()?)?)
}

/// Share of ranks of at most `k`.
#[pyfunction]
pub(crate) fn recall_at(ranks: PyReadonlyArray1<'_, f64>, k: u32) -> Result<f64, Failure> {
    Ok(metric::recall_at(ranks.as_slice()?, k)?)
}

/// Normalised discounted cumulative gain of the first `k`.
#[pyfunction]
pub(crate) fn ndcg_at(ranks: PyReadonlyArray1<'_, f64>, k: u32) -> Result<f64, Failure> {
    Ok(metric::ndcg_at(ranks.as_slice()?, k)?)
}
