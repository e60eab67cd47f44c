//! A model of intensities: any model, and how active the source is.
//!
//! The next event is `(u, v)` with probability `P(u | t) · P(v | u, t)`.
//!
//! ```text
//! z(u, v, t) ≈ ln(P(v | u, t) · |V|)        the logit of the model: whom u meets
//! g(u, t)    ≈ ln P(u | t) + const          from the statistics of u: whether u is active
//! z + g                                     which pair interacts
//! ```

use ctdg::mite::PairEncoderConfig;
use ctdg::walks::WalkConfig;
use hopedgn_tensor::{Dropout, Parameters, Shape, Tape, Tensor, Var};

use super::{Model, ModelName};
use crate::Result;
use crate::collate::{Input, Layout};
use crate::memory::MemoryForm;
use crate::nn::{ActivityHead, MemoryUpdater, PairHead, ParamBuilder};

/// The name of the constant `ln |V|`, the number of destinations in training. It is saved with the weights and never trained.
pub(crate) const LOG_DESTINATIONS: &str = "intensity.log-destinations";

/// The name of the constant that makes probabilities sum to one on validation events: the logarithm of their mean sum without it. It is
/// found after training.
pub(crate) const LOG_SUM: &str = "intensity.log-sum";

/// A model with the activity of its source.
#[derive(Debug)]
pub(crate) struct IntensityModel {
    inner: Box<dyn Model>,
    activity: ActivityHead,
}

impl IntensityModel {
    /// Adds the activity to `inner` and its parameters.
    pub(crate) fn new(inner: Box<dyn Model>, mut parameters: Parameters, seed: u64) -> Result<(Self, Parameters)> {
        let activity = ParamBuilder::new(&mut parameters, seed).activity_head()?;
        for constant in [LOG_DESTINATIONS, LOG_SUM] {
            parameters.add(constant, Tensor::full(Shape::Vector(1), 0.0))?;
        }
        Ok((Self { inner, activity }, parameters))
    }
}

impl Model for IntensityModel {
    fn name(&self) -> ModelName {
        self.inner.name()
    }

    fn encoding(&self) -> PairEncoderConfig {
        self.inner.encoding()
    }

    fn layout(&self) -> Layout {
        self.inner.layout()
    }

    fn memory(&self) -> Option<MemoryForm> {
        self.inner.memory()
    }

    fn memory_updater(&self) -> Option<MemoryUpdater> {
        self.inner.memory_updater()
    }

    fn dropout(&self) -> f32 {
        self.inner.dropout()
    }

    fn width(&self) -> usize {
        self.inner.width()
    }

    fn nodes(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        self.inner.nodes(tape, input, dropout)
    }

    fn reads_statistics(&self) -> bool {
        true
    }

    fn head(&self) -> Option<PairHead> {
        self.inner.head()
    }

    fn walks(&self) -> Option<WalkConfig> {
        self.inner.walks()
    }

    fn activity(&self, tape: &mut Tape<'_>, input: &Input) -> Result<Option<Var>> {
        self.activity.forward(tape, input).map(Some)
    }

    fn logits(&self, tape: &mut Tape<'_>, input: &Input, dropout: Dropout) -> Result<Var> {
        self.inner.logits(tape, input, dropout)
    }
}
