//! Results go to stdout; notes, progress and errors go to stderr.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Context as _;
use ctdg::error::printable_lines;
use serde::Serialize;

use crate::args::Global;
use crate::failure::Failure;
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
    max_memory: Option<u64>,
    /// The arguments of the program.
    command: Arc<[String]>,
    /// What starts this program again, if not its file.
    program: Option<Arc<[OsString]>>,
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
    /// As the flags of every command say; `command` are the arguments of the program, as a run records them, `program` is what starts it
    /// again, if not its file.
    pub(crate) fn new(global: &Global, command: Vec<String>, program: Option<Vec<OsString>>) -> Self {
        let last_line = Arc::new(AtomicU64::new(0.0_f64.to_bits()));
        let progress = match (global.quiet, io::stderr().is_terminal()) {
            (true, _) => ProgressForm::Silent,
            (false, true) => ProgressForm::Drawn,
            (false, false) => ProgressForm::Lines,
        };
        Self {
            json: global.json,
            quiet: global.quiet,
            max_memory: global.max_memory,
            command: command.into(),
            program: program.filter(|words| !words.is_empty()).map(Into::into),
            progress,
            start: Instant::now(),
            last_line,
        }
    }

    /// Prints the command's result: `json` as one document with `--json`, otherwise `text`, without anything from a file that a
    /// terminal would act on.
    pub(crate) fn answer(&self, text: impl Display, json: &impl Serialize) -> anyhow::Result<()> {
        self.print(json, || Ok(printable_lines(&text.to_string()).into_owned()))
    }

    /// [`Output::answer`] for text that is data, such as CSV: on its way to another program it stays as it is, and is written piece by
    /// piece.
    pub(crate) fn answer_data(
        &self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
        json: &impl Serialize,
    ) -> anyhow::Result<()> {
        if self.json || io::stdout().is_terminal() {
            let text = || -> anyhow::Result<String> {
                let mut text = Vec::new();
                write(&mut text)?;
                Ok(printable_lines(&String::from_utf8_lossy(&text)).into_owned())
            };
            return self.print(json, text);
        }
        let mut stdout = BufWriter::new(io::stdout().lock());
        write(&mut stdout)?;
        stdout.flush()?;
        Ok(())
    }

    fn print(&self, json: &impl Serialize, text: impl FnOnce() -> anyhow::Result<String>) -> anyhow::Result<()> {
        let mut stdout = BufWriter::new(io::stdout().lock());
        if self.json {
            serde_json::to_writer_pretty(&mut stdout, json)?;
            writeln!(stdout)?;
        } else {
            stdout.write_all(text()?.as_bytes())?;
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
    /// `--quiet`; with `--json` also to stdout, as a document.
    pub(crate) fn error(&self, error: &anyhow::Error, flags: &[String]) {
        if self.json {
            Self::print_failure(&Failure::of(error, flags));
        }
        let _ = writeln!(io::stderr(), "error: {}", printable_lines(&remedy::message(error, flags)));
    }

    /// The arguments of the program.
    pub(crate) fn command(&self) -> impl Iterator<Item = String> {
        self.command.iter().cloned()
    }

    /// Starts this program again, with arguments to be added.
    pub(crate) fn program(&self) -> anyhow::Result<Command> {
        if let Some([first, rest @ ..]) = self.program.as_deref() {
            let mut command = Command::new(first);
            command.args(rest);
            return Ok(command);
        }
        Ok(Command::new(std::env::current_exe().context("could not find this program to start it again")?))
    }

    /// Whether results are JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether nothing but errors is printed to stderr.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Bytes of memory that work may take, if the user said so.
    pub(crate) fn max_memory(&self) -> Option<u64> {
        self.max_memory
    }

    /// Prints an error as the one JSON document on stdout.
    pub(crate) fn print_failure(failure: &Failure) {
        let document = serde_json::to_string_pretty(failure).unwrap_or_default();
        // A closed stdout cannot be reported there; the text goes to stderr in any case.
        let _ = writeln!(io::stdout(), "{document}");
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
