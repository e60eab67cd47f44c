//! The Adam optimizer, with the arithmetic of `torch.optim.Adam`.

use rayon::prelude::*;

use crate::vector::vectorised;
use crate::{Gradients, Parameters, Tensor};

/// The configuration of [`Adam`]; the defaults are those of PyTorch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamConfig {
    /// The learning rate.
    pub lr: f64,
    /// The decay of the running mean of gradients.
    pub beta1: f64,
    /// The decay of the running mean of squared gradients.
    pub beta2: f64,
    /// Added to the denominator.
    pub eps: f64,
    /// L2 penalty: this times the weight is added to the gradient.
    pub weight_decay: f64,
    /// Steps over which the learning rate falls linearly to zero, like `LinearLR` with an end factor of 0; `None` keeps it.
    pub steps_to_zero: Option<u64>,
}

impl Default for AdamConfig {
    fn default() -> Self {
        Self { lr: 1e-3, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.0, steps_to_zero: None }
    }
}

impl AdamConfig {
    /// The learning rate of step `n`, counted from 1.
    ///
    /// ```
    /// use hopedgn_tensor::AdamConfig;
    ///
    /// let config = AdamConfig { lr: 0.1, steps_to_zero: Some(10), ..AdamConfig::default() };
    /// assert_eq!([1, 6, 11].map(|step| config.rate(step)), [0.1, 0.05, 0.0]);
    /// ```
    #[must_use]
    pub fn rate(&self, n: u64) -> f64 {
        match self.steps_to_zero {
            Some(end) => self.lr * (end.saturating_sub(n.saturating_sub(1)) as f64 / end.max(1) as f64),
            None => self.lr,
        }
    }
}

/// The Adam state: the running means of each parameter's gradient and squared gradient, and the number of steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Adam {
    config: AdamConfig,
    pub(crate) n_steps: u64,
    pub(crate) means: Vec<Tensor>,
    pub(crate) squares: Vec<Tensor>,
}

impl Adam {
    /// The state before the first step.
    #[must_use]
    pub fn new(config: AdamConfig, parameters: &Parameters) -> Self {
        let zeros = || parameters.iter().map(|(_, _, tensor)| Tensor::zeros(tensor.shape())).collect();
        Self { config, n_steps: 0, means: zeros(), squares: zeros() }
    }

    /// The number of steps taken.
    #[must_use]
    pub fn n_steps(&self) -> u64 {
        self.n_steps
    }

    /// The scalars of the next step.
    pub(crate) fn next_update(&self) -> Update {
        Update::new(&self.config, self.n_steps + 1)
    }

    /// Updates every parameter.
    ///
    /// # Panics
    /// If the parameters or gradients are not of the model this was made for.
    pub fn step(&mut self, parameters: &mut Parameters, gradients: &Gradients) {
        assert_eq!(self.means.len(), parameters.len(), "the parameters Adam was made for");
        self.n_steps += 1;
        let update = Update::new(&self.config, self.n_steps);
        let states = self.means.iter_mut().zip(&mut self.squares);
        let all = parameters.values_mut().zip(&gradients.parameters).zip(states);
        let mut parts = Vec::new();
        for ((weight, grad), (mean, square)) in all {
            assert_eq!(weight.shape(), mean.shape(), "the parameters Adam was made for");
            assert_eq!(weight.shape(), grad.shape(), "gradients of the same parameters");
            let values = weight.values_mut().chunks_mut(PART).zip(grad.values().chunks(PART));
            parts.extend(values.zip(mean.values_mut().chunks_mut(PART).zip(square.values_mut().chunks_mut(PART))));
        }
        parts.into_par_iter().for_each(|((weights, grads), (means, squares))| {
            update_weights(update, weights, grads, (means, squares));
        });
    }
}

/// Values of a part, the unit of parallelism. Values are independent, so that any split gives the same result.
const PART: usize = 1 << 13;

/// The scalars of one step: computed in `f64`, rounded once.
#[derive(Clone, Copy)]
pub(crate) struct Update {
    pub(crate) grad_share: f32,
    pub(crate) square_decay: f32,
    pub(crate) square_share: f32,
    pub(crate) root_correction: f32,
    pub(crate) eps: f32,
    pub(crate) step_size: f32,
    pub(crate) weight_decay: f32,
}

impl Update {
    #[expect(clippy::cast_possible_truncation, reason = "the rounding is the point")]
    fn new(config: &AdamConfig, n_steps: u64) -> Self {
        let exponent = i32::try_from(n_steps).unwrap_or(i32::MAX);
        Self {
            grad_share: (1.0 - config.beta1) as f32,
            square_decay: config.beta2 as f32,
            square_share: (1.0 - config.beta2) as f32,
            root_correction: (1.0 - config.beta2.powi(exponent)).sqrt() as f32,
            eps: config.eps as f32,
            step_size: (config.rate(n_steps) / (1.0 - config.beta1.powi(exponent))) as f32,
            weight_decay: config.weight_decay as f32,
        }
    }
}

vectorised! {
    fn update_weights(update: Update, weights: &mut [f32], grads: &[f32], states: (&mut [f32], &mut [f32])) {
        let (means, squares) = states;
        for ((weight, grad), (mean, square)) in weights.iter_mut().zip(grads).zip(means.iter_mut().zip(squares)) {
            let grad = grad + update.weight_decay * *weight;
            *mean += update.grad_share * (grad - *mean);
            *square = update.square_decay * *square + update.square_share * grad * grad;
            let root = square.sqrt() / update.root_correction + update.eps;
            *weight -= update.step_size * (*mean / root);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tape;
    use crate::testkit::{fixture, tensor};

    /// A few roundings of a value of size 1: PyTorch may fuse or reorder multiplications.
    const TOLERANCE: f32 = 1e-6;

    #[test]
    fn ten_steps_match_pytorch() {
        for run in fixture("adam.json").as_array().unwrap() {
            let setting = |name: &str, default: f64| run["settings"][name].as_f64().unwrap_or(default);
            let beta = |at: usize, default: f64| run["settings"]["betas"][at].as_f64().unwrap_or(default);
            let config = AdamConfig {
                lr: setting("lr", 1e-3),
                beta1: beta(0, 0.9),
                beta2: beta(1, 0.999),
                eps: setting("eps", 1e-8),
                weight_decay: setting("weight_decay", 0.0),
                steps_to_zero: None,
            };
            let mut parameters = Parameters::default();
            let id = parameters.add("w", tensor(&run["start"])).unwrap();
            let mut adam = Adam::new(config, &parameters);
            let steps = run["gradients"].as_array().unwrap().iter().zip(run["after"].as_array().unwrap());
            for (gradient, after) in steps {
                let gradients = {
                    // The gradient of a sum weighted by g is g.
                    let mut tape = Tape::new(&parameters);
                    let w = tape.parameter(id);
                    let mut gradients = Gradients::zeros(&parameters);
                    tape.backward_from(w, tensor(gradient), &mut gradients).unwrap();
                    gradients
                };
                adam.step(&mut parameters, &gradients);
                let after = tensor(after);
                let pairs = parameters.get(id).values().iter().zip(after.values());
                for (got, expected) in pairs {
                    assert!((got - expected).abs() < TOLERANCE, "step {}: {got} {expected}", adam.n_steps());
                }
            }
            assert_eq!(adam.n_steps(), 10);
        }
    }
}
