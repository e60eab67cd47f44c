//! `hopedgn data convert`: read any supported format, write any other.

use std::path::PathBuf;

use clap::Args;
use ctdg::dataset::{self, FeatureColumns, ReadReport, WriteFormat};
use serde_json::{Value, json};

use crate::args::parse_bytes;
use crate::commands::data_args::{ReadArgs, spill_beside};
use crate::commands::new_file::{Force, refuse_input};
use crate::output::{Outcome, Output};
use crate::plural::count;
use hopedgn::fmt::grouped;
use hopedgn::system::peak_memory;

/// Convert a dataset to CSV, TSV, Parquet or the memory-mapped binary form
///
/// The extension of OUT decides: .csv, .tsv (both also with .gz or .zst), .parquet, .ctdg. Columns that have no role in the
/// events (source, destination, time, label, features) are not written, and named in a remark.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn data convert events.csv.gz events.ctdg --src sender --dst receiver
  hopedgn data convert events.csv events.parquet --keep-columns --time-unit ms")]
pub(crate) struct Convert {
    /// A bundled or fetched dataset (see `hopedgn data list`), or a file
    #[arg(value_name = "D")]
    data: String,
    /// File to write
    out: PathBuf,
    /// Keep numeric columns without a role as edge features (the same as `--features numeric`)
    #[arg(long, conflicts_with = "features")]
    keep_columns: bool,
    /// Keep columns that outgrow this memory in temporary files beside OUT
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    memory: Option<u64>,
    /// Write DyGLib's layout: OUT is `ml_NAME.csv`, with `ml_NAME.npy` and `ml_NAME_node.npy` beside it; nodes are numbered from 1
    #[arg(long)]
    dyglib: bool,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn run(args: &Convert, output: &Output) -> anyhow::Result<Outcome> {
    let format = WriteFormat::of_path(&args.out)?;
    if args.dyglib {
        dataset::dyglib_files(&args.out)?;
    }
    let input = args.read.file_of(&args.data)?;
    if let Some(input) = &input {
        refuse_input(&args.out, input)?;
    }
    args.force.check(&args.out)?;
    let mut options = args.read.options();
    options.spill = args.memory.map(|memory| spill_beside(&args.out, memory));
    if args.keep_columns {
        options.features = FeatureColumns::Numeric;
    }
    let (events, report) = args.read.load_reported(&args.data, &options, output)?;
    let files = if args.dyglib {
        dataset::dyglib_files(&args.out)?.to_vec()
    } else {
        dataset::files_to_write(&events, &args.out, format)
    };
    files.iter().try_for_each(|file| args.force.check(file))?;
    if let Some(left_out) = left_out(&report, args.keep_columns) {
        output.remark(left_out);
    }
    if args.dyglib {
        dataset::write_dyglib(&events, &args.out)?;
    } else {
        dataset::write(&events, &args.out, format)?;
    }
    let bytes = std::fs::metadata(&args.out)?.len();
    let (events, nodes) = (events.len(), events.n_nodes());
    let unused: Vec<Value> = report.unused_columns.iter().map(|column| json!(column.name)).collect();
    output.answer(
        format_args!(
            "{}: {}, {}, {} bytes\n",
            args.out.display(),
            count(events, "event"),
            count(nodes, "node"),
            grouped(bytes)
        ),
        &json!({
            "out": args.out.display().to_string(), "events": events, "nodes": nodes, "bytes": bytes,
            "unused_columns": unused, "peak_memory": peak_memory(),
        }),
    )?;
    Ok(Outcome::Done)
}

/// What of the input is not in the output, in words.
fn left_out(report: &ReadReport, keep_columns: bool) -> Option<String> {
    const MAX_LISTED: usize = 12;
    let names = report.unused_columns.iter().take(MAX_LISTED).map(std::string::ToString::to_string);
    let mut names: Vec<String> = names.collect();
    if let Some(more) = report.unused_columns.len().checked_sub(MAX_LISTED).filter(|&more| more > 0) {
        names.push(format!("and {} more", grouped(more)));
    }
    // Columns without a name are called `column 3`.
    let noun = match &*report.unused_columns {
        [first, ..] if first.name.starts_with("column ") => "",
        [_] => "column ",
        _ => "columns ",
    };
    let columns = (!names.is_empty()).then(|| format!("{noun}{}", names.join(", ")));
    let sidecar = report.unused_sidecar.as_ref().map(|file| format!("the features in {}", file.display()));
    let all: Vec<String> = columns.into_iter().chain(sidecar).collect();
    let advice = if keep_columns { "" } else { "; --keep-columns keeps what is numeric as edge features" };
    (!all.is_empty()).then(|| format!("not written: {}{advice}", all.join("; ")))
}
