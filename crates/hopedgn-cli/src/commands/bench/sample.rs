//! `hopedgn bench sample`: histories sampled per second.

use clap::{Args, ValueEnum};
use ctdg::event::EventId;
use ctdg::random::RandomStream;
use ctdg::sample::{Histories, NeighborSampler, NodeQuery, Sampling};
use ctdg::store::Store;
use serde_json::json;

use super::{Benchmark, DataBenchArgs};
use crate::output::{Outcome, Output};

/// Sample the history of both endpoints of every event, from the events before it
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopedgn bench sample --data wikipedia.csv.gz --threads 2 --json")]
pub(crate) struct Sample {
    /// Maximal events per history
    #[arg(long, default_value_t = 32)]
    k: usize,
    /// How events are chosen
    #[arg(long, value_enum, default_value_t = SamplingArg::Recent)]
    sampling: SamplingArg,
    #[command(flatten)]
    bench: DataBenchArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SamplingArg {
    Recent,
    Uniform,
    TimeIntervalAware,
}

pub(crate) fn run(args: &Sample, output: &Output) -> anyhow::Result<Outcome> {
    super::check_range("--k", args.k, 65_536)?;
    let stream = args.bench.load(output)?;
    let store = Store::build(&stream)?;
    let sampling = match args.sampling {
        SamplingArg::Recent => Sampling::Recent,
        SamplingArg::Uniform => Sampling::Uniform,
        SamplingArg::TimeIntervalAware => Sampling::TimeIntervalAware { a: 1e-6 },
    };
    let sampler = NeighborSampler::new(&store, sampling, args.k);
    let random = RandomStream::named(0, "bench");
    let (mut queries, mut histories) = (Vec::new(), Histories::default());
    let batches = args.bench.batches(stream.len());
    let n_events: usize = batches.iter().map(ExactSizeIterator::len).sum();
    let pass = || {
        for batch in &batches {
            queries.clear();
            for id in batch.clone().map(EventId::from_index) {
                let event = stream.event(id);
                let cut = store.cut(event.time);
                queries.extend([event.src, event.dst].map(|node| NodeQuery { node, cut }));
            }
            sampler.sample(&queries, &random, &mut histories);
            std::hint::black_box(&histories);
        }
    };
    let settings = json!({
        "mapped": store.is_mapped(), "k": args.k,
        "sampling": args.sampling.to_possible_value().map(|value| value.get_name().to_owned()) });
    let benchmark = Benchmark { bench: "sample", unit: "histories", settings };
    let report = args.bench.measure(output, benchmark, 2 * n_events, pass);
    output.answer(&report, &report)?;
    Ok(Outcome::Done)
}
