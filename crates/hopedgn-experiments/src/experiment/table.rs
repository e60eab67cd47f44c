//! Means over seeds, one table a measure, beside what the paper states.

use super::file::Kind;
use super::measure::{Heuristic, Measure, Metric, Setting};
use super::{Experiment, Found, State};

/// One measure: models by data sets.
#[derive(Debug, Clone)]
pub struct Table {
    /// Which numbers.
    pub measure: Measure,
    /// Data sets.
    pub columns: Vec<String>,
    /// Models, then heuristics, and what each reaches on each data set; nothing where the grid has no such cell.
    pub rows: Vec<(String, Vec<Option<Entry>>)>,
}

/// One place of a table; fractions in percent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entry {
    /// Over the seeds that are done.
    pub ours: Option<Reference>,
    /// What the paper states.
    pub paper: Option<Reference>,
    /// Seeds that are done.
    pub n_done: usize,
    /// Seeds of the grid.
    pub n_seeds: usize,
    /// 1 for the best of its column, 2 for the second.
    pub rank: Option<usize>,
    /// Why there is no number of ours, in a few words.
    pub why: &'static str,
}

/// A mean and the deviation over runs, if there are several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reference {
    /// The mean.
    pub mean: f64,
    /// The deviation of a sample.
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
            // The same number of weights in every run.
            Some(deviation) if !(metric.is_cost() && deviation == 0.0) => {
                format!("{} ± {}", metric.text(self.mean), metric.text(deviation))
            }
            _ => metric.text(self.mean),
        }
    }
}

impl Experiment {
    /// What there is a table of.
    #[must_use]
    pub fn measures(&self) -> Vec<Measure> {
        self.file.metrics.iter().flat_map(|&metric| self.measures_of(metric)).collect()
    }

    /// All that one metric can be taken of.
    pub(super) fn measures_of(&self, metric: Metric) -> Vec<Measure> {
        if metric.is_cost() || self.file.kind == Kind::NodeClassification {
            return vec![Measure::plain(metric)];
        }
        let both = |negatives| Setting::ALL.map(|setting| Measure { metric, setting: Some(setting), negatives });
        if metric.is_ranking() {
            return both(None).to_vec();
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

    /// Nothing is drawn for it: every run on the same data states the same.
    fn of_heuristic(found: &[Found], measure: Measure, heuristic: Heuristic, data: &str) -> Self {
        let cells: Vec<&Found> = found.iter().filter(|one| one.cell.data == data).collect();
        let mut outcomes = cells.iter().filter_map(|one| one.outcome.as_ref());
        let value = outcomes.find_map(|outcome| outcome.value(measure, Some(heuristic)));
        let ours = value.map(|mean| Reference { mean, deviation: None });
        Self { ours, n_done: usize::from(value.is_some()), n_seeds: 1, why: why(&cells), ..Self::default() }
    }

    /// How far ours lies above the paper's.
    #[must_use]
    pub fn difference(&self) -> Option<f64> {
        Some(self.ours?.mean - self.paper?.mean)
    }
}

impl Table {
    /// Every table of `experiment` from what was found of its cells, as a page shows it.
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

    /// Columns without any number, ours or the paper's, are told of elsewhere, unless there is nothing else.
    fn leave_out_empty(&mut self) {
        let has_number = |entry: &Entry| entry.ours.is_some() || entry.paper.is_some();
        let is_told = |column: usize| {
            let mut entries = self.rows.iter().filter_map(|(_, row)| row[column].as_ref());
            entries.any(has_number)
        };
        let told: Vec<bool> = (0..self.columns.len()).map(is_told).collect();
        if !told.contains(&true) {
            return;
        }
        let mut keep = told.iter();
        self.columns.retain(|_| keep.next() == Some(&true));
        for (_, row) in &mut self.rows {
            let mut keep = told.iter();
            row.retain(|_| keep.next() == Some(&true));
        }
    }

    /// Best and second best of each column, as shown: what looks equal is equally good.
    fn mark(&mut self) {
        let metric = self.measure.metric;
        let shown = |entry: &Entry| entry.ours.map(|ours| metric.text(ours.mean));
        for column in 0..self.columns.len() {
            let mut values: Vec<f64> =
                self.rows.iter().filter_map(|(_, row)| Some(row[column].as_ref()?.ours?.mean)).collect();
            values.sort_by(|a, b| if metric.is_better_low() { a.total_cmp(b) } else { b.total_cmp(a) });
            let mut places: Vec<String> = values.into_iter().map(|value| metric.text(value)).collect();
            places.dedup();
            if places.len() < 2 {
                continue;
            }
            for entry in self.rows.iter_mut().filter_map(|(_, row)| row[column].as_mut()) {
                let place = shown(entry).and_then(|own| places.iter().position(|value| *value == own));
                entry.rank = place.map(|place| place + 1).filter(|&rank| rank <= 2);
            }
        }
    }

    /// What stands in the row `name` under `data`.
    #[must_use]
    pub fn entry(&self, name: &str, data: &str) -> Option<&Entry> {
        let column = self.columns.iter().position(|column| column == data)?;
        self.rows.iter().find(|(row, _)| row == name)?.1[column].as_ref()
    }

    /// e.g. `AP, transductive`.
    #[must_use]
    pub fn title(&self) -> String {
        self.measure.title()
    }
}

/// The state that most of the way to a number is left in: the furthest.
fn why(cells: &[&Found]) -> &'static str {
    let far = |state: &State| match state {
        State::Done => 7,
        State::Failed(_) => 6,
        State::Trained => 5,
        State::Running => 4,
        State::Interrupted => 3,
        State::Changed => 2,
        State::Waiting => 1,
        State::Missing(_) => 0,
    };
    match cells.iter().map(|one| &one.state).max_by_key(|state| far(state)) {
        // All was done, and there is no such number, as where no event has a new node.
        None | Some(State::Done) => "–",
        Some(State::Missing(_)) => State::Waiting.title(),
        Some(state) => state.title(),
    }
}
