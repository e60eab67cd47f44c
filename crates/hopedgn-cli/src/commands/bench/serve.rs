//! `hopedgn bench serve`: the figures of a server, and the durability of its log.

mod text;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use ctdg::dataset::log::EventLog;
use hopedgn::run::RunFolder;
use hopedgn::system::processor;
use hopedgn::{Events, ModelRegistry};
use hopedgn_serve::bench::{self, CrashOptions, CrashReport, Figures, Workload};
use serde::Serialize;

use super::temporary_folder::TemporaryFolder;
use crate::commands::data_args::ReadArgs;
use crate::commands::device::DeviceArgs;
use crate::commands::run_args::load_events;
use crate::output::{Outcome, Output};
use crate::progress::{self, Unit};

/// Measure `hopedgn serve` with clients on this machine; with --crash, kill it again and again and check that no event is lost
///
/// Each figure is measured on a server of its own, a child process with its log in a temporary folder. Without a run, a quick one is trained
/// on the data first.
///
/// With --crash, events are sent over several connections and the server is killed (SIGKILL) at random moments. Every acknowledged event
/// must be in the log once, in order, and nothing that was not sent; requests that were under way are there whole or not at all. Then bits
/// of the log are flipped and its last record is truncated: it must be opened with the same events, or refused with the name of the file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn bench serve
  hopedgn bench serve --run runs/mine --only score --only recommend --seconds 20 --json
  hopedgn bench serve --only restart --restart-events 1000000
  hopedgn bench serve --crash --kills 1000 --seed 1

Exit status 1 if a request failed, or if an event was lost or changed.")]
pub(crate) struct ServeBench {
    /// The run folder [default: the model `stats` is trained on the data]
    #[arg(long, value_name = "RUN")]
    run: Option<PathBuf>,
    /// The data that the log begins with: a bundled or fetched dataset, or a file [default: the run's, or collegemsg]
    #[arg(long, value_name = "D")]
    data: Option<String>,
    /// Measure only this; may be given several times
    #[arg(long, value_enum, value_name = "FIGURE")]
    only: Vec<Figure>,
    /// Seconds for each kind of request
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = parse_seconds)]
    seconds: f64,
    /// Connections that send single events
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1000))]
    connections: u64,
    /// Events of the log of a restart; 0 leaves it out
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(0..=1_000_000_000))]
    restart_events: u64,
    /// Kill the server and damage its log instead of measuring it
    #[arg(long, conflicts_with_all = ["only", "seconds", "connections", "restart_events"])]
    crash: bool,
    /// Times that the server is killed
    #[arg(long, value_name = "N", default_value_t = CrashOptions::default().kills, requires = "crash")]
    kills: usize,
    /// Bits of each file of the log that are flipped, one at a time
    #[arg(long, value_name = "N", default_value_t = CrashOptions::default().flips, requires = "crash")]
    flips: usize,
    /// Random seed of requests, kills and damage
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    read: ReadArgs,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Figure {
    /// Events taken in
    Intake,
    /// The score of a pair while events come in
    Score,
    /// The ten likeliest destinations
    Recommend,
    /// A start with many events
    Restart,
    /// Four times the load that the server can hold
    Overload,
}

const ALL: [Figure; 5] = [Figure::Intake, Figure::Score, Figure::Recommend, Figure::Restart, Figure::Overload];

fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| (0.05..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "expected 0.05 to 3600".to_owned())
}

/// What was served, and how fast.
#[derive(Debug, Serialize)]
struct Report {
    bench: &'static str,
    model: String,
    data: String,
    events: usize,
    processor: Option<String>,
    seconds: f64,
    #[serde(flatten)]
    figures: Figures,
}

/// What was attacked, and what was found.
#[derive(Debug, Serialize)]
struct CrashAnswer {
    bench: &'static str,
    model: String,
    data: String,
    seed: u64,
    #[serde(flatten)]
    report: CrashReport,
}

