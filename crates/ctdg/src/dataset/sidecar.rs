//! Sidecar files with features: `DIR/STEM_features.npy` and `DIR/STEM_node_features.npy` of `DIR/STEM.csv`.

use std::path::{Path, PathBuf};

use crate::dataset::npy;
use crate::dataset::source::Compression;
use crate::error::Result;
use crate::event::EventStream;

/// Suffix of the sidecar with one row per event.
pub(crate) const EDGE_FEATURES: &str = "_features.npy";
/// Suffix of the sidecar with one row per node.
pub(crate) const NODE_FEATURES: &str = "_node_features.npy";

/// Path of the sidecar of `path` with this suffix: `DIR/STEM` and then `ending`.
#[must_use]
pub fn sidecar_path(path: &Path, ending: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (_, name) = Compression::of_name(&name);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    path.with_file_name(format!("{stem}{ending}"))
}

/// The sidecar, if it exists, plain or compressed.
pub(crate) fn find(path: &Path, ending: &str) -> Option<PathBuf> {
    let packed = ["", ".gz", ".zst"].map(|packing| sidecar_path(path, &format!("{ending}{packing}")));
    packed.into_iter().find(|file| file.is_file())
}

/// `stream`, read from `path`, with the node features of its sidecar.
pub(crate) fn with_node_features(path: &Path, stream: EventStream) -> Result<EventStream> {
    let Some(file) = find(path, NODE_FEATURES) else { return Ok(stream) };
    let mut columns = stream.into_columns();
    columns.node_features = npy::read(&file, None)?.into_features()?;
    EventStream::new(columns).map_err(|error| error.in_file(file))
}
