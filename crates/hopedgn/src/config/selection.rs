//! By what the best epoch is chosen, and the protocols of papers as settings.

use serde::{Deserialize, Serialize};

/// By which validation metric the best epoch is chosen.
///
/// ```
/// use hopedgn::{Config, ModelName, config::Selection};
///
/// let settings = ["train.select=mrr".to_owned()];
/// assert_eq!(Config::resolve(ModelName::Stats, &[], &settings)?.train.select, Selection::Mrr);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Selection {
    /// AP and AUC: against random negatives, as in DyGLib; the mean AP against random and historical ones where the objective is
    /// [`Objective::Intensity`](super::Objective::Intensity).
    #[default]
    Ap,
    /// The mean reciprocal rank of `train.select-events` validation events among `train.select-candidates` destinations, as in TGB.
    Mrr,
}

/// The rules of a benchmark: how events are split, how the best epoch is chosen, and what is tested.
///
/// ```
/// use hopedgn::config::{Config, ModelName, Protocol, Selection};
/// use hopedgn::ctdg::split::SplitMode;
///
/// let config = Config::resolve(ModelName::Tgn, &[], &Protocol::Tgb.settings())?;
/// assert_eq!((config.split, config.train.select), (SplitMode::Tgb, Selection::Mrr));
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// DyGLib's and the paper's: a tenth of the nodes masked, selection by AP and AUC, tests against negatives.
    #[default]
    Dyglib,
    /// TGB's: no masked nodes, selection by MRR, tests by the rank among TGB's candidates.
    Tgb,
}

impl Protocol {
    /// The name in files and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dyglib => "dyglib",
            Self::Tgb => "tgb",
        }
    }

    /// Its settings of training.
    #[must_use]
    pub fn settings(self) -> Vec<String> {
        let select = match self {
            Self::Dyglib => "ap",
            Self::Tgb => "mrr",
        };
        vec![format!("split={}", self.as_str()), format!("train.select={select}")]
    }
}
