//! Standings: the rows of an experiment by their mean rank over all of its tables.

use super::measure::Measure;
use super::table::Table;
use super::{Experiment, Found};

/// The ranks of one row.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Name of the row, as in the tables.
    pub row: String,
    /// Mean rank over the datasets, for each measure; nothing where it has no number.
    pub by_measure: Vec<Option<f64>>,
    /// Mean rank over all cells.
    pub mean: f64,
    /// Cells that have a number: measures by datasets.
    pub n_cells: usize,
    /// Cells where it is the best.
    pub n_first: usize,
}

/// All rows that have a number, the best mean rank first.
#[derive(Debug, Clone, PartialEq)]
pub struct Standings {
    /// The measures that are compared; costs are not.
    pub measures: Vec<Measure>,
    /// Cells in all.
    pub n_cells: usize,
    /// Best first.
    pub rows: Vec<Standing>,
}

impl Standings {
    /// Those of an experiment whose file asks for them.
    #[must_use]
    pub fn of(experiment: &Experiment, found: &[Found]) -> Option<Self> {
        if !experiment.file.standings {
            return None;
        }
        let mut tables = Table::all(experiment, found);
        tables.retain(|table| !table.measure.metric.is_cost());
        Some(Self::over(&tables))
    }

    fn over(tables: &[Table]) -> Self {
        let names = tables.first().map(|table| table.rows.iter().map(|(name, _)| name.as_str())).into_iter().flatten();
        let mut rows: Vec<Standing> = names.filter_map(|name| Standing::of(name, tables)).collect();
        rows.sort_by(|a, b| a.mean.total_cmp(&b.mean));
        let measures = tables.iter().map(|table| table.measure).collect();
        Self { measures, n_cells: tables.iter().map(|table| table.columns.len()).sum(), rows }
    }

    /// How to read them.
    #[must_use]
    pub fn explanation(&self) -> &'static str {
        "Mean rank among all rows that have a number there, 1 for the best, over datasets for each measure and over all cells. A row \
         without a number in a cell is not ranked there: compare rows by the measures that both have."
    }

    /// Titles of the columns after the row's name.
    #[must_use]
    pub fn head(&self) -> Vec<String> {
        let measures = self.measures.iter().map(Measure::title);
        ["mean rank".to_owned()].into_iter().chain(measures).chain(["first".to_owned(), "cells".to_owned()]).collect()
    }
}

impl Standing {
    fn of(row: &str, tables: &[Table]) -> Option<Self> {
        let ranks = |table: &Table| -> Vec<usize> {
            let of_row = table.rows.iter().filter(|(name, _)| name == row);
            of_row.flat_map(|(_, entries)| entries).flatten().filter_map(|entry| entry.rank).collect()
        };
        let by_table: Vec<Vec<usize>> = tables.iter().map(ranks).collect();
        let all = by_table.concat();
        Some(Self {
            row: row.to_owned(),
            by_measure: by_table.iter().map(|ranks| mean(ranks)).collect(),
            mean: mean(&all)?,
            n_cells: all.len(),
            n_first: all.iter().filter(|&&rank| rank == 1).count(),
        })
    }

    /// The columns after its name, as shown.
    #[must_use]
    pub fn cells(&self) -> Vec<String> {
        let shown = |mean: &Option<f64>| mean.map_or("–".to_owned(), |mean| format!("{mean:.1}"));
        let measures = self.by_measure.iter().map(shown);
        let counts = [self.n_first.to_string(), self.n_cells.to_string()];
        [format!("{:.2}", self.mean)].into_iter().chain(measures).chain(counts).collect()
    }
}

fn mean(ranks: &[usize]) -> Option<f64> {
    (!ranks.is_empty()).then(|| ranks.iter().sum::<usize>() as f64 / ranks.len() as f64)
}
