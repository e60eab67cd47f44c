//! Training, loading and using a model.

mod options;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use hopedgn::callbacks::Callback;
use hopedgn::config::Config;
use hopedgn::predict::ScoreMeaning;
use hopedgn::run::{DataRecord, RunFolder};
use hopedgn::{Error, LinkPredictor, ModelRegistry, RecommendOptions};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use serde::Serialize;
use serde_json::Value;

use crate::callback::PythonCallback;
use crate::error::Failure;
use crate::events::Events;
use crate::names::{self, Names};
use crate::pool::{compute, compute_until};
use options::{DeviceOptions, FitOptions};

/// A trained model with the events that it looks back on.
#[pyclass(frozen, module = "hopedgn._native")]
pub(crate) struct Predictor {
    inner: LinkPredictor,
}

/// A result, and the exception that ended the work early.
type Interrupted<T> = (Option<T>, Option<Py<PyAny>>);

/// Trains a model in a run folder. When training is interrupted, the best weights so far, if there are any.
#[pyfunction]
#[pyo3(signature = (events, options, callback=None))]
pub(crate) fn fit(
    py: Python<'_>,
    events: &Bound<'_, Events>,
    options: &str,
    callback: Option<Py<PyAny>>,
) -> Result<Interrupted<Predictor>, Failure> {
    let options = FitOptions::parse(options)?;
    let events = &events.get().inner;
    let (stop, raised) = (AtomicBool::new(false), Mutex::new(None));
    let (trained, signal) = compute_until(py, &stop, || {
        let device = options.device.open_for(&options.config(events.name())?.model)?;
        let callback = PythonCallback::new(callback, &stop, &raised);
        let trained = options.train(events, device.clone(), callback);
        match trained {
            Err(Error::Interrupted) => {
                let loaded = LinkPredictor::loader().device(device).load(&options.run, events);
                Ok(loaded.ok())
            }
            trained => trained.map(Some),
        }
    })?;
    let raised = raised.into_inner().unwrap_or(None).or(signal);
    let trained = trained?.map(|inner| Predictor { inner });
    Ok((trained, raised.map(|error| error.into_value(py).into_any())))
}

/// The settings that training would use, as JSON; an error names the first one that is wrong.
#[pyfunction]
pub(crate) fn check_settings(options: &str, data: &str) -> Result<String, Failure> {
    let config = FitOptions::parse(options)?.config(data)?;
    Ok(to_json(&config))
}

/// What a run records about its data and settings. A structure, since `json!` writes 32-bit floats with digits that they do not have.
#[derive(Serialize)]
struct Recorded {
    data: DataRecord,
    config: Config,
}

/// A recommendation as JSON.
#[derive(Serialize)]
struct Item {
    dst: Value,
    score: f32,
    probability: Option<f32>,
    known: bool,
    reason: Option<String>,
}

/// What a run records about its data and settings, as JSON.
#[pyfunction]
pub(crate) fn recorded_data(run: PathBuf) -> Result<String, Failure> {
    let folder = RunFolder::open(&run)?;
    let config: Config = folder.config(&ModelRegistry::default())?;
    let data = folder.manifest()?.data;
    Ok(to_json(&Recorded { data, config }))
}

/// Loads the best weights of a run, with these events as the history of predictions.
#[pyfunction]
pub(crate) fn load(
    py: Python<'_>,
    run: PathBuf,
    events: &Bound<'_, Events>,
    device: &str,
    any_events: bool,
) -> Result<Predictor, Failure> {
    let device: DeviceOptions = options::parse(device)?;
    let events = &events.get().inner;
    let inner = compute(py, || {
        let config = RunFolder::open(&run)?.config(&ModelRegistry::default())?;
        let loader = LinkPredictor::loader().device(device.open_for(&config.model)?);
        let loader = if any_events { loader.any_events() } else { loader };
        loader.load(&run, events)
    })??;
    Ok(Predictor { inner })
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Scores, then intensities and lifts where the model has them.
type Predictions<'py> = (Bound<'py, PyArray1<f32>>, Option<(Bound<'py, PyArray1<f32>>, Bound<'py, PyArray1<f32>>)>);

#[pymethods]
impl Predictor {
    #[getter]
    fn events(&self) -> Events {
        Events { inner: self.inner.events().clone() }
    }

    #[getter]
    fn history(&self) -> String {
        to_json(&self.inner.history())
    }

    #[getter]
    fn summary(&self) -> Option<String> {
        self.inner.summary().map(to_json)
    }

    #[getter]
    fn config(&self) -> String {
        to_json(self.inner.config())
    }

    #[getter]
    fn folder(&self) -> Option<PathBuf> {
        self.inner.folder().map(ToOwned::to_owned)
    }

    #[getter]
    fn device(&self) -> String {
        self.inner.device().name().to_owned()
    }

