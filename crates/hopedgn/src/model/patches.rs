//! Shared by HopeDGN and DyGFormer: channels of tokens in patches, a transformer over both sides, mean pooling.
//!
//! ```text
//! Z_* = X_* W_* + b_*                              each kind of feature * of a patch, one channel; `direction` adds to that of nodes
//! H⁰  = [Z_1 ‖ Z_2 ‖ …]
//! H̃ˡ  = MHSA(LN(Hˡ⁻¹)) + Hˡ⁻¹
//! Hˡ  = FFN(LN(H̃ˡ)) + H̃ˡ
//! h   = MEAN(Hᴸ) W_out + b_out
//! ```
//!
//! Shapes: `T` tokens, `S` patches of `P` tokens, `R` distinct nodes within the pairs, `C` width of a channel, `D` width of the
//! transformer, `d` width of an embedding, `Dn`, `De`, `Dt` widths of node, edge and time features.

use std::sync::Arc;

use ctdg::mite::{PairEncoderConfig, TimePrecision};
use hopedgn_tensor::{AttentionBias, Dropout, EncoderConfig, Heads, Ragged, Tape, Var};
use serde::{Deserialize, Serialize};

use super::CommonSettings;
use super::bounds::{check_heads, check_weights, square, within};
use crate::collate::{
    FeatureWidths, MiteSettings, N_DIRECTIONS, Padding, PairInput, PatchLayout, RowChoice, Rows, SamplingName,
    token_encoding,
};
use crate::nn::{Channel, Linear, PADDED_FEATURES, ParamBuilder, PreNormBlock, TimeEncoding};
use crate::{Error, Result};

/// Settings of the sequences and the transformer.
///
/// See [`DyGFormer`](super::DyGFormer) and [`HopeDgnSettings`](super::HopeDgnSettings).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct PatchSettings {
    /// Tokens per side at most, the node itself included.
    pub length: usize,
    /// Consecutive tokens joined into one patch, `P`.
    pub patch: usize,
    /// Width of a channel, `C`.
    pub d_channel: usize,
    /// Transformer blocks.
    pub n_blocks: usize,
    /// Attention heads; a divisor of the transformer's width.
    pub n_heads: usize,
    /// Whether tokens have time features.
    pub time_encoding: bool,
    /// How events are sampled.
    pub sampling: SamplingName,
    /// Whether sides are padded to the longest of the batch.
    pub padding: Padding,
    /// Whether tokens know the direction of their event, their side and ln(1 + Δt).
    pub direction: bool,
    /// Round event times to `f32` before subtracting, as DyGLib stores them.
    pub f32_times: bool,
}

impl Default for PatchSettings {
    fn default() -> Self {
        Self {
            length: 32,
            patch: 1,
            d_channel: 50,
            n_blocks: 2,
            n_heads: 2,
            time_encoding: true,
            sampling: SamplingName::Recent,
            padding: Padding::None,
            direction: false,
            f32_times: false,
        }
    }
}

impl PatchSettings {
    /// Refuses values outside their bounds; `width` is `D`.
    pub(super) fn check(&self, width: usize) -> Result<()> {
        within(&[
            ("model.length", self.length, 1 << 20),
            ("model.patch", self.patch, self.length),
            ("model.d-channel", self.d_channel, 1 << 12),
            ("model.n-blocks", self.n_blocks, 1 << 10),
            ("model.n-heads", self.n_heads, 1 << 14),
        ])?;
        check_heads(self.n_heads, &[(&format!("{} · model.d-channel", width / self.d_channel), width)])?;
        check_weights(("model.d-channel", self.d_channel), self.n_blocks, 12 * square(width))
    }

    /// The tokens of both nodes, with the intervals of `mite`.
    pub(super) fn encoding(&self, mite: &MiteSettings) -> PairEncoderConfig {
        mite.apply(token_encoding(self.length, self.sampling, self.f32_times))
    }

    /// How times are rounded.
    pub(super) fn precision(&self) -> TimePrecision {
        if self.f32_times { TimePrecision::F32 } else { TimePrecision::F64 }
    }

    /// The layout without roots and counts.
    pub(super) fn layout(&self, mite: &MiteSettings) -> PatchLayout {
        PatchLayout {
            patch: self.patch,
            padding: self.padding,
            with_directions: self.direction,
            mite: mite.normaliser(),
            ..PatchLayout::default()
        }
    }

    /// A channel over `width` features per token, initialised as if there were at least `at_least`.
    pub(super) fn channel(
        &self,
        builder: &mut ParamBuilder<'_>,
        name: &str,
        width: Option<usize>,
        at_least: usize,
    ) -> Result<Channel> {
        let fan_in = self.patch * width.unwrap_or(0).max(at_least);
        builder.channel(&format!("project.{name}"), width.map(|width| self.patch * width), fan_in, self.d_channel)
    }
}

/// The channels that both models have, the transformer, and the projection of its mean.
#[derive(Debug, Clone)]
pub(super) struct Patches {
    patch: usize,
    heads: Heads,
    time: Option<TimeEncoding>,
    node_channel: Channel,
    direction_channel: Option<Channel>,
    edge_channel: Channel,
    time_channel: Channel,
    blocks: Vec<PreNormBlock>,
    output: Linear,
}

