//! HopeDGN, local: one embedding for a node *pair*, from the joint past of both nodes.
//!
//! Paper: Sections 4.2 to 4.4, "Towards Dynamic Graph Neural Networks with Provably High-Order Expressive Power".
//!
//! Shapes: `B` pairs, `T` tokens, `R` distinct nodes within the pairs, `P` tokens a patch, `S` patches, `d` width of a
//! channel, `D = 4d` width of the transformer, `Dn`, `De`, `Dt`, `Dm` widths of node, edge, time and MITE features.
//!
//! # Differences from the paper
//! Where the paper is silent, the choice was made by experiment on UCI, Enron and Wikipedia.
//! - **Padding**: there is none, so a pair's score does not depend on its batch. The library the authors built on pads
//!   each side to the longest of the batch and lets the padding be attended to; `padding = "dyglib"` does the same.
//!   Missing places of the last patch of a side are zero in all channels.
//! - **Intervals** are ln(1 + Δt), newest first, 0 where there is none, each with a second value that says whether it is
//!   there (`mite-normaliser`, `mite-filler`, `mite-valid-bit`). The paper only says "logarithm"; 0 alone would be taken
//!   for an interval of 0.
//! - **History**: meetings are those among the tokens; `mite-history = "full"` takes all before the query.
//! - **Time encoding** is cos(ω·Δt + φ) with trainable ω and φ, the form of the library, not pairs of cosine and sine.
//! - **Head**: the embedding has `d-out` = 172 values; the head is 172 → 172 → ReLU → 1.
//! - **Dropout** does not act on the very last feed-forward output, which is averaged at once: the product can then be
//!   taken of the average.
//! - **Features** narrower than 172 are not padded with zeros; weights are drawn as if they were. A channel without
//!   features is its bias.
//!
//! The equality with 2-DWL is that of the global model with injective parts; the local model with patches and a mean
//! is weaker.

use std::sync::Arc;

use hopedgn_tensor::{Activation, Dropout, EncoderForm, Heads, Parameters, Shape, Tape, Var};

use crate::Result;
use crate::config::{ModelConfig, Pooling};
use crate::encode::{FeatureWidths, PairInput, Rows};
use crate::nn::{Block, Channel, Layers, Linear, TimeEncoding};

/// The width that the paper's experiments pad features to.
const PADDED_FEATURES: usize = 172;

/// The model without its weights, which lie in [`Parameters`].
#[derive(Debug, Clone)]
pub struct HopeDgn {
    config: ModelConfig,
    time: Option<TimeEncoding>,
    mite: Option<[Linear; 2]>,
    node_channel: Channel,
    edge_channel: Channel,
    time_channel: Channel,
    mite_channel: Channel,
    blocks: Vec<Block>,
    output: Linear,
    head: [Linear; 2],
}

impl HopeDgn {
    /// A model for features of these widths, with weights drawn from `seed`.
    pub fn new(config: &ModelConfig, widths: FeatureWidths, seed: u64) -> Result<(Self, Parameters)> {
        config.check()?;
        let mut parameters = Parameters::default();
        let mut layers = Layers::new(&mut parameters, seed);
        let (d, patch) = (config.d_channel, config.patch);
        let mut channel = |name: &str, width: Option<usize>, at_least: usize| {
            let n_in = width.map(|width| patch * width);
            layers.channel(name, n_in, patch * width.unwrap_or(0).max(at_least), d)
        };
        let model = Self {
            config: config.clone(),
            node_channel: channel("project.node", widths.node.map(|width| 3 * width), 3 * PADDED_FEATURES)?,
            edge_channel: channel("project.edge", widths.edge, PADDED_FEATURES)?,
            time_channel: channel("project.time", config.time_encoding.then_some(config.d_time), config.d_time)?,
            mite_channel: channel("project.mite", config.mite.then_some(config.d_mite), config.d_mite)?,
            time: config.time_encoding.then(|| layers.time_encoding("time", config.d_time)).transpose()?,
            mite: if config.mite {
                let hidden = layers.linear("mite.hidden", config.mite_inputs(), config.d_mite)?;
                Some([hidden, layers.linear("mite.out", config.d_mite, config.d_mite)?])
            } else {
                None
            },
            blocks: (0..config.n_blocks)
                .map(|i| layers.block(&format!("blocks.{i}"), config.d_model()))
                .collect::<Result<_>>()?,
            output: layers.linear("output", config.d_model(), config.d_out)?,
            head: [
                layers.linear("head.hidden", config.n_embeddings() * config.d_out, config.d_out)?,
                layers.linear("head.out", config.d_out, 1)?,
            ],
        };
        Ok((model, parameters))
    }

