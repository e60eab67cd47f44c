//! PINT: a memory of each node, injective sums over one or two hops, and walk counts as relative positions.
//!
//! Paper: "Provably Expressive Temporal Graph Networks".
//!
//! With `h⁰_u = s_u + x_u` the memory and features of `u`, and `r_u` the relative positions of `u` to source and destination:
//!
//! ```text
//! s_u ← GRU([s_u ‖ s_v ‖ Φ(Δt) ‖ e], s_u)                                     as TGN
//! h̃ˡ_u = Σ MLP_agg([hˡ⁻¹_w ‖ e ‖ r_w]) · 2^(−β (t − t') / √n)      over (w, t') of N(u, t), n = |N(u, t)|
//! hˡ_u = MLP_upd([h̃ˡ_u ‖ h⁰_u ‖ r_u])
//! logit = head([h_u ‖ h_v])
//! ```
//!
//! `r` are the shares of walks of length 0 to 3 to the root and to the other node of the pair.
//!
//! Shapes: `B` pairs, so `2B` roots; `F` neighbours of roots, `G` neighbours of those; `U` distinct nodes of the batch; `R` distinct
//! nodes within the pairs; `d` width of a memory; `Dm`, `De` widths of MITE and edge features. In a layer, `M` nodes read `F`
//! neighbours.
//!
//! # Differences from the paper
//! - **Own part**: the paper updates `u` from `hˡ⁻¹_u`. The authors' code reads `h⁰_u` in every layer, and so do we.
//! - **Messages** are TGN's: of several events of a node in one batch the newest counts. In the authors' code, as in DyGLib, it is the
//!   newest in which the node was the destination, where there is one; `message-order = "dyglib"` does the same.
//! - **Self-loops** add one step to the walks of `r`, as in the authors' code, where both directions assign the same value.
//! - `revision = 1` computes what versions up to 0.2 did: `hˡ⁻¹_u`, and two steps for a self-loop. Runs without that setting are theirs.
//! - **Shared work**: the product of a layer with a memory is computed once per node, and the second product of `MLP_agg`, which
//!   is linear, once per sum. The result is the same.
//! - **Dropout**: none.
//!
//! # MITE
//! Concatenated to the memory of every node, of both hops and of the roots, wherever a layer reads it. A node of the second hop
//! without events with source or destination has no intervals.

use std::ops::Range;
use std::sync::Arc;

use ctdg::mite::{PairEncoderConfig, SecondHopTime};
use ctdg::walk_counts::SelfLoops;
use hopedgn_tensor::{Activation, Dropout, Indices, Parameters, Ragged, Tape, Tensor, Var};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::bounds::{check_hops, check_size, refuse, within};
use super::{CommonSettings, Model, ModelName};
use crate::collate::{Entries, FeatureWidths, Hop, HopInput, HopLayout, Input, Layout, MiteSettings, NeighborSettings};
use crate::memory::{MemoryForm, MemoryRead, MessageOrder};
use crate::nn::{
    HopFeatures, InputColumns, Linear, Memories, MemoryCell, MemoryUpdater, MemoryWidths, MiteEmbedding,
    PADDED_FEATURES, PairHead, ParamBuilder,
};
use crate::{Error, Result};

/// Width of `r`: walks of length 0 to 3 to the root, and to the other node.
const POSITIONS: usize = 8;

/// Settings of [`Pint`].
///
/// See [`Pint`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct PintSettings {
    /// Sampled neighbours, 10 by default.
    #[serde(flatten)]
    pub past: NeighborSettings,
    /// Layers, which are hops: 1 or 2.
    pub n_blocks: usize,
    /// Decay β of old events, per unit of time.
    pub beta: f32,
    /// Which message of a batch updates a node's memory.
    pub message_order: MessageOrder,
    /// 2: as in the authors' code. 1: as in versions up to 0.2, for their runs.
    pub revision: usize,
    /// MITE.
    #[serde(flatten)]
    pub mite: MiteSettings,
}

impl Default for PintSettings {
    fn default() -> Self {
        Self {
            past: NeighborSettings { neighbors: 10, ..NeighborSettings::default() },
            n_blocks: 2,
            beta: 1e-5,
            message_order: MessageOrder::Newest,
            revision: 2,
            mite: MiteSettings::default(),
        }
    }
}

