//! Splits, negatives of evaluation passes and candidates of rankings.

use std::path::PathBuf;

use ctdg::event::NodeId;
use ctdg::negative::{CandidateCount, Candidates, Pass, TgbRule};
use hopedgn::evaluate::{Negatives, draw_negatives};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::Failure;
use crate::names::{event_ids, event_numbers, numbers};
use crate::pool::compute;

/// Events with their split.
#[pyclass(frozen, module = "hopedgn._native")]
pub(crate) struct Split {
    pub(crate) events: hopedgn::Events,
    pub(crate) inner: ctdg::split::Split,
}

type Numbers<'py> = Bound<'py, PyArray1<i64>>;

#[pymethods]
impl Split {
    /// The events of a part: `train`, `val`, `test`, `new_node_val` or `new_node_test`.
    fn part<'py>(&self, py: Python<'py>, name: &str) -> Result<Numbers<'py>, Failure> {
        let events = match name {
            "train" => &self.inner.train,
            name => pass(name)?.events(&self.inner),
        };
        Ok(event_numbers(events).into_pyarray(py))
    }

    /// Nodes that are kept out of training, and nodes that do not occur in it.
    fn masked_and_new<'py>(&self, py: Python<'py>) -> (Numbers<'py>, Numbers<'py>) {
        let array = |nodes: &[NodeId]| numbers(bytemuck::cast_slice(nodes)).into_pyarray(py);
        (array(&self.inner.rule.masked), array(&self.inner.new_nodes))
    }

    #[getter]
    fn times(&self) -> (f64, f64) {
        (self.inner.rule.val_time, self.inner.rule.test_time)
    }

    /// Sources and destinations of the negatives for the events of a part, as an evaluation draws them.
    fn negatives<'py>(
        &self,
        py: Python<'py>,
        part: &str,
        kind: &str,
        batch: usize,
    ) -> Result<(Numbers<'py>, Numbers<'py>), Failure> {
        let pass = pass(part)?;
        let kind = Negatives::ALL.into_iter().find(|known| known.as_str() == kind).ok_or_else(|| {
            PyValueError::new_err(format!(
                "found {kind:?} negatives, expected \"random\", \"historical\" or \"inductive\""
            ))
        })?;
        let drawn = compute(py, || draw_negatives(&self.events, &self.inner, pass, kind, batch))??;
        let array = |node: fn(&ctdg::event::PairQuery) -> NodeId| {
            drawn.iter().map(|query| i64::from(node(query).0)).collect::<Vec<i64>>().into_pyarray(py)
        };
        Ok((array(|query| query.src), array(|query| query.dst)))
    }

    /// Candidates of events for a ranking: offsets and destinations. `source` is `drawn`, `tgb` or `file`; no count means all.
    #[pyo3(signature = (part, events, source, count=None, seed=None, file=None))]
    fn candidates<'py>(
        &self,
        py: Python<'py>,
        part: &str,
        events: PyReadonlyArray1<'py, i64>,
        source: &str,
        count: Option<usize>,
        seed: Option<u32>,
        file: Option<PathBuf>,
    ) -> Result<(Numbers<'py>, Numbers<'py>), Failure> {
        let pass = pass(part)?;
        let count = count.map_or(CandidateCount::All, CandidateCount::Some);
        let candidates = match (source, file) {
            (_, Some(file)) => Candidates::File(file),
            ("tgb", None) => {
                let rule = TgbRule::from(count);
                Candidates::Tgb(TgbRule { seed: seed.unwrap_or(rule.seed), ..rule })
            }
            _ => count.into(),
        };
        let ids = event_ids(events.as_slice()?)?;
        if let Some(id) = ids.iter().find(|id| id.index() >= self.inner.rule.n_events) {
            let message = format!("found the event {}, expected one of {}", id.0, self.inner.rule.n_events);
            return Err(PyValueError::new_err(message).into());
        }
        let (offsets, nodes) = compute(py, || {
            let mut lists = candidates.lists(&self.events, &self.inner, pass)?;
            let (mut offsets, mut nodes) = (vec![0_i64], Vec::new());
            for &id in &ids {
                nodes.extend(lists.of(id)?.into_iter().map(|node| i64::from(node.0)));
                offsets.push(i64::try_from(nodes.len()).unwrap_or(i64::MAX));
            }
            Ok::<_, ctdg::Error>((offsets, nodes))
        })??;
        Ok((offsets.into_pyarray(py), nodes.into_pyarray(py)))
    }
}

fn pass(name: &str) -> PyResult<Pass> {
    Ok(match name {
        "val" => Pass::Val,
        "new_node_val" => Pass::NewNodeVal,
        "test" => Pass::Test,
        "new_node_test" => Pass::NewNodeTest,
        other => {
            let expected = "\"val\", \"test\", \"new_node_val\" or \"new_node_test\"";
            return Err(PyValueError::new_err(format!("found the part {other:?}, expected {expected}")));
        }
    })
}
