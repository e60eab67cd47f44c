//! The commands. Each module holds one command: its arguments, the library call and the printing.

pub(crate) mod bench;
pub(crate) mod classify;
pub(crate) mod completions;
pub(crate) mod data;
mod data_args;
mod device;
pub(crate) mod evaluate;
pub(crate) mod experiment;
pub(crate) mod lab;
pub(crate) mod man;
mod model;
mod new_file;
mod progress;
mod run_args;
pub(crate) mod score;
pub(crate) mod selftest;
mod table;
mod time_arg;
pub(crate) mod train;
pub(crate) mod wl;

use clap::{Parser, Subcommand};
use hopedgn::ModelRegistry;

use crate::args::Global;
use crate::output::{Outcome, Output};
use crate::version;

/// Learn from timestamped interactions and predict which pair of nodes interacts next.
#[derive(Debug, Parser)]
#[command(
    name = "hopedgn",
    version = version::TEXT,
    propagate_version = true,
    arg_required_else_help = true,
    max_term_width = 110,
    after_help = "Examples:
  hopedgn train                                   train HopeDGN on the bundled data
  hopedgn evaluate runs/collegemsg-hopedgn-0      test that run
  echo 42,77 | hopedgn score runs/collegemsg-hopedgn-0 --pairs -"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List, inspect, generate, convert, fetch and split datasets
    #[command(subcommand, after_help = data::EXAMPLES)]
    Data(data::Data),
    Train(Box<train::Train>),
    Evaluate(Box<evaluate::Evaluate>),
    Score(Box<score::Score>),
    Classify(Box<classify::Classify>),
    Wl(Box<wl::Wl>),
    Lab(lab::Lab),
    /// Run a grid of models, datasets and seeds, and compare it with the paper
    #[command(subcommand)]
    Experiment(experiment::Command),
    /// Measure the speed of this machine
    #[command(subcommand, after_help = bench::EXAMPLES)]
    Bench(bench::Bench),
    Selftest(selftest::Selftest),
    Completions(completions::Completions),
    Man(man::ManPages),
}

pub(crate) fn run(command: Command, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Outcome> {
    match command {
        Command::Data(data) => data::run(data, output),
        Command::Train(args) => train::run(&args, registry, output),
        Command::Evaluate(args) => evaluate::run(&args, registry, output),
        Command::Score(args) => score::run(&args, registry, output),
        Command::Classify(args) => classify::run(&args, registry, output),
        Command::Selftest(args) => selftest::run(&args, output),
        Command::Lab(args) => lab::run(&args, output),
        Command::Wl(args) => wl::run(*args, output),
        Command::Experiment(command) => experiment::run(&command, registry, output),
        Command::Bench(bench) => bench::run(bench, registry, output),
        Command::Completions(args) => completions::run(&args, registry, output),
        Command::Man(args) => man::run(&args, output),
    }
}
