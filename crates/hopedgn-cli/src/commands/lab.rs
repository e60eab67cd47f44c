//! `hopedgn lab`: expressive power, which model separates which graphs and pairs.

use std::fmt;
use std::path::PathBuf;

use clap::Args;
use ctdg::dataset;
use hopedgn_experiments::expressivity::{self, Cell, Discrepancy, ExpressivityConfig, Findings, Matrix, Origin};

use crate::commands::new_file::{Force, check_writable};
use crate::output::{Outcome, Output};
use crate::progress::{self, Unit};

/// Measure expressive power: which models separate which graphs and pairs, compared with 1-DWL, 2-DWL and marked DWL
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hopedgn lab                                  print the tables and every violated bound
  hopedgn lab --svg lab.svg --html lab.html    also write a figure and a page
  hopedgn lab --cases 20 --json                print every case
  hopedgn lab --model hopedgn --model hopedgn-global --family path-3

Exit status 1 if a model separates what a proposition of the paper excludes,
unless simultaneous events of one node explain it.")]
pub(crate) struct Lab {
    /// Cases of each random family
    #[arg(long, value_name = "N", default_value_t = ExpressivityConfig::default().n_cases, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    cases: u64,
    /// Random initialisations of each model, each also trained
    #[arg(long, value_name = "N", default_value_t = ExpressivityConfig::default().n_draws, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    draws: u64,
    /// Random seed of cases and weights
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=4_000_000_000))]
    seed: u64,
    /// Only this family of graphs; may be given several times
    #[arg(long = "family", value_name = "NAME")]
    families: Vec<String>,
    /// Only this model; may be given several times
    #[arg(long = "model", value_name = "NAME")]
    models: Vec<String>,
    /// Write the tables as an SVG figure
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write tables, cases and training curves as one HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
}

/// Resolution of the progress bar.
const PARTS: u32 = 100;

pub(crate) fn run(args: &Lab, output: &Output) -> anyhow::Result<Outcome> {
    for path in [&args.svg, &args.html].into_iter().flatten() {
        check_writable(path)?;
        args.force.check(path)?;
    }
    let config = ExpressivityConfig {
        n_cases: args.cases,
        n_draws: args.draws,
        seed: args.seed,
        families: args.families.clone(),
        models: args.models.clone(),
    };
    let bar = progress::things(output, "expressivity", Unit::Things("%", "%"), PARTS.into());
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share between 0 and 1")]
    let findings = expressivity::run(&config, &|share| bar.set_position((share * f64::from(PARTS)) as u64));
    bar.finish_and_clear();
    let findings = findings?;
    let files = [(&args.svg, expressivity::svg as fn(&Findings) -> String), (&args.html, expressivity::html)];
    for (path, write) in files {
        if let Some(path) = path {
            dataset::write_file(path, write(&findings))?;
            output.remark(format!("written to {}", path.display()));
        }
    }
    output.answer(Text(&findings), &findings)?;
    Ok(if findings.broken().next().is_some() { Outcome::FellShort } else { Outcome::Done })
}

struct Text<'a>(&'a Findings);

impl Text<'_> {
    /// Writes a Markdown table.
    fn table(&self, f: &mut fmt::Formatter<'_>, origin: Origin) -> fmt::Result {
        let families = &self.0.families;
        let mut lines: Vec<Vec<String>> = vec![vec!["separated by".to_owned()]];
        lines[0].extend(families.iter().map(|row| row.name.clone()));
        for line in Matrix::of(self.0, origin).lines {
            let name = if line.is_test { format!("{}, round", line.name) } else { line.name };
            let cell =
                |cell: &Cell| cell.rounds_text().map_or(cell.text(), |round| format!("{}, {round}", cell.text()));
            lines.push(std::iter::once(name).chain(line.cells.iter().map(cell)).collect());
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
        Ok(())
    }

    /// Writes one line for each model and family.
    fn list(f: &mut fmt::Formatter<'_>, title: &str, discrepancies: &[Discrepancy]) -> fmt::Result {
        writeln!(f, "\n{title}:{}", if discrepancies.is_empty() { " none" } else { "" })?;
        for same in Discrepancy::by_family(discrepancies) {
            let Discrepancy { family, model, bound, weights, .. } = same[0];
            let cases: Vec<String> = same.iter().map(|one| one.case.to_string()).collect();
            let ties = if same.iter().all(|one| one.ties) { "; simultaneous events" } else { "" };
            let (bound, weights, cases) = (bound.as_str(), weights.as_str(), cases.join(", "));
            writeln!(f, "- {model}, {weights} ({bound}): {family}, case {cases}{ties}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Findings { beyond, missed, lost, n_draws, .. } = self.0;
        let by = if *n_draws == 1 {
            "1 initialisation".to_owned()
        } else {
            format!("at least one of {n_draws} initialisations")
        };
        writeln!(f, "Separated with random weights by {by}:\n")?;
        self.table(f, Origin::Random)?;
        writeln!(f, "\nSeparated after training by {by} ({}):\n", expressivity::TRAINING)?;
        self.table(f, Origin::Trained)?;
        Self::list(f, "Separated beyond a bound (Propositions 2 and 4, marked DWL)", beyond)?;
        Self::list(f, "Separated by 2-DWL, but not by global HopeDGN (Proposition 5)", missed)?;
        Self::list(f, "Separated by its bound, but not by a local model", lost)
    }
}
