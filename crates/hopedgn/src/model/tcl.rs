//! TCL: a two-stream transformer with cross-attention between the neighbourhoods of both nodes.
//!
//! Paper: "TCL: Transformer-based Dynamic Graph Modelling via Contrastive Learning".
//!
//! The sequence of `u` is `u` itself, then its neighbours. For each of its tokens `(w, t')` at position `p`, with the blocks of
//! both streams sharing their weights:
//!
//! ```text
//! z    = W_N x_w + W_E e + W_T Φ(t − t') + b + pos(p)
//! z̃_u  = Block(z_u, z_u)                     self-attention
//! z_u  = Block(z̃_u, z̃_v)                     cross-attention to the other sequence
//! h_u  = W_out (z_u of the root) + b_out
//! logit = head([h_u ‖ h_v])
//! ```
//!
//! [`PostNormBlock`] is the block. Shapes: `B` pairs, so `2B` sequences; `S` tokens of all of them, each root before its
//! neighbours; `F` neighbours; `d` width of a token; `Dm`, `Dn`, `De`, `Dt` widths of MITE, node, edge and time features.
//!
//! # Differences from the paper
//! It is the model of published comparisons, after DyGLib:
//! - **Training** is link prediction, not contrastive learning.
//! - **Sequences** are one-hop neighbours by recency, with features, time and position. The paper searches some hops of the
//!   graph breadth first and encodes depth.
//! - **Weights** of self-attention and cross-attention are the same.
//! - **Padding**: none. DyGLib pads and masks, which is the same.
//! - **Absent features** are the bias of their projection.
//!
//! # MITE
//! A further summand of a token.

use std::sync::Arc;

use ctdg::mite::PairEncoderConfig;
use hopedgn_tensor::{Dropout, Indices, ParameterId, Parameters, Ragged, Tape, Var};
use serde::{Deserialize, Serialize};

use super::bounds::{check_heads, check_size, within};
use super::{CommonSettings, Model, ModelName};
use crate::Result;
use crate::collate::{
    Entries, FeatureWidths, HopInput, HopLayout, Input, Layout, MiteSettings, NeighborSettings, Sequences,
};
use crate::nn::{
    Channel, ChannelInput, CrossAttentionInput, HopFeatures, Linear, MiteEmbedding, PADDED_FEATURES, PairHead,
    ParamBuilder, PostNormBlock, TimeEncoding,
};

/// Settings of [`Tcl`].
///
/// See [`Tcl`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct TclSettings {
    /// Sampled neighbours.
    #[serde(flatten)]
    pub past: NeighborSettings,
    /// Transformer blocks.
    pub n_blocks: usize,
    /// Attention heads; a divisor of `d-out`.
    pub n_heads: usize,
    /// MITE.
    #[serde(flatten)]
    pub mite: MiteSettings,
}

impl Default for TclSettings {
    fn default() -> Self {
        Self { past: NeighborSettings::default(), n_blocks: 2, n_heads: 2, mite: MiteSettings::default() }
    }
}

impl TclSettings {
    pub(super) fn check(&self, common: &CommonSettings) -> Result<()> {
        within(&[
            ("model.neighbors", self.past.neighbors, 1 << 20),
            ("model.n-blocks", self.n_blocks, 1 << 10),
            ("model.n-heads", self.n_heads, 1 << 14),
        ])?;
        check_size(self.n_blocks, common)
    }
}

/// TCL.
///
/// ```
/// use hopedgn::collate::FeatureWidths;
/// use hopedgn::model::{CommonSettings, Model, Tcl, TclSettings};
///
/// let (model, _) = Tcl::new(&TclSettings::default(), &CommonSettings::DEFAULT, FeatureWidths::default(), 0)?;
/// assert!(model.memory().is_none() && model.encoding().second.is_none());
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tcl {
    settings: TclSettings,
    common: CommonSettings,
    time: TimeEncoding,
    node_channel: Channel,
    edge_channel: Channel,
    time_channel: Channel,
    mite: Option<(MiteEmbedding, Channel)>,
    /// `[neighbors + 1, d]`, the root's first.
    position: ParameterId,
    blocks: Vec<PostNormBlock>,
    output: Linear,
    head: PairHead,
}