impl Patches {
    /// For tokens with the features of `n_nodes` nodes, and a transformer of `width` `D`.
    pub(super) fn new(
        builder: &mut ParamBuilder<'_>,
        settings: &PatchSettings,
        common: &CommonSettings,
        widths: FeatureWidths,
        (n_nodes, width): (usize, usize),
    ) -> Result<Self> {
        let d_time = settings.time_encoding.then_some(common.d_time);
        let (node, node_fan_in) = (widths.node.map(|width| n_nodes * width), n_nodes * PADDED_FEATURES);
        Ok(Self {
            patch: settings.patch,
            heads: Heads(settings.n_heads),
            time: d_time.map(|width| builder.time_encoding("time", width)).transpose()?,
            node_channel: settings.channel(builder, "node", node, node_fan_in)?,
            direction_channel: (settings.direction)
                .then(|| settings.channel(builder, "direction", Some(N_DIRECTIONS), 0))
                .transpose()?,
            edge_channel: settings.channel(builder, "edge", widths.edge, PADDED_FEATURES)?,
            time_channel: settings.channel(builder, "time", d_time, common.d_time)?,
            blocks: (0..settings.n_blocks)
                .map(|i| builder.pre_norm_block(&format!("blocks.{i}"), width))
                .collect::<Result<_>>()?,
            output: builder.linear("output", width, common.d_out)?,
        })
    }

    /// Z of node, edge and time features, `[S, C]` each.
    pub(super) fn channels(&self, tape: &mut Tape<'_>, input: &PairInput) -> Result<[Var; 3]> {
        let n_patches = input.pairs.total();
        let gathered = |tape: &mut Tape<'_>, rows: &Option<Rows>| {
            let Rows { table, chosen } = rows.as_ref().ok_or(Error::MissingInput)?;
            let mut x = tape.cached_input(table);
            if let Some(RowChoice { rows, per_token }) = chosen {
                x = tape.gather(x, rows)?;
                x = tape.reshape(x, rows.len() / per_token, per_token * table.cols())?; // [T, Dn], [T, 3·Dn] or [T, De]
            }
            self.in_patches(tape, x, input)
        };
        let mut nodes = self.node_channel.forward(tape, n_patches, |tape| gathered(tape, &input.nodes))?;
        if let Some(channel) = self.direction_channel {
            let directions = channel.forward(tape, n_patches, |tape| {
                let directions = tape.input(Arc::clone(input.directions.as_ref().ok_or(Error::MissingInput)?)); // [T, 3]
                self.in_patches(tape, directions, input)
            })?;
            nodes = tape.add(nodes, directions)?;
        }
        let edges = self.edge_channel.forward(tape, n_patches, |tape| gathered(tape, &input.edges))?;
        let times = self.time_channel.forward(tape, n_patches, |tape| {
            let ages = tape.input(Arc::clone(&input.ages)); // [T, 1]
            let time = self.time.ok_or(Error::MissingInput)?;
            let times = time.forward(tape, ages)?; // [T, Dt]
            self.in_patches(tape, times, input)
        })?;
        Ok([nodes, edges, times])
    }

    /// Z of features that tokens of one node share, `[S, C]` for `x` `[R, c]`.
    pub(super) fn shared(&self, tape: &mut Tape<'_>, input: &PairInput, channel: Channel, x: Var) -> Result<Var> {
        if input.places.is_none() {
            // One token per patch: the projection is computed once per node.
            let rows = tape.shape(x).rows();
            let projected = channel.forward(tape, rows, |_| Ok(x))?; // [R, C]
            return Ok(tape.gather(projected, &input.rows)?);
        }
        let n_patches = input.pairs.total();
        channel.forward(tape, n_patches, |tape| {
            let x = tape.gather(x, &input.rows)?; // [T, c], or [S·P, c] with padding
            if input.is_padded {
                let width = tape.shape(x).cols();
                return Ok(tape.reshape(x, n_patches, self.patch * width)?);
            }
            self.in_patches(tape, x, input)
        })
    }

    /// From the channels, `[S, C]` each, to the embedding of each of `pools`, `[pools, d]`; attention has the `bias`, if any.
    pub(super) fn embed(
        &self,
        tape: &mut Tape<'_>,
        channels: &[Var],
        (input, bias): (&PairInput, Option<&AttentionBias>),
        pools: &Ragged,
        dropout: Dropout,
    ) -> Result<Var> {
        let h = tape.concat(channels)?; // [S, D]
        let blocks: Vec<_> = self.blocks.iter().map(|block| block.vars(tape)).collect();
        let form = EncoderConfig { heads: self.heads, dropout };
        let mean = match bias {
            None => tape.encoder(h, &blocks, form, &input.pairs, pools)?,
            Some(bias) => tape.biased_encoder(h, &blocks, form, &input.pairs, pools, bias)?,
        }; // [pools, D]
        self.output.forward(tape, mean, None)
    }

    /// Rows of tokens `[T, c]` concatenated in their patches, `[S, P·c]`.
    fn in_patches(&self, tape: &mut Tape<'_>, x: Var, input: &PairInput) -> Result<Var> {
        let Some(places) = &input.places else { return Ok(x) };
        let (n_patches, width) = (input.pairs.total(), tape.shape(x).cols());
        let placed = tape.scatter(x, places, n_patches * self.patch)?; // [S·P, c]
        Ok(tape.reshape(placed, n_patches, self.patch * width)?)
    }
}
