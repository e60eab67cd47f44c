//! `hopedgn experiment`: grids of runs, and their tables beside those of the paper.

mod cluster;
mod contents;
mod data_dir;
mod pages;
mod report;
mod run;
mod subprocess;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use hopedgn::ModelRegistry;
use hopedgn_experiments::experiment::{self, Cell, Experiment, Found, RunArchive, State};

use crate::commands::device::DeviceArgs;
use crate::output::{Outcome, Output};
use crate::plural::count;
use contents::Contents;
use data_dir::DataDirArgs;

/// Lines stay below 80 columns, so that no terminal wraps them into something else.
const EXAMPLE_FILE: &str = r#"An experiment is a TOML file. All that it may hold:

  extends = "base/grid.toml"    # optional: state only what differs
  title = "Two models on two datasets"
  kind = "link-prediction"      # or node-classification
  # also: mrr, hits-at-10, ndcg-at-10, parameters, peak-memory,
  # seconds-per-epoch, pairs-per-second; without this line, all that
  # [evaluate] measures
  metrics = ["ap", "auc"]
  # for ap and auc; without this line, those of [evaluate]
  negatives = ["random"]
  # the plain model beside its variants; true unless stated
  baseline = true
  # optional: rows of scorers without parameters
  heuristics = ["edgebank-unlimited"]

  # the product of these, and of all [[variant]]s, is the experiment
  [grid]
  model = ["hopedgn", "tgat"]
  data = ["uci", "enron"]
  seed = [0, 1, 2]
  mite = [true]                 # optional

  # optional: how the file of a dataset is read. Also: format, label, features,
  # header, delimiter, ids, bipartite, time-unit, dedup
  [read.enron]
  src = "sender"                # a name, or a position from 1
  dst = "receiver"
  time = 3
  sort = true

  # optional: `hopedgn evaluate` after each training
  [evaluate]
  negatives = "all"
  ranking = 100
  # or "tgb", which also decides split and selection of the training
  protocol = "dyglib"

  [[variant]]                   # optional
  name = "k-16"
  title = "K = 16"
  set = { model.k = 16 }

  # later ones win; one that fits no cell is an error
  [[override]]
  when = { model = "tgat", data = ["uci"] }
  set = { model.dropout = 0.2 }
  source = "where this number was published"

  [[exclude]]
  when = { model = "tgat", data = "enron" }

  # values of the paper in percent: mean, standard deviation
  [[paper]]
  model = "hopedgn"
  data = "uci"
  transductive = { ap = [97.18, 0.06], auc = [96.51, 0.08] }

  # the same from a file
  [[paper-from]]
  file = "base/paper.toml"
  when = { data = "enron" }     # optional

  # for `experiment check`; or at-least = 95.0
  [[expect]]
  when = { model = "hopedgn", data = "uci" }
  below-paper-at-most = 1.0

  # kind: bars; lines, over a sweep of variants; scatter, against another metric
  [[figure]]
  name = "k"
  title = "Intervals kept"
  kind = "lines"
  metric = "ap"
  sweep = "k"

Examples:
  hopedgn experiment run experiments/table-1.toml --smoke
  hopedgn experiment status experiments/table-1.toml
  hopedgn experiment report experiments/table-1.toml"#;

#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLE_FILE)]
pub(crate) enum Command {
    Run(Run),
    Status(Status),
    Report(Report),
    Pages(Pages),
    Check(Check),
    Archive(Archive),
}

/// Train, evaluate and classify every cell that is not done yet
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn experiment run experiments/table-1.toml
  hopedgn experiment run experiments/table-1.toml --device cpu --jobs 4 --data-dir data
  hopedgn experiment run experiments/table-1.toml --smoke
  hopedgn experiment run experiments/table-1.toml --on ray://head:10001 --cpus 4

