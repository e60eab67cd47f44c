//! Partial downloads: the bytes so far and which version of which file they belong to.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::http::{Range, Reply};
use super::source::{Mirror, Source};
use crate::error::{Error, Result};

/// `<set>.<file>.part` in the target folder, described by `<set>.<file>.part.json` next to it.
#[derive(Debug)]
pub(super) struct PartialFile {
    path: PathBuf,
    info_path: PathBuf,
}

/// What the server stated about the file when the download started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PartialInfo {
    url: String,
    etag: Option<String>,
    last_modified: Option<String>,
    /// Length of the whole file.
    pub(super) total: Option<u64>,
}

/// Where a download continues.
#[derive(Debug)]
pub(super) enum ResumePoint {
    /// Nothing is missing.
    Complete,
    /// A range is missing.
    Resume(Range, PartialInfo),
    /// There is nothing to resume from.
    FromStart,
}

impl PartialFile {
    pub(super) fn new(folder: &Path, source: &Source, mirror: &Mirror) -> Self {
        let name = format!("{}.{}.part", source.name, mirror.file_name());
        Self { path: folder.join(&name), info_path: folder.join(name + ".json") }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes so far.
    pub(super) fn len(&self) -> Result<u64> {
        match fs::metadata(&self.path) {
            Ok(metadata) => Ok(metadata.len()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(Error::io(&self.path, "inspect", error)),
        }
    }

    /// Where the download from `url` continues.
    ///
    /// Bytes of an unknown version are resumed only if `will_check`: a checksum then detects a mix of two versions.
    pub(super) fn begin(&self, url: &str, will_check: bool) -> Result<ResumePoint> {
        let from = self.len()?;
        let Some(info) = self.info().filter(|info| info.url == url && from > 0) else {
            return Ok(ResumePoint::FromStart);
        };
        if info.total == Some(from) {
            return Ok(ResumePoint::Complete);
        }
        let version = info.version();
        if version.is_none() && !will_check || info.total.is_some_and(|total| total < from) {
            return Ok(ResumePoint::FromStart);
        }
        Ok(ResumePoint::Resume(Range { from, version }, info))
    }

    /// Discards the bytes so far and prepares for the whole file as `reply` describes it.
    pub(super) fn start(&self, url: &str, reply: &Reply) -> Result<File> {
        let file = File::create(&self.path).map_err(|error| Error::io(&self.path, "create", error))?;
        self.write_info(&PartialInfo {
            url: url.to_owned(),
            etag: reply.etag.clone(),
            last_modified: reply.last_modified.clone(),
            total: reply.length,
        })?;
        Ok(file)
    }

    /// Opens the file at its end.
    pub(super) fn append(&self) -> Result<File> {
        let failed = |error| Error::io(&self.path, "open", error);
        let mut file = OpenOptions::new().write(true).open(&self.path).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        Ok(file)
    }

    /// Records the final length, which a server may not have stated.
    pub(super) fn finish(&self) -> Result<()> {
        match self.info() {
            Some(info) => self.write_info(&PartialInfo { total: Some(self.len()?), ..info }),
            None => Ok(()),
        }
    }

    /// Removes the file and its description.
    pub(super) fn discard(&self) -> Result<()> {
        for path in [&self.path, &self.info_path] {
            match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::io(path, "remove", error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// `None` if the description is missing or damaged: nothing is then known about the bytes.
    fn info(&self) -> Option<PartialInfo> {
        serde_json::from_slice(&fs::read(&self.info_path).ok()?).ok()
    }

    fn write_info(&self, info: &PartialInfo) -> Result<()> {
        let json = serde_json::to_vec(info).expect("strings and numbers always serialize");
        fs::write(&self.info_path, json).map_err(|error| Error::io(&self.info_path, "write", error))
    }
}

impl PartialInfo {
    /// The value of `If-Range`: a strong entity tag, else the modification time.
    fn version(&self) -> Option<String> {
        self.etag.clone().filter(|etag| !etag.starts_with("W/")).or_else(|| self.last_modified.clone())
    }

    /// Whether `reply` describes the same version of the file, as far as it states one.
    pub(super) fn agrees_with(&self, reply: &Reply) -> bool {
        let total = reply.content_range.and_then(|range| range.total);
        agree(self.etag.as_ref(), reply.etag.as_ref())
            && agree(self.last_modified.as_ref(), reply.last_modified.as_ref())
            && agree(self.total.as_ref(), total.as_ref())
    }
}

fn agree<T: PartialEq>(ours: Option<&T>, theirs: Option<&T>) -> bool {
    ours.is_none() || theirs.is_none() || ours == theirs
}
