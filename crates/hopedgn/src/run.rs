//! A run folder: everything a run reads and writes, so that it can be looked at, continued and used.
//!
//! | file | what it holds |
//! |---|---|
//! | `config.toml` | every setting, resolved |
//! | `manifest.json` | program, machine, data and split |
//! | `metrics.jsonl` | one record an epoch |
//! | `model.safetensors` | the best weights so far |
//! | `state.safetensors` | the newest weights, Adam's state and progress: what `--resume` goes on from |
//! | `summary.json` | final metrics, once training is over |
//! | `classification.json` | how well labels are told, once that was asked |
//! | `report.html` | all of it for a person |
//! | `events.out.tfevents.*` | the same for `TensorBoard` |
//!
//! Each file is written beside its place and renamed, in an order that leaves the folder fit to be resumed whenever the
//! program dies: the state names the epochs it knows, and whatever was written ahead of it is written again, the same.

mod classify;
mod manifest;
mod session;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use ctdg::dataset::write_file;
use hopedgn_tensor::Parameters;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::collate::FeatureWidths;
use crate::config::Config;
use crate::memory::MemoryState;
use crate::metrics::{EpochRecord, Summary};
use crate::model::{self, Model};
use crate::{Error, Result};

pub use manifest::{DataRecord, Manifest};
pub(crate) use session::weights_file;
pub use session::{Session, Trained};

const CONFIG: &str = "config.toml";
const MANIFEST: &str = "manifest.json";
const METRICS: &str = "metrics.jsonl";
/// The best weights.
pub const MODEL: &str = "model.safetensors";
const STATE: &str = "state.safetensors";
const SUMMARY: &str = "summary.json";
/// How well labels are told.
pub const CLASSIFICATION: &str = "classification.json";
/// What `hopedgn evaluate --json` said, where an experiment keeps it.
pub const EVALUATION: &str = "evaluation.json";
const LOCK: &str = ".lock";

/// A folder of one run.
#[derive(Debug, Clone)]
pub struct RunFolder {
    path: PathBuf,
}

/// Held while a program writes to a run folder.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

impl RunFolder {
    /// A new folder with its configuration and manifest; it appears with both in it.
    pub fn create(path: &Path, config: &Config, manifest: &Manifest) -> Result<Self> {
        let taken = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        if taken || (path.exists() && !path.is_dir()) {
            return Err(Error::RunFolderTaken { folder: path.to_owned() });
        }
        let failed = |action| move |source| Error::from(ctdg::Error::io(path, action, source));
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(failed("create"))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let draft = parent.join(format!(".{name}.{}.new", std::process::id()));
        fs::create_dir_all(&draft).map_err(failed("create"))?;
        let folder = Self { path: draft.clone() };
        let filled = folder.write(CONFIG, config.to_toml()?).and_then(|()| folder.write_json(MANIFEST, manifest));
        let placed = filled.and_then(|()| fs::rename(&draft, path).map_err(failed("create")));
        if placed.is_err() {
            // Best effort: what is left has a name of its own and is in nobody's way.
            let _ = fs::remove_dir_all(&draft);
        }
        placed.map(|()| Self { path: path.to_owned() })
    }

