//! Settings of the input that several models share: sampling of neighbours, MITE, padding.

use ctdg::mite::{MiteScope, PairEncoderConfig, SecondHop, SecondHopTime, SelfLoops, TimePrecision};
use ctdg::sample::Sampling;
use ctdg::statistics::N_STATISTICS;
use ctdg::triads::N_TRIADS;
use hopedgn_tensor::PadRagged;
use serde::{Deserialize, Serialize};

use super::WalkSettings;

/// Which events of a node's history are sampled.
///
/// ```
/// use hopedgn::{collate::SamplingName, ctdg::sample::Sampling};
///
/// assert_eq!(Sampling::from(SamplingName::default()), Sampling::Recent);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SamplingName {
    /// The newest events.
    #[default]
    Recent,
    /// All events with equal probability, with replacement.
    Uniform,
    /// Recent events with higher probability, as CAWN samples walks; with replacement.
    TimeIntervalAware,
}

impl From<SamplingName> for Sampling {
    fn from(name: SamplingName) -> Self {
        match name {
            SamplingName::Recent => Self::Recent,
            SamplingName::Uniform => Self::Uniform,
            SamplingName::TimeIntervalAware => Self::TimeIntervalAware { a: 1e-6 },
        }
    }
}

/// Whether batches are padded as DyGLib pads them.
///
/// ```
/// use hopedgn::{Config, ModelName, config::ModelSettings, config::Padding};
///
/// let config = Config::resolve(ModelName::HopeDgn, &[], &["model.padding=dyglib".to_owned()])?;
/// assert!(matches!(config.model.settings, ModelSettings::HopeDgn(of) if of.patches.padding == Padding::Dyglib));
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Padding {
    /// No padding: a pair's score does not depend on its batch.
    #[default]
    None,
    /// As in DyGLib: sequences are padded to the longest of the batch, and padding is attended to and averaged.
    Dyglib,
}

/// Which nodes replace one of a pair's own in global HopeDGN.
///
/// See [`GlobalLayout`](super::GlobalLayout).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replacing {
    /// Every node with an event before the query: the paper's global equation.
    #[default]
    All,
    /// The neighbours of the pair's two nodes: its local equation.
    Met,
}

/// What global HopeDGN's first embedding of a pair is made of.
///
/// See [`GlobalLayout`](super::GlobalLayout).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairStart {
    /// The features of both nodes, as in the paper.
    #[default]
    Features,
    /// Also whether they are one node, and the intervals of their events: the isomorphism type of 2-DWL.
    Types,
}

/// Which events MITE counts.
///
/// See [`MiteSettings`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MiteHistory {
    /// Those among the pair's tokens.
    #[default]
    Truncated,
    /// All before the query.
    Full,
}

/// How often a self-loop counts among the intervals of its node.
///
/// See [`MiteSettings`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MiteSelfLoops {
    /// Once, as in the paper's adjacency tensor.
    #[default]
    Once,
    /// Twice, as it occurs in DyGLib's neighbour lists.
    Twice,
}

/// How an interval Δt is scaled before the first layer.
///
/// ```
/// use hopedgn::collate::Normaliser;
///
/// let mut intervals = [0.0, 1.0];
/// Normaliser::Reciprocal.apply(&mut intervals);
/// assert_eq!(intervals[0], 1.0);
/// assert!(intervals[1] < 1.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Normaliser {
    /// ln(1 + Δt).
    #[default]
    Log1p,
    /// 1 / (1 + ln(1 + Δt)): near 1 for recent events, near 0 for old ones.
    Reciprocal,
}

impl Normaliser {
    /// Scales all of `intervals`. Negative ones, which times rounded to `f32` can leave, count as 0.
    pub fn apply(self, intervals: &mut [f32]) {
        for interval in &mut *intervals {
            *interval = interval.max(0.0);
        }
        hopedgn_tensor::ln_1p(intervals);
        if self == Self::Reciprocal {
            for log in intervals {
                *log = 1.0 / (1.0 + *log);
            }
        }
    }
}

/// Settings of what perceptrons embed of a pair beside what the model reads: its [statistics](ctdg::statistics), and its walks.
///
/// ```
/// use hopedgn::{Config, ModelName};
///
/// let config = Config::resolve(ModelName::Tgat, &[], &["model.stats=true".to_owned()])?;
/// assert!(config.model.common.statistics.enabled);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct StatisticsSettings {
    /// Whether the model reads them.
    #[serde(rename = "stats")]
    pub enabled: bool,
    /// Width of the hidden layer of the perceptron.
    pub d_stats: usize,
    /// Whether statistics have columns for [triads](ctdg::triads).
    pub triads: bool,
    /// Temporal walks.
    #[serde(flatten)]
    pub walks: WalkSettings,
}

impl StatisticsSettings {
    /// Switched off.
    pub const DEFAULT: Self = Self { enabled: false, d_stats: 128, triads: false, walks: WalkSettings::DEFAULT };

    /// Columns of the statistics of a pair.
    #[must_use]
    pub fn n_columns(&self) -> usize {
        N_STATISTICS + if self.triads { N_TRIADS } else { 0 }
    }
}

