//! `hopedgn data`: look at, make, convert, fetch and split data sets.

mod convert;
mod generate;
mod info;
mod split;

use clap::Subcommand;

use crate::output::{Outcome, Output};

#[derive(Debug, Subcommand)]
pub(crate) enum Data {
    Info(info::Info),
    Generate(generate::Generate),
    Convert(convert::Convert),
    Split(split::SplitArgs),
}

pub(crate) fn run(data: Data, output: &Output) -> anyhow::Result<Outcome> {
    match data {
        Data::Info(args) => info::run(&args, output),
        Data::Generate(args) => generate::run(&args, output),
        Data::Convert(args) => convert::run(&args, output),
        Data::Split(args) => split::run(&args, output),
    }
}
