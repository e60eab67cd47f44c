//! Progress bars with the time left; on a terminal only.

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

/// A sign of life for work of unknown length; the caller sets the message.
pub(crate) fn rounds(output: &Output) -> ProgressBar {
    if !output.shows_progress() {
        return ProgressBar::hidden();
    }
    let spinner = ProgressBar::new_spinner();
    spinner.enable_steady_tick(Duration::from_millis(200));
    spinner
}

fn bar(output: &Output, what: &str, total: u64, counts: &str) -> ProgressBar {
    if !output.shows_progress() {
        return ProgressBar::hidden();
    }
    let template = format!("{{msg}} {{wide_bar}} {counts}, {{eta}} left");
    let style = ProgressStyle::with_template(&template).expect("the template is fixed");
    let bar = ProgressBar::new(total).with_style(style).with_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
