//! Tables: means over seeds beside published values, one table per measure.

use super::file::Kind;
use super::measure::{Heuristic, Measure, Metric, Setting};
use super::{Experiment, Found, State};
use hopedgn::config::Protocol;

/// The table of one measure: models by datasets.
#[derive(Debug, Clone)]
pub struct Table {
    /// The measure.
    pub measure: Measure,
    /// Datasets.
    pub columns: Vec<String>,
    /// Models, then heuristics, with an entry for each dataset; `None` where the grid has no such cell.
    pub rows: Vec<(String, Vec<Option<Entry>>)>,
}

/// One entry of a table; fractions in percent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entry {
    /// Over the seeds that are done.
    pub ours: Option<Reference>,
    /// The published value.
    pub paper: Option<Reference>,
    /// Seeds that are done.
    pub n_done: usize,
    /// Seeds of the grid.
    pub n_seeds: usize,
    /// 1 for the best of its column; equal numbers, as they are shown, have the same rank. Nothing where all are equal.
    pub rank: Option<usize>,
    /// Why there is no number.
    pub why: &'static str,
}

/// Mean and standard deviation over runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reference {
    /// The mean.
    pub mean: f64,
    /// Sample standard deviation, if there are several runs.
    pub deviation: Option<f64>,
}

impl Reference {
    fn of(values: &[f64]) -> Option<Self> {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt());
        (!values.is_empty()).then_some(Self { mean, deviation })
    }

    /// As in papers: `97.18 ± 0.06`.
    #[must_use]
    pub fn text(&self, metric: Metric) -> String {
        match self.deviation {
            // The number of parameters is the same in every run.
            Some(deviation) if !(metric.is_cost() && deviation == 0.0) => {
                format!("{} ± {}", metric.text(self.mean), metric.text(deviation))
            }
            _ => metric.text(self.mean),
        }
    }
}

impl Experiment {
    /// The measures of its tables.
    #[must_use]
    pub fn measures(&self) -> Vec<Measure> {
        self.file.metrics.iter().flat_map(|&metric| self.measures_of(metric)).collect()
    }

    /// All measures of one metric.
    pub(super) fn measures_of(&self, metric: Metric) -> Vec<Measure> {
        if metric.is_cost() || self.file.kind == Kind::NodeClassification {
            return vec![Measure::plain(metric)];
        }
        let both = |negatives| Setting::ALL.map(|setting| Measure { metric, setting: Some(setting), negatives });
        if metric.is_ranking() {
            // TGB has no test of new nodes.
            let is_tgb = self.file.evaluate.is_some_and(|evaluate| evaluate.protocol == Protocol::Tgb);
            return both(None)[..if is_tgb { 1 } else { 2 }].to_vec();
        }
        self.file.negatives.iter().flat_map(|&negatives| both(Some(negatives))).collect()
    }
}

impl Entry {
    fn of_row(experiment: &Experiment, found: &[Found], measure: Measure, row: &str, data: &str) -> Option<Self> {
        let cells: Vec<&Found> = found.iter().filter(|one| one.cell.data == data && one.cell.row() == row).collect();
        let first = cells.first()?;
        let outcomes = cells.iter().filter_map(|one| one.outcome.as_ref());
        let values: Vec<f64> = outcomes.filter_map(|outcome| outcome.value(measure, None)).collect();
        let paper = experiment.file.published(&first.cell, measure);
        Some(Self {
            ours: Reference::of(&values),
            paper: paper.map(|[mean, deviation]| Reference { mean, deviation: Some(deviation) }),
            n_done: values.len(),
            n_seeds: cells.len(),
            rank: None,
            why: why(&cells),
        })
    }

    /// Heuristics are deterministic: every run on the same data has the same value.
    fn of_heuristic(found: &[Found], measure: Measure, heuristic: Heuristic, data: &str) -> Self {
        let cells: Vec<&Found> = found.iter().filter(|one| one.cell.data == data).collect();
        let mut outcomes = cells.iter().filter_map(|one| one.outcome.as_ref());
        let value = outcomes.find_map(|outcome| outcome.value(measure, Some(heuristic)));
        let ours = value.map(|mean| Reference { mean, deviation: None });
        Self { ours, n_done: usize::from(value.is_some()), n_seeds: 1, why: why(&cells), ..Self::default() }
    }

    /// Our mean minus the published one.
    #[must_use]
    pub fn difference(&self) -> Option<f64> {
        Some(self.ours?.mean - self.paper?.mean)
    }
}

impl Table {
    /// All tables of `experiment`, without empty columns.
    #[must_use]
    pub fn all(experiment: &Experiment, found: &[Found]) -> Vec<Self> {
        let mut tables: Vec<Self> =
            experiment.measures().into_iter().map(|measure| Self::of(experiment, found, measure)).collect();
        tables.iter_mut().for_each(Self::leave_out_empty);
        tables
    }

