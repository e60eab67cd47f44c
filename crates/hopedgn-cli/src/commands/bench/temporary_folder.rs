//! A folder for generated files.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// A folder that is removed with all it holds.
pub(super) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// In `parent`, with the name of the benchmark and the number of this process.
    pub(super) fn new(parent: &Path, bench: &str) -> anyhow::Result<Self> {
        let path = parent.join(format!("hopedgn-bench-{bench}-{}", std::process::id()));
        std::fs::create_dir_all(&path).with_context(|| format!("could not create {}", path.display()))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
