//! `hopedgn lab`: which models tell which graphs and pairs apart.

use std::fmt;
use std::sync::Mutex;

use clap::Args;
use hopedgn::lab::{self, Findings, LabConfig, Row, Surprise};

use crate::output::{Outcome, Output};

/// Try every model, with random weights, on graphs and pairs that are hard to tell apart, beside 1-DWL and 2-DWL
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  hopedgn lab --cases 20\n\nExit status 1 if global HopeDGN saw what 2-DWL does not."
)]
pub(crate) struct Lab {
    /// Cases of each random family
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    cases: u64,
    /// Draws of the weights of each model
    #[arg(long, value_name = "N", default_value_t = LabConfig::default().n_draws, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    draws: u64,
    /// Of cases and weights
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

pub(crate) fn run(args: &Lab, output: &Output) -> anyhow::Result<Outcome> {
    let config = LabConfig { n_cases: args.cases, n_draws: args.draws, seed: args.seed };
    let n_done = Mutex::new(0);
    let done = || {
        if let Ok(mut n_done) = n_done.lock() {
            *n_done += 1;
            if *n_done % 10 == 0 {
                output.remark(format!("{n_done} cases"));
            }
        }
    };
    let findings = lab::run(&config, &done)?;
    output.answer(Text(&findings), &findings)?;
    // Models of nodes see the order of simultaneous events in the file, which no graph has.
    let is_broken = findings.beyond.iter().any(|surprise| surprise.bound == "2-DWL");
    Ok(if is_broken { Outcome::FellShort } else { Outcome::Done })
}

struct Text<'a>(&'a Findings);

impl Text<'_> {
    /// `yes` or `no` of a single case, otherwise how many of them.
    fn cell(row: &Row, separated: impl Fn(&lab::Verdicts) -> bool) -> String {
        let n = row.cases.iter().filter(|case| separated(case)).count();
        match (row.cases.len(), n) {
            (1, 0) => "no".to_owned(),
            (1, _) => "yes".to_owned(),
            (all, n) => format!("{n}/{all}"),
        }
    }

    fn list(f: &mut fmt::Formatter<'_>, title: &str, surprises: &[Surprise]) -> fmt::Result {
        writeln!(f, "\n{title}: {}", if surprises.is_empty() { "none" } else { "" }.trim_end())?;
        for Surprise { family, case, subject, bound } in surprises {
            writeln!(f, "- {subject} ({bound}): {family}, case {case}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Text<'_> {
    /// A table as Markdown has it: a line a model, a column a family.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Findings { subjects, families, beyond, missed, .. } = self.0;
        let mut lines: Vec<Vec<String>> = vec![vec!["separated by".to_owned()]];
        lines[0].extend(families.iter().map(|row| row.name.clone()));
        for (k, name) in ["1-DWL", "2-DWL"].into_iter().enumerate() {
            let cells = families.iter().map(|row| Self::cell(row, |case| case.dwl[k]));
            lines.push(std::iter::once(name.to_owned()).chain(cells).collect());
        }
        for (at, name) in subjects.iter().enumerate() {
            let cells = families.iter().map(|row| Self::cell(row, |case| case.models[at]));
            lines.push(std::iter::once(name.clone()).chain(cells).collect());
        }
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..=families.len()).map(width).collect();
        for (at, line) in lines.iter().enumerate() {
            let cells: Vec<String> = line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
            writeln!(f, "| {} |", cells.join(" | "))?;
            if at == 0 {
                let rules: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
                writeln!(f, "| {} |", rules.join(" | "))?;
            }
        }
        Self::list(f, "seen beyond a bound", beyond)?;
        Self::list(f, "separated by 2-DWL, missed by global HopeDGN", missed)
    }
}
