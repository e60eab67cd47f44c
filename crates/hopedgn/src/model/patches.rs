//! What HopeDGN and DyGFormer have in common: channels of tokens in patches, a transformer over both sides, a mean.
//!
//! Shapes: as in [`crate::collate`], `d` width of a channel, `D` width of the transformer, `Dn`, `De`, `Dt` widths of node,
//! edge and time features.

use std::sync::Arc;

use hopedgn_tensor::{Dropout, EncoderForm, Heads, Ragged, Tape, Var};

use crate::collate::{FeatureWidths, PairInput, Rows};
use crate::config::ModelConfig;
use crate::nn::{Block, Channel, Linear, PADDED_FEATURES, ParamBuilder, TimeEncoding};
use crate::{Error, Result};

/// The channels that every token has, and what is done with all of them.
#[derive(Debug, Clone)]
pub(super) struct Patches {
    patch: usize,
    heads: Heads,
    time: Option<TimeEncoding>,
    node_channel: Channel,
    edge_channel: Channel,
    time_channel: Channel,
    blocks: Vec<Block>,
    output: Linear,
}

impl Patches {
    /// For tokens with the features of so many nodes side by side, and `width` values a patch.
    pub(super) fn new(
        layers: &mut ParamBuilder<'_>,
        config: &ModelConfig,
        widths: FeatureWidths,
        n_nodes: usize,
        width: usize,
    ) -> Result<Self> {
        let d_time = config.time_encoding.then_some(config.d_time);
        let (node, node_drawn_as) = (widths.node.map(|width| n_nodes * width), n_nodes * PADDED_FEATURES);
        Ok(Self {
            patch: config.patch,
            heads: Heads(config.n_heads),
            time: d_time.map(|width| layers.time_encoding("time", width)).transpose()?,
            node_channel: channel(layers, config, "node", node, node_drawn_as)?,
            edge_channel: channel(layers, config, "edge", widths.edge, PADDED_FEATURES)?,
            time_channel: channel(layers, config, "time", d_time, config.d_time)?,
            blocks: (0..config.n_blocks).map(|i| layers.block(&format!("blocks.{i}"), width)).collect::<Result<_>>()?,
            output: layers.linear("output", width, config.d_out)?,
        })
    }

    /// Node, edge and time channel of each patch, `[S, d]` each.
    pub(super) fn channels(&self, tape: &mut Tape<'_>, input: &PairInput) -> Result<[Var; 3]> {
        let n_patches = input.pairs.total();
        let given = |tape: &mut Tape<'_>, rows: &Option<Rows>| {
            let Rows { table, chosen } = rows.as_ref().ok_or(Error::MissingInput)?;
            let mut x = tape.table(table);
            if let Some((rows, beside)) = chosen {
                x = tape.gather(x, rows)?;
                x = tape.reshape(x, rows.len() / beside, beside * table.cols())?;
            }
            self.in_patches(tape, x, input)
        };
        let nodes = self.node_channel.forward(tape, n_patches, |tape| given(tape, &input.nodes))?;
        let edges = self.edge_channel.forward(tape, n_patches, |tape| given(tape, &input.edges))?;
        let times = self.time_channel.forward(tape, n_patches, |tape| {
            let ages = tape.input(Arc::clone(&input.ages));
            let time = self.time.ok_or(Error::MissingInput)?;
            let times = time.forward(tape, ages)?; // [T, Dt]
            self.in_patches(tape, times, input)
        })?;
        Ok([nodes, edges, times])
    }

    /// `channel` of what tokens of one node have in common, `x` `[R, c]`, for each patch, `[S, d]`.
    pub(super) fn shared(&self, tape: &mut Tape<'_>, input: &PairInput, channel: Channel, x: Var) -> Result<Var> {
        if input.places.is_none() {
            // The projection is taken once for all tokens of a node.
            let rows = tape.shape(x).rows();
            let projected = channel.forward(tape, rows, |_| Ok(x))?; // [R, d]
            return Ok(tape.gather(projected, &input.rows)?);
        }
        let n_patches = input.pairs.total();
        channel.forward(tape, n_patches, |tape| {
            let x = tape.gather(x, &input.rows)?; // [T or S·P, c]
            if input.is_padded {
                let width = tape.shape(x).cols();
                return Ok(tape.reshape(x, n_patches, self.patch * width)?);
            }
            self.in_patches(tape, x, input)
        })
    }

    /// The channels side by side through the transformer, averaged over each of `pools`, `[pools, d-out]`.
    pub(super) fn embed(
        &self,
        tape: &mut Tape<'_>,
        channels: &[Var],
        input: &PairInput,
        pools: &Ragged,
        dropout: Dropout,
    ) -> Result<Var> {
        let tokens = tape.concat(channels)?; // [S, D]
        let blocks: Vec<_> = self.blocks.iter().map(|block| block.vars(tape)).collect();
        let form = EncoderForm { heads: self.heads, dropout };
        let pooled = tape.encoder(tokens, &blocks, form, &input.pairs, pools)?; // [pools, D]
        self.output.forward(tape, pooled, None)
    }

    /// Rows of tokens `[T, c]` side by side in their patches, `[S, P·c]`.
    fn in_patches(&self, tape: &mut Tape<'_>, x: Var, input: &PairInput) -> Result<Var> {
        let Some(places) = &input.places else { return Ok(x) };
        let (n_patches, width) = (input.pairs.total(), tape.shape(x).cols());
        let placed = tape.scatter(x, places, n_patches * self.patch)?;
        Ok(tape.reshape(placed, n_patches, self.patch * width)?)
    }
}

/// A channel of a patch: a linear layer over `width` values a token, drawn as if there were at least `at_least`.
pub(super) fn channel(
    layers: &mut ParamBuilder<'_>,
    config: &ModelConfig,
    name: &str,
    width: Option<usize>,
    at_least: usize,
) -> Result<Channel> {
    let drawn_as = config.patch * width.unwrap_or(0).max(at_least);
    layers.channel(&format!("project.{name}"), width.map(|width| config.patch * width), drawn_as, config.d_channel)
}
