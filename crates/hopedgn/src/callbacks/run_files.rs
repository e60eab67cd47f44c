//! Callbacks that write files for people: `report.html`, and event files for `TensorBoard`.

use std::path::{Path, PathBuf};

use ctdg::dataset::write_file;
use ctdg::summary::Summary as DataSummary;

use super::report::{Report, html};
use super::tensorboard::EventWriter;
use super::{Callback, EpochEnd, TrainEnd, TrainStart};
use crate::metrics::{EVALUATION, EpochRecord, Evaluation, Summary};
use crate::{Result, system};

/// Rewrites `report.html` after every epoch: a self-contained page with curves, metrics and settings; at the end also with what
/// `evaluation.json` in the same folder holds.
///
/// ```
/// # use hopedgn::Events;
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// use hopedgn::{LinkPredictor, callbacks::HtmlReport};
///
/// # let folder = tempfile::tempdir()?;
/// let report = HtmlReport::new(folder.path());
/// LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).callback(report).fit(&events)?;
/// assert!(std::fs::read_to_string(folder.path().join("report.html"))?.contains("HopeDGN on events"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HtmlReport {
    path: PathBuf,
    run: Option<RunFacts>,
}

/// What stays the same during a session.
#[derive(Debug)]
struct RunFacts {
    title: String,
    config_toml: String,
    data: DataSummary,
}

impl HtmlReport {
    /// Writes `report.html` in `folder`.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { path: folder.join("report.html"), run: None }
    }

    fn write(&self, history: &[EpochRecord], summary: Option<&Summary>) -> Result<()> {
        let Some(RunFacts { title, config_toml, data }) = &self.run else { return Ok(()) };
        // An evaluation belongs to the weights of a complete run; one that cannot be read counts as missing.
        let text = summary.and_then(|_| std::fs::read_to_string(self.path.with_file_name(EVALUATION)).ok());
        let evaluation: Option<Evaluation> = text.and_then(|text| serde_json::from_str(&text).ok());
        let evaluation = evaluation.as_ref();
        let report = Report { title, config_toml, data: Some(data), history, summary, evaluation };
        Ok(write_file(&self.path, html(&report))?)
    }
}

impl Callback for HtmlReport {
    fn on_train_start(&mut self, start: &TrainStart<'_>) -> Result<()> {
        let config = start.config;
        self.run = Some(RunFacts {
            title: format!("{} on {}, seed {}", config.model.name().title(), config.data, config.seed),
            config_toml: config.to_toml()?,
            data: DataSummary::of(start.task.stream),
        });
        Ok(())
    }

    fn on_epoch_end(&mut self, end: &EpochEnd<'_>) -> Result<()> {
        self.write(end.history, None)
    }

    fn on_train_end(&mut self, end: &TrainEnd<'_>) -> Result<()> {
        self.write(end.history, end.summary)
    }
}

/// Appends loss, validation metrics and speed of every epoch to an event file of `TensorBoard`.
///
/// ```
/// # use hopedgn::Events;
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// use hopedgn::{LinkPredictor, callbacks::TensorBoard};
///
/// # let folder = tempfile::tempdir()?;
/// let board = TensorBoard::new(folder.path()); // then: tensorboard --logdir FOLDER
/// LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).callback(board).fit(&events)?;
/// assert!(folder.path().join("events.out.tfevents.0.hopedgn").metadata()?.len() > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TensorBoard {
    path: PathBuf,
    writer: Option<EventWriter>,
}

impl TensorBoard {
    /// Writes `events.out.tfevents.0.hopedgn` in `folder`.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { path: folder.join("events.out.tfevents.0.hopedgn"), writer: None }
    }
}

impl Callback for TensorBoard {
    fn on_train_start(&mut self, start: &TrainStart<'_>) -> Result<()> {
        self.writer = Some(EventWriter::create(&self.path, system::wall_time(), start.history)?);
        Ok(())
    }

    fn on_epoch_end(&mut self, end: &EpochEnd<'_>) -> Result<()> {
        self.writer.as_mut().map_or(Ok(()), |writer| writer.epoch(system::wall_time(), end.record))
    }
}
