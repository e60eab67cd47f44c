//! Progress bars with the time left. Drawn on a terminal only.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::Output;

/// A bar over `total` bytes.
pub(crate) fn bytes(output: &Output, what: &str, total: u64) -> ProgressBar {
    bar(output, what, total, "{binary_bytes} of {binary_total_bytes}")
}

/// A bar over `total` steps of any kind.
pub(crate) fn steps(output: &Output, what: &str, total: u64) -> ProgressBar {
    bar(output, what, total, "{human_pos} of {human_len}")
}

/// A bar over named jobs: the prefix is the time left, the message the names of the running jobs.
pub(crate) fn jobs(output: &Output, total: u64) -> ProgressBar {
    styled(output, total, "{bar:24} {human_pos} of {human_len}{prefix}  {wide_msg}")
}

/// A spinner for work of unknown length; the caller sets the message.
pub(crate) fn spinner(output: &Output) -> ProgressBar {
    if !output.shows_progress() {
        return ProgressBar::hidden();
    }
    let spinner = ProgressBar::new_spinner();
    spinner.enable_steady_tick(Duration::from_millis(200));
    spinner
}

fn bar(output: &Output, what: &str, total: u64, counts: &str) -> ProgressBar {
    styled(output, total, &format!("{{msg}} {{wide_bar}} {counts}, {{eta}} left")).with_message(what.to_owned())
}

fn styled(output: &Output, total: u64, template: &str) -> ProgressBar {
    if !output.shows_progress() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(template).expect("the template is a constant");
    let bar = ProgressBar::new(total).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