    /// The table of one measure.
    #[must_use]
    pub fn of(experiment: &Experiment, found: &[Found], measure: Measure) -> Self {
        let columns = experiment.data().to_vec();
        let mut names: Vec<String> = Vec::new();
        for one in found {
            let row = one.cell.row();
            if !names.contains(&row) {
                names.push(row);
            }
        }
        let mut rows: Vec<(String, Vec<Option<Entry>>)> = Vec::new();
        for name in names {
            let entries = columns.iter().map(|data| Entry::of_row(experiment, found, measure, &name, data)).collect();
            rows.push((name, entries));
        }
        if !measure.metric.is_cost() {
            for &heuristic in &experiment.file.heuristics {
                let entries =
                    columns.iter().map(|data| Some(Entry::of_heuristic(found, measure, heuristic, data))).collect();
                rows.push((heuristic.title().to_owned(), entries));
            }
        }
        let mut table = Self { measure, columns, rows };
        table.mark();
        table
    }

    /// Removes columns without any number, unless all are.
    fn leave_out_empty(&mut self) {
        let has_number = |entry: &Entry| entry.ours.is_some() || entry.paper.is_some();
        let has_any = |column: usize| {
            let mut entries = self.rows.iter().filter_map(|(_, row)| row[column].as_ref());
            entries.any(has_number)
        };
        let shown: Vec<bool> = (0..self.columns.len()).map(has_any).collect();
        if !shown.contains(&true) {
            return;
        }
        let mut keep = shown.iter();
        self.columns.retain(|_| keep.next() == Some(&true));
        for (_, row) in &mut self.rows {
            let mut keep = shown.iter();
            row.retain(|_| keep.next() == Some(&true));
        }
    }

    /// Ranks each column: one more than the number of better entries, compared as shown.
    fn mark(&mut self) {
        let metric = self.measure.metric;
        for column in 0..self.columns.len() {
            let values: Vec<f64> =
                self.rows.iter().filter_map(|(_, row)| Some(row[column].as_ref()?.ours?.mean)).collect();
            let shown = |value: f64| metric.text(value);
            if values.iter().all(|&value| shown(value) == shown(values[0])) {
                continue;
            }
            let is_better = |one: f64, other: f64| {
                shown(one) != shown(other) && if metric.is_better_low() { one < other } else { one > other }
            };
            for entry in self.rows.iter_mut().filter_map(|(_, row)| row[column].as_mut()) {
                let n_better = |own: f64| values.iter().filter(|&&value| is_better(value, own)).count();
                entry.rank = entry.ours.map(|ours| 1 + n_better(ours.mean));
            }
        }
    }

    /// If the file asks for it: a title, and for each column by how many percent a row is better than the best other one (below 0: worse);
    /// nothing where one of them has no number.
    #[must_use]
    pub fn improvement(&self, experiment: &Experiment) -> Option<(String, Vec<Option<f64>>)> {
        let name = &experiment.file.improvement_of.as_ref()?.item;
        let is_low = self.measure.metric.is_better_low();
        let mean = |row: &[Option<Entry>], column: usize| Some(row[column].as_ref()?.ours?.mean);
        let (_, own) = self.rows.iter().find(|(row, _)| row == name)?;
        let of_column = |column: usize| {
            let others = self.rows.iter().filter(|(row, _)| row != name).filter_map(|(_, row)| mean(row, column));
            let best = if is_low { others.reduce(f64::min) } else { others.reduce(f64::max) }?;
            let gain = 100.0 * (mean(own, column)? - best) / best;
            Some(if is_low { -gain } else { gain }).filter(|gain| gain.is_finite())
        };
        Some((format!("{name} over the best other, %"), (0..self.columns.len()).map(of_column).collect()))
    }

    /// The entry of row `name` and column `data`.
    #[must_use]
    pub fn entry(&self, name: &str, data: &str) -> Option<&Entry> {
        let column = self.columns.iter().position(|column| column == data)?;
        self.rows.iter().find(|(row, _)| row == name)?.1[column].as_ref()
    }

    /// E.g. `AP, transductive`.
    #[must_use]
    pub fn title(&self) -> String {
        self.measure.title()
    }
}

/// The furthest state of the cells, in words.
fn why(cells: &[&Found]) -> &'static str {
    let far = |state: &State| match state {
        State::Done => 7,
        State::Failed(_) => 6,
        State::Trained => 5,
        State::Running => 4,
        State::Interrupted => 3,
        State::Changed | State::OtherData => 2,
        State::Waiting => 1,
        State::Missing(_) => 0,
    };
    match cells.iter().map(|one| &one.state).max_by_key(|state| far(state)) {
        // Done without such a number, as where no event has a new node.
        None | Some(State::Done) => "–",
        Some(State::Missing(_)) => State::Waiting.title(),
        Some(state) => state.title(),
    }
}
