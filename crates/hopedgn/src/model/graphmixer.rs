//! GraphMixer: perceptrons over the newest events of a node, along their order and along their features in turn.
//!
//! Paper: "Do We Really Need Complicated Model Architectures for Temporal Networks?".
//!
//! Shapes: `B` pairs, so `2B` roots; `F` neighbours of all of them in `K` slots a root; `d` width of a slot; `Dm`, `Dn`, `De`,
//! `Dt` widths of MITE, node, edge and time features.
//!
//! # Differences from the paper
//! It is the model that comparisons use, after DyGLib's:
//! - **Time** features have frequencies from 1 down to 10⁻⁹ whatever their number. As in the paper they are not learned.
//! - **Slots** without an event are zeros before the first layer, whose bias they hold behind it. The newest event stands in
//!   the last slot. The library does the same, so `padding = "dyglib"` changes nothing.
//! - **Neighbours** whose features are added to the node's are the last 2000 instead of those of some stretch of time, and
//!   their mean is divided by 2000 once more.
//! - **The bias** of the first layer joins the slots behind the first norm, which it would not change; see [`Mixer`].
//! - **Features** are not padded with zeros; weights are drawn as if they were.
//!
//! # MITE
//! Stands behind the time features in each slot, and behind the node's own features.

use std::sync::Arc;

use ctdg::mite::PairEncoding;
use hopedgn_tensor::{Activation, Dropout, Parameters, Ragged, Shape, Tape, Tensor, Var};

use super::Model;
use crate::collate::{FeatureWidths, HopInput, HopLayout, Input, Layout};
use crate::config::ModelConfig;
use crate::nn::{HopFeatures, Linear, MiteEmbedding, Norm, PADDED_FEATURES, PairHead, ParamBuilder, frequencies};
use crate::{Error, Result};

/// Neighbours whose features are averaged, and what their mean is divided by.
const FAR_BACK: u16 = 2000;

/// The model without its weights, which lie in [`Parameters`].
#[derive(Debug, Clone)]
pub struct GraphMixer {
    config: ModelConfig,
    /// `[Dt, 1]`, not learned.
    frequencies: Arc<Tensor>,
    /// `[Dn]`: what the mean of neighbours is multiplied by.
    share: Option<Arc<Tensor>>,
    mite: Option<MiteEmbedding>,
    project: Linear,
    mixers: Vec<Mixer>,
    output: Linear,
    head: PairHead,
}

impl GraphMixer {
    /// A model for features of these widths, with weights drawn from `seed`.
    pub fn new(config: &ModelConfig, widths: FeatureWidths, seed: u64) -> Result<(Self, Parameters)> {
        let ModelConfig { d_out: d, d_time, neighbors, n_blocks, .. } = *config;
        let mut parameters = Parameters::default();
        let layers = &mut ParamBuilder::new(&mut parameters, seed);
        let d_mite = if config.mite { config.d_mite } else { 0 };
        let [d_node, d_edge] = [widths.node, widths.edge].map(|width| width.unwrap_or(0));
        let drawn = |width: usize| width.max(PADDED_FEATURES);
        let (slot, slot_drawn_as) = (d_edge + d_time + d_mite, drawn(d_edge) + d_time + d_mite);
        let (node, node_drawn_as) = (d + d_node + d_mite, d + drawn(d_node) + d_mite);
        let share = |width: usize| Arc::new(Tensor::full(Shape::Vector(width), 1.0 / f32::from(FAR_BACK)));
        let model = Self {
            config: config.clone(),
            frequencies: frequencies(d_time)?.into(),
            share: widths.node.map(share),
            mite: layers.mite(config)?,
            project: layers.linear_as("project", slot, slot_drawn_as, d)?,
            mixers: (0..n_blocks)
                .map(|i| Mixer::new(layers, &format!("mixers.{i}"), neighbors, d))
                .collect::<Result<_>>()?,
            output: layers.linear_as("output", node, node_drawn_as, d)?,
            head: layers.pair_head(d)?,
        };
        Ok((model, parameters))
    }

    /// Each root's events in its slots, the newest in the last, `[2B·K, d]`, and the bias `[d]` that all slots still lack.
    fn pad_ragged(&self, tape: &mut Tape<'_>, known: &HopFeatures<'_>) -> Result<(Var, Var)> {
        let HopInput { roots, first, .. } = known.input();
        let n_slots = self.config.neighbors;
        let edges = known.edges(tape, first)?; // [F, De]
        let (ages, frequencies) = (tape.input(Arc::clone(&first.ages)), tape.table(&self.frequencies));
        let times = tape.linear(ages, frequencies, None, Some(Activation::Cos))?; // [F, Dt]
        let mite = known.mite(tape, &first.entries)?; // [F, Dm]
        let events: Vec<Var> = edges.into_iter().chain([times]).chain(mite).collect();
        let events = tape.concat(&events)?; // [F, De + Dt + Dm]
        let [weight, bias] = self.project.vars(tape);
        let events = tape.linear(events, weight, None, None)?; // [F, d]
        let mut places = first.places(n_slots);
        for (group, first_slot) in first.groups.ranges().zip((0..).step_by(n_slots)) {
            places[group].iter_mut().for_each(|place| *place += first_slot);
        }
        Ok((tape.scatter(events, places, roots.len * n_slots)?, bias))
    }

