//! `hopedgn data`: look at, make, convert, fetch and split data sets.

use clap::Subcommand;

use crate::output::{Outcome, Output};

#[derive(Debug, Subcommand)]
pub(crate) enum Data {
    /// List the data sets that have a name
    List,
}

pub(crate) fn run(data: Data, output: &Output) -> anyhow::Result<Outcome> {
    match data {
        Data::List => output.answer("", &())?,
    }
    Ok(Outcome::Done)
}