A finished run of another experiment with the same settings is reused.
Stop with Ctrl-C; the same command continues.
Exit status 1: a cell failed, or a dataset is missing.")]
pub(crate) struct Run {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    archive: ArchivedRuns,
    /// Cells to run at once, each in its own process, and all on one GPU if that is the device. They compute at the same time there if
    /// NVIDIA's MPS runs (`nvidia-cuda-mps-control -d`), else in turns [default: 1]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Run these cells only, by their names in `experiment status`
    #[arg(long = "cell", value_name = "NAME", num_args = 1..)]
    cells: Vec<String>,
    /// Run the cells as tasks of a Ray cluster: `ray://HOST:PORT`, `HOST:PORT`, `auto` for the one on this machine, `local` for a new
    /// one. Needs the Python package with Ray, and the file, data and runs at the same paths on every node
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["jobs", "cells"])]
    on: Option<String>,
    /// With --on: CPUs of each cell, which computes with as many threads [default: 1]
    #[arg(long, value_name = "N", requires = "on")]
    cpus: Option<usize>,
    /// With --on: GPUs of each cell, also a fraction [default: 1 with --device cuda, and with auto where the cluster has GPUs]
    #[arg(long, value_name = "N", requires = "on")]
    gpus: Option<f64>,
    /// With --on: the Python that has the package `hopedgn` and Ray
    #[arg(long, value_name = "PROGRAM", env = "HOPEDGN_PYTHON", hide_env_values = true, default_value = "python3")]
    python: PathBuf,
    #[command(flatten)]
    device: DeviceArgs,
}

/// Show the state of every cell
#[derive(Debug, Args)]
#[command(after_help = "Example:
  hopedgn experiment status experiments/table-1.toml")]
pub(crate) struct Status {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    archive: ArchivedRuns,
}

/// Write tables and figures beside the values of the paper, as HTML and Markdown; or print the tables
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn experiment report experiments/table-1.toml
  hopedgn experiment report experiments/table-2.toml --results results/models.jsonl
  hopedgn experiment report experiments/table-1.toml --format latex > table-1.tex
  hopedgn experiment report experiments/table-1.toml --format csv > table-1.csv")]
pub(crate) struct Report {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    archive: ArchivedRuns,
    /// File of the HTML page [default: report.html in the folder of the runs]
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// File of the Markdown page [default: report.md in the folder of the runs]
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Print the tables in this format instead, and write no page
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with_all = ["html", "markdown"])]
    format: Option<TableFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TableFormat {
    /// Tables of the Markdown page, with the values of the paper
    Markdown,
    /// Tables with booktabs, one for each metric
    Latex,
    /// One line for each row, dataset and metric: mean, sd, n, published
    Csv,
    /// The document that --json prints
    Json,
}

/// Write the pages of many experiments and an index of them
#[derive(Debug, Args)]
#[command(after_help = "Example:
  hopedgn experiment pages experiments --results results/models.jsonl --into docs/reproduction

Writes NAME.md, NAME.html and the figures of each experiment to docs/reproduction/,
and the index to docs/reproduction.md.")]
pub(crate) struct Pages {
    /// Experiment files, or folders of them
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Folder for the pages
    #[arg(long, value_name = "DIR")]
    into: PathBuf,
    /// Folder of the runs of all experiments
    #[arg(long, value_name = "DIR", default_value = RUNS)]
    runs: PathBuf,
    #[command(flatten)]
    archive: ArchivedRuns,
    #[command(flatten)]
    data_dir: DataDirArgs,
}

/// Check the results against the expectations of the file ([[expect]])
#[derive(Debug, Args)]
#[command(after_help = "Example:
  hopedgn experiment check experiments/table-1.toml --results results/models.jsonl

Exit status 1: a result falls short or is missing.
A file without [[expect]] has nothing to check: exit status 0.")]
pub(crate) struct Check {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    archive: ArchivedRuns,
    /// Ignore expectations without a result
    #[arg(long)]
    allow_missing: bool,
}

/// Write finished runs to one file, a line each, for `--results`
#[derive(Debug, Args)]
#[command(after_help = "Example:
  hopedgn experiment archive runs/experiments/table-1 --out results/models.jsonl

