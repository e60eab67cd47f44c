//! `hopedgn train`: train a model, with progress, interruption and resumption.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use ctdg::split::SplitMode;
use hopedgn::callbacks::{Callback, TrainStart};
use hopedgn::config::{Config, ConfigFile, ModelConfig, Preset, Protocol, Selection, folder_stem};
use hopedgn::fmt::{duration, grouped};
use hopedgn::metrics::{BetterHeuristic, LinkMetrics, Summary};
use hopedgn::run::RunFolder;
use hopedgn::{Error, Events, LinkPredictor, LinkPredictorBuilder, ModelName, ModelRegistry};
use serde_json::json;

use crate::commands::data_args::ReadArgs;
use crate::commands::device::DeviceArgs;
use crate::commands::heuristics;
use crate::commands::model::ModelArgs;
use crate::commands::process_group;
use crate::commands::progress::ProgressCallback;
use crate::commands::protocol_arg::ProtocolArg;
use crate::commands::run_args;
use crate::commands::table::Table;
use crate::output::{Outcome, Output};
use crate::plural::count;
use crate::version;

/// Train a model and test it; without arguments, statistics of pairs on the bundled data in seconds
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn train
  hopedgn train --data events.csv.gz --model stats
  hopedgn train --data events.csv.gz --preset best --out runs/mine
  hopedgn train --data events.csv.gz --epochs 20 --set model.k=16
  hopedgn train --data events.csv.gz --model tgat --mite
  hopedgn train --config runs/mine/config.toml --seed 1
  hopedgn train --data tgbl-wiki.csv --model stats --protocol tgb
  hopedgn train --resume runs/mine
  hopedgn train --resume runs/mine --data grown.csv --out runs/next

Several processes train one model together, bit for bit as one, if each is started with WORLD_SIZE, its own RANK from 0, and the
MASTER_ADDR and MASTER_PORT of rank 0:
  RANK=0 WORLD_SIZE=2 MASTER_ADDR=node-0 MASTER_PORT=29500 hopedgn train --data events.ctdg --out runs/mine

All settings: hopedgn train --show-config")]
pub(crate) struct Train {
    /// A bundled or fetched dataset, or a file [default: collegemsg, with the model stats or the preset quick of another one]
    #[arg(long, value_name = "D")]
    data: Option<String>,
    #[command(flatten)]
    model: ModelArgs,
    /// Settings from a TOML file, such as the config.toml of a run; [read] may say how the data is read. Flags win over it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Settings that go together: quick, or the name of a dataset of the paper; best and dyglib are applied on top of the dataset's
    /// own [default: the dataset's own]
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// Whose rules split the data and choose the best epoch; tgb: no node masked, by validation MRR [default: dyglib]
    #[arg(long, value_enum, value_name = "NAME")]
    protocol: Option<ProtocolArg>,
    /// Training epochs at most
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,
    /// Seed of initial weights, training negatives and dropout
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// The run folder [default: a new folder in runs/]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Change one setting; may be given many times
    #[arg(long, value_name = "A.B=V")]
    set: Vec<String>,
    /// Continue an interrupted run; with --epochs, also a completed one; with --data and newer events than the run's, train a new
    /// run that begins with its weights
    #[arg(long, value_name = "DIR", conflicts_with_all = ["config", "preset", "seed", "model", "mite", "stats", "triads", "walks", "protocol"])]
    resume: Option<PathBuf>,
    /// Print the resolved settings and stop
    #[arg(long)]
    show_config: bool,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    pub(crate) from: ReadArgs,
}

