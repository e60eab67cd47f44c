//! Arguments of commands over a trained model: its run folder, and its data as it was read then.

use std::path::{Path, PathBuf};

use clap::{Args, Parser};
use ctdg::dataset::{COLLEGEMSG, ReadOptions};
use hopedgn::run::{Difference, EVENTS, Manifest, RunFolder};
use hopedgn::{Events, LinkPredictor, ModelRegistry};

use crate::commands::data_args::ReadArgs;
use crate::commands::device::DeviceArgs;
use crate::commands::{Cli, Command};
use crate::output::Output;

/// What every command over a trained model takes.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The run folder
    #[arg(index = 1)]
    pub(crate) run: PathBuf,
    /// The run's data, if the file was moved; it may have grown since
    #[arg(long, value_name = "D")]
    pub(crate) data: Option<String>,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    #[command(flatten)]
    from: ReadArgs,
}

/// Whether the events must begin with those that the run was trained on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OtherEvents {
    Refused,
    /// Where the user names them.
    Allowed,
}

impl RunArgs {
    /// Loads the model with its data.
    pub(crate) fn load(
        &self,
        other: OtherEvents,
        registry: &ModelRegistry,
        output: &Output,
    ) -> anyhow::Result<LinkPredictor> {
        let folder = RunFolder::open(&self.run)?;
        let config = folder.config(registry)?;
        let manifest = folder.manifest()?;
        let events = load_events(&self.run, &manifest, self.data.as_deref(), &self.from, output)?;
        match (other, &self.data) {
            (OtherEvents::Refused, _) => begins_with_run(&manifest, &events, &self.from, output)?,
            (OtherEvents::Allowed, None) => manifest.data.check_by_name(&events)?,
            (OtherEvents::Allowed, Some(data)) => {
                if manifest.data.check_by_name(&events).is_err() {
                    output.remark(format_args!("{data} does not begin with the events that the run was trained on"));
                }
            }
        }
        let device = self.device.open_for(&config.model, output)?;
        let mut loader = LinkPredictor::loader().registry(registry.clone()).device(device);
        if let Some(bytes) = output.max_memory() {
            loader = loader.max_memory(bytes);
        }
        Ok(loader.any_events().load(&self.run, &events)?)
    }
}

/// Loads the data of a run: what the user names now, what was named then, read with the options of then, or what the folder holds.
pub(crate) fn load_events(
    run: &Path,
    manifest: &Manifest,
    data: Option<&str>,
    from: &ReadArgs,
    output: &Output,
) -> anyhow::Result<Events> {
    let recorded = &manifest.data;
    let kept = run.join(EVENTS).to_string_lossy().into_owned();
    let file = recorded.file.as_deref().or_else(|| (recorded.name != COLLEGEMSG).then_some(&*kept));
    let file = file.filter(|file| Path::new(file).exists());
    if let (None, None, Some(moved)) = (data, file, &recorded.file) {
        anyhow::bail!("found no file {moved}, expected the data of the run; name the file with --data if it was moved");
    }
    let options = match data {
        // Flags change how the same file is read; another one may be of another form.
        None => from.options_over(&recorded_options(manifest)),
        Some(_) if from.is_default() => recorded_options(manifest),
        Some(_) => from.options(),
    };
    from.load_with(data.or(file).unwrap_or(&recorded.name), &options, output)
}

/// Refuses events that do not begin with those of the run, naming the first one that differs if the run's own file still
/// stands.
pub(crate) fn begins_with_run(
    manifest: &Manifest,
    events: &Events,
    from: &ReadArgs,
    output: &Output,
) -> anyhow::Result<()> {
    let Err(error) = manifest.data.known_part(events) else { return Ok(()) };
    let recorded = manifest.data.file.as_deref().filter(|file| events.file() != Some(Path::new(file)));
    let original = recorded.and_then(|file| from.load_with(file, &recorded_options(manifest), output).ok());
    let known = original.and_then(|events| manifest.data.known_part(&events).ok());
    match known.and_then(|known| Difference::first(&known.events, events)) {
        Some(difference) => Err(anyhow::Error::from(error).context(format!("{}: {difference}", events.name()))),
        None => Err(error.into()),
    }
}

/// How the data of a run was read. Manifests of version 0.1 have the command line instead.
fn recorded_options(manifest: &Manifest) -> ReadOptions {
    if let Some(options) = &manifest.data.read {
        return options.clone();
    }
    match Cli::try_parse_from(&manifest.command).map(|cli| cli.command) {
        Ok(Command::Train(train)) => train.from.options(),
        _ => ReadOptions::default(),
    }
}
