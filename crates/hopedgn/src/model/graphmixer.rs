//! GraphMixer: an MLP-Mixer over the latest events of a node, and the mean features of its neighbours.
//!
//! Paper: "Do We Really Need Complicated Model Architectures for Temporal Networks?".
//!
//! With `Z⁰` the `K` latest events of `u`, one a row:
//!
//! ```text
//! Z⁰   = W [e ‖ cos(ω Δt)] + b                           link encoder; ω fixed
//! Z̃ˡ   = Zˡ⁻¹ + (MLP_token(LN((Zˡ⁻¹)ᵀ)))ᵀ                 token mixing: across slots
//! Zˡ   = Z̃ˡ + MLP_channel(LN(Z̃ˡ))                         channel mixing: across features
//! s_u  = x_u + mean of x_w over u's neighbours w          node encoder
//! h_u  = W_out [MEAN(Zᴸ) ‖ s_u] + b_out
//! logit = head([h_u ‖ h_v])
//! ```
//!
//! Shapes: `B` pairs with `V` roots, at most `2B`; `F` neighbours of all of them in `K` slots a root; `d` width of a slot; `Dm`, `Dn`, `De`, `Dt`
//! widths of MITE, node, edge and time features.
//!
//! # Differences from the paper
//! It is the model of published comparisons, after DyGLib:
//! - **Frequencies** ω go from 1 down to 10⁻⁹ whatever their number. As in the paper they are not trained.
//! - **Slots** without an event are zero before the first layer. The newest event is in the last slot. DyGLib does the same.
//! - **Mean of neighbours**: over the latest 2000 instead of a time window, and divided by 2000 once more.
//! - **The bias** `b` is added after the first layer norm over slots, which it does not change; see [`Mixer`].
//!
//! # MITE
//! Concatenated to the time features of each slot, and to the node's own features.

use std::sync::Arc;

use ctdg::mite::PairEncoderConfig;
use hopedgn_tensor::{Activation, Dropout, Parameters, Ragged, Shape, Tape, Tensor, Var};
use serde::{Deserialize, Serialize};

use super::bounds::{check_size, check_weights, square, within};
use super::{CommonSettings, Model, ModelName};
use crate::collate::{FeatureWidths, HopInput, HopLayout, Input, Layout, MiteSettings, NeighborSettings};
use crate::nn::{HopFeatures, LayerNorm, Linear, MiteEmbedding, PADDED_FEATURES, PairHead, ParamBuilder, frequencies};
use crate::{Error, Result};

/// Neighbours whose features are averaged, and what their mean is divided by.
const MEAN_OVER: u16 = 2000;

/// Defaults of the common settings.
pub(super) const COMMON: CommonSettings = CommonSettings { dropout: 0.5, ..CommonSettings::DEFAULT };

/// Settings of [`GraphMixer`].
///
/// See [`GraphMixer`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct GraphMixerSettings {
    /// Sampled neighbours; their number is `K`.
    #[serde(flatten)]
    pub past: NeighborSettings,
    /// Mixers.
    pub n_blocks: usize,
    /// MITE.
    #[serde(flatten)]
    pub mite: MiteSettings,
}

impl Default for GraphMixerSettings {
    fn default() -> Self {
        Self { past: NeighborSettings::default(), n_blocks: 2, mite: MiteSettings::default() }
    }
}

impl GraphMixerSettings {
    pub(super) fn check(&self, common: &CommonSettings) -> Result<()> {
        Mixer::check(self.n_blocks, self.past.neighbors, common)
    }
}

/// GraphMixer.
///
/// ```
/// use hopedgn::collate::FeatureWidths;
/// use hopedgn::model::{CommonSettings, GraphMixer, GraphMixerSettings, Model};
///
/// let common = CommonSettings { d_out: 8, ..CommonSettings::DEFAULT };
/// let (model, _) = GraphMixer::new(&GraphMixerSettings::default(), &common, FeatureWidths::default(), 0)?;
/// assert_eq!(model.width(), 8);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct GraphMixer {
    settings: GraphMixerSettings,
    common: CommonSettings,
    /// ω, `[Dt, 1]`.
    frequencies: Arc<Tensor>,
    /// `[Dn]`: what the mean of neighbours is multiplied by.
    share: Option<Arc<Tensor>>,
    mite: Option<MiteEmbedding>,
    project: Linear,
    mixers: Vec<Mixer>,
    output: Linear,
    head: PairHead,
}

