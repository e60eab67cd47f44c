//! `hopedgn bench statistics`: rows of pair statistics per second.

use clap::Args;
use ctdg::mite::PairQuery;
use ctdg::random::RandomStream;
use ctdg::statistics::{N_STATISTICS, PairStatistics};
use serde_json::json;

use super::{Benchmark, DataBenchArgs};
use crate::output::{Outcome, Output};

/// Compute the statistics of the pair of every event, and of its source with a random node, from the events before it
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopedgn bench statistics --data wikipedia.csv.gz --threads 2 --json")]
pub(crate) struct Statistics {
    #[command(flatten)]
    bench: DataBenchArgs,
}

pub(crate) fn run(args: &Statistics, output: &Output) -> anyhow::Result<Outcome> {
    let stream = args.bench.load(output)?;
    let statistics = PairStatistics::build(&stream)?;
    let (mut random, nodes) = (RandomStream::named(0, "bench/statistics"), stream.dst());
    let mut queries = Vec::with_capacity(2 * stream.len());
    for id in stream.ids() {
        let event = stream.event(id);
        let query = PairQuery { src: event.src, dst: event.dst, time: event.time };
        queries.extend([query, PairQuery { dst: nodes[random.index(nodes.len())], ..query }]);
    }
    let mut sum = 0.0;
    let pass = || {
        for batch in queries.chunks(2 * args.bench.batch) {
            sum += statistics.rows(batch).last().copied().unwrap_or_default();
        }
    };
    let benchmark = Benchmark { bench: "statistics", unit: "pairs", settings: json!({ "columns": N_STATISTICS }) };
    let report = args.bench.measure(output, benchmark, queries.len(), pass);
    std::hint::black_box(sum);
    output.answer(&report, &report)?;
    Ok(Outcome::Done)
}
