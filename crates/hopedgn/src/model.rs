//! Models: HopeDGN, ten baselines, and the trait for models of one's own.
//!
//! A [`Model`] names what it reads ([`Model::encoding`], [`Model::layout`]) and computes logits from it. Sampling, collation,
//! training, evaluation and memory are the same for all models. A [`ModelRegistry`] builds a model from its [`ModelConfig`]; a
//! [`CustomModel`] is registered there by name.
//!
//! # Notation
//!
//! Each model's file opens with its equations. Numbers in parentheses are those of the paper; an equation without one is stated
//! as the authors' text or code has it. All files use one legend:
//!
//! | letter | meaning |
//! |---|---|
//! | `B` | pairs in the batch; `2B` roots: source, destination, source of the next pair, … |
//! | `T` | tokens: roots and their events, of all sequences |
//! | `S` | patches, or entries of the sequences that attention reads; `P` tokens per patch |
//! | `F`, `G` | neighbours of the roots; neighbours of those |
//! | `R` | distinct nodes within the pairs, on which MITE and counts depend |
//! | `U` | distinct nodes of the batch, on which a memory depends |
//! | `N`, `E` | nodes and events of the dataset |
//! | `K` | slots per root, where the model has a fixed number |
//! | `H` | attention heads |
//! | `d` | width of an embedding or memory (`d-out`); `D` width of a transformer; `C` width of a channel |
//! | `Dn`, `De`, `Dt`, `Dm` | widths of node, edge, time and MITE features |
//!
//! | symbol | meaning |
//! |---|---|
//! | `x_u`, `e` | features of node `u`, of an event |
//! | `t`, `t'`, `Δt` | query time, event time, `t − t'` |
//! | `Φ(Δt)` | time encoding `cos(ω·Δt + φ)`, see [`TimeEncoding`](crate::nn::TimeEncoding) |
//! | `N(u, t)` | the events of `u` before `t` that were sampled |
//! | `[a ‖ b]` | concatenation |
//! | `W`, `b` | a weight matrix and a bias |
//!
//! Two differences hold for all models. Features narrower than 172 are not padded with zeros, but weights are initialised as if
//! they were. Sampled events depend on the pair and the time alone, so that a pair's score does not depend on its batch.

pub(crate) mod bounds;
mod cawn;
mod config;
mod dygformer;
mod global;
mod graphmixer;
mod hopedgn;
mod jodie;
mod patches;
mod pint;
mod registry;
pub(crate) mod table;
mod tcl;
mod tgat;
mod tgn;

use std::fmt;

use ctdg::mite::PairEncoderConfig;
use hopedgn_tensor::{Dropout, Tape, Var};

use crate::collate::{HopLayout, Input, Layout};
use crate::memory::MemoryForm;
use crate::{Error, Result};

pub use cawn::{Cawn, CawnSettings};
pub use config::{CommonSettings, CustomSettings, ModelConfig, ModelName, ModelSettings};
pub use dygformer::{DyGFormer, DyGFormerSettings};
pub use global::{GlobalHopeDgn, GlobalHopeDgnSettings};
pub use graphmixer::{GraphMixer, GraphMixerSettings};
pub use hopedgn::{HopeDgn, HopeDgnSettings, Pooling};
pub use jodie::{Jodie, JodieSettings};
pub use patches::PatchSettings;
pub use pint::{Pint, PintSettings};
pub use registry::{BuiltModel, CustomModel, ModelRegistry, NoSettings, build};
pub use tcl::{Tcl, TclSettings};
pub use tgat::{Tgat, TgatSettings};
pub use tgn::{Tgn, TgnSettings};

/// A link prediction model without its parameter values, which live in [`Parameters`](hopedgn_tensor::Parameters).
///
/// A model of one's own needs [`Model::name`], [`Model::encoding`] and [`Model::logits`], and [`CustomModel`] to be built by
/// name.
pub trait Model: fmt::Debug + Send + Sync {
    /// Its name; [`ModelName::Custom`] with [`CustomModel::NAME`] for a model of one's own.
    fn name(&self) -> ModelName;

    /// Which part of a pair's past is sampled.
    fn encoding(&self) -> PairEncoderConfig;

    /// How that is laid out: as hops of neighbours, unless stated otherwise.
    fn layout(&self) -> Layout {
        Layout::Hops(HopLayout::default())
    }

    /// The memory it keeps of each node, if any.
    fn memory(&self) -> Option<MemoryForm> {
        None
    }

    /// Dropout probability in training.
    fn dropout(&self) -> f32 {
        0.0
    }

    /// Width of a node embedding, `d`; 0 for a model that has none.
    fn width(&self) -> usize {
        0
    }

    /// Node embeddings `[2B, d]`: source, destination, source of the next pair, … . Node classification needs them. With
    /// [`Layout::Pairs`] a node is embedded as its pair with itself, and there is one row for each pair, `[B, d]`.
    fn nodes(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        let _ = (tape, input, dropout);
        Err(Error::NoNodeEmbeddings { model: self.name().title() })
    }

    /// The logit of each pair, `[B, 1]`.
    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var>;
}
