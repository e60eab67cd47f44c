//! `hopedgn bench step`: one training step at the size of the paper.

use std::fmt::{self, Display};
use std::time::Instant;

use clap::Args;
use hopedgn::fmt::precise;
use hopedgn_experiments::bench::{StepBench, StepSpec};
use serde::Serialize;

use crate::commands::device::DeviceArgs;
use crate::output::{Outcome, Output};
use crate::plural::count;
use crate::progress;

/// Time a training step of HopeDGN on random dense tokens: forward, backward, Adam
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopedgn bench step --device cpu --pairs 400 --tokens 64 --repeats 5 --json")]
pub(crate) struct Step {
    /// Pairs per step, positives and negatives together
    #[arg(long, default_value_t = 400)]
    pairs: usize,
    /// Tokens per pair, both sides together
    #[arg(long, default_value_t = 64)]
    tokens: usize,
    /// Number of node features
    #[arg(long, default_value_t = 172)]
    node_features: usize,
    /// Number of edge features
    #[arg(long, default_value_t = 172)]
    edge_features: usize,
    /// Attention knows which tokens met: `model.relations`, one in eight of the pairs of tokens
    #[arg(long)]
    relations: bool,
    /// Steps to time after two warm-up steps; the best and the median are reported
    #[arg(long, default_value_t = 5)]
    repeats: usize,
    #[command(flatten)]
    device: DeviceArgs,
}

#[derive(Debug, Serialize)]
struct Report {
    bench: &'static str,
    device: &'static str,
    precision: &'static str,
    threads: usize,
    pairs: usize,
    tokens: usize,
    node_features: usize,
    edge_features: usize,
    relations: bool,
    repeats: usize,
    seconds_per_step: f64,
    best: f64,
    median: f64,
    gflop_per_step: f64,
    gflops: f64,
    /// Speed of the matrix products of the step alone.
    products_gflops: f64,
    share_of_products: f64,
}

pub(crate) fn run(args: &Step, output: &Output) -> anyhow::Result<Outcome> {
    let device = args.device.open(output)?;
    super::check_range("--pairs", args.pairs, 1_000_000)?;
    super::check_range("--tokens", args.tokens, 65_536)?;
    super::check_range("--repeats", args.repeats, 1_000_000)?;
    super::check_range("--pairs times --tokens", args.pairs.saturating_mul(args.tokens), 1 << 22)?;
    for (name, features) in [("--node-features", args.node_features), ("--edge-features", args.edge_features)] {
        anyhow::ensure!(features <= 1 << 16, "found {name} {features}, expected at most {}", 1 << 16);
    }
    let spec = StepSpec {
        pairs: args.pairs,
        tokens: args.tokens,
        node_features: args.node_features,
        edge_features: args.edge_features,
        relations: args.relations,
    };
    let mut bench = StepBench::new(spec, &device)?;
    let bar = progress::steps(output, "step", args.repeats as u64 + 2);
    let mut seconds = Vec::with_capacity(args.repeats);
    // A GPU computes asynchronously: steps timed one by one would include the work of the host.
    let per_timing = if device.is_gpu() { 20 } else { 1 };
    for repeat in 0..args.repeats + 2 {
        let start = Instant::now();
        bench.steps(per_timing)?;
        if repeat >= 2 {
            seconds.push(start.elapsed().as_secs_f64() / per_timing as f64);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    seconds.sort_unstable_by(f64::total_cmp);
    let best = seconds[0];
    let (flops, products) = (bench.flops(), bench.products_per_second()?);
    let report = Report {
        bench: "step",
        device: device.name(),
        precision: device.precision().as_str(),
        threads: rayon::current_num_threads(),
        pairs: args.pairs,
        tokens: args.tokens,
        node_features: args.node_features,
        edge_features: args.edge_features,
        relations: args.relations,
        repeats: args.repeats,
        seconds_per_step: best,
        best,
        median: seconds[seconds.len() / 2],
        gflop_per_step: flops / 1e9,
        gflops: flops / best / 1e9,
        products_gflops: products / 1e9,
        share_of_products: flops / best / products,
    };
    output.answer(&report, &report)?;
    Ok(Outcome::Done)
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "step of {} × {}{}: {} (median {})",
            count(self.pairs, "pair"),
            count(self.tokens, "token"),
            if self.relations { " with relations" } else { "" },
            precise(self.best),
            precise(self.median)
        )?;
        writeln!(
            f,
            "  {:.1} GFLOP, {:.1} GFLOP/s; the matrix products alone reach {:.1}, the step {:.0}% of that",
            self.gflop_per_step,
            self.gflops,
            self.products_gflops,
            100.0 * self.share_of_products
        )?;
        writeln!(
            f,
            "  {}, {}, {}, best of {}",
            self.device,
            self.precision,
            count(self.threads, "thread"),
            self.repeats
        )
    }
}
