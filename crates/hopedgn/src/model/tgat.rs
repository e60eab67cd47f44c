//! TGAT: attention over the events of a node, and over those of the nodes it met.
//!
//! Paper: "Inductive Representation Learning on Temporal Graphs".
//!
//! Shapes: `B` pairs, so `2B` roots; `F` neighbours of roots, `S` neighbours of those; `d` width of a node, `Dm`, `De`, `Dt`
//! widths of MITE, edge and time features.
//!
//! # Differences from the paper
//! - **Sampling** is of the newest events unless `sampling = "uniform"`; with it a draw depends on the pair and the
//!   time alone, so that a pair's score does not depend on its batch.
//! - **Nobody**: a node without a past attends to nothing. In DyGLib it attends to padding, whose time features are those of
//!   an event at time 0; `padding = "dyglib"` does the same.
//! - **Neighbours are not projected**; see [`TemporalAttention`]. The result is the same.
//! - **Features** of events are not padded with zeros; weights are drawn as if they were.
//!
//! # MITE
//! Stands behind the features of every node, of both hops and of the roots, wherever those enter. A node of the second hop
//! that neither source nor destination met has no intervals.

use ctdg::mite::{PairEncoding, SecondTime};
use hopedgn_tensor::{Dropout, Parameters, Tape, Var};

use super::Model;
use crate::Result;
use crate::collate::{Entries, FeatureWidths, Hop, Input};
use crate::config::ModelConfig;
use crate::nn::{
    Attended, HopFeatures, MiteEmbedding, PADDED_FEATURES, PairHead, ParamBuilder, TemporalAttention, TemporalWidths,
    TimeEncoding, padding_keys, zeros,
};

/// The model without its weights, which lie in [`Parameters`].
#[derive(Debug, Clone)]
pub struct Tgat {
    config: ModelConfig,
    time: TimeEncoding,
    mite: Option<MiteEmbedding>,
    layers: Vec<TemporalAttention>,
    head: PairHead,
}

impl Tgat {
    /// A model for features of these widths, with weights drawn from `seed`.
    pub fn new(config: &ModelConfig, widths: FeatureWidths, seed: u64) -> Result<(Self, Parameters)> {
        let ModelConfig { d_out: d, d_time, n_blocks, n_heads, .. } = *config;
        config.check_hops(2)?;
        widths.check_nodes(d)?;
        let mut parameters = Parameters::default();
        let layers = &mut ParamBuilder::new(&mut parameters, seed);
        let d_mite = if config.mite { config.d_mite } else { 0 };
        let raw = widths.node.map_or(0, |_| d) + d_mite;
        let d_edge = widths.edge.unwrap_or(0);
        let drawn_edge = d_edge.max(PADDED_FEATURES);
        let layer = |index: usize| {
            // Below the second layer a node is its features, above it what the first made of it.
            let (own, key) = if index == 1 { (d + d_mite, raw) } else { (d, d) };
            config.check_heads(&[("model.d-out", d), ("model.d-mite", own - d), ("model.d-time", d_time)])?;
            let widths = TemporalWidths {
                query: own + d_time,
                key: key + d_edge + d_time,
                key_drawn_as: own + drawn_edge + d_time,
                raw,
                raw_drawn_as: d + d_mite,
                out: d,
            };
            layers.temporal(&format!("layers.{index}"), n_heads, widths)
        };
        let attention = (1..=n_blocks).map(layer).collect::<Result<_>>()?;
        let model = Self {
            config: config.clone(),
            time: layers.time_encoding("time", d_time)?,
            mite: layers.mite(config)?,
            layers: attention,
            head: layers.pair_head(d)?,
        };
        Ok((model, parameters))
    }

    /// What is known of `entries` before any layer, `[entries, raw]`; nothing where nothing is.
    fn raw(&self, tape: &mut Tape<'_>, known: &HopFeatures<'_>, entries: &Entries) -> Result<Option<Var>> {
        let nodes = known.wide_nodes(tape, entries, self.config.d_out)?;
        let mite = known.mite(tape, entries)?;
        let parts: Vec<Var> = nodes.into_iter().chain(mite).collect();
        if parts.is_empty() { Ok(None) } else { Ok(Some(tape.concat(&parts)?)) }
    }

    /// How the neighbours of a hop were met: edge and time features, `[entries, De + Dt]`.
    fn met(&self, tape: &mut Tape<'_>, known: &HopFeatures<'_>, hop: &Hop) -> Result<Var> {
        let edges = known.edges(tape, hop)?;
        let times = self.time.of_hop(tape, hop)?;
        match edges {
            Some(edges) => Ok(tape.concat(&[edges, times])?),
            None => Ok(times),
        }
    }

    /// A layer over `hop`: `raw` is what is known of the nodes that look before any layer, `met` how they met those they
    /// look at, `below` what stands for both below this layer.
    fn layer(
        &self,
        tape: &mut Tape<'_>,
        (index, known, dropout): (usize, &HopFeatures<'_>, Dropout),
        (raw, hop, met): (Option<Var>, &Hop, Var),
        below: [Option<Var>; 2],
    ) -> Result<Var> {
        let ModelConfig { d_out: d, .. } = self.config;
        let [own, seen] = below;
        let n_lookers = hop.groups.len();
        let now = self.time.of_now(tape, n_lookers)?;
        // Without features a node is zeros; MITE stands behind them.
        let lacks_nodes = index == 1 && known.input().nodes.is_none();
        let lacking = if lacks_nodes { Some(zeros(tape, n_lookers, d)?) } else { None };
        let query: Vec<Var> = lacking.into_iter().chain(own).chain([now]).collect();
        let keys: Vec<Var> = seen.into_iter().chain([met]).collect();
        let (queries, keys) = (tape.concat(&query)?, tape.concat(&keys)?);
        let instead = padding_keys(tape, hop, self.time, keys)?;
        let attended = Attended { queries, keys, groups: &hop.groups, raw, instead };
        self.layers[index - 1].forward(tape, attended, dropout)
    }
}

impl Model for Tgat {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn encoding(&self) -> PairEncoding {
        self.config.hops(SecondTime::Event)
    }

    fn nodes(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let input = input.hops()?;
        let (roots, first) = (&input.roots, &input.first);
        let known = HopFeatures::new(tape, input, self.mite)?;
        let raw = [self.raw(tape, &known, roots)?, self.raw(tape, &known, &first.entries)?];
        let met = self.met(tape, &known, first)?; // [F, De + Dt]
        let at = |index: usize, place: u64| (index, &known, dropout.site(8 * place));
        let mut nodes = self.layer(tape, at(1, 0), (raw[0], first, met), raw)?; // [2B, d]
        if let Some(second) = &input.second {
            let further = self.raw(tape, &known, &second.entries)?;
            let further_met = self.met(tape, &known, second)?; // [S, De + Dt]
            let neighbours = self.layer(tape, at(1, 1), (raw[1], second, further_met), [raw[1], further])?; // [F, d]
            nodes = self.layer(tape, at(2, 2), (raw[0], first, met), [Some(nodes), Some(neighbours)])?;
        }
        Ok(nodes)
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let nodes = self.nodes(tape, input, dropout)?;
        self.head.forward(tape, nodes)
    }
}
