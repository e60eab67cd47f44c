//! `hopedgn data`: list, inspect, audit, generate, convert, index, fetch and split datasets.

mod audit;
mod convert;
mod fetch;
mod generate;
mod index;
mod info;
mod list;
mod split;

use clap::Subcommand;

use crate::output::{Outcome, Output};

pub(crate) const EXAMPLES: &str = "\
Examples:
  hopedgn data list
  hopedgn data info collegemsg
  hopedgn data audit collegemsg --out audit.html
  hopedgn data convert events.csv events.ctdg --src sender --dst receiver --time sent_at";

#[derive(Debug, Subcommand)]
pub(crate) enum Data {
    List(list::List),
    Info(info::Info),
    Audit(audit::AuditArgs),
    Generate(generate::Generate),
    Convert(convert::Convert),
    Index(index::Index),
    Fetch(fetch::FetchArgs),
    Split(split::SplitArgs),
}

pub(crate) fn run(data: Data, output: &Output) -> anyhow::Result<Outcome> {
    match data {
        Data::List(args) => list::run(&args, output),
        Data::Info(args) => info::run(&args, output),
        Data::Audit(args) => audit::run(&args, output),
        Data::Generate(args) => generate::run(&args, output),
        Data::Convert(args) => convert::run(&args, output),
        Data::Index(args) => index::run(&args, output),
        Data::Fetch(args) => fetch::run(&args, output),
        Data::Split(args) => split::run(&args, output),
    }
}
