//! `hopedgn bench sample`: histories sampled per second.

use clap::{Args, ValueEnum};
use ctdg::event::{EventId, EventStream, NodeId};
use ctdg::random::RandomStream;
use ctdg::sample::{Histories, NeighborSampler, NodeQuery, Sampling};
use ctdg::store::Store;
use hopedgn::Events;
use serde_json::json;

use super::{Benchmark, DataBenchArgs};
use crate::output::{Outcome, Output};

/// Sample the history of both endpoints of every event, from the events before it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn bench sample --data wikipedia.csv.gz --threads 2 --json
  hopedgn bench sample --degree 1024 --k 1 --threads 1")]
pub(crate) struct Sample {
    /// Maximal events per history
    #[arg(long, default_value_t = 32)]
    k: usize,
    /// How events are chosen
    #[arg(long, value_enum, default_value_t = SamplingArg::Recent)]
    sampling: SamplingArg,
    /// Sample from a synthetic stream of 2^20 events in which every node has N, a power of two, and ask for random nodes at random
    /// times: the cost of a history against the degree of its node
    #[arg(long, value_name = "N", conflicts_with = "data")]
    degree: Option<usize>,
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
    let stream = match args.degree {
        Some(degree) => regular(degree)?,
        None => args.bench.load(output)?,
    };
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
    let drawn = args.degree.map(|_| random_queries(&stream, &store, 2 * n_events));
    let pass = || {
        let mut first = 0;
        for batch in &batches {
            if let Some(drawn) = &drawn {
                sampler.sample(&drawn[first..first + 2 * batch.len()], &random, &mut histories);
                std::hint::black_box(&histories);
                first += 2 * batch.len();
                continue;
            }
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
    let mut report = args.bench.measure(output, benchmark, 2 * n_events, pass);
    if args.degree.is_some() {
        stream.name().clone_into(&mut report.data);
        report.benchmark.settings["degree"] = json!(args.degree);
    }
    output.answer(&report, &report)?;
    Ok(Outcome::Done)
}

/// Events of the synthetic stream of `--degree`.
const N_REGULAR: usize = 1 << 20;

/// A stream in which every node has `degree` events, one in each round.
fn regular(degree: usize) -> anyhow::Result<Events> {
    let is_possible = degree.is_power_of_two() && degree <= N_REGULAR;
    anyhow::ensure!(is_possible, "found --degree {degree}, expected a power of two from 1 to {N_REGULAR}");
    let n_nodes = 2 * N_REGULAR / degree;
    let events = (0..N_REGULAR).map(|at| {
        let [src, dst] = [2 * at, 2 * at + 1].map(|node| u32::try_from(node % n_nodes).unwrap_or(u32::MAX));
        (src, dst, at as f64)
    });
    let stream = EventStream::from_events(events.collect::<Vec<_>>())?;
    Ok(Events::from_stream(format!("nodes of degree {degree}"), stream))
}

/// Random nodes before random times. The place of a time in the stream is searched here, once, and not measured.
fn random_queries(stream: &Events, store: &Store, n: usize) -> Vec<NodeQuery> {
    let mut random = RandomStream::named(1, "bench");
    let query = |_| {
        let node = NodeId::from_index(random.index(stream.n_nodes())).unwrap_or(NodeId(0));
        NodeQuery { node, cut: store.cut(stream.times()[random.index(stream.len())]) }
    };
    (0..n).map(query).collect()
}