    /// Features of each root and a little of its neighbours', `[2B, Dn]`; nothing where the data set has none.
    fn features(&self, tape: &mut Tape<'_>, known: &HopFeatures<'_>) -> Result<Option<Var>> {
        let HopInput { roots, node_means, .. } = known.input();
        let Some(own) = known.nodes(tape, roots)? else { return Ok(None) };
        let means = tape.input(node_means.clone().ok_or(Error::MissingInput)?); // [2B, Dn]
        let share = tape.table(self.share.as_ref().ok_or(Error::MissingInput)?);
        let share = tape.repeat_row(share, roots.len)?;
        let around = tape.mul(means, share)?;
        Ok(Some(tape.add(own, around)?))
    }
}

impl Model for GraphMixer {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn encoding(&self) -> PairEncoding {
        self.config.encoding(self.config.neighbors + 1)
    }

    fn layout(&self) -> Layout {
        Layout::Hops(HopLayout {
            places: self.config.neighbors,
            mean_over: Some(FAR_BACK.into()),
            ..HopLayout::default()
        })
    }

    fn nodes(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let input = input.hops()?;
        let known = HopFeatures::new(tape, input, self.mite)?;
        let (mut slots, bias) = self.pad_ragged(tape, &known)?; // [2B·K, d]
        let mut lacking = Some(bias);
        for (mixer, place) in self.mixers.iter().zip(0..) {
            slots = mixer.forward(tape, slots, lacking.take(), dropout.site(place))?;
        }
        let roots = &input.roots;
        let groups = Ragged::from_lengths(std::iter::repeat_n(self.config.neighbors, roots.len));
        let events = tape.segment_mean(slots, &groups)?; // [2B, d]
        let features = self.features(tape, &known)?;
        let mite = known.mite(tape, roots)?;
        let joined: Vec<Var> = [events].into_iter().chain(features).chain(mite).collect();
        let joined = tape.concat(&joined)?; // [2B, d + Dn + Dm]
        self.output.forward(tape, joined, None)
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let nodes = self.nodes(tape, input, dropout)?;
        self.head.forward(tape, nodes)
    }
}

/// One perceptron across the slots of a root, the same for each feature, then one across features, the same for each slot.
#[derive(Debug, Clone, Copy)]
struct Mixer {
    token_norm: Norm,
    token: [Linear; 2],
    channel_norm: Norm,
    channel: [Linear; 2],
    n_slots: usize,
}

impl Mixer {
    fn new(layers: &mut ParamBuilder<'_>, name: &str, n_slots: usize, d: usize) -> Result<Self> {
        let half = (n_slots / 2).max(1);
        Ok(Self {
            token_norm: layers.norm(&format!("{name}.token-norm"), n_slots)?,
            token: [
                layers.linear(&format!("{name}.token-up"), n_slots, half)?,
                layers.linear(&format!("{name}.token-down"), half, n_slots)?,
            ],
            channel_norm: layers.norm(&format!("{name}.channel-norm"), d)?,
            channel: [
                layers.linear(&format!("{name}.channel-up"), d, 4 * d)?,
                layers.linear(&format!("{name}.channel-down"), 4 * d, d)?,
            ],
            n_slots,
        })
    }

    /// `[2B·K, d]` for `x` `[2B·K, d]` and what is `lacking` in each slot, `[d]`.
    ///
    /// What is the same in all slots falls out of a norm over them, so it is added behind. A root without events is then
    /// exactly zero there; with it, the norm would magnify the rounding of a mean, and of its gradient, by 1/√ε.
    fn forward(self, tape: &mut Tape<'_>, x: Var, lacking: Option<Var>, dropout: Dropout) -> Result<Var> {
        let (rows, d) = (tape.shape(x).rows(), tape.shape(x).cols());
        let turned = tape.swap_axes(x, self.n_slots)?; // [2B·d, K]
        let turned = self.token_norm.forward(tape, turned)?;
        let mixed = perceptron(tape, self.token, turned, dropout.site(0))?;
        let mixed = tape.swap_axes(mixed, d)?; // [2B·K, d]
        let mut x = tape.add(x, mixed)?;
        if let Some(lacking) = lacking {
            let lacking = tape.repeat_row(lacking, rows)?;
            x = tape.add(x, lacking)?;
        }
        let normed = self.channel_norm.forward(tape, x)?;
        let mixed = perceptron(tape, self.channel, normed, dropout.site(1))?;
        Ok(tape.add(x, mixed)?)
    }
}

/// Two layers, GELU between them, dropout behind each.
fn perceptron(tape: &mut Tape<'_>, [up, down]: [Linear; 2], x: Var, dropout: Dropout) -> Result<Var> {
    let hidden = up.forward(tape, x, Some(Activation::Gelu))?;
    let hidden = tape.dropout(hidden, dropout.site(0));
    let out = down.forward(tape, hidden, None)?;
    Ok(tape.dropout(out, dropout.site(1)))
}
