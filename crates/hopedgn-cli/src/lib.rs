//! The `hopedgn` command as a library, so that a small binary of your own has every command for models of your own.
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use hopedgn::ModelRegistry;
//!
//! fn main() -> ExitCode {
//!     let registry = ModelRegistry::default();
//!     // `registry.register::<MyModel>()` makes the model known to every command.
//!     hopedgn_cli::main(&registry)
//! }
//! ```
//!
//! Exit status: 0 done; 1 ran, but a check fell short; 2 could not run (bad arguments, bad input). With `--json` an error is a
//! document, too: `{"error": {"code": …, "message": …}}`.

mod allocator;
mod args;
mod commands;
mod failure;
mod output;
mod plural;
mod progress;
mod remedy;
mod version;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::FromArgMatches;
use hopedgn::ModelRegistry;

pub use crate::allocator::CheckedAllocator;
use crate::commands::Cli;
use crate::failure::{Failure, wants_json};
use crate::output::{Outcome, Output, is_closed_pipe};

/// Parses the arguments of the process, runs the command with the models of `registry`, and prints its result.
#[must_use]
pub fn main(registry: &ModelRegistry) -> ExitCode {
    run(registry, std::env::args_os()).into()
}

/// The same with other `arguments`, the first of which names the program, for a program that was started by another one. Returns the
/// exit status.
///
/// ```
/// let status = hopedgn_cli::run(&hopedgn::ModelRegistry::default(), ["hopedgn", "--version"].map(Into::into));
/// assert_eq!(status, 0);
/// ```
pub fn run(registry: &ModelRegistry, arguments: impl IntoIterator<Item = OsString>) -> u8 {
    run_as(registry, arguments, None)
}

/// The same for a program that its own file does not start, such as a module of an interpreter: a command that starts itself again, as
/// `experiment run` does for its cells, starts `program`, by default the file of this process.
pub fn run_as(
    registry: &ModelRegistry,
    arguments: impl IntoIterator<Item = OsString>,
    program: Option<Vec<OsString>>,
) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let mut line = commands::command_line(registry);
    let parsed = line.try_get_matches_from_mut(&arguments);
    let parsed = parsed.and_then(|found| Cli::from_arg_matches(&found).map(|cli| (cli, found)));
    let (cli, found) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return refuse_usage(&error, arguments),
    };
    let command = arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let output = Output::new(&cli.global, command, program);
    allocator::set_limit(cli.global.max_memory, cli.global.json);
    let outcome = set_threads(cli.global.threads).and_then(|()| commands::run(cli.command, registry, &output));
    match outcome {
        Ok(Outcome::Done) => 0,
        Ok(Outcome::FellShort) => 1,
        Err(error) if is_closed_pipe(&error) => 0,
        Err(error) => {
            output.error(&error, &commands::flags(&line, &found));
            2
        }
    }
}

/// Prints help, the version, or what is wrong with the arguments.
fn refuse_usage(error: &clap::Error, arguments: Vec<OsString>) -> u8 {
    if error.use_stderr() && wants_json(arguments) {
        Output::print_failure(&Failure::of_usage(error));
    }
    // A closed stdout or stderr cannot be reported anywhere.
    let _ = error.print();
    if error.use_stderr() { 2 } else { 0 }
}

fn set_threads(threads: Option<usize>) -> anyhow::Result<()> {
    const MAX: usize = 1024;
    if let Some(threads) = threads {
        let fits = (1..=MAX).contains(&threads);
        anyhow::ensure!(fits, "found --threads {threads}, expected 1 to {MAX}; leave it out to use every core");
        rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    }
    Ok(())
}
