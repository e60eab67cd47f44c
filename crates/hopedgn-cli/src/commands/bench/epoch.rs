//! `hopedgn bench epoch`: training steps on a dataset.

use std::fmt::{self, Display};
use std::time::Instant;

use clap::Args;
use ctdg::negative::Pass;
use hopedgn::ModelRegistry;
use hopedgn::callbacks::NoCallback;
use hopedgn::config::{Config, Preset};
use hopedgn::evaluate::Negatives;
use hopedgn::model;
use hopedgn::task::Task;
use hopedgn::train::Trainer;
use serde::Serialize;

use super::collating::Collating;
use crate::commands::data_args::ReadArgs;
use crate::commands::device::DeviceArgs;
use crate::commands::model::ModelArgs;
use crate::output::{Outcome, Output};
use crate::plural::count;
use crate::progress;
use hopedgn::fmt::{duration, grouped, precise};
use hopedgn::system::peak_memory;

/// Time a training epoch on a dataset, and the share of sampling and collating in it
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopedgn bench epoch --data uci.csv.gz --steps 50 --json")]
pub(crate) struct Epoch {
    /// A bundled or fetched dataset, or a file
    #[arg(long, value_name = "D", default_value = ctdg::dataset::COLLEGEMSG)]
    data: String,
    #[command(flatten)]
    model: ModelArgs,
    /// Steps to time, spread over the epoch; on a GPU, or of a model with a memory, consecutive ones from its middle [default: all]
    #[arg(long, value_name = "N")]
    steps: Option<usize>,
    /// Time an evaluation too: of this many batches of test events, each with a random negative
    #[arg(long, value_name = "N")]
    evaluate: Option<usize>,
    /// Change one setting; may be given several times
    #[arg(long, value_name = "A.B=V")]
    set: Vec<String>,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    read: ReadArgs,
}

#[derive(Debug, Serialize)]
struct Report {
    bench: &'static str,
    model: &'static str,
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
    /// Seconds per step of sampling, MITE and collating, measured alone.
    encode_seconds_per_step: f64,
    encode_share: f64,
    /// Share of the time in which a GPU waited for its next batch.
    waiting_share: Option<f64>,
    /// Seconds per step in which the host submitted work to a GPU, of a model without a memory. Close to those of a step, they are what limits it.
    submit_seconds_per_step: Option<f64>,
    tokens_per_pair: f64,
    evaluation: Option<Evaluation>,
    gflops: Option<f64>,
    peak_memory: Option<u64>,
}

/// Times of an evaluation.
#[derive(Debug, Serialize)]
struct Evaluation {
    batches: usize,
    seconds_per_batch: f64,
    pairs_per_second: f64,
}

impl Evaluation {
    /// Evaluates the test events of `task`, with the weights and the memory that the timed steps left.
    fn measure(trainer: &mut Trainer<'_>, task: &Task<'_>, batch: usize) -> anyhow::Result<Self> {
        let n_events = task.split.test.len();
        let start = Instant::now();
        trainer.evaluate(Pass::Test, Negatives::Random, &mut NoCallback)?;
        let seconds = start.elapsed().as_secs_f64();
        let batches = n_events.div_ceil(batch);
        Ok(Self {
            batches,
            seconds_per_batch: seconds / batches as f64,
            pairs_per_second: 2.0 * n_events as f64 / seconds,
        })
    }
}

