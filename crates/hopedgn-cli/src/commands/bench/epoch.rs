//! `hopedgn bench epoch`: real training steps.

use std::fmt::{self, Display};
use std::time::Instant;

use clap::Args;
use hopedgn::config::{Config, Preset};
use hopedgn::model::HopeDgn;
use hopedgn::score::PairScorer;
use hopedgn::task::Task;
use hopedgn::train::Trainer;
use serde::Serialize;

use crate::commands::device::DeviceArgs;
use crate::commands::input::From;
use crate::commands::memory;
use crate::output::{Outcome, Output};
use crate::progress;
use hopedgn::number::{duration, grouped};

/// Time a training epoch on real data, and how much of it goes into looking up the past
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopedgn bench epoch --data uci.csv.gz --steps 50 --json")]
pub(crate) struct Epoch {
    /// A bundled or fetched data set, or a file
    #[arg(long, value_name = "D", default_value = ctdg::dataset::COLLEGEMSG)]
    data: String,
    #[command(flatten)]
    device: DeviceArgs,
    /// Steps to time, spread over the epoch [default: all]
    #[arg(long, value_name = "N")]
    steps: Option<usize>,
    /// Change one setting; may be given many times
    #[arg(long, value_name = "A.B=V")]
    set: Vec<String>,
    #[command(flatten)]
    from: From,
}

#[derive(Debug, Serialize)]
struct Report {
    bench: &'static str,
    data: String,
    device: &'static str,
    threads: usize,
    batch: usize,
    steps_per_epoch: usize,
    repeats: usize,
    seconds_per_step: f64,
    best: f64,
    median: f64,
    seconds_per_epoch: f64,
    pairs_per_second: f64,
    /// Seconds a step of sampling, MITE and laying out the input, by themselves.
    encode_seconds_per_step: f64,
    encode_share: f64,
    tokens_per_pair: f64,
    gflops: Option<f64>,
    peak_memory: Option<u64>,
}

pub(crate) fn run(args: &Epoch, output: &Output) -> anyhow::Result<Outcome> {
    let device = args.device.open(output)?;
    let preset = Preset::for_data(&args.data);
    let config = Config::resolve(preset, &args.set)?;
    let loaded = args.from.load(&args.data, output)?;
    let task = Task::new(&loaded.stream, config.split)?;
    let (model, parameters) = HopeDgn::new(&config.model, task.tables.widths(), config.seed)?;
    let mut trainer = Trainer::new(&config, &task, &model, parameters, &device)?;
    let n_batches = trainer.n_batches();
    let n_steps = args.steps.unwrap_or(n_batches);
    super::within("--steps", n_steps, n_batches)?;
    // Early steps have a short past: those that are timed are spread over the epoch.
    let is_timed = |batch: usize| (batch + 1) * n_steps / n_batches > batch * n_steps / n_batches;

    let bar = progress::steps(output, "epoch", n_steps as u64);
    let mut encoder = PairScorer::new(&model, task.tables, &task.train_store);
    let (mut seconds, mut encode_seconds, mut n_tokens, mut n_pairs) = (Vec::new(), 0.0, 0, 0);
    for batch in 0..n_batches {
        if !is_timed(batch) {
            trainer.skip_batch();
            continue;
        }
        let start = Instant::now();
        trainer.steps(1)?;
        seconds.push(start.elapsed().as_secs_f64());
        let events = task.split.train.chunks(config.train.batch).nth(batch).unwrap_or_default();
        let positives = task.queries(events);
        let queries = [positives.as_slice(), &positives].concat();
        let start = Instant::now();
        n_tokens += encoder.encode_only(&queries, events.len())?;
        encode_seconds += start.elapsed().as_secs_f64();
        n_pairs += queries.len();
        bar.inc(1);
    }
    bar.finish_and_clear();
    let total: f64 = seconds.iter().sum();
    seconds.sort_unstable_by(f64::total_cmp);
    let mean = total / seconds.len().max(1) as f64;
    let report = Report {
        bench: "epoch",
        data: args.data.clone(),
        device: device.name(),
        threads: rayon::current_num_threads(),
        batch: config.train.batch,
        steps_per_epoch: n_batches,
        repeats: seconds.len(),
        seconds_per_step: mean,
        best: seconds[0],
        median: seconds[seconds.len() / 2],
        seconds_per_epoch: mean * n_batches as f64,
        pairs_per_second: n_pairs as f64 / total,
        encode_seconds_per_step: encode_seconds / seconds.len() as f64,
        encode_share: encode_seconds / total,
        tokens_per_pair: n_tokens as f64 / n_pairs.max(1) as f64,
        gflops: None,
        peak_memory: memory::peak(),
    };
    output.answer(&report, &report)?;
    Ok(Outcome::Done)
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "epoch on {}: {} ({} steps of {} events, {:.3} s each; {:.0} pairs a second)",
            self.data,
            duration(self.seconds_per_epoch),
            grouped(self.steps_per_epoch),
            self.batch,
            self.seconds_per_step,
            self.pairs_per_second
        )?;
        writeln!(
            f,
            "  looking up the past: {:.1} ms a step, {:.1}% of it; {:.1} tokens a pair",
            1e3 * self.encode_seconds_per_step,
            100.0 * self.encode_share,
            self.tokens_per_pair
        )?;
        let memory = self.peak_memory.map_or("?".to_owned(), |bytes| grouped(bytes / 1_000_000));
        writeln!(f, "  {}, {} threads, {} steps timed, {memory} MB at most", self.device, self.threads, self.repeats)
    }
}
