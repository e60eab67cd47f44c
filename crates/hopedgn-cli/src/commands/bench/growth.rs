//! `hopedgn bench growth`: what everything costs as a stream grows in events and in nodes.

mod measure;
mod plot;
mod size;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use ctdg::dataset;
use hopedgn::config::{Config, Preset};
use hopedgn::system::processor;
use hopedgn::{ModelName, ModelRegistry};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::temporary_folder::TemporaryFolder;
use crate::commands::new_file::{Force, check_writable};
use crate::output::{Outcome, Output};
use crate::progress::{self, Unit};
use size::Size;

/// Measure loading, sampling, training steps and evaluation on streams of several sizes: what grows with a stream, and what does not
///
/// For each number of events and of nodes a stream of the kind like-lastfm is generated, and measured by a process of its own, so that
/// its memory is that of this size: reading the file, building the store, preparing a training, sampling histories and encoding pairs of
/// the newest events, training steps of a small HopeDGN at the end of the training events, and the evaluation of 100,000 test events.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn bench growth
  hopedgn bench growth --events 1e6,1e7,1e8 --nodes 1e5,5e6 --dir big-disk --svg growth.svg --json
  hopedgn bench growth --file events.ctdg --json > events.json
  hopedgn bench growth --report events.json --report growth.json --svg growth.svg")]
pub(crate) struct Growth {
    /// Numbers of events
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1e5,1e6", value_parser = parse_count)]
    events: Vec<u32>,
    /// Numbers of nodes; a stream with more nodes than events is left out
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1e4,1e5", value_parser = parse_count)]
    nodes: Vec<u32>,
    /// Measure this .ctdg file only, in this process; an index beside it is used
    #[arg(long, value_name = "FILE", conflicts_with_all = ["events", "nodes", "dir"])]
    file: Option<PathBuf>,
    /// Measure nothing: show the sizes of these documents of --json as one table and plot
    #[arg(long, value_name = "JSON", conflicts_with_all = ["file", "events", "nodes", "dir", "seed", "set", "repeats", "steps"])]
    report: Vec<PathBuf>,
    /// Repetitions; the fastest is reported
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: u32,
    /// Training steps, of which the median is reported
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    steps: u32,
    /// Change one setting of HopeDGN or its training; may be given several times
    #[arg(long, value_name = "A.B=V")]
    set: Vec<String>,
    /// Random seed of the streams
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Folder for generated files, 20 bytes an event; they are removed [default: that of the system]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Draw the costs to this SVG file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
}

/// A small model: what costs more with a longer stream is not hidden behind products of matrices.
const SMALL: [&str; 7] = [
    "model.d-channel=8",
    "model.d-time=16",
    "model.d-mite=8",
    "model.d-out=16",
    "model.k=16",
    "model.patch=8",
    "train.batch=200",
];

/// Memory of the columns while a stream is generated; the rest is on disk.
const GENERATE_WITHIN: &str = "1GiB";

#[derive(Debug, Serialize, Deserialize)]
struct Report {
    bench: String,
    device: String,
    threads: usize,
    processor: Option<String>,
    model: String,
    /// Settings of the model that differ from its own.
    settings: Vec<String>,
    repeats: u32,
    steps: u32,
    sizes: Vec<Size>,
}

