//! One page that lists experiments with what is there of each.

use std::fmt::Write;
use std::path::Path;

use super::markdown::relative;
use super::{Experiment, Found, State};

/// An experiment and where its pages lie.
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

/// The list as Markdown; links are relative to `folder`, where it will lie. `command` is what writes everything again,
/// `checks` compare numbers with what is expected of them.
#[must_use]
pub fn index(listed: &[Listed<'_>], command: &str, checks: &[String], folder: &Path) -> String {
    let mut out = String::from(
        "# The paper's tables and figures, from the runs in this repository\n\n\
         Each page is written by `hopedgn experiment pages` from the runs that are kept, and so is this one; no number in them was \
         typed. A run takes the place of a cell only where all of its settings are those that the experiment declares. A page \
         says of each number which run it comes from, on which machine it was made where that was kept, and what is missing.\n\n\
         | experiment | for reading here | as a page | runs | missing |\n|---|---|---|---|---|\n",
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
        "\nThis writes all of it again; the folder that `--data-dir` names holds the data sets, and runs that `hopedgn experiment run` \
         has made in `runs/experiments` take part beside those named here. The folders of new runs are added to `--results`; of two \
         runs with the same settings, the one that was evaluated is taken, then the one that was named first.\n\n```\n{command}\n```"
    );
    if !checks.is_empty() {
        let _ = writeln!(out, "\nThe gate for accuracy:\n\n```\n{}\n```", checks.join("\n"));
    }
    out
}

/// What keeps cells from being done, each reason with its count.
fn lacking(found: &[Found]) -> String {
    let mut reasons: Vec<(String, usize)> = Vec::new();
    for one in found {
        let reason = match &one.state {
            State::Done => continue,
            State::Missing(_) => format!("{} is not there", one.cell.data),
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
