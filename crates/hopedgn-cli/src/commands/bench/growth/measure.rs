//! Measures one stream.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;
use ctdg::dataset::{self, Format, ReadOptions};
use ctdg::event::{EventId, EventStream};
use ctdg::mite::{PairEncoder, PairEncoderConfig, PairQuery, PairTokens};
use ctdg::negative::Pass;
use ctdg::random::RandomStream;
use ctdg::sample::{Histories, NeighborSampler, NodeQuery, Sampling};
use ctdg::split::{MASK_SEED, SplitRule};
use ctdg::store::Store;
use hopedgn::callbacks::NoCallback;
use hopedgn::collate::FeatureTables;
use hopedgn::config::Config;
use hopedgn::evaluate::{ModelScorer, Negatives, evaluate};
use hopedgn::model::{self, Model};
use hopedgn::score::PairScorer;
use hopedgn::system::peak_memory;
use hopedgn::task::Task;
use hopedgn::tensor::{Device, Parameters, Weights};
use hopedgn::train::Trainer;

use super::super::collating::Collating;
use super::{Growth, Size};
use crate::output::Output;
use crate::progress;

/// Events of a pass of sampling or encoding, in batches of [`BATCH`].
const PASS_EVENTS: usize = 100_000;
const BATCH: usize = 2_000;

/// Events of an evaluation.
const EVALUATED: usize = 100_000;

/// Events of a history, and tokens of a side.
const LENGTH: usize = 32;

/// Measures the stream of a `.ctdg` file.
pub(super) fn measure(file: &Path, args: &Growth, config: &Config, output: &Output) -> anyhow::Result<Size> {
    let bar = progress::spinner(output, "bench growth");
    let options = ReadOptions { format: Format::Binary, ..ReadOptions::default() };
    bar.set_message("loading");
    let (stream, load_seconds) = fastest(args.repeats, |_| Ok(dataset::read(file, &options)?))?;
    bar.set_message("building the store");
    let (store, build_seconds) = fastest(args.repeats, |_| Ok(Store::build(&stream)?))?;
    let [adjacency, pairs] = [store.adjacency_bytes(), store.pair_index_bytes()];
    let store_bytes_per_event = (adjacency + pairs) as f64 / stream.len().max(1) as f64;
    bar.set_message("preparing the training");
    let start = Instant::now();
    let task = prepared(&stream, store, config)?;
    let (model, parameters) = model::build(&config.model, task.tables.widths(), config.seed)?;
    let device = Device::cpu();
    let trainer = Trainer::new(config, &task, &*model, parameters.clone(), &device)?;
    let prepare_seconds = start.elapsed().as_secs_f64();
    bar.set_message("sampling histories");
    let histories_per_second = sample(&task, args.repeats);
    bar.set_message("encoding pairs");
    let (pairs_per_second, tokens_per_pair) = encode(&task, args.repeats);
    bar.set_message("training");
    let (seconds_per_step, collate_seconds_per_step) = train(trainer, config, &task, &*model, args.steps)?;
    bar.set_message("evaluating");
    let evaluate_seconds = evaluated(&task, config, &*model, parameters, &device)?;
    bar.finish_and_clear();
    Ok(Size {
        events: stream.len(),
        nodes: stream.n_nodes(),
        file_bytes: std::fs::metadata(file)?.len(),
        mapped: task.full_store.is_mapped(),
        load_seconds,
        build_seconds,
        prepare_seconds,
        histories_per_second,
        pairs_per_second,
        tokens_per_pair,
        seconds_per_step,
        collate_seconds_per_step,
        evaluated_events: task.split.test.len(),
        evaluate_seconds,
        store_bytes_per_event,
        peak_memory: peak_memory(),
    })
}

/// The last of `repeats` results, and the fewest seconds that one took. Never two at a time, for the sake of memory.
fn fastest<T>(repeats: u32, mut make: impl FnMut(usize) -> anyhow::Result<T>) -> anyhow::Result<(T, f64)> {
    let (mut made, mut fewest) = (None, f64::INFINITY);
    for repeat in 0..repeats as usize {
        drop(made.take());
        let start = Instant::now();
        made = Some(make(repeat)?);
        fewest = fewest.min(start.elapsed().as_secs_f64());
    }
    Ok((made.context("at least one repetition")?, fewest))
}

/// The task of a training, of which the newest test events are evaluated.
fn prepared<'s>(stream: &'s EventStream, full_store: Store, config: &Config) -> anyhow::Result<Task<'s>> {
    let mut split = SplitRule::of(stream, config.split, MASK_SEED)?.apply(stream)?;
    let is_large = [&split.train, &split.test].iter().all(|part| part.len() >= 2 * config.train.batch);
    anyhow::ensure!(is_large, "found {} events, expected some thousands, so that they can be split", stream.len());
    let train_store = Store::of_events(stream, &split.train)?;
    let n_test = split.test.len();
    split.test.drain(..n_test.saturating_sub(EVALUATED));
    Ok(Task { stream, split, train_store, full_store, tables: FeatureTables::of(stream)? })
}

