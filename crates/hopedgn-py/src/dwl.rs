//! k-DWL tests of two dynamic graphs.

use ctdg::wl::{Direction, Dwl, Graph, GraphOptions, Labels, Reach, Times, Variant};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use serde_json::json;

use crate::error::Failure;
use crate::events::Events;
use crate::names::node;
use crate::pool::compute;

/// Compares two graphs, or two tuples of their nodes by number, and returns the verdict as JSON; without `k` by marked DWL.
#[pyfunction]
#[pyo3(signature = (a, b, k, *, until, directed, without_times, features, tuples, max_memory))]
#[expect(clippy::many_single_char_names, reason = "arguments of a Python function")]
pub(crate) fn compare(
    py: Python<'_>,
    a: &Bound<'_, Events>,
    b: &Bound<'_, Events>,
    k: Option<usize>,
    until: Option<f64>,
    directed: bool,
    without_times: bool,
    features: bool,
    tuples: Option<(PyReadonlyArray1<'_, i64>, PyReadonlyArray1<'_, i64>)>,
    max_memory: Option<u64>,
) -> Result<String, Failure> {
    let options = GraphOptions {
        until,
        direction: if directed { Direction::Directed } else { Direction::Undirected },
        times: if without_times { Times::Dropped } else { Times::Kept },
        labels: if features { Labels::Features } else { Labels::Constant },
    };
    let (a, b) = (&a.get().inner, &b.get().inner);
    let nodes = |tuple: &PyReadonlyArray1<'_, i64>| -> Result<Vec<_>, Failure> {
        Ok(tuple.as_slice()?.iter().filter_map(|&index| node(index)).collect())
    };
    let tuples = tuples.map(|(s, t)| Ok::<_, Failure>((nodes(&s)?, nodes(&t)?))).transpose()?;
    compute(py, || {
        let (a, b) = (Graph::new(a, &options)?, Graph::new(b, &options)?);
        let mut test = match (k, without_times) {
            (None, _) => Dwl::marked(Reach::All)?,
            (Some(k), true) => Dwl::static_test(k, Variant::Folklore)?,
            (Some(k), false) => Dwl::new(k)?,
        };
        test.max_memory = max_memory.unwrap_or(test.max_memory);
        let comparison = match &tuples {
            Some((s, t)) => test.compare_tuples((&a, s), (&b, t))?,
            None => test.compare(&a, &b)?,
        };
        let verdict = comparison.verdict();
        let (rounds, classes) = (comparison.coloring.rounds(), comparison.coloring.n_classes());
        let document = json!({
            "k": test.k(), "separated": verdict.separated(), "round": verdict.round, "rounds": rounds, "classes": classes,
            "stable": comparison.coloring.is_stable(), "witness": verdict.witness,
        });
        Ok(document.to_string())
    })?
}
