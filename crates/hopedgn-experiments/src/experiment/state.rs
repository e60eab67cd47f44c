//! What has become of a cell: its folder, or a run that was kept elsewhere.

use std::fs;
use std::path::{Path, PathBuf};

use ctdg::dataset::write_file;
use serde::{Deserialize, Serialize};

use super::archived_runs::Archived;
use super::Cell;
use super::outcome::{Outcome, fits};
use hopedgn::evaluate::Evaluation;
use hopedgn::metrics::Summary;
use hopedgn::run::{CLASSIFICATION, EVALUATION, MODEL, RunFolder};
use hopedgn::{Error, Result};

const CELL: &str = "cell.json";
const ERROR: &str = "error.txt";

/// How far a cell is.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// Trained with these very settings, and everything that is to follow has been done.
    Done,
    /// Trained; something is still to follow.
    Trained,
    /// A program trains it now.
    Running,
    /// It can be gone on with.
    Interrupted,
    /// It ended with this error.
    Failed(String),
    /// A run with other settings lies in its folder.
    Changed,
    /// Its data are not there; how to get them.
    Missing(String),
    /// Nothing yet.
    Waiting,
}

/// What is done for a cell, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// `hopedgn train`.
    Train,
    /// `hopedgn evaluate`, whose answer is kept.
    Evaluate,
    /// `hopedgn classify`, which keeps its answer itself.
    Classify,
}

/// A cell and what there is of it.
#[derive(Debug, Clone)]
pub struct Found {
    /// The cell.
    pub cell: Cell,
    /// Where its run lies, or will.
    pub folder: PathBuf,
    /// How far it is.
    pub state: State,
    /// Results of the run, once it is trained.
    pub outcome: Option<Box<Outcome>>,
    /// Where its results come from, if not from a run folder.
    pub archived: Option<Archived>,
}

/// Written beside the summary of a finished cell.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    cell: String,
    hash: String,
}

impl State {
    /// In a few words.
    #[must_use]
    pub fn title(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Trained => "not evaluated",
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Failed(_) => "failed",
            Self::Changed => "settings changed",
            Self::Missing(_) => "missing data",
            Self::Waiting => "not run",
        }
    }
}

/// What an error says, on one line: its first, or the last of what was said where none begins so.
#[must_use]
pub fn reason(error: &str) -> &str {
    let mut lines = error.trim().lines();
    match lines.next().and_then(|first| first.strip_prefix("error: ")) {
        Some(reason) => reason,
        None => error.trim().lines().last().unwrap_or_default(),
    }
}

impl Found {
    /// What lies in the folder of `cell` below `out`.
    pub fn of(cell: &Cell, out: &Path) -> Result<Self> {
        let folder = out.join(&cell.name);
        let nothing =
            |state| Self { cell: cell.clone(), folder: folder.clone(), state, outcome: None, archived: None };
        let error = fs::read_to_string(folder.join(ERROR)).ok().map(State::Failed);
        let Ok(run) = RunFolder::open(&folder) else { return Ok(nothing(error.unwrap_or(State::Waiting))) };
        if run.config().and_then(|config| cell.hash_of(&config)).ok().as_ref() != Some(&cell.hash) {
            // Nobody moves a folder that a program is at work in.
            return Ok(nothing(if run.lock().is_ok() { State::Changed } else { State::Running }));
        }
        if let Some(found) = Self::finished(cell, &folder) {
            if recorded_hash(&folder).as_ref() != Some(&cell.hash) {
                // The program ended between the two files.
                found.write_record()?;
            }
            return Ok(found);
        }
        if run.lock().is_err() {
            return Ok(nothing(State::Running));
        }
        Ok(nothing(error.unwrap_or(State::Interrupted)))
    }

    /// The same cell as its folder is now.
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

    /// The run in `folder` as that of `cell`, whatever its settings, if it has ended.
    pub(super) fn finished(cell: &Cell, folder: &Path) -> Option<Self> {
        Some(Self::with_outcome(cell, folder, Outcome::read(folder)?))
    }

    /// The run in `folder` with these results, of which those stay that were asked for as `cell` asks.
    pub(super) fn with_outcome(cell: &Cell, folder: &Path, mut outcome: Outcome) -> Self {
        let Cell { evaluate, model, .. } = cell;
        outcome.evaluation =
            outcome.evaluation.filter(|found| evaluate.is_none_or(|wanted| fits(found, &wanted, model.as_str())));
        outcome.classification = outcome.classification.filter(|found| cell.is_usual(found));
        let outcome = Some(Box::new(outcome));
        let (cell, folder) = (cell.clone(), folder.to_owned());
        let mut found = Self { cell, folder, state: State::Done, outcome, archived: None };
        if found.next_step().is_some() {
            let error = fs::read_to_string(found.folder.join(ERROR)).ok();
            found.state = error.map_or(State::Trained, State::Failed);
        }
        found
    }

    /// What is to be done next; nothing when all is.
    #[must_use]
    pub fn next_step(&self) -> Option<Step> {
        let Some(outcome) = &self.outcome else { return Some(Step::Train) };
        if self.cell.evaluate.is_some() && outcome.evaluation.is_none() {
            return Some(Step::Evaluate);
        }
        (self.cell.classify && outcome.classification.is_none()).then_some(Step::Classify)
    }

    /// Whether everything has been done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether the weights are there that whatever follows training needs.
    #[must_use]
    pub fn has_weights(&self) -> bool {
        self.folder.join(MODEL).is_file()
    }

    fn write_record(&self) -> Result<()> {
        let record = Record { cell: self.cell.name.clone(), hash: self.cell.hash.clone() };
        let file = self.folder.join(CELL);
        let text = serde_json::to_string_pretty(&record)
            .map_err(|error| Error::Damaged { file: file.clone(), detail: error.to_string() })?;
        Ok(write_file(&file, text + "\n")?)
    }

    /// Makes the folder fit for a new run or for going on, and says which: a run with other settings is moved out of the
    /// way; an old error, and what was said of weights that will change, are forgotten.
    pub fn prepare(&self) -> Result<bool> {
        let failed = |action| move |source| Error::from(ctdg::Error::io(&self.folder, action, source));
        if self.state == State::Changed {
            let beside = |n: usize| self.folder.with_file_name(format!("{}.before-{n}", self.cell.name));
            let free = (1..1_000_000).map(beside).find(|path| !path.exists()).unwrap_or_else(|| beside(0));
            fs::rename(&self.folder, free).map_err(failed("move"))?;
        }
        // Where there is none, nothing is to be removed.
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

    /// Keeps what `hopedgn evaluate --json` said of the run, if that is what was asked for.
    pub fn keep_evaluation(&self, document: &str) -> Result<()> {
        let file = self.folder.join(EVALUATION);
        let damaged = |detail: String| Error::Damaged { file: file.clone(), detail };
        let read: Evaluation = serde_json::from_str(document).map_err(|error| damaged(error.to_string()))?;
        if self.cell.evaluate.is_some_and(|wanted| !fits(&read, &wanted, self.cell.model.as_str())) {
            return Err(damaged("found an evaluation with other negatives or ranks than were asked for".to_owned()));
        }
        Ok(write_file(&file, document)?)
    }

    /// Writes an error beside what there is of the run.
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

/// The hash that was written beside the summary of a cell.
pub(super) fn recorded_hash(folder: &Path) -> Option<String> {
    let text = fs::read_to_string(folder.join(CELL)).ok()?;
    serde_json::from_str::<Record>(&text).ok().map(|record| record.hash)
}
