//! `hopedgn bench`: measure this machine.

use clap::Subcommand;

use crate::output::{Outcome, Output};

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Sample histories
    Sample,
    Wl(super::wl::WlBench),
}

pub(crate) fn run(bench: Bench, output: &Output) -> anyhow::Result<Outcome> {
    match bench {
        Bench::Sample => output.answer("", &())?,
        Bench::Wl(args) => return super::wl::run_bench(&args, output),
    }
    Ok(Outcome::Done)
}