Keeps settings, final metrics, speed, evaluation and classification of each run;
weights and metrics of epochs stay in the run folders. A run that the file
already holds is replaced by one of the same name, and kept otherwise.")]
pub(crate) struct Archive {
    /// Run folders, or folders of them
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// The archive
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// Default folder of the runs of all experiments.
const RUNS: &str = "runs/experiments";

/// The experiment file, the folder of its runs, and its datasets.
#[derive(Debug, Args)]
pub(crate) struct Files {
    /// The experiment file
    file: PathBuf,
    /// Folder of the runs of all experiments, which reuse each other's finished runs
    #[arg(long, value_name = "DIR", default_value = RUNS)]
    runs: PathBuf,
    /// Folder of the runs of this experiment alone [default: RUNS/NAME]
    #[arg(long, value_name = "DIR", conflicts_with = "runs")]
    out: Option<PathBuf>,
    /// Try every cell for a few steps: one seed, tiny settings, a part of the bundled data
    #[arg(long)]
    smoke: bool,
    #[command(flatten)]
    data_dir: DataDirArgs,
}

/// Finished runs outside the folder of the experiment.
#[derive(Debug, Args)]
pub(crate) struct ArchivedRuns {
    /// Reuse these finished runs for cells with the same settings: archives (.jsonl), run folders, or folders of them. The first
    /// fit wins; a quoted name may contain *
    #[arg(long, value_name = "PATH", num_args = 1..)]
    results: Vec<PathBuf>,
}

/// Which finished or partial runs a cell may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lookup {
    /// Any run with results, to display them.
    Display,
    /// Runs that are done, or have the weights that the next step needs.
    Execute,
}

impl Files {
    fn read(&self, registry: &ModelRegistry) -> anyhow::Result<Experiment> {
        check_is_file(&self.file)?;
        Ok(if self.smoke {
            Experiment::read_small(&self.file, registry)
        } else {
            Experiment::read(&self.file, registry)
        }?)
    }

    fn out(&self, experiment: &Experiment) -> PathBuf {
        let name = experiment.stem() + if self.smoke { "-smoke" } else { "" };
        self.out.clone().unwrap_or_else(|| self.runs.join(name))
    }

    /// Every cell with the run found for it: in its own folder, in the archive, or of another experiment.
    fn find_runs(&self, experiment: &Experiment, archive: &ArchivedRuns, lookup: Lookup) -> anyhow::Result<Vec<Found>> {
        let cells: Vec<&Cell> = experiment.cells().iter().collect();
        self.find_runs_of(experiment, &cells, archive, lookup)
    }

    /// The same for some of the cells.
    fn find_runs_of(
        &self,
        experiment: &Experiment,
        cells: &[&Cell],
        archive: &ArchivedRuns,
        lookup: Lookup,
    ) -> anyhow::Result<Vec<Found>> {
        let out = self.out(experiment);
        let archived = RunArchive::read(&archive.patterns(), experiment.registry())?;
        let mut folders = vec![out.clone()];
        if self.out.is_none() {
            folders.extend(folders_in(&self.runs).into_iter().filter(|folder| *folder != out));
        }
        let others = RunArchive::of_experiments(&folders, experiment.registry());
        let mut contents = Contents::open(&self.data_dir, self.out.as_ref().unwrap_or(&self.runs));
        let mut found = Vec::new();
        for &cell in cells {
            let mut cell = cell.clone();
            // The data at hand is read only where a run can be compared with it.
            let is_recorded = |cell: &Cell| {
                archived.has_content_for(cell) || others.has_content_for(cell) || Found::has_content(cell, &out)
            };
            if !self.smoke && is_recorded(&cell) {
                cell.content = contents.of(&cell);
            }
            let cell = &cell;
            let own = Found::of(cell, &out)?;
            let mut candidates = vec![own.clone()];
            if !self.smoke {
                candidates.splice(0..0, archived.find(cell)?);
            }
            candidates.extend(others.find(cell)?);
            let is_usable = |one: &&Found| one.outcome.is_some() && (lookup == Lookup::Display || one.has_weights());
            let best = candidates.iter().find(|one| one.is_done()).or_else(|| candidates.iter().find(is_usable));
            let mut one = best.cloned().unwrap_or(own);
            let has_results = one.is_done() || (lookup == Lookup::Display && one.outcome.is_some());
            if !has_results
                && one.state != State::Running
                && !self.smoke
                && let Err(remedy) = self.data_dir.find(&cell.data)
            {
                one.state = State::Missing(remedy);
            }
            found.push(one);
        }
        contents.save();
        Ok(found)
    }

