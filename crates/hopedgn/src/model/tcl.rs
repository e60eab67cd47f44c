//! TCL: a transformer over the neighbourhoods of both nodes, which look at themselves and then at one another.
//!
//! Paper: "TCL: Transformer-based Dynamic Graph Modelling via Contrastive Learning".
//!
//! Shapes: `B` pairs, so `2B` sides; `T` tokens of all sides, each root before its neighbours; `F` neighbours; `d` width of a
//! token; `Dm`, `Dn`, `De`, `Dt` widths of MITE, node, edge and time features.
//!
//! # Differences from the paper
//! It is the model that comparisons use, after DyGLib's:
//! - **Learning** is link prediction, not contrast.
//! - **Neighbours** are those of one hop, known by features, age and place in the sequence. The paper walks some hops back
//!   through the graph and knows nodes by their depth.
//! - **Weights** of looking at oneself and at one another are the same.
//! - **Padding**: there is none. The library pads and then masks what it padded, so `padding = "dyglib"` is the same.
//! - **Features** are not padded with zeros; weights are drawn as if they were. Absent ones are the bias of their projection.
//!
//! # MITE
//! A fifth summand of a token, beside node, edge, time and place.

use std::sync::Arc;

use ctdg::mite::PairEncoding;
use hopedgn_tensor::{Dropout, Indices, ParameterId, Parameters, Ragged, Tape, Var};

use super::Model;
use crate::Result;
use crate::collate::{Entries, FeatureWidths, HopInput, Input};
use crate::config::ModelConfig;
use crate::nn::{
    Channel, HopFeatures, Linear, MiteEmbedding, PADDED_FEATURES, PairHead, ParamBuilder, PostNorm, TimeEncoding,
};

/// The model without its weights, which lie in [`Parameters`].
#[derive(Debug, Clone)]
pub struct Tcl {
    config: ModelConfig,
    time: TimeEncoding,
    node_channel: Channel,
    edge_channel: Channel,
    time_channel: Channel,
    mite: Option<(MiteEmbedding, Channel)>,
    /// `[neighbors + 1, d]`, the root's first.
    position: ParameterId,
    blocks: Vec<PostNorm>,
    output: Linear,
    head: PairHead,
}

impl Tcl {
    /// A model for features of these widths, with weights drawn from `seed`.
    pub fn new(config: &ModelConfig, widths: FeatureWidths, seed: u64) -> Result<(Self, Parameters)> {
        let ModelConfig { d_out: d, d_time, d_mite, n_blocks, n_heads, neighbors, .. } = *config;
        config.check_heads(&[("model.d-out", d)])?;
        let mut parameters = Parameters::default();
        let layers = &mut ParamBuilder::new(&mut parameters, seed);
        let channel = |layers: &mut ParamBuilder<'_>, name: &str, width: Option<usize>, at_least: usize| {
            layers.channel(&format!("project.{name}"), width, width.unwrap_or(0).max(at_least), d)
        };
        let mite = match layers.mite(config)? {
            Some(mite) => Some((mite, channel(layers, "mite", Some(d_mite), 0)?)),
            None => None,
        };
        let model = Self {
            config: config.clone(),
            time: layers.time_encoding("time", d_time)?,
            node_channel: channel(layers, "node", widths.node, PADDED_FEATURES)?,
            edge_channel: channel(layers, "edge", widths.edge, PADDED_FEATURES)?,
            time_channel: channel(layers, "time", Some(d_time), 0)?,
            mite,
            position: layers.normal("position", neighbors + 1, d)?,
            blocks: (0..n_blocks)
                .map(|i| layers.post_norm(&format!("blocks.{i}"), d, n_heads))
                .collect::<Result<_>>()?,
            output: layers.linear("output", d, d)?,
            head: layers.pair_head(d)?,
        };
        Ok((model, parameters))
    }

    /// What is known of each token, `[T, d]`. A root has no event and no age: both are zeros.
    fn tokens(&self, tape: &mut Tape<'_>, input: &HopInput, sides: &Sides) -> Result<Var> {
        let n_tokens = sides.groups.total();
        let known = HopFeatures::new(tape, input, self.mite.map(|(mite, _)| mite))?;
        let nodes = known.nodes(tape, &sides.tokens)?; // [T, Dn]
        let edges = match known.edges(tape, &input.first)? {
            Some(edges) => Some(tape.scatter(edges, &sides.neighbors, n_tokens)?), // [T, De]
            None => None,
        };
        let ages = tape.input(Arc::clone(&input.first.ages)); // [F, 1]
        let ages = tape.scatter(ages, &sides.neighbors, n_tokens)?;
        let times = self.time.forward(tape, ages)?; // [T, Dt]
        let mut summands =
            vec![(self.node_channel, nodes), (self.edge_channel, edges), (self.time_channel, Some(times))];
        if let Some((_, channel)) = self.mite {
            summands.push((channel, known.mite(tape, &sides.tokens)?));
        }
        let features = Channel::sum(tape, &summands)?; // [T, d]
        let position = tape.parameter(self.position);
        let positions = tape.gather(position, sides.positions(input, self.config.neighbors))?;
        Ok(tape.add(features, positions)?)
    }
}

