//! The node memory of the model as a file, so that a restart does not go through all events again.

use std::path::Path;
use std::sync::Arc;

use ctdg::dataset::PendingFile;
use ctdg::live::Snapshot;
use hopedgn::ResidentMemory;

use crate::Result;
use crate::engine::{Engine, LoadedModel};

/// The name of the file, in the folder of the log.
const MEMORY: &str = "memory.safetensors";

/// Continues with the memory of the file, if there is one of this model; returns the number of events that it had seen. Without it the
/// memory is computed again, so what is wrong with it is only said.
pub(crate) fn load(model: &LoadedModel, snapshot: &Arc<Snapshot>, state: &Path) -> Option<usize> {
    let bytes = std::fs::read(state.join(MEMORY)).ok()?;
    let restored = ResidentMemory::from_bytes(&bytes).and_then(|memory| {
        model.live.restore_memory(snapshot, &memory)?;
        Ok(memory.n_events())
    });
    restored.map_err(|error| tracing::warn!(%error, "the node memory is computed again")).ok()
}

/// Writes the memory of the model, if it has one.
pub(crate) fn save(engine: &Engine, state: &Path) -> Result<()> {
    let path = state.join(MEMORY);
    let Some(memory) = engine.model().live.memory_state()? else { return Ok(()) };
    let bytes = memory.to_bytes()?;
    Ok(PendingFile::write(&path, |out| out.write_all(&bytes))?.commit()?)
}
