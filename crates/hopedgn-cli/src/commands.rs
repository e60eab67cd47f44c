//! One module per command: its arguments, the library call, the printing.

pub(crate) mod bench;
pub(crate) mod data;
mod input;
mod memory;
mod number;
pub(crate) mod wl;

use crate::args::Command;
use crate::output::{Outcome, Output};

pub(crate) fn run(command: Command, output: &Output) -> anyhow::Result<Outcome> {
    match command {
        Command::Data(data) => data::run(data, output),
        Command::Wl(args) => wl::run(*args, output),
        Command::Bench(bench) => bench::run(bench, output),
    }
}
