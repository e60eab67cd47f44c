//! The `hopedgn` command with the built-in models.

use std::process::ExitCode;

fn main() -> ExitCode {
    hopedgn_cli::main(&hopedgn::ModelRegistry::default())
}
