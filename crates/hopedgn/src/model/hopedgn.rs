//! HopeDGN (local): one embedding of a node *pair*, from the joint past of both nodes.
//!
//! Paper: "Towards Dynamic Graph Neural Networks with Provably High-Order Expressive Power", Sections 4.2 to 4.4.
//!
//! For the pair `(u, v)` at `t` and each token `(w, t')` of `N(u, t) ∪ N(v, t)`, with `B(w, u)` the intervals at which `w` and
//! `u` interacted:
//!
//! ```text
//! X_C = [x_w ‖ x_u ‖ x_v],  X_E = e,  X_T = Φ(t − t')
//! X_M = f([B(w, u) ‖ B(w, v)])                          (7)   MITE; f is a two-layer MLP
//! Z_* = X_* W_* + b_*                                   (10)  in patches of P tokens; * = C, E, T, M
//! H⁰  = [Z_C ‖ Z_E ‖ Z_T ‖ Z_M]
//! H̃ˡ  = MHSA(LN(Hˡ⁻¹)) + Hˡ⁻¹,  Hˡ = FFN(LN(H̃ˡ)) + H̃ˡ   (11)  with `relations`: scores of attention + b_h(w_i, w_j)
//! h   = MEAN(Hᴸ) W_out + b_out                          (12)
//! logit = W₂ ReLU(W₁ h + b₁) + b₂                          with `stats`: [h ‖ s], s an embedding of the statistics
//! ```
//!
//! `b_h` is what head h of a block makes of a relation, a two-layer perceptron for all heads and blocks: whether `w_i` and `w_j` met each
//! other before t, how long ago last, how often, and whether they are one node. Without it tokens know when they met u and v, but not
//! each other.
//!
//! Shapes: `B` pairs, `S` patches, `R` distinct nodes within the pairs, `C` width of a channel, `D = 4C`, `d` width of an
//! embedding, `Dm` width of MITE.
//!
//! # Differences from the paper
//! Where the paper is silent, the choice was made by experiment on UCI, Enron and Wikipedia.
//! - **Padding**: none, so a pair's score does not depend on its batch. DyGLib, on which the authors built, pads each side to
//!   the longest of the batch and attends to padding; `padding = "dyglib"` does the same. Missing places of the last patch of a
//!   side are zero in all channels.
//! - **Intervals** are ln(1 + Δt), newest first. An empty slot is 0, and each slot has a second value that says whether it is
//!   filled (`mite-normaliser`, `mite-filler`, `mite-valid-bit`); 0 alone would read as an interval of 0.
//! - **History**: intervals of events among the tokens; `mite-history = "full"` takes all before the query. A self-loop counts
//!   once, as in the paper's adjacency tensor; `mite-self-loops = "twice"` counts both of its entries in DyGLib's neighbour lists.
//! - **Time encoding** is cos(ω·Δt + φ) with trainable ω and φ, as in DyGLib, not pairs of cosine and sine.
//! - **Head**: `d` = 172.
//! - **Dropout** does not act on the last feed-forward output: it is averaged at once, so that the last product is taken of the
//!   mean.
//! - **A channel without features** is its bias.
//! - **Relations** are not in the paper; off by default. Two patches of several tokens have the closest relation among their nodes.
//!
//! Proposition 5 is about the global model with injective functions; the local model with patches and a mean is weaker.

use ctdg::mite::PairEncoderConfig;
use hopedgn_tensor::{Dropout, Parameters, Ragged, Tape, Var};
use serde::{Deserialize, Serialize};

use super::patches::Patches;
use super::{CommonSettings, Model, ModelName, PatchSettings};
use crate::collate::{FeatureWidths, Input, Layout, MiteSettings, PairInput, PatchLayout};
use crate::nn::{Channel, MiteEmbedding, PairHead, ParamBuilder, RelationBias};
use crate::{Error, Result};

/// Which tokens are averaged into an embedding.
///
/// ```
/// use hopedgn::config::{ModelConfig, ModelName};
/// use hopedgn::{collate::FeatureWidths, model};
///
/// let per_node = ModelConfig::new(ModelName::HopeDgn).with("pooling", "node")?;
/// assert!(model::build(&per_node, FeatureWidths::default(), 0)?.0.width() > 0); // it embeds single nodes
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pooling {
    /// Those of both sides: one embedding of the pair.
    #[default]
    Pair,
    /// Those of each side: one embedding of each node, concatenated for the head.
    Node,
}

/// Settings of [`HopeDgn`].
///
/// ```
/// let settings = hopedgn::config::HopeDgnSettings::default();
/// assert!(settings.mite.enabled);
/// assert_eq!(settings.encoder_width(), 4 * settings.patches.d_channel);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct HopeDgnSettings {
    /// Sequences and transformer.
    #[serde(flatten)]
    pub patches: PatchSettings,
    /// MITE, switched on by default.
    #[serde(flatten)]
    pub mite: MiteSettings,
    /// Which tokens are averaged into an embedding.
    pub pooling: Pooling,
    /// Whether attention knows how the nodes of two tokens met each other.
    pub relations: bool,
}

impl Default for HopeDgnSettings {
    fn default() -> Self {
        Self {
            patches: PatchSettings::default(),
            mite: MiteSettings { enabled: true, ..MiteSettings::default() },
            pooling: Pooling::Pair,
            relations: false,
        }
    }
}

