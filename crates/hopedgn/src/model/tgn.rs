//! TGN and DyRep: a memory of each node, and attention over the nodes it met.
//!
//! Papers: "Temporal Graph Networks for Deep Learning on Dynamic Graphs"; "DyRep: Learning Representations over Dynamic
//! Graphs".
//!
//! Both keep a memory and have one layer of temporal attention over memories. TGN's embedding is what that layer makes, and
//! partners tell one another their memories. DyRep's embedding is the memory itself, and partners tell one another what the
//! layer makes of their neighbourhoods. TGN's memory is gated, DyRep's is not.
//!
//! Shapes: `B` pairs, so `2B` roots; `F` neighbours; `d` width of a memory; `Dm`, `De`, `Dt` widths of MITE, edge and time
//! features.
//!
//! # Differences from the papers
//! Both are the models that comparisons use, after TGN's code and DyGLib's: DyRep has no point process.
//! - **Messages**: of several events of a node in one batch the newest counts. In DyGLib the last one in which it was the
//!   destination does; `message-order = "dyglib"` does the same.
//! - **DyRep's attention is not trained**: its results reach the loss only through the memory of later batches, and no
//!   gradient goes from one batch to another. That is so in every implementation that forgets gradients between batches.
//! - **Nobody**: as in TGAT.
//!
//! # MITE
//! Stands behind the memory of every node wherever that enters the layer.

use ctdg::mite::PairEncoding;
use hopedgn_tensor::{Dropout, Indices, Parameters, Tape, Var};

use super::Model;
use crate::collate::{Entries, FeatureWidths, HopInput, Input};
use crate::config::{ModelConfig, ModelName};
use crate::memory::{MemoryForm, MemoryRead};
use crate::nn::{
    Attended, Cell, HopFeatures, MemoryUpdater, MiteEmbedding, PADDED_FEATURES, PairHead, ParamBuilder,
    TemporalAttention, TemporalWidths, TimeEncoding, padding_keys,
};
use crate::{Error, Result};

/// The model without its weights, which lie in [`Parameters`].
#[derive(Debug, Clone)]
pub struct Tgn {
    config: ModelConfig,
    memory: MemoryUpdater,
    time: TimeEncoding,
    mite: Option<MiteEmbedding>,
    layer: TemporalAttention,
    head: PairHead,
}

impl Tgn {
    /// TGN or DyRep for features of these widths, with weights drawn from `seed`.
    pub fn new(config: &ModelConfig, widths: FeatureWidths, seed: u64) -> Result<(Self, Parameters)> {
        let ModelConfig { d_out: d, d_time, n_heads, .. } = *config;
        config.check_hops(1)?;
        widths.check_nodes(d)?;
        let mut parameters = Parameters::default();
        let layers = &mut ParamBuilder::new(&mut parameters, seed);
        let d_mite = if config.mite { config.d_mite } else { 0 };
        let own = d + d_mite;
        config.check_heads(&[("model.d-out", d), ("model.d-mite", d_mite), ("model.d-time", d_time)])?;
        let d_edge = widths.edge.unwrap_or(0);
        let widths_of_layer = TemporalWidths {
            query: own + d_time,
            key: own + d_edge + d_time,
            key_drawn_as: own + d_edge.max(PADDED_FEATURES) + d_time,
            raw: own,
            raw_drawn_as: own,
            out: d,
        };
        let time = layers.time_encoding("time", d_time)?;
        let cell = if config.name == ModelName::Dyrep { Cell::Tanh } else { Cell::Gru };
        let model = Self {
            config: config.clone(),
            memory: layers.remember(config, widths, cell, time)?,
            time,
            mite: layers.mite(config)?,
            layer: layers.temporal("layers.1", n_heads, widths_of_layer)?,
            head: layers.pair_head(d)?,
        };
        Ok((model, parameters))
    }

    /// What the layer makes of each root, `[2B, d]`; `nodes` are the memories of all nodes.
    fn attend(&self, tape: &mut Tape<'_>, input: &HopInput, nodes: Var, dropout: Dropout) -> Result<Var> {
        let MemoryRead { roots, first, .. } = input.recalled.as_ref().ok_or(Error::MissingInput)?;
        let known = HopFeatures::new(tape, input, self.mite)?;
        let own = self.below(tape, &known, &input.roots, nodes, roots)?; // [2B, d + Dm]
        let met = self.below(tape, &known, &input.first.entries, nodes, first)?; // [F, d + Dm]
        let now = self.time.of_now(tape, input.roots.len)?;
        let times = self.time.of_hop(tape, &input.first)?; // [F, Dt]
        let edges = known.edges(tape, &input.first)?;
        let keys: Vec<Var> = [met].into_iter().chain(edges).chain([times]).collect();
        let (queries, keys) = (tape.concat(&[own, now])?, tape.concat(&keys)?);
        let instead = padding_keys(tape, &input.first, self.time, keys)?;
        let attended = Attended { queries, keys, groups: &input.first.groups, raw: Some(own), instead };
        self.layer.forward(tape, attended, dropout)
    }

    /// Memory and features of `entries`, which stand at `places` among `nodes`.
    fn below(
        &self,
        tape: &mut Tape<'_>,
        known: &HopFeatures<'_>,
        entries: &Entries,
        nodes: Var,
        places: &Indices,
    ) -> Result<Var> {
        let mut below = tape.gather(nodes, places)?;
        if let Some(features) = known.wide_nodes(tape, entries, self.config.d_out)? {
            below = tape.add(below, features)?;
        }
        match known.mite(tape, entries)? {
            Some(mite) => Ok(tape.concat(&[below, mite])?),
            None => Ok(below),
        }
    }
}

impl Model for Tgn {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn encoding(&self) -> PairEncoding {
        self.config.encoding(self.config.neighbors + 1)
    }

    fn memory(&self) -> Option<MemoryForm> {
        Some(self.memory.form())
    }

    fn nodes(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let input = input.hops()?;
        let (recalled, nodes, roots) = self.memory.recall(tape, input)?; // …, [2B, d]
        if self.config.name == ModelName::Dyrep {
            if recalled.consumed.is_some() {
                let told = self.attend(tape, input, nodes, dropout)?;
                self.memory.remember(tape, input, nodes, told)?;
            }
            return Ok(roots);
        }
        self.memory.remember(tape, input, nodes, roots)?;
        self.attend(tape, input, nodes, dropout)
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let nodes = self.nodes(tape, input, dropout)?;
        self.head.forward(tape, nodes)
    }
}
