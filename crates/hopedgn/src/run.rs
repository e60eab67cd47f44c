//! Run folders: settings, checkpoints, metrics and results of one training run.
//!
//! | file | content |
//! |---|---|
//! | `config.toml` | all settings of the run |
//! | `manifest.json` | program, machine, dataset and split |
//! | `metrics.jsonl` | one record for each epoch |
//! | `model.safetensors` | weights of the best epoch |
//! | `state.safetensors` | checkpoint: latest weights, optimizer state and progress |
//! | `summary.json` | test metrics, once training is complete |
//! | `evaluation.json` | test metrics under other protocols, if they were measured |
//! | `evaluation.partial.json` | checkpoint of an evaluation that was interrupted |
//! | `classification.json` | results of node classification, if it was run |
//! | `report.html` | a page with curves and metrics |
//! | `events.out.tfevents.*` | the same for `TensorBoard` |
//!
//! Each file is written to a temporary file and renamed. If the process dies at any time, the run resumes from `state.safetensors`:
//! it lists the completed epochs, and files that were written after it are written again with the same content.

mod classify;
mod evaluation;
mod handover;
mod known_part;
mod manifest;
mod record;
mod session;
mod warm_start;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;

use ctdg::dataset::{sweep, temporary_prefix, write_file};
use hopedgn_tensor::{Parameters, Weights};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::collate::FeatureWidths;
use crate::config::Config;
use crate::file_format::{from_json, to_document, to_line};
use crate::memory::MemoryState;
use crate::metrics::{Classification, EpochRecord, Summary};
use crate::model::{Model, ModelRegistry};
use crate::{Error, Result};

pub use crate::metrics::EVALUATION;
pub(crate) use evaluation::PartialEvaluation;
pub use known_part::{Difference, KnownPart};
pub use manifest::{DataRecord, Manifest};
use record::Record;
use session::weights_file;
pub use session::{Session, Trained};
pub use warm_start::WarmStart;

const CONFIG: &str = "config.toml";
const MANIFEST: &str = "manifest.json";
const METRICS: &str = "metrics.jsonl";
/// The file of the best weights.
pub const MODEL: &str = "model.safetensors";
const STATE: &str = "state.safetensors";
const SUMMARY: &str = "summary.json";
/// The file of node classification results.
pub const CLASSIFICATION: &str = "classification.json";
/// The events of a run that come from no file, written by programs that save them with the run.
pub const EVENTS: &str = "events.ctdg";
const LOCK: &str = ".lock";

/// The folder of one run.
///
/// ```
/// # use hopedgn::{Events, LinkPredictor};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
/// # let place = tempfile::tempdir()?;
/// # let path = place.path().join("mine");
/// use hopedgn::{ModelRegistry, run::RunFolder};
///
/// predictor.save(&path)?;
/// let folder = RunFolder::open(&path)?;
/// assert_eq!(folder.config(&ModelRegistry::default())?, *predictor.config());
/// assert_eq!((folder.manifest()?.data.events, folder.metrics()?.len()), (100, 1));
/// assert!(folder.summary()?.is_some() && folder.has_state());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct RunFolder {
    path: PathBuf,
}

/// Lock on a run folder; released when dropped.
///
/// ```
/// # use hopedgn::{Events, LinkPredictor};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
/// # let place = tempfile::tempdir()?;
/// # let path = place.path().join("mine");
/// # predictor.save(&path)?;
/// use hopedgn::{Error, run::RunFolder};
///
/// let folder = RunFolder::open(&path)?;
/// let lock = folder.lock()?;
/// assert!(matches!(folder.lock(), Err(Error::RunFolderBusy { .. })));
/// drop(lock);
/// assert!(folder.lock().is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

impl RunFolder {
    /// Creates a folder with settings and manifest, atomically. Refused if the folder is not empty.
    pub fn create(path: &Path, config: &Config, manifest: &Manifest) -> Result<Self> {
        let taken = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        if taken || (path.exists() && !path.is_dir()) {
            return Err(Error::RunFolderTaken { folder: path.to_owned() });
        }
        let failed = |action| move |source| Error::from(ctdg::Error::io(path, action, source));
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(failed("create"))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        sweep(parent);
        let draft = parent.join(format!("{}{name}", temporary_prefix()));
        fs::create_dir_all(&draft).map_err(failed("create"))?;
        let folder = Self { path: draft.clone() };
        let fill = || {
            folder.write(CONFIG, config.to_file()?)?;
            folder.write_record(&Record::new(manifest.clone(), config)?)
        };
        let filled = fill();
        let placed = filled.and_then(|()| fs::rename(&draft, path).map_err(failed("create")));
        if placed.is_err() {
            // Best effort: a leftover has a hidden name of its own.
            let _ = fs::remove_dir_all(&draft);
        }
        placed.map(|()| Self { path: path.to_owned() })
    }