impl PintSettings {
    /// Whether every layer updates a node from its own h⁰, not from its embedding below.
    fn reads_own_features(&self) -> bool {
        self.revision > 1
    }

    fn self_loops(&self) -> SelfLoops {
        if self.revision > 1 { SelfLoops::Once } else { SelfLoops::Twice }
    }

    pub(super) fn check(&self, common: &CommonSettings) -> Result<()> {
        within(&[("model.neighbors", self.past.neighbors, 1 << 20), ("model.n-blocks", self.n_blocks, 1 << 10)])?;
        if !(self.beta.is_finite() && self.beta >= 0.0) {
            return refuse("model.beta", self.beta, "a number of at least 0");
        }
        if !matches!(self.revision, 1 | 2) {
            return refuse("model.revision", self.revision, "1 or 2");
        }
        check_size(self.n_blocks, common)?;
        check_hops(self.n_blocks, self.past.neighbors)
    }
}

/// PINT.
///
/// ```
/// use hopedgn::collate::FeatureWidths;
/// use hopedgn::model::{CommonSettings, Model, Pint, PintSettings};
///
/// let (model, _) = Pint::new(&PintSettings::default(), &CommonSettings::DEFAULT, FeatureWidths::default(), 0)?;
/// assert!(model.memory().is_some_and(|form| form.positions.is_some())); // it counts walks
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Pint {
    settings: PintSettings,
    common: CommonSettings,
    memory: MemoryUpdater,
    mite: Option<MiteEmbedding>,
    layers: Vec<Layer>,
    head: PairHead,
}

/// The two perceptrons of a layer.
#[derive(Debug, Clone, Copy)]
struct Layer {
    aggregate: [Linear; 2],
    update: [Linear; 2],
    d: usize,
}

/// Nodes with their embeddings below a layer.
#[derive(Debug, Clone, Copy)]
struct Nodes<'a> {
    /// h, `[U, d]`; without `rows`, `[nodes, d]`.
    values: Var,
    /// The row of each node among the `U`.
    rows: Option<&'a Indices>,
    /// `[R + 1, Dm]`, and the row of each node.
    mite: Option<(Var, &'a Indices)>,
    /// r, `[nodes, 8]`.
    positions: Var,
}

/// Columns of a layer's input, and the first column after them.
struct NodeColumns<'a> {
    columns: Vec<InputColumns<'a>>,
    end: usize,
}

impl<'a> Nodes<'a> {
    /// h and MITE as input columns from `first` on.
    fn columns(&self, tape: &Tape<'_>, first: usize) -> NodeColumns<'a> {
        let end = first + tape.shape(self.values).cols();
        let values = InputColumns { first, values: self.values, rows: self.rows };
        let Some((mite, rows)) = self.mite else { return NodeColumns { columns: vec![values], end } };
        let columns = vec![values, InputColumns::shared(end, mite, rows)];
        NodeColumns { columns, end: end + tape.shape(mite).cols() }
    }
}

impl Pint {
    /// The model for features of these widths, with parameters drawn from `seed`.
    pub fn new(
        settings: &PintSettings,
        common: &CommonSettings,
        widths: FeatureWidths,
        seed: u64,
    ) -> Result<(Self, Parameters)> {
        let CommonSettings { d_out: d, d_time, .. } = *common;
        settings.check(common)?;
        widths.check_nodes(d)?;
        let mut parameters = Parameters::default();
        let builder = &mut ParamBuilder::new(&mut parameters, seed);
        let d_edge = widths.edge.unwrap_or(0);
        let layer = |l: usize| -> Result<Layer> {
            let features = d + settings.mite.width(); // h⁰ with MITE
            let below = if l == 1 { features } else { d };
            let own = if settings.reads_own_features() { features } else { below };
            let width = below + POSITIONS;
            let fan_in = width + d_edge.max(PADDED_FEATURES);
            Ok(Layer {
                aggregate: [
                    builder.linear_with_fan_in(&format!("layers.{l}.message.hidden"), width + d_edge, fan_in, d)?,
                    builder.linear(&format!("layers.{l}.message.out"), d, d)?,
                ],
                update: [
                    builder.linear(&format!("layers.{l}.update.hidden"), d + own + POSITIONS, d)?,
                    builder.linear(&format!("layers.{l}.update.out"), d, d)?,
                ],
                d,
            })
        };
        let layers = (1..=settings.n_blocks).map(layer).collect::<Result<_>>()?;
        let time = builder.time_encoding("time", d_time)?;
        let memory_widths = MemoryWidths { state: d, time: d_time, features: widths };
        let memory = builder.memory_updater(memory_widths, MemoryCell::Gru, time, settings.message_order)?;
        let model = Self {
            settings: *settings,
            common: *common,
            memory: memory.with_positions(settings.self_loops()),
            mite: builder.mite(&settings.mite)?,
            layers,
            head: builder.pair_head(d, &common.statistics)?,
        };
        Ok((model, parameters))
    }