impl Model for Tcl {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn encoding(&self) -> PairEncoding {
        self.config.encoding(self.config.neighbors + 1)
    }

    fn nodes(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let input = input.hops()?;
        let sides = Sides::of(input);
        let one_each = Ragged::from_lengths(std::iter::repeat_n(1, input.roots.len));
        let mut x = self.tokens(tape, input, &sides)?; // [T, d]
        for (block, place) in self.blocks.iter().zip((0..).step_by(2)) {
            x = block.forward(tape, x, x, &sides.groups, &sides.groups, dropout.site(place))?;
            let other = tape.gather(x, &sides.partners)?; // [T, d]
            let (mut lookers, mut groups) = (x, &sides.groups);
            if place / 2 + 1 == self.blocks.len() as u64 {
                // Of what comes out at the end, only the roots' rows are read.
                (lookers, groups) = (tape.gather(x, &sides.roots)?, &one_each); // [2B, d]
            }
            x = block.forward(tape, lookers, other, groups, &sides.partner_groups, dropout.site(place + 1))?;
        }
        self.output.forward(tape, x, None)
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let nodes = self.nodes(tape, input, dropout)?;
        self.head.forward(tape, nodes)
    }
}

/// The tokens of both sides of all pairs, each root before its neighbours.
struct Sides {
    groups: Ragged,
    tokens: Entries,
    /// The token of each root.
    roots: Indices,
    /// The token of each neighbour.
    neighbors: Indices,
    /// For each side in turn, the tokens of the other side of its pair.
    partners: Indices,
    partner_groups: Ragged,
}

impl Sides {
    fn of(input: &HopInput) -> Self {
        let (roots, first) = (&input.roots, &input.first.entries);
        let (groups, order) = input.sequences();
        let in_order = |of_roots: &Option<Indices>, of_first: &Option<Indices>| {
            let (of_roots, of_first) = (of_roots.as_ref()?, of_first.as_ref()?);
            let pick =
                |&at: &u32| of_roots.get(at as usize).copied().unwrap_or_else(|| of_first[at as usize - roots.len]);
            Some(order.iter().map(pick).collect())
        };
        let numbered: Vec<u32> = (0..).take(order.len()).collect();
        let (of_roots, of_neighbors): (Vec<u32>, Vec<u32>) =
            numbered.iter().partition(|&&token| (order[token as usize] as usize) < roots.len);
        let others = || (0..groups.len()).map(|side| groups.range(side ^ 1));
        Self {
            tokens: Entries {
                len: order.len(),
                nodes: in_order(&roots.nodes, &first.nodes),
                edges: None,
                rows: in_order(&roots.rows, &first.rows),
            },
            roots: of_roots.into(),
            neighbors: of_neighbors.into(),
            partners: others().flat_map(|other| &numbered[other]).copied().collect(),
            partner_groups: Ragged::from_lengths(others().map(|other| other.len())),
            groups,
        }
    }

    /// The row of `position` of each token: the root's is the first, the newest neighbour's always the last.
    fn positions(&self, input: &HopInput, n_neighbors: usize) -> Vec<u32> {
        let mut positions = vec![0; self.tokens.len];
        for (&token, place) in self.neighbors.iter().zip(input.first.places(n_neighbors)) {
            positions[token as usize] = place + 1;
        }
        positions
    }
}