pub(crate) fn run(args: &Train, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Outcome> {
    match &args.resume {
        Some(folder) => resume(args, folder, registry, output),
        None => start(args, registry, output),
    }
}

fn start(args: &Train, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Outcome> {
    let file = args.config.as_deref().map(read_config).transpose()?;
    let config = args.resolve(file.as_ref(), registry, output)?;
    if args.show_config {
        output.answer(config.to_toml()?, &config)?;
        return Ok(Outcome::Done);
    }
    let below = file.as_ref().and_then(ConfigFile::read_options).cloned().unwrap_or_default();
    let events = args.from.load_with(&config.data, &args.from.options_over(&below), output)?;
    fit(args, LinkPredictor::builder().registry(registry.clone()).config(config), &events, output)
}

/// Reads a file of settings.
fn read_config(path: &Path) -> anyhow::Result<ConfigFile> {
    let name = path.display();
    anyhow::ensure!(
        !path.is_dir(),
        "{name}: found a folder, expected a file of settings; name a file in it, such as the config.toml of a run"
    );
    anyhow::ensure!(
        path.exists(),
        "{name}: found no such file, expected settings (TOML); `hopedgn train --show-config` prints such a file"
    );
    let text = std::fs::read_to_string(path).with_context(|| format!("could not read {name}"))?;
    Ok(ConfigFile::parse(&text, &name.to_string())?)
}

/// Trains a new run.
fn fit(args: &Train, builder: LinkPredictorBuilder<'_>, events: &Events, output: &Output) -> anyhow::Result<Outcome> {
    let config = builder.resolve(events.name())?;
    let device = args.device.open_for(&config.model, output)?;
    let group = process_group::from_environment(output)?;
    let is_first = group.rank() == 0;
    // Of several processes the first one has the folder.
    let folder = args.out.clone().or_else(|| (!is_first).then(PathBuf::new));
    let folder = folder.map_or_else(|| free_folder(&config), Ok)?;
    let mut progress = ProgressCallback::new(output)?;
    let announce = Announce { folder: &folder, is_first, output };
    let builder = builder.device(device).group(group).run_folder(&folder).command(output.command());
    let mut builder: LinkPredictorBuilder<'_> = with_memory_limit(builder, output);
    if let Some(commit) = version::commit() {
        builder = builder.commit(commit);
    }
    let trained = builder.callback(announce).callback(&mut progress).fit(events);
    if trained.is_err() {
        // Removes the folder if it is still empty.
        let _ = std::fs::remove_dir(&folder);
    }
    finish(trained, &config, is_first.then_some(&*folder), args, output)
}

/// Continues a run, or starts another one with its weights if the user names data that has grown.
fn resume(args: &Train, folder: &Path, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Outcome> {
    let run = RunFolder::open(folder)?;
    let manifest = run.manifest()?;
    let mut builder: LinkPredictorBuilder<'_> = LinkPredictor::builder().registry(registry.clone());
    let mut config = run.config(registry)?;
    let settings = args.epochs.map(|epochs| format!("train.epochs={epochs}"));
    let settings: Vec<String> = settings.into_iter().chain(args.set.iter().cloned()).collect();
    config = config.changed_by(registry, &settings)?;
    builder = settings.into_iter().fold(builder, LinkPredictorBuilder::set);
    if args.show_config {
        output.answer(config.to_toml()?, &config)?;
        return Ok(Outcome::Done);
    }
    let events = run_args::load_events(folder, &manifest, args.data.as_deref(), &args.from, output)?;
    run_args::begins_with_run(&manifest, &events, &args.from, output)?;
    let newer = events.len().saturating_sub(manifest.data.events);
    if newer > 0 && args.data.is_some() {
        let run = folder.display();
        output.remark(format_args!("{} since {run}: a new run begins with its weights", count(newer, "newer event")));
        return fit(args, builder.warm_start(folder), &events, output);
    }
    anyhow::ensure!(
        args.out.is_none(),
        "found --out with --resume, expected newer events than those of {0}: name them with --data to train a new run that begins \
         with its weights, or leave --out away to continue {0}",
        folder.display()
    );
    let device = args.device.open_for(&config.model, output)?;
    output.remark(format_args!("resuming {}", folder.display()));
    if newer > 0 {
        output.remark(format_args!(
            "on its own {}; {} in {} left out (--data {2} trains a new run with them)",
            count(manifest.data.events, "event"),
            count(newer, "newer one"),
            events.name()
        ));
    }
    let group = process_group::from_environment(output)?;
    let is_first = group.rank() == 0;
    let mut progress = ProgressCallback::new(output)?;
    let builder: LinkPredictorBuilder<'_> = with_memory_limit(builder, output);
    let resumed = builder.device(device).group(group).callback(&mut progress).resume(folder, &events);
    finish(resumed, &config, is_first.then_some(folder), args, output)
}

fn with_memory_limit<'c>(builder: LinkPredictorBuilder<'c>, output: &Output) -> LinkPredictorBuilder<'c> {
    match output.max_memory() {
        Some(bytes) => builder.max_memory(bytes),
        None => builder,
    }
}

/// Says what is about to be trained.
struct Announce<'a> {
    folder: &'a Path,
    /// Whether this process has the folder.
    is_first: bool,
    output: &'a Output,
}

