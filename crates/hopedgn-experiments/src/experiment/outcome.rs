//! What a finished run wrote down, its own files and those that later commands put beside them.

use std::fs;
use std::path::Path;

use super::file::{Evaluate, Wanted};
use super::measure::{Heuristic, Measure, Metric, Setting};
use hopedgn::evaluate::{Evaluation, Negatives};
use hopedgn::metrics::{Classification, EpochRecord, PerSetting, Summary};
use hopedgn::run::{CLASSIFICATION, EVALUATION, RunFolder};

const METRICS: &str = "metrics.jsonl";

/// Everything that is known of a finished run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Final metrics.
    pub summary: Summary,
    /// The test under more rules.
    pub evaluation: Option<Evaluation>,
    /// The test of a classifier of nodes.
    pub classification: Option<Classification>,
    /// Of the median epoch.
    pub pace: Option<Pace>,
}

/// How fast training was, in the median epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Of training, validation left out.
    pub seconds: f64,
    /// Pairs a second.
    pub pairs_per_second: f64,
}

impl Outcome {
    /// What lies in `folder`, if a run has ended there. A document that cannot be read counts as not there: it is made again.
    #[must_use]
    pub fn read(folder: &Path) -> Option<Self> {
        let summary = RunFolder::open(folder).ok()?.summary().ok()??;
        let text = |name: &str| fs::read_to_string(folder.join(name)).ok();
        Some(Self {
            summary,
            evaluation: text(EVALUATION).and_then(|text| serde_json::from_str(&text).ok()),
            classification: text(CLASSIFICATION).and_then(|text| serde_json::from_str(&text).ok()),
            pace: text(METRICS).and_then(|text| Pace::of(&text)),
        })
    }

    /// One number of it, fractions in percent; that of `heuristic` instead of the model's, where one is named.
    #[must_use]
    pub fn value(&self, measure: Measure, heuristic: Option<Heuristic>) -> Option<f64> {
        let Measure { metric, setting, negatives } = measure;
        let heuristic = heuristic.map(Heuristic::as_str);
        let value = match (metric, setting) {
            (Metric::Ap | Metric::Auc, Some(setting)) => {
                let settings = match (negatives, heuristic) {
                    (None | Some(Negatives::Random), None) => &self.summary.test,
                    (None | Some(Negatives::Random), Some(name)) => self.summary.heuristics.get(name)?,
                    (Some(negatives), name) => {
                        let evaluation = self.evaluation.as_ref()?;
                        evaluation.negatives.get(negatives.as_str())?.get(name.unwrap_or(&evaluation.model))?
                    }
                };
                let metrics = of(settings, setting)?;
                100.0 * if metric == Metric::Ap { metrics.ap } else { metrics.auc }
            }
            (Metric::Mrr | Metric::HitsAt10, Some(setting)) => {
                let evaluation = self.evaluation.as_ref()?;
                let scorer = heuristic.unwrap_or(&evaluation.model);
                let metrics = of(evaluation.ranking.as_ref()?.scorers.get(scorer)?, setting)?;
                100.0 * if metric == Metric::Mrr { metrics.mrr } else { metrics.hits_at_10 }
            }
            // Heuristics tell no labels and cost nothing that is counted.
            _ if heuristic.is_some() => return None,
            (Metric::Auc, None) => 100.0 * self.classification.as_ref()?.test.auc?,
            (Metric::Parameters, _) => self.summary.parameters as f64,
            (Metric::PeakMemory, _) => self.summary.peak_memory? as f64 / 1e6,
            (Metric::SecondsPerEpoch, _) => self.pace?.seconds,
            (Metric::PairsPerSecond, _) => self.pace?.pairs_per_second,
            _ => return None,
        };
        value.is_finite().then_some(value)
    }
}

fn of<M: Copy>(settings: &PerSetting<M>, setting: Setting) -> Option<M> {
    match setting {
        Setting::Transductive => settings.transductive,
        Setting::Inductive => settings.inductive,
    }
}

/// Whether `evaluation` has all metrics of `model` that `wanted` asks for.
pub(super) fn fits(evaluation: &Evaluation, wanted: &Evaluate, model: &str) -> bool {
    let has_negatives =
        Wanted::kinds(wanted.negatives).iter().all(|kind| evaluation.negatives.contains_key(kind.as_str()));
    let ranked = evaluation.ranking.as_ref().and_then(|ranking| ranking.candidates.as_u64());
    evaluation.model == model && has_negatives && wanted.ranking.is_none_or(|n| ranked == Some(n as u64))
}

impl Pace {
    /// The medians over the records of `metrics.jsonl`.
    fn of(text: &str) -> Option<Self> {
        let records: Option<Vec<EpochRecord>> = text.lines().map(|line| serde_json::from_str(line).ok()).collect();
        let records = records?;
        let of = |value: fn(&EpochRecord) -> f64| median(records.iter().map(value).collect());
        Some(Self {
            seconds: of(|record| record.train_seconds)?,
            pairs_per_second: of(|record| record.pairs_per_second)?,
        })
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let above = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { above } else { f64::midpoint(values[middle - 1], above) })
}
