//! Results go to stdout, everything else to stderr.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::args::Global;

/// How a command that ran came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All is well: exit status 0.
    Done,
    /// It ran, but a check fell short: exit status 1.
    FellShort,
}

/// Where and in which form a command answers.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    json: bool,
    quiet: bool,
}

impl Output {
    pub(crate) fn new(global: &Global) -> Self {
        Self { json: global.json, quiet: global.quiet }
    }

    /// Prints the command's one answer: `json` as a document with `--json`, otherwise `text`.
    pub(crate) fn answer(&self, text: impl Display, json: &impl Serialize) -> anyhow::Result<()> {
        let mut stdout = io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut stdout, json)?;
            writeln!(stdout)?;
        } else {
            write!(stdout, "{text}")?;
        }
        stdout.flush()?;
        Ok(())
    }

    /// A remark for the person: a warning, or where a file was put. Not with `--quiet`.
    pub(crate) fn remark(&self, text: impl Display) {
        if !self.quiet {
            // Nothing sensible is left to do when stderr is gone.
            let _ = writeln!(io::stderr(), "{text}");
        }
    }

    /// The error that ends the program. Printed even with `--quiet`.
    pub(crate) fn error(error: &anyhow::Error) {
        let _ = writeln!(io::stderr(), "error: {error:#}");
    }

    /// Whether progress bars make sense.
    pub(crate) fn shows_progress(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }
}

/// Whether the reader of our stdout went away, as `head` does: no error.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        io.or(json) == Some(io::ErrorKind::BrokenPipe)
    })
}
