//! `hopedgn bench wl`: the speed of k-DWL.

use std::fmt;
use std::time::Instant;

use clap::Args;
use ctdg::event::EventStream;
use ctdg::wl::{Dwl, Graph, GraphOptions, examples};
use serde::Serialize;

use crate::commands::data_args::ReadArgs;
use crate::output::{Outcome, Output};
use crate::plural::count;
use crate::progress;
use hopedgn::system::peak_memory;

/// Time k-DWL until its colours are stable, on graphs of known size
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hopedgn bench wl --data collegemsg --json\n  hopedgn bench wl --k 3")]
pub(crate) struct WlBench {
    /// Also compare this dataset or file with itself by 1-DWL
    #[arg(long, value_name = "D")]
    data: Option<String>,
    /// Only cases of this dimension
    #[arg(long, value_name = "K")]
    k: Option<usize>,
    /// Runs of each case; the best and the median are reported
    #[arg(long, default_value_t = 3)]
    repeats: usize,
    #[command(flatten)]
    read: ReadArgs,
}

/// Timing of one case.
#[derive(Debug, Serialize)]
struct Case {
    graphs: String,
    k: usize,
    tuples: usize,
    rounds: usize,
    separated: bool,
    /// Tuples coloured per second in the best run, over all rounds.
    per_second: f64,
    best: f64,
    median: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    bench: &'static str,
    device: &'static str,
    threads: usize,
    /// Seconds of the first case, as are `best` and `median`.
    seconds_per_step: f64,
    /// Not applicable: no floating-point work.
    gflops: Option<f64>,
    repeats: usize,
    best: f64,
    median: f64,
    /// Peak memory of this process in bytes, where the system reports it.
    peak_memory: Option<u64>,
    cases: Vec<Case>,
}

pub(crate) fn run(args: &WlBench, output: &Output) -> anyhow::Result<Outcome> {
    super::check_range("--repeats", args.repeats, 1_000_000)?;
    let random = |n, events| Ok::<_, ctdg::Error>([examples::random(n, events, 1)?, examples::random(n, events, 2)?]);
    let mut inputs = vec![
        ("two random graphs, 300 nodes, 3000 events".to_owned(), 2, random(300, 3_000)?),
        ("two random graphs, 40 nodes, 400 events".to_owned(), 3, random(40, 400)?),
    ];
    if let Some(cfi) = examples::all()?.into_iter().find(|example| example.name == "cfi-k5") {
        inputs.push(("the example cfi-k5, 40 nodes, where no colour is ever unique".to_owned(), 3, [cfi.a, cfi.b]));
    }
    let rings = [rings(&[300])?, rings(&[150, 150])?];
    inputs.push(("a ring of 300 and two of 150, where colours split slowly".to_owned(), 2, rings));
    if let Some(data) = &args.data {
        let stream = EventStream::clone(&*args.read.load(data, output)?);
        inputs.push((format!("{data} against itself"), 1, [stream.clone(), stream]));
    }
    inputs.retain(|(_, k, _)| args.k.is_none_or(|only| *k == only));
    if let (Some(k), true) = (args.k, inputs.is_empty()) {
        anyhow::bail!("found --k {k}, expected 2 or 3, or 1 with --data");
    }
    let bar = progress::steps(output, "bench wl", (inputs.len() * args.repeats) as u64);
    let cases: anyhow::Result<Vec<Case>> = inputs
        .into_iter()
        .map(|(graphs, k, streams)| measure(graphs, k, &streams, args.repeats, || bar.inc(1)))
        .collect();
    bar.finish_and_clear();
    let cases = cases?;
    let first = &cases[0];
    let report = Report {
        bench: "wl",
        device: "cpu",
        threads: rayon::current_num_threads(),
        seconds_per_step: first.best,
        repeats: args.repeats,
        best: first.best,
        median: first.median,
        gflops: None,
        peak_memory: peak_memory(),
        cases,
    };
    output.answer(&report, &report)?;
    Ok(Outcome::Done)
}

/// Rings of these lengths, all events at one time.
fn rings(lengths: &[u32]) -> Result<EventStream, ctdg::Error> {
    let mut events = Vec::new();
    let mut first = 0;
    for &length in lengths {
        events.extend((0..length).map(|node| (first + node, first + (node + 1) % length, 1.0)));
        first += length;
    }
    EventStream::from_events(events)
}

/// Times building the graphs and running the test, without reading files.
fn measure(
    graphs: String,
    k: usize,
    streams: &[EventStream; 2],
    repeats: usize,
    progress: impl Fn(),
) -> anyhow::Result<Case> {
    let test = Dwl::new(k)?;
    let mut last = None;
    let mut seconds = Vec::with_capacity(repeats);
    for _ in 0..repeats {
        let start = Instant::now();
        let graph = |stream| Graph::new(stream, &GraphOptions::default());
        let comparison = test.compare(&graph(&streams[0])?, &graph(&streams[1])?)?;
        seconds.push(start.elapsed().as_secs_f64());
        last = Some(comparison);
        progress();
    }
    seconds.sort_by(f64::total_cmp);
    let comparison = last.expect("at least one repeat");
    let (tuples, rounds) = (comparison.coloring.n_tuples(), comparison.coloring.rounds());
    let (best, median) = (seconds[0], seconds[seconds.len() / 2]);
    let per_second = (tuples * (rounds + 1)) as f64 / best.max(f64::MIN_POSITIVE);
    Ok(Case { graphs, k, tuples, rounds, separated: comparison.graphs.separated(), per_second, best, median })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Case { graphs, k, tuples, rounds, best, median, .. } in &self.cases {
            writeln!(
                f,
                "{k}-DWL, {graphs}: {best:.3} s (median {median:.3}), {tuples} tuples, {}",
                count(*rounds, "round")
            )?;
        }
        let memory =
            self.peak_memory.map_or_else(|| "unknown".into(), |bytes| ctdg::wl::Bytes(bytes.into()).to_string());
        writeln!(f, "{}, best of {}, peak memory {memory}", count(self.threads, "thread"), self.repeats)
    }
}