    /// Opens the folder of a run.
    pub fn open(path: &Path) -> Result<Self> {
        if !path.join(CONFIG).is_file() {
            return Err(Error::NotARunFolder { folder: path.to_owned() });
        }
        Ok(Self { path: path.to_owned() })
    }

    /// The path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Locks the folder against writing by other processes.
    pub fn lock(&self) -> Result<RunLock> {
        let path = self.path.join(LOCK);
        let file = File::create(&path).map_err(|source| ctdg::Error::io(&path, "create", source))?;
        // Some file systems cannot lock; then there is no protection.
        if let Err(fs::TryLockError::WouldBlock) = file.try_lock() {
            return Err(Error::RunFolderBusy { folder: self.path.clone() });
        }
        Ok(RunLock { _file: file })
    }

    /// Removes the folder of a run that failed before its first checkpoint.
    pub fn remove_unless_begun(&self) {
        if !self.has_state() && !self.path.join(MODEL).exists() {
            // Best effort: what is left can be resumed or removed by hand.
            let _ = fs::remove_dir_all(&self.path);
        }
    }

    /// Removes temporary files of a killed process. The caller holds the lock.
    fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.path) else { return };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(".hopedgn-") {
                // Best effort: a temporary file is harmless.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Removes results that belong to weights about to be replaced.
    fn remove_results(&self) -> Result<()> {
        let results = [SUMMARY, CLASSIFICATION, EVALUATION, evaluation::PARTIAL];
        self.forget(|name| results.contains(&name))?;
        for name in results {
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

    /// Test metrics, if training is complete.
    pub fn summary(&self) -> Result<Option<Summary>> {
        self.read_json_if_any(SUMMARY)
    }

    /// Results of node classification, if they are stored.
    pub fn classification(&self) -> Result<Option<Classification>> {
        self.read_json_if_any(CLASSIFICATION)
    }

    /// The model with its best weights, and its memory after validating them.
    ///
    /// ```
    /// # use hopedgn::{Events, LinkPredictor};
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
    /// # let place = tempfile::tempdir()?;
    /// # let path = place.path().join("mine");
    /// # predictor.save(&path)?;
    /// use hopedgn::{ModelRegistry, collate::FeatureWidths, run::RunFolder};
    ///
    /// let (folder, registry) = (RunFolder::open(&path)?, ModelRegistry::default());
    /// let trained = folder.model(&registry, &folder.config(&registry)?, FeatureWidths::of(&events))?;
    /// assert!(trained.memory.is_none() && trained.parameters.n_values() > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn model(&self, registry: &ModelRegistry, config: &Config, widths: FeatureWidths) -> Result<TrainedModel> {
        let (model, mut parameters) = config.build(registry, widths)?;
        let memory = self.load_best(config, &mut parameters)?;
        Ok(TrainedModel { model, parameters, memory })
    }

    /// Loads the weights of a run with these settings.
    pub(crate) fn load_best(&self, config: &Config, parameters: &mut Parameters) -> Result<Option<MemoryState>> {
        let (metadata, memory) = self.load_weights(parameters)?;
        config.check_metadata(&metadata, &self.path.join(MODEL)).map(|()| memory)
    }

    /// Loads the weights, whatever settings they were trained with.
    fn load_weights(&self, parameters: &mut Parameters) -> Result<(BTreeMap<String, String>, Option<MemoryState>)> {
        let file = self.path.join(MODEL);
        let bytes = self.read_checked(MODEL)?.ok_or_else(|| Error::NoWeights { folder: self.path.clone() })?;
        let load = |parameters: &mut Parameters| {
            Ok((hopedgn_tensor::load(&bytes, parameters, None)?, hopedgn_tensor::load_extras(&bytes)?))
        };
        let (metadata, beside) = load(parameters).map_err(|problem| Error::Checkpoint { file, problem })?;
        let memory = if beside.is_empty() { None } else { Some(MemoryState::of(beside)?) };
        Ok((metadata, memory))
    }

    /// Whether it is the folder of a run with these settings and events.
    pub(crate) fn is_of(&self, registry: &ModelRegistry, config: &Config, manifest: &Manifest) -> bool {
        let is_same_config = self.config(registry).is_ok_and(|own| own == *config);
        is_same_config && self.manifest().is_ok_and(|own| own.data.sha256 == manifest.data.sha256)
    }

    /// Whether there is a checkpoint to resume from.
    #[must_use]
    pub fn has_state(&self) -> bool {
        self.path.join(STATE).exists()
    }

    pub(crate) fn state(&self) -> Result<Option<Vec<u8>>> {
        let file = self.path.join(STATE);
        if file.is_file() { read(&file).map(Some) } else { Ok(None) }
    }

    /// One record for each epoch; none before the first.
    pub fn metrics(&self) -> Result<Vec<EpochRecord>> {
        let Some(text) = self.read_text_checked(METRICS)? else {
            // Only a run that has not begun has none.
            if self.has_state() {
                let detail = "found no such file, expected one".to_owned();
                return Err(Error::Damaged { file: self.path.join(METRICS), detail });
            }
            return Ok(Vec::new());
        };
        text.lines().map(|line| from_json(&self.path.join(METRICS), line)).collect()
    }

    pub(crate) fn write_classification(&self, classification: &Classification) -> Result<()> {
        self.sweep();
        self.write_json(CLASSIFICATION, classification)
    }

    pub(crate) fn write_summary(&self, summary: &Summary) -> Result<()> {
        self.write_json(SUMMARY, summary)
    }

    /// Writes the best weights, and the checkpoint to resume from.
    pub(crate) fn write_trained(
        &self,
        config: &Config,
        weights: &Weights,
        memory: Option<&MemoryState>,
        state: Option<&[u8]>,
    ) -> Result<()> {
        self.write_all(&[(MODEL, &weights_file(config, weights.parameters()?.as_ref(), memory)?)])?;
        state.map_or(Ok(()), |state| self.write(STATE, state))
    }

    pub(crate) fn write_metrics(&self, history: &[EpochRecord]) -> Result<()> {
        self.write_all(&[(METRICS, metrics_file(history)?.as_bytes())])
    }

    /// Removes the checksums of files that callbacks write, because they are about to change.
    fn forget_views(&self) -> Result<()> {
        self.forget(is_view)
    }

    /// Records the checksums of files that callbacks wrote.
    pub(crate) fn record_views(&self) -> Result<()> {
        let entries = fs::read_dir(&self.path).map_err(|source| ctdg::Error::io(&self.path, "read", source))?;
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        self.settle(names.filter(|name| is_view(name)))
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<()> {
        Ok(write_file(&self.path.join(name), bytes)?)
    }

    fn write_json(&self, name: &str, value: &impl Serialize) -> Result<()> {
        let text = to_document(value).map_err(|error| damaged(Path::new(name), &error))?;
        self.write_all(&[(name, text.as_bytes())])
    }

    fn read_json_if_any<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        self.read_text_checked(name)?.map(|text| from_json(&self.path.join(name), &text)).transpose()
    }

    fn read_text_checked(&self, name: &str) -> Result<Option<String>> {
        let damaged = |error: FromUtf8Error| Error::Damaged { file: self.path.join(name), detail: error.to_string() };
        self.read_checked(name)?.map(|bytes| String::from_utf8(bytes).map_err(damaged)).transpose()
    }
}

/// Whether a file is one that people look at and the program never reads.
fn is_view(name: &str) -> bool {
    name == "report.html" || name.starts_with("events.out.tfevents.")
}

/// A trained model.
///
/// Made by [`RunFolder::model`].
#[derive(Debug)]
pub struct TrainedModel {
    /// The model.
    pub model: Box<dyn Model>,
    /// Its best weights.
    pub parameters: Parameters,
    /// Its node memory after validating them, if it has one.
    pub memory: Option<MemoryState>,
}

/// The content of `metrics.jsonl`.
fn metrics_file(history: &[EpochRecord]) -> Result<String> {
    let lines: Result<Vec<String>> =
        history.iter().map(|record| to_line(record).map_err(|error| damaged(Path::new(METRICS), &error))).collect();
    Ok(lines?.into_iter().map(|line| line + "\n").collect())
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
