//! `hopedgn experiment pages`: the pages of many experiments and their index.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Context;
use hopedgn::ModelRegistry;
use hopedgn_experiments::experiment::{self, Experiment, Found, Listed};
use serde_json::json;

use super::report::{folder_of, write};
use super::{Files, Lookup, Pages, quoted, runs_flag};
use crate::output::{Outcome, Output};
use crate::plural::count;

pub(super) fn pages(args: &Pages, registry: &ModelRegistry, output: &Output) -> anyhow::Result<Outcome> {
    // Every file is read before the first page is written.
    let mut all: Vec<(Files, Experiment, Vec<Found>)> = Vec::new();
    for file in args.experiments()? {
        let (runs, data_dir) = (args.runs.clone(), args.data_dir.clone());
        let files = Files { file, runs, out: None, smoke: false, data_dir };
        let experiment = files.read(registry)?;
        let found = files.find_runs(&experiment, &args.archive, Lookup::Display)?;
        all.push((files, experiment, found));
    }
    let command = args.command();
    let mut paths = Vec::new();
    for (files, experiment, found) in &all {
        let (html, markdown) = (format!("{}.html", experiment.stem()), format!("{}.md", experiment.stem()));
        let (html, markdown) = (args.into.join(html), args.into.join(markdown));
        let commands = [format!("hopedgn experiment run {}", files.arguments()), command.clone()];
        write(experiment, found, &commands, &html, &markdown)?;
        paths.push((html, markdown));
    }
    let listed: Vec<Listed<'_>> = all
        .iter()
        .zip(&paths)
        .map(|((_, experiment, found), (html, markdown))| Listed { experiment, found, markdown, html })
        .collect();
    let index = args.into.with_extension("md");
    let with_checks = all.iter().filter(|(_, experiment, _)| experiment.has_expectations());
    let checks: Vec<String> = with_checks
        .map(|(files, ..)| {
            format!("hopedgn experiment check {}{} --allow-missing", files.arguments(), args.archive.arguments())
        })
        .collect();
    ctdg::dataset::write_file(&index, experiment::index(&listed, &command, &checks, &args.runs, &folder_of(&index)))?;
    let n_done = |found: &[Found]| found.iter().filter(|one| one.is_done()).count();
    let mut text = String::new();
    for (_, experiment, found) in &all {
        let _ = writeln!(text, "{}: {} of {} done", experiment.stem(), n_done(found), count(found.len(), "run"));
    }
    let listed: Vec<_> = all
        .iter()
        .zip(&paths)
        .map(|((_, experiment, found), (html, markdown))| {
            let (stem, done, cells) = (experiment.stem(), n_done(found), found.len());
            json!({ "experiment": stem, "done": done, "cells": cells, "html": html, "markdown": markdown })
        })
        .collect();
    output.answer(format!("{text}{}\n", index.display()), &json!({ "index": index, "pages": listed }))?;
    Ok(Outcome::Done)
}

impl Pages {
    /// The named files, and the .toml files of named folders in order of name.
    fn experiments(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut all = Vec::new();
        for file in &self.files {
            if !file.is_dir() {
                all.push(file.clone());
                continue;
            }
            let entries = std::fs::read_dir(file).with_context(|| format!("could not read {}", file.display()))?;
            let mut inner: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            inner.retain(|path| path.is_file() && path.extension().is_some_and(|ending| ending == "toml"));
            inner.sort();
            all.extend(inner);
        }
        Ok(all)
    }

    /// The command that writes these pages again.
    fn command(&self) -> String {
        let files: Vec<String> = self.files.iter().map(|file| format!(" {}", quoted(file))).collect();
        let (archive, data_dir, into) = (self.archive.arguments(), self.data_dir.flag(), quoted(&self.into));
        let runs = runs_flag(&self.runs);
        format!("hopedgn experiment pages{}{runs}{archive}{data_dir} --into {into}", files.concat())
    }
}
