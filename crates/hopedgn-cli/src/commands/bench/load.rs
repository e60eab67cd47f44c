//! `hopedgn bench load`: reading a file and building its store.

use clap::Args;
use ctdg::store::Store;
use serde_json::json;

use super::{Benchmark, DataBenchArgs};
use crate::output::{Outcome, Output};

/// Read a dataset and build its adjacency store
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hopedgn bench load\n  hopedgn data generate like-lastfm lastfm.parquet\n  hopedgn bench load --data lastfm.parquet"
)]
pub(crate) struct Load {
    #[command(flatten)]
    bench: DataBenchArgs,
}

pub(crate) fn run(args: &Load, output: &Output) -> anyhow::Result<Outcome> {
    let stream = args.bench.load(output)?;
    let store = Store::build(&stream)?;
    let settings = json!({
        "adjacency_bytes_per_event": store.adjacency_bytes() as f64 / stream.len() as f64,
        "pair_index_bytes_per_event": store.pair_index_bytes() as f64 / stream.len() as f64,
    });
    let benchmark = Benchmark { bench: "load", unit: "events", settings };
    let n = stream.len();
    drop((stream, store));
    let mut failed = None;
    let mut report = args.bench.measure(output, benchmark, n, || {
        let built = args.bench.load(output).and_then(|stream| Ok(std::hint::black_box(Store::build(&stream)?)));
        failed = failed.take().or(built.err());
    });
    if let Some(error) = failed {
        return Err(error);
    }
    report.benchmark.settings["seconds"] = json!(n as f64 / report.best);
    output.answer(&report, &report)?;
    Ok(Outcome::Done)
}
