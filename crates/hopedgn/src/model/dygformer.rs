//! DyGFormer: a transformer over the histories of both nodes, with neighbour co-occurrence counts.
//!
//! Paper: "Towards Better Dynamic Graph Learning: New Architecture and Unified Library" (DyGLib).
//!
//! For each token `(w, t')` of `N(u, t)` and `N(v, t)`, with `c_u`, `c_v` the number of tokens of each side that are `w`:
//!
//! ```text
//! X_N = x_w,  X_E = e,  X_T = Φ(t − t')
//! X_C = f(c_u) + f(c_v)                                 (1)  f is a two-layer MLP of one count
//! Z_* = X_* W_* + b_*                                        in patches of P tokens; * = N, E, T, C
//! H⁰  = [Z_N ‖ Z_E ‖ Z_T ‖ Z_C]                              both sides as one sequence
//! H̃ˡ  = MHSA(LN(Hˡ⁻¹)) + Hˡ⁻¹,  Hˡ = FFN(LN(H̃ˡ)) + H̃ˡ
//! h_u = MEAN(Hᴸ of u's tokens) W_out + b_out
//! logit = head([h_u ‖ h_v])
//! ```
//!
//! Shapes: `B` pairs, `S` patches, `R` distinct nodes within the pairs, `C` width of a channel, `D` width of the transformer, `d`
//! width of an embedding, `Dc` width of the co-occurrence encoding, `Dm` width of MITE.
//!
//! # Differences from the paper
//! - **Padding**: none, so a pair's score does not depend on its batch; `padding = "dyglib"` pads as the authors' library does,
//!   where padding is attended to and averaged.
//! - **Dropout** does not act on the last feed-forward output, as in HopeDGN.
//!
//! # MITE
//! A fifth channel beside node, edge, time and co-occurrence.

use ctdg::mite::PairEncoderConfig;
use hopedgn_tensor::{Activation, Dropout, Parameters, Tape, Var};
use serde::{Deserialize, Serialize};

use super::bounds::within;
use super::patches::Patches;
use super::{CommonSettings, Model, ModelName, PatchSettings};
use crate::collate::{FeatureWidths, Input, Layout, MiteSettings, PairInput, PatchLayout};
use crate::nn::{Channel, Linear, MiteEmbedding, PairHead, ParamBuilder};
use crate::{Error, Result};

/// Settings of [`DyGFormer`].
///
/// See [`DyGFormer`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct DyGFormerSettings {
    /// Sequences and transformer.
    #[serde(flatten)]
    pub patches: PatchSettings,
    /// Width of the co-occurrence encoding, `Dc`.
    pub d_cooccurrence: usize,
    /// MITE.
    #[serde(flatten)]
    pub mite: MiteSettings,
}

impl Default for DyGFormerSettings {
    fn default() -> Self {
        Self { patches: PatchSettings::default(), d_cooccurrence: 50, mite: MiteSettings::default() }
    }
}

impl DyGFormerSettings {
    /// Width of the transformer, `D`: four channels, or five with MITE.
    #[must_use]
    pub fn encoder_width(&self) -> usize {
        (4 + usize::from(self.mite.enabled)) * self.patches.d_channel
    }

    pub(super) fn check(&self) -> Result<()> {
        within(&[("model.d-cooccurrence", self.d_cooccurrence, 1 << 14)])?;
        self.patches.check(self.encoder_width())
    }
}

/// DyGFormer.
///
/// ```
/// use hopedgn::collate::FeatureWidths;
/// use hopedgn::model::{CommonSettings, DyGFormer, DyGFormerSettings, Model, PatchSettings};
///
/// let patches = PatchSettings { length: 64, patch: 2, ..PatchSettings::default() };
/// let settings = DyGFormerSettings { patches, ..DyGFormerSettings::default() };
/// let (model, _) = DyGFormer::new(&settings, &CommonSettings::DEFAULT, FeatureWidths::default(), 0)?;
/// assert_eq!(model.encoding().length, 64);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct DyGFormer {
    settings: DyGFormerSettings,
    common: CommonSettings,
    patches: Patches,
    /// f of (1).
    cooccurrence: [Linear; 2],
    cooccurrence_channel: Channel,
    mite: Option<(MiteEmbedding, Channel)>,
    head: PairHead,
}

