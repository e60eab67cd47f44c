//! A model for a user who has only events: trained in seconds.

use std::path::Path;

use hopedgn::config::ModelName;
use hopedgn::{Events, LinkPredictor, ModelRegistry};

use crate::commands::device::DeviceArgs;
use crate::commands::progress::ProgressCallback;
use crate::output::Output;
use crate::version;

/// Trains the model of statistics on `events`.
pub(super) fn train(
    events: &Events,
    folder: &Path,
    device: DeviceArgs,
    registry: &ModelRegistry,
    output: &Output,
) -> anyhow::Result<()> {
    let builder = LinkPredictor::builder().registry(registry.clone()).model(ModelName::Stats);
    let config = builder.resolve(events.name())?;
    output.remark(format_args!(
        "no run yet: training {} on {} first, in {}",
        config.model.name().title(),
        events.name(),
        folder.display()
    ));
    if let Some(parent) = folder.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let mut progress = ProgressCallback::new(output)?;
    let mut builder = builder
        .config(config.clone())
        .device(device.open_for(&config.model, output)?)
        .run_folder(folder)
        .command(output.command());
    if let Some(commit) = version::commit() {
        builder = builder.commit(commit);
    }
    builder.callback(&mut progress).fit(events)?;
    Ok(())
}
