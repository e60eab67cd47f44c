//! HopeDGN, local: one embedding for a node *pair*, from the joint past of both nodes.
//!
//! Paper: Sections 4.2 to 4.4, "Towards Dynamic Graph Neural Networks with Provably High-Order Expressive Power".
//!
//! Shapes: `B` pairs, `R` distinct nodes within the pairs, `S` patches of tokens, `d` width of a channel, `4d` that of the
//! transformer, `Dm` width of MITE.
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

use ctdg::mite::PairEncoding;
use hopedgn_tensor::{Activation, Dropout, Parameters, Ragged, Tape, Var};

use super::Model;
use super::patches::{Patches, channel};
use crate::Result;
use crate::collate::{FeatureWidths, Input, Layout, PairInput};
use crate::config::{ModelConfig, Pooling};
use crate::nn::{Channel, Linear, MiteEmbedding, ParamBuilder};

/// The model without its weights, which lie in [`Parameters`].
#[derive(Debug, Clone)]
pub struct HopeDgn {
    config: ModelConfig,
    patches: Patches,
    mite: Option<MiteEmbedding>,
    mite_channel: Channel,
    head: [Linear; 2],
}

impl HopeDgn {
    /// A model for features of these widths, with weights drawn from `seed`.
    pub fn new(config: &ModelConfig, widths: FeatureWidths, seed: u64) -> Result<(Self, Parameters)> {
        config.check()?;
        let mut parameters = Parameters::default();
        let layers = &mut ParamBuilder::new(&mut parameters, seed);
        let model = Self {
            config: config.clone(),
            // A token's node stands between source and destination.
            patches: Patches::new(layers, config, widths, 3, 4 * config.d_channel)?,
            mite: layers.mite(config)?,
            mite_channel: channel(layers, config, "mite", config.mite.then_some(config.d_mite), config.d_mite)?,
            head: [
                layers.linear("head.hidden", config.n_embeddings() * config.d_out, config.d_out)?,
                layers.linear("head.out", config.d_out, 1)?,
            ],
        };
        Ok((model, parameters))
    }

    /// The logit of each pair, `[B, 1]`.
    pub fn pair_logits(&self, tape: &mut Tape<'_>, input: &PairInput, dropout: Dropout) -> Result<Var> {
        let embedding = self.embed(tape, input, dropout)?;
        let hidden = self.head[0].forward(tape, embedding, Some(Activation::Relu))?; // [B, d-out]
        self.head[1].forward(tape, hidden, None)
    }

    /// The embedding of each pair, `[B, d-out]`; with node pooling those of its two nodes side by side, `[B, 2·d-out]`.
    pub fn embed(&self, tape: &mut Tape<'_>, input: &PairInput, dropout: Dropout) -> Result<Var> {
        match self.config.pooling {
            Pooling::Pair => self.pooled(tape, input, &input.pairs, dropout),
            Pooling::Node => {
                let nodes = self.pooled(tape, input, &input.sides, dropout)?; // [2B, d-out]
                let (rows, cols) = (tape.shape(nodes).rows(), tape.shape(nodes).cols());
                Ok(tape.reshape(nodes, rows / 2, 2 * cols)?)
            }
        }
    }

    /// The mean of the tokens of each of `pools`, projected, `[pools, d-out]`.
    fn pooled(&self, tape: &mut Tape<'_>, input: &PairInput, pools: &Ragged, dropout: Dropout) -> Result<Var> {
        let [nodes, edges, times] = self.patches.channels(tape, input)?; // [S, d] each
        let mite = match &self.mite {
            Some(mite) => {
                let x = mite.forward(tape, input.mite.as_ref())?; // [R, Dm]
                self.patches.shared(tape, input, self.mite_channel, x)?
            }
            None => self.mite_channel.forward(tape, input.pairs.total(), |_| Err(crate::Error::MissingInput))?,
        };
        self.patches.embed(tape, &[nodes, edges, times, mite], input, pools, dropout)
    }
}

impl Model for HopeDgn {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn encoding(&self) -> PairEncoding {
        self.config.encoding(self.config.length)
    }

    fn layout(&self) -> Layout {
        Layout::Patches { with_roots: true, with_counts: false }
    }

    /// The mean over each side's own tokens, as the paper has it for tasks about nodes, whatever a pair is embedded by.
    fn nodes(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let input = input.patches()?;
        self.pooled(tape, input, &input.sides, dropout)
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        self.pair_logits(tape, input.patches()?, dropout)
    }
}
