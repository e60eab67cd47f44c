//! `hopedgn bench`: the speed of this machine.

mod collating;
mod encode;
mod epoch;
mod growth;
mod load;
mod sample;
mod serve;
mod statistics;
mod step;
mod temporary_folder;
mod wl;

use std::fmt::{self, Display};
use std::ops::Range;
use std::time::Instant;

use clap::{Args, Subcommand};
use hopedgn::{Events, ModelRegistry};
use serde::Serialize;

use crate::commands::data_args::ReadArgs;
use crate::output::{Outcome, Output};
use crate::plural::count;
use crate::progress;
use hopedgn::fmt::grouped;

pub(crate) const EXAMPLES: &str = "\
Examples:
  hopedgn bench step --device cpu --json
  hopedgn bench sample --data wikipedia
  hopedgn bench growth
  hopedgn bench serve";

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    Load(load::Load),
    Sample(sample::Sample),
    Encode(encode::Encode),
    Statistics(statistics::Statistics),
    Step(step::Step),
    Epoch(Box<epoch::Epoch>),
    Wl(wl::WlBench),
    Growth(Box<growth::Growth>),
    Serve(Box<serve::ServeBench>),
}

pub(crate) fn run(bench: Bench, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Outcome> {
    match bench {
        Bench::Load(args) => load::run(&args, output),
        Bench::Sample(args) => sample::run(&args, output),
        Bench::Encode(args) => encode::run(&args, output),
        Bench::Statistics(args) => statistics::run(&args, output),
        Bench::Step(args) => step::run(&args, output),
        Bench::Epoch(args) => epoch::run(&args, registry, output),
        Bench::Wl(args) => wl::run(&args, output),
        Bench::Growth(args) => growth::run(&args, registry, output),
        Bench::Serve(args) => serve::run(&args, registry, output),
    }
}

/// Arguments of every benchmark over a dataset.
#[derive(Debug, Args)]
struct DataBenchArgs {
    /// A bundled or fetched dataset, or a file
    #[arg(long, value_name = "D", default_value = ctdg::dataset::COLLEGEMSG)]
    data: String,
    /// Passes over all events; the best and the median are reported
    #[arg(long, default_value_t = 10)]
    repeats: usize,
    /// Events per batch
    #[arg(long, default_value_t = 2000)]
    batch: usize,
    /// Events of a pass, in batches spread over the stream [default: all]
    #[arg(long, value_name = "N")]
    events: Option<usize>,
    #[command(flatten)]
    read: ReadArgs,
}

impl DataBenchArgs {
    fn load(&self, output: &Output) -> anyhow::Result<Events> {
        check_range("--repeats", self.repeats, 1_000_000)?;
        check_range("--batch", self.batch, 100_000_000)?;
        self.read.load(&self.data, output)
    }

    /// The events of each batch of a pass.
    fn batches(&self, n_events: usize) -> Vec<Range<usize>> {
        let n_batches = n_events.div_ceil(self.batch);
        let n_timed = self.events.map_or(n_batches, |events| events.div_ceil(self.batch).clamp(1, n_batches.max(1)));
        // The middle one of each share.
        let batches = (0..n_timed.min(n_batches)).map(|at| (2 * at + 1) * n_batches / (2 * n_timed));
        batches.map(|batch| batch * self.batch..n_events.min((batch + 1) * self.batch)).collect()
    }

    /// Times `pass` over `items`: one warm-up, then `repeats` passes.
    fn measure(&self, output: &Output, bench: Benchmark, items: usize, mut pass: impl FnMut()) -> Report {
        pass();
        let bar = progress::steps(output, bench.bench, self.repeats as u64);
        let mut seconds: Vec<f64> = (0..self.repeats)
            .map(|_| {
                let start = Instant::now();
                pass();
                bar.inc(1);
                start.elapsed().as_secs_f64()
            })
            .collect();
        bar.finish_and_clear();
        seconds.sort_unstable_by(f64::total_cmp);
        let rate = |seconds: f64| items as f64 / seconds.max(f64::MIN_POSITIVE);
        let (best, median) = (rate(seconds[0]), rate(seconds[seconds.len() / 2]));
        Report {
            benchmark: bench,
            data: self.data.clone(),
            device: "cpu",
            threads: rayon::current_num_threads(),
            batch: self.batch,
            items,
            per_second: best,
            gflops: None,
            repeats: self.repeats,
            best,
            median,
        }
    }
}

/// Refuses a flag outside `1..=most`.
fn check_range(name: &str, found: usize, most: usize) -> anyhow::Result<()> {
    anyhow::ensure!((1..=most).contains(&found), "found {name} {found}, expected 1 to {most}");
    Ok(())
}

/// Which benchmark, with its settings.
#[derive(Debug, Serialize)]
struct Benchmark {
    bench: &'static str,
    /// Noun of the items.
    unit: &'static str,
    settings: serde_json::Value,
}

#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    benchmark: Benchmark,
    data: String,
    device: &'static str,
    threads: usize,
    batch: usize,
    items: usize,
    per_second: f64,
    /// Not applicable: these benchmarks do little floating-point work.
    gflops: Option<f64>,
    repeats: usize,
    best: f64,
    median: f64,
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive rate, shown whole")]
        let whole = |rate: f64| grouped(rate as u64);
        let Benchmark { bench, unit, settings } = &self.benchmark;
        writeln!(f, "{bench} on {}: {} {unit}/s (median {})", self.data, whole(self.best), whole(self.median))?;
        writeln!(
            f,
            "  {} {unit} in batches of {}, {}, best of {}; {settings}",
            grouped(self.items),
            count(self.batch, "event"),
            count(self.threads, "thread"),
            self.repeats
        )
    }
}
