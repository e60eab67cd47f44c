//! What every model is: from the past of pairs to the logit of each.
//!
//! A model says what it reads ([`Model::encoding`], [`Model::layout`]), and computes. Looking up the past, cutting batches,
//! learning and keeping memories are the same for all of them and happen elsewhere.

mod cawn;
mod dygformer;
mod global;
mod graphmixer;
mod hopedgn;
mod jodie;
mod patches;
mod pint;
mod tcl;
mod tgat;
mod tgn;

use std::fmt;

use ctdg::mite::PairEncoding;
use hopedgn_tensor::{Dropout, Parameters, Tape, Var};

use crate::Result;
use crate::collate::{FeatureWidths, HopLayout, Input, Layout};
use crate::config::{ModelConfig, ModelName};
use crate::memory::MemoryForm;

pub use cawn::Cawn;
pub use dygformer::DyGFormer;
pub use global::GlobalHopeDgn;
pub use graphmixer::GraphMixer;
pub use hopedgn::HopeDgn;
pub use jodie::Jodie;
pub use pint::Pint;
pub use tcl::Tcl;
pub use tgat::Tgat;
pub use tgn::Tgn;

/// A link predictor without its weights, which lie in [`Parameters`].
pub trait Model: fmt::Debug + Send + Sync {
    /// The sizes and choices it was made with.
    fn config(&self) -> &ModelConfig;

    /// What it sees of a pair's past.
    fn encoding(&self) -> PairEncoding;

    /// How that is laid out for it: as hops, unless it says otherwise.
    fn layout(&self) -> Layout {
        Layout::Hops(HopLayout::default())
    }

    /// The memory it keeps of each node, if it does.
    fn memory(&self) -> Option<MemoryForm> {
        None
    }

    /// What stands for both nodes of each pair when they meet, `[2B, d-out]`: source, destination, source of the next pair, … .
    /// To a model that knows nothing but pairs ([`Layout::Pairs`]) a node is its pair with itself: asked about that, it answers
    /// with one row for each, `[B, d-out]`.
    fn nodes(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var>;

    /// The logit of each pair, `[B, 1]`.
    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var>;
}

/// The model that `config` names, for features of these widths, with weights drawn from `seed`.
pub fn build(config: &ModelConfig, widths: FeatureWidths, seed: u64) -> Result<(Box<dyn Model>, Parameters)> {
    fn boxed<M: Model + 'static>((model, parameters): (M, Parameters)) -> (Box<dyn Model>, Parameters) {
        (Box::new(model), parameters)
    }
    config.check()?;
    Ok(match config.name {
        ModelName::Hopedgn => boxed(HopeDgn::new(config, widths, seed)?),
        ModelName::HopedgnGlobal => boxed(GlobalHopeDgn::new(config, widths, seed)?),
        ModelName::Dygformer => boxed(DyGFormer::new(config, widths, seed)?),
        ModelName::Tgat => boxed(Tgat::new(config, widths, seed)?),
        ModelName::Tcl => boxed(Tcl::new(config, widths, seed)?),
        ModelName::Graphmixer => boxed(GraphMixer::new(config, widths, seed)?),
        ModelName::Jodie => boxed(Jodie::new(config, widths, seed)?),
        ModelName::Dyrep | ModelName::Tgn => boxed(Tgn::new(config, widths, seed)?),
        ModelName::Cawn => boxed(Cawn::new(config, widths, seed)?),
        ModelName::Pint => boxed(Pint::new(config, widths, seed)?),
    })
}
