//! How the learning rate changes during training.

use hopedgn_tensor::AdamConfig;
use serde::{Deserialize, Serialize};

use super::TrainConfig;

/// How the learning rate changes during training.
///
/// ```
/// use hopedgn::{Config, ModelName, config::Schedule};
///
/// let settings = ["train.schedule=linear".to_owned()];
/// assert_eq!(Config::resolve(ModelName::Tgn, &[], &settings)?.train.schedule, Schedule::Linear);
/// # Ok::<(), hopedgn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// It stays, as in the papers.
    #[default]
    Constant,
    /// It falls to zero over `train.epochs`, step by step: the noise of the last steps, which negatives drawn at random cause, is small.
    Linear,
}

impl TrainConfig {
    /// The optimizer, for epochs of `n_batches` steps.
    pub(crate) fn adam(&self, n_batches: usize) -> AdamConfig {
        let steps_to_zero = match self.schedule {
            Schedule::Constant => None,
            Schedule::Linear => Some((self.epochs * n_batches) as u64),
        };
        AdamConfig { lr: self.lr, steps_to_zero, ..AdamConfig::default() }
    }
}
