//! The `hopedgn` command: reads arguments, calls the library, prints the answer.
//!
//! Exit status: 0 done; 1 ran, but a check fell short; 2 could not run (bad arguments, bad input).

mod args;
mod commands;
mod output;
mod plural;
mod progress;
mod remedy;

use std::process::ExitCode;

use clap::Parser;

use crate::commands::Cli;
use crate::output::{Outcome, Output, is_closed_pipe};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let output = Output::new(&cli.global);
    let outcome = set_threads(cli.global.threads).and_then(|()| commands::run(cli.command, &output));
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::FellShort) => ExitCode::from(1),
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            Output::error(&error);
            ExitCode::from(2)
        }
    }
}

fn set_threads(threads: Option<usize>) -> anyhow::Result<()> {
    const MOST: usize = 1024;
    if let Some(threads) = threads {
        let fits = (1..=MOST).contains(&threads);
        anyhow::ensure!(fits, "found --threads {threads}, expected 1 to {MOST}; leave it out to use every core");
        rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    }
    Ok(())
}
