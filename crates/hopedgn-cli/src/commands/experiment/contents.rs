//! Contents of the datasets of an experiment, read once and remembered beside its runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use ctdg::dataset::{self, COLLEGEMSG, ReadOptions, write_file};
use hopedgn::Events;
use hopedgn::run::DataRecord;
use hopedgn_experiments::experiment::{Cell, Content};
use serde::{Deserialize, Serialize};

use super::data_dir::DataDirArgs;

/// Name of the file in the folder of the runs.
const FILE: &str = "contents.json";

/// Endings of files with features that are read with a file of events.
const SIDECARS: [&str; 4] = [".npy", "_node.npy", "_features.npy", "_node_features.npy"];

/// Contents of datasets by file. Reading a large file again for every command would take seconds and its memory.
pub(super) struct Contents<'a> {
    data_dir: &'a DataDirArgs,
    file: PathBuf,
    known: BTreeMap<String, Known>,
    is_changed: bool,
    /// Of this command, by name of the data: each is read once, also if that fails.
    asked: BTreeMap<String, Option<Content>>,
}

/// A content, and the files that it was read from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Known {
    /// Sizes and times of the files, and how they were read.
    stamp: String,
    content: Content,
}

impl<'a> Contents<'a> {
    /// Those that are remembered in the folder of the runs.
    pub(super) fn open(data_dir: &'a DataDirArgs, runs: &Path) -> Self {
        let file = runs.join(FILE);
        // What cannot be read is made again.
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        Self {
            data_dir,
            file,
            known: serde_json::from_str(&text).unwrap_or_default(),
            is_changed: false,
            asked: BTreeMap::new(),
        }
    }

    /// The content of the data of `cell`; nothing if it is missing or cannot be read, which training reports.
    pub(super) fn of(&mut self, cell: &Cell) -> Option<Content> {
        if let Some(asked) = self.asked.get(&cell.data) {
            return asked.clone();
        }
        let content = self.look_up(cell);
        self.asked.insert(cell.data.clone(), content.clone());
        content
    }

    fn look_up(&mut self, cell: &Cell) -> Option<Content> {
        let data = self.data_dir.find(&cell.data).ok()?;
        if data == COLLEGEMSG {
            return Content::of(&DataRecord::of(&Events::collegemsg().ok()?));
        }
        let path = std::path::absolute(&data).ok()?;
        let (name, stamp) = (path.display().to_string(), stamp(&path, &cell.read)?);
        if let Some(known) = self.known.get(&name).filter(|known| known.stamp == stamp) {
            return Some(known.content.clone());
        }
        let content = Content::of(&DataRecord::of(&Events::read_with(&path, &cell.read).ok()?))?;
        self.known.insert(name, Known { stamp, content: content.clone() });
        self.is_changed = true;
        Some(content)
    }

    /// Remembers what was read. Without it the next command reads again.
    pub(super) fn save(&self) {
        let is_folder = self.file.parent().is_some_and(Path::is_dir);
        if self.is_changed
            && is_folder
            && let Ok(text) = serde_json::to_string_pretty(&self.known)
        {
            let _ = write_file(&self.file, text + "\n");
        }
    }
}

/// Sizes and times of a file and its sidecars, and how it is read.
fn stamp(path: &Path, options: &ReadOptions) -> Option<String> {
    let of = |file: &Path| {
        let facts = std::fs::metadata(file).ok()?;
        let time = facts.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(format!("{} {}.{:09}", facts.len(), time.as_secs(), time.subsec_nanos()))
    };
    let mut parts = vec![of(path)?];
    for ending in SIDECARS {
        parts.extend(of(&dataset::sidecar_path(path, ending)).map(|facts| format!("{ending} {facts}")));
    }
    parts.push(serde_json::to_string(options).ok()?);
    Some(parts.join("; "))
}
