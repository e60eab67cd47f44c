//! A download that is not finished: the bytes that are here, and a note of which file they belong to.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::http::{Range, Reply};
use super::source::{Home, Source};
use crate::error::{Error, Result};

/// `<set>.<file>.part` in the target folder, with its note `<set>.<file>.part.json` beside it.
#[derive(Debug)]
pub(super) struct Part {
    path: PathBuf,
    note_path: PathBuf,
}

/// What the server said about the file when the first byte came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Note {
    url: String,
    etag: Option<String>,
    last_modified: Option<String>,
    /// Length of the whole file.
    pub(super) total: Option<u64>,
}

/// How a download goes on.
#[derive(Debug)]
pub(super) enum Begin {
    /// All bytes are here.
    Complete,
    /// These are missing.
    Resume(Range, Note),
    /// Nothing usable is here.
    Anew,
}

impl Part {
    pub(super) fn new(folder: &Path, source: &Source, home: &Home) -> Self {
        let name = format!("{}.{}.part", source.name, home.file_name());
        Self { path: folder.join(&name), note_path: folder.join(name + ".json") }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that are here.
    pub(super) fn len(&self) -> Result<u64> {
        match fs::metadata(&self.path) {
            Ok(metadata) => Ok(metadata.len()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(Error::io(&self.path, "look at", error)),
        }
    }

    /// How to go on with the download from `url`.
    ///
    /// Bytes of an unknown version are only continued where `will_check` says that a checksum will tell if the two
    /// halves are of different files.
    pub(super) fn begin(&self, url: &str, will_check: bool) -> Result<Begin> {
        let from = self.len()?;
        let Some(note) = self.note().filter(|note| note.url == url && from > 0) else { return Ok(Begin::Anew) };
        if note.total == Some(from) {
            return Ok(Begin::Complete);
        }
        let version = note.version();
        if version.is_none() && !will_check || note.total.is_some_and(|total| total < from) {
            return Ok(Begin::Anew);
        }
        Ok(Begin::Resume(Range { from, version }, note))
    }

    /// Drops what is here and makes ready for the whole file as `reply` announces it.
    pub(super) fn start(&self, url: &str, reply: &Reply) -> Result<File> {
        let file = File::create(&self.path).map_err(|error| Error::io(&self.path, "create", error))?;
        self.write_note(&Note {
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

    /// Notes that the file has come to its end, which a server that tells no length leaves open.
    pub(super) fn finish(&self) -> Result<()> {
        match self.note() {
            Some(note) => self.write_note(&Note { total: Some(self.len()?), ..note }),
            None => Ok(()),
        }
    }

    /// Removes file and note.
    pub(super) fn discard(&self) -> Result<()> {
        for path in [&self.path, &self.note_path] {
            match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::io(path, "remove", error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// A missing or damaged note means that nothing is known about the bytes.
    fn note(&self) -> Option<Note> {
        serde_json::from_slice(&fs::read(&self.note_path).ok()?).ok()
    }

    fn write_note(&self, note: &Note) -> Result<()> {
        let json = serde_json::to_vec(note).expect("strings and numbers always serialize");
        fs::write(&self.note_path, json).map_err(|error| Error::io(&self.note_path, "write", error))
    }
}

impl Note {
    /// What `If-Range` takes: a strong entity tag, else the time of the last change.
    fn version(&self) -> Option<String> {
        self.etag.clone().filter(|etag| !etag.starts_with("W/")).or_else(|| self.last_modified.clone())
    }

    /// Whether `reply` speaks of the same version of the file, as far as it says.
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