pub(crate) fn run(args: &ServeBench, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Outcome> {
    let place = TemporaryFolder::new(&std::env::temp_dir(), "serve")?;
    let subject = Subject::new(args, place.path(), registry, output)?;
    let launch = |state: &Path| subject.command(state);
    if args.crash {
        return crash(args, &subject, &launch, place.path(), output);
    }
    let figures = measure(args, &subject, &launch, place.path(), output)?;
    let n_failed = figures.n_failed();
    let report = Report {
        bench: "serve",
        model: subject.model,
        data: subject.events.name().to_owned(),
        events: subject.events.len(),
        processor: processor(),
        seconds: args.seconds,
        figures,
    };
    output.answer(&report, &report)?;
    Ok(if n_failed == 0 { Outcome::Done } else { Outcome::FellShort })
}

fn measure(
    args: &ServeBench,
    subject: &Subject,
    launch: bench::Launch<'_>,
    place: &Path,
    output: &Output,
) -> anyhow::Result<Figures> {
    let only: &[Figure] = if args.only.is_empty() { &ALL } else { &args.only };
    let duration = Duration::from_secs_f64(args.seconds);
    let mut workload = Workload::new(&subject.events, args.seed);
    let mut figures = Figures::default();
    let bar = progress::spinner(output, "bench serve");
    for figure in ALL.into_iter().filter(|figure| only.contains(figure)) {
        let name = figure.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
        bar.set_message(format!("measuring {name}"));
        let state = place.join(name);
        if figure != Figure::Restart {
            drop(EventLog::create(&state, &subject.events)?);
        }
        match figure {
            Figure::Intake => {
                let connections = usize::try_from(args.connections)?;
                figures.intake = Some(bench::intake(launch, &state, &mut workload, connections, duration)?);
            }
            Figure::Score => figures.score = Some(bench::score(launch, &state, &mut workload, duration)?),
            Figure::Recommend => figures.recommend = Some(bench::recommend(launch, &state, &mut workload, duration)?),
            Figure::Overload => figures.overload = Some(bench::overload(launch, &state, &mut workload, duration)?),
            Figure::Restart if args.restart_events == 0 => {}
            Figure::Restart => {
                let mut written = |n| bar.set_message(format!("writing a log: {n} of {} events", args.restart_events));
                let restart = bench::restart(launch, &state, &subject.events, args.restart_events, &mut written)?;
                figures.restart = Some(restart);
            }
        }
        // A log may be large.
        let _ = std::fs::remove_dir_all(&state);
    }
    bar.finish_and_clear();
    Ok(figures)
}

fn crash(
    args: &ServeBench,
    subject: &Subject,
    launch: bench::Launch<'_>,
    place: &Path,
    output: &Output,
) -> anyhow::Result<Outcome> {
    let options = CrashOptions { kills: args.kills, flips: args.flips, seed: args.seed, ..CrashOptions::default() };
    let bar = progress::things(output, "killing servers", Unit::Things("kill", "kills"), options.kills as u64);
    let mut n_damaged = 0;
    let mut progress = |done| match done {
        bench::Progress::Kill => bar.inc(1),
        bench::Progress::Damage => {
            n_damaged += 1;
            bar.set_message(format!("damaging logs: {n_damaged}"));
        }
    };
    let report = bench::attack(launch, place, &subject.events, options, &mut progress)?;
    bar.finish_and_clear();
    let outcome = if report.violations == 0 { Outcome::Done } else { Outcome::FellShort };
    let (model, data) = (subject.model.clone(), subject.events.name().to_owned());
    let answer = CrashAnswer { bench: "serve-crash", model, data, seed: args.seed, report };
    output.answer(&answer, &answer)?;
    Ok(outcome)
}

/// The model that is served, and its data.
struct Subject {
    program: PathBuf,
    run: PathBuf,
    model: String,
    events: Events,
    /// Flags of the server.
    flags: Vec<String>,
}

impl Subject {
    fn new(args: &ServeBench, place: &Path, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("could not find this program to start it again")?;
        let flags: Vec<String> = args.device.typed().split_whitespace().map(str::to_owned).collect();
        let (run, events) = if let Some(run) = &args.run {
            let manifest = RunFolder::open(run)?.manifest()?;
            (std::path::absolute(run)?, load_events(run, &manifest, args.data.as_deref(), &args.read, output)?)
        } else {
            let events = args.read.load(args.data.as_deref().unwrap_or(ctdg::dataset::COLLEGEMSG), output)?;
            (trained(&program, &place.join("first"), &flags, &events, output)?, events)
        };
        let model = RunFolder::open(&run)?.config(registry)?.model.name().title().to_owned();
        Ok(Self { program, run, model, events, flags })
    }

    /// Starts a server on a free port with its log in `state`.
    fn command(&self, state: &Path) -> Command {
        let mut command = server(&self.program, state, &self.flags);
        command.arg(&self.run);
        command
    }
}

fn server(program: &Path, state: &Path, flags: &[String]) -> Command {
    let mut command = Command::new(program);
    command.arg("serve").arg("--log").arg(state).args(["--listen", "127.0.0.1:0", "--json", "--quiet"]).args(flags);
    command
}

/// A server without a run trains one. Not in this process: Ctrl-C would end the training, and nothing else.
fn trained(
    program: &Path,
    state: &Path,
    flags: &[String],
    events: &Events,
    output: &Output,
) -> anyhow::Result<PathBuf> {
    output.remark(format_args!("no run: training a quick one on {} first", events.name()));
    drop(EventLog::create(state, events)?);
    bench::ServerProcess::start(&|state| server(program, state, flags), state)?.stop()?;
    Ok(state.join("run"))
}
