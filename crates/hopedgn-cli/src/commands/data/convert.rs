//! `hopedgn data convert`: read any supported format, write any other.

use std::path::PathBuf;

use clap::Args;
use ctdg::dataset::{self, WriteFormat};
use serde_json::json;

use crate::commands::data_args::ReadArgs;
use crate::output::{Outcome, Output};
use crate::plural::count;
use hopedgn::fmt::grouped;
use hopedgn::system::peak_memory;

/// Convert a dataset to CSV, TSV, Parquet or the memory-mapped binary form
///
/// The extension of OUT decides: .csv, .tsv (both also with .gz or .zst), .parquet, .ctdg.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopedgn data convert events.csv.gz events.ctdg --src sender --dst receiver")]
pub(crate) struct Convert {
    /// A bundled or fetched dataset (see `hopedgn data list`), or a file
    #[arg(value_name = "D")]
    data: String,
    /// File to write
    out: PathBuf,
    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn run(args: &Convert, output: &Output) -> anyhow::Result<Outcome> {
    let format = WriteFormat::of_path(&args.out)?;
    let events = args.read.load(&args.data, output)?;
    dataset::write(&events, &args.out, format)?;
    let bytes = std::fs::metadata(&args.out)?.len();
    let (events, nodes) = (events.len(), events.n_nodes());
    output.answer(
        format_args!(
            "{}: {}, {}, {} bytes\n",
            args.out.display(),
            count(events, "event"),
            count(nodes, "node"),
            grouped(bytes)
        ),
        &json!({ "out": args.out.display().to_string(), "events": events, "nodes": nodes, "bytes": bytes, "peak_memory": peak_memory() }),
    )?;
    Ok(Outcome::Done)
}