impl Tcl {
    /// The model for features of these widths, with parameters drawn from `seed`.
    pub fn new(
        settings: &TclSettings,
        common: &CommonSettings,
        widths: FeatureWidths,
        seed: u64,
    ) -> Result<(Self, Parameters)> {
        let CommonSettings { d_out: d, d_time, .. } = *common;
        let TclSettings { past, n_blocks, n_heads, mite } = *settings;
        check_heads(n_heads, &[("model.d-out", d)])?;
        let mut parameters = Parameters::default();
        let builder = &mut ParamBuilder::new(&mut parameters, seed);
        let channel = |builder: &mut ParamBuilder<'_>, name: &str, width: Option<usize>, at_least: usize| {
            builder.channel(&format!("project.{name}"), width, width.unwrap_or(0).max(at_least), d)
        };
        let mite = match builder.mite(&mite)? {
            Some(embedding) => Some((embedding, channel(builder, "mite", Some(mite.d_mite), 0)?)),
            None => None,
        };
        let model = Self {
            settings: *settings,
            common: *common,
            time: builder.time_encoding("time", d_time)?,
            node_channel: channel(builder, "node", widths.node, PADDED_FEATURES)?,
            edge_channel: channel(builder, "edge", widths.edge, PADDED_FEATURES)?,
            time_channel: channel(builder, "time", Some(d_time), 0)?,
            mite,
            position: builder.embedding("position", past.neighbors + 1, d)?,
            blocks: (0..n_blocks)
                .map(|i| builder.post_norm_block(&format!("blocks.{i}"), d, n_heads))
                .collect::<Result<_>>()?,
            output: builder.linear("output", d, d)?,
            head: builder.pair_head(d, &common.statistics)?,
        };
        Ok((model, parameters))
    }

    /// z, `[S, d]`. A root has no event: its edge features and its Δt are zero.
    fn tokens(&self, tape: &mut Tape<'_>, input: &HopInput, streams: &Streams) -> Result<Var> {
        let n_tokens = streams.groups.total();
        let features = HopFeatures::new(tape, input, self.mite.map(|(mite, _)| mite))?;
        let nodes = features.nodes(tape, &streams.tokens)?; // [S, Dn]
        let edges = match features.edges(tape, &input.first)? {
            Some(edges) => Some(tape.scatter(edges, &streams.neighbors, n_tokens)?), // [S, De]
            None => None,
        };
        let ages = tape.input(Arc::clone(&input.first.ages)); // [F, 1]
        let ages = tape.scatter(ages, &streams.neighbors, n_tokens)?; // [S, 1]
        let times = self.time.forward(tape, ages)?; // [S, Dt]
        let mut summands = vec![
            ChannelInput { channel: self.node_channel, x: nodes },
            ChannelInput { channel: self.edge_channel, x: edges },
            ChannelInput { channel: self.time_channel, x: Some(times) },
        ];
        if let Some((_, channel)) = self.mite {
            summands.push(ChannelInput { channel, x: features.mite(tape, &streams.tokens)? });
        }
        let z = Channel::sum(tape, &summands)?; // [S, d]
        let position = tape.parameter(self.position);
        let positions = tape.gather(position, streams.positions(input, self.settings.past.neighbors))?; // [S, d]
        Ok(tape.add(z, positions)?)
    }
}

impl Model for Tcl {
    fn name(&self) -> ModelName {
        ModelName::Tcl
    }

    fn encoding(&self) -> PairEncoderConfig {
        self.settings.past.encoding(&self.settings.mite)
    }

    fn layout(&self) -> Layout {
        Layout::Hops(HopLayout { mite: self.settings.mite.normaliser(), ..HopLayout::default() })
    }

    fn dropout(&self) -> f32 {
        self.common.dropout
    }

    fn width(&self) -> usize {
        self.common.d_out
    }

    fn nodes(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let input = input.hops()?;
        let streams = Streams::of(input);
        let one_each = Ragged::from_lengths(std::iter::repeat_n(1, input.roots.len));
        let mut z = self.tokens(tape, input, &streams)?; // [S, d]
        for (block, place) in self.blocks.iter().zip((0..).step_by(2)) {
            let within = CrossAttentionInput::within(z, &streams.groups);
            z = block.forward(tape, within, dropout.site(place))?; // [S, d]
            let other = tape.gather(z, &streams.partners)?; // [S, d]
            let (mut queries, mut query_groups) = (z, &streams.groups);
            if place / 2 + 1 == self.blocks.len() as u64 {
                // Of the last block only the roots are read.
                (queries, query_groups) = (tape.gather(z, &streams.roots)?, &one_each); // [2B, d]
            }
            let across =
                CrossAttentionInput { queries, query_groups, keys: other, key_groups: &streams.partner_groups };
            z = block.forward(tape, across, dropout.site(place + 1))?;
        }
        self.output.forward(tape, z, None) // [2B, d]
    }

    fn head(&self) -> Option<PairHead> {
        Some(self.head)
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let nodes = self.nodes(tape, input, dropout)?; // [2B, d]
        self.head.forward_nodes(tape, nodes, input, dropout)
    }
}

/// The `2B` sequences of a batch: each root, then its neighbours.
struct Streams {
    groups: Ragged,
    tokens: Entries,
    /// The token of each root.
    roots: Indices,
    /// The token of each neighbour.
    neighbors: Indices,
    /// For each sequence in turn, the tokens of the other one of its pair.
    partners: Indices,
    partner_groups: Ragged,
}

impl Streams {
    fn of(input: &HopInput) -> Self {
        let (roots, first) = (&input.roots, &input.first.entries);
        let Sequences { groups, order } = input.sequences();
        let in_order = |of_roots: &Option<Indices>, of_first: &Option<Indices>| {
            let (of_roots, of_first) = (of_roots.as_ref()?, of_first.as_ref()?);
            let row =
                |&at: &u32| of_roots.get(at as usize).copied().unwrap_or_else(|| of_first[at as usize - roots.len]);
            Some(order.iter().map(row).collect())
        };
        let numbered: Vec<u32> = (0..).take(order.len()).collect();
        let (of_roots, of_neighbors): (Vec<u32>, Vec<u32>) =
            numbered.iter().partition(|&&token| (order[token as usize] as usize) < roots.len);
        let others = || (0..groups.len()).map(|side| groups.range(side ^ 1));
        Self {
            tokens: Entries {
                len: order.len(),
                nodes: in_order(&roots.nodes, &first.nodes),
                edges: None,
                rows: in_order(&roots.rows, &first.rows),
            },
            roots: of_roots.into(),
            neighbors: of_neighbors.into(),
            partners: others().flat_map(|other| &numbered[other]).copied().collect(),
            partner_groups: Ragged::from_lengths(others().map(|other| other.len())),
            groups,
        }
    }

    /// The position of each token: 0 for a root, `n_neighbors` for the newest neighbour.
    fn positions(&self, input: &HopInput, n_neighbors: usize) -> Vec<u32> {
        let mut positions = vec![0; self.tokens.len];
        for (&token, slot) in self.neighbors.iter().zip(input.first.slots(n_neighbors)) {
            positions[token as usize] = slot + 1;
        }
        positions
    }
}
