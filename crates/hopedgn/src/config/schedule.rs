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

#[cfg(test)]
mod tests {
    use ctdg::generate::TriadicSpec;
    use hopedgn_tensor::Device;

    use crate::config::{Config, ModelName, ModelRegistry};
    use crate::task::Task;
    use crate::train::Trainer;

    #[test]
    fn a_resumed_run_continues_the_schedule() {
        let stream = TriadicSpec { n_episodes: 300, ..TriadicSpec::default() }.generate(1).unwrap().stream;
        let trained = |schedule: &str, stop: usize| {
            let settings =
                [format!("train.schedule={schedule}"), "train.epochs=1".to_owned(), "train.batch=50".to_owned()];
            let config = Config::resolve(ModelName::Stats, &[], &settings).unwrap();
            let task = Task::new(&stream, config.split).unwrap();
            let (model, parameters) = config.build(&ModelRegistry::default(), task.tables.widths()).unwrap();
            let mut first = Trainer::new(&config, &task, &*model, parameters.clone(), &Device::cpu()).unwrap();
            first.steps(stop, &mut || {}).unwrap();
            let mut second = Trainer::new(&config, &task, &*model, parameters, &Device::cpu()).unwrap();
            second.restore(&first.save().unwrap()).unwrap();
            second.steps(8 - stop, &mut || {}).unwrap();
            second.weights().parameters().unwrap().into_owned()
        };
        let expected = trained("linear", 0);
        assert_eq!(trained("linear", 3), expected);
        assert_ne!(trained("constant", 0), expected);
    }
}
