//! DyGFormer: a transformer over the histories of both nodes, which it compares by how often each neighbour stands in them.
//!
//! Paper: "Towards Better Dynamic Graph Learning: New Architecture and Unified Library".
//!
//! Shapes: `B` pairs, `R` distinct nodes within the pairs, `S` patches of tokens, `d` width of a channel, `Dc` width of the
//! co-occurrence encoding.
//!
//! # Differences from the paper
//! - **Padding**: there is none, so a pair's score does not depend on its batch; `padding = "dyglib"` pads as the authors'
//!   library does, where the padding is attended to and averaged.
//! - **Dropout** does not act on the very last feed-forward output; see the encoder.
//! - **Features** narrower than 172 are not padded with zeros; weights are drawn as if they were.
//!
//! # MITE
//! A fifth channel beside node, edge, time and co-occurrence.

use ctdg::mite::PairEncoding;
use hopedgn_tensor::{Activation, Dropout, Parameters, Tape, Var};

use super::Model;
use super::patches::{Patches, channel};
use crate::collate::{FeatureWidths, Input, Layout, PairInput};
use crate::config::ModelConfig;
use crate::nn::{Channel, Linear, MiteEmbedding, PairHead, ParamBuilder};
use crate::{Error, Result};

/// The model without its weights, which lie in [`Parameters`].
#[derive(Debug, Clone)]
pub struct DyGFormer {
    config: ModelConfig,
    patches: Patches,
    cooccurrence: [Linear; 2],
    cooccurrence_channel: Channel,
    mite: Option<(MiteEmbedding, Channel)>,
    head: PairHead,
}

impl DyGFormer {
    /// A model for features of these widths, with weights drawn from `seed`.
    pub fn new(config: &ModelConfig, widths: FeatureWidths, seed: u64) -> Result<(Self, Parameters)> {
        let mut parameters = Parameters::default();
        let layers = &mut ParamBuilder::new(&mut parameters, seed);
        let n_channels = 4 + usize::from(config.mite);
        let d = config.d_cooccurrence;
        let mite = match layers.mite(config)? {
            Some(mite) => Some((mite, channel(layers, config, "mite", Some(config.d_mite), 0)?)),
            None => None,
        };
        let model = Self {
            config: config.clone(),
            patches: Patches::new(layers, config, widths, 1, n_channels * config.d_channel)?,
            cooccurrence: [layers.linear("cooccurrence.hidden", 1, d)?, layers.linear("cooccurrence.out", d, d)?],
            cooccurrence_channel: channel(layers, config, "cooccurrence", Some(d), 0)?,
            mite,
            head: layers.pair_head(config.d_out)?,
        };
        Ok((model, parameters))
    }

    /// How often the node of each row stands on either side, `[R, Dc]`: each count for itself through the same layers,
    /// then their sum.
    fn cooccurrence(&self, tape: &mut Tape<'_>, input: &PairInput) -> Result<Var> {
        let counts = tape.input(input.counts.clone().ok_or(Error::MissingInput)?); // [2R, 1]
        let [hidden, out] = self.cooccurrence;
        let x = hidden.forward(tape, counts, Some(Activation::Relu))?;
        let x = out.forward(tape, x, None)?; // [2R, Dc]
        let (rows, cols) = (tape.shape(x).rows(), tape.shape(x).cols());
        let x = tape.reshape(x, rows / 2, 2 * cols)?;
        let (with_src, with_dst) = (tape.columns(x, 0, cols)?, tape.columns(x, cols, cols)?);
        Ok(tape.add(with_src, with_dst)?)
    }
}

impl Model for DyGFormer {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn encoding(&self) -> PairEncoding {
        self.config.encoding(self.config.length)
    }

    fn layout(&self) -> Layout {
        Layout::Patches { with_roots: false, with_counts: true }
    }

    fn nodes(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let input = input.patches()?;
        let mut channels = self.patches.channels(tape, input)?.to_vec(); // [S, d] each
        let cooccurrence = self.cooccurrence(tape, input)?;
        channels.push(self.patches.shared(tape, input, self.cooccurrence_channel, cooccurrence)?);
        if let Some((mite, channel)) = self.mite {
            let x = mite.forward(tape, input.mite.as_ref())?;
            channels.push(self.patches.shared(tape, input, channel, x)?);
        }
        self.patches.embed(tape, &channels, input, &input.sides, dropout)
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let nodes = self.nodes(tape, input, dropout)?;
        self.head.forward(tape, nodes)
    }
}
