//! Estimate of a whole training run from the steps of this process.

use hopedgn::fmt::duration;

use crate::progress::Estimate;

/// Cost of a validation batch in training batches: forward alone, without backward and optimizer.
const VALIDATION_COST: f64 = 1.0 / 3.0;

/// What is known of a training run while it goes on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TrainEstimate {
    /// Epochs of the run at most.
    pub(super) n_epochs: usize,
    /// Completed epochs, and those of earlier processes among them.
    pub(super) n_done: usize,
    pub(super) n_done_before: usize,
    /// Validation batches of an epoch.
    pub(super) n_validation: usize,
    /// Whether this process continues the run.
    pub(super) is_resumed: bool,
    /// Seconds of the epochs that this process trained from their beginning, and their number.
    pub(super) measured: (f64, usize),
}

impl TrainEstimate {
    /// The epoch being trained, from 1.
    pub(super) fn epoch(&self) -> usize {
        self.n_done + 1
    }

    /// Seconds of an epoch, if this process has completed one.
    fn measured_epoch(&self) -> Option<f64> {
        let (seconds, n) = self.measured;
        (n > 0).then(|| seconds / n as f64)
    }

    /// Of the whole run, in the middle of an epoch of `n_batches`, of which `n_left` are left and take `per_batch` seconds each; this process
    /// has trained for `elapsed` seconds.
    pub(super) fn whole(&self, n_batches: usize, n_left: usize, per_batch: f64, elapsed: f64) -> Estimate {
        let validation = per_batch * VALIDATION_COST * self.n_validation as f64;
        let epoch = self.measured_epoch().unwrap_or(per_batch * n_batches as f64 + validation);
        let n_later = self.n_epochs.saturating_sub(self.epoch());
        let left = per_batch * n_left as f64 + validation + epoch * n_later as f64;
        let detail = (n_later > 0).then(|| format!("about {} an epoch", duration(epoch)));
        let whole = match (n_later, self.is_resumed || self.n_done > self.n_done_before) {
            (0, _) => format!("about {} left with validation", duration(left)),
            (_, true) => format!("at most {} left", duration(left)),
            (_, false) => format!("at most {} in all", duration(elapsed + left)),
        };
        Estimate { detail, whole }
    }

    /// After an epoch: the time that is left at most.
    pub(super) fn left(&self) -> Option<f64> {
        let n_later = self.n_epochs.saturating_sub(self.n_done);
        (n_later > 0).then_some(self.measured_epoch()? * n_later as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An estimate as a line has it.
    fn line(estimate: &Estimate) -> String {
        [estimate.detail.as_deref(), Some(&estimate.whole)].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    fn estimate() -> TrainEstimate {
        TrainEstimate { n_epochs: 50, n_validation: 30, ..TrainEstimate::default() }
    }

    #[test]
    fn the_first_steps_estimate_the_whole_run() {
        // 170 batches of 0.2 s and 30 validation batches at a third of that: 36 s an epoch.
        let text = estimate().whole(170, 100, 0.2, 14.0);
        assert_eq!(line(&text), "about 36 s an epoch, at most 30 min 0 s in all");
    }

    #[test]
    fn measured_epochs_replace_the_estimate_and_what_is_left_counts() {
        let later = TrainEstimate { n_done: 10, measured: (400.0, 10), ..estimate() };
        assert_eq!(line(&later.whole(170, 170, 0.2, 400.0)), "about 40 s an epoch, at most 26 min 36 s left");
        assert_eq!(later.left(), Some(1600.0));
        let last = TrainEstimate { n_done: 49, measured: (400.0, 10), ..estimate() };
        assert_eq!(line(&last.whole(170, 10, 0.2, 400.0)), "about 4 s left with validation");
        assert_eq!(TrainEstimate { n_done: 50, ..last }.left(), None);
    }

    #[test]
    fn a_resumed_run_estimates_what_is_left_from_its_own_steps() {
        let resumed = TrainEstimate { n_done: 40, n_done_before: 40, is_resumed: true, ..estimate() };
        assert_eq!(line(&resumed.whole(170, 10, 0.2, 3.0)), "about 36 s an epoch, at most 5 min 28 s left");
        assert_eq!(resumed.left(), None, "no epoch of this process is complete");
    }
}
