//! What has become of a cell: its folder, or a run that was kept elsewhere.

use std::fs;
use std::path::{Path, PathBuf};

use ctdg::dataset::write_file;
use serde::{Deserialize, Serialize};

use super::Cell;
use super::grid::hash;
use crate::config::data_stem;
use crate::record::Summary;
use crate::run::{Manifest, RunFolder};
use crate::{Error, Result};

const CELL: &str = "cell.json";
const ERROR: &str = "error.txt";

/// How far a cell is.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// Trained and tested with these very settings.
    Done(Box<Summary>),
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

/// A cell and what there is of it.
#[derive(Debug, Clone)]
pub struct Found {
    /// The cell.
    pub cell: Cell,
    /// Where its run lies, or will.
    pub folder: PathBuf,
    /// How far it is.
    pub state: State,
}

/// Written beside the summary of a finished cell.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    cell: String,
    hash: String,
}

impl State {
    /// In one word or two.
    #[must_use]
    pub fn title(&self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Failed(_) => "failed",
            Self::Changed => "settings changed",
            Self::Missing(_) => "missing data",
            Self::Waiting => "not run",
        }
    }
}

impl Found {
    /// What lies in the folder of `cell` below `out`.
    pub fn of(cell: &Cell, out: &Path) -> Result<Self> {
        let folder = out.join(&cell.name);
        let state = Self::state(cell, &folder)?;
        Ok(Self { cell: cell.clone(), folder, state })
    }

    fn state(cell: &Cell, folder: &Path) -> Result<State> {
        let error = fs::read_to_string(folder.join(ERROR)).ok().map(State::Failed);
        let Ok(run) = RunFolder::open(folder) else { return Ok(error.unwrap_or(State::Waiting)) };
        if run.config().and_then(|config| hash(&config, &cell.data)).ok().as_ref() != Some(&cell.hash) {
            return Ok(State::Changed);
        }
        if let Ok(Some(summary)) = run.summary() {
            let record = fs::read_to_string(folder.join(CELL)).ok();
            let record = record.and_then(|text| serde_json::from_str::<Record>(&text).ok());
            if record.is_none_or(|record| record.hash != cell.hash) {
                // The program ended between the two files.
                Self::write_record(cell, folder)?;
            }
            return Ok(State::Done(Box::new(summary)));
        }
        if run.lock().is_err() {
            return Ok(State::Running);
        }
        Ok(error.unwrap_or(State::Interrupted))
    }

    fn write_record(cell: &Cell, folder: &Path) -> Result<()> {
        let record = Record { cell: cell.name.clone(), hash: cell.hash.clone() };
        let text = serde_json::to_string_pretty(&record)
            .map_err(|error| Error::Damaged { file: folder.join(CELL), detail: error.to_string() })?;
        Ok(write_file(&folder.join(CELL), text + "\n")?)
    }

    /// Makes the folder fit for a new run or for going on, and says which: a run with other settings is moved out of the
    /// way, an old error is forgotten.
    pub fn prepare(&self) -> Result<bool> {
        let failed = |action| move |source| Error::from(ctdg::Error::io(&self.folder, action, source));
        if self.state == State::Changed {
            let beside = |n: usize| self.folder.with_file_name(format!("{}.before-{n}", self.cell.name));
            let free = (1..1_000_000).map(beside).find(|path| !path.exists()).unwrap_or_else(|| beside(0));
            fs::rename(&self.folder, free).map_err(failed("move"))?;
        }
        // Where there is none, nothing is to be removed.
        let _ = fs::remove_file(self.folder.join(ERROR));
        if RunFolder::open(&self.folder).is_ok() {
            return Ok(true);
        }
        let _ = fs::remove_dir(&self.folder);
        let parent = self.folder.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(failed("create"))?;
        Ok(false)
    }

    /// Writes an error beside what there is of the run.
    pub fn write_error(&self, text: &str) -> Result<()> {
        fs::create_dir_all(&self.folder).map_err(|source| ctdg::Error::io(&self.folder, "create", source))?;
        Ok(write_file(&self.folder.join(ERROR), text)?)
    }

    /// The final metrics.
    #[must_use]
    pub fn summary(&self) -> Option<&Summary> {
        match &self.state {
            State::Done(summary) => Some(summary),
            _ => None,
        }
    }

    /// With what it was made, where that was kept.
    #[must_use]
    pub fn manifest(&self) -> Option<Manifest> {
        RunFolder::open(&self.folder).ok()?.manifest().ok()
    }
}

/// Runs that were kept, whatever their folders are called: each is known by the hash of its settings.
#[derive(Debug, Default)]
pub struct Kept {
    runs: Vec<(String, PathBuf, Summary)>,
}

impl Kept {
    /// Finished runs in `folders`, each of which is one or has some in it.
    pub fn read(folders: &[PathBuf]) -> Result<Self> {
        let mut kept = Self::default();
        for folder in folders {
            let before = kept.runs.len();
            if folder.join("config.toml").is_file() {
                kept.take(folder)?;
            } else {
                let entries = fs::read_dir(folder).map_err(|source| ctdg::Error::io(folder, "read", source))?;
                let mut inner: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
                inner.sort();
                for run in inner.iter().filter(|path| path.join("config.toml").is_file()) {
                    kept.take(run)?;
                }
                if kept.runs.len() == before {
                    let detail =
                        "found no finished run in it, expected folders with config.toml and summary.json; name another";
                    return Err(Error::Run { folder: folder.clone(), detail: detail.to_owned() });
                }
            }
        }
        Ok(kept)
    }

    fn take(&mut self, folder: &Path) -> Result<()> {
        let run = RunFolder::open(folder)?;
        if let Some(summary) = run.summary()? {
            let config = run.config()?;
            self.runs.push((hash(&config, data_stem(&config.data))?, folder.to_owned(), summary));
        }
        Ok(())
    }

    /// The run of `cell`, if it is among these; two are an error, since nobody would know whose number is shown.
    pub fn find(&self, cell: &Cell) -> Result<Option<Found>> {
        let mut fitting = self.runs.iter().filter(|(hash, ..)| *hash == cell.hash);
        let Some((_, folder, summary)) = fitting.next() else { return Ok(None) };
        if let Some((_, other, _)) = fitting.next() {
            let detail = format!(
                "found the same settings in {}, expected one run of cell {}; name the folders of the runs that are meant one \
                 by one with --results",
                other.display(),
                cell.name
            );
            return Err(Error::Run { folder: folder.clone(), detail });
        }
        Ok(Some(Found { cell: cell.clone(), folder: folder.clone(), state: State::Done(Box::new(summary.clone())) }))
    }
}
