//! A run that is there: its folder, and its data as it was read then.

use std::path::{Path, PathBuf};

use clap::{Args, Parser};
use hopedgn::config::Config;
use hopedgn::run::{Manifest, RunFolder};

use crate::commands::data_args::{Dataset, ReadArgs};
use crate::commands::device::DeviceArgs;
use crate::commands::{Cli, Command};
use crate::output::Output;

/// What every command over a trained model takes.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The folder of a run
    pub(crate) run: PathBuf,
    /// The run's data, if it is not where it was; `score` may look back on a file that has grown since
    #[arg(long, value_name = "D")]
    pub(crate) data: Option<String>,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    #[command(flatten)]
    from: ReadArgs,
}

/// A run with its data.
pub(crate) struct Opened {
    pub(crate) folder: RunFolder,
    pub(crate) config: Config,
    pub(crate) manifest: Manifest,
    pub(crate) loaded: Dataset,
}

impl RunArgs {
    pub(crate) fn open(&self, output: &Output) -> anyhow::Result<Opened> {
        let folder = RunFolder::open(&self.run)?;
        let (config, manifest) = (folder.config()?, folder.manifest()?);
        let loaded = load(&manifest, self.data.as_deref(), &self.from, output)?;
        Ok(Opened { folder, config, manifest, loaded })
    }
}

/// Loads the data of a run: what the person names now, or what was named then, read with the flags that were typed then.
pub(crate) fn load(
    manifest: &Manifest,
    data: Option<&str>,
    from: &ReadArgs,
    output: &Output,
) -> anyhow::Result<Dataset> {
    let recorded = &manifest.data;
    let file = recorded.file.as_deref().filter(|file| Path::new(file).exists());
    let data = data.or(file).unwrap_or(&recorded.name);
    let typed_then = typed_from(&manifest.command).filter(|_| from.is_default());
    typed_then.as_ref().unwrap_or(from).load(data, output)
}

/// How a command line of `train` reads its data.
fn typed_from(command: &[String]) -> Option<ReadArgs> {
    match Cli::try_parse_from(command).ok()?.command {
        Command::Train(train) => Some(train.from),
        _ => None,
    }
}
