//! PINT: a memory of each node, sums over the nodes it met and those they met, and counts of walks as positions.
//!
//! Paper: "Provably Expressive Temporal Graph Networks".
//!
//! Shapes: `B` pairs, so `2B` roots; `F` neighbours of roots, `S` neighbours of those; `U` distinct nodes among all of them;
//! `d` width of a memory; `Dm`, `De` widths of MITE and edge features. `N` nodes look at `E` neighbours in a layer.
//!
//! # Differences from the paper
//! - **Messages** of memories are TGN's, as in the authors' code: of several events of a node in one batch the newest
//!   counts. In DyGLib the last one in which it was the destination does; `message-order = "dyglib"` does the same.
//! - **Shared work**: what a layer makes of a memory is computed once a node, and the second product of messages, which is
//!   linear, once a sum of them. The result is the same.
//! - **Features** of nodes are added to memories, as in TGN. Those of events are not padded with zeros; weights are drawn as
//!   if they were.
//! - **Nobody**: a node without a past sums nothing, with any `padding`.
//! - **Dropout**: there is none.
//!
//! # MITE
//! Stands behind the memory of every node, of both hops and of the roots, wherever that enters a layer. A node of the second
//! hop that neither source nor destination met has no intervals.

use std::ops::Range;
use std::sync::Arc;

use ctdg::mite::{PairEncoding, SecondTime};
use hopedgn_tensor::{Activation, Dropout, Indices, Parameters, Ragged, Tape, Tensor, Var};
use rayon::prelude::*;

use super::Model;
use crate::collate::{Entries, FeatureWidths, Hop, HopInput, Input};
use crate::config::ModelConfig;
use crate::memory::{MemoryForm, MemoryRead};
use crate::nn::{
    Cell, HopFeatures, Linear, MemoryUpdater, MiteEmbedding, PADDED_FEATURES, PairHead, ParamBuilder, Part,
};
use crate::{Error, Result};

/// Walks of length 0 to 3 to the root, and to the other node of the pair.
const POSITIONS: usize = 8;

/// The model without its weights, which lie in [`Parameters`].
#[derive(Debug, Clone)]
pub struct Pint {
    config: ModelConfig,
    memory: MemoryUpdater,
    mite: Option<MiteEmbedding>,
    layers: Vec<Layer>,
    head: PairHead,
}

/// The two perceptrons of a layer.
#[derive(Debug, Clone, Copy)]
struct Layer {
    message: [Linear; 2],
    update: [Linear; 2],
    d: usize,
}

/// Nodes with what stands for them below a layer.
#[derive(Debug, Clone, Copy)]
struct Nodes<'a> {
    /// `[U, d]`, or `[N, d]` with `places` left out.
    values: Var,
    /// Where each node stands among the `U`.
    places: Option<&'a Indices>,
    /// `[R + 1, Dm]`, and the row of each node.
    mite: Option<(Var, &'a Indices)>,
    /// `[N, 8]`
    positions: Var,
}

impl<'a> Nodes<'a> {
    /// The parts of a layer that stand for the nodes, from column `first` on, and the column behind them.
    fn parts(&self, tape: &Tape<'_>, first: usize) -> (Vec<Part<'a>>, usize) {
        let behind = first + tape.shape(self.values).cols();
        let values = Part { first, values: self.values, places: self.places };
        let Some((mite, rows)) = self.mite else { return (vec![values], behind) };
        (vec![values, Part::shared(behind, mite, rows)], behind + tape.shape(mite).cols())
    }
}

