//! State of a cell: its run folder, or an archived run.

use std::fs;
use std::path::{Path, PathBuf};

use ctdg::dataset::write_file;
use serde::{Deserialize, Serialize};

use super::archived_runs::Archived;
use super::outcome::{Outcome, fitting};
use super::{Cell, Content};
use hopedgn::file_format::{from_json, to_document};
use hopedgn::metrics::Summary;
use hopedgn::run::{CLASSIFICATION, EVALUATION, MODEL, RunFolder};
use hopedgn::{Error, Result};

const CELL: &str = "cell.json";
const ERROR: &str = "error.txt";

/// State of a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// Trained with these settings, evaluated and classified as requested.
    Done,
    /// Trained; evaluation or classification is missing.
    Trained,
    /// A process is training it.
    Running,
    /// It can be resumed.
    Interrupted,
    /// It failed with this error.
    Failed(String),
    /// Its folder holds a run with other settings.
    Changed,
    /// Its folder holds a run on other events than those of the dataset at hand.
    OtherData,
    /// Its dataset is missing; how to get it.
    Missing(String),
    /// Not started.
    Waiting,
}

/// Steps of a cell, in order; each saves its results in the run folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// `hopedgn train`.
    Train,
    /// `hopedgn evaluate`.
    Evaluate,
    /// `hopedgn classify`.
    Classify,
}

/// A cell with its state and results.
#[derive(Debug, Clone)]
pub struct Found {
    /// The cell.
    pub cell: Cell,
    /// Its run folder, which may not exist yet.
    pub folder: PathBuf,
    /// Its state.
    pub state: State,
    /// Results of the run, once it is trained.
    pub outcome: Option<Box<Outcome>>,
    /// What the run was trained on, where it recorded that.
    pub content: Option<Content>,
    /// Where its results come from, if not from a run folder.
    pub archived: Option<Archived>,
}

/// `cell.json` of a finished cell.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    cell: String,
    hash: String,
}

impl State {
    /// Short name.
    #[must_use]
    pub fn title(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Trained => "not evaluated",
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Failed(_) => "failed",
            Self::Changed => "settings changed",
            Self::OtherData => "data changed",
            Self::Missing(_) => "missing data",
            Self::Waiting => "not run",
        }
    }
}

/// An error on one line: the first line if it starts with `error: `, otherwise the last.
#[must_use]
pub fn reason(error: &str) -> &str {
    let mut lines = error.trim().lines();
    match lines.next().and_then(|first| first.strip_prefix("error: ")) {
        Some(reason) => reason,
        None => error.trim().lines().last().unwrap_or_default(),
    }
}

impl Found {
    /// The state of `cell`, whose folder is below `out`.
    pub fn of(cell: &Cell, out: &Path) -> Result<Self> {
        let folder = out.join(&cell.name);
        let nothing = |state| {
            let (cell, folder) = (cell.clone(), folder.clone());
            Self { cell, folder, state, outcome: None, content: None, archived: None }
        };
        let error = fs::read_to_string(folder.join(ERROR)).ok().map(State::Failed);
        let Ok(run) = RunFolder::open(&folder) else { return Ok(nothing(error.unwrap_or(State::Waiting))) };
        let has_settings =
            run.config(&cell.registry).and_then(|config| cell.hash_of(&config)).ok().as_ref() == Some(&cell.hash);
        let read = run.manifest().ok().and_then(|manifest| manifest.data.read);
        let is_read_alike = cell.is_read_with(read.as_ref());
        let content = Content::of_run(&run);
        if !has_settings || !is_read_alike || !cell.is_trained_on(content.as_ref()) {
            let changed = if has_settings && is_read_alike { State::OtherData } else { State::Changed };
            // A folder in use is not moved.
            return Ok(nothing(if run.lock().is_ok() { changed } else { State::Running }));
        }
        if let Some(found) = Self::finished(cell, &folder) {
            if recorded_hash(&folder).as_ref() != Some(&cell.hash) {
                // The process ended between writing the two files.
                found.write_record()?;
            }
            return Ok(found);
        }
        if run.lock().is_err() {
            return Ok(nothing(State::Running));
        }
        Ok(nothing(error.unwrap_or(State::Interrupted)))
    }

    /// Whether the folder of `cell` below `out` holds a run that recorded what it was trained on.
    #[must_use]
    pub fn has_content(cell: &Cell, out: &Path) -> bool {
        RunFolder::open(&out.join(&cell.name)).is_ok_and(|run| Content::of_run(&run).is_some())
    }

