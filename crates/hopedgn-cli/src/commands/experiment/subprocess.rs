//! Runs as child processes of this program: start, wait, stop.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::Context;

use crate::output::Output;

/// A run in its own process.
pub(super) struct Running {
    child: Child,
    log: PathBuf,
    pub(super) start: Instant,
    signals: usize,
}

impl Running {
    /// Starts this program with `arguments`; results are in the run folder, and stderr goes to `log`.
    pub(super) fn start(arguments: &[String], log: &Path, output: &Output) -> anyhow::Result<Self> {
        let stderr = File::create(log).with_context(|| format!("could not write {}", log.display()))?;
        let mut command = output.program()?;
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
        // A process group of its own: Ctrl-C reaches this program only, which then signals each child once.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn().context("could not start this program again")?;
        Ok(Self { child, log: log.to_owned(), start: Instant::now(), signals: 0 })
    }

    /// The exit status, if it has ended.
    pub(super) fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        self.child.try_wait().context("could not wait for a run")
    }

    /// The first of `wanted` sends SIGINT, the second kills.
    pub(super) fn stop(&mut self, wanted: usize) {
        while self.signals < wanted.min(2) {
            self.signals += 1;
            if self.signals == 2 {
                // It may have ended by itself.
                let _ = self.child.kill();
            } else if cfg!(unix) {
                let _ = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
            }
        }
    }

    /// The last error in its log, or the last ten lines.
    pub(super) fn last_error(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
        let error = lines.iter().rposition(|line| line.starts_with("error:"));
        lines[error.unwrap_or(lines.len().saturating_sub(10))..].join("\n")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // No child outlives this program.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Counts how often Ctrl-C was pressed.
pub(super) fn listen(output: &Output) -> anyhow::Result<Arc<AtomicUsize>> {
    let pressed = Arc::new(AtomicUsize::new(0));
    let (counter, output) = (Arc::clone(&pressed), output.clone());
    ctrlc::set_handler(move || {
        if counter.fetch_add(1, Ordering::SeqCst) == 0 {
            output.remark("\nfinishing the current steps; press Ctrl-C again to stop at once");
        }
    })
    .context("could not listen for Ctrl-C")?;
    Ok(pressed)
}
