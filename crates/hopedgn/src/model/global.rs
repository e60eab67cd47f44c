//! HopeDGN (global): embeddings of all node pairs, each aggregated over the pairs with every node in place of one of its own.
//!
//! Paper: "Towards Dynamic Graph Neural Networks with Provably High-Order Expressive Power", Section 4.3, the equation of
//! Propositions 4 and 5. With `B(u, w)` the intervals at which `u` and `w` interacted:
//!
//! ```text
//! h⁰(u, v)  = [x_u ‖ x_v]
//! ψ(w)      = [f₁([hˡ⁻¹(u, w) ‖ hˡ⁻¹(v, w)]) ‖ f₂([B(u, w) ‖ B(v, w)])]       (8)
//! hˡ(u, v)  = UPDATE(hˡ⁻¹(u, v), Σ_w φ(ψ(w)))          over every node w      (8)
//! logit     = W₂ GELU(W₁ hᴸ(u, v) + b₁) + b₂
//! ```
//!
//! Shapes: `B` pairs of the batch; `Sₗ` pairs that layer `l` computes; `Wₗ` triples (pair, node `w`) of layer `l`; `Z` lists of
//! intervals, `I` intervals in them, `V` distinct pairs of lists; `d` width of an embedding; `Dn`, `Dt` widths of node and time
//! features, `Dm` width of a list.
//!
//! # Differences from the paper
//! - **AGG** is Σ φ(ψ) with a layer φ. A sum of ψ itself is the sum of f₁ beside the sum of f₂, and loses which of them belong
//!   to one node: not injective, whatever f₁ and f₂ are.
//! - **Activations** are GELU. Sums of a smooth function that is no polynomial separate multisets for almost all weights once it
//!   is wide enough; those of ReLU need not.
//! - **B** is a list of any length; it enters as the sum of an embedding of its intervals, so that nothing is cut off. An
//!   interval is ln(1 + Δt) beside Φ(Δt).
//! - **h⁰** is projected to `d` values; `pair-start = "types"` adds whether `u = v` and when they interacted, as 2-DWL from
//!   isomorphism types does.
//! - **Nodes** are those with an event before the query, and the two of the pair.
//! - **Local** (9): `replacing = "met"` lets `w` run over the neighbours of `u` and `v`, with any number of layers.
//! - **Edge features** do not enter: the equation has none.
//! - **Initial weights** are larger than PyTorch's ([`rescale`]).
//! - **Order**: sums are taken in an order that depends on their terms alone, so that pairs that 2-DWL does not separate have
//!   equal embeddings to the last bit (`collate::canonical`).

use std::sync::Arc;

use ctdg::mite::PairEncoderConfig;
use hopedgn_tensor::{Activation, Dropout, Indices, ParameterId, Parameters, Tape, Var};
use serde::{Deserialize, Serialize};

use super::bounds::{check_size, within};
use super::{CommonSettings, Model, ModelName};
use crate::collate::{
    FeatureWidths, GlobalInput, GlobalLayout, Input, Layout, PairLayer, PairStart, Replacing, RowChoice, SamplingName,
    token_encoding,
};
use crate::nn::{Channel, Linear, PairHead, ParamBuilder, TimeEncoding, zeros};
use crate::{Error, Result};

const GELU: Option<Activation> = Some(Activation::Gelu);

/// Defaults of the common settings.
pub(super) const COMMON: CommonSettings =
    CommonSettings { d_out: 32, d_time: 16, dropout: 0.0, ..CommonSettings::DEFAULT };

/// Settings of [`GlobalHopeDgn`].
///
/// See [`GlobalHopeDgn`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct GlobalHopeDgnSettings {
    /// Layers.
    pub n_blocks: usize,
    /// Width of a list of intervals, `Dm`.
    pub d_mite: usize,
    /// Which nodes `w` runs over.
    pub replacing: Replacing,
    /// What h⁰ is made of.
    pub pair_start: PairStart,
}