    /// The cell with its folder read again.
    pub fn again(&self) -> Result<Self> {
        if self.archived.is_some() {
            return Ok(self.clone());
        }
        let is_own = self.folder.file_name().is_some_and(|name| *name == *self.cell.name);
        match (is_own, self.folder.parent()) {
            (true, Some(out)) => Self::of(&self.cell, out),
            _ => Ok(Self::finished(&self.cell, &self.folder).unwrap_or_else(|| self.clone())),
        }
    }

    /// The finished run in `folder` as that of `cell`, whatever its settings.
    pub(super) fn finished(cell: &Cell, folder: &Path) -> Option<Self> {
        let mut found = Self::with_outcome(cell, folder, Outcome::read(folder)?);
        found.content = RunFolder::open(folder).ok().as_ref().and_then(Content::of_run);
        Some(found)
    }

    /// The run in `folder` with these results; evaluations and classifications with other settings than requested are dropped.
    pub(super) fn with_outcome(cell: &Cell, folder: &Path, mut outcome: Outcome) -> Self {
        let Cell { evaluate, model, .. } = cell;
        outcome.evaluation = match evaluate {
            Some(wanted) => outcome.evaluation.and_then(|found| fitting(found, wanted, model.as_str())),
            None => outcome.evaluation,
        };
        outcome.classification = outcome.classification.filter(|found| cell.is_usual(found));
        let outcome = Some(Box::new(outcome));
        let (cell, folder) = (cell.clone(), folder.to_owned());
        let mut found = Self { cell, folder, state: State::Done, outcome, content: None, archived: None };
        if found.next_step().is_some() {
            let error = fs::read_to_string(found.folder.join(ERROR)).ok();
            found.state = error.map_or(State::Trained, State::Failed);
        }
        found
    }

    /// The next step; `None` when the cell is done.
    #[must_use]
    pub fn next_step(&self) -> Option<Step> {
        let Some(outcome) = &self.outcome else { return Some(Step::Train) };
        if self.cell.evaluate.is_some() && outcome.evaluation.is_none() {
            return Some(Step::Evaluate);
        }
        (self.cell.classify && outcome.classification.is_none()).then_some(Step::Classify)
    }

    /// Whether all steps are done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether the checkpoint exists that evaluation and classification need.
    #[must_use]
    pub fn has_weights(&self) -> bool {
        self.folder.join(MODEL).is_file()
    }

    fn write_record(&self) -> Result<()> {
        let record = Record { cell: self.cell.name.clone(), hash: self.cell.hash.clone() };
        let file = self.folder.join(CELL);
        let text =
            to_document(&record).map_err(|error| Error::Damaged { file: file.clone(), detail: error.to_string() })?;
        Ok(write_file(&file, text)?)
    }

    /// Prepares the folder and returns whether there is a run to resume. A run with other settings or on other data is moved aside; an old error
    /// and results of weights that will change are removed.
    pub fn prepare(&self) -> Result<bool> {
        let failed = |action| move |source| Error::from(ctdg::Error::io(&self.folder, action, source));
        if matches!(self.state, State::Changed | State::OtherData) {
            let beside = |n: usize| self.folder.with_file_name(format!("{}.before-{n}", self.cell.name));
            let free = (1..1_000_000).map(beside).find(|path| !path.exists()).unwrap_or_else(|| beside(0));
            fs::rename(&self.folder, free).map_err(failed("move"))?;
        }
        // A missing file is fine.
        let _ = fs::remove_file(self.folder.join(ERROR));
        if self.outcome.is_none() {
            let _ = fs::remove_file(self.folder.join(EVALUATION));
            let _ = fs::remove_file(self.folder.join(CLASSIFICATION));
        }
        if RunFolder::open(&self.folder).is_ok() {
            return Ok(true);
        }
        let _ = fs::remove_dir(&self.folder);
        let parent = self.folder.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(failed("create"))?;
        Ok(false)
    }

    /// Saves an error in the run folder.
    pub fn write_error(&self, text: &str) -> Result<()> {
        fs::create_dir_all(&self.folder).map_err(|source| ctdg::Error::io(&self.folder, "create", source))?;
        Ok(write_file(&self.folder.join(ERROR), text)?)
    }

    /// The final metrics of training.
    #[must_use]
    pub fn summary(&self) -> Option<&Summary> {
        self.outcome.as_ref().map(|outcome| &outcome.summary)
    }
}

/// The hash in `cell.json`.
pub(super) fn recorded_hash(folder: &Path) -> Option<String> {
    let text = fs::read_to_string(folder.join(CELL)).ok()?;
    from_json::<Record>(&folder.join(CELL), &text).ok().map(|record| record.hash)
}
