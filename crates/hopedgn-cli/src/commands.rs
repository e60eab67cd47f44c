//! The commands. Each module holds one command: its arguments, the library call and the printing.

pub(crate) mod bench;
pub(crate) mod classify;
pub(crate) mod completions;
pub(crate) mod data;
mod data_args;
mod device;
pub(crate) mod evaluate;
pub(crate) mod experiment;
mod heuristics;
pub(crate) mod lab;
pub(crate) mod man;
mod model;
mod new_file;
mod process_group;
mod progress;
mod protocol_arg;
pub(crate) mod recommend;
mod run_args;
pub(crate) mod score;
pub(crate) mod selftest;
pub(crate) mod serve;
mod table;
mod time_arg;
pub(crate) mod train;
pub(crate) mod wl;

use clap::{ArgMatches, CommandFactory, Parser, Subcommand};
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
    /// List, inspect, audit, generate, convert, index, fetch and split datasets
    #[command(subcommand, after_help = data::EXAMPLES)]
    Data(data::Data),
    Train(Box<train::Train>),
    Evaluate(Box<evaluate::Evaluate>),
    Score(Box<score::Score>),
    Recommend(Box<recommend::Recommend>),
    Serve(Box<serve::Serve>),
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

/// The command line of a program with the models of `registry`, whose names the help of `--model` lists.
pub(crate) fn command_line(registry: &ModelRegistry) -> clap::Command {
    let help = model::help(registry);
    let with_models = |command: clap::Command| command.mut_arg("model", |arg| arg.help(&help));
    Cli::command()
        .mut_subcommand("train", with_models)
        .mut_subcommand("bench", |bench| bench.mut_subcommand("epoch", with_models))
}

/// The long flags of the command that was called, without dashes.
pub(crate) fn flags(line: &clap::Command, found: &ArgMatches) -> Vec<String> {
    let (mut command, mut found) = (line, found);
    while let Some((name, inner)) = found.subcommand() {
        let Some(next) = command.find_subcommand(name) else { break };
        (command, found) = (next, inner);
    }
    command.get_arguments().filter_map(|argument| argument.get_long().map(str::to_owned)).collect()
}

pub(crate) fn run(command: Command, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Outcome> {
    match command {
        Command::Data(data) => data::run(data, output),
        Command::Train(args) => train::run(&args, registry, output),
        Command::Evaluate(args) => evaluate::run(&args, registry, output),
        Command::Score(args) => score::run(&args, registry, output),
        Command::Recommend(args) => recommend::run(&args, registry, output),
        Command::Serve(args) => serve::run(&args, registry, output),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The flags of the command that `arguments` call.
    fn flags_of(arguments: &[&str]) -> Vec<String> {
        let mut line = command_line(&ModelRegistry::default());
        let found = line.try_get_matches_from_mut([&["hopedgn"], arguments].concat()).expect("valid arguments");
        flags(&line, &found)
    }

    #[test]
    fn commands_that_read_a_file_have_every_flag_that_its_errors_advise() {
        let commands: [&[&str]; 11] = [
            &["train"],
            &["evaluate", "run"],
            &["score", "run", "--pairs", "-"],
            &["recommend", "run", "src"],
            &["classify", "run"],
            &["wl", "a", "b"],
            &["data", "info", "d"],
            &["data", "split", "d"],
            &["data", "convert", "d", "out"],
            &["bench", "epoch"],
            &["bench", "sample"],
        ];
        let advised = "src dst time label features no-header sort time-unit delimiter ids";
        for command in commands {
            let flags = flags_of(command);
            for flag in advised.split(' ') {
                assert!(flags.iter().any(|known| known == flag), "{command:?} has no --{flag}");
            }
        }
        assert!(!flags_of(&["experiment", "status", "f.toml"]).contains(&"sort".to_owned()));
        assert!(flags_of(&["data", "fetch", "uci"]).contains(&"insecure".to_owned()));
    }
}
