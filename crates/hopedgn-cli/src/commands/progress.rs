//! Progress of training and evaluation, and a clean stop on Ctrl-C.

mod estimate;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use hopedgn::Result;
use hopedgn::callbacks::{Callback, EpochEnd, Stage, TrainStart};
use hopedgn::metrics::{LabelEpoch, LinkMetrics};

use crate::output::Output;
use crate::progress::{self, Bar, Unit};
use estimate::TrainEstimate;
use hopedgn::fmt::{duration, percent};

/// A progress bar for each stage and a line for each epoch.
pub(crate) struct ProgressCallback<'o> {
    output: &'o Output,
    stop: Arc<AtomicBool>,
    /// Whether the work is over, so that Ctrl-C is none of its business.
    is_over: Arc<AtomicBool>,
    bar: Option<(Stage, usize, Bar)>,
    /// Of the run, while it trains.
    run: Option<TrainRun>,
    /// Best epoch of the node classifier so far, and its AUC.
    best_label: Option<(usize, f64)>,
}

/// A training run in this process; times are those of [`Output::seconds`].
struct TrainRun {
    estimate: TrainEstimate,
    start: f64,
    /// When the current epoch began; `None` for one that an earlier process began.
    epoch_start: Option<f64>,
    /// Whether the training part of the current epoch is complete, so that evaluation is validation.
    validates: bool,
}

impl Drop for ProgressCallback<'_> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
    }
}

impl<'o> ProgressCallback<'o> {
    /// Installs the handler of Ctrl-C: the first finishes the current step and saves, the second ends the program.
    pub(crate) fn new(output: &'o Output) -> anyhow::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = Arc::new(AtomicBool::new(false));
        let (flag, over, notes) = (Arc::clone(&stop), Arc::clone(&is_over), output.clone());
        ctrlc::set_handler(move || {
            if over.load(Ordering::SeqCst) {
                return;
            }
            if flag.swap(true, Ordering::SeqCst) {
                notes.remark("stopped; the last checkpoint is intact");
                // Files are written whole or not at all, so ending here damages none.
                std::process::exit(130);
            }
            notes.remark("\nfinishing the current step; press Ctrl-C again to stop at once");
        })
        .context("could not listen for Ctrl-C")?;
        Ok(Self { output, stop, is_over, bar: None, run: None, best_label: None })
    }

    fn clear(&mut self) {
        if let Some((_, _, bar)) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// A bar for a stage that begins, or continues where `done` parts are done.
    fn begin(&mut self, stage: Stage, done: usize, total: usize) -> Bar {
        const BATCHES: Unit = Unit::Things("batch", "batches");
        let epoch = self.run.as_ref().map_or(0, |run| run.estimate.epoch());
        let (what, unit) = match stage {
            Stage::Train => (format!("training epoch {epoch}"), BATCHES),
            Stage::Evaluate => match &self.run {
                Some(run) if run.validates => (format!("validating epoch {epoch}"), BATCHES),
                Some(_) => ("testing".to_owned(), BATCHES),
                None => ("evaluating".to_owned(), BATCHES),
            },
            Stage::Rank => ("ranking".to_owned(), Unit::Things("event", "events")),
            Stage::Embed => ("embedding".to_owned(), BATCHES),
            Stage::Classify => ("training the classifier".to_owned(), Unit::Things("epoch", "epochs")),
        };
        if let (Stage::Train, Some(run)) = (stage, &mut self.run) {
            run.epoch_start = (done == 0).then(|| self.output.seconds());
            run.estimate.is_resumed |= done > 0;
        }
        let bar = progress::things(self.output, &what, unit, total as u64);
        bar.start_at(done as u64);
        bar
    }
}

/// Batches of validation: all events of the part, then those with new nodes.
fn n_validation_batches(start: &TrainStart<'_>) -> usize {
    let split = &start.task.split;
    [&split.val, &split.new_node_val].iter().map(|part| part.len().div_ceil(start.config.train.batch)).sum()
}

impl Callback for ProgressCallback<'_> {
    fn on_train_start(&mut self, start: &TrainStart<'_>) -> Result<()> {
        let n_done = start.history.len();
        let estimate = TrainEstimate {
            n_epochs: start.config.train.epochs,
            n_done,
            n_done_before: n_done,
            n_validation: n_validation_batches(start),
            is_resumed: n_done > 0,
            measured: (0.0, 0),
        };
        self.run = Some(TrainRun { estimate, start: self.output.seconds(), epoch_start: None, validates: false });
        Ok(())
    }

