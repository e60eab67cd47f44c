//! JODIE: a recurrent memory of each node, projected by the time since its last update.
//!
//! Paper: "Predicting Dynamic Embedding Trajectory in Temporal Interaction Networks".
//!
//! ```text
//! s_u ← tanh(W [s_u ‖ s_v ‖ Φ(Δt) ‖ e] + U s_u + b)      update by an event of u and v; Δt since the last one of u
//! h_u = (1 + W_p δ_u + b_p) ∘ s_u                        projection to the query; δ_u the standardised time since then
//! logit = head([h_u ‖ h_v])
//! ```
//!
//! [`MemoryUpdater`] is the update. Shapes: `B` pairs, so `2B` roots; `d` width of a memory.
//!
//! # Differences from the paper
//! It is the model of published comparisons, after TGN's code and DyGLib: one memory for sources and destinations, no static
//! embedding, a classifier of pairs instead of a prediction of the next item's embedding.
//! - **Messages**: of several events of a node in one batch the newest counts. In DyGLib it is the newest in which the node was
//!   the destination; `message-order = "dyglib"` does the same.
//! - **δ** is standardised by the gaps of the training events, separately for sources and destinations.
//!
//! # MITE
//! None: the model reads no neighbours.

use std::sync::Arc;

use ctdg::mite::PairEncoderConfig;
use hopedgn_tensor::{Dropout, Parameters, Shape, Tape, Tensor, Var};
use serde::{Deserialize, Serialize};

use super::{CommonSettings, Model, ModelName};
use crate::Result;
use crate::collate::{FeatureWidths, Input, SamplingName, token_encoding};
use crate::memory::{MemoryForm, MessageOrder};
use crate::nn::{Linear, MemoryCell, MemoryUpdater, MemoryWidths, PairHead, ParamBuilder};

/// Settings of [`Jodie`].
///
/// See [`Jodie`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct JodieSettings {
    /// Which message of a batch updates a node's memory.
    pub message_order: MessageOrder,
}

/// JODIE.
///
/// ```
/// use hopedgn::collate::FeatureWidths;
/// use hopedgn::model::{CommonSettings, Jodie, JodieSettings, Model};
///
/// let (model, _) = Jodie::new(&JodieSettings::default(), &CommonSettings::DEFAULT, FeatureWidths::default(), 0)?;
/// assert_eq!(model.memory().map(|form| form.width), Some(172));
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Jodie {
    common: CommonSettings,
    memory: MemoryUpdater,
    project: Linear,
    head: PairHead,
}

impl Jodie {
    /// The model for features of these widths, with parameters drawn from `seed`.
    pub fn new(
        settings: &JodieSettings,
        common: &CommonSettings,
        widths: FeatureWidths,
        seed: u64,
    ) -> Result<(Self, Parameters)> {
        let CommonSettings { d_out: d, d_time, .. } = *common;
        let mut parameters = Parameters::default();
        let builder = &mut ParamBuilder::new(&mut parameters, seed);
        let time = builder.time_encoding("time", d_time)?;
        let widths = MemoryWidths { state: d, time: d_time, features: widths };
        let model = Self {
            common: *common,
            memory: builder.memory_updater(widths, MemoryCell::Tanh, time, settings.message_order)?,
            project: builder.linear("project", 1, d)?,
            head: builder.pair_head(d, &common.statistics)?,
        };
        Ok((model, parameters))
    }
}

impl Model for Jodie {
    fn name(&self) -> ModelName {
        ModelName::Jodie
    }

    /// The nodes themselves, without neighbours.
    fn encoding(&self) -> PairEncoderConfig {
        token_encoding(1, SamplingName::Recent, false)
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

    fn nodes(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let input = input.hops()?;
        let memories = self.memory.advance(tape, input)?;

        let gaps = tape.input(Arc::clone(&memories.read.gaps)); // [2B, 1]
        let drift = self.project.forward(tape, gaps, None)?; // [2B, d]
        let one = tape.input(Tensor::full(Shape::Vector(self.common.d_out), 1.0));
        let ones = tape.repeat_row(one, input.roots.len)?; // [2B, d]
        let factor = tape.add(ones, drift)?;
        let h = tape.mul(memories.sides, factor)?; // [2B, d]
        Ok(tape.dropout(h, dropout))
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
