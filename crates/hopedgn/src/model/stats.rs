//! A perceptron over the statistics of a pair, and nothing else: how often and how recently both nodes met, and how active each is.
//!
//! ```text
//! s = W₂ GELU(W₁ x + b₁) + b₂              x: standardised ln(1 + statistics), see `ctdg::statistics`
//! logit = W₄ ReLU(W₃ s + b₃) + b₄
//! ```
//!
//! Not of a paper: a baseline that trains in seconds, and that a model of sequences should beat.

use ctdg::mite::PairEncoderConfig;
use hopedgn_tensor::{Dropout, Parameters, Tape, Var};
use serde::{Deserialize, Serialize};

use super::bounds::refuse;
use super::{CommonSettings, Model, ModelName};
use crate::Result;
use crate::collate::{FeatureWidths, Input, Layout, StatisticsSettings};
use crate::nn::{PairHead, ParamBuilder};

/// Defaults of the common settings.
pub(super) const COMMON: CommonSettings = CommonSettings {
    d_out: 64,
    statistics: StatisticsSettings { enabled: true, ..StatisticsSettings::DEFAULT },
    ..CommonSettings::DEFAULT
};

/// Settings of [`Stats`]: none of its own.
///
/// ```
/// use hopedgn::config::{ModelConfig, ModelName};
///
/// assert!(ModelConfig::new(ModelName::Stats).common.statistics.enabled);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StatsSettings {}

impl StatsSettings {
    pub(super) fn check(common: &CommonSettings) -> Result<()> {
        if common.statistics.enabled {
            return Ok(());
        }
        refuse("model.stats", false, "true: this model reads nothing else")
    }
}

/// Statistics alone.
///
/// ```
/// use hopedgn::collate::{FeatureWidths, Layout};
/// use hopedgn::model::{Model, ModelConfig, ModelName, build};
///
/// let (model, parameters) = build(&ModelConfig::new(ModelName::Stats), FeatureWidths::default(), 0)?;
/// assert!(model.layout() == Layout::Statistics && model.reads_statistics());
/// assert!((15_000..25_000).contains(&parameters.n_values()));
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Stats {
    common: CommonSettings,
    head: PairHead,
}

impl Stats {
    /// The model, with parameters drawn from `seed`. Features of nodes and events are not read.
    pub fn new(_: &StatsSettings, common: &CommonSettings, _: FeatureWidths, seed: u64) -> Result<(Self, Parameters)> {
        StatsSettings::check(common)?;
        let mut parameters = Parameters::default();
        let head = ParamBuilder::new(&mut parameters, seed).head(0, common.d_out, &common.statistics)?;
        Ok((Self { common: *common, head }, parameters))
    }
}

impl Model for Stats {
    fn name(&self) -> ModelName {
        ModelName::Stats
    }

    /// The newest events are not read: they are those that an explanation leaves out.
    fn encoding(&self) -> PairEncoderConfig {
        PairEncoderConfig { length: 32, k: 0, ..PairEncoderConfig::default() }
    }

    fn layout(&self) -> Layout {
        Layout::Statistics
    }

    fn dropout(&self) -> f32 {
        self.common.dropout
    }

    fn head(&self) -> Option<PairHead> {
        Some(self.head)
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        self.head.forward(tape, None, input, dropout)
    }
}
