//! Means over seeds, one table a metric and setting, beside what the paper states.

use super::file::{Metric, Setting};
use super::{Experiment, Found};
use crate::record::{LinkMetrics, Summary};

/// One metric in one setting: models by data sets.
#[derive(Debug, Clone)]
pub struct Table {
    /// Which metric.
    pub metric: Metric,
    /// Which events.
    pub setting: Setting,
    /// Data sets.
    pub columns: Vec<String>,
    /// Models, and what each reaches on each data set; nothing where the grid has no such cell.
    pub rows: Vec<(String, Vec<Option<Entry>>)>,
}

/// One place of a table, in percent.
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
    pub fn text(&self) -> String {
        match self.deviation {
            Some(deviation) => format!("{:.2} ± {deviation:.2}", self.mean),
            None => format!("{:.2}", self.mean),
        }
    }
}

impl Entry {
    /// How far ours lies above the paper's.
    #[must_use]
    pub fn difference(&self) -> Option<f64> {
        Some(self.ours?.mean - self.paper?.mean)
    }
}

impl Table {
    /// Every table of `experiment` from what was found of its cells.
    #[must_use]
    pub fn all(experiment: &Experiment, found: &[Found]) -> Vec<Self> {
        let metrics = experiment.file.metrics.iter();
        metrics.flat_map(|&metric| Setting::ALL.map(|setting| Self::of(experiment, found, metric, setting))).collect()
    }

    fn of(experiment: &Experiment, found: &[Found], metric: Metric, setting: Setting) -> Self {
        let columns = experiment.data().to_vec();
        let mut names: Vec<String> = Vec::new();
        for one in found {
            let row = one.cell.row();
            if !names.contains(&row) {
                names.push(row);
            }
        }
        let entry = |row: &String, data: &String| {
            let cells: Vec<&Found> =
                found.iter().filter(|one| one.cell.data == *data && one.cell.row() == *row).collect();
            let first = cells.first()?;
            let summaries = cells.iter().filter_map(|one| one.summary());
            let values: Vec<f64> = summaries.filter_map(|summary| value(summary, setting, metric)).collect();
            let paper = experiment
                .file
                .paper
                .iter()
                .map(toml::Spanned::get_ref)
                .rfind(|paper| paper.is_of(&first.cell) && paper.value(setting, metric).is_some());
            let paper = paper.and_then(|paper| paper.value(setting, metric));
            Some(Entry {
                ours: Reference::of(&values),
                paper: paper.map(|[mean, deviation]| Reference { mean, deviation: Some(deviation) }),
                n_done: values.len(),
                n_seeds: cells.len(),
                rank: None,
            })
        };
        let mut rows: Vec<(String, Vec<Option<Entry>>)> = Vec::new();
        for name in names {
            let entries = columns.iter().map(|data| entry(&name, data)).collect();
            rows.push((name, entries));
        }
        let mut table = Self { metric, setting, columns, rows };
        table.mark();
        table
    }

    /// Best and second best of each column, as shown: what looks equal is equally good.
    fn mark(&mut self) {
        for column in 0..self.columns.len() {
            let shown = |entry: &Entry| entry.ours.map(|ours| format!("{:8.2}", ours.mean));
            let entries = self.rows.iter().filter_map(|(_, row)| row[column].as_ref());
            let mut values: Vec<String> = entries.filter_map(shown).collect();
            values.sort();
            values.dedup();
            values.reverse();
            if values.len() < 2 {
                continue;
            }
            for entry in self.rows.iter_mut().filter_map(|(_, row)| row[column].as_mut()) {
                let place = shown(entry).and_then(|own| values.iter().position(|value| *value == own));
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
        format!("{}, {}", self.metric.title(), self.setting.title())
    }
}

/// One number of a test, in percent.
pub(super) fn value(summary: &Summary, setting: Setting, metric: Metric) -> Option<f64> {
    let LinkMetrics { ap, auc, .. } = match setting {
        Setting::Transductive => summary.test.transductive?,
        Setting::Inductive => summary.test.inductive?,
    };
    let value = match metric {
        Metric::Ap => ap,
        Metric::Auc => auc,
    };
    value.is_finite().then_some(100.0 * value)
}
