//! What a server says about itself: lines on stderr, or JSON for machines.

use tracing::level_filters::LevelFilter;

use crate::output::Output;

/// Sends events of the server to stderr.
pub(super) fn start(output: &Output) {
    let level = if output.is_quiet() { LevelFilter::ERROR } else { LevelFilter::INFO };
    let lines = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).with_target(false);
    // A second server of one process logs where the first one does.
    let _ = if output.is_json() { lines.json().try_init() } else { lines.with_ansi(false).try_init() };
}
