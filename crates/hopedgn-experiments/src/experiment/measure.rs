//! What a table shows: a metric, of which events, against which negatives.

use serde::{Deserialize, Serialize};

use hopedgn::evaluate::Negatives;
use hopedgn::fmt::{grouped, rate};

/// A number of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Average precision.
    Ap,
    /// Area under the ROC curve.
    Auc,
    /// Mean of 1 / rank of the true destination.
    Mrr,
    /// Share of true destinations among the first ten.
    #[serde(rename = "hits-at-10")]
    HitsAt10,
    /// Number of weights.
    Parameters,
    /// Most memory that the program held, in MB.
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

    /// As people write it.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Ap => "AP",
            Self::Auc => "AUC",
            Self::Mrr => "MRR",
            Self::HitsAt10 => "Hits@10",
            Self::Parameters => "Weights",
            Self::PeakMemory => "Most memory, MB",
            Self::SecondsPerEpoch => "Training, seconds an epoch",
            Self::PairsPerSecond => "Training, pairs a second",
        }
    }

    /// Whether it is a cost, which has neither setting nor negatives.
    #[must_use]
    pub fn is_cost(self) -> bool {
        matches!(self, Self::Parameters | Self::PeakMemory | Self::SecondsPerEpoch | Self::PairsPerSecond)
    }

    /// Whether it is a place among candidates.
    #[must_use]
    pub fn is_ranking(self) -> bool {
        matches!(self, Self::Mrr | Self::HitsAt10)
    }

    /// Whether a smaller number is the better one.
    #[must_use]
    pub fn is_better_low(self) -> bool {
        matches!(self, Self::Parameters | Self::PeakMemory | Self::SecondsPerEpoch)
    }

    /// A value as tables show it: fractions in percent, without the sign.
    #[must_use]
    pub fn text(self, value: f64) -> String {
        match self {
            Self::Ap | Self::Auc | Self::Mrr | Self::HitsAt10 => format!("{value:.2}"),
            Self::SecondsPerEpoch if value < 1.0 => format!("{value:.3}"),
            Self::SecondsPerEpoch if value < 100.0 => format!("{value:.2}"),
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count, not negative")]
            Self::Parameters => grouped(value.round() as u64),
            Self::SecondsPerEpoch | Self::PeakMemory | Self::PairsPerSecond => rate(value),
        }
    }
}

/// Which events of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// All.
    Transductive,
    /// Those with a node that training never showed.
    Inductive,
}

impl Setting {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Transductive, Self::Inductive];

    /// As people write it.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Transductive => "transductive",
            Self::Inductive => "inductive",
        }
    }
}

/// A scorer that learns nothing, as a row of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Heuristic {
    /// Every pair that met.
    EdgebankUnlimited,
    /// Those that met in a window as long as the test.
    EdgebankWindowProportional,
    /// Those that met in a window as long as pairs take to meet again.
    EdgebankWindowInterval,
    /// Those that met often.
    EdgebankRepeat,
    /// How lately the pair met, and how busy its destination is.
    RecencyPopularity,
}

impl Heuristic {
    /// As runs and evaluations call it.
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

    /// As people write it.
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

/// Everything that decides which number of a run is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Measure {
    /// Which number.
    pub metric: Metric,
    /// Of which events; nothing where there is no such choice.
    pub setting: Option<Setting>,
    /// Against which pairs that did not happen; nothing where there are none.
    pub negatives: Option<Negatives>,
}

impl Measure {
    /// A number that needs no more to be said.
    pub(super) fn plain(metric: Metric) -> Self {
        Self { metric, setting: None, negatives: None }
    }

    /// e.g. `AP, transductive`; random negatives go without saying.
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
    fn numbers_are_shown_as_what_they_are() {
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
