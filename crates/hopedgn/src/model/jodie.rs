//! JODIE: each node is its memory, which drifts with the time since it last changed.
//!
//! Paper: "Predicting Dynamic Embedding Trajectory in Temporal Interaction Networks".
//!
//! Shapes: `B` pairs, so `2B` roots; `d` width of a memory.
//!
//! # Differences from the paper
//! The model is the one that comparisons use, after TGN's code and DyGLib's: one memory for sources and destinations alike,
//! no static embedding, a classifier of pairs instead of a prediction of the next item's embedding.
//! - **Messages**: of several events of a node in one batch the newest counts. In DyGLib the last one in which it was the
//!   destination does; `message-order = "dyglib"` does the same.
//! - **Gaps** are set against what is usual in training, separately for sources and destinations.
//!
//! # MITE
//! There is no neighbour that could carry it.

use ctdg::mite::PairEncoding;
use hopedgn_tensor::{Dropout, Parameters, Shape, Tape, Tensor, Var};

use super::Model;
use crate::Result;
use crate::collate::{FeatureWidths, Input};
use crate::config::ModelConfig;
use crate::memory::MemoryForm;
use crate::nn::{Cell, Linear, MemoryUpdater, PairHead, ParamBuilder};

/// The model without its weights, which lie in [`Parameters`].
#[derive(Debug, Clone)]
pub struct Jodie {
    config: ModelConfig,
    memory: MemoryUpdater,
    project: Linear,
    head: PairHead,
}

impl Jodie {
    /// A model for features of these widths, with weights drawn from `seed`.
    pub fn new(config: &ModelConfig, widths: FeatureWidths, seed: u64) -> Result<(Self, Parameters)> {
        let mut parameters = Parameters::default();
        let layers = &mut ParamBuilder::new(&mut parameters, seed);
        let time = layers.time_encoding("time", config.d_time)?;
        let model = Self {
            config: config.clone(),
            memory: layers.remember(config, widths, Cell::Tanh, time)?,
            project: layers.linear("project", 1, config.d_out)?,
            head: layers.pair_head(config.d_out)?,
        };
        Ok((model, parameters))
    }
}

impl Model for Jodie {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The nodes themselves.
    fn encoding(&self) -> PairEncoding {
        self.config.encoding(1)
    }

    fn memory(&self) -> Option<MemoryForm> {
        Some(self.memory.form())
    }

    fn nodes(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let input = input.hops()?;
        let (recalled, nodes, roots) = self.memory.recall(tape, input)?; // …, [2B, d]
        self.memory.remember(tape, input, nodes, roots)?;

        let gaps = tape.input(std::sync::Arc::clone(&recalled.gaps)); // [2B, 1]
        let drift = self.project.forward(tape, gaps, None)?;
        let one = tape.input(Tensor::full(Shape::Vector(self.config.d_out), 1.0));
        let ones = tape.repeat_row(one, input.roots.len)?;
        let factor = tape.add(ones, drift)?;
        let drifted = tape.mul(roots, factor)?;
        Ok(tape.dropout(drifted, dropout))
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let nodes = self.nodes(tape, input, dropout)?;
        self.head.forward(tape, nodes)
    }
}