impl GraphMixer {
    /// The model for features of these widths, with parameters drawn from `seed`.
    pub fn new(
        settings: &GraphMixerSettings,
        common: &CommonSettings,
        widths: FeatureWidths,
        seed: u64,
    ) -> Result<(Self, Parameters)> {
        let CommonSettings { d_out: d, d_time, .. } = *common;
        let n_slots = settings.past.neighbors;
        let mut parameters = Parameters::default();
        let builder = &mut ParamBuilder::new(&mut parameters, seed);
        let d_mite = settings.mite.width();
        let [d_node, d_edge] = [widths.node, widths.edge].map(|width| width.unwrap_or(0));
        let padded = |width: usize| width.max(PADDED_FEATURES);
        let (slot, slot_fan_in) = (d_edge + d_time + d_mite, padded(d_edge) + d_time + d_mite);
        let (node, node_fan_in) = (d + d_node + d_mite, d + padded(d_node) + d_mite);
        let share = |width: usize| Arc::new(Tensor::full(Shape::Vector(width), 1.0 / f32::from(MEAN_OVER)));
        let model = Self {
            settings: *settings,
            common: *common,
            frequencies: frequencies(d_time)?.into(),
            share: widths.node.map(share),
            mite: builder.mite(&settings.mite)?,
            project: builder.linear_with_fan_in("project", slot, slot_fan_in, d)?,
            mixers: (0..settings.n_blocks)
                .map(|i| Mixer::new(builder, &format!("mixers.{i}"), n_slots, d))
                .collect::<Result<_>>()?,
            output: builder.linear_with_fan_in("output", node, node_fan_in, d)?,
            head: builder.pair_head(d, &common.statistics)?,
        };
        Ok((model, parameters))
    }

    /// Z⁰ without its bias, `[V·K, d]`: the events of each root, the newest in the last slot.
    fn slots(&self, tape: &mut Tape<'_>, features: &HopFeatures<'_>) -> Result<Var> {
        let HopInput { roots, first, .. } = features.input();
        let n_slots = self.settings.past.neighbors;
        let edges = features.edges(tape, first)?; // [F, De]
        let (ages, frequencies) = (tape.input(Arc::clone(&first.ages)), tape.cached_input(&self.frequencies));
        let times = tape.linear(ages, frequencies, None, Some(Activation::Cos))?; // [F, Dt]
        let mite = features.mite(tape, &first.entries)?; // [F, Dm]
        let events: Vec<Var> = edges.into_iter().chain([times]).chain(mite).collect();
        let events = tape.concat(&events)?; // [F, De + Dt + Dm]
        let events = self.project.forward_without_bias(tape, events)?; // [F, d]
        Ok(tape.scatter(events, first.slots_of_all(n_slots), roots.len * n_slots)?)
    }

    /// s, `[V, Dn]`; nothing where the dataset has no node features.
    fn node_features(&self, tape: &mut Tape<'_>, features: &HopFeatures<'_>) -> Result<Option<Var>> {
        let HopInput { roots, node_means, .. } = features.input();
        let Some(own) = features.nodes(tape, roots)? else { return Ok(None) };
        let means = tape.input(node_means.clone().ok_or(Error::MissingInput)?); // [V, Dn]
        let share = tape.cached_input(self.share.as_ref().ok_or(Error::MissingInput)?);
        let share = tape.repeat_row(share, roots.len)?; // [V, Dn]
        let means = tape.mul(means, share)?;
        Ok(Some(tape.add(own, means)?))
    }
}

impl Model for GraphMixer {
    fn name(&self) -> ModelName {
        ModelName::GraphMixer
    }

    fn encoding(&self) -> PairEncoderConfig {
        self.settings.past.encoding(&self.settings.mite)
    }

