//! `manifest.json`: the [`Manifest`] with a copy of the settings and a checksum of each other file of the run.
//!
//! A file that is about to be written is `pending` in the manifest before it is: if the process dies in between, the file has
//! its old content or its new one, and both are known. A checkpoint (`state.safetensors`) is written far more often and holds
//! its own checksum.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{CONFIG, MANIFEST, Manifest, RunFolder, read, read_text};
use crate::config::{CHANGEABLE, Config, ModelRegistry};
use crate::file_format::{from_sealed, sha256, to_sealed};
use crate::{Error, Result};

/// The content of `manifest.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    #[serde(flatten)]
    pub(super) manifest: Manifest,
    /// The settings of `config.toml`; missing in format 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    settings: Option<toml::Table>,
    /// SHA-256 of each file, by its name.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// The same of files that may not have been written yet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pending: BTreeMap<String, String>,
}

impl Record {
    /// A run whose only other file is `config.toml`.
    pub(super) fn new(manifest: Manifest, config: &Config) -> Result<Self> {
        let files = BTreeMap::from([(CONFIG.to_owned(), sha256(config.to_file()?.as_bytes()))]);
        Ok(Self { manifest, settings: Some(config.table()?), files, pending: BTreeMap::new() })
    }

    /// What is wrong with the content `bytes` of the file `name`. Files without a checksum may have any.
    fn finds_wrong(&self, name: &str, bytes: &[u8]) -> Option<String> {
        let (written, pending) = (self.files.get(name), self.pending.get(name));
        let expected = written.or(pending)?;
        let found = sha256(bytes);
        (Some(&found) != written && Some(&found) != pending)
            .then(|| format!("found content with the SHA-256 {found}, expected {expected}"))
    }

    /// Pending files that were written are pending no more.
    fn settle(&mut self, folder: &Path) {
        for (name, expected) in std::mem::take(&mut self.pending) {
            if std::fs::read(folder.join(&name)).is_ok_and(|bytes| sha256(&bytes) == expected) {
                self.files.insert(name, expected);
            }
        }
        self.files.retain(|name, _| folder.join(name).exists());
    }
}

impl RunFolder {
    /// The settings. Refused if `config.toml` was changed since it was written.
    pub fn config(&self, registry: &ModelRegistry) -> Result<Config> {
        let (path, record) = (self.path().join(CONFIG), self.record_if_any()?);
        let config = Config::from_toml_with(registry, &read_text(&path)?, &path.display().to_string())?;
        let recorded = record.and_then(|record| record.settings);
        let differences = recorded.map(|settings| config.differences(&settings)).transpose()?;
        match differences.filter(|differences| !differences.is_empty()) {
            Some(differences) => Err(Error::ChangedSettings { file: path, differences, changeable: &CHANGEABLE }),
            None => Ok(config),
        }
    }

    /// Replaces the settings if they differ, e.g. by more epochs.
    pub(super) fn update_config(&self, config: &Config) -> Result<()> {
        let mut record = self.record()?;
        let text = config.to_file()?;
        if read_text(&self.path().join(CONFIG))? == text && record.settings.is_some() {
            return Ok(());
        }
        record.settings = Some(config.table()?);
        self.write_files(record, &[(CONFIG, text.as_bytes())])
    }

    /// Program, machine, dataset and split.
    pub fn manifest(&self) -> Result<Manifest> {
        self.record().map(|record| record.manifest)
    }

    pub(super) fn record(&self) -> Result<Record> {
        let path = self.path().join(MANIFEST);
        from_sealed(&path, &read_text(&path)?)
    }

    /// `None` where results were stored without a manifest.
    fn record_if_any(&self) -> Result<Option<Record>> {
        if self.path().join(MANIFEST).is_file() { self.record().map(Some) } else { Ok(None) }
    }

    /// The content of a file, if there is one. Refused if it is not what was written.
    pub(super) fn read_checked(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let file = self.path().join(name);
        if !file.is_file() {
            return Ok(None);
        }
        let Some(mut record) = self.record_if_any()? else { return read(&file).map(Some) };
        loop {
            let bytes = read(&file)?;
            let Some(detail) = record.finds_wrong(name, &bytes) else { return Ok(Some(bytes)) };
            // Another process may have written both in the meantime.
            let now = self.record()?;
            if now == record {
                return Err(Error::Damaged { file, detail });
            }
            record = now;
        }
    }

    /// Writes files and their checksums. The caller holds the lock.
    pub(super) fn write_all(&self, files: &[(&str, &[u8])]) -> Result<()> {
        self.write_files(self.record()?, files)
    }

    fn write_files(&self, mut record: Record, files: &[(&str, &[u8])]) -> Result<()> {
        record.settle(self.path());
        for (name, bytes) in files {
            record.pending.insert((*name).to_owned(), sha256(bytes));
        }
        self.write_record(&record)?;
        files.iter().try_for_each(|(name, bytes)| self.write(name, bytes))
    }

    /// Brings the manifest up to date with the files: no checksum is pending, and each of `views`, files that others write, has one.
    pub(super) fn settle(&self, views: impl IntoIterator<Item = String>) -> Result<()> {
        let before = self.record()?;
        let mut record = before.clone();
        record.settle(self.path());
        for name in views {
            let bytes = read(&self.path().join(&name))?;
            record.files.insert(name, sha256(&bytes));
        }
        if record == before { Ok(()) } else { self.write_record(&record) }
    }

    /// Removes the checksums of files that others are about to write.
    pub(super) fn forget(&self, is_view: impl Fn(&str) -> bool) -> Result<()> {
        let mut record = self.record()?;
        let n_files = record.files.len();
        record.files.retain(|name, _| !is_view(name));
        if record.files.len() == n_files { Ok(()) } else { self.write_record(&record) }
    }

    pub(super) fn write_record(&self, record: &Record) -> Result<()> {
        let text = to_sealed(record).map_err(|error| super::damaged(Path::new(MANIFEST), &error))?;
        self.write(MANIFEST, text)
    }

    /// Refuses a file of the run whose content is not what was written: the names of all that are fine.
    ///
    /// ```
    /// # use hopedgn::{Events, LinkPredictor};
    /// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
    /// # let events = Events::from_tuples(messages)?;
    /// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
    /// # let place = tempfile::tempdir()?;
    /// # let path = place.path().join("mine");
    /// # predictor.save(&path)?;
    /// use hopedgn::run::RunFolder;
    ///
    /// let folder = RunFolder::open(&path)?;
    /// assert!(folder.verify()?.iter().any(|name| name == "model.safetensors"));
    /// std::fs::write(path.join("summary.json"), "{}")?;
    /// assert!(folder.verify().unwrap_err().to_string().contains("summary.json: found content with the SHA-256"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn verify(&self) -> Result<Vec<String>> {
        let record = self.record()?;
        let names: std::collections::BTreeSet<&String> = record.files.keys().chain(record.pending.keys()).collect();
        for name in &names {
            if self.read_checked(name)?.is_none() && record.files.contains_key(*name) {
                let detail = "found no such file, expected one".to_owned();
                return Err(Error::Damaged { file: self.path().join(name), detail });
            }
        }
        if let Some(state) = self.state()? {
            hopedgn_tensor::load_metadata(&state)
                .map_err(|problem| Error::Checkpoint { file: self.path().join(super::STATE), problem })?;
        }
        Ok(names.into_iter().cloned().collect())
    }
}
