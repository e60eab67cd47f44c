//! Progress of long work: a bar with the time left on a terminal; elsewhere, as in a log, a plain line now and then.

mod work;

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::{Output, ProgressForm};
use work::Work;
pub(crate) use work::{Estimate, Unit};

/// The progress of one piece of work.
#[derive(Debug)]
pub(crate) struct Bar {
    output: Output,
    drawn: ProgressBar,
    work: Mutex<Work>,
}

/// A bar over `total` bytes.
pub(crate) fn bytes(output: &Output, what: &str, total: u64) -> Bar {
    Bar::new(output, what, Unit::Bytes, total, "{msg} {wide_bar} {binary_bytes} of {binary_total_bytes}{prefix}")
}

/// A bar over `total` steps of any kind.
pub(crate) fn steps(output: &Output, what: &str, total: u64) -> Bar {
    things(output, what, Unit::Things("", ""), total)
}

/// A bar over `total` things, which `unit` names.
pub(crate) fn things(output: &Output, what: &str, unit: Unit, total: u64) -> Bar {
    Bar::new(output, what, unit, total, "{msg} {wide_bar} {human_pos} of {human_len}{prefix}")
}

/// A bar over named jobs: the message has the names of those that run, and the caller estimates the time left.
pub(crate) fn jobs(output: &Output, unit: Unit, total: u64) -> Bar {
    Bar::new(output, "", unit, total, "{bar:24} {human_pos} of {human_len}{prefix}  {wide_msg}")
}

/// A spinner for work of unknown length; the caller sets the message.
pub(crate) fn spinner(output: &Output, what: &str) -> Bar {
    Bar::new(output, what, Unit::None, 0, "{spinner} {msg}")
}

impl Bar {
    fn new(output: &Output, what: &str, unit: Unit, total: u64, template: &str) -> Self {
        let drawn = if output.progress_form() == ProgressForm::Drawn {
            let style = ProgressStyle::with_template(template).expect("the template is a constant");
            let bar = ProgressBar::new(total).with_style(style).with_message(what.to_owned());
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        } else {
            ProgressBar::hidden()
        };
        let work = Mutex::new(Work::new(what, unit, total, output.seconds()));
        Self { output: output.clone(), drawn, work }
    }

    /// The work continues where `done` parts are done; they do not count for rates.
    pub(crate) fn start_at(&self, done: u64) {
        self.change(|work, now| work.start_at(done, now));
    }

    pub(crate) fn set_position(&self, done: u64) {
        self.change(|work, now| work.set_done(done, now));
    }

    pub(crate) fn inc(&self, n: u64) {
        self.change(|work, now| work.set_done(work.done() + n, now));
    }

    /// Sets the position, and an estimate of more than this piece of work from the seconds that a part takes in this process; none
    /// before the first part is done.
    pub(crate) fn set_position_with(&self, done: u64, estimate: impl FnOnce(f64) -> Estimate) {
        self.change(|work, now| {
            work.set_done(done, now);
            work.estimate = work.seconds_per_part(now).map(estimate);
        });
    }

    /// An estimate of the caller's, which is shown instead of our own.
    pub(crate) fn set_estimate(&self, estimate: Option<String>) {
        self.change(|work, _| work.estimate = estimate.map(|text| Estimate { detail: None, whole: text }));
    }

    pub(crate) fn set_length(&self, total: u64) {
        self.drawn.set_length(total);
        self.change(|work, _| work.total = total);
    }

    /// What is being done now.
    pub(crate) fn set_message(&self, what: impl Into<Cow<'static, str>>) {
        let what = what.into();
        self.drawn.set_message(what.clone());
        self.change(|work, _| work.what = what.into_owned());
    }

    /// Calls `print` while no bar is drawn.
    pub(crate) fn suspend(&self, print: impl FnOnce()) {
        self.drawn.suspend(print);
    }

    pub(crate) fn finish_and_clear(&self) {
        self.drawn.finish_and_clear();
        if self.output.progress_form() == ProgressForm::Lines
            && let Some(line) = self.work().end(self.output.seconds())
        {
            self.output.remark(line);
        }
    }

    /// Changes the numbers, then draws or prints them.
    fn change(&self, change: impl FnOnce(&mut Work, f64)) {
        let mut work = self.work();
        let now = self.output.seconds();
        change(&mut work, now);
        match self.output.progress_form() {
            ProgressForm::Drawn => {
                self.drawn.set_prefix(work.behind_bar(now));
                self.drawn.set_position(work.done());
            }
            ProgressForm::Lines => {
                if let Some(line) = work.due(now, self.output.last_line()) {
                    self.output.remark(line);
                }
            }
            ProgressForm::Silent => {}
        }
    }

    /// Parts that this process has done.
    #[cfg(test)]
    pub(crate) fn n_counted(&self) -> u64 {
        self.work().n_counted()
    }

    /// Numbers stay usable after a panic elsewhere.
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
