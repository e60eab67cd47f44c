//! Archived runs: a text file with one finished run a line, looked up beside run folders by the hash of their settings.

use std::fs;
use std::path::{Path, PathBuf};

use ctdg::dataset::{ReadOptions, write_file};
use serde::{Deserialize, Serialize};

use super::grid::hash;
use super::outcome::Outcome;
use super::state::recorded_hash;
use super::{Cell, Content, Found};
use hopedgn::config::{Config, ModelRegistry, data_stem};
use hopedgn::file_format::{from_json, to_line};
use hopedgn::run::RunFolder;
use hopedgn::{Error, Result};

/// The file extension of an archive.
const EXTENSION: &str = "jsonl";

/// One line of an archive.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Line {
    /// The name of its folder.
    run: String,
    /// `config.toml`, key by key.
    config: toml::Table,
    /// How its data was read, unless by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read: Option<ReadOptions>,
    /// What it was trained on; missing in archives of version 0.2 and earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<Content>,
    #[serde(flatten)]
    outcome: Outcome,
}

impl Line {
    /// The finished run in `folder`; nothing while it trains.
    fn of_folder(folder: &Path, registry: &ModelRegistry) -> Result<Option<Self>> {
        let run = RunFolder::open(folder)?;
        let Some(outcome) = Outcome::read(folder).filter(|_| matches!(run.summary(), Ok(Some(_)))) else {
            // A summary that cannot be read is an error, a missing one is not.
            return run.summary().map(|_| None);
        };
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = folder.join("config.toml");
        let config = toml::from_str(&run.config(registry)?.to_toml()?).map_err(|error| damaged(&file, &error))?;
        let (read, content) = (read_options(&run), Content::of_run(&run));
        Ok(Some(Self { run: name, config, read, content, outcome }))
    }

    fn config(&self, file: &Path, registry: &ModelRegistry) -> Result<Config> {
        let text = toml::to_string(&self.config).map_err(|error| damaged(file, &error))?;
        Config::from_toml_with(registry, &text, &format!("{}, run {}", file.display(), self.run))
    }
}

/// Where in an archive a run is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archived {
    /// The archive.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
}

/// Finished runs of other experiments, in folders and archives.
#[derive(Debug, Default)]
pub struct RunArchive {
    runs: Vec<Run>,
}

#[derive(Debug)]
struct Run {
    hashes: Hashes,
    /// Of a run in an archive: the archive, then its name.
    folder: PathBuf,
    /// Position of the argument that it was found under.
    source: usize,
    /// How its data was read, unless by default.
    read: Option<ReadOptions>,
    /// What it was trained on, where that was recorded.
    content: Option<Content>,
    archived: Option<(Archived, Box<Outcome>)>,
}

/// Hashes of a run's settings.
#[derive(Debug)]
struct Hashes {
    /// With the name of its data.
    named: String,
    /// Whatever its data is called.
    unnamed: String,
}

impl Hashes {
    fn of(config: &Config) -> Result<Self> {
        Ok(Self { named: hash(config, &data_name(&config.data))?, unnamed: hash(config, UNNAMED)? })
    }
}

/// Stands for the name of any dataset.
const UNNAMED: &str = "";

/// The name of a dataset by its file, with DyGLib's `ml_CanParl.csv` called as everywhere else.
fn data_name(data: &str) -> String {
    let stem = data_stem(data);
    stem.strip_prefix("ml_").map_or_else(|| stem.to_owned(), str::to_lowercase)
}

impl RunArchive {
    /// Finished runs under each argument, which stands for archives, run folders and folders of those. Their models are those of
    /// `registry`.
    pub fn read(sources: &[Vec<PathBuf>], registry: &ModelRegistry) -> Result<Self> {
        let mut archive = Self::default();
        let paths = sources.iter().enumerate().flat_map(|(source, paths)| paths.iter().map(move |path| (source, path)));
        for (source, path) in paths {
            let before = archive.runs.len();
            check_exists(path)?;
            if path.extension().is_some_and(|extension| extension == EXTENSION) {
                archive.add_archive(path, source, registry)?;
                continue;
            }
            if path.join("config.toml").is_file() {
                archive.add_folder(path, source, registry)?;
                continue;
            }
            for run in run_folders(path).map_err(|source| ctdg::Error::io(path, "read", source))? {
                archive.add_folder(&run, source, registry)?;
            }
            if archive.runs.len() == before {
                return Err(no_run(path));
            }
        }
        Ok(archive)
    }