    /// These arguments as a command line takes them.
    fn arguments(&self) -> String {
        let out = self.out.as_ref().map(|out| format!(" --out {}", quoted(out))).unwrap_or_default();
        let smoke = if self.smoke { " --smoke" } else { "" };
        format!("{}{}{out}{smoke}{}", quoted(&self.file), runs_flag(&self.runs), self.data_dir.flag())
    }
}

impl ArchivedRuns {
    /// The folders and archives of each argument.
    fn patterns(&self) -> Vec<Vec<PathBuf>> {
        self.results.iter().map(|path| matching(path)).collect()
    }

    /// These arguments as a command line takes them.
    fn arguments(&self) -> String {
        let results: Vec<String> = self.results.iter().map(|path| format!(" {}", quoted(path))).collect();
        if results.is_empty() { String::new() } else { format!(" --results{}", results.concat()) }
    }
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+=:,@%~\\".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// `--runs` as a command line takes it, unless it is the default.
fn runs_flag(runs: &Path) -> String {
    if runs == Path::new(RUNS) { String::new() } else { format!(" --runs {}", quoted(runs)) }
}

/// Refuses a missing experiment file with a way out.
fn check_is_file(file: &Path) -> anyhow::Result<()> {
    anyhow::ensure!(
        !file.is_dir(),
        "{}: found a folder, expected an experiment file; name a .toml file in it, or use `hopedgn experiment pages` for all of them",
        file.display()
    );
    anyhow::ensure!(
        file.exists(),
        "{}: found no such file, expected an experiment file (TOML); `hopedgn experiment --help` shows one",
        file.display()
    );
    Ok(())
}

/// The folders and archives that match a path, whose last part may contain *.
fn matching(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if !name.contains('*') || path.exists() {
        return vec![path.to_owned()];
    }
    let parts: Vec<&str> = name.split('*').collect();
    let matches = |name: &str| {
        let Some(mut rest) = name.strip_prefix(parts[0]) else { return false };
        for part in &parts[1..parts.len() - 1] {
            let Some(start) = rest.find(part) else { return false };
            rest = &rest[start + part.len()..];
        }
        rest.ends_with(parts[parts.len() - 1])
    };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_archive = |path: &Path| path.extension().is_some_and(|extension| extension == "jsonl");
    let mut found: Vec<PathBuf> = entries.filter(|path| path.is_dir() || is_archive(path)).collect();
    found.sort();
    found.retain(|folder| folder.file_name().is_some_and(|name| matches(&name.to_string_lossy())));
    // Without a match the pattern itself is returned, so that an error names it.
    if found.is_empty() { vec![path.to_owned()] } else { found }
}

/// The subfolders of a folder in order of name; none if it does not exist.
fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

pub(crate) fn run(command: &Command, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Outcome> {
    match command {
        Command::Run(args) => run::run(args, registry, output),
        Command::Status(args) => report::status(args, registry, output),
        Command::Report(args) => report::report(args, registry, output),
        Command::Pages(args) => pages::pages(args, registry, output),
        Command::Check(args) => report::check(args, registry, output),
        Command::Archive(args) => archive(args, registry, output),
    }
}

fn archive(args: &Archive, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Outcome> {
    let runs: Vec<PathBuf> = args.runs.iter().flat_map(|path| matching(path)).collect();
    let n_runs = experiment::archive(&runs, &args.out, registry)?;
    let text = format!("{}: {}\n", args.out.display(), count(n_runs, "run"));
    output.answer(text, &serde_json::json!({ "archive": args.out, "runs": n_runs }))?;
    Ok(Outcome::Done)
}
