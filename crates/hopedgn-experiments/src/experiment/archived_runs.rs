//! Runs by the hash of their settings, whatever their folders are called.

use std::fs;
use std::path::{Path, PathBuf};

use super::grid::hash;
use super::state::recorded_hash;
use super::{Cell, Found};
use hopedgn::config::data_stem;
use hopedgn::run::RunFolder;
use hopedgn::{Error, Result};

/// Runs that were kept elsewhere, or made for other cells.
#[derive(Debug, Default)]
pub struct ArchivedRun {
    runs: Vec<Run>,
}

#[derive(Debug)]
struct Run {
    hash: String,
    folder: PathBuf,
    /// Which of the names it was found under.
    named: usize,
}

impl ArchivedRun {
    /// Finished runs in the folders of each name, each of which is one or has some in it.
    pub fn read(names: &[Vec<PathBuf>]) -> Result<Self> {
        let mut kept = Self::default();
        let folders = names.iter().enumerate().flat_map(|(named, folders)| folders.iter().map(move |one| (named, one)));
        for (named, folder) in folders {
            let before = kept.runs.len();
            if folder.join("config.toml").is_file() {
                kept.take(folder, named)?;
                continue;
            }
            for run in inside(folder).map_err(|source| ctdg::Error::io(folder, "read", source))? {
                kept.take(&run, named)?;
            }
            if kept.runs.len() == before {
                let detail =
                    "found no finished run in it, expected folders with config.toml and summary.json; name another";
                return Err(Error::Run { folder: folder.clone(), detail: detail.to_owned() });
            }
        }
        Ok(kept)
    }

    fn take(&mut self, folder: &Path, named: usize) -> Result<()> {
        let run = RunFolder::open(folder)?;
        if run.summary()?.is_some() {
            let config = run.config()?;
            self.runs.push(Run { hash: hash(&config, data_stem(&config.data))?, folder: folder.to_owned(), named });
        }
        Ok(())
    }

    /// Finished cells of experiments whose runs lie in `folders`, as far as they can be read.
    #[must_use]
    pub fn of_experiments(folders: &[PathBuf]) -> Self {
        let mut runs = Vec::new();
        for folder in folders {
            for folder in inside(folder).unwrap_or_default() {
                let named = runs.len();
                runs.extend(recorded_hash(&folder).map(|hash| Run { hash, folder, named }));
            }
        }
        Self { runs }
    }

    /// The run of `cell`, if it is among these: one with everything before one that was only trained, then the one
    /// that was named first. Two under one name are an error, since nobody would know whose number is shown.
    pub fn find(&self, cell: &Cell) -> Result<Option<Found>> {
        // Trained further since, a run may have other settings than it was recorded with.
        let is_still = |run: &&Run| {
            let config = RunFolder::open(&run.folder).and_then(|run| run.config());
            config.and_then(|config| cell.hash_of(&config)).is_ok_and(|hash| hash == cell.hash)
        };
        let fitting = self.runs.iter().filter(|run| run.hash == cell.hash).filter(is_still);
        let mut found: Vec<(usize, Found)> =
            fitting.filter_map(|run| Some((run.named, Found::finished(cell, &run.folder)?))).collect();
        found.sort_by_key(|(named, found)| (!found.is_done(), *named));
        if let [(a, first), (b, second), ..] = found.as_slice()
            && a == b
            && first.is_done() == second.is_done()
        {
            let detail = format!(
                "found the same settings in {}, expected one run of cell {}; name the folders of the runs that are meant one \
                 by one with --results",
                second.folder.display(),
                cell.name
            );
            return Err(Error::Run { folder: first.folder.clone(), detail });
        }
        Ok(found.into_iter().next().map(|(_, found)| found))
    }
}

/// The folders of runs in a folder, by name.
fn inside(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut inner: Vec<PathBuf> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    inner.sort();
    inner.retain(|path| path.join("config.toml").is_file());
    Ok(inner)
}
