//! Index page: all experiments with their state.

use std::fmt::Write;
use std::path::Path;

use super::markdown::relative;
use super::{Experiment, Found, State};

/// An experiment with its pages.
#[derive(Debug, Clone, Copy)]
pub struct Listed<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Its cells.
    pub found: &'a [Found],
    /// Its Markdown.
    pub markdown: &'a Path,
    /// Its page.
    pub html: &'a Path,
}

/// The index as Markdown; links are relative to `folder`, where it will be. `command` writes all pages again from the runs in
/// `runs`, `checks` compare results with expectations.
#[must_use]
pub fn index(listed: &[Listed<'_>], command: &str, checks: &[String], runs: &Path, folder: &Path) -> String {
    let mut out = String::from(
        "# Reproduction: the paper's tables and figures\n\n\
         `hopedgn experiment pages` generates these pages from archived runs. A run counts for a cell only if all of its settings \
         are those that the experiment declares, and only if it saw the events of the data at hand where both are known. Each page \
         lists the runs behind its numbers, their data and machines, and what is missing.\n\n\
         | experiment | page | HTML | runs | missing |\n|---|---|---|---|---|\n",
    );
    for Listed { experiment, found, markdown, html } in listed {
        let n_done = found.iter().filter(|one| one.is_done()).count();
        let _ = writeln!(
            out,
            "| `{}` | [{}]({}) | `{}` | {n_done} of {} | {} |",
            experiment.path().display(),
            experiment.title(),
            relative(folder, markdown),
            relative(folder, html),
            found.len(),
            lacking(found)
        );
    }
    let _ = writeln!(
        out,
        "\nThis command writes all pages again. Runs of `hopedgn experiment run` in `{}` count too. Of two runs with the \
         same settings, the one with evaluation is used, then the one named first. `hopedgn experiment archive` adds new runs to \
         an archive.\n\n```\n{command}\n```",
        runs.display()
    );
    if !checks.is_empty() {
        let _ = writeln!(out, "\nRegression test of accuracy:\n\n```\n{}\n```", checks.join("\n"));
    }
    out
}

/// Reasons why cells are not done, with their counts.
fn lacking(found: &[Found]) -> String {
    let mut reasons: Vec<(String, usize)> = Vec::new();
    for one in found {
        let reason = match &one.state {
            State::Done => continue,
            State::Missing(_) => format!("no data of {}", one.cell.data),
            state => state.title().to_owned(),
        };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, n)) => *n += 1,
            None => reasons.push((reason, 1)),
        }
    }
    let reasons: Vec<String> = reasons.iter().map(|(reason, n)| format!("{n}: {reason}")).collect();
    if reasons.is_empty() { "nothing".to_owned() } else { reasons.join("; ") }
}
