//! `hopedgn experiment`: a table of the paper as one command.

mod data_dir;
mod pages;
mod report;
mod run;
mod subprocess;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use hopedgn_experiments::experiment::{Experiment, Found, RunArchive, State};

use crate::commands::device::DeviceArgs;
use crate::output::{Outcome, Output};
use data_dir::Place;

#[derive(Debug, Subcommand)]
#[command(after_help = "A whole file:

  extends = \"base/grid.toml\"  # optional: this file says only what is different
  title = \"Two models on two data sets\"
  kind = \"link-prediction\"     # or node-classification
  metrics = [\"ap\", \"auc\"]     # mrr, hits-at-10, parameters, peak-memory, seconds-per-epoch, pairs-per-second
  negatives = [\"random\"]       # of ap and auc; historical and inductive with [evaluate]
  heuristics = [\"edgebank-unlimited\"]  # optional: rows of scorers that learn nothing

  [grid]                       # the product of these, and of [[variant]]s, is the experiment
  model = [\"hopedgn\", \"tgat\"]
  data = [\"uci\", \"enron\"]
  seed = [0, 1, 2]
  mite = [true]                # optional

  [evaluate]                   # optional: `hopedgn evaluate` after each training
  negatives = \"all\"
  ranking = 100

  [[variant]]                  # optional
  name = \"k-16\"
  title = \"K = 16\"
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
  below-paper-at-most = 1.0

  [[figure]]                   # bars; lines, with a sweep of variants; scatter, against another metric
  name = \"k\"
  title = \"Intervals kept\"
  kind = \"lines\"
  metric = \"ap\"
  sweep = \"k\"")]
pub(crate) enum Command {
    Run(Run),
    Status(Status),
    Report(Report),
    Pages(Pages),
    Check(Check),
    Archive(Archive),
}

/// Train every cell that is not done yet, and do what follows it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn experiment run experiments/table-1.toml
  hopedgn experiment run experiments/table-1.toml --device cpu --jobs 4 --data-dir data
  hopedgn experiment run experiments/table-1.toml --smoke

A run with the same settings that another experiment has made is used again. Stop it with Ctrl-C and type the same again to go on. Exit status 1: a cell failed, or data are missing.")]
pub(crate) struct Run {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    kept: ArchivedRuns,
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
    #[command(flatten)]
    kept: ArchivedRuns,
}

/// Write a page and Markdown: ours beside the paper's
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn experiment report experiments/table-1.toml
  hopedgn experiment report experiments/table-2.toml --results results/models.jsonl --markdown table-2.md")]
pub(crate) struct Report {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    kept: ArchivedRuns,
    /// Where the page goes [default: report.html among the runs]
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Where the Markdown goes [default: report.md among the runs]
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// Write the pages of many experiments, and one that lists them
#[derive(Debug, Args)]
#[command(after_help = "Example:
  hopedgn experiment pages experiments --results results/models.jsonl results/hopedgn-tf32.jsonl --into docs/reproduction

Writes NAME.md, NAME.html and the figures of each into the folder, and the list beside it, as docs/reproduction.md.")]
pub(crate) struct Pages {
    /// The files that declare the experiments, or folders of such
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The folder of the pages
    #[arg(long, value_name = "DIR")]
    into: PathBuf,
    /// Where experiments keep their runs
    #[arg(long, value_name = "DIR", default_value = RUNS)]
    runs: PathBuf,
    #[command(flatten)]
    kept: ArchivedRuns,
    #[command(flatten)]
    place: Place,
}

/// Compare what was reached with what the file expects
#[derive(Debug, Args)]
#[command(after_help = "Example:
  hopedgn experiment check experiments/table-1.toml --results results/models.jsonl

Exit status 1: something fell short, or has no result.")]
pub(crate) struct Check {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    kept: ArchivedRuns,
    /// What has no result does not fall short
    #[arg(long)]
    allow_missing: bool,
}

/// Write finished runs to one text file, a line each, for `--results`
#[derive(Debug, Args)]
#[command(after_help = "Example:
  hopedgn experiment archive runs/experiments/table-1 --out results/models.jsonl

Keeps settings, final metrics, speed, evaluation and classification of each run; weights and per-epoch metrics stay in the run folders. Runs that the file already holds stay in it, unless one of the same name is given.")]
pub(crate) struct Archive {
    /// Run folders, or folders of such
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// The archive
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Where experiments keep their runs unless another place is named.
const RUNS: &str = "runs/experiments";

/// The experiment, its runs and its data.
#[derive(Debug, Args)]
pub(crate) struct Files {
    /// The file that declares the experiment
    file: PathBuf,
    /// Where experiments keep their runs, each in a folder of its name; they share what is done
    #[arg(long, value_name = "DIR", default_value = RUNS)]
    runs: PathBuf,
    /// Where this experiment keeps its runs, shared with no other [default: its folder among the others]
    #[arg(long, value_name = "DIR", conflicts_with = "runs")]
    out: Option<PathBuf>,
    /// Every cell for a few steps on a part of the bundled data, with one seed and tiny settings
    #[arg(long)]
    smoke: bool,
    #[command(flatten)]
    place: Place,
}

/// Runs that are not among those of the experiment.
#[derive(Debug, Args)]
pub(crate) struct ArchivedRuns {
    /// Finished runs to use for cells with the same settings: archives (.jsonl), run folders or folders of such. The first named
    /// wins; a quoted name may contain * for anything
    #[arg(long, value_name = "PATH", num_args = 1..)]
    results: Vec<PathBuf>,
}

/// What cells are looked up for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// To show what is there.
    Show,
    /// To do what is not.
    Work,
}

impl Files {
    fn read(&self) -> anyhow::Result<Experiment> {
        Ok(if self.smoke { Experiment::read_small(&self.file) } else { Experiment::read(&self.file) }?)
    }

    fn out(&self, experiment: &Experiment) -> PathBuf {
        let name = experiment.stem() + if self.smoke { "-smoke" } else { "" };
        self.out.clone().unwrap_or_else(|| self.runs.join(name))
    }

    /// Every cell with what there is of it, in its folder, among runs that were kept, or made by another experiment.
    fn found(&self, experiment: &Experiment, kept: &ArchivedRuns, purpose: Purpose) -> anyhow::Result<Vec<Found>> {
        let out = self.out(experiment);
        let kept = RunArchive::read(&kept.patterns())?;
        let mut places = vec![out.clone()];
        if self.out.is_none() {
            places.extend(folders_in(&self.runs).into_iter().filter(|folder| *folder != out));
        }
        let others = RunArchive::of_experiments(&places);
        let mut found = Vec::new();
        for cell in experiment.cells() {
            let own = Found::of(cell, &out)?;
            let mut all = vec![own.clone()];
            if !self.smoke {
                all.splice(0..0, kept.find(cell)?);
            }
            all.extend(others.find(cell)?);
            let is_of_use = |one: &&Found| one.outcome.is_some() && (purpose == Purpose::Show || one.has_weights());
            let best = all.iter().find(|one| one.is_done()).or_else(|| all.iter().find(is_of_use));
            let mut one = best.cloned().unwrap_or(own);
            let has_numbers = one.is_done() || (purpose == Purpose::Show && one.outcome.is_some());
            if !has_numbers
                && one.state != State::Running
                && !self.smoke
                && let Err(remedy) = self.place.find(&cell.data)
            {
                one.state = State::Missing(remedy);
            }
            found.push(one);
        }
        Ok(found)
    }

    /// What was typed of it, to be typed again with another verb.
    fn typed(&self) -> String {
        let out = self.out.as_ref().map(|out| format!(" --out {}", out.display())).unwrap_or_default();
        let runs =
            if self.runs == Path::new(RUNS) { String::new() } else { format!(" --runs {}", self.runs.display()) };
        let smoke = if self.smoke { " --smoke" } else { "" };
        format!("{}{runs}{out}{smoke}{}", self.file.display(), self.place.typed())
    }
}

impl ArchivedRuns {
    /// What each name stands for.
    fn patterns(&self) -> Vec<Vec<PathBuf>> {
        self.results.iter().map(|path| matching(path)).collect()
    }

    fn typed(&self) -> String {
        let quoted = |path: &PathBuf| {
            let quote = if path.to_string_lossy().contains('*') { "'" } else { "" };
            format!(" {quote}{}{quote}", path.display())
        };
        let results: Vec<String> = self.results.iter().map(quoted).collect();
        if results.is_empty() { String::new() } else { format!(" --results{}", results.concat()) }
    }
}

/// The folders that a path means, whose last part may have a * in it.
fn matching(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if !name.contains('*') || path.exists() {
        return vec![path.to_owned()];
    }
    let parts: Vec<&str> = name.split('*').collect();
    let fits = |name: &str| {
        let Some(mut rest) = name.strip_prefix(parts[0]) else { return false };
        for part in &parts[1..parts.len() - 1] {
            let Some(place) = rest.find(part) else { return false };
            rest = &rest[place + part.len()..];
        }
        rest.ends_with(parts[parts.len() - 1])
    };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut found = folders_in(parent);
    found.retain(|folder| folder.file_name().is_some_and(|name| fits(&name.to_string_lossy())));
    // Nothing: the name is told as it was typed.
    if found.is_empty() { vec![path.to_owned()] } else { found }
}

/// The folders in a folder, by name; none where there is no such folder.
fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

pub(crate) fn run(command: &Command, output: &Output) -> anyhow::Result<Outcome> {
    match command {
        Command::Run(args) => run::run(args, output),
        Command::Status(args) => report::status(args, output),
        Command::Report(args) => report::report(args, output),
        Command::Pages(args) => pages::pages(args, output),
        Command::Check(args) => report::check(args, output),
        Command::Archive(args) => archive(args, output),
    }
}

fn archive(args: &Archive, output: &Output) -> anyhow::Result<Outcome> {
    let runs: Vec<PathBuf> = args.runs.iter().flat_map(|path| matching(path)).collect();
    let n_runs = hopedgn_experiments::experiment::archive(&runs, &args.out)?;
    let text = format!("{}: {n_runs} runs\n", args.out.display());
    output.answer(text, &serde_json::json!({ "archive": args.out, "runs": n_runs }))?;
    Ok(Outcome::Done)
}
