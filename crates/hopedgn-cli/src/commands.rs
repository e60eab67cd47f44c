//! One module per command: its arguments, the library call, the printing.

pub(crate) mod bench;
pub(crate) mod classify;
pub(crate) mod data;
mod data_args;
mod device;
pub(crate) mod evaluate;
pub(crate) mod experiment;
pub(crate) mod lab;
mod memory;
mod model;
mod progress;
mod run_args;
pub(crate) mod score;
pub(crate) mod selftest;
mod table;
pub(crate) mod train;
pub(crate) mod wl;

use hopedgn::ModelRegistry;

use crate::args::Command;
use crate::output::{Outcome, Output};

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
        Command::Experiment(command) => experiment::run(&command, output),
        Command::Bench(bench) => bench::run(bench, output),
    }
}