    fn add_folder(&mut self, folder: &Path, source: usize, registry: &ModelRegistry) -> Result<()> {
        let run = RunFolder::open(folder)?;
        if run.summary()?.is_some() {
            let hashes = Hashes::of(&run.config(registry)?)?;
            let (read, content) = (read_options(&run), Content::of_run(&run));
            self.runs.push(Run { hashes, folder: folder.to_owned(), source, read, content, archived: None });
        }
        Ok(())
    }

    fn add_archive(&mut self, file: &Path, source: usize, registry: &ModelRegistry) -> Result<()> {
        let text = fs::read_to_string(file).map_err(|source| ctdg::Error::io(file, "read", source))?;
        for (number, text) in text.lines().enumerate() {
            let line: Line = from_json(file, text).map_err(|error| match error {
                Error::Damaged { detail, .. } => damaged(file, &format!("line {}: {detail}", number + 1)),
                newer => newer,
            })?;
            let config = line.config(file, registry)?;
            let archived = Archived { file: file.to_owned(), line: number + 1 };
            self.runs.push(Run {
                hashes: Hashes::of(&config)?,
                folder: file.join(&line.run),
                source,
                read: line.read,
                content: line.content,
                archived: Some((archived, Box::new(line.outcome))),
            });
        }
        Ok(())
    }

    /// Finished cells of experiments whose runs are in `folders`; what cannot be read is left out.
    #[must_use]
    pub fn of_experiments(folders: &[PathBuf], registry: &ModelRegistry) -> Self {
        let mut runs = Vec::new();
        for folder in folders {
            for folder in run_folders(folder).unwrap_or_default() {
                // Hashed again: the settings that are written, and so the hash, may be those of an earlier version.
                let config = RunFolder::open(&folder).and_then(|run| run.config(registry));
                let hashes = config.and_then(|config| Hashes::of(&config));
                if let (Some(_), Ok(hashes)) = (recorded_hash(&folder), hashes) {
                    let source = runs.len();
                    let run = RunFolder::open(&folder).ok();
                    let (read, content) = (run.as_ref().and_then(read_options), run.as_ref().and_then(Content::of_run));
                    runs.push(Run { hashes, folder, source, read, content, archived: None });
                }
            }
        }
        Self { runs }
    }

    /// Whether a run with the settings of `cell` recorded what it was trained on, so that the content of the data at hand matters.
    #[must_use]
    pub fn has_content_for(&self, cell: &Cell) -> bool {
        let unnamed = hash(&cell.config, UNNAMED).unwrap_or_default();
        self.runs.iter().any(|run| run.content.is_some() && run.hashes.unnamed == unnamed)
    }

    /// The run of `cell`, if there is one: on the same events, whatever they are called, or on data of the same name where the content
    /// of either is unknown. A complete one before one that was only trained, then by order of the arguments. Two under one argument
    /// are an error: whose number is shown would be arbitrary.
    pub fn find(&self, cell: &Cell) -> Result<Option<Found>> {
        let unnamed = hash(&cell.config, UNNAMED)?;
        let fitting = self.runs.iter().filter(|run| run.fits(cell, &unnamed));
        let mut found: Vec<(usize, Found)> = fitting.filter_map(|run| Some((run.source, run.found(cell)?))).collect();
        found.sort_by_key(|(source, found)| (!found.is_done(), *source));
        if let [(a, first), (b, second), ..] = found.as_slice()
            && a == b
            && first.is_done() == second.is_done()
        {
            let contents = first.content.as_ref().zip(second.content.as_ref());
            let (differ, remedy) = if contents.is_some_and(|(a, b)| !a.is_same(b)) {
                (", on other data,", "let --data-dir name the data that is meant, or each run one by one")
            } else {
                ("", "name each run that is meant, one by one")
            };
            let detail = format!(
                "found the same settings{differ} in {}, expected one run of cell {}; {remedy}",
                second.folder.display(),
                cell.name
            );
            return Err(Error::Run { folder: first.folder.clone(), detail });
        }
        Ok(found.into_iter().next().map(|(_, found)| found))
    }
}