impl Default for GlobalHopeDgnSettings {
    fn default() -> Self {
        Self { n_blocks: 2, d_mite: 32, replacing: Replacing::All, pair_start: PairStart::Features }
    }
}

impl GlobalHopeDgnSettings {
    pub(super) fn check(&self, common: &CommonSettings) -> Result<()> {
        within(&[("model.n-blocks", self.n_blocks, 1 << 10), ("model.d-mite", self.d_mite, 1 << 14)])?;
        check_size(self.n_blocks, common)
    }
}

/// HopeDGN over all pairs of nodes.
///
/// ```
/// use hopedgn::collate::{FeatureWidths, Replacing};
/// use hopedgn::model::{CommonSettings, GlobalHopeDgn, GlobalHopeDgnSettings};
///
/// let settings = GlobalHopeDgnSettings { replacing: Replacing::Met, ..GlobalHopeDgnSettings::default() };
/// let common = CommonSettings { d_out: 8, ..CommonSettings::DEFAULT };
/// let (model, _) = GlobalHopeDgn::new(&settings, &common, FeatureWidths::default(), 0)?;
/// assert_eq!(model.global_layout().replacing, Replacing::Met);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct GlobalHopeDgn {
    settings: GlobalHopeDgnSettings,
    common: CommonSettings,
    time: TimeEncoding,
    interval: [Linear; 2],
    start: Channel,
    layers: Vec<Layer>,
    head: PairHead,
}

/// The functions of one layer of (8).
#[derive(Debug, Clone, Copy)]
struct Layer {
    /// The first layer of f₁: its columns for `(u, w)` with the bias, and those for `(v, w)`.
    f1_src: Linear,
    f1_dst: ParameterId,
    f1_out: Linear,
    f2: [Linear; 2],
    /// φ: its columns for f₁ with the bias, and those for f₂.
    phi_f1: Linear,
    phi_f2: ParameterId,
    update: [Linear; 2],
}

/// What a layer reads besides its [`PairLayer`].
#[derive(Debug, Clone, Copy)]
struct LayerInput {
    /// hˡ⁻¹, `[Sₗ₋₁, d]`.
    pairs: Var,
    /// `[B(u, w) ‖ B(v, w)]`, `[V, 2·Dm]`.
    views: Var,
}

impl GlobalHopeDgn {
    /// The model for features of these widths, with parameters drawn from `seed`.
    pub fn new(
        settings: &GlobalHopeDgnSettings,
        common: &CommonSettings,
        widths: FeatureWidths,
        seed: u64,
    ) -> Result<(Self, Parameters)> {
        let CommonSettings { d_out: d, d_time, .. } = *common;
        let GlobalHopeDgnSettings { n_blocks, d_mite, pair_start, .. } = *settings;
        let mut parameters = Parameters::default();
        let builder = &mut ParamBuilder::new(&mut parameters, seed);
        let of_types = if pair_start == PairStart::Types { 1 + d_mite } else { 0 };
        let n_start = widths.node.map_or(0, |width| 2 * width) + of_types;
        let model = Self {
            settings: *settings,
            common: *common,
            time: builder.time_encoding("time", d_time)?,
            interval: [
                builder.linear("interval.hidden", 1 + d_time, d_mite)?,
                builder.linear("interval.out", d_mite, d_mite)?,
            ],
            start: builder.channel("start", (n_start > 0).then_some(n_start), n_start, d)?,
            layers: (1..=n_blocks).map(|l| Layer::new(builder, l, d, d_mite)).collect::<Result<_>>()?,
            head: builder.head(d, d, &common.statistics)?.with_activation(Activation::Gelu),
        };
        rescale(&mut parameters);
        Ok((model, parameters))
    }

    /// The pairs it computes.
    #[must_use]
    pub fn global_layout(&self) -> GlobalLayout {
        let GlobalHopeDgnSettings { n_blocks, replacing, pair_start, .. } = self.settings;
        GlobalLayout { n_layers: n_blocks, replacing, start: pair_start, width: self.common.d_out }
    }