    fn on_progress(&mut self, stage: Stage, done: usize, total: usize) {
        let is_shown = self.bar.as_ref().is_some_and(|(shown, of, _)| *shown == stage && *of == total && done > 0);
        if !is_shown {
            self.clear();
            let bar = self.begin(stage, done, total);
            self.bar = Some((stage, total, bar));
        }
        if let Some((_, _, bar)) = &self.bar {
            match (stage, &self.run) {
                (Stage::Train, Some(run)) => bar.set_position_with(done as u64, |per_batch| {
                    let elapsed = self.output.seconds() - run.start;
                    run.estimate.whole(total, total.saturating_sub(done), per_batch, elapsed)
                }),
                _ => bar.set_position(done as u64),
            }
        }
        if done >= total {
            self.clear();
            if let (Stage::Train, Some(run)) = (stage, &mut self.run) {
                run.validates = true;
            }
        }
    }

    fn on_epoch_end(&mut self, end: &EpochEnd<'_>) -> Result<()> {
        let EpochEnd { record, .. } = *end;
        self.clear();
        let now = self.output.seconds();
        let left = self.run.as_mut().and_then(|run| {
            run.validates = false;
            run.estimate.n_done = record.epoch;
            // Of an epoch that an earlier process began, the record has the seconds of both.
            let seconds = run.epoch_start.map_or(record.train_seconds + record.eval_seconds, |start| now - start);
            run.estimate.measured = (run.estimate.measured.0 + seconds, run.estimate.measured.1 + 1);
            run.estimate.left()
        });
        let metrics = |metrics: Option<LinkMetrics>| match metrics {
            Some(LinkMetrics { ap, auc, .. }) => format!("{:.2}/{:.2}", 100.0 * ap, 100.0 * auc),
            None => "none".to_owned(),
        };
        self.output.remark(format_args!(
            "epoch {:>2}  loss {:.4}  val {}AP/AUC {}, new nodes {}  {:.0} s, {:.0} pairs/s{}{}",
            record.epoch,
            record.loss,
            record.val_mrr.map_or(String::new(), |mrr| format!("MRR {}, ", percent(mrr))),
            metrics(record.val.transductive),
            metrics(record.val.inductive),
            record.train_seconds + record.eval_seconds,
            record.pairs_per_second,
            if record.better { "  best" } else { "" },
            left.map_or(String::new(), |left| format!("  at most {} left", duration(left))),
        ));
        Ok(())
    }

    /// Prints every tenth epoch: there are hundreds of short ones.
    fn on_label_epoch_end(&mut self, record: &LabelEpoch) {
        let LabelEpoch { epoch, loss, auc, better } = *record;
        if let Some(auc) = auc.filter(|_| better) {
            self.best_label = Some((epoch, auc));
        }
        if epoch != 1 && !epoch.is_multiple_of(10) {
            return;
        }
        self.clear();
        let best = self.best_label.filter(|_| !better).map(|(at, auc)| format!(", best {} at {at}", percent(auc)));
        let auc = auc.map_or("none".to_owned(), percent);
        self.output.remark(format_args!("epoch {epoch:>3}  loss {loss:.5}  val AUC {auc}{}", best.unwrap_or_default()));
    }

    fn should_stop(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Global;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        global: Global,
    }

    #[test]
    fn a_resumed_epoch_counts_only_its_own_batches() {
        let output = Output::new(&Line::parse_from(["hopedgn", "--quiet"]).global, Vec::new(), None);
        let estimate = TrainEstimate { n_epochs: 5, n_done: 2, n_done_before: 2, ..TrainEstimate::default() };
        let run = Some(TrainRun { estimate, start: 0.0, epoch_start: None, validates: false });
        let mut callback = ProgressCallback {
            output: &output,
            stop: Arc::default(),
            is_over: Arc::default(),
            bar: None,
            run,
            best_label: None,
        };
        let counted = |callback: &ProgressCallback<'_>| callback.bar.as_ref().map(|(_, _, bar)| bar.n_counted());
        callback.on_progress(Stage::Train, 100, 172);
        assert_eq!(counted(&callback), Some(0), "the bar starts where the run was resumed");
        callback.on_progress(Stage::Train, 110, 172);
        assert_eq!(counted(&callback), Some(10));
        assert!(callback.run.as_ref().is_some_and(|run| run.estimate.is_resumed && run.epoch_start.is_none()));
        callback.on_progress(Stage::Train, 172, 172);
        callback.on_progress(Stage::Evaluate, 0, 40);
        assert!(callback.run.as_ref().is_some_and(|run| run.validates), "what follows is validation");
        callback.on_progress(Stage::Train, 0, 172);
        callback.on_progress(Stage::Train, 7, 172);
        assert_eq!(counted(&callback), Some(7));
        assert!(callback.run.as_ref().is_some_and(|run| run.epoch_start.is_some()), "timed from its beginning");
    }
}
