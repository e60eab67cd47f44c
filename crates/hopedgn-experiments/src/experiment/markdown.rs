//! Experiment page as Markdown.

use std::fmt::Write;
use std::path::{Component, Path, PathBuf};

use super::content::contents;
use super::measure::Metric;
use super::standings::Standings;
use super::table::{Entry, Table};
use super::{Archived, Experiment, Figure, Found, Measure, Outcome, Provenance, State, reason};
use ctdg::error::counted;
use hopedgn::fmt::seconds;

/// The page; links are relative to `folder`, where it will be.
#[must_use]
pub fn markdown(experiment: &Experiment, found: &[Found], commands: &[String], folder: &Path) -> String {
    let mut out = format!("# {}\n\n", experiment.title());
    if !experiment.about().is_empty() {
        let _ = writeln!(out, "{}\n", experiment.about().trim());
    }
    for line in notes(experiment) {
        let _ = writeln!(out, "{line}\n");
    }
    for figure in experiment.figures(found) {
        let _ = writeln!(out, "## {}\n", figure.title);
        for picture in &figure.pictures {
            let _ = writeln!(out, "![{}]({}.svg)", picture.title(), picture.name);
        }
        let _ = writeln!(out, "{}{}\n", if figure.pictures.is_empty() { "" } else { "\n" }, lacking(&figure));
    }
    out.push_str(&tables(experiment, found));
    runs(&mut out, experiment, found, folder);
    for (title, lines) in [("Missing", missing(found)), ("Data", contents(found)), ("Machines", machines(found))] {
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

/// How to read the tables, and the tables alone.
#[must_use]
pub fn tables(experiment: &Experiment, found: &[Found]) -> String {
    let mut out = String::new();
    if let Some(standings) = Standings::of(experiment, found) {
        let head = standings.head();
        let _ = writeln!(out, "## Standings\n\n{}\n", standings.explanation());
        let _ = writeln!(out, "| | {} |\n|---|{}", head.join(" | "), "---|".repeat(head.len()));
        for standing in &standings.rows {
            let _ = writeln!(out, "| {} | {} |", standing.row, standing.cells().join(" | "));
        }
        out.push('\n');
    }
    let _ = writeln!(out, "{} **Bold**: best of its column; _italic_: second best.\n", explanation(experiment));
    for table in Table::all(experiment, found) {
        let _ = writeln!(out, "## {}\n", table.title());
        let _ = writeln!(out, "| | {} |\n|---|{}", table.columns.join(" | "), "---|".repeat(table.columns.len()));
        let metric = table.measure.metric;
        for (name, entries) in &table.rows {
            let shown = |entry: &Option<Entry>| entry.as_ref().map_or(String::new(), |entry| cell(entry, metric));
            let cells: Vec<String> = entries.iter().map(shown).collect();
            let _ = writeln!(out, "| {name} | {} |", cells.join(" | "));
        }
        if let Some((title, gains)) = table.improvement(experiment) {
            let cells: Vec<String> = gains.into_iter().map(gain).collect();
            let _ = writeln!(out, "| {title} | {} |", cells.join(" | "));
        }
        out.push('\n');
    }
    out
}

/// An improvement in percent, as shown.
pub(super) fn gain(gain: Option<f64>) -> String {
    gain.map_or(String::new(), |gain| format!("{gain:+.2}"))
}

/// Notes above the numbers.
pub(super) fn notes(experiment: &Experiment) -> Vec<String> {
    if experiment.is_smoke {
        let smoke = "Smoke test (--smoke): every cell took a few steps with a tiny model on one small dataset, whatever data its column \
                     names. It shows that the cells run; the numbers mean nothing.";
        return vec![smoke.to_owned()];
    }
    let text = [experiment.note()].into_iter().filter(|note| !note.is_empty());
    text.map(|note| note.trim().to_owned()).collect()
}

/// How to read a figure, and what is missing in it.
pub(super) fn lacking(figure: &Figure) -> String {
    const MARKS: &str = "Marks are means over seeds; error bars, where there are several, the standard deviation.";
    match (figure.lacking(), figure.pictures.is_empty()) {
        (None, _) => MARKS.to_owned(),
        (Some(missing), true) => format!("No results yet. Not run: {missing}."),
        (Some(missing), false) => format!("{MARKS} Not run: {missing}."),
    }
}

/// How to read an entry.
pub(super) fn explanation(experiment: &Experiment) -> String {
    let metrics = &experiment.file.metrics;
    let mut parts =
        vec!["Mean and standard deviation over seeds; a number without a deviation is from one run.".to_owned()];
    if metrics.iter().any(|metric| !metric.is_cost()) {
        let which = if metrics.iter().any(|metric| metric.is_cost()) { "Fractions are" } else { "All are" };
        parts.insert(0, format!("{which} in percent."));
    }
    if experiment.file.has_published() {
        parts.push("Below: the paper's value, and the difference to it.".to_owned());
    }
    let low: Vec<&str> = metrics.iter().filter(|metric| metric.is_better_low()).map(|metric| metric.title()).collect();
    if !low.is_empty() {
        parts.push(format!("Lower is better: {}.", low.join("; ")));
    }
    let names: Vec<&str> = experiment.file.heuristics.iter().map(|heuristic| heuristic.title()).collect();
    if !names.is_empty() {
        parts.push(format!("Heuristics: {}.", names.join("; ")));
    }
    parts.join(" ")
}

fn cell(entry: &Entry, metric: Metric) -> String {
    let ours = match (entry.ours, entry.rank) {
        (None, _) => entry.why.to_owned(),
        (Some(ours), Some(1)) => format!("**{}**", ours.text(metric)),
        (Some(ours), Some(2)) => format!("_{}_", ours.text(metric)),
        (Some(ours), _) => ours.text(metric),
    };
    let paper = entry.paper.map(|paper| format!("<br>{}", paper.text(metric))).unwrap_or_default();
    let difference = entry.difference().map(|difference| format!("<br>{difference:+.2}")).unwrap_or_default();
    ours + &paper + &difference
}

fn runs(out: &mut String, experiment: &Experiment, found: &[Found], folder: &Path) {
    let measures = experiment.measures();
    let names: Vec<String> = measures.iter().map(Measure::title).collect();
    let _ = writeln!(out, "## Runs\n\n| run | {} | best epoch | time per epoch | device |", names.join(" | "));
    let _ = writeln!(out, "|---|{}", "---|".repeat(names.len() + 3));
    for one in found {
        let Some(outcome) = &one.outcome else { continue };
        let name = match &one.archived {
            Some(archived) => format!("{} ({})", one.cell.name, entry_of(archived)),
            None => format!("[{}]({})", one.cell.name, relative(folder, &one.folder)),
        };
        let _ = writeln!(
            out,
            "| {name} | {} | {} of {} | {} | {} |",
            values(outcome, &measures).join(" | "),
            outcome.summary.best_epoch,
            outcome.summary.epochs,
            seconds(outcome.summary.seconds_per_epoch),
            device(one)
        );
    }
    out.push('\n');
}

/// Where in an archive a run is, e.g. `models.jsonl:12`.
pub(super) fn entry_of(archived: &Archived) -> String {
    let file = archived.file.file_name().unwrap_or_default().to_string_lossy();
    format!("{file}:{}", archived.line)
}

/// The numbers of one run.
pub(super) fn values(outcome: &Outcome, measures: &[Measure]) -> Vec<String> {
    let shown =
        |&measure: &Measure| outcome.value(measure, None).map_or("–".to_owned(), |value| measure.metric.text(value));
    measures.iter().map(shown).collect()
}

/// Device and precision of a run.
pub(super) fn device(found: &Found) -> String {
    let Some(summary) = found.summary() else { return String::new() };
    let parts = [Some(&summary.device), summary.precision.as_ref(), summary.hardware.as_ref()];
    parts.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Cells without results, grouped by reason.
pub(super) fn missing(found: &[Found]) -> Vec<String> {
    let mut groups: Vec<(String, Vec<&Found>)> = Vec::new();
    for one in found {
        let why = match &one.state {
            State::Done => continue,
            State::Missing(remedy) => format!("no data of {}: {remedy}", one.cell.data),
            State::Failed(error) => format!("failed: {}", reason(error)),
            State::Trained => "trained, not evaluated or classified, which needs the checkpoint".to_owned(),
            state => state.title().to_owned(),
        };
        match groups.iter_mut().find(|(known, _)| *known == why) {
            Some((_, cells)) => cells.push(one),
            None => groups.push((why, vec![one])),
        }
    }
    let line =
        |(why, cells): &(String, Vec<&Found>)| format!("{why} ({}: {})", counted(cells.len(), "run"), names(cells));
    groups.iter().map(line).collect()
}

/// Names of cells; those that differ only in the seed are joined.
fn names(cells: &[&Found]) -> String {
    let mut names: Vec<(&str, Vec<String>)> = Vec::new();
    for Found { cell, .. } in cells {
        let seed = cell.seed.to_string();
        let name = cell.name.strip_suffix(&format!("-{seed}")).unwrap_or(&cell.name);
        match names.last_mut() {
            Some((last, seeds)) if *last == name => seeds.push(seed),
            _ => names.push((name, vec![seed])),
        }
    }
    let name = |(name, seeds): &(&str, Vec<String>)| match seeds.as_slice() {
        [seed] => format!("{name}-{seed}"),
        seeds => format!("{name}-{{{}}}", seeds.join(",")),
    };
    names.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Devices, systems and versions of all runs.
pub(super) fn machines(found: &[Found]) -> Vec<String> {
    let mut machines: Vec<(String, usize)> = Vec::new();
    for one in found.iter().filter(|one| one.summary().is_some()) {
        let mut machine = device(one);
        let provenance = one.outcome.as_ref().and_then(|outcome| outcome.provenance.as_ref());
        if let Some(Provenance { version, commit, machine: system, threads }) = provenance {
            let commit = commit.as_ref().map(|commit| format!(", commit {commit}")).unwrap_or_default();
            let threads = counted(*threads, "thread");
            let _ = write!(machine, "; {system}, {threads}, version {version}{commit}");
        }
        match machines.iter_mut().find(|(known, _)| *known == machine) {
            Some((_, n)) => *n += 1,
            None => machines.push((machine, 1)),
        }
    }
    machines.iter().map(|(machine, n)| format!("{machine} ({n} run{})", if *n == 1 { "" } else { "s" })).collect()
}

/// The relative path from one folder to another, with slashes.
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
    let path: Vec<String> = up.chain(down).collect();
    if path.is_empty() { ".".to_owned() } else { path.join("/") }
}

/// The report of a run if it has one, otherwise its folder.
pub(super) fn page_of(found: &Found) -> PathBuf {
    let page = found.folder.join("report.html");
    if page.is_file() { page } else { found.folder.clone() }
}