    fn layout(&self) -> Layout {
        Layout::Hops(HopLayout {
            slots: self.settings.past.neighbors,
            mean_over: Some(MEAN_OVER.into()),
            mite: self.settings.mite.normaliser(),
            shares_roots: self.settings.past.share_roots(&self.settings.mite),
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
        let input = input.hops()?;
        let features = HopFeatures::new(tape, input, self.mite)?;
        let mut z = self.slots(tape, &features)?; // [V·K, d]
        let mut bias = Some(self.project.bias(tape));
        for (mixer, place) in self.mixers.iter().zip(0..) {
            z = mixer.forward(tape, z, bias.take(), dropout.site(place))?; // [V·K, d]
        }
        let roots = &input.roots;
        let slots = Ragged::from_lengths(std::iter::repeat_n(self.settings.past.neighbors, roots.len));
        let mean = tape.segment_mean(z, &slots)?; // [V, d]
        let node_features = self.node_features(tape, &features)?; // [V, Dn]
        let mite = features.mite(tape, roots)?; // [V, Dm]
        let joined: Vec<Var> = [mean].into_iter().chain(node_features).chain(mite).collect();
        let joined = tape.concat(&joined)?; // [V, d + Dn + Dm]
        let nodes = self.output.forward(tape, joined, None)?; // [V, d]
        input.by_side(tape, nodes) // [2B, d]
    }

    fn head(&self) -> Option<PairHead> {
        Some(self.head)
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let nodes = self.nodes(tape, input, dropout)?; // [2B, d]
        self.head.forward_nodes(tape, nodes, input, dropout)
    }
}

/// Token mixing, then channel mixing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mixer {
    token_norm: LayerNorm,
    token: [Linear; 2],
    channel_norm: LayerNorm,
    channel: [Linear; 2],
    n_slots: usize,
}

impl Mixer {
    /// Refuses mixers over too many neighbours, or too many of them.
    pub(super) fn check(n_mixers: usize, neighbors: usize, common: &CommonSettings) -> Result<()> {
        within(&[("model.neighbors", neighbors, 1 << 20), ("model.n-blocks", n_mixers, 1 << 10)])?;
        if neighbors > common.d_out {
            return check_weights(("model.neighbors", neighbors), n_mixers, square(neighbors));
        }
        check_size(n_mixers, common)
    }

    pub(super) fn new(builder: &mut ParamBuilder<'_>, name: &str, n_slots: usize, d: usize) -> Result<Self> {
        let half = (n_slots / 2).max(1);
        Ok(Self {
            token_norm: builder.layer_norm(&format!("{name}.token-norm"), n_slots)?,
            token: [
                builder.linear(&format!("{name}.token-up"), n_slots, half)?,
                builder.linear(&format!("{name}.token-down"), half, n_slots)?,
            ],
            channel_norm: builder.layer_norm(&format!("{name}.channel-norm"), d)?,
            channel: [
                builder.linear(&format!("{name}.channel-up"), d, 4 * d)?,
                builder.linear(&format!("{name}.channel-down"), 4 * d, d)?,
            ],
            n_slots,
        })
    }

    /// `[V·K, d]` for `z` `[V·K, d]` and a `bias` `[d]` that `z` still lacks.
    ///
    /// A layer norm over slots removes what all slots have in common, so the bias is added after it. A root without events is
    /// then exactly zero in the norm; with the bias, the norm would amplify the rounding error of a mean, and of its gradient,
    /// by 1/√ε.
    pub(super) fn forward(self, tape: &mut Tape<'_>, z: Var, bias: Option<Var>, dropout: Dropout) -> Result<Var> {
        let (rows, d) = (tape.shape(z).rows(), tape.shape(z).cols());
        let transposed = tape.swap_axes(z, self.n_slots)?; // [V·d, K]
        let transposed = self.token_norm.forward(tape, transposed)?;
        let mixed = mlp(tape, self.token, transposed, dropout.site(0))?; // [V·d, K]
        let mixed = tape.swap_axes(mixed, d)?; // [V·K, d]
        let mut z = tape.add(z, mixed)?;
        if let Some(bias) = bias {
            let bias = tape.repeat_row(bias, rows)?;
            z = tape.add(z, bias)?;
        }
        let normed = self.channel_norm.forward(tape, z)?;
        let mixed = mlp(tape, self.channel, normed, dropout.site(1))?; // [V·K, d]
        Ok(tape.add(z, mixed)?)
    }
}

/// Two layers with GELU between them and dropout after each.
fn mlp(tape: &mut Tape<'_>, [up, down]: [Linear; 2], x: Var, dropout: Dropout) -> Result<Var> {
    let hidden = up.forward(tape, x, Some(Activation::Gelu))?;
    let hidden = tape.dropout(hidden, dropout.site(0));
    let out = down.forward(tape, hidden, None)?;
    Ok(tape.dropout(out, dropout.site(1)))
}
