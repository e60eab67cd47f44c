//! What training minimises.

use serde::{Deserialize, Serialize};

/// What training minimises, and so what a score means.
///
/// ```
/// use hopedgn::{Config, ModelName, config::Objective};
///
/// let settings = ["train.objective=intensity".to_owned()];
/// assert_eq!(Config::resolve(ModelName::Stats, &[], &settings)?.train.objective, Objective::Intensity);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// As in DyGLib: binary cross-entropy against one random destination for each event. A score separates true from random
    /// destinations; as a probability it means nothing else.
    #[default]
    Dyglib,
    /// How likely each pair is to be the next event, in two factors: `P(u | t) · P(v | u, t)`. Noise-contrastive estimation against
    /// destinations of known density (uniform ones, and past partners of the source), and against past pairs. A score is the
    /// probability that the next partner of the source is this destination.
    Intensity,
}
