//! `hopedgn data convert`: from any format that can be read to any that can be written.

use std::path::PathBuf;

use clap::Args;
use ctdg::dataset::{self, WriteFormat};
use serde_json::json;

use crate::commands::data_args::Input;
use crate::commands::memory;
use crate::output::{Outcome, Output};

/// Convert a data set to CSV, TSV, Parquet or the memory-mapped binary form
///
/// The ending of OUT decides: .csv, .tsv (both also with .gz or .zst), .parquet, .ctdg.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopedgn data convert events.csv.gz events.ctdg --src sender --dst receiver")]
pub(crate) struct Convert {
    #[command(flatten)]
    input: Input,
    /// Where to write
    out: PathBuf,
}

pub(crate) fn run(args: &Convert, output: &Output) -> anyhow::Result<Outcome> {
    let format = WriteFormat::of_path(&args.out)?;
    let loaded = args.input.load(output)?;
    dataset::write(&loaded.stream, &args.out, format)?;
    let bytes = std::fs::metadata(&args.out)?.len();
    let (events, nodes) = (loaded.stream.len(), loaded.stream.n_nodes());
    output.answer(
        format_args!("{}: {events} events, {nodes} nodes, {bytes} bytes\n", args.out.display()),
        &json!({ "out": args.out.display().to_string(), "events": events, "nodes": nodes, "bytes": bytes, "peak_memory": memory::peak() }),
    )?;
    Ok(Outcome::Done)
}