    /// hᴸ of each pair of the batch, `[B, d]`.
    pub fn embed(&self, tape: &mut Tape<'_>, input: &GlobalInput, dropout: Dropout) -> Result<Var> {
        let lists = self.lists(tape, input)?; // [Z, Dm]
        let views = input.views.each_ref().map(|rows| tape.gather(lists, rows));
        let [of_src, of_dst] = views;
        let views = tape.concat(&[of_src?, of_dst?])?; // [V, 2·Dm]
        let mut pairs = self.start(tape, input, lists)?; // [S₀, d]
        for ((place, layer), indices) in (0..).zip(&self.layers).zip(&input.layers) {
            pairs = layer.forward(tape, LayerInput { pairs, views }, indices, dropout.site(place))?; // [Sₗ, d]
        }
        Ok(tape.gather(pairs, &input.queried)?)
    }

    /// B, `[Z, Dm]`: the sum of each list's intervals, zeros for an empty list.
    fn lists(&self, tape: &mut Tape<'_>, input: &GlobalInput) -> Result<Var> {
        if input.lists.total() == 0 {
            return zeros(tape, input.lists.len(), self.settings.d_mite);
        }
        let [logs, ages] = [&input.log_ages, &input.ages].map(|column| tape.input(Arc::clone(column)));
        let times = self.time.forward(tape, ages)?; // [I, Dt]
        let x = tape.concat(&[logs, times])?; // [I, 1 + Dt]
        let x = self.interval[0].forward(tape, x, GELU)?; // [I, Dm]
        let x = self.interval[1].forward(tape, x, None)?;
        Ok(tape.segment_sum(x, None, &input.lists)?)
    }

    /// h⁰, `[S₀, d]`.
    fn start(&self, tape: &mut Tape<'_>, input: &GlobalInput, lists: Var) -> Result<Var> {
        let n_pairs = input.start_lists.len();
        self.start.forward(tape, n_pairs, |tape| {
            let mut parts = Vec::new();
            if let Some(nodes) = &input.nodes {
                let RowChoice { rows, per_token } = nodes.chosen.as_ref().ok_or(Error::MissingInput)?;
                let table = tape.cached_input(&nodes.table);
                let x = tape.gather(table, rows)?; // [2·S₀, Dn]
                parts.push(tape.reshape(x, n_pairs, per_token * nodes.table.cols())?); // [S₀, 2·Dn]
            }
            if self.settings.pair_start == PairStart::Types {
                parts.push(tape.input(Arc::clone(&input.same))); // [S₀, 1]
                parts.push(tape.gather(lists, &input.start_lists)?); // [S₀, Dm]
            }
            Ok(tape.concat(&parts)?)
        })
    }
}

impl Layer {
    fn new(builder: &mut ParamBuilder<'_>, place: usize, d: usize, d_mite: usize) -> Result<Self> {
        let name = |part: &str| format!("layers.{place}.{part}");
        Ok(Self {
            f1_src: builder.linear_with_fan_in(&name("pairs.first"), d, 2 * d, d)?,
            f1_dst: builder.weight(&name("pairs.second"), d, 2 * d, d)?,
            f1_out: builder.linear(&name("pairs.out"), d, d)?,
            f2: [builder.linear(&name("met.hidden"), 2 * d_mite, d)?, builder.linear(&name("met.out"), d, d)?],
            phi_f1: builder.linear_with_fan_in(&name("agg"), d, 2 * d, d)?,
            phi_f2: builder.weight(&name("agg.met"), d, 2 * d, d)?,
            update: [builder.linear(&name("update.hidden"), 2 * d, d)?, builder.linear(&name("update.out"), d, d)?],
        })
    }

