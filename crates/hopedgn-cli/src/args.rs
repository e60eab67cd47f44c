//! What can be typed: the commands and the flags they share. Each command's own arguments stand beside its code.

use clap::{Args, Parser, Subcommand};

use crate::commands;

/// Learn from a stream of timestamped interactions and say which pair meets next.
#[derive(Debug, Parser)]
#[command(name = "hopedgn", version, propagate_version = true, arg_required_else_help = true, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct Global {
    /// Print one JSON document on stdout and nothing else there
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// No progress and no remarks on stderr
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Number of threads [default: all cores]
    #[arg(long, global = true, value_name = "N")]
    pub(crate) threads: Option<usize>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Look at, make, convert, fetch and split data sets
    #[command(subcommand)]
    Data(commands::data::Data),
    Train(Box<commands::train::Train>),
    Evaluate(Box<commands::evaluate::Evaluate>),
    Score(Box<commands::score::Score>),
    Classify(Box<commands::classify::Classify>),
    Wl(Box<commands::wl::Wl>),
    Lab(commands::lab::Lab),
    /// Run a grid of models, data sets and seeds, and compare it with the paper
    #[command(subcommand)]
    Experiment(commands::experiment::Command),
    /// Measure this machine
    #[command(subcommand)]
    Bench(commands::bench::Bench),
    Selftest(commands::selftest::Selftest),
}
