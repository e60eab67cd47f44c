//! TPNet: an MLP-Mixer over the latest events of a node, with temporal walks that relate each neighbour to both nodes.
//!
//! Paper: "Improving Temporal Link Prediction via Temporal Walk Matrix Projection".
//!
//! With `Pˡ(a)` the projected row of node `a` in the matrix of time-decayed walks of length `l` ([`ctdg::walks`]), and `K` the latest events of
//! `u`, one a row of `Z⁰`:
//!
//! ```text
//! r_ab = MLP(ln(1 + max(0, ⟨Pⁱ, Pʲ⟩)))                   all rows P⁰(a), …, Pᴸ(a), P⁰(b), …, Pᴸ(b)
//! Z⁰   = MLP([x_w ‖ Φ(ln(1 + Δt)) ‖ e ‖ r_wu ‖ r_wv])    w: the neighbour, (u, v): the pair
//! Z̃ˡ   = Zˡ⁻¹ + (MLP_token(LN((Zˡ⁻¹)ᵀ)))ᵀ                 token mixing: across slots
//! Zˡ   = Z̃ˡ + MLP_channel(LN(Z̃ˡ))                         channel mixing: across features
//! h_u  = MEAN(Zᴸ)
//! logit = head([h_u ‖ h_v ‖ r_uv])
//! ```
//!
//! Shapes: `B` pairs, so `2B` roots; `F` neighbours of all of them in `K` slots a root; `R` distinct nodes within the pairs; `d` width of a
//! slot; `Dw` width of `r`; `Dn`, `De`, `Dt` widths of node, edge and time features.
//!
//! # Differences from the paper's code
//! - **Walks** are advanced by moments instead of batches, and have a fixed width; see [`ctdg::walks`]. A query sees all events before its time
//!   and none at it. The published score on `CanParl`, whose 74 thousand events have 14 times, needs events at the time of the query.
//! - **Slots** without an event are zero before the first layer. Its code computes that and discards the result.
//! - **Equal products** are read once instead of twice; the weights are initialised as if there were both.

use std::sync::Arc;

use ctdg::mite::PairEncoderConfig;
use ctdg::walks::WalkConfig;
use hopedgn_tensor::{Activation, Dropout, Parameters, Ragged, Tape, Var};
use serde::{Deserialize, Serialize};

use super::bounds::{refuse, square};
use super::graphmixer::Mixer;
use super::{CommonSettings, Model, ModelName};
use crate::collate::{
    FeatureWidths, HopLayout, Input, Layout, MiteSettings, NeighborSettings, StatisticsSettings, WalkSettings,
};
use crate::nn::{HopFeatures, Linear, PADDED_FEATURES, PairHead, ParamBuilder, TimeEncoding, WalkEmbedding};
use crate::{Error, Result};

/// Defaults of the common settings.
pub(super) const COMMON: CommonSettings = CommonSettings {
    statistics: StatisticsSettings {
        walks: WalkSettings { enabled: true, ..WalkSettings::DEFAULT },
        ..StatisticsSettings::DEFAULT
    },
    ..CommonSettings::DEFAULT
};

/// Settings of [`TpNet`].
///
/// See [`TpNet`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct TpNetSettings {
    /// Sampled neighbours; their number is `K`.
    #[serde(flatten)]
    pub past: NeighborSettings,
    /// Mixers.
    pub n_blocks: usize,
}

impl Default for TpNetSettings {
    fn default() -> Self {
        Self { past: NeighborSettings::default(), n_blocks: 2 }
    }
}

impl TpNetSettings {
    pub(super) fn check(&self, common: &CommonSettings) -> Result<()> {
        if !common.statistics.walks.enabled {
            return refuse("model.walks", false, "true: this model is made of them");
        }
        Mixer::check(self.n_blocks, self.past.neighbors, common)
    }
}

/// TPNet.
///
/// ```
/// use hopedgn::collate::FeatureWidths;
/// use hopedgn::model::{Model, ModelConfig, ModelName, build};
///
/// let config = ModelConfig::new(ModelName::TpNet).with("d-out", 8)?;
/// let (model, _) = build(&config, FeatureWidths::default(), 0)?;
/// assert!(model.width() == 8 && model.walks().is_some_and(|walks| walks.layers == 3));
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TpNet {
    settings: TpNetSettings,
    common: CommonSettings,
    config: WalkConfig,
    time: TimeEncoding,
    walks: WalkEmbedding,
    project: [Linear; 2],
    mixers: Vec<Mixer>,
    head: PairHead,
}

