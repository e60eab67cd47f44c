//! Comparison of results with the expectations of the experiment file.

use serde::Serialize;

use super::file::Expect;
use super::measure::Measure;
use super::{Experiment, Found, Table};
use hopedgn::{Error, Result};

/// One expectation of one row and dataset.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Model, MITE, variant.
    pub row: String,
    /// The dataset.
    pub data: String,
    /// The measure.
    #[serde(flatten)]
    pub measure: Measure,
    /// The mean over the seeds that are done, in percent.
    pub reached: Option<f64>,
    /// The least expected value.
    pub expected: f64,
    /// Line of the expectation in the file.
    pub line: usize,
}

impl Verdict {
    /// Whether it was reached; `None` without a result.
    #[must_use]
    pub fn holds(&self) -> Option<bool> {
        self.reached.map(|reached| reached >= self.expected)
    }
}

/// Every expectation of `experiment`, for every row and dataset that it applies to.
pub fn check(experiment: &Experiment, found: &[Found]) -> Result<Vec<Verdict>> {
    if experiment.file.expect.is_empty() {
        let detail = "found no expectation, expected [[expect]] with at-least or below-paper-at-most; add one";
        return Err(Error::Experiment { file: experiment.path.clone(), line: None, detail: detail.to_owned() });
    }
    // With empty columns: a missing result is a verdict too.
    let tables: Vec<Table> =
        experiment.measures().into_iter().map(|measure| Table::of(experiment, found, measure)).collect();
    let mut verdicts: Vec<Verdict> = Vec::new();
    for located in &experiment.file.expect {
        let (expect, at) = (&located.item, &located.at);
        let before = verdicts.len();
        for table in tables.iter().filter(|table| fits(expect, table)) {
            let mut seen: Vec<(String, &str)> = Vec::new();
            for cell in experiment.cells().iter().filter(|cell| expect.when.fits(cell)) {
                let row = cell.row();
                if seen.contains(&(row.clone(), &cell.data)) {
                    continue;
                }
                seen.push((row.clone(), &cell.data));
                let Some(entry) = table.entry(&row, &cell.data) else { continue };
                let below = expect.below_paper_at_most.zip(entry.paper).map(|(below, paper)| paper.mean - below);
                let Some(expected) = expect.at_least.or(below) else { continue };
                verdicts.push(Verdict {
                    row,
                    data: cell.data.clone(),
                    measure: table.measure,
                    reached: entry.ours.map(|ours| ours.mean),
                    expected,
                    line: at.line,
                });
            }
        }
        if verdicts.len() == before {
            let detail = "found nothing to compare with this expectation, expected a [[paper]] value of its cells and a metric \
                          of the experiment; add the value, or state at-least";
            return Err(at.wrong(detail.to_owned()));
        }
    }
    Ok(verdicts)
}

/// Whether `expect` applies to `table`; lower bounds do not apply to costs.
fn fits(expect: &Expect, table: &Table) -> bool {
    let Measure { metric, setting, .. } = table.measure;
    expect.setting.is_none_or(|wanted| Some(wanted) == setting)
        && expect.metric.is_none_or(|wanted| wanted == metric)
        && !metric.is_better_low()
}
