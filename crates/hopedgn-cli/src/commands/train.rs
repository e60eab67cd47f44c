//! `hopedgn train`: learn, watch, stop and go on.

use std::path::{Path, PathBuf};

use clap::Args;
use hopedgn::Error;
use hopedgn::config::{Config, Preset, TrainConfig, data_stem};
use hopedgn::metrics::{LinkMetrics, Summary};
use hopedgn::run::{DataRecord, Manifest, RunFolder, Session};
use hopedgn::task::Task;
use serde_json::json;

use crate::commands::data_args::{Dataset, ReadArgs};
use crate::commands::device::DeviceArgs;
use crate::commands::model::ModelArgs;
use crate::commands::progress::{ProgressCallback, wall_time};
use crate::commands::run_args;
use crate::commands::table::Table;
use crate::output::{Outcome, Output};
use hopedgn::fmt::{duration, grouped};

/// Train a model and test it; without arguments, HopeDGN on the bundled data in a few minutes
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn train
  hopedgn train --data events.csv.gz --out runs/mine --epochs 20 --set model.k=16
  hopedgn train --data events.csv.gz --model tgat --mite
  hopedgn train --resume runs/mine

What can be set: hopedgn train --show-config")]
pub(crate) struct Train {
    /// A bundled or fetched data set, or a file [default: collegemsg with the preset quick]
    #[arg(long, value_name = "D")]
    data: Option<String>,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    device: DeviceArgs,
    /// Settings that go together: quick, the name of a data set of the paper, or on top of those dyglib [default: the data
    /// set's own]
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// Passes over the training events at most
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,
    /// Decides initial weights, training negatives and dropout
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Where the run is kept [default: a new folder in runs/]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Change one setting; may be given many times
    #[arg(long, value_name = "A.B=V")]
    set: Vec<String>,
    /// Go on with a run that was interrupted; with --epochs, one that has ended
    #[arg(long, value_name = "DIR", conflicts_with_all = ["out", "preset", "set", "seed", "model", "mite"])]
    resume: Option<PathBuf>,
    /// Print the resolved settings and stop
    #[arg(long)]
    show_config: bool,
    #[command(flatten)]
    pub(crate) from: ReadArgs,
}

pub(crate) fn run(args: &Train, output: &Output) -> anyhow::Result<Outcome> {
    if let Some(folder) = &args.resume {
        return resume(args, folder, output);
    }
    let config = args.config(output)?;
    if args.show_config {
        output.answer(config.to_toml()?, &config)?;
        return Ok(Outcome::Done);
    }
    let device = args.device.open_for(&config.model, output)?;
    let loaded = args.from.load(&config.data, output)?;
    let task = Task::new(&loaded.stream, config.split)?;
    let manifest = manifest(&loaded, &task);
    let folder = match &args.out {
        Some(path) => RunFolder::create(path, &config, &manifest)?,
        None => new_folder(&config, &manifest)?,
    };
    let path = folder.path().to_owned();
    output.remark(format_args!(
        "training {} on {} ({} events to learn from), seed {}; run folder {}",
        config.model.name.title(),
        config.data,
        grouped(task.split.train.len()),
        config.seed,
        path.display()
    ));
    let trained = train(&Session { folder: &folder, config: &config, task: &task, device: &device }, args, output);
    if trained.is_err() {
        folder.remove_unless_begun();
    }
    trained
}

fn resume(args: &Train, path: &Path, output: &Output) -> anyhow::Result<Outcome> {
    let folder = RunFolder::open(path)?;
    let mut config = folder.config()?;
    if let Some(epochs) = args.epochs {
        config.train.epochs = epochs;
        config.check()?;
    }
    if args.show_config {
        output.answer(config.to_toml()?, &config)?;
        return Ok(Outcome::Done);
    }
    let device = args.device.open_for(&config.model, output)?;
    let manifest = folder.manifest()?;
    let loaded = run_args::load(&manifest, args.data.as_deref(), &args.from, output)?;
    manifest.data.check(&loaded.stream)?;
    let task = Task::with_rule(&loaded.stream, &manifest.split)?;
    output.remark(format_args!("going on with {}", path.display()));
    train(&Session { folder: &folder, config: &config, task: &task, device: &device }, args, output)
}