impl HopeDgnSettings {
    /// Width of the transformer, `D`.
    #[must_use]
    pub fn encoder_width(&self) -> usize {
        4 * self.patches.d_channel
    }
}

/// HopeDGN over the latest events of both nodes.
///
/// ```
/// use hopedgn::collate::FeatureWidths;
/// use hopedgn::model::{CommonSettings, HopeDgn, HopeDgnSettings, Model};
///
/// let (model, parameters) = HopeDgn::new(&HopeDgnSettings::default(), &CommonSettings::DEFAULT, FeatureWidths::default(), 0)?;
/// assert_eq!(model.encoding().length, 32); // tokens per node
/// assert!(parameters.id("mite.hidden.weight").is_some());
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct HopeDgn {
    settings: HopeDgnSettings,
    common: CommonSettings,
    patches: Patches,
    mite: Option<MiteEmbedding>,
    mite_channel: Channel,
    relations: Option<RelationBias>,
    head: PairHead,
}

impl HopeDgn {
    /// The model for features of these widths, with parameters drawn from `seed`.
    pub fn new(
        settings: &HopeDgnSettings,
        common: &CommonSettings,
        widths: FeatureWidths,
        seed: u64,
    ) -> Result<(Self, Parameters)> {
        let HopeDgnSettings { patches, mite, pooling, relations } = settings;
        patches.check(settings.encoder_width())?;
        let (d, d_mite) = (common.d_out, mite.d_mite);
        let n_embeddings = if *pooling == Pooling::Pair { 1 } else { 2 };
        let mut parameters = Parameters::default();
        let builder = &mut ParamBuilder::new(&mut parameters, seed);
        let model = Self {
            settings: *settings,
            common: *common,
            // Three nodes per token: w, u and v.
            patches: Patches::new(builder, patches, common, widths, (3, settings.encoder_width()))?,
            mite: builder.mite(mite)?,
            mite_channel: patches.channel(builder, "mite", mite.enabled.then_some(d_mite), d_mite)?,
            relations: relations.then(|| builder.relation_bias(patches.n_blocks * patches.n_heads)).transpose()?,
            head: builder.head(n_embeddings * d, d, &common.statistics)?,
        };
        Ok((model, parameters))
    }

    /// Its own settings.
    #[must_use]
    pub fn settings(&self) -> &HopeDgnSettings {
        &self.settings
    }

    /// The settings that all models have.
    #[must_use]
    pub fn common(&self) -> &CommonSettings {
        &self.common
    }

    /// The embedding of each pair, `[B, d]`; with node pooling those of its two nodes concatenated, `[B, 2d]`.
    pub fn embed(&self, tape: &mut Tape<'_>, input: &PairInput, dropout: Dropout) -> Result<Var> {
        match self.settings.pooling {
            Pooling::Pair => self.pooled(tape, input, &input.pairs, dropout),
            Pooling::Node => {
                let nodes = self.pooled(tape, input, &input.sides, dropout)?; // [2B, d]
                let (rows, cols) = (tape.shape(nodes).rows(), tape.shape(nodes).cols());
                Ok(tape.reshape(nodes, rows / 2, 2 * cols)?)
            }
        }
    }

    /// (7), (10) to (12): the embedding of each of `pools`, `[pools, d]`.
    fn pooled(&self, tape: &mut Tape<'_>, input: &PairInput, pools: &Ragged, dropout: Dropout) -> Result<Var> {
        let [z_nodes, z_edges, z_times] = self.patches.channels(tape, input)?; // [S, C] each
        let z_mite = match &self.mite {
            Some(mite) => {
                let x = mite.forward(tape, input.mite.as_ref())?; // [R, Dm]
                self.patches.shared(tape, input, self.mite_channel, x)? // [S, C]
            }
            None => self.mite_channel.forward(tape, input.pairs.total(), |_| Err(Error::MissingInput))?,
        };
        let relation_input = || input.relations.as_ref().ok_or(Error::MissingInput);
        let bias = self.relations.map(|relations| relations.forward(tape, relation_input()?)).transpose()?;
        let channels = [z_nodes, z_edges, z_times, z_mite];
        self.patches.embed(tape, &channels, (input, bias.as_ref()), pools, dropout)
    }
}

impl Model for HopeDgn {
    fn name(&self) -> ModelName {
        ModelName::HopeDgn
    }

    fn encoding(&self) -> PairEncoderConfig {
        self.settings.patches.encoding(&self.settings.mite)
    }

    fn layout(&self) -> Layout {
        let HopeDgnSettings { patches, mite, relations, .. } = &self.settings;
        let relations = relations.then(|| patches.precision());
        Layout::Patches(PatchLayout { with_roots: true, relations, ..patches.layout(mite) })
    }

    fn dropout(&self) -> f32 {
        self.common.dropout
    }

    fn width(&self) -> usize {
        self.common.d_out
    }

    /// The mean over each side's own tokens, as the paper has it for node tasks, whatever `pooling` is.
    fn nodes(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let input = input.patches()?;
        self.pooled(tape, input, &input.sides, dropout)
    }

    fn head(&self) -> Option<PairHead> {
        Some(self.head)
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let h = self.embed(tape, input.patches()?, dropout)?; // [B, d] or [B, 2d]
        self.head.forward(tape, Some(h), input, dropout)
    }
}
