//! `hopedgn experiment status`, `report` and `check`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use ctdg::dataset::write_file;
use hopedgn::ModelRegistry;
use hopedgn_experiments::experiment::{self, Experiment, Found, State, Table as MeanTable};
use serde_json::{Value, json};

use super::{Check, Lookup, Report, Status, TableFormat};
use crate::commands::table::Table;
use crate::output::{Outcome, Output};
use crate::plural::count;

pub(super) fn status(args: &Status, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Outcome> {
    let experiment = args.files.read(registry)?;
    let found = args.files.find_runs(&experiment, &args.archive, Lookup::Display)?;
    output.answer(status_text(&found), &status_json(&found))?;
    Ok(Outcome::Done)
}

/// The cells as a table, the number in each state, and how to get missing datasets.
pub(super) fn status_text(found: &[Found]) -> String {
    let mut table = Table::new(["cell", "state", "AP", "new nodes: AP", ""]);
    for one in found {
        let ap = |setting: &str| {
            one.summary().map_or(String::new(), |summary| {
                let test = &summary.test;
                let metrics = if setting == "all" { test.transductive } else { test.inductive };
                metrics.map_or("–".to_owned(), |metrics| format!("{:.2}", 100.0 * metrics.ap))
            })
        };
        table.row(&one.cell.name, [one.state.title().to_owned(), ap("all"), ap("new"), note(&one.state)]);
    }
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for one in found {
        let title = one.state.title();
        match counts.iter_mut().find(|(known, _)| *known == title) {
            Some((_, n)) => *n += 1,
            None => counts.push((title, 1)),
        }
    }
    let counts: Vec<String> = counts.iter().map(|(title, n)| format!("{n} {title}")).collect();
    format!("{table}\n{}\n{}", counts.join(", "), missing_data(found))
}

fn note(state: &State) -> String {
    match state {
        State::Failed(error) => experiment::reason(error).to_owned(),
        State::Missing(remedy) => remedy.clone(),
        _ => String::new(),
    }
}

/// Missing datasets, each with how to get it.
pub(super) fn missing_data(found: &[Found]) -> String {
    let mut seen: Vec<&str> = Vec::new();
    let mut out = String::new();
    for one in found {
        if let State::Missing(remedy) = &one.state
            && !seen.contains(&one.cell.data.as_str())
        {
            seen.push(&one.cell.data);
            let _ = writeln!(out, "missing data: {}; get it with: {remedy}", one.cell.data);
        }
    }
    out
}

/// The cells as JSON.
pub(super) fn status_json(found: &[Found]) -> Value {
    let cells = found.iter().map(|one| {
        let note = Some(note(&one.state)).filter(|note| !note.is_empty());
        json!({
            "cell": one.cell.name, "data": one.cell.data, "model": one.cell.model.as_str(), "seed": one.cell.seed,
            "mite": one.cell.config.model.has_mite(), "variant": one.cell.variant, "hash": one.cell.hash, "run": one.folder,
            "state": one.state.title(), "note": note, "test": one.summary().map(|summary| summary.test),
        })
    });
    json!({ "cells": cells.collect::<Vec<_>>() })
}

pub(super) fn report(args: &Report, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Outcome> {
    let experiment = args.files.read(registry)?;
    let found = args.files.find_runs(&experiment, &args.archive, Lookup::Display)?;
    let tables: Vec<Value> = MeanTable::all(&experiment, &found).iter().map(table_json).collect();
    let n_done = found.iter().filter(|one| one.is_done()).count();
    let standings = experiment::Standings::of(&experiment, &found).map(|all| standings_json(&all));
    if let Some(format) = args.format {
        let document = json!({ "done": n_done, "tables": tables, "standings": standings });
        let text = match format {
            TableFormat::Markdown => experiment::markdown_tables(&experiment, &found),
            TableFormat::Latex => experiment::latex(&experiment, &found),
            TableFormat::Csv => experiment::long_csv(&experiment, &found)?,
            TableFormat::Json => serde_json::to_string_pretty(&document)? + "\n",
        };
        output.answer_data(|out| out.write_all(text.as_bytes()), &document)?;
        return Ok(Outcome::Done);
    }
    let out = args.files.out(&experiment);
    let page = args.html.clone().unwrap_or_else(|| out.join("report.html"));
    let markdown = args.markdown.clone().unwrap_or_else(|| out.join("report.md"));
    let commands = [
        format!("hopedgn experiment run {}", args.files.arguments()),
        format!("hopedgn experiment report {}{}", args.files.arguments(), args.archive.arguments()),
    ];
    write(&experiment, &found, &commands, &page, &markdown)?;
    let text = format!("{n_done} of {} done\n{}\n{}\n", count(found.len(), "run"), page.display(), markdown.display());
    output.answer(
        text,
        &json!({ "html": page, "markdown": markdown, "done": n_done, "tables": tables, "standings": standings }),
    )?;
    Ok(Outcome::Done)
}

/// Writes both pages of an experiment, and its figures next to the Markdown.
pub(super) fn write(
    experiment: &Experiment,
    found: &[Found],
    commands: &[String],
    page: &Path,
    markdown: &Path,
) -> anyhow::Result<()> {
    for file in [page, markdown] {
        let folder = folder_of(file);
        std::fs::create_dir_all(&folder).with_context(|| format!("could not create {}", folder.display()))?;
    }
    for picture in experiment.figures(found).iter().flat_map(|figure| &figure.pictures) {
        write_file(&folder_of(markdown).join(format!("{}.svg", picture.name)), picture.file())?;
    }
    write_file(page, experiment::html(experiment, found, commands, &folder_of(page)))?;
    write_file(markdown, experiment::markdown(experiment, found, commands, &folder_of(markdown)))?;
    Ok(())
}

/// The folder that contains a file.
pub(super) fn folder_of(file: &Path) -> PathBuf {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

fn standings_json(standings: &experiment::Standings) -> Value {
    let row = |one: &experiment::Standing| {
        let ranks = standings.measures.iter().zip(&one.by_measure).map(|(measure, rank)| {
            let experiment::Measure { metric, setting, negatives } = measure;
            json!({ "metric": metric, "setting": setting, "negatives": negatives, "rank": rank })
        });
        json!({
            "row": one.row, "rank": one.mean, "cells": one.n_cells, "first": one.n_first, "measures": ranks.collect::<Vec<_>>(),
        })
    };
    standings.rows.iter().map(row).collect()
}

fn table_json(table: &MeanTable) -> Value {
    let rows = table.rows.iter().flat_map(|(row, entries)| {
        table.columns.iter().zip(entries).filter_map(move |(data, entry)| {
            let entry = entry.as_ref()?;
            let (ours, paper) = (entry.ours, entry.paper);
            Some(json!({
                "row": row, "data": data, "mean": ours.map(|ours| ours.mean),
                "deviation": ours.and_then(|ours| ours.deviation), "seeds": entry.n_done,
                "paper": paper.map(|paper| paper.mean), "difference": entry.difference(), "rank": entry.rank,
            }))
        })
    });
    let experiment::Measure { metric, setting, negatives } = table.measure;
    json!({ "metric": metric, "setting": setting, "negatives": negatives, "entries": rows.collect::<Vec<_>>() })
}

pub(super) fn check(args: &Check, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Outcome> {
    let experiment = args.files.read(registry)?;
    let found = args.files.find_runs(&experiment, &args.archive, Lookup::Display)?;
    if !experiment.has_expectations() {
        output.remark(format_args!(
            "{}: nothing to check, the file has no [[expect]]; `hopedgn experiment --help` shows one",
            args.files.file.display()
        ));
        output.answer("", &json!({ "short": false, "verdicts": [] }))?;
        return Ok(Outcome::Done);
    }
    let verdicts = experiment::check(&experiment, &found)?;
    let mut table = Table::new(["expectation", "reached", "expected", "", "line"]);
    for verdict in &verdicts {
        let name = format!("{} on {}, {}", verdict.row, verdict.data, verdict.measure.title());
        let reached = verdict.reached.map_or("–".to_owned(), |reached| format!("{reached:.2}"));
        let word = match verdict.holds() {
            Some(true) => "holds",
            Some(false) => "falls short",
            None => "no result",
        };
        table.row(&name, [reached, format!("{:.2}", verdict.expected), word.to_owned(), verdict.line.to_string()]);
    }
    let n_short = verdicts.iter().filter(|verdict| verdict.holds() == Some(false)).count();
    let n_missing = verdicts.iter().filter(|verdict| verdict.holds().is_none()).count();
    let text = format!(
        "{table}\n{}: {n_short} below it, {n_missing} without a result\n",
        count(verdicts.len(), "expectation")
    );
    // Without a single result nothing was checked, which is no success.
    let has_none = n_missing == verdicts.len();
    let is_short = n_short > 0 || has_none || (n_missing > 0 && !args.allow_missing);
    output.answer(text, &json!({ "short": is_short, "verdicts": verdicts }))?;
    Ok(if is_short { Outcome::FellShort } else { Outcome::Done })
}
