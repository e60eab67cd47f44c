//! `hopedgn bench encode`: pairs encoded per second.

use clap::Args;
use ctdg::event::EventId;
use ctdg::mite::{MiteScope, PairEncoder, PairEncoderConfig, PairQuery, PairTokens};
use ctdg::store::Store;
use serde_json::json;

use super::{Benchmark, DataBenchArgs};
use crate::output::{Outcome, Output};

/// Encode the pair of every event from the events before it: tokens of both sides with MITE intervals
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopedgn bench encode --data wikipedia.csv.gz --length 256 --threads 2 --json")]
pub(crate) struct Encode {
    /// Maximal tokens per side
    #[arg(long, default_value_t = 32)]
    length: usize,
    /// Intervals kept per token and side
    #[arg(long, default_value_t = 32)]
    k: usize,
    /// Take intervals from the whole history instead of the sampled tokens
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    bench: DataBenchArgs,
}

pub(crate) fn run(args: &Encode, output: &Output) -> anyhow::Result<Outcome> {
    super::check_range("--length", args.length, 1 << 24)?;
    let stream = args.bench.load(output)?;
    let store = Store::build(&stream)?;
    let scope = if args.full { MiteScope::Full } else { MiteScope::Truncated };
    let encoding = PairEncoderConfig { length: args.length, k: args.k, scope, ..PairEncoderConfig::default() };
    let mut encoder = PairEncoder::new(&store, encoding);
    let (mut queries, mut tokens) = (Vec::new(), PairTokens::default());
    let batches = args.bench.batches(stream.len());
    let n_events: usize = batches.iter().map(ExactSizeIterator::len).sum();
    let (mut n_tokens, mut n_rows) = (0, 0);
    let pass = || {
        (n_tokens, n_rows) = (0, 0);
        for batch in &batches {
            queries.clear();
            queries.extend(batch.clone().map(EventId::from_index).map(|id| {
                let event = stream.event(id);
                PairQuery { src: event.src, dst: event.dst, time: event.time }
            }));
            encoder.encode(&queries, &mut tokens);
            n_tokens += tokens.n_tokens();
            n_rows += tokens.n_rows();
        }
    };
    let settings = json!({
        "mapped": store.is_mapped(), "length": args.length, "k": args.k, "scope": if args.full { "full" } else { "truncated" } });
    let benchmark = Benchmark { bench: "encode", unit: "pairs", settings };
    let mut report = args.bench.measure(output, benchmark, n_events, pass);
    let per_pair = |n: usize| n as f64 / n_events.max(1) as f64;
    report.benchmark.settings["tokens_per_pair"] = json!(per_pair(n_tokens));
    report.benchmark.settings["rows_per_pair"] = json!(per_pair(n_rows));
    output.answer(&report, &report)?;
    Ok(Outcome::Done)
}