impl DyGFormer {
    /// The model for features of these widths, with parameters drawn from `seed`.
    pub fn new(
        settings: &DyGFormerSettings,
        common: &CommonSettings,
        widths: FeatureWidths,
        seed: u64,
    ) -> Result<(Self, Parameters)> {
        let DyGFormerSettings { patches, d_cooccurrence: d_count, mite } = settings;
        settings.check()?;
        let mut parameters = Parameters::default();
        let builder = &mut ParamBuilder::new(&mut parameters, seed);
        let mite = match builder.mite(mite)? {
            Some(embedding) => Some((embedding, patches.channel(builder, "mite", Some(mite.d_mite), 0)?)),
            None => None,
        };
        let model = Self {
            settings: *settings,
            common: *common,
            patches: Patches::new(builder, patches, common, widths, (1, settings.encoder_width()))?,
            cooccurrence: [
                builder.linear("cooccurrence.hidden", 1, *d_count)?,
                builder.linear("cooccurrence.out", *d_count, *d_count)?,
            ],
            cooccurrence_channel: patches.channel(builder, "cooccurrence", Some(*d_count), 0)?,
            mite,
            head: builder.pair_head(common.d_out, &common.statistics)?,
        };
        Ok((model, parameters))
    }

    /// (1), `[R, Dc]`.
    fn cooccurrence(&self, tape: &mut Tape<'_>, input: &PairInput) -> Result<Var> {
        let counts = tape.input(input.counts.clone().ok_or(Error::MissingInput)?); // [2R, 1]
        let [hidden, out] = self.cooccurrence;
        let f = hidden.forward(tape, counts, Some(Activation::Relu))?; // [2R, Dc]
        let f = out.forward(tape, f, None)?; // [2R, Dc]
        let (rows, cols) = (tape.shape(f).rows(), tape.shape(f).cols());
        let f = tape.reshape(f, rows / 2, 2 * cols)?; // [R, 2·Dc]
        let (f_src, f_dst) = (tape.columns(f, 0, cols)?, tape.columns(f, cols, cols)?);
        Ok(tape.add(f_src, f_dst)?)
    }
}

impl Model for DyGFormer {
    fn name(&self) -> ModelName {
        ModelName::DyGFormer
    }

    fn encoding(&self) -> PairEncoderConfig {
        self.settings.patches.encoding(&self.settings.mite)
    }

    fn layout(&self) -> Layout {
        Layout::Patches(PatchLayout { with_counts: true, ..self.settings.patches.layout(&self.settings.mite) })
    }

    fn dropout(&self) -> f32 {
        self.common.dropout
    }

    fn width(&self) -> usize {
        self.common.d_out
    }

    fn nodes(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let input = input.patches()?;
        let mut channels = self.patches.channels(tape, input)?.to_vec(); // [S, C] each
        let x_count = self.cooccurrence(tape, input)?; // [R, Dc]
        channels.push(self.patches.shared(tape, input, self.cooccurrence_channel, x_count)?); // [S, C]
        if let Some((mite, channel)) = self.mite {
            let x_mite = mite.forward(tape, input.mite.as_ref())?; // [R, Dm]
            channels.push(self.patches.shared(tape, input, channel, x_mite)?); // [S, C]
        }
        self.patches.embed(tape, &channels, (input, None), &input.sides, dropout) // [2B, d]
    }

    fn head(&self) -> Option<PairHead> {
        Some(self.head)
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let nodes = self.nodes(tape, input, dropout)?; // [2B, d]
        self.head.forward_nodes(tape, nodes, input, dropout)
    }
}