impl Run {
    /// Whether this is a run of `cell`, whose settings have the hash `unnamed` without the name of the data.
    fn fits(&self, cell: &Cell, unnamed: &str) -> bool {
        if let (Some(own), Some(other), false) = (&self.content, &cell.content, cell.is_smoke) {
            return own.is_same(other) && self.hashes.unnamed == unnamed;
        }
        self.hashes.named == cell.hash && cell.is_read_with(self.read.as_ref())
    }

    fn found(&self, cell: &Cell) -> Option<Found> {
        if let Some((archived, outcome)) = &self.archived {
            let mut found = Found::with_outcome(cell, &self.folder, Outcome::clone(outcome));
            found.archived = Some(archived.clone());
            found.content.clone_from(&self.content);
            return Some(found);
        }
        // Trained further since, a run may have other settings than were recorded.
        let config = RunFolder::open(&self.folder).and_then(|run| run.config(&cell.registry));
        let hash = config.and_then(|config| cell.hash_of(&config));
        if hash.is_ok_and(|hash| hash == cell.hash) { Found::finished(cell, &self.folder) } else { None }
    }
}

/// Writes the finished runs of `folders`, each a run folder or a folder of them, to the archive `file`, sorted by name; returns
/// how many. Runs of an archive that is already there stay, unless one of the same name is among `folders`.
pub fn archive(folders: &[PathBuf], file: &Path, registry: &ModelRegistry) -> Result<usize> {
    let mut lines: Vec<(String, String)> = Vec::new();
    if file.exists() {
        let text = fs::read_to_string(file).map_err(|source| ctdg::Error::io(file, "read", source))?;
        for text in text.lines() {
            let line: Line = from_json(file, text)?;
            lines.push((line.run, text.to_owned()));
        }
    }
    for folder in folders {
        check_exists(folder)?;
        let runs = if folder.join("config.toml").is_file() {
            vec![folder.clone()]
        } else {
            run_folders(folder).map_err(|source| ctdg::Error::io(folder, "read", source))?
        };
        let mut n_finished = 0;
        for run in &runs {
            let Some(line) = Line::of_folder(run, registry)? else { continue };
            n_finished += 1;
            let text = to_line(&line).map_err(|error| damaged(file, &error))?;
            lines.retain(|(name, _)| *name != line.run);
            lines.push((line.run, text));
        }
        if n_finished == 0 {
            return Err(no_run(folder));
        }
    }
    lines.sort();
    let text: String = lines.iter().flat_map(|(_, text)| [text.as_str(), "\n"]).collect();
    write_file(file, text)?;
    Ok(lines.len())
}

/// How the data of a run was read, unless by default.
fn read_options(run: &RunFolder) -> Option<ReadOptions> {
    run.manifest().ok()?.data.read.filter(|options| *options != ReadOptions::default())
}

/// Refuses a name that leads nowhere.
fn check_exists(path: &Path) -> Result<()> {
    if path.exists() {
        return Ok(());
    }
    let detail = "found no such file or folder, expected a run folder, a folder of them, or an archive (.jsonl); correct the name";
    Err(Error::Run { folder: path.to_owned(), detail: detail.to_owned() })
}

fn no_run(folder: &Path) -> Error {
    let detail = "found no finished run in it, expected folders with config.toml and summary.json; name another";
    Error::Run { folder: folder.to_owned(), detail: detail.to_owned() }
}

fn damaged(file: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::Damaged { file: file.to_owned(), detail: error.to_string() }
}

/// The run folders in a folder, by name.
fn run_folders(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut inner: Vec<PathBuf> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    inner.sort();
    inner.retain(|path| path.join("config.toml").is_file());
    Ok(inner)
}