/// Batches of a pass, spread over the newest tenth of the stream. Each repetition takes others where there are enough, so that what one
/// has read is not in the caches of the next.
fn batches(stream: &EventStream, repeat: usize) -> Vec<Vec<PairQuery>> {
    let newest = stream.len() - (stream.len() / 10).clamp(1, stream.len())..stream.len();
    let n_batches = newest.len().div_ceil(BATCH);
    let wanted = n_batches.min(PASS_EVENTS / BATCH);
    let stride = n_batches / wanted;
    let events = |batch: usize| {
        let first = newest.start + batch * BATCH;
        (first..stream.len().min(first + BATCH)).map(EventId::from_index).collect::<Vec<_>>()
    };
    (0..wanted).map(|at| PairQuery::of(stream, &events(at * stride + repeat % stride))).collect()
}

/// Items a second of the fastest of so many passes, after one that is not timed; `pass` answers how many items it had.
fn best_rate(stream: &EventStream, repeats: u32, mut pass: impl FnMut(&[PairQuery]) -> usize) -> f64 {
    let mut best: f64 = 0.0;
    for repeat in 0..=repeats as usize {
        let batches = batches(stream, repeat);
        let start = Instant::now();
        let n: usize = batches.iter().map(|batch| pass(batch)).sum();
        let seconds = start.elapsed().as_secs_f64();
        if repeat > 0 {
            best = best.max(n as f64 / seconds.max(f64::MIN_POSITIVE));
        }
    }
    best
}

/// Histories a second, of both nodes of events.
fn sample(task: &Task<'_>, repeats: u32) -> f64 {
    let sampler = NeighborSampler::new(&task.full_store, Sampling::Recent, LENGTH);
    let random = RandomStream::named(0, "bench");
    let (mut queries, mut histories) = (Vec::new(), Histories::default());
    best_rate(task.stream, repeats, |batch| {
        queries.clear();
        for query in batch {
            let cut = task.full_store.cut(query.time);
            queries.extend([query.src, query.dst].map(|node| NodeQuery { node, cut }));
        }
        sampler.sample(&queries, &random, &mut histories);
        black_box(&histories);
        queries.len()
    })
}

/// Pairs a second, those of events, and their tokens.
fn encode(task: &Task<'_>, repeats: u32) -> (f64, f64) {
    let config = PairEncoderConfig { length: LENGTH, k: LENGTH, ..PairEncoderConfig::default() };
    let (mut encoder, mut tokens) = (PairEncoder::new(&task.full_store, config), PairTokens::default());
    let (mut n_pairs, mut n_tokens) = (0, 0);
    let rate = best_rate(task.stream, repeats, |batch| {
        encoder.encode(batch, &mut tokens);
        n_pairs += batch.len();
        n_tokens += tokens.n_tokens();
        batch.len()
    });
    (rate, n_tokens as f64 / n_pairs.max(1) as f64)
}

/// Seconds of a step at the end of the training events, the median; and of collating, over the batches before them, which those steps
/// have not brought into caches.
fn train(
    mut trainer: Trainer<'_>,
    config: &Config,
    task: &Task<'_>,
    model: &dyn Model,
    steps: u32,
) -> anyhow::Result<(f64, f64)> {
    let n_batches = trainer.n_batches();
    // The first step is not timed: it allocates buffers.
    let n_timed = (steps as usize).min((n_batches - 1) / 2).max(1);
    let first = n_batches - 1 - n_timed;
    let collated = first.saturating_sub(n_timed)..first;
    let n_collated = collated.len().max(1);
    let collating = Collating::measure(config, task, model, collated)?;
    (0..first).for_each(|_| trainer.skip_batch());
    let (mut seconds, mut mark) = (Vec::new(), Instant::now());
    trainer.steps(1 + n_timed, &mut || {
        seconds.push(mark.elapsed().as_secs_f64());
        mark = Instant::now();
    })?;
    let timed = &mut seconds[1..];
    timed.sort_unstable_by(f64::total_cmp);
    Ok((timed[timed.len() / 2], collating.seconds / n_collated as f64))
}

/// Seconds of an evaluation of the newest test events with untrained weights: the work does not depend on their values.
fn evaluated(
    task: &Task<'_>,
    config: &Config,
    model: &dyn Model,
    parameters: Parameters,
    device: &Device,
) -> anyhow::Result<f64> {
    let weights = Weights::new(device, parameters)?;
    let mut scorer = ModelScorer::new(PairScorer::new(model, &task.tables, &task.full_store), &weights, None);
    let (batch, scorers) = (config.train.batch, std::slice::from_mut(&mut scorer));
    let start = Instant::now();
    evaluate(task, Pass::Test, Negatives::Random, batch, scorers, &mut NoCallback)?;
    Ok(start.elapsed().as_secs_f64())
}