    /// h⁰ of all nodes of the batch, `[U, d]`.
    fn states(&self, tape: &mut Tape<'_>, features: &HopFeatures<'_>, read: &MemoryRead, states: Var) -> Result<Var> {
        if features.input().nodes.is_none() {
            return Ok(states);
        }
        // Rows of the memory are nodes.
        let rows: Indices = read.pending.iter().chain(&*read.idle).copied().collect();
        let nodes = Entries { len: rows.len(), nodes: Some(rows), edges: None, rows: None };
        let x = features.nodes_padded_to(tape, &nodes, self.common.d_out)?.ok_or(Error::MissingInput)?;
        Ok(tape.add(states, x)?)
    }

    /// h of each root, `[2B, d]`.
    fn embed<'i>(&self, tape: &mut Tape<'_>, input: &'i HopInput, memories: &Memories<'i>) -> Result<Var> {
        let read = memories.read;
        let positions = read.positions.as_ref().ok_or(Error::MissingInput)?;
        let positions = positions.each_ref().map(|positions| tape.input(Arc::clone(positions)));
        let features = HopFeatures::new(tape, input, self.mite)?;
        let values = self.states(tape, &features, read, memories.nodes)?; // [U, d]
        let below = |entries: &'i Entries, rows, positions| -> Result<Nodes<'i>> {
            let mite_rows = || entries.rows.as_ref().ok_or(Error::MissingInput);
            let mite = features.mite_table().map(|mite| mite_rows().map(|rows| (mite, rows))).transpose()?;
            Ok(Nodes { values, rows: Some(rows), mite, positions })
        };
        let first = below(&input.first.entries, &read.first, positions[1])?;
        let roots = below(&input.roots, &read.roots, positions[0])?;
        let edges = features.edges(tape, &input.first)?; // [F, De]
        let decay = Decay::of(&input.first, self.settings.beta)?;
        let Some(hop) = &input.second else { return self.layers[0].forward(tape, roots, &decay, first, edges) }; // [2B, d]

        let rows = read.second.as_ref().ok_or(Error::MissingInput)?;
        let second = below(&hop.entries, rows, positions[2])?;
        let second_edges = features.edges(tape, hop)?; // [G, De]
        let second_decay = Decay::of(hop, self.settings.beta)?;
        let h1_first = self.layers[0].forward(tape, first, &second_decay, second, second_edges)?; // [F, d]
        let neighbors = Nodes { values: h1_first, rows: None, mite: None, ..first };
        let own = if self.settings.reads_own_features() {
            roots
        } else {
            let h1_roots = self.layers[0].forward(tape, roots, &decay, first, edges)?; // [2B, d]
            Nodes { values: h1_roots, rows: None, mite: None, ..roots }
        };
        self.layers[1].forward(tape, own, &decay, neighbors, edges) // [2B, d]
    }
}

