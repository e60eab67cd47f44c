//! HopeDGN, global: embeddings of all node pairs, each of which looks at the pairs that every node makes with its own two.
//!
//! Paper: Section 4.3, the equation that Propositions 4 and 5 are about. With `B(u, w)` the intervals at which `u` and `w` met:
//!
//! ```text
//! h⁰(u, v)  = [x_u ‖ x_v]
//! ψ(w)      = [f₁([hˡ⁻¹(u, w) ‖ hˡ⁻¹(v, w)]) ‖ f₂([B(u, w) ‖ B(v, w)])]
//! hˡ(u, v)  = UPDATE(hˡ⁻¹(u, v), Σ_w φ(ψ(w)))          over every node w
//! ```
//!
//! Shapes: `B` asked pairs, `P` pairs of a layer, `W` pairs with a node put in, `E` lists of meetings, `I` intervals, `V` distinct
//! pairs of lists, `d` width of an embedding, `Dt`, `Dm` widths of time and of a list.
//!
//! # Differences from the paper
//! - **AGG** is Σ φ(ψ) with a layer φ. A sum of ψ itself would be the sum of f₁ beside the sum of f₂, and forget which
//!   of them belonged to one node: not injective, whatever f₁ and f₂ are.
//! - **Smooth functions**: all layers have GELU. Sums of a smooth function that is no polynomial tell multisets apart for
//!   almost all weights once it is wide enough; those of ReLU need not.
//! - **B** is a list of any length; it enters as the sum of an embedding of its intervals, so that nothing is cut off. An
//!   interval is ln(1 + Δt) beside cos(ω·Δt + φ).
//! - **h⁰** is projected to `d` values; `pair-start = "types"` adds whether `u = v` and when they met, as 2-DWL from
//!   isomorphism types does.
//! - **Nodes** are those that met somebody before the query, and the two asked about.
//! - **Local**: `replacing = "met"` lets `w` run over nodes that `u` or `v` met, the paper's local equation, with any
//!   number of layers.
//! - **Features of events** do not enter: the equation has none.
//! - **Initial weights** are larger than PyTorch's (`enliven`).
//! - **Order**: what is summed stands in an order that depends on nothing but what it stands for, so that pairs that 2-DWL does
//!   not tell apart are equal to the last bit (`encode::canonical`, `expressive::pairs_of_one_colour_have_one_embedding`).

use std::sync::Arc;

use ctdg::mite::PairEncoding;
use hopedgn_tensor::{Activation, Dropout, Indices, ParameterId, Parameters, Tape, Var};

use super::Model;
use crate::collate::{FeatureWidths, GlobalInput, GlobalLayout, Input, Layout, PairLayer};
use crate::config::{ModelConfig, PairStart};
use crate::nn::{Channel, Linear, ParamBuilder, TimeEncoding, zeros};
use crate::{Error, Result};

const SMOOTH: Option<Activation> = Some(Activation::Gelu);

/// The model without its weights, which lie in [`Parameters`].
#[derive(Debug, Clone)]
pub struct GlobalHopeDgn {
    config: ModelConfig,
    time: TimeEncoding,
    interval: [Linear; 2],
    start: Channel,
    layers: Vec<Layer>,
    head: [Linear; 2],
}

/// One round of pairs looking at pairs.
#[derive(Debug, Clone, Copy)]
struct Layer {
    /// f₁'s first layer, for `(u, w)` with its bias and for `(v, w)`.
    first: Linear,
    second: ParameterId,
    pairs_out: Linear,
    /// f₂.
    met: [Linear; 2],
    /// φ, for f₁ with its bias and for f₂.
    agg: Linear,
    agg_met: ParameterId,
    update: [Linear; 2],
}

impl GlobalHopeDgn {
    /// A model for features of these widths, with weights drawn from `seed`.
    pub fn new(config: &ModelConfig, widths: FeatureWidths, seed: u64) -> Result<(Self, Parameters)> {
        let ModelConfig { d_out: d, d_time, d_mite, n_blocks, pair_start, .. } = *config;
        let mut parameters = Parameters::default();
        let layers = &mut ParamBuilder::new(&mut parameters, seed);
        let of_types = if pair_start == PairStart::Types { 1 + d_mite } else { 0 };
        let n_start = widths.node.map_or(0, |width| 2 * width) + of_types;
        let model = Self {
            config: config.clone(),
            time: layers.time_encoding("time", d_time)?,
            interval: [
                layers.linear("interval.hidden", 1 + d_time, d_mite)?,
                layers.linear("interval.out", d_mite, d_mite)?,
            ],
            start: layers.channel("start", (n_start > 0).then_some(n_start), n_start, d)?,
            layers: (1..=n_blocks).map(|l| Layer::new(layers, l, d, d_mite)).collect::<Result<_>>()?,
            head: [layers.linear("head.hidden", d, d)?, layers.linear("head.out", d, 1)?],
        };
        enliven(&mut parameters);
        Ok((model, parameters))
    }

