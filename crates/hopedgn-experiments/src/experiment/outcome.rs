//! Results of a finished run: its own files, and those that evaluation and classification add.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::file::Evaluate;
use super::measure::{Heuristic, Measure, Metric, Setting};
use hopedgn::config::Protocol;
use hopedgn::evaluate::{Evaluation, Negatives};
use hopedgn::metrics::{Classification, EpochRecord, PerSetting, Summary};
use hopedgn::run::RunFolder;

/// Results of a finished run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Final metrics.
    pub summary: Summary,
    /// Speed of training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// Test metrics with other negatives, and ranking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Evaluation>,
    /// Node classification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classification: Option<Classification>,
    /// What the run was made with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
}

/// Speed of training in the median epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// Seconds of training, without validation.
    pub seconds: f64,
    /// Pairs a second.
    pub pairs_per_second: f64,
}

/// Program and machine of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of the program.
    pub version: String,
    /// Commit it was built from, where known.
    pub commit: Option<String>,
    /// Operating system and kind of processor.
    pub machine: String,
    /// Threads.
    pub threads: usize,
}

impl Outcome {
    /// The results in `folder`, if a run has ended there. A document that cannot be read counts as missing: it is made again.
    #[must_use]
    pub fn read(folder: &Path) -> Option<Self> {
        let run = RunFolder::open(folder).ok()?;
        let summary = run.summary().ok()??;
        Some(Self {
            summary,
            evaluation: run.evaluation().ok().flatten(),
            classification: run.classification().ok().flatten(),
            pace: run.metrics().ok().and_then(|epochs| Pace::of(&epochs)),
            provenance: run.manifest().ok().map(|manifest| Provenance {
                version: manifest.version,
                commit: manifest.commit,
                machine: manifest.machine,
                threads: manifest.threads,
            }),
        })
    }

    /// One number, fractions in percent: the model's, or that of `heuristic` where one is named.
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
            (Metric::Mrr | Metric::HitsAt10 | Metric::NdcgAt10, Some(setting)) => {
                let evaluation = self.evaluation.as_ref()?;
                let scorer = heuristic.unwrap_or(&evaluation.model);
                let metrics = of(evaluation.ranking.as_ref()?.scorers.get(scorer)?, setting)?;
                100.0
                    * match metric {
                        Metric::Mrr => metrics.mrr,
                        Metric::HitsAt10 => metrics.hits_at_10,
                        _ => metrics.ndcg_at_10?,
                    }
            }
            // Heuristics classify no nodes, and their cost is not measured.
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

/// What `evaluation` has of the metrics of `model` that `wanted` requests; `None` unless it has all.
pub(super) fn fitting(mut evaluation: Evaluation, wanted: &Evaluate, model: &str) -> Option<Evaluation> {
    let has_negatives = wanted.kinds().iter().all(|kind| evaluation.negatives.contains_key(kind.as_str()));
    if let Some(n) = wanted.candidates() {
        let protocol = (wanted.protocol == Protocol::Tgb).then_some(Protocol::Tgb.as_str());
        evaluation.ranking = Some(evaluation.ranking_among(&n.into(), protocol)?.clone());
    }
    (evaluation.model == model && evaluation.is_complete() && has_negatives).then_some(evaluation)
}

impl Pace {
    /// The medians over all epochs.
    fn of(records: &[EpochRecord]) -> Option<Self> {
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
