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
//! | `B` | pairs in the batch; `2B` roots: source, destination, source of the next pair, …; `V` where equal ones are embedded once |
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
mod intensity;
mod jodie;
mod patches;
mod pint;
mod registry;
mod stats;
pub(crate) mod table;
mod tcl;
mod tgat;
mod tgn;
mod tpnet;

use std::fmt;

use ctdg::mite::PairEncoderConfig;
use ctdg::walks::WalkConfig;
use hopedgn_tensor::{Dropout, Tape, Var};

use crate::collate::{HopLayout, Input, Layout};
use crate::memory::MemoryForm;
use crate::nn::{MemoryUpdater, PairHead};
use crate::{Error, Result};

pub use cawn::{Cawn, CawnSettings};
pub use config::{CommonSettings, CustomSettings, ModelConfig, ModelName, ModelSettings};
pub use dygformer::{DyGFormer, DyGFormerSettings};
pub use global::{GlobalHopeDgn, GlobalHopeDgnSettings};
pub use graphmixer::{GraphMixer, GraphMixerSettings};
pub use hopedgn::{HopeDgn, HopeDgnSettings, Pooling};
pub(crate) use intensity::{IntensityModel, LOG_DESTINATIONS, LOG_SUM};
pub use jodie::{Jodie, JodieSettings};
pub use patches::PatchSettings;
pub use pint::{Pint, PintSettings};
pub use registry::{BuiltModel, CustomModel, ModelRegistry, NoSettings, build};
pub use stats::{Stats, StatsSettings};
pub use tcl::{Tcl, TclSettings};
pub use tgat::{SecondHopCut, Tgat, TgatSettings};
pub use tgn::{Tgn, TgnSettings};
pub use tpnet::{TpNet, TpNetSettings};

/// A link prediction model without its parameter values, which live in [`Parameters`](hopedgn_tensor::Parameters).
///
/// A model of one's own needs [`Model::name`], [`Model::encoding`] and [`Model::logits`], and [`CustomModel`] to be built by
/// name.
///
/// ```
/// # use hopedgn::Events;
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # use hopedgn::{collate::FeatureWidths, collate::Input, config::*, nn::Linear, nn::ParamBuilder};
/// # use hopedgn::{LinkPredictor, Model, Result};
/// # use hopedgn::{ctdg::mite::PairEncoderConfig, tensor::{Dropout, Parameters, Tape, Var}};
/// /// Scores a pair by the mean age of the latest events of source and destination.
/// #[derive(Debug)]
/// struct MeanAge { head: Linear }
///
/// impl Model for MeanAge {
///     fn name(&self) -> ModelName { ModelName::Custom("mean-age") }
///     fn encoding(&self) -> PairEncoderConfig { PairEncoderConfig { length: 6, k: 0, ..Default::default() } }
///     fn logits(&self, tape: &mut Tape<'_>, input: &Input, _: Dropout) -> Result<Var> {
///         let hop = &input.hops()?.first;
///         let ages = tape.input(hop.ages.clone()); // [F, 1]
///         let means = tape.segment_mean(ages, &hop.groups)?; // [2B, 1]
///         let pairs = tape.reshape(means, hop.groups.len() / 2, 2)?; // [B, 2]
///         self.head.forward(tape, pairs, None) // [B, 1]
///     }
/// }
/// # impl CustomModel for MeanAge {
/// #     const NAME: &'static str = "mean-age";
/// #     type Settings = NoSettings;
/// #     fn new(_: &NoSettings, _: &CommonSettings, _: FeatureWidths, seed: u64) -> Result<(Self, Parameters)> {
/// #         let mut parameters = Parameters::default();
/// #         let head = ParamBuilder::new(&mut parameters, seed).linear("head", 2, 1)?;
/// #         Ok((Self { head }, parameters))
/// #     }
/// # }
///
/// let predictor = LinkPredictor::builder().register::<MeanAge>()?.epochs(1).fit(&events)?;
/// assert!((0.0..=1.0).contains(&predictor.predict("3", "4", 100.0)?));
/// # Ok::<(), hopedgn::Error>(())
/// ```
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

    /// The head over its embeddings, if it is one that may read statistics and walks of pairs as well.
    fn head(&self) -> Option<PairHead> {
        None
    }

    /// Whether its input has the [statistics](ctdg::statistics) of pairs.
    fn reads_statistics(&self) -> bool {
        self.head().is_some_and(PairHead::reads_statistics)
    }

    /// Whether those have columns for [triads](ctdg::triads) as well.
    fn reads_triads(&self) -> bool {
        self.head().is_some_and(PairHead::reads_triads)
    }

    /// The [temporal walks](ctdg::walks) that its input has, if any.
    fn walks(&self) -> Option<WalkConfig> {
        self.head().and_then(PairHead::walks)
    }

    /// The logarithm of how active the source of each pair is, `[B, 1]`, for models of intensities; see
    /// [`Objective::Intensity`](crate::config::Objective).
    fn activity(&self, tape: &mut Tape<'_>, input: &Input) -> Result<Option<Var>> {
        let _ = (tape, input);
        Ok(None)
    }

    /// The updater of its memory, if [`MemoryUpdater::advance`] is all that an event does to it: no embedding of a node is part of a message.
    /// Replays then call that alone, on nodes without neighbours, and otherwise [`Model::logits`].
    fn memory_updater(&self) -> Option<MemoryUpdater> {
        None
    }

    /// The logit of each pair, `[B, 1]`.
    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var>;
}
