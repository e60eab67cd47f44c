//! `hopedgn bench load`: from a file to a store that answers.

use clap::Args;
use ctdg::store::Store;
use serde_json::json;

use super::{Measured, OnData};
use crate::output::{Outcome, Output};

/// Read a data set and build its store
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  hopedgn data generate like-lastfm lastfm.parquet && hopedgn bench load --data lastfm.parquet"
)]
pub(crate) struct Load {
    #[command(flatten)]
    on: OnData,
}

pub(crate) fn run(args: &Load, output: &Output) -> anyhow::Result<Outcome> {
    let stream = args.on.load(output)?;
    let store = Store::build(&stream)?;
    let settings = json!({
        "adjacency_bytes_per_event": store.adjacency_bytes() as f64 / stream.len() as f64,
        "pair_index_bytes_per_event": store.pair_index_bytes() as f64 / stream.len() as f64,
    });
    let measured = Measured { bench: "load", unit: "events", settings };
    let n = stream.len();
    drop((stream, store));
    let mut failed = None;
    let mut report = args.on.measure(output, measured, n, || {
        let built = args.on.load(output).and_then(|stream| Ok(std::hint::black_box(Store::build(&stream)?)));
        failed = failed.take().or(built.err());
    });
    if let Some(error) = failed {
        return Err(error);
    }
    report.measured.settings["seconds"] = json!(n as f64 / report.best);
    output.answer(&report, &report)?;
    Ok(Outcome::Done)
}