impl Callback for Announce<'_> {
    fn on_train_start(&mut self, start: &TrainStart<'_>) -> hopedgn::Result<()> {
        let config = start.config;
        self.output.remark(format_args!(
            "training {} on {} ({}), seed {}; run folder {}",
            config.model.name().title(),
            config.data,
            count(start.task.split.train.len(), "training event"),
            config.seed,
            if self.is_first { self.folder.display().to_string() } else { "at rank 0".to_owned() }
        ));
        Ok(())
    }
}

/// Says what came of it. `folder` is that of the run; processes beside the first one have none, and leave the words to it.
fn finish(
    trained: hopedgn::Result<LinkPredictor>,
    config: &Config,
    folder: Option<&Path>,
    args: &Train,
    output: &Output,
) -> anyhow::Result<Outcome> {
    let Some(folder) = folder else {
        return match trained.map(|predictor| predictor.summary().cloned()) {
            Ok(summary) => output.answer("", &summary).map(|()| Outcome::Done),
            Err(Error::Interrupted) => Ok(Outcome::FellShort),
            Err(error) => Err(error.into()),
        };
    };
    let resume = format!("hopedgn train --resume {}{}", folder.display(), args.device.typed());
    match trained.map(|predictor| predictor.summary().cloned()) {
        Ok(summary) => {
            let Some(summary) = summary else { return Ok(Outcome::FellShort) };
            let train = &config.train;
            if summary.epochs < train.epochs {
                output.remark(format_args!(
                    "stopped early after {} of {}: no better validation for {} (train.patience)",
                    grouped(summary.epochs),
                    count(train.epochs, "epoch"),
                    count(train.patience, "epoch")
                ));
            }
            output.answer(text(&summary, &config.model, folder), &summary)?;
            if (config.split, train.select) == (SplitMode::Tgb, Selection::Mrr) {
                let folder = folder.display();
                output.remark(format_args!("test it by TGB's rules with: hopedgn evaluate {folder} --protocol tgb"));
            }
            Ok(Outcome::Done)
        }
        Err(Error::Interrupted) => {
            output.remark(format_args!("interrupted; everything is saved. Continue with: {resume}"));
            output.answer("", &json!({ "interrupted": true, "run": folder }))?;
            Ok(Outcome::FellShort)
        }
        Err(error) => {
            let is_device = matches!(error, Error::Tensor(_));
            let error = anyhow::Error::from(error);
            let has_checkpoint = RunFolder::open(folder).is_ok_and(|folder| folder.has_state());
            if is_device && has_checkpoint {
                return Err(error.context(format!(
                    "training stopped; the last checkpoint is intact. Continue with: {resume} (on the CPU: --device cpu)"
                )));
            }
            Err(error)
        }
    }
}

