//! `hopedgn data`: look at, make, convert, fetch and split data sets.

mod convert;

use clap::Subcommand;

use crate::output::{Outcome, Output};

#[derive(Debug, Subcommand)]
pub(crate) enum Data {
    Convert(convert::Convert),
}

pub(crate) fn run(data: Data, output: &Output) -> anyhow::Result<Outcome> {
    match data {
        Data::Convert(args) => convert::run(&args, output),
    }
}
