//! `hopedgn bench`: measure this machine.

mod encode;
mod epoch;
mod load;
mod sample;
mod step;
mod wl;

use std::fmt::{self, Display};
use std::time::Instant;

use clap::{Args, Subcommand};
use ctdg::event::EventStream;
use serde::Serialize;

use crate::commands::data_args::ReadArgs;
use crate::output::{Outcome, Output};
use crate::progress;
use hopedgn::fmt::grouped;

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    Load(load::Load),
    Sample(sample::Sample),
    Encode(encode::Encode),
    Step(step::Step),
    Epoch(Box<epoch::Epoch>),
    Wl(wl::WlBench),
}

pub(crate) fn run(bench: Bench, output: &Output) -> anyhow::Result<Outcome> {
    match bench {
        Bench::Load(args) => load::run(&args, output),
        Bench::Sample(args) => sample::run(&args, output),
        Bench::Encode(args) => encode::run(&args, output),
        Bench::Step(args) => step::run(&args, output),
        Bench::Epoch(args) => epoch::run(&args, output),
        Bench::Wl(args) => wl::run(&args, output),
    }
}

/// What every bench over a data set takes.
#[derive(Debug, Args)]
struct OnData {
    /// A bundled or fetched data set, or a file
    #[arg(long, value_name = "D", default_value = ctdg::dataset::COLLEGEMSG)]
    data: String,
    #[command(flatten)]
    from: ReadArgs,
    /// Passes over all events; the best and the median are reported
    #[arg(long, default_value_t = 10)]
    repeats: usize,
    /// Events handled at once
    #[arg(long, default_value_t = 2000)]
    batch: usize,
}

impl OnData {
    fn load(&self, output: &Output) -> anyhow::Result<EventStream> {
        within("--repeats", self.repeats, 1_000_000)?;
        within("--batch", self.batch, 100_000_000)?;
        Ok(self.from.load(&self.data, output)?.stream)
    }

    /// Times `pass`, which handles `items`, once unmeasured and then `repeats` times.
    fn measure(&self, output: &Output, bench: Measured, items: usize, mut pass: impl FnMut()) -> Report {
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
            measured: bench,
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

/// Refuses a setting outside `1..=most`.
fn within(name: &str, found: usize, most: usize) -> anyhow::Result<()> {
    anyhow::ensure!((1..=most).contains(&found), "found {name} {found}, expected 1 to {most}");
    Ok(())
}

/// What was measured.
#[derive(Debug, Serialize)]
struct Measured {
    bench: &'static str,
    /// What is counted.
    unit: &'static str,
    settings: serde_json::Value,
}

#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    measured: Measured,
    data: String,
    device: &'static str,
    threads: usize,
    batch: usize,
    items: usize,
    per_second: f64,
    /// These benches move bytes; they do no floating-point work worth counting.
    gflops: Option<f64>,
    repeats: usize,
    best: f64,
    median: f64,
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive rate, shown whole")]
        let whole = |rate: f64| grouped(rate as u64);
        let Measured { bench, unit, settings } = &self.measured;
        writeln!(f, "{bench} on {}: {} {unit} a second (median {})", self.data, whole(self.best), whole(self.median))?;
        writeln!(
            f,
            "  {} {unit} in batches of {} events, {} threads, best of {}; {settings}",
            grouped(self.items),
            self.batch,
            self.threads,
            self.repeats
        )
    }
}
