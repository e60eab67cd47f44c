//! Events: reading, columns as arrays, parts.

use std::path::PathBuf;

use ctdg::dataset::{self, PairColumns, ReadOptions, WriteFormat};
use ctdg::event::{NodeId, Roles};
use ctdg::split::{MASK_SEED, SplitMode, SplitRule};
use ctdg::time::TimeFormat;
use hopedgn::Error;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use crate::arrow;
use crate::columns::{self, Column};
use crate::error::Failure;
use crate::names::{self, Names, event_ids, event_number};
use crate::negatives::Split;
use crate::pool::compute;
use crate::view;

/// A stream of interactions.
#[pyclass(frozen, module = "hopedgn._native")]
pub(crate) struct Events {
    pub(crate) inner: hopedgn::Events,
}

/// Options as the Python layer writes them.
pub(crate) fn read_options(json: &str) -> Result<ReadOptions, Failure> {
    Ok(serde_json::from_str(json)
        .map_err(|error| Error::Config { place: "reading events".into(), detail: error.to_string() })?)
}

#[pymethods]
impl Events {
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf, options: &str) -> Result<Self, Failure> {
        let options = read_options(options)?;
        Ok(Self { inner: compute(py, || hopedgn::Events::read_with(path, &options))?? })
    }

    #[staticmethod]
    fn collegemsg(py: Python<'_>) -> Result<Self, Failure> {
        Ok(Self { inner: compute(py, hopedgn::Events::collegemsg)?? })
    }

    #[staticmethod]
    fn from_arrow(
        py: Python<'_>,
        table: &Bound<'_, PyAny>,
        options: &str,
        n_rows: usize,
        name: String,
    ) -> Result<Self, Failure> {
        let (stream, options) = (arrow::stream_of(table)?, read_options(options)?);
        let stream = compute(py, || arrow::read(stream, &options, n_rows))??;
        Ok(Self { inner: hopedgn::Events::from_stream(name, stream) })
    }

    #[staticmethod]
    #[pyo3(signature = (columns, n, options, name, edge_features=None))]
    fn from_columns(
        py: Python<'_>,
        columns: Vec<(String, Column<'_>)>,
        n: usize,
        options: &str,
        name: String,
        edge_features: Option<PyReadonlyArray2<'_, f32>>,
    ) -> Result<Self, Failure> {
        let stream = columns::read(py, &columns, n, &read_options(options)?, edge_features)?;
        Ok(Self { inner: hopedgn::Events::from_stream(name, stream) })
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    #[getter]
    fn n_nodes(&self) -> usize {
        self.inner.n_nodes()
    }

    #[getter]
    fn name(&self) -> String {
        self.inner.name().to_owned()
    }

    #[getter]
    fn file(&self) -> Option<PathBuf> {
        self.inner.file().map(ToOwned::to_owned)
    }

    /// Number of sources where both sides have names of their own.
    #[getter]
    fn n_sources(&self) -> Option<u32> {
        self.inner.names().n_sources()
    }

    #[getter]
    fn is_text(&self) -> bool {
        self.inner.names().is_text()
    }

    #[getter]
    fn is_date(&self) -> bool {
        self.inner.time_format() == TimeFormat::Date
    }

    /// Whether no node is both source and destination.
    #[getter]
    fn are_sides_disjoint(&self) -> bool {
        self.inner.names().is_bipartite() || Roles::of(&self.inner).are_disjoint()
    }

    /// The time just after the last event.
    #[getter]
    fn end(&self) -> f64 {
        self.inner.end()
    }

    fn show_time(&self, time: f64) -> String {
        self.inner.time_format().show(time)
    }

    fn parse_time(&self, text: &str) -> Option<f64> {
        self.inner.time_format().parse(text)
    }

    #[getter]
    fn src_index<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        view::column(this.as_any(), bytemuck::cast_slice(this.get().inner.src()))
    }

    #[getter]
    fn dst_index<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        view::column(this.as_any(), bytemuck::cast_slice(this.get().inner.dst()))
    }

    #[getter]
    fn time<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        view::column(this.as_any(), this.get().inner.times())
    }

    #[getter]
    fn label<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        view::column(this.as_any(), this.get().inner.labels())
    }

    #[getter]
    fn edge_features<'py>(this: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyArray2<f32>>>> {
        let features = this.get().inner.edge_features();
        features.map(|table| view::table(this.as_any(), table.values(), table.width())).transpose()
    }

    #[getter]
    fn node_features<'py>(this: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyArray2<f32>>>> {
        let features = this.get().inner.node_features();
        features.map(|table| view::table(this.as_any(), table.values(), table.width())).transpose()
    }

    /// The integer name of every node, in order of their numbers; none where names are text.
    fn integer_names<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<u64>>> {
        let names = self.inner.names();
        let nodes = (0..names.len()).filter_map(NodeId::from_index);
        let integers: Option<Vec<u64>> = nodes.map(|node| names.integer(node)).collect();
        integers.filter(|_| !names.is_text()).map(|integers| integers.into_pyarray(py))
    }

    /// The name of every node as text.
    fn text_names(&self) -> Vec<String> {
        let names = self.inner.names();
        (0..names.len()).filter_map(NodeId::from_index).map(|node| names.name(node)).collect()
    }

    /// Some events alone; `events` ascend.
    fn select(&self, py: Python<'_>, events: PyReadonlyArray1<'_, i64>) -> Result<Self, Failure> {
        let ids = event_ids(events.as_slice()?)?;
        Ok(Self { inner: compute(py, || self.inner.select(&ids))?? })
    }

    fn named(&self, name: String) -> Self {
        Self { inner: self.inner.clone().named(name) }
    }

    /// The same events, said to come from a file.
    fn with_source(&self, path: PathBuf) -> Self {
        Self { inner: self.inner.clone().with_source(&path, &ReadOptions::default()) }
    }

    fn write(&self, py: Python<'_>, path: PathBuf) -> Result<(), Failure> {
        let format = WriteFormat::of_path(&path)?;
        Ok(compute(py, || dataset::write(&self.inner, &path, format))??)
    }

    /// A split by a rule of that name; with times, events up to the first are for training, up to the second for validation.
    #[pyo3(signature = (mode, times=None))]
    fn split(&self, py: Python<'_>, mode: &str, times: Option<(f64, f64)>) -> Result<Split, Failure> {
        let mode = match mode {
            "dyglib" => SplitMode::Dyglib,
            "portable" => SplitMode::Portable,
            "tgb" => SplitMode::Tgb,
            other => {
                let message =
                    format!("found the split {other:?}, expected \"dyglib\", \"tgb\", \"portable\" or fractions");
                return Err(PyValueError::new_err(message).into());
            }
        };
        let inner = &self.inner;
        let split = compute(py, || {
            let mut rule = SplitRule::of(inner, mode, MASK_SEED)?;
            if let Some((val_time, test_time)) = times {
                (rule.val_time, rule.test_time) = (val_time, test_time);
            }
            rule.apply(inner)
        })??;
        Ok(Split { events: inner.clone(), inner: split })
    }

    /// The last event of each source, destination and time; -1 where there is none.
    fn find<'py>(
        &self,
        py: Python<'py>,
        src: Names<'py>,
        dst: Names<'py>,
        time: PyReadonlyArray1<'py, f64>,
    ) -> Result<Bound<'py, PyArray1<i64>>, Failure> {
        let (src, dst, time) = (src.as_slice()?, dst.as_slice()?, time.as_slice()?);
        let inner = &self.inner;
        let found = compute(py, || {
            let pairs = names::pairs(inner, &src, &dst, time)?;
            let key = |src: NodeId, dst: NodeId, time: f64| (src, dst, (time + 0.0).to_bits());
            let ids = inner.ids().map(|id| (id, inner.event(id)));
            let events: FxHashMap<_, _> = ids.map(|(id, event)| (key(event.src, event.dst, event.time), id)).collect();
            let find = |query: &ctdg::event::PairQuery| events.get(&key(query.src, query.dst, query.time));
            let found = pairs.queries().iter().map(|query| find(query).map_or(-1, |&id| event_number(id)));
            Ok::<_, Failure>(found.collect::<Vec<i64>>())
        })??;
        Ok(found.into_pyarray(py))
    }

    /// Numbers of nodes by name, as sources or as destinations; -1 for a name without events.
    fn index_of<'py>(
        &self,
        py: Python<'py>,
        names: Names<'py>,
        as_source: bool,
    ) -> Result<Bound<'py, PyArray1<i64>>, Failure> {
        let names = names.as_slice()?;
        let inner = &self.inner;
        let nodes = compute(py, || nodes_of(inner, &names, as_source))??;
        let known = |node: NodeId| if node.index() < inner.n_nodes() { i64::from(node.0) } else { -1 };
        Ok(nodes.into_iter().map(known).collect::<Vec<i64>>().into_pyarray(py))
    }
}

/// Nodes by name; those without events have numbers of their own behind all others.
pub(crate) fn nodes_of(
    events: &hopedgn::Events,
    nodes: &names::NameSlice<'_>,
    as_source: bool,
) -> Result<Vec<NodeId>, Failure> {
    let pairs = names::pairs(events, nodes, nodes, &vec![0.0; nodes.len()])?;
    Ok(pairs.queries().iter().map(|query| if as_source { query.src } else { query.dst }).collect())
}

/// Positions of source, destination and, if there is one, time among columns of these names, as in files of pairs.
#[pyfunction]
pub(crate) fn pair_columns(names: Vec<String>) -> Result<(usize, usize, Option<usize>), Failure> {
    let columns = PairColumns::of_names(&names, &ReadOptions::default())?;
    Ok((columns.src, columns.dst, columns.time))
}
