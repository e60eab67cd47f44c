//! Tables of an experiment as CSV in long form: a line for each row, dataset and measure.

use hopedgn::evaluate::Negatives;
use serde::Serialize;

use super::table::Table;
use super::{Experiment, Found, Metric, Setting};

/// The columns. Fractions are in percent, as in the tables; what is not known is empty.
#[derive(Debug, Serialize)]
struct Line<'a> {
    /// Name of the table's row: model, MITE, variant.
    row: &'a str,
    /// Name of the model, or of the heuristic.
    model: &'a str,
    mite: Option<bool>,
    variant: Option<&'a str>,
    data: &'a str,
    metric: Metric,
    setting: Option<Setting>,
    negatives: Option<Negatives>,
    mean: Option<f64>,
    /// Sample standard deviation, of two or more seeds.
    sd: Option<f64>,
    /// Seeds behind the mean.
    n: usize,
    /// Seeds of the grid.
    n_seeds: usize,
    published: Option<f64>,
    published_sd: Option<f64>,
}

/// A header, and a line for each entry of each table, also where there is no result yet.
pub fn long_csv(experiment: &Experiment, found: &[Found]) -> csv::Result<String> {
    let mut lines = csv::Writer::from_writer(Vec::new());
    for table in Table::all(experiment, found) {
        for (row, entries) in &table.rows {
            let cell = found.iter().map(|one| &one.cell).find(|cell| cell.row() == *row);
            let heuristic = experiment.file.heuristics.iter().find(|heuristic| heuristic.title() == row);
            let model = cell.map(|cell| cell.model.as_str()).or(heuristic.map(|heuristic| heuristic.as_str()));
            for (data, entry) in table.columns.iter().zip(entries) {
                let Some(entry) = entry else { continue };
                let line = Line {
                    row,
                    model: model.unwrap_or(row),
                    mite: cell.map(super::Cell::has_mite),
                    variant: cell.and_then(|cell| cell.variant.as_deref()),
                    data,
                    metric: table.measure.metric,
                    setting: table.measure.setting,
                    negatives: table.measure.negatives,
                    mean: entry.ours.map(|ours| ours.mean),
                    sd: entry.ours.and_then(|ours| ours.deviation),
                    n: entry.n_done,
                    n_seeds: entry.n_seeds,
                    published: entry.paper.map(|paper| paper.mean),
                    published_sd: entry.paper.and_then(|paper| paper.deviation),
                };
                lines.serialize(line)?;
            }
        }
    }
    let bytes = lines.into_inner().map_err(csv::IntoInnerError::into_error)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