pub(crate) fn run(args: &Epoch, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Outcome> {
    let preset = Preset::for_data(&args.data);
    let settings: Vec<String> = args.model.settings().chain(args.set.iter().cloned()).collect();
    let presets: Vec<Preset> = preset.into_iter().collect();
    let config = Config::resolve_with(registry, args.model.name(registry)?, &presets, &settings)?;
    let device = args.device.open_for(&config.model, output)?;
    let events = args.read.load(&args.data, output)?;
    let mut task = Task::new(&events, config.split)?;
    if let Some(n) = args.evaluate {
        let batch = config.train.batch;
        super::check_range("--evaluate", n, task.split.test.len().div_ceil(batch))?;
        task.split.test.truncate(n * batch);
    }
    let (model, parameters) = model::build(&config.model, task.tables.widths(), config.seed)?;
    let make = || Trainer::new(&config, &task, &*model, parameters.clone(), &device);
    let n_batches = make()?.n_batches();
    let n_steps = args.steps.unwrap_or(n_batches);
    super::check_range("--steps", n_steps, n_batches)?;
    let is_gpu = device.is_gpu();
    if is_gpu {
        // Warm-up: the first epoch tunes algorithms and allocates memory.
        make()?.steps(n_batches, &mut || {})?;
    }
    // Early steps have short histories, so the timed ones are spread over the epoch. A GPU needs consecutive ones, and so does a memory.
    let has_memory = model.memory().is_some();
    let first = (n_batches - n_steps) / 2;
    let spread = |step: usize| (2 * step + 1) * n_batches / (2 * n_steps);
    let batch_of = |step: usize| if is_gpu || has_memory { first + step } else { spread(step) };
    let batches: Vec<usize> = (0..n_steps).map(batch_of).collect();
    let mut trainer = make()?;
    let bar = progress::steps(output, "epoch", n_steps as u64);
    let (mut seconds, mut total, mut waited, mut batch) = (Vec::new(), 0.0, 0.0, 0);
    let mut submitted = 0.0;
    for consecutive in batches.chunk_by(|one, next| one + 1 == *next) {
        if has_memory {
            // Not timed: they fill the memory, as in training.
            trainer.steps(consecutive[0] - batch, &mut || {})?;
        } else {
            (batch..consecutive[0]).for_each(|_| trainer.skip_batch());
        }
        batch = consecutive[0];
        let (start, waited_before) = (Instant::now(), trainer.prefetch_wait());
        let submitted_before = trainer.submit_seconds();
        let mut mark = start;
        trainer.steps(consecutive.len(), &mut || {
            seconds.push(mark.elapsed().as_secs_f64());
            mark = Instant::now();
            bar.inc(1);
        })?;
        total += start.elapsed().as_secs_f64();
        waited += trainer.prefetch_wait() - waited_before;
        submitted += trainer.submit_seconds() - submitted_before;
        batch += consecutive.len();
    }
    bar.finish_and_clear();
    if is_gpu && args.evaluate.is_some() {
        // Warm-up: evaluation has chunks of its own.
        Evaluation::measure(&mut trainer, &task, config.train.batch)?;
    }
    let evaluation = args.evaluate.map(|_| Evaluation::measure(&mut trainer, &task, config.train.batch)).transpose()?;
    let collating = Collating::measure(&config, &task, &*model, batches.iter().copied())?;
    seconds.sort_unstable_by(f64::total_cmp);
    let mean = total / seconds.len().max(1) as f64;
    if is_gpu {
        // Single steps cannot be timed: the GPU computes asynchronously.
        seconds.fill(mean);
    }
    let report = Report {
        bench: "epoch",
        model: config.model.name().title(),
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
        pairs_per_second: collating.n_pairs as f64 / total,
        encode_seconds_per_step: collating.seconds / seconds.len() as f64,
        encode_share: collating.seconds / total,
        waiting_share: is_gpu.then(|| waited / total),
        // With a memory, the same thread samples and collates.
        submit_seconds_per_step: (is_gpu && !has_memory).then(|| submitted / seconds.len() as f64),
        tokens_per_pair: collating.n_tokens as f64 / collating.n_pairs.max(1) as f64,
        evaluation,
        gflops: None,
        peak_memory: peak_memory(),
    };
    output.answer(&report, &report)?;
    Ok(Outcome::Done)
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "epoch of {} on {}: {} ({} of {}, {} each; {:.0} pairs/s)",
            self.model,
            self.data,
            if self.seconds_per_epoch < 10.0 {
                precise(self.seconds_per_epoch)
            } else {
                duration(self.seconds_per_epoch)
            },
            count(self.steps_per_epoch, "step"),
            count(self.batch, "event"),
            precise(self.seconds_per_step),
            self.pairs_per_second
        )?;
        writeln!(
            f,
            "  sampling and collating: {:.1} ms per step, {:.1}% of it; {:.1} tokens per pair",
            1e3 * self.encode_seconds_per_step,
            100.0 * self.encode_share,
            self.tokens_per_pair
        )?;
        if let Some(share) = self.waiting_share {
            writeln!(f, "  the GPU waited for its next batch in {:.1}% of the time", 100.0 * share)?;
        }
        if let Some(seconds) = self.submit_seconds_per_step {
            writeln!(f, "  submitting a step took the host {}", precise(seconds))?;
        }
        if let Some(Evaluation { batches, seconds_per_batch, pairs_per_second }) = self.evaluation {
            let (batches, seconds) = (grouped(batches as u64), precise(seconds_per_batch));
            writeln!(f, "  evaluation: {seconds} a batch, {pairs_per_second:.0} pairs/s, over {batches} of them")?;
        }
        let memory = self.peak_memory.map_or("?".to_owned(), |bytes| grouped(bytes / 1_000_000));
        writeln!(
            f,
            "  {}, {}, {} timed, peak memory {memory} MB",
            self.device,
            count(self.threads, "thread"),
            count(self.repeats, "step")
        )
    }
}
