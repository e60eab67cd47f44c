//! Progress of training and evaluation on a terminal, and a clean stop on Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::Context;
use hopedgn::Result;
use hopedgn::callbacks::{Callback, EpochEnd, Stage, TrainStart};
use hopedgn::metrics::{LabelEpoch, LinkMetrics};
use indicatif::ProgressBar;

use crate::output::Output;
use crate::progress;
use hopedgn::fmt::{duration, percent};

/// A progress bar for each stage and a line for each epoch.
pub(crate) struct ProgressCallback<'o> {
    output: &'o Output,
    stop: Arc<AtomicBool>,
    bar: Option<(Stage, usize, ProgressBar)>,
    /// Maximal number of epochs, for the estimate of the time left.
    n_epochs: usize,
    /// When this process began to train, and how many epochs were done then.
    start: (Instant, usize),
    /// Best epoch of the node classifier so far, and its AUC.
    best_label: Option<(usize, f64)>,
}

impl<'o> ProgressCallback<'o> {
    /// Installs the handler of Ctrl-C: the first finishes the current step and saves, the second ends the program.
    pub(crate) fn new(output: &'o Output) -> anyhow::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (flag, notes) = (Arc::clone(&stop), output.clone());
        ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::SeqCst) {
                notes.remark("stopped; the last checkpoint is intact");
                // Files are written whole or not at all, so ending here damages none.
                std::process::exit(130);
            }
            notes.remark("\nfinishing the current step; press Ctrl-C again to stop at once");
        })
        .context("could not listen for Ctrl-C")?;
        Ok(Self { output, stop, bar: None, n_epochs: 0, start: (Instant::now(), 0), best_label: None })
    }

    fn clear(&mut self) {
        if let Some((_, _, bar)) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Callback for ProgressCallback<'_> {
    fn on_train_start(&mut self, start: &TrainStart<'_>) -> Result<()> {
        self.n_epochs = start.config.train.epochs;
        self.start = (Instant::now(), start.history.len());
        Ok(())
    }

    fn on_progress(&mut self, stage: Stage, done: usize, total: usize) {
        let is_shown = self.bar.as_ref().is_some_and(|(shown, of, _)| *shown == stage && *of == total && done > 0);
        if !is_shown {
            self.clear();
            let what = match stage {
                Stage::Train => "training",
                Stage::Evaluate => "evaluating",
                Stage::Rank => "ranking",
                Stage::Embed => "embedding",
                Stage::Classify => "training the classifier",
            };
            self.bar = Some((stage, total, progress::steps(self.output, what, total as u64)));
        }
        if let Some((_, _, bar)) = &self.bar {
            bar.set_position(done as u64);
        }
        if done >= total {
            self.clear();
        }
    }

    fn on_epoch_end(&mut self, end: &EpochEnd<'_>) -> Result<()> {
        let EpochEnd { record, .. } = *end;
        self.clear();
        let (start, done_before) = self.start;
        let n_done = record.epoch.saturating_sub(done_before).max(1);
        let per_epoch = start.elapsed().as_secs_f64() / n_done as f64;
        let left = per_epoch * self.n_epochs.saturating_sub(record.epoch) as f64;
        let metrics = |metrics: Option<LinkMetrics>| match metrics {
            Some(LinkMetrics { ap, auc, .. }) => format!("{:.2}/{:.2}", 100.0 * ap, 100.0 * auc),
            None => "none".to_owned(),
        };
        self.output.remark(format_args!(
            "epoch {:>2}  loss {:.4}  val AP/AUC {}, new nodes {}  {:.0} s, {:.0} pairs/s{}{}",
            record.epoch,
            record.loss,
            metrics(record.val.transductive),
            metrics(record.val.inductive),
            record.train_seconds + record.eval_seconds,
            record.pairs_per_second,
            if record.better { "  best" } else { "" },
            if record.epoch < self.n_epochs { format!("  at most {} left", duration(left)) } else { String::new() },
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
