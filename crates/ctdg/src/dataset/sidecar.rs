//! Files that belong to a data file and lie beside it: `DIR/STEM_features.npy` and its like for `DIR/STEM.csv`.

use std::path::{Path, PathBuf};

use crate::dataset::npy;
use crate::dataset::source::Compression;
use crate::error::Result;
use crate::event::EventStream;

/// Ending of the sidecar that holds one row for each event.
pub(crate) const EDGE_FEATURES: &str = "_features.npy";
/// Ending of the sidecar that holds one row for each node.
pub(crate) const NODE_FEATURES: &str = "_node_features.npy";

/// Where a sidecar of the data file `path` lies: `DIR/STEM` and then `ending`.
#[must_use]
pub fn beside(path: &Path, ending: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (_, name) = Compression::of_name(&name);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    path.with_file_name(format!("{stem}{ending}"))
}

/// The sidecar that is there, in whichever packing.
pub(crate) fn find(path: &Path, ending: &str) -> Option<PathBuf> {
    let packed = ["", ".gz", ".zst"].map(|packing| beside(path, &format!("{ending}{packing}")));
    packed.into_iter().find(|file| file.is_file())
}

/// `stream`, read from `path`, with the node features that lie beside it.
pub(crate) fn with_node_features(path: &Path, stream: EventStream) -> Result<EventStream> {
    let Some(file) = find(path, NODE_FEATURES) else { return Ok(stream) };
    let mut columns = stream.into_columns();
    columns.node_features = npy::read(&file, None)?.into_features()?;
    EventStream::new(columns).map_err(|error| error.in_file(file))
}