impl Pint {
    /// A model for features of these widths, with weights drawn from `seed`.
    pub fn new(config: &ModelConfig, widths: FeatureWidths, seed: u64) -> Result<(Self, Parameters)> {
        let ModelConfig { d_out: d, d_time, n_blocks, .. } = *config;
        config.check_hops(2)?;
        widths.check_nodes(d)?;
        let mut parameters = Parameters::default();
        let layers = &mut ParamBuilder::new(&mut parameters, seed);
        let d_mite = if config.mite { config.d_mite } else { 0 };
        let d_edge = widths.edge.unwrap_or(0);
        let layer = |index: usize| -> Result<Layer> {
            let below = if index == 1 { d + d_mite } else { d };
            let beside = below + POSITIONS;
            let drawn_as = beside + d_edge.max(PADDED_FEATURES);
            Ok(Layer {
                message: [
                    layers.linear_as(&format!("layers.{index}.message.hidden"), beside + d_edge, drawn_as, d)?,
                    layers.linear(&format!("layers.{index}.message.out"), d, d)?,
                ],
                update: [
                    layers.linear(&format!("layers.{index}.update.hidden"), d + beside, d)?,
                    layers.linear(&format!("layers.{index}.update.out"), d, d)?,
                ],
                d,
            })
        };
        let hops = (1..=n_blocks).map(layer).collect::<Result<_>>()?;
        let time = layers.time_encoding("time", d_time)?;
        let model = Self {
            config: config.clone(),
            memory: layers.remember(config, widths, Cell::Gru, time)?.with_positions(),
            mite: layers.mite(config)?,
            layers: hops,
            head: layers.pair_head(d)?,
        };
        Ok((model, parameters))
    }

    /// Memories `[U, d]` with the features of their nodes.
    fn featured(
        &self,
        tape: &mut Tape<'_>,
        known: &HopFeatures<'_>,
        recalled: &MemoryRead,
        memories: Var,
    ) -> Result<Var> {
        if known.input().nodes.is_none() {
            return Ok(memories);
        }
        // Rows of the memory are nodes.
        let rows: Indices = recalled.waiting.iter().chain(&*recalled.quiet).copied().collect();
        let nodes = Entries { len: rows.len(), nodes: Some(rows), edges: None, rows: None };
        let features = known.wide_nodes(tape, &nodes, self.config.d_out)?.ok_or(Error::MissingInput)?;
        Ok(tape.add(memories, features)?)
    }

    /// What the layers make of each root, `[2B, d]`; `memories` are those of all nodes.
    fn embed<'i>(
        &self,
        tape: &mut Tape<'_>,
        input: &'i HopInput,
        recalled: &'i MemoryRead,
        memories: Var,
    ) -> Result<Var> {
        let positions = recalled.positions.as_ref().ok_or(Error::MissingInput)?;
        let positions = positions.each_ref().map(|positions| tape.input(Arc::clone(positions)));
        let known = HopFeatures::new(tape, input, self.mite)?;
        let values = self.featured(tape, &known, recalled, memories)?;
        let below = |entries: &'i Entries, places, positions| -> Result<Nodes<'i>> {
            let rows = || entries.rows.as_ref().ok_or(Error::MissingInput);
            let mite = known.mite_of_all().map(|mite| rows().map(|rows| (mite, rows))).transpose()?;
            Ok(Nodes { values, places: Some(places), mite, positions })
        };
        let first = below(&input.first.entries, &recalled.first, positions[1])?;
        let roots = below(&input.roots, &recalled.roots, positions[0])?;
        let edges = known.edges(tape, &input.first)?;
        let fading = Fading::of(&input.first, self.config.beta)?;
        let embedded = self.layers[0].forward(tape, roots, &fading, first, edges)?; // [2B, d]
        let Some(hop) = &input.second else { return Ok(embedded) };

        let places = recalled.second.as_ref().ok_or(Error::MissingInput)?;
        let second = below(&hop.entries, places, positions[2])?;
        let further_edges = known.edges(tape, hop)?;
        let further_fading = Fading::of(hop, self.config.beta)?;
        let met = self.layers[0].forward(tape, first, &further_fading, second, further_edges)?; // [F, d]
        let roots = Nodes { values: embedded, places: None, mite: None, ..roots };
        let first = Nodes { values: met, places: None, mite: None, ..first };
        self.layers[1].forward(tape, roots, &fading, first, edges)
    }
}