    /// What it looks at.
    #[must_use]
    pub fn global_layout(&self) -> GlobalLayout {
        let ModelConfig { n_blocks, replacing, pair_start, d_out, .. } = self.config;
        GlobalLayout { n_layers: n_blocks, replacing, start: pair_start, width: d_out }
    }

    /// The embedding of each asked pair, `[B, d]`.
    pub fn embed(&self, tape: &mut Tape<'_>, input: &GlobalInput, dropout: Dropout) -> Result<Var> {
        let lists = self.lists(tape, input)?; // [E, Dm]
        let views = input.views.each_ref().map(|rows| tape.gather(lists, rows));
        let [ours, theirs] = views;
        let views = tape.concat(&[ours?, theirs?])?; // [V, 2·Dm]
        let mut pairs = self.start(tape, input, lists)?; // [P₀, d]
        for ((place, layer), seen) in (0..).zip(&self.layers).zip(&input.layers) {
            pairs = layer.forward(tape, (pairs, views), seen, dropout.site(place))?; // [Pₗ, d]
        }
        Ok(tape.gather(pairs, &input.asked)?)
    }

    /// The logit of each asked pair, `[B, 1]`.
    pub fn pair_logits(&self, tape: &mut Tape<'_>, input: &GlobalInput, dropout: Dropout) -> Result<Var> {
        let embedding = self.embed(tape, input, dropout)?;
        let hidden = self.head[0].forward(tape, embedding, SMOOTH)?; // [B, d]
        self.head[1].forward(tape, hidden, None)
    }

    /// Each list of meetings, `[E, Dm]`: zeros for who never met.
    fn lists(&self, tape: &mut Tape<'_>, input: &GlobalInput) -> Result<Var> {
        if input.lists.total() == 0 {
            return zeros(tape, input.lists.len(), self.config.d_mite);
        }
        let [logs, ages] = [&input.log_ages, &input.ages].map(|column| tape.input(Arc::clone(column)));
        let waves = self.time.forward(tape, ages)?; // [I, Dt]
        let x = tape.concat(&[logs, waves])?; // [I, 1 + Dt]
        let x = self.interval[0].forward(tape, x, SMOOTH)?; // [I, Dm]
        let x = self.interval[1].forward(tape, x, None)?;
        Ok(tape.segment_sum(x, None, &input.lists)?)
    }

    /// h⁰, `[P₀, d]`.
    fn start(&self, tape: &mut Tape<'_>, input: &GlobalInput, lists: Var) -> Result<Var> {
        let n_pairs = input.met.len();
        self.start.forward(tape, n_pairs, |tape| {
            let mut parts = Vec::new();
            if let Some(nodes) = &input.nodes {
                let (rows, beside) = nodes.chosen.as_ref().ok_or(Error::MissingInput)?;
                let table = tape.table(&nodes.table);
                let x = tape.gather(table, rows)?; // [2·P₀, Dn]
                parts.push(tape.reshape(x, n_pairs, beside * nodes.table.cols())?);
            }
            if self.config.pair_start == PairStart::Types {
                parts.push(tape.input(Arc::clone(&input.same)));
                parts.push(tape.gather(lists, &input.met)?); // [P₀, Dm]
            }
            Ok(tape.concat(&parts)?)
        })
    }
}

impl Layer {
    fn new(layers: &mut ParamBuilder<'_>, place: usize, d: usize, d_mite: usize) -> Result<Self> {
        let name = |part: &str| format!("layers.{place}.{part}");
        Ok(Self {
            first: layers.linear_as(&name("pairs.first"), d, 2 * d, d)?,
            second: layers.weight(&name("pairs.second"), d, 2 * d, d)?,
            pairs_out: layers.linear(&name("pairs.out"), d, d)?,
            met: [layers.linear(&name("met.hidden"), 2 * d_mite, d)?, layers.linear(&name("met.out"), d, d)?],
            agg: layers.linear_as(&name("agg"), d, 2 * d, d)?,
            agg_met: layers.weight(&name("agg.met"), d, 2 * d, d)?,
            update: [layers.linear(&name("update.hidden"), 2 * d, d)?, layers.linear(&name("update.out"), d, d)?],
        })
    }

