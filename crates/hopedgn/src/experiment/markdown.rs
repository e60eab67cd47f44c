//! An experiment as Markdown, to be kept beside the code.

use std::fmt::Write;
use std::path::{Component, Path, PathBuf};

use super::table::{Entry, Table, value};
use super::{Experiment, Found, State};
use crate::number::seconds;

/// The page; links are relative to `folder`, where it will lie.
#[must_use]
pub fn markdown(experiment: &Experiment, found: &[Found], commands: &[String], folder: &Path) -> String {
    let mut out = format!("# {}\n\n", experiment.title());
    if !experiment.about().is_empty() {
        let _ = writeln!(out, "{}\n", experiment.about().trim());
    }
    let _ = writeln!(out, "{EXPLANATION} **Bold**: the best of a column; _italic_: the second.\n");
    for table in Table::all(experiment, found) {
        let _ = writeln!(out, "## {}\n", table.title());
        let _ = writeln!(out, "| | {} |\n|---|{}", table.columns.join(" | "), "---|".repeat(table.columns.len()));
        for (name, entries) in &table.rows {
            let cells: Vec<String> = entries.iter().map(|entry| entry.as_ref().map_or(String::new(), cell)).collect();
            let _ = writeln!(out, "| {name} | {} |", cells.join(" | "));
        }
        out.push('\n');
    }
    runs(&mut out, experiment, found, folder);
    for (title, lines) in [("What is missing", missing(found)), ("Machines", machines(found))] {
        if !lines.is_empty() {
            let _ = writeln!(
                out,
                "## {title}\n\n{}",
                lines.iter().map(|line| format!("- {line}\n")).collect::<Vec<_>>().concat()
            );
        }
    }
    let _ = writeln!(out, "## Commands\n\n```\n{}\n```", commands.join("\n"));
    out
}

/// How the numbers of a place are to be read.
pub(super) const EXPLANATION: &str = "In percent: our mean and deviation over seeds, below it the paper's value, and how far \
                                      ours lies above it. A number without a deviation is that of one run.";

fn cell(entry: &Entry) -> String {
    let ours = match (entry.ours, entry.rank) {
        (None, _) => "–".to_owned(),
        (Some(ours), Some(1)) => format!("**{}**", ours.text()),
        (Some(ours), Some(_)) => format!("_{}_", ours.text()),
        (Some(ours), None) => ours.text(),
    };
    let paper = entry.paper.map(|paper| format!("<br>{}", paper.text())).unwrap_or_default();
    let difference = entry.difference().map(|difference| format!("<br>{difference:+.2}")).unwrap_or_default();
    ours + &paper + &difference
}

fn runs(out: &mut String, experiment: &Experiment, found: &[Found], folder: &Path) {
    let columns = columns(experiment);
    let names: Vec<String> = columns.iter().map(|(name, ..)| name.clone()).collect();
    let _ = writeln!(out, "## Runs\n\n| run | {} | best epoch | an epoch | device |", names.join(" | "));
    let _ = writeln!(out, "|---|{}", "---|".repeat(names.len() + 3));
    for one in found {
        let Some(summary) = one.summary() else { continue };
        let link = relative(folder, &one.folder);
        let shown = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.2}"));
        let values: Vec<String> =
            columns.iter().map(|&(_, setting, metric)| shown(value(summary, setting, metric))).collect();
        let _ = writeln!(
            out,
            "| [{}]({link}) | {} | {} of {} | {} | {} |",
            one.cell.name,
            values.join(" | "),
            summary.best_epoch,
            summary.epochs,
            seconds(summary.seconds_per_epoch),
            device(one)
        );
    }
    out.push('\n');
}

/// The numbers of one run, and what they are called.
pub(super) fn columns(experiment: &Experiment) -> Vec<(String, super::Setting, super::Metric)> {
    let metrics = experiment.file.metrics.iter();
    metrics
        .flat_map(|&metric| {
            super::Setting::ALL.map(|setting| (format!("{}, {}", metric.title(), setting.title()), setting, metric))
        })
        .collect()
}

/// Where a run was computed.
pub(super) fn device(found: &Found) -> String {
    found.summary().map_or(String::new(), |summary| match &summary.precision {
        Some(precision) => format!("{}, {precision}", summary.device),
        None => summary.device.clone(),
    })
}

/// What there is no number for, grouped by reason.
pub(super) fn missing(found: &[Found]) -> Vec<String> {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for one in found {
        let why = match &one.state {
            State::Done(_) => continue,
            State::Missing(remedy) => format!("data of {} are not there: {remedy}", one.cell.data),
            State::Failed(error) => format!("failed: {}", error.trim().lines().last().unwrap_or_default()),
            state => state.title().to_owned(),
        };
        match groups.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(&one.cell.name),
            None => groups.push((why, vec![&one.cell.name])),
        }
    }
    groups.iter().map(|(why, names)| format!("{why} ({} runs: {})", names.len(), names.join(", "))).collect()
}

/// Devices, systems and versions that took part.
pub(super) fn machines(found: &[Found]) -> Vec<String> {
    let mut machines: Vec<(String, usize)> = Vec::new();
    for one in found.iter().filter(|one| one.summary().is_some()) {
        let mut machine = device(one);
        if let Some(manifest) = one.manifest() {
            let commit = manifest.commit.map(|commit| format!(", commit {commit}")).unwrap_or_default();
            let _ = write!(
                machine,
                "; {}, {} threads, version {}{commit}",
                manifest.machine, manifest.threads, manifest.version
            );
        }
        match machines.iter_mut().find(|(known, _)| *known == machine) {
            Some((_, n)) => *n += 1,
            None => machines.push((machine, 1)),
        }
    }
    machines.iter().map(|(machine, n)| format!("{machine} ({n} runs)")).collect()
}

/// The way from one folder to another, with slashes.
pub(super) fn relative(from: &Path, to: &Path) -> String {
    let full = |path: &Path| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        path.components()
            .filter(|part| !matches!(part, Component::CurDir))
            .map(|part| part.as_os_str().to_owned())
            .collect::<Vec<_>>()
    };
    let (from, to) = (full(from), full(to));
    let same = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..".to_owned(), from.len() - same);
    let down = to[same..].iter().map(|part| part.to_string_lossy().into_owned());
    let way: Vec<String> = up.chain(down).collect();
    if way.is_empty() { ".".to_owned() } else { way.join("/") }
}

/// The page of a run if it has one, else its folder.
pub(super) fn page_of(found: &Found) -> PathBuf {
    let page = found.folder.join("report.html");
    if page.is_file() { page } else { found.folder.clone() }
}