impl Default for StatisticsSettings {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// MITE, the multi-interacted time encoding: the intervals between the query and a node's events with the source, and with
/// the destination.
///
/// ```
/// use hopedgn::collate::{MiteHistory, MiteSettings};
/// use hopedgn::ctdg::mite::{MiteScope, PairEncoderConfig};
///
/// let mite = MiteSettings { enabled: true, k: 4, history: MiteHistory::Full, ..MiteSettings::default() };
/// let encoding = mite.apply(PairEncoderConfig::default());
/// assert_eq!((encoding.k, encoding.scope), (4, MiteScope::Full));
/// assert_eq!(mite.slots().width(), 2 * 2 * 4); // both sides, interval and valid bit, k slots
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct MiteSettings {
    /// Whether the model reads MITE.
    #[serde(rename = "mite")]
    pub enabled: bool,
    /// Width of the MITE embedding, `Dm`.
    pub d_mite: usize,
    /// Intervals kept per node and side.
    pub k: usize,
    /// Which events count.
    #[serde(rename = "mite-history")]
    pub history: MiteHistory,
    /// How often a self-loop counts.
    #[serde(rename = "mite-self-loops")]
    pub self_loops: MiteSelfLoops,
    /// How intervals are scaled.
    #[serde(rename = "mite-normaliser")]
    pub normaliser: Normaliser,
    /// Value of empty slots.
    #[serde(rename = "mite-filler")]
    pub filler: f32,
    /// Whether each slot has a second value that says if it is filled.
    #[serde(rename = "mite-valid-bit")]
    pub valid_bit: bool,
}

impl Default for MiteSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            d_mite: 50,
            k: 32,
            history: MiteHistory::Truncated,
            self_loops: MiteSelfLoops::Once,
            normaliser: Normaliser::Log1p,
            filler: 0.0,
            valid_bit: true,
        }
    }
}

impl MiteSettings {
    /// Width of the embedding; 0 where the model does not read MITE.
    #[must_use]
    pub fn width(&self) -> usize {
        if self.enabled { self.d_mite } else { 0 }
    }

    /// How the intervals of a node with source and destination become a row.
    #[must_use]
    pub fn slots(&self) -> PadRagged {
        PadRagged { lists_per_row: 2, max_len: self.k, fill_value: self.filler, with_mask: self.valid_bit }
    }

    /// The scaling that the collator applies, where the model reads MITE.
    #[must_use]
    pub fn normaliser(&self) -> Option<Normaliser> {
        self.enabled.then_some(self.normaliser)
    }

    /// `encoding` with the intervals that these settings ask for.
    #[must_use]
    pub fn apply(&self, encoding: PairEncoderConfig) -> PairEncoderConfig {
        PairEncoderConfig {
            k: if self.enabled { self.k } else { 0 },
            scope: if self.enabled && self.history == MiteHistory::Full {
                MiteScope::Full
            } else {
                MiteScope::Truncated
            },
            self_loops: match self.self_loops {
                MiteSelfLoops::Once => SelfLoops::Once,
                MiteSelfLoops::Twice => SelfLoops::Twice,
            },
            ..encoding
        }
    }
}

/// Which part of both nodes' past a model over neighbours reads.
///
/// ```
/// use hopedgn::collate::{MiteSettings, NeighborSettings};
/// use hopedgn::ctdg::mite::SecondHopTime;
///
/// let past = NeighborSettings { neighbors: 5, ..NeighborSettings::default() };
/// assert_eq!(past.encoding(&MiteSettings::default()).length, 6); // the node itself and its neighbours
/// assert!(past.hops(&MiteSettings::default(), 2, SecondHopTime::Query).second.is_some());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct NeighborSettings {
    /// Neighbours sampled per node at most; the walks of CAWN.
    pub neighbors: usize,
    /// How they are sampled.
    pub sampling: SamplingName,
    /// Round event times to `f32` before subtracting, as DyGLib stores them.
    pub f32_times: bool,
}

impl Default for NeighborSettings {
    fn default() -> Self {
        Self { neighbors: 20, sampling: SamplingName::Recent, f32_times: false }
    }
}

impl NeighborSettings {
    /// The neighbours of both nodes, with the intervals of `mite`.
    #[must_use]
    pub fn encoding(&self, mite: &MiteSettings) -> PairEncoderConfig {
        let encoding = token_encoding(self.neighbors + 1, self.sampling, self.f32_times);
        mite.apply(encoding)
    }

    /// Whether a node that several pairs ask for at one time has the same neighbours each time, and a model that reads `mite` nothing else of
    /// the pair.
    pub(crate) fn share_roots(&self, mite: &MiteSettings) -> bool {
        self.sampling == SamplingName::Recent && mite.normaliser().is_none()
    }

    /// The same with the neighbours' neighbours where `n_hops` is 2, sampled before `time`.
    #[must_use]
    pub fn hops(&self, mite: &MiteSettings, n_hops: usize, time: SecondHopTime) -> PairEncoderConfig {
        let second = (n_hops == 2).then_some(SecondHop { length: self.neighbors, time });
        PairEncoderConfig { second, ..self.encoding(mite) }
    }
}

/// At most `length` tokens a side, without intervals.
pub(crate) fn token_encoding(length: usize, sampling: SamplingName, f32_times: bool) -> PairEncoderConfig {
    PairEncoderConfig {
        length,
        k: 0,
        precision: if f32_times { TimePrecision::F32 } else { TimePrecision::F64 },
        sampling: sampling.into(),
        ..PairEncoderConfig::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normaliser_clamps_negative_intervals_to_zero() {
        let normal = |normaliser: Normaliser| {
            let mut intervals = [-62.0, -1.0, 0.0, 1.0, 1e30];
            normaliser.apply(&mut intervals);
            intervals
        };
        let log = normal(Normaliser::Log1p);
        assert_eq!(log[..3], [0.0; 3]);
        assert!((log[3] - 2.0_f32.ln()).abs() < 1e-7 && (log[4] - 1e30_f32.ln()).abs() < 1e-5);
        assert_eq!(normal(Normaliser::Reciprocal), log.map(|log| 1.0 / (1.0 + log)));
    }
}