impl TpNet {
    /// The model for features of these widths, with parameters drawn from `seed`.
    pub fn new(
        settings: &TpNetSettings,
        common: &CommonSettings,
        widths: FeatureWidths,
        seed: u64,
    ) -> Result<(Self, Parameters)> {
        settings.check(common)?;
        let CommonSettings { d_out: d, d_time, statistics, .. } = *common;
        let config = statistics.walks.config().ok_or(Error::MissingInput)?;
        let d_walk = square(config.n_rows());
        let mut parameters = Parameters::default();
        let builder = &mut ParamBuilder::new(&mut parameters, seed);
        let features = [widths.node, widths.edge];
        let n_in = |of: fn(usize) -> usize| {
            features.map(|width| of(width.unwrap_or(0))).iter().sum::<usize>() + d_time + 2 * d_walk
        };
        // The head reads r_uv as part of the pair's embedding.
        let without_walks = StatisticsSettings { walks: WalkSettings::DEFAULT, ..statistics };
        let model = Self {
            settings: *settings,
            common: *common,
            time: builder.time_encoding("time", d_time)?,
            walks: builder.walks(&config, d_walk)?,
            project: [
                builder.linear_with_fan_in(
                    "project.up",
                    n_in(|width| width),
                    n_in(|width| width.max(PADDED_FEATURES)),
                    2 * d,
                )?,
                builder.linear("project.down", 2 * d, d)?,
            ],
            mixers: (0..settings.n_blocks)
                .map(|i| Mixer::new(builder, &format!("mixers.{i}"), settings.past.neighbors, d))
                .collect::<Result<_>>()?,
            head: builder.head(2 * d + d_walk, d, &without_walks)?,
            config,
        };
        Ok((model, parameters))
    }

    /// Z⁰, `[2B·K, d]`: the events of each root, the newest in the last slot.
    fn slots(&self, tape: &mut Tape<'_>, input: &Input) -> Result<Var> {
        let (hops, n_slots) = (input.hops()?, self.settings.past.neighbors);
        let (first, features) = (&hops.first, HopFeatures::new(tape, hops, None)?);
        let nodes = features.nodes(tape, &first.entries)?; // [F, Dn]
        let times = self.time.of_hop(tape, first)?; // [F, Dt]
        let edges = features.edges(tape, first)?; // [F, De]
        let of_nodes = input.walks()?.nodes.as_ref().ok_or(Error::MissingInput)?;
        let of_nodes = tape.input(Arc::clone(of_nodes)); // [2R, W]
        let walks = self.walks.forward(tape, of_nodes)?; // [2R, Dw]
        let (rows, d_walk) = (tape.shape(walks).rows(), tape.shape(walks).cols());
        let walks = tape.reshape(walks, rows / 2, 2 * d_walk)?; // [R, 2Dw]
        let walks = tape.gather(walks, first.entries.rows.as_ref().ok_or(Error::MissingInput)?)?; // [F, 2Dw]
        let events: Vec<Var> = nodes.into_iter().chain([times]).chain(edges).chain([walks]).collect();
        let events = tape.concat(&events)?; // [F, Dn + Dt + De + 2Dw]
        let [up, down] = self.project;
        let events = up.forward(tape, events, Some(Activation::Relu))?; // [F, 2d]
        let events = down.forward(tape, events, None)?; // [F, d]
        Ok(tape.scatter(events, first.slots_of_all(n_slots), hops.roots.len * n_slots)?)
    }
}

impl Model for TpNet {
    fn name(&self) -> ModelName {
        ModelName::TpNet
    }

    fn encoding(&self) -> PairEncoderConfig {
        self.settings.past.encoding(&MiteSettings::default())
    }

    fn layout(&self) -> Layout {
        Layout::Hops(HopLayout {
            slots: self.settings.past.neighbors,
            with_log_ages: true,
            with_node_walks: true,
            ..HopLayout::default()
        })
    }

    fn dropout(&self) -> f32 {
        self.common.dropout
    }

    fn width(&self) -> usize {
        self.common.d_out
    }

    fn nodes(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let mut z = self.slots(tape, input)?; // [2B·K, d]
        for (mixer, place) in self.mixers.iter().zip(0..) {
            z = mixer.forward(tape, z, None, dropout.site(place))?; // [2B·K, d]
        }
        let n_roots = input.hops()?.roots.len;
        let slots = Ragged::from_lengths(std::iter::repeat_n(self.settings.past.neighbors, n_roots));
        Ok(tape.segment_mean(z, &slots)?) // [2B, d]
    }

    fn head(&self) -> Option<PairHead> {
        Some(self.head)
    }

    fn walks(&self) -> Option<WalkConfig> {
        Some(self.config)
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let nodes = self.nodes(tape, input, dropout)?; // [2B, d]
        let (rows, d) = (tape.shape(nodes).rows(), tape.shape(nodes).cols());
        let nodes = tape.reshape(nodes, rows / 2, 2 * d)?; // [B, 2d]
        let of_pairs = tape.input(Arc::clone(&input.walks()?.pairs)); // [B, W]
        let walks = self.walks.forward(tape, of_pairs)?; // [B, Dw]
        let pairs = tape.concat(&[nodes, walks])?; // [B, 2d + Dw]
        self.head.forward(tape, Some(pairs), input, dropout)
    }
}