fn parse_count(text: &str) -> Result<u32, String> {
    let number = text.trim().parse().ok().filter(|number: &f64| number.fract() == 0.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number within u32")]
    let count = number.filter(|number| (2.0..=f64::from(u32::MAX)).contains(number)).map(|number| number as u32);
    count.ok_or_else(|| "expected a whole number from 2, such as 1000000 or 1e6".to_owned())
}

pub(crate) fn run(args: &Growth, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Outcome> {
    if let Some(path) = &args.svg {
        args.force.check(path)?;
        check_writable(path)?;
    }
    let report = if args.report.is_empty() { measured(args, registry, output)? } else { joined(&args.report)? };
    if let Some(path) = &args.svg {
        dataset::write_file(path, plot::draw(&report.sizes))?;
    }
    output.answer(&report, &report)?;
    Ok(Outcome::Done)
}

fn measured(args: &Growth, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Report> {
    let settings: Vec<String> = SMALL.iter().map(|&setting| setting.to_owned()).chain(args.set.clone()).collect();
    let quick = Preset::named("quick")?;
    let config = Config::resolve_with(registry, ModelName::HopeDgn, &[quick], &settings)?;
    let sizes = match &args.file {
        Some(file) => vec![measure::measure(file, args, &config, output)?],
        None => generated(args, output)?,
    };
    Ok(Report {
        bench: "growth".to_owned(),
        device: "cpu".to_owned(),
        threads: rayon::current_num_threads(),
        processor: processor(),
        model: config.model.name().title().to_owned(),
        settings,
        repeats: args.repeats,
        steps: args.steps,
        sizes,
    })
}

/// The sizes of several reports, by nodes and events; all else is that of the first.
fn joined(files: &[PathBuf]) -> anyhow::Result<Report> {
    let read = |file: &PathBuf| -> anyhow::Result<Report> {
        let text = std::fs::read(file).with_context(|| format!("could not read {}", file.display()))?;
        let what = || format!("found {}, expected a document of hopedgn bench growth --json", file.display());
        serde_json::from_slice(&text).with_context(what)
    };
    let mut reports = files.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?.into_iter();
    let mut first = reports.next().context("at least one report")?;
    first.sizes.extend(reports.flat_map(|report| report.sizes));
    first.sizes.sort_by_key(|size| (size.nodes, size.events));
    Ok(first)
}

/// Generates and measures each size.
fn generated(args: &Growth, output: &Output) -> anyhow::Result<Vec<Size>> {
    let all = args.nodes.iter().flat_map(|&nodes| args.events.iter().map(move |&events| (events, nodes)));
    let (wanted, left_out): (Vec<_>, Vec<_>) = all.partition(|(events, nodes)| nodes <= events);
    for (events, nodes) in left_out {
        output.remark(format_args!("left out: {events} events cannot have {nodes} nodes, each of which has one"));
    }
    anyhow::ensure!(!wanted.is_empty(), "found more --nodes than --events, expected at most as many");
    // The process that measures gets Ctrl-C as well and ends; this one stays to remove the files.
    ctrlc::set_handler(|| {}).context("could not listen for Ctrl-C")?;
    let folder = TemporaryFolder::new(args.dir.as_deref().unwrap_or(&std::env::temp_dir()), "growth")?;
    let bar = progress::things(output, "growth", Unit::Things("stream", "streams"), wanted.len() as u64);
    let mut sizes = Vec::with_capacity(wanted.len());
    for (events, nodes) in wanted {
        let what = format!("{events} events, {nodes} nodes");
        let file = folder.path().join(format!("{events}-{nodes}.ctdg"));
        bar.set_message(format!("generating {what}"));
        let (n_events, n_nodes, seed) = (events.to_string(), nodes.to_string(), args.seed.to_string());
        let stream = ["--events", &n_events, "--nodes", &n_nodes, "--seed", &seed, "--memory", GENERATE_WITHIN];
        let generate: [&str; 3] = ["data", "generate", "like-lastfm"];
        child(output, &generate, &stream, &file).with_context(|| format!("could not generate {what}"))?;
        bar.set_message(format!("measuring {what}"));
        sizes.push(in_child(args, output, &file).with_context(|| format!("could not measure {what}"))?);
        // A file may be large.
        let _ = std::fs::remove_file(&file);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(sizes)
}

/// Measures a file in a process of its own.
fn in_child(args: &Growth, output: &Output, file: &Path) -> anyhow::Result<Size> {
    let numbers = [rayon::current_num_threads().to_string(), args.repeats.to_string(), args.steps.to_string()];
    let mut flags = vec!["--threads", &numbers[0], "--repeats", &numbers[1], "--steps", &numbers[2]];
    flags.extend(args.set.iter().flat_map(|setting| ["--set", setting]));
    let most = output.max_memory().map(|bytes| bytes.to_string());
    flags.extend(most.iter().flat_map(|bytes| ["--max-memory", bytes.as_str()]));
    let document = child(output, &["bench", "growth", "--file"], &flags, file)?;
    let Report { mut sizes, .. } = serde_json::from_value(document)?;
    sizes.pop().context("the process that measures told no size")
}

/// The document that this program prints with these arguments.
fn child(output: &Output, command: &[&str], flags: &[&str], file: &Path) -> anyhow::Result<Value> {
    let mut program = output.program()?;
    let ended = program.args(command).arg(file).args(flags).args(["--json", "--quiet"]).output()?;
    let error = String::from_utf8_lossy(&ended.stderr);
    anyhow::ensure!(
        ended.status.success(),
        "{}",
        match error.trim() {
            "" => format!("it ended with {}", ended.status),
            error => error.trim_start_matches("error: ").to_owned(),
        }
    );
    Ok(serde_json::from_slice(&ended.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_written_with_or_without_exponent() {
        assert_eq!((parse_count("1e6"), parse_count(" 250000")), (Ok(1_000_000), Ok(250_000)));
        assert!(["1", "1.5", "1e10", "nan", "many"].into_iter().all(|text| parse_count(text).is_err()));
    }
}