fn train(session: &Session<'_>, args: &Train, output: &Output) -> anyhow::Result<Outcome> {
    let go_on = format!("hopedgn train --resume {}{}", session.folder.path().display(), args.device.typed());
    let mut watch = ProgressCallback::new(output)?;
    match session.train(&mut watch) {
        Ok(summary) => {
            let TrainConfig { epochs, patience, .. } = session.config.train;
            if summary.epochs < epochs {
                output.remark(format_args!(
                    "ended after {} of {epochs} epochs: {patience} without a better validation (train.patience)",
                    summary.epochs
                ));
            }
            output.answer(text(&summary, session.folder.path()), &summary)?;
            Ok(Outcome::Done)
        }
        Err(Error::Interrupted) => {
            output.remark(format_args!("stopped; everything is saved. Go on with: {go_on}"));
            output.answer("", &json!({ "interrupted": true, "run": session.folder.path() }))?;
            Ok(Outcome::FellShort)
        }
        Err(error) => {
            let lost = matches!(error, Error::Tensor(_));
            let error = anyhow::Error::from(error);
            if lost && session.folder.has_state() {
                return Err(error.context(format!(
                    "training stopped; the last saved state is whole. Go on with: {go_on} (on the CPU: --device cpu)"
                )));
            }
            Err(error)
        }
    }
}

impl Train {
    fn config(&self, output: &Output) -> anyhow::Result<Config> {
        let own = || self.data.as_ref().map_or(Preset::named("quick").ok(), |data| Preset::for_data(data));
        let presets: Vec<&Preset> = match self.preset.as_deref().map(Preset::named).transpose()? {
            Some(preset) if preset.on_top => own().into_iter().chain([preset]).collect(),
            Some(preset) => vec![preset],
            None => own().into_iter().collect(),
        };
        for preset in &presets {
            output.remark(format_args!("settings: {} ({})", preset.name, preset.about));
        }
        let mut settings = Vec::new();
        settings.extend(self.epochs.map(|epochs| format!("train.epochs={epochs}")));
        settings.extend(self.seed.map(|seed| format!("seed={seed}")));
        settings.extend(self.model.settings());
        settings.extend(self.set.iter().cloned());
        let mut config = Config::resolve(self.model.name(), &presets, &settings)?;
        if let Some(data) = &self.data {
            config.data.clone_from(data);
        }
        Ok(config)
    }
}

/// A new folder `runs/DATA-MODEL-SEED`, with a number behind it where that is taken.
fn new_folder(config: &Config, manifest: &Manifest) -> Result<RunFolder, Error> {
    let data = data_stem(&config.data);
    let base = format!("{data}-{}-{}", config.model.name.as_str(), config.seed);
    let runs = Path::new("runs");
    let numbered = (2..).map(|number| runs.join(format!("{base}-{number}")));
    let mut free = std::iter::once(runs.join(&base)).chain(numbered).filter(|path| !path.exists());
    loop {
        let path = free.next().unwrap_or_else(|| runs.join(&base));
        match RunFolder::create(&path, config, manifest) {
            // Another program was quicker.
            Err(_) if path.exists() => {}
            made => return made,
        }
    }
}

fn manifest(loaded: &Dataset, task: &Task<'_>) -> Manifest {
    let path = Path::new(&loaded.name);
    let file = path.exists().then(|| std::path::absolute(path).ok()).flatten();
    let file = file.filter(|_| loaded.name != ctdg::dataset::COLLEGEMSG);
    Manifest {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: option_env!("HOPEDGN_COMMIT").map(str::to_owned),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        started: wall_time(),
        threads: rayon::current_num_threads(),
        machine: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        data: DataRecord::of(&loaded.stream, &loaded.name, file.map(|file| file.to_string_lossy().into_owned())),
        split: task.split.rule.clone(),
    }
}

fn text(summary: &Summary, folder: &Path) -> String {
    let cells = |metrics: Option<LinkMetrics>| match metrics {
        Some(LinkMetrics { ap, auc, .. }) => [100.0 * ap, 100.0 * auc].map(|value| format!("{value:.2}")),
        None => [const { String::new() }; 2],
    };
    let mut table = Table::new(["test, random negatives", "AP", "AUC", "new nodes: AP", "AUC"]);
    let model = std::iter::once((summary.model.as_str(), &summary.test));
    for (name, settings) in model.chain(summary.heuristics.iter().map(|(name, settings)| (name.as_str(), settings))) {
        table.row(name, [cells(settings.transductive), cells(settings.inductive)].concat());
    }
    format!(
        "{table}\n{} epochs, the best was {}; {} an epoch, {} weights, {} MB of memory at most\n{}\n",
        summary.epochs,
        summary.best_epoch,
        duration(summary.seconds_per_epoch),
        grouped(summary.parameters),
        summary.peak_memory.map_or("?".to_owned(), |bytes| grouped(bytes / 1_000_000)),
        folder.join("report.html").display()
    )
}
