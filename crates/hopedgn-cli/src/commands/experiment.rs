//! `hopedgn experiment`: a table of the paper as one command.

mod answer;
mod children;
mod place;
mod run;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use hopedgn::experiment::{Experiment, Found, Kept, State};

use crate::commands::device::DeviceArgs;
use crate::output::{Outcome, Output};
use place::Place;

#[derive(Debug, Subcommand)]
#[command(after_help = "A whole file:

  title = \"Two models on two data sets\"
  kind = \"link-prediction\"
  metrics = [\"ap\", \"auc\"]

  [grid]                       # the product of these, and of [[variant]]s, is the experiment
  model = [\"hopedgn\", \"tgat\"]
  data = [\"uci\", \"enron\"]
  seed = [0, 1, 2]
  mite = [true]                # optional

  [[variant]]                  # optional
  name = \"k-16\"
  set = { model.k = 16 }

  [[override]]                 # later wins; one that fits no cell is an error
  when = { model = \"tgat\", data = [\"uci\"] }
  set = { model.dropout = 0.2 }
  source = \"where this number was published\"

  [[exclude]]
  when = { model = \"tgat\", data = \"enron\" }

  [[paper]]                    # in percent: mean, deviation
  model = \"hopedgn\"
  data = \"uci\"
  transductive = { ap = [97.18, 0.06], auc = [96.51, 0.08] }

  [[expect]]                   # or at-least = 95.0
  when = { model = \"hopedgn\", data = \"uci\" }
  below-paper-at-most = 1.0")]
pub(crate) enum Command {
    Run(Run),
    Status(Status),
    Report(Report),
    Check(Check),
}

/// Train every cell that is not done yet
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn experiment run experiments/table-1.toml
  hopedgn experiment run experiments/table-1.toml --device cpu --jobs 4 --data-dir data
  hopedgn experiment run experiments/table-1.toml --smoke

Stop it with Ctrl-C and type the same again to go on. Exit status 1: a cell failed, or data are missing.")]
pub(crate) struct Run {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    device: DeviceArgs,
    /// Cells at a time, each in a process of its own; on a GPU always one [default: 1]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
}

/// How far every cell is
#[derive(Debug, Args)]
#[command(after_help = "Example:
  hopedgn experiment status experiments/table-1.toml")]
pub(crate) struct Status {
    #[command(flatten)]
    files: Files,
}

/// Write a page and Markdown: ours beside the paper's
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn experiment report experiments/table-1.toml
  hopedgn experiment report experiments/table-2.toml --results results/models --markdown docs/table-2.md")]
pub(crate) struct Report {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    kept: KeptRuns,
    /// Where the page goes [default: report.html among the runs]
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Where the Markdown goes [default: report.md among the runs]
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// Compare what was reached with what the file expects
#[derive(Debug, Args)]
#[command(after_help = "Example:
  hopedgn experiment check experiments/table-1.toml --results results/models

Exit status 1: something fell short, or has no result.")]
pub(crate) struct Check {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    kept: KeptRuns,
    /// What has no result does not fall short
    #[arg(long)]
    allow_missing: bool,
}

/// The experiment, its runs and its data.
#[derive(Debug, Args)]
pub(crate) struct Files {
    /// The file that declares the experiment
    file: PathBuf,
    /// Where the runs are kept [default: runs/experiments/NAME of the file]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Every cell for a few steps on a part of the bundled data, with one seed and tiny settings
    #[arg(long)]
    smoke: bool,
    #[command(flatten)]
    place: Place,
}

/// Runs that are not among those of the experiment.
#[derive(Debug, Args)]
pub(crate) struct KeptRuns {
    /// Finished runs, or folders of such, to take the place of cells with the same settings
    #[arg(long, value_name = "DIR", num_args = 1..)]
    results: Vec<PathBuf>,
}

impl Files {
    fn read(&self) -> anyhow::Result<Experiment> {
        Ok(if self.smoke { Experiment::read_small(&self.file) } else { Experiment::read(&self.file) }?)
    }

    fn out(&self, experiment: &Experiment) -> PathBuf {
        let name = experiment.stem() + if self.smoke { "-smoke" } else { "" };
        self.out.clone().unwrap_or_else(|| Path::new("runs").join("experiments").join(name))
    }

    /// Every cell with what there is of it.
    fn found(&self, experiment: &Experiment) -> anyhow::Result<Vec<Found>> {
        let out = self.out(experiment);
        let mut found = Vec::new();
        for cell in experiment.cells() {
            let mut one = Found::of(cell, &out)?;
            if !matches!(one.state, State::Done(_) | State::Running)
                && !self.smoke
                && let Err(remedy) = self.place.find(&cell.data)
            {
                one.state = State::Missing(remedy);
            }
            found.push(one);
        }
        Ok(found)
    }

    /// The same, runs that were kept first.
    fn found_with(&self, experiment: &Experiment, kept: &KeptRuns) -> anyhow::Result<Vec<Found>> {
        let (mut found, kept) = (self.found(experiment)?, Kept::read(&kept.results)?);
        for one in &mut found {
            if let Some(other) = kept.find(&one.cell)? {
                *one = other;
            }
        }
        Ok(found)
    }

    /// What was typed of it, to be typed again with another verb.
    fn typed(&self) -> String {
        let out = self.out.as_ref().map(|out| format!(" --out {}", out.display())).unwrap_or_default();
        let smoke = if self.smoke { " --smoke" } else { "" };
        format!("{}{out}{smoke}{}", self.file.display(), self.place.typed())
    }
}

pub(crate) fn run(command: &Command, output: &Output) -> anyhow::Result<Outcome> {
    match command {
        Command::Run(args) => run::run(args, output),
        Command::Status(args) => answer::status(args, output),
        Command::Report(args) => answer::report(args, output),
        Command::Check(args) => answer::check(args, output),
    }
}