impl Layer {
    /// `[N, d]` for nodes that look at the neighbours of a hop, which fade.
    fn forward(
        self,
        tape: &mut Tape<'_>,
        lookers: Nodes<'_>,
        fading: &Fading<'_>,
        neighbours: Nodes<'_>,
        edges: Option<Var>,
    ) -> Result<Var> {
        let (mut parts, behind) = neighbours.parts(tape, 0);
        let beside: Vec<Var> = edges.into_iter().chain([neighbours.positions]).collect();
        parts.push(Part::own(behind, tape.concat(&beside)?));
        let bias = self.message[0].bias(tape);
        let hidden = self.message[0].of_parts(tape, bias, &parts)?;
        let hidden = tape.activate(hidden, Activation::Relu); // [E, d]
        let sum = self.sum(tape, fading, hidden)?; // [N, d]

        let (mut parts, behind) = lookers.parts(tape, self.d);
        parts.push(Part::own(0, sum));
        parts.push(Part::own(behind, lookers.positions));
        let bias = self.update[0].bias(tape);
        let hidden = self.update[0].of_parts(tape, bias, &parts)?;
        let hidden = tape.activate(hidden, Activation::Relu);
        self.update[1].forward(tape, hidden, None)
    }

    /// The sum of each node's messages, older ones by less, given the `hidden` of each: Σ w (W h + b) = W Σ w h + b Σ w.
    fn sum(self, tape: &mut Tape<'_>, fading: &Fading<'_>, hidden: Var) -> Result<Var> {
        let hidden = tape.segment_sum(hidden, Some(&fading.weights), fading.groups)?;
        let messages = self.message[1].product(tape, hidden)?;
        let bias = self.message[1].bias(tape);
        let bias = tape.reshape(bias, self.d, 1)?;
        let sums = tape.input(Arc::clone(&fading.sums));
        let biases = tape.linear(sums, bias, None, None)?;
        Ok(tape.add(messages, biases)?)
    }
}

/// By how much each neighbour of a hop counts.
struct Fading<'a> {
    groups: &'a Ragged,
    /// `[E, 1]`
    weights: Arc<Tensor>,
    /// Of each node that looks, `[N, 1]`.
    sums: Arc<Tensor>,
}

impl<'a> Fading<'a> {
    fn of(hop: &'a Hop, beta: f32) -> Result<Self> {
        let groups: Vec<_> = hop.groups.ranges().collect();
        let weigh = |group: &Range<usize>| {
            let slowness = (group.len() as f64 + 1e-4).sqrt();
            #[expect(clippy::cast_possible_truncation, reason = "computed in f64, kept in f32")]
            let weight = move |&age: &f32| (-(f64::from(beta) * f64::from(age)).max(0.0) / slowness).exp2() as f32;
            hop.ages.values()[group.clone()].iter().map(weight)
        };
        let weights: Vec<f32> = groups.par_iter().flat_map_iter(weigh).collect();
        let sums: Vec<f32> = groups.into_iter().map(|group| weights[group].iter().sum()).collect();
        let weights = Tensor::matrix(weights.len(), 1, weights)?.into();
        Ok(Self { groups: &hop.groups, weights, sums: Tensor::matrix(sums.len(), 1, sums)?.into() })
    }
}

impl Model for Pint {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn encoding(&self) -> PairEncoding {
        self.config.hops(SecondTime::Query)
    }

    fn memory(&self) -> Option<MemoryForm> {
        Some(self.memory.form())
    }

    fn nodes(&self, tape: &mut Tape<'_>, input: &Input, _: Dropout) -> Result<Var> {
        let input = input.hops()?;
        let (recalled, memories, roots) = self.memory.recall(tape, input)?; // [U, d], [2B, d]
        self.memory.remember(tape, input, memories, roots)?;
        self.embed(tape, input, recalled, memories)
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let nodes = self.nodes(tape, input, dropout)?;
        self.head.forward(tape, nodes)
    }
}
