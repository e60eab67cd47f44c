//! Callbacks of training and evaluation, called in Python.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hopedgn::callbacks::{Callback, EpochEnd, Stage, TrainStart};
use hopedgn::{Error, Result};
use pyo3::prelude::*;

/// What of progress is passed on: at most one call in this time, so that Python's lock is rarely taken.
const PAUSE: Duration = Duration::from_millis(100);

/// Calls a Python function `(what, details)` and stops when it raised an exception or `stop` is set.
pub(crate) struct PythonCallback<'a> {
    pub(crate) function: Option<Py<PyAny>>,
    pub(crate) stop: &'a AtomicBool,
    /// The exception that the function raised.
    pub(crate) raised: &'a Mutex<Option<PyErr>>,
    last: Option<Instant>,
}

impl<'a> PythonCallback<'a> {
    pub(crate) fn new(function: Option<Py<PyAny>>, stop: &'a AtomicBool, raised: &'a Mutex<Option<PyErr>>) -> Self {
        Self { function, stop, raised, last: None }
    }

    fn call(&self, what: &str, details: &str) {
        let Some(function) = &self.function else { return };
        let called = Python::attach(|py| function.call1(py, (what, details)).map(|_| ()));
        if let Err(error) = called {
            self.stop.store(true, Ordering::SeqCst);
            if let Ok(mut raised) = self.raised.lock() {
                raised.get_or_insert(error);
            }
        }
    }

    fn check(&self) -> Result<()> {
        if self.stop.load(Ordering::SeqCst) { Err(Error::Interrupted) } else { Ok(()) }
    }
}

impl Callback for PythonCallback<'_> {
    fn on_train_start(&mut self, start: &TrainStart<'_>) -> Result<()> {
        let details = serde_json::json!({
            "epochs": start.config.train.epochs, "done": start.history.len(), "events": start.task.split.train.len(),
        });
        self.call("start", &details.to_string());
        Ok(())
    }

    fn on_progress(&mut self, stage: Stage, done: usize, total: usize) {
        let is_due = self.last.is_none_or(|last| last.elapsed() >= PAUSE);
        if self.function.is_none() || !(is_due || done == total) {
            return;
        }
        self.last = Some(Instant::now());
        let stage = match stage {
            Stage::Train => "train",
            Stage::Evaluate => "evaluate",
            Stage::Rank => "rank",
            Stage::Embed => "embed",
            Stage::Classify => "classify",
        };
        self.call("progress", &serde_json::json!({ "stage": stage, "done": done, "total": total }).to_string());
    }

    fn on_epoch_end(&mut self, end: &EpochEnd<'_>) -> Result<()> {
        self.call("epoch", &serde_json::to_string(end.record).unwrap_or_default());
        // The epoch is complete: what its callback raised ends training here.
        if self.raised.lock().is_ok_and(|raised| raised.is_some()) { self.check() } else { Ok(()) }
    }

    fn should_stop(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}
