//! Warm start: training that begins with the best weights of another run.

use std::path::Path;

use hopedgn_tensor::Parameters;
use serde::{Deserialize, Serialize};

use super::{MODEL, RunFolder, read};
use crate::file_format::sha256;
use crate::{Error, Result};

/// The run whose weights a warm start begins with.
///
/// Part of a [`Manifest`](super::Manifest).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmStart {
    /// Its folder, an absolute path.
    pub run: String,
    /// SHA-256 of its `model.safetensors`.
    pub sha256: String,
    /// Events that it knew, those of all its own warm starts included.
    pub events: usize,
}

impl WarmStart {
    /// The best weights of `folder`.
    pub(crate) fn of(folder: &RunFolder) -> Result<Self> {
        let path = std::path::absolute(folder.path()).unwrap_or_else(|_| folder.path().to_owned());
        let run = path.to_string_lossy().into_owned();
        Ok(Self { run, sha256: weights_sha256(folder)?, events: folder.manifest()?.data.events })
    }

    /// Replaces `parameters` by the weights. Refused if they are gone or have changed.
    pub(crate) fn load(&self, parameters: &mut Parameters) -> Result<()> {
        let folder = RunFolder::open(Path::new(&self.run))?;
        let found = weights_sha256(&folder)?;
        if found != self.sha256 {
            let detail = format!("found weights with the SHA-256 {found}, expected {} as recorded", self.sha256);
            return Err(Error::Damaged { file: folder.path().join(MODEL), detail });
        }
        folder.load_weights(parameters).map(drop)
    }
}

fn weights_sha256(folder: &RunFolder) -> Result<String> {
    let file = folder.path().join(MODEL);
    if !file.is_file() {
        return Err(Error::NoWeights { folder: folder.path().to_owned() });
    }
    Ok(sha256(&read(&file)?))
}