    /// `[Pₗ, d]` from the pairs below, `[Pₗ₋₁, d]`, and from what was between them and the nodes put in, `[V, 2·Dm]`.
    ///
    /// A product of something gathered is that product, gathered: all but one are taken before rows are repeated.
    fn forward(
        &self,
        tape: &mut Tape<'_>,
        (pairs, views): (Var, Var),
        seen: &PairLayer,
        dropout: Dropout,
    ) -> Result<Var> {
        let own = tape.gather(pairs, &seen.own)?; // [Pₗ, d]
        let second = tape.parameter(self.second);
        let sides = [self.first.forward(tape, pairs, None)?, tape.linear(pairs, second, None, None)?];
        let summed = gathered_sum(tape, sides, [&seen.sides[0], &seen.sides[1]])?; // [W, d]
        let hidden = tape.activate(summed, Activation::Gelu);
        let f1 = self.pairs_out.forward(tape, hidden, None)?; // [W, d]
        let f2 = self.met[0].forward(tape, views, SMOOTH)?; // [V, d]
        let f2 = self.met[1].forward(tape, f2, None)?;
        let agg_met = tape.parameter(self.agg_met);
        let of_f2 = tape.linear(f2, agg_met, None, None)?;
        let of_f2 = tape.gather(of_f2, &seen.views)?; // [W, d]
        let of_f1 = self.agg.forward(tape, f1, None)?;
        let phi = tape.add(of_f1, of_f2)?;
        let phi = tape.activate(phi, Activation::Gelu);
        let sum = tape.segment_sum(phi, None, &seen.groups)?; // [Pₗ, d]
        let sum = tape.dropout(sum, dropout);
        let joined = tape.concat(&[own, sum])?; // [Pₗ, 2d]
        let hidden = self.update[0].forward(tape, joined, SMOOTH)?;
        self.update[1].forward(tape, hidden, None)
    }
}

/// Makes weights as large as layers with GELU want them: variance 2 over the number of inputs instead of PyTorch's 1/3. A
/// round is five layers deep and differences of pairs are small to begin with, so that two rounds of PyTorch's would bring
/// those of neighbours' neighbours to 1e-8, where nothing can be learned from them. UPDATE sees a sum over all nodes: it takes
/// as much of it as of a mean over [`USUAL_NODES`].
fn enliven(parameters: &mut Parameters) {
    let names: Vec<(ParameterId, String)> = parameters.iter().map(|(id, name, _)| (id, name.to_owned())).collect();
    for (id, name) in names.iter().filter(|(_, name)| name.ends_with(".weight")) {
        let tensor = parameters.get_mut(*id);
        tensor.values_mut().iter_mut().for_each(|weight| *weight *= 6.0_f32.sqrt());
        if name.ends_with("update.hidden.weight") {
            let n_cols = tensor.cols();
            for row in tensor.values_mut().chunks_exact_mut(n_cols) {
                row[n_cols / 2..].iter_mut().for_each(|weight| *weight /= USUAL_NODES);
            }
        }
    }
}

/// What a sum is divided by at first.
const USUAL_NODES: f32 = 24.0;

fn gathered_sum(tape: &mut Tape<'_>, tables: [Var; 2], rows: [&Indices; 2]) -> Result<Var> {
    let first = tape.gather(tables[0], rows[0])?;
    let second = tape.gather(tables[1], rows[1])?;
    Ok(tape.add(first, second)?)
}

impl Model for GlobalHopeDgn {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn encoding(&self) -> PairEncoding {
        // Pairs are looked up in the store itself.
        PairEncoding { k: 0, ..self.config.encoding(1) }
    }

    fn layout(&self) -> Layout {
        Layout::Pairs(self.global_layout())
    }

    /// As in k-DWL, where the tuple (u, u) has the colour of `u`.
    fn nodes(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        self.embed(tape, input.pairs()?, dropout)
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        self.pair_logits(tape, input.pairs()?, dropout)
    }
}