    /// The sizes and choices it was made with.
    #[must_use]
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The logit of each pair, `[B, 1]`.
    pub fn logits(&self, tape: &mut Tape<'_>, input: &PairInput, dropout: Dropout) -> Result<Var> {
        let embedding = self.embed(tape, input, dropout)?;
        let hidden = self.head[0].forward(tape, embedding, Some(Activation::Relu))?; // [B, d-out]
        self.head[1].forward(tape, hidden, None)
    }

    /// The embedding of each pair, `[B, d-out]`; with node pooling those of its two nodes side by side, `[B, 2·d-out]`.
    pub fn embed(&self, tape: &mut Tape<'_>, input: &PairInput, dropout: Dropout) -> Result<Var> {
        let tokens = self.tokens(tape, input)?;
        let blocks: Vec<_> = self.blocks.iter().map(|block| block.vars(tape)).collect();
        let pools = match self.config.pooling {
            Pooling::Pair => &input.pairs,
            Pooling::Node => &input.sides,
        };
        let form = EncoderForm { heads: Heads(self.config.n_heads), dropout };
        let pooled = tape.encoder(tokens, &blocks, form, &input.pairs, pools)?; // [B or 2B, D]
        let embedding = self.output.forward(tape, pooled, None)?; // [B or 2B, d-out]
        let Shape::Matrix(rows, cols) = tape.shape(embedding) else { return Ok(embedding) };
        match self.config.pooling {
            Pooling::Pair => Ok(embedding),
            Pooling::Node => Ok(tape.reshape(embedding, rows / 2, 2 * cols)?),
        }
    }

    /// The four channels of each patch side by side, `[S, D]`.
    fn tokens(&self, tape: &mut Tape<'_>, input: &PairInput) -> Result<Var> {
        let n_patches = input.pairs.total();
        let given = |tape: &mut Tape<'_>, rows: &Option<Rows>| {
            let Rows { table, chosen } = rows.as_ref().ok_or(crate::Error::MissingInput)?;
            let mut x = tape.table(table);
            if let Some((rows, beside)) = chosen {
                x = tape.gather(x, Arc::clone(rows))?;
                x = tape.reshape(x, rows.len() / beside, beside * table.cols())?;
            }
            self.in_patches(tape, x, input)
        };
        let nodes = self.node_channel.forward(tape, n_patches, |tape| given(tape, &input.nodes))?;
        let edges = self.edge_channel.forward(tape, n_patches, |tape| given(tape, &input.edges))?;
        let times = self.time_channel.forward(tape, n_patches, |tape| {
            let ages = tape.input(Arc::clone(&input.ages));
            let time = self.time.ok_or(crate::Error::MissingInput)?;
            let times = time.forward(tape, ages)?; // [T, Dt]
            self.in_patches(tape, times, input)
        })?;
        let mite = self.mite(tape, input, n_patches)?;
        Ok(tape.concat(&[nodes, edges, times, mite])?)
    }

    /// The projected MITE of each patch, `[S, d]`.
    fn mite(&self, tape: &mut Tape<'_>, input: &PairInput, n_patches: usize) -> Result<Var> {
        let (Some([hidden, out]), Some(mite)) = (self.mite, &input.mite) else {
            return self.mite_channel.forward(tape, n_patches, |_| Err(crate::Error::MissingInput));
        };
        let x = tape.input(Arc::clone(mite));
        let x = hidden.forward(tape, x, Some(Activation::Relu))?;
        let x = out.forward(tape, x, None)?; // [R, Dm]
        if input.places.is_none() {
            // Tokens of one node share their MITE: the projection is taken once for all of them.
            let rows = tape.shape(x).rows();
            let projected = self.mite_channel.forward(tape, rows, |_| Ok(x))?; // [R, d]
            return Ok(tape.gather(projected, Arc::clone(&input.mite_rows))?);
        }
        self.mite_channel.forward(tape, n_patches, |tape| {
            let x = tape.gather(x, Arc::clone(&input.mite_rows))?; // [T or S·P, Dm]
            if input.is_padded {
                let width = tape.shape(x).cols();
                return Ok(tape.reshape(x, n_patches, self.config.patch * width)?);
            }
            self.in_patches(tape, x, input)
        })
    }

    /// Rows of tokens `[T, c]` side by side in their patches, `[S, P·c]`.
    fn in_patches(&self, tape: &mut Tape<'_>, x: Var, input: &PairInput) -> Result<Var> {
        let Some(places) = &input.places else { return Ok(x) };
        let (n_patches, width) = (input.pairs.total(), tape.shape(x).cols());
        let placed = tape.scatter(x, Arc::clone(places), n_patches * self.config.patch)?;
        Ok(tape.reshape(placed, n_patches, self.config.patch * width)?)
    }
}
