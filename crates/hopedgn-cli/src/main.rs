//! The `hopedgn` command with the built-in models.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: hopedgn_cli::CheckedAllocator = hopedgn_cli::CheckedAllocator;

fn main() -> ExitCode {
    hopedgn_cli::main(&hopedgn::ModelRegistry::default())
}
