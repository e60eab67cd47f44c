//! Flags that every command takes.

use clap::Args;

/// Flags of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Global {
    /// Print one JSON document to stdout and nothing else there
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print no progress, notes or warnings to stderr
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Number of threads [default: all cores]
    #[arg(long, global = true, value_name = "N")]
    pub(crate) threads: Option<usize>,
}