impl Layer {
    /// `[M, d]` for nodes and their neighbours.
    fn forward(
        self,
        tape: &mut Tape<'_>,
        nodes: Nodes<'_>,
        decay: &Decay<'_>,
        neighbors: Nodes<'_>,
        edges: Option<Var>,
    ) -> Result<Var> {
        // MLP_agg
        let NodeColumns { mut columns, end } = neighbors.columns(tape, 0);
        let rest: Vec<Var> = edges.into_iter().chain([neighbors.positions]).collect();
        columns.push(InputColumns::own(end, tape.concat(&rest)?));
        let bias = self.aggregate[0].bias(tape);
        let hidden = self.aggregate[0].forward_columns(tape, bias, &columns)?;
        let hidden = tape.activate(hidden, Activation::Relu); // [F, d]
        let sum = self.sum(tape, decay, hidden)?; // [M, d]

        // MLP_upd
        let NodeColumns { mut columns, end } = nodes.columns(tape, self.d);
        columns.push(InputColumns::own(0, sum));
        columns.push(InputColumns::own(end, nodes.positions));
        let bias = self.update[0].bias(tape);
        let hidden = self.update[0].forward_columns(tape, bias, &columns)?;
        let hidden = tape.activate(hidden, Activation::Relu); // [M, d]
        self.update[1].forward(tape, hidden, None)
    }

    /// h̃, `[M, d]`, from the hidden layer of `MLP_agg`: Σ a (W h + b) = W Σ a h + b Σ a.
    fn sum(self, tape: &mut Tape<'_>, decay: &Decay<'_>, hidden: Var) -> Result<Var> {
        let hidden = tape.segment_sum(hidden, Some(&decay.factors), decay.groups)?; // [M, d]
        let messages = self.aggregate[1].forward_without_bias(tape, hidden)?;
        let bias = self.aggregate[1].bias(tape);
        let bias = tape.reshape(bias, self.d, 1)?;
        let sums = tape.input(Arc::clone(&decay.sums)); // [M, 1]
        let biases = tape.linear(sums, bias, None, None)?; // [M, d]
        Ok(tape.add(messages, biases)?)
    }
}

/// The factors 2^(−β (t − t') / √n) of a hop.
struct Decay<'a> {
    groups: &'a Ragged,
    /// `[F, 1]`
    factors: Arc<Tensor>,
    /// Their sum for each node, `[M, 1]`.
    sums: Arc<Tensor>,
}

impl<'a> Decay<'a> {
    fn of(hop: &'a Hop, beta: f32) -> Result<Self> {
        let groups: Vec<_> = hop.groups.ranges().collect();
        let factors = |group: &Range<usize>| {
            let root = (group.len() as f64 + 1e-4).sqrt();
            #[expect(clippy::cast_possible_truncation, reason = "computed in f64, kept in f32")]
            let factor = move |&age: &f32| (-(f64::from(beta) * f64::from(age)).max(0.0) / root).exp2() as f32;
            hop.ages.values()[group.clone()].iter().map(factor)
        };
        let factors: Vec<f32> = groups.par_iter().flat_map_iter(factors).collect();
        let sums: Vec<f32> = groups.into_iter().map(|group| factors[group].iter().sum()).collect();
        let factors = Tensor::matrix(factors.len(), 1, factors)?.into();
        Ok(Self { groups: &hop.groups, factors, sums: Tensor::matrix(sums.len(), 1, sums)?.into() })
    }
}

impl Model for Pint {
    fn name(&self) -> ModelName {
        ModelName::Pint
    }

    fn encoding(&self) -> PairEncoderConfig {
        let PintSettings { past, n_blocks, mite, .. } = &self.settings;
        past.hops(mite, *n_blocks, SecondHopTime::Query)
    }

    fn layout(&self) -> Layout {
        Layout::Hops(HopLayout { mite: self.settings.mite.normaliser(), ..HopLayout::default() })
    }

    fn memory(&self) -> Option<MemoryForm> {
        Some(self.memory.form())
    }

    fn dropout(&self) -> f32 {
        self.common.dropout
    }

    fn width(&self) -> usize {
        self.common.d_out
    }

    fn nodes(&self, tape: &mut Tape<'_>, input: &Input, _: Dropout) -> Result<Var> {
        let input = input.hops()?;
        let memories = self.memory.advance(tape, input)?; // [U, d], [2B, d]
        self.embed(tape, input, &memories)
    }

    fn memory_updater(&self) -> Option<MemoryUpdater> {
        Some(self.memory)
    }

    fn head(&self) -> Option<PairHead> {
        Some(self.head)
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let nodes = self.nodes(tape, input, dropout)?; // [2B, d]
        self.head.forward_nodes(tape, nodes, input, dropout)
    }
}
