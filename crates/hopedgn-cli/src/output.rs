//! Results go to stdout; notes, progress and errors go to stderr.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use ctdg::error::printable_lines;
use serde::Serialize;

use crate::args::Global;
use crate::remedy;

/// The exit status of a command that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Exit status 0.
    Done,
    /// It ran, but a check failed: exit status 1.
    FellShort,
}

/// Where and in which form a command prints.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    json: bool,
    quiet: bool,
    progress: ProgressForm,
    start: Instant,
    /// Bits of the seconds since `start` at which the last line was printed to stderr.
    last_line: Arc<AtomicU64>,
}

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgressForm {
    /// As bars on a terminal.
    Drawn,
    /// As a plain line now and then, for a log.
    Lines,
    /// Not at all.
    Silent,
}

impl Output {
    pub(crate) fn new(global: &Global) -> Self {
        let last_line = Arc::new(AtomicU64::new(0.0_f64.to_bits()));
        let progress = match (global.quiet, io::stderr().is_terminal()) {
            (true, _) => ProgressForm::Silent,
            (false, true) => ProgressForm::Drawn,
            (false, false) => ProgressForm::Lines,
        };
        Self { json: global.json, quiet: global.quiet, progress, start: Instant::now(), last_line }
    }

    /// Prints the command's result: `json` as one document with `--json`, otherwise `text`, without anything from a file that a
    /// terminal would act on.
    pub(crate) fn answer(&self, text: impl Display, json: &impl Serialize) -> anyhow::Result<()> {
        self.print(json, || printable_lines(&text.to_string()).into_owned())
    }

    /// [`Output::answer`] for text that is data, such as CSV: on its way to another program it stays as it is.
    pub(crate) fn answer_data(&self, text: impl Display, json: &impl Serialize) -> anyhow::Result<()> {
        if io::stdout().is_terminal() {
            return self.answer(text, json);
        }
        self.print(json, || text.to_string())
    }

    fn print(&self, json: &impl Serialize, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        let mut stdout = io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut stdout, json)?;
            writeln!(stdout)?;
        } else {
            stdout.write_all(text().as_bytes())?;
        }
        stdout.flush()?;
        Ok(())
    }

    /// Prints a note or warning to stderr, unless `--quiet`.
    pub(crate) fn remark(&self, text: impl Display) {
        if !self.quiet {
            self.last_line.store(self.seconds().to_bits(), Ordering::Relaxed);
            // A closed stderr cannot be reported anywhere.
            let _ = writeln!(io::stderr(), "{}", printable_lines(&text.to_string()));
        }
    }

    /// Prints the error that ends the program, with what to do about it with the `flags` of its command. Printed even with
    /// `--quiet`.
    pub(crate) fn error(error: &anyhow::Error, flags: &[String]) {
        let _ = writeln!(io::stderr(), "error: {}", printable_lines(&remedy::message(error, flags)));
    }

    /// How to show progress.
    pub(crate) fn progress_form(&self) -> ProgressForm {
        self.progress
    }

    /// Seconds since the program started.
    pub(crate) fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// When the last line was printed to stderr, in the same seconds.
    pub(crate) fn last_line(&self) -> f64 {
        f64::from_bits(self.last_line.load(Ordering::Relaxed))
    }
}

/// Whether the reader of stdout closed it, as `head` does. That is no error.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        io.or(json) == Some(io::ErrorKind::BrokenPipe)
    })
}
