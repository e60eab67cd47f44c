//! Measures: a metric, the setting it is taken in, and the negatives.

use serde::{Deserialize, Serialize};

use hopedgn::evaluate::Negatives;
use hopedgn::fmt::{grouped, rate};

/// A metric of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Average precision.
    Ap,
    /// Area under the ROC curve.
    Auc,
    /// Mean of 1 / rank of the true destination.
    Mrr,
    /// Share of true destinations ranked among the first ten.
    #[serde(rename = "hits-at-10")]
    HitsAt10,
    /// Normalised discounted cumulative gain of the first ten.
    #[serde(rename = "ndcg-at-10")]
    NdcgAt10,
    /// Number of parameters.
    Parameters,
    /// Peak memory of the process, in MB.
    PeakMemory,
    /// Seconds of training in the median epoch.
    SecondsPerEpoch,
    /// Pairs trained on in a second of the median epoch.
    PairsPerSecond,
}

impl Metric {
    pub(super) fn usual() -> Vec<Self> {
        vec![Self::Ap, Self::Auc]
    }

    /// Its name in tables.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Ap => "AP",
            Self::Auc => "AUC",
            Self::Mrr => "MRR",
            Self::HitsAt10 => "Hits@10",
            Self::NdcgAt10 => "NDCG@10",
            Self::Parameters => "Parameters",
            Self::PeakMemory => "Peak memory, MB",
            Self::SecondsPerEpoch => "Training, seconds per epoch",
            Self::PairsPerSecond => "Training, pairs per second",
        }
    }

    /// Whether it is a cost; costs have neither setting nor negatives.
    #[must_use]
    pub fn is_cost(self) -> bool {
        matches!(self, Self::Parameters | Self::PeakMemory | Self::SecondsPerEpoch | Self::PairsPerSecond)
    }

    /// Whether it is a ranking metric.
    #[must_use]
    pub fn is_ranking(self) -> bool {
        matches!(self, Self::Mrr | Self::HitsAt10 | Self::NdcgAt10)
    }

    /// Whether smaller is better.
    #[must_use]
    pub fn is_better_low(self) -> bool {
        matches!(self, Self::Parameters | Self::PeakMemory | Self::SecondsPerEpoch)
    }

    /// A value as tables show it; fractions in percent without `%`.
    #[must_use]
    pub fn text(self, value: f64) -> String {
        match self {
            Self::Ap | Self::Auc | Self::Mrr | Self::HitsAt10 | Self::NdcgAt10 => format!("{value:.2}"),
            Self::SecondsPerEpoch if value < 1.0 => format!("{value:.3}"),
            Self::SecondsPerEpoch if value < 100.0 => format!("{value:.2}"),
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count, not negative")]
            Self::Parameters => grouped(value.round() as u64),
            Self::SecondsPerEpoch | Self::PeakMemory | Self::PairsPerSecond => rate(value),
        }
    }
}

/// Which test events count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// All.
    Transductive,
    /// Those with a node that does not occur in training.
    Inductive,
}

impl Setting {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Transductive, Self::Inductive];

    /// Its name in tables.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Transductive => "transductive",
            Self::Inductive => "inductive",
        }
    }
}

/// A heuristic scorer, as a table row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Heuristic {
    /// Every pair with an event.
    EdgebankUnlimited,
    /// Pairs with an event in a window as long as the test period.
    EdgebankWindowProportional,
    /// Pairs with an event in a window as long as the mean interval between events of a pair.
    EdgebankWindowInterval,
    /// Pairs with many events.
    EdgebankRepeat,
    /// Recency of the pair's last event, and popularity of its destination.
    RecencyPopularity,
}

impl Heuristic {
    /// Its key in summaries and evaluations.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EdgebankUnlimited => "edgebank-unlimited",
            Self::EdgebankWindowProportional => "edgebank-window-proportional",
            Self::EdgebankWindowInterval => "edgebank-window-interval",
            Self::EdgebankRepeat => "edgebank-repeat",
            Self::RecencyPopularity => "recency-popularity",
        }
    }

    /// Its name in tables.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::EdgebankUnlimited => "EdgeBank, unlimited",
            Self::EdgebankWindowProportional => "EdgeBank, proportional window",
            Self::EdgebankWindowInterval => "EdgeBank, window of an interval",
            Self::EdgebankRepeat => "EdgeBank, repeated",
            Self::RecencyPopularity => "Recency and popularity",
        }
    }
}

/// Identifies one number of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Measure {
    /// Which number.
    pub metric: Metric,
    /// The setting; `None` for costs and node classification.
    pub setting: Option<Setting>,
    /// The negatives; `None` where there are none.
    pub negatives: Option<Negatives>,
}

impl Measure {
    /// Without setting and negatives.
    pub(super) fn plain(metric: Metric) -> Self {
        Self { metric, setting: None, negatives: None }
    }

    /// E.g. `AP, transductive`; random negatives are not mentioned.
    #[must_use]
    pub fn title(&self) -> String {
        let mut title = self.metric.title().to_owned();
        if let Some(setting) = self.setting {
            title = format!("{title}, {}", setting.title());
        }
        match self.negatives {
            Some(negatives) if negatives != Negatives::Random => format!("{title}, {} negatives", negatives.as_str()),
            _ => title,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_titles_are_formatted_by_metric() {
        assert_eq!(Metric::Ap.text(97.123), "97.12");
        assert_eq!(Metric::Parameters.text(1_046_601.0), "1,046,601");
        assert_eq!([0.4263, 4.263, 426.3].map(|value| Metric::SecondsPerEpoch.text(value)), ["0.426", "4.26", "426"]);
        assert_eq!(Metric::PairsPerSecond.text(149_485.65), "149,486");
        assert_eq!(Metric::PeakMemory.text(1104.27), "1,104");
        let (metric, setting) = (Metric::Ap, Some(Setting::Inductive));
        let measure = |negatives| Measure { metric, setting, negatives: Some(negatives) };
        assert_eq!(measure(Negatives::Random).title(), "AP, inductive");
        assert_eq!(measure(Negatives::Historical).title(), "AP, inductive, historical negatives");
    }
}