    /// hˡ, `[Sₗ, d]`.
    ///
    /// Products are taken before rows are gathered where they can be: W (gather x) = gather (W x).
    fn forward(&self, tape: &mut Tape<'_>, input: LayerInput, indices: &PairLayer, dropout: Dropout) -> Result<Var> {
        let LayerInput { pairs, views } = input;
        let own = tape.gather(pairs, &indices.own)?; // [Sₗ, d]
        // f₁
        let f1_dst = tape.parameter(self.f1_dst);
        let sides = [self.f1_src.forward(tape, pairs, None)?, tape.linear(pairs, f1_dst, None, None)?];
        let sum = gathered_sum(tape, sides, [&indices.sides[0], &indices.sides[1]])?; // [Wₗ, d]
        let hidden = tape.activate(sum, Activation::Gelu);
        let f1 = self.f1_out.forward(tape, hidden, None)?; // [Wₗ, d]
        // f₂
        let f2 = self.f2[0].forward(tape, views, GELU)?; // [V, d]
        let f2 = self.f2[1].forward(tape, f2, None)?;
        // φ(ψ)
        let phi_f2 = tape.parameter(self.phi_f2);
        let of_f2 = tape.linear(f2, phi_f2, None, None)?; // [V, d]
        let of_f2 = tape.gather(of_f2, &indices.views)?; // [Wₗ, d]
        let of_f1 = self.phi_f1.forward(tape, f1, None)?; // [Wₗ, d]
        let phi = tape.add(of_f1, of_f2)?;
        let phi = tape.activate(phi, Activation::Gelu);
        // UPDATE
        let sum = tape.segment_sum(phi, None, &indices.groups)?; // [Sₗ, d]
        let sum = tape.dropout(sum, dropout);
        let joined = tape.concat(&[own, sum])?; // [Sₗ, 2d]
        let hidden = self.update[0].forward(tape, joined, GELU)?; // [Sₗ, d]
        self.update[1].forward(tape, hidden, None)
    }
}

/// Scales initial weights for GELU: variance 2 / fan-in instead of PyTorch's 1 / (3 · fan-in).
///
/// A layer of (8) is five linear layers deep, and pairs differ little at first: with PyTorch's initialisation two layers shrink
/// differences between neighbours' neighbours to 1e-8, too small to train on. UPDATE reads a sum over all nodes, whose weights
/// start as for a mean over [`TYPICAL_NODES`].
fn rescale(parameters: &mut Parameters) {
    let names: Vec<(ParameterId, String)> = parameters.iter().map(|(id, name, _)| (id, name.to_owned())).collect();
    for (id, name) in names.iter().filter(|(_, name)| name.ends_with(".weight")) {
        let tensor = parameters.get_mut(*id);
        tensor.values_mut().iter_mut().for_each(|weight| *weight *= 6.0_f32.sqrt());
        if name.ends_with("update.hidden.weight") {
            let n_cols = tensor.cols();
            for row in tensor.values_mut().chunks_exact_mut(n_cols) {
                row[n_cols / 2..].iter_mut().for_each(|weight| *weight /= TYPICAL_NODES);
            }
        }
    }
}

/// What the weights of a sum over nodes are divided by at first.
const TYPICAL_NODES: f32 = 24.0;

fn gathered_sum(tape: &mut Tape<'_>, tables: [Var; 2], rows: [&Indices; 2]) -> Result<Var> {
    let first = tape.gather(tables[0], rows[0])?;
    let second = tape.gather(tables[1], rows[1])?;
    Ok(tape.add(first, second)?)
}

impl Model for GlobalHopeDgn {
    fn name(&self) -> ModelName {
        ModelName::HopeDgnGlobal
    }

    /// The nodes themselves: pairs are looked up in the store.
    fn encoding(&self) -> PairEncoderConfig {
        token_encoding(1, SamplingName::Recent, false)
    }

    fn layout(&self) -> Layout {
        Layout::Pairs(self.global_layout())
    }

    fn dropout(&self) -> f32 {
        self.common.dropout
    }

    fn width(&self) -> usize {
        self.common.d_out
    }

    /// The pair of a node with itself, as in k-DWL, where the tuple (u, u) has the colour of `u`.
    fn nodes(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        self.embed(tape, input.pairs()?, dropout)
    }

    fn head(&self) -> Option<PairHead> {
        Some(self.head)
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let h = self.embed(tape, input.pairs()?, dropout)?; // [B, d]
        self.head.forward(tape, Some(h), input, dropout)
    }
}
