//! `hopedgn wl examples`: built-in pairs of graphs and the verdicts of k = 1, 2, 3 and of marked DWL.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use ctdg::dataset::{self, WriteFormat};
use ctdg::wl::Labels;
use ctdg::wl::examples::{self, Example};
use hopedgn::Events;
use serde::Serialize;

use super::{Question, TestArgs, compare};
use crate::commands::new_file::Force;
use crate::output::{Outcome, Output};
use crate::progress;

/// Show the verdicts of k = 1, 2, 3 and of marked DWL on built-in pairs of graphs, or test one pair
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hopedgn wl examples\n  hopedgn wl examples figure-1 --k 2 --svg figure-1.svg")]
pub(super) struct Examples {
    /// Test this pair as `hopedgn wl A B` would [default: a table of all]
    name: Option<String>,
    /// Write the graphs to NAME-a.csv and NAME-b.csv in this folder instead
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
    #[command(flatten)]
    test: TestArgs,
}

#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    about: &'static str,
    compared: String,
    nodes: usize,
    /// Round in which k-DWL separates, for k = 1, 2, 3; null where it does not.
    dwl: [Option<usize>; 3],
    /// The same for marked DWL, by all nodes and by those that met the pair.
    marked: [Option<usize>; 2],
    /// The same without times: 1-WL, 2-FWL, 3-FWL.
    without_times: [Option<usize>; 3],
    isomorphic: bool,
}

pub(super) fn run(args: &Examples, output: &Output) -> anyhow::Result<Outcome> {
    let mut chosen = examples::all()?;
    if let Some(name) = &args.name {
        let known: Vec<&str> = chosen.iter().map(|example| example.name).collect();
        let known = known.join(", ");
        chosen.retain(|example| example.name == name);
        anyhow::ensure!(!chosen.is_empty(), "found no example called {name}, expected one of {known}");
    }
    if let Some(folder) = &args.write {
        return write(folder, &chosen, args.test.force, output);
    }
    args.test.svg.as_ref().map_or(Ok(()), |path| args.test.force.check(path))?;
    if args.name.is_none() {
        anyhow::ensure!(
            !args.test.is_changed(),
            "found flags of a single test without a name, expected none; name an example, or leave the flags out"
        );
        return table(&chosen, output);
    }
    let example = chosen.swap_remove(0);
    let titles = ["a", "b"].map(|side| format!("{}-{side}", example.name));
    let Example { a, b, tuples, until, .. } = example;
    let question = Question {
        titles,
        streams: [Events::from_stream("a", a), Events::from_stream("b", b)],
        tuples,
        until,
        labels: Labels::Constant,
    };
    compare(&question, &args.test.dwl(output.max_memory())?, &args.test, output)
}

fn table(all: &[Example], output: &Output) -> anyhow::Result<Outcome> {
    let bar = progress::steps(output, "examples", all.len() as u64);
    let table = examples::table(|_| bar.inc(1))?;
    bar.finish_and_clear();
    let rows = table.0.iter().zip(all).map(|(row, example)| Row {
        name: row.name,
        about: example.about,
        compared: row.question.clone(),
        nodes: row.n_nodes,
        dwl: row.dynamic,
        marked: row.marked,
        without_times: row.fixed,
        isomorphic: row.isomorphic,
    });
    let rows: Vec<Row> = rows.collect();
    let mut text = format!(
        "{table}\n\"yes, r\": separated in round r. Marked: marked DWL, by all nodes or by those that met the pair. 1-WL, 2-FWL, 3-FWL: the same graphs without times.\n\n"
    );
    for example in all {
        writeln!(text, "{}: {}", example.name, example.about)?;
    }
    output.answer(text, &rows)?;
    Ok(Outcome::Done)
}

#[derive(Debug, Serialize)]
struct Written {
    name: &'static str,
    files: [PathBuf; 2],
    command: String,
}

fn write(folder: &Path, chosen: &[Example], force: Force, output: &Output) -> anyhow::Result<Outcome> {
    std::fs::create_dir_all(folder).with_context(|| format!("could not create {}", folder.display()))?;
    let files_of = |example: &Example| ["a", "b"].map(|side| folder.join(format!("{}-{side}.csv", example.name)));
    chosen.iter().flat_map(files_of).try_for_each(|file| force.check(&file))?;
    let mut all = Vec::new();
    for example in chosen {
        let files = files_of(example);
        for (file, stream) in files.iter().zip([&example.a, &example.b]) {
            dataset::write(stream, file, WriteFormat::Text(b','))?;
        }
        let mut command = format!("hopedgn wl {} {} --k 2", files[0].display(), files[1].display());
        if let Some(tuple) = example.tuple_argument() {
            write!(command, " --tuple {tuple}")?;
        }
        if let Some(until) = example.until {
            write!(command, " --until {until}")?;
        }
        all.push(Written { name: example.name, files, command });
    }
    let mut text = String::new();
    for written in &all {
        writeln!(text, "{}", written.command)?;
    }
    output.answer(text, &all)?;
    Ok(Outcome::Done)
}