impl Train {
    /// The settings: those of the model, of presets, of `file`, and of flags; each later one wins.
    fn resolve(&self, file: Option<&ConfigFile>, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Config> {
        let data = self.data.as_deref().or_else(|| file.and_then(ConfigFile::data));
        let of_model = |setting: &String| setting.trim_start().starts_with("model.");
        let says_nothing = data.is_none() && file.is_none() && self.preset.is_none() && self.model.is_open();
        let first_model = (says_nothing && !self.set.iter().any(of_model)).then_some(ModelName::Stats);
        let own = match (data, first_model) {
            (Some(data), _) => Preset::for_data(data),
            (None, Some(_)) => None,
            (None, None) => Some(Preset::Quick),
        };
        let presets = Preset::of_run(own, self.preset.as_deref())?;
        for preset in &presets {
            output.remark(format_args!("preset {}: {}", preset.name(), preset.about()));
        }
        let mut settings = Vec::new();
        settings.extend(self.protocol.into_iter().flat_map(|protocol| Protocol::from(protocol).settings()));
        settings.extend(self.epochs.map(|epochs| format!("train.epochs={epochs}")));
        settings.extend(self.seed.map(|seed| format!("seed={seed}")));
        settings.extend(self.model.settings());
        settings.extend(self.set.iter().cloned());
        let config = if let Some(file) = file {
            file.resolve(registry, self.model.chosen(registry)?, &presets, &settings)?
        } else {
            let model = first_model.map_or_else(|| self.model.name(registry), Ok)?;
            Config::resolve_with(registry, model, &presets, &settings)?
        };
        if self.model.is_open() && presets.is_empty() && self.epochs.is_none() && self.set.is_empty() && file.is_none()
        {
            output.remark(match first_model {
                Some(_) => "statistics of pairs, the model that trains in seconds; --preset best trains the most accurate one",
                None => {
                    "HopeDGN as in its paper, up to 50 epochs; --preset best is more accurate, --model stats trains in seconds"
                }
            });
        }
        config.check_effects(&settings)?;
        let left_out = file.map(|file| file.left_out(&config)).unwrap_or_default();
        if !left_out.is_empty() {
            let (model, left_out) = (config.model.name().title(), left_out.join(", "));
            output.remark(format_args!("settings of the file that {model} does not have are left out: {left_out}"));
        }
        Ok(match &self.data {
            Some(data) => Config { data: data.clone(), ..config },
            None => config,
        })
    }
}

/// Creates the first of `runs/DATA-MODEL-SEED`, `runs/DATA-MODEL-SEED-2`, … that does not exist.
fn free_folder(config: &Config) -> anyhow::Result<PathBuf> {
    let base = format!("{}-{}-{}", folder_stem(&config.data), config.model.name().as_str(), config.seed);
    let runs = Path::new("runs");
    std::fs::create_dir_all(runs).context("could not create the folder runs; name another one with --out")?;
    let numbered = (2..).map(|number| runs.join(format!("{base}-{number}")));
    for folder in std::iter::once(runs.join(&base)).chain(numbered) {
        match std::fs::create_dir(&folder) {
            // Another process may have been quicker.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            created => {
                created
                    .with_context(|| format!("could not create {}; name another one with --out", folder.display()))?;
                return Ok(folder);
            }
        }
    }
    unreachable!("one of the numbers is free")
}

fn text(summary: &Summary, model: &ModelConfig, folder: &Path) -> String {
    let cells = |metrics: Option<LinkMetrics>| match metrics {
        Some(LinkMetrics { ap, auc, .. }) => [100.0 * ap, 100.0 * auc].map(|value| format!("{value:.2}")),
        None => [const { String::new() }; 2],
    };
    let mut table = Table::new(["test, random negatives", "AP", "AUC", "new nodes: AP", "AUC"]);
    let own = std::iter::once((summary.model.as_str(), &summary.test));
    for (name, settings) in own.chain(summary.heuristics.iter().map(|(name, settings)| (name.as_str(), settings))) {
        table.row(name, [cells(settings.transductive), cells(settings.inductive)].concat());
    }
    let better: Vec<BetterHeuristic> = summary.better_heuristic().into_iter().collect();
    let better = heuristics::better(&better, summary, model, folder);
    format!(
        "{table}\n{better}{}, the best was {}; {} an epoch, {}, {} MB peak memory\n{}\n",
        count(summary.epochs, "epoch"),
        summary.best_epoch,
        duration(summary.seconds_per_epoch),
        count(summary.parameters, "parameter"),
        summary.peak_memory.map_or("?".to_owned(), |bytes| grouped(bytes / 1_000_000)),
        folder.join("report.html").display()
    )
}