    #[getter]
    fn n_newer_events(&self) -> usize {
        self.inner.n_newer_events()
    }

    /// Whether scores are probabilities of the next partner.
    #[getter]
    fn is_probability(&self) -> Result<bool, Failure> {
        Ok(self.inner.score_meaning()? != ScoreMeaning::Separation)
    }

    fn predictions<'py>(
        &self,
        py: Python<'py>,
        src: Names<'py>,
        dst: Names<'py>,
        time: PyReadonlyArray1<'py, f64>,
    ) -> Result<Predictions<'py>, Failure> {
        let (src, dst, time) = (src.as_slice()?, dst.as_slice()?, time.as_slice()?);
        let predictions = compute(py, || {
            let pairs = names::pairs(self.inner.events(), &src, &dst, time)?;
            Ok::<_, Failure>(self.inner.predictions(pairs.queries(), &mut |_| {})?)
        })??;
        let scores: Vec<f32> = predictions.iter().map(|prediction| prediction.score).collect();
        let likelihoods = self.is_probability()?.then(|| {
            let of = |value: fn(&hopedgn::predict::Likelihood) -> f32| -> Vec<f32> {
                predictions.iter().map(|one| one.likelihood.as_ref().map_or(f32::NAN, value)).collect()
            };
            (of(|one| one.intensity).into_pyarray(py), of(|one| one.lift).into_pyarray(py))
        });
        Ok((scores.into_pyarray(py), likelihoods))
    }

    fn logits<'py>(
        &self,
        py: Python<'py>,
        src: Names<'py>,
        dst: Names<'py>,
        time: PyReadonlyArray1<'py, f64>,
    ) -> Result<Bound<'py, PyArray1<f32>>, Failure> {
        let (src, dst, time) = (src.as_slice()?, dst.as_slice()?, time.as_slice()?);
        let logits = compute(py, || {
            let pairs = names::pairs(self.inner.events(), &src, &dst, time)?;
            Ok::<_, Failure>(self.inner.logits(pairs.queries())?)
        })??;
        Ok(logits.into_pyarray(py))
    }

    /// The likeliest destinations of a source, as JSON.
    fn recommend(
        &self,
        py: Python<'_>,
        src: &str,
        time: f64,
        top: usize,
        exclude_seen: bool,
    ) -> Result<String, Failure> {
        let options = RecommendOptions { time, top, exclude_seen, reasons: true, candidates: hopedgn::Candidates::All };
        let best = compute(py, || self.inner.recommend_with(src, &options, &mut |_| {}))??;
        let item = |one: hopedgn::Recommendation| Item {
            dst: names::json(self.inner.events(), one.dst),
            score: one.score,
            probability: one.probability,
            known: one.known,
            reason: one.reason.map(|reason| reason.to_string()),
        };
        Ok(to_json(&best.into_iter().map(item).collect::<Vec<Item>>()))
    }

    /// Why a pair gets its score: JSON and text.
    fn explain(&self, py: Python<'_>, src: &str, dst: &str, time: f64) -> Result<(String, String), Failure> {
        let why = compute(py, || self.inner.explain(src, dst, time))??;
        let text = why.to_string();
        let events = self.inner.events();
        Ok((to_json(&why.map_nodes(|name| names::json(events, name))), text))
    }

    /// Test metrics as JSON, the document that the command line prints; incomplete when it was interrupted.
    #[pyo3(signature = (options, callback=None))]
    fn evaluate(
        &self,
        py: Python<'_>,
        options: &str,
        callback: Option<Py<PyAny>>,
    ) -> Result<Interrupted<String>, Failure> {
        let options = options::evaluate_options(options)?;
        let (stop, raised) = (AtomicBool::new(false), Mutex::new(None));
        let (evaluated, signal) = compute_until(py, &stop, || {
            let mut callback = PythonCallback::new(callback, &stop, &raised);
            let evaluation = self.inner.evaluate_run(&options, &mut callback as &mut dyn Callback)?;
            if evaluation.is_complete() {
                // Best effort, as on the command line: the result is returned in any case.
                let _ = self.inner.keep_evaluation(&evaluation);
            }
            Ok::<_, Failure>(to_json(&evaluation))
        })?;
        let raised = raised.into_inner().unwrap_or(None).or(signal);
        Ok((Some(evaluated?), raised.map(|error| error.into_value(py).into_any())))
    }

    fn knows(&self, src: &str, dst: &str) -> Result<(bool, bool), Failure> {
        Ok((self.inner.knows_source(src)?, self.inner.knows_destination(dst)?))
    }

    fn save(&self, py: Python<'_>, folder: PathBuf) -> Result<(), Failure> {
        Ok(compute(py, || self.inner.save(folder))??)
    }
}

/// The names of all models.
#[pyfunction]
pub(crate) fn model_names() -> Vec<&'static str> {
    ModelRegistry::default().names().map(hopedgn::ModelName::as_str).collect()
}