    /// A folder that is there.
    pub fn open(path: &Path) -> Result<Self> {
        if !path.join(CONFIG).is_file() {
            return Err(Error::NotARunFolder { folder: path.to_owned() });
        }
        Ok(Self { path: path.to_owned() })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes sure that no other program writes to the folder while the answer lives.
    pub fn lock(&self) -> Result<RunLock> {
        let path = self.path.join(LOCK);
        let file = File::create(&path).map_err(|source| ctdg::Error::io(&path, "create", source))?;
        // Some file systems cannot lock: then nobody is protected, and nobody hindered.
        if let Err(fs::TryLockError::WouldBlock) = file.try_lock() {
            return Err(Error::RunFolderBusy { folder: self.path.clone() });
        }
        Ok(RunLock { _file: file })
    }

    /// Removes the folder of a run that was refused before anything was learned.
    pub fn remove_unless_begun(&self) {
        let Ok(entries) = fs::read_dir(&self.path) else { return };
        let is_plain = |name: &str| [CONFIG, MANIFEST, LOCK].contains(&name);
        if entries.flatten().all(|entry| is_plain(&entry.file_name().to_string_lossy())) {
            // Best effort: a run that is left can be resumed or removed by hand.
            let _ = fs::remove_dir_all(&self.path);
        }
    }

    /// Removes what a killed program left half-written; only for who holds the lock.
    fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.path) else { return };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(".hopedgn-") {
                // Best effort: it is in nobody's way.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Removes what is said of weights that are about to be replaced.
    fn remove_results(&self) -> Result<()> {
        for name in [SUMMARY, CLASSIFICATION, EVALUATION] {
            let path = self.path.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(ctdg::Error::io(&path, "remove", error).into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The settings.
    pub fn config(&self) -> Result<Config> {
        let path = self.path.join(CONFIG);
        Config::from_toml(&read_text(&path)?, &path.display().to_string())
    }

    /// Replaces the settings, as when a run is given more epochs.
    fn write_config(&self, config: &Config) -> Result<()> {
        self.write(CONFIG, config.to_toml()?)
    }

    /// Program, machine, data and split.
    pub fn manifest(&self) -> Result<Manifest> {
        self.read_json(MANIFEST)
    }

    /// The final metrics, if training is over.
    pub fn summary(&self) -> Result<Option<Summary>> {
        if self.path.join(SUMMARY).is_file() { self.read_json(SUMMARY).map(Some) } else { Ok(None) }
    }

    /// The model with its best weights, and what it remembered when they were validated.
    pub fn model(&self, config: &Config, widths: FeatureWidths) -> Result<TrainedModel> {
        let (model, mut parameters) = model::build(&config.model, widths, config.seed)?;
        let memory = self.load_best(&mut parameters)?;
        Ok(TrainedModel { model, parameters, memory })
    }

    fn load_best(&self, parameters: &mut Parameters) -> Result<Option<MemoryState>> {
        let file = self.path.join(MODEL);
        if !file.is_file() {
            return Err(Error::NoWeights { folder: self.path.clone() });
        }
        let bytes = read(&file)?;
        let load = |parameters: &mut Parameters| {
            hopedgn_tensor::load(&bytes, parameters, None)?;
            hopedgn_tensor::load_beside(&bytes)
        };
        let beside = load(parameters).map_err(|problem| Error::Checkpoint { file, problem })?;
        if beside.is_empty() { Ok(None) } else { MemoryState::of(beside).map(Some) }
    }

    /// Whether there is something to resume from.
    #[must_use]
    pub fn has_state(&self) -> bool {
        self.path.join(STATE).exists()
    }

    fn state(&self) -> Result<Option<Vec<u8>>> {
        let file = self.path.join(STATE);
        if file.is_file() { read(&file).map(Some) } else { Ok(None) }
    }

    fn write_metrics(&self, history: &[EpochRecord]) -> Result<()> {
        let mut text = String::new();
        for record in history {
            text += &to_json(record, serde_json::to_string)?;
            text.push('\n');
        }
        self.write(METRICS, text)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<()> {
        Ok(write_file(&self.path.join(name), bytes)?)
    }

    fn write_json(&self, name: &str, value: &impl Serialize) -> Result<()> {
        self.write(name, to_json(value, serde_json::to_string_pretty)? + "\n")
    }

    fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        let path = self.path.join(name);
        serde_json::from_str(&read_text(&path)?).map_err(|error| damaged(&path, &error))
    }
}

/// A model as it came out of training.
#[derive(Debug)]
pub struct TrainedModel {
    /// The model.
    pub model: Box<dyn Model>,
    /// Its best weights.
    pub parameters: Parameters,
    /// What it remembered when they were validated, if it does.
    pub memory: Option<MemoryState>,
}

fn to_json<T: Serialize>(value: &T, write: impl Fn(&T) -> serde_json::Result<String>) -> Result<String> {
    write(value).map_err(|error| damaged(Path::new("record"), &error))
}

fn damaged(path: &Path, error: &serde_json::Error) -> Error {
    Error::Damaged { file: path.to_owned(), detail: error.to_string() }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    Ok(fs::read(path).map_err(|source| ctdg::Error::io(path, "read", source))?)
}

fn read_text(path: &Path) -> Result<String> {
    Ok(fs::read_to_string(path).map_err(|source| ctdg::Error::io(path, "read", source))?)
}
