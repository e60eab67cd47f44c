//! Gradients of a loss with respect to parameters and leaves.

use rayon::prelude::*;

use super::Var;
use crate::vector::add_to;
use crate::{ParameterId, Parameters, Shape, Tensor};

/// Gradients of a loss: one tensor for each parameter, and one for each [leaf](crate::Tape::leaf).
///
/// [`Tape::backward`](crate::Tape::backward) adds to them, so gradients accumulate over tapes until they are
/// [cleared](Self::clear).
///
/// ```
/// use hopedgn_tensor::{Gradients, Parameters, Tape, Tensor};
///
/// let mut parameters = Parameters::default();
/// let w = parameters.add("w", Tensor::vector(vec![3.0]))?;
/// let mut gradients = Gradients::zeros(&parameters);
/// let mut tape = Tape::new(&parameters);
/// let w_var = tape.parameter(w);
/// let square = tape.mul(w_var, w_var)?;
/// tape.backward(square, &mut gradients)?;
/// assert_eq!(gradients.parameter(w).values(), [6.0]);
/// # Ok::<(), hopedgn_tensor::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gradients {
    pub(crate) parameters: Vec<Tensor>,
    leaves: Vec<(Var, Tensor)>,
}

impl Gradients {
    /// Zero gradients for every parameter.
    #[must_use]
    pub fn zeros(parameters: &Parameters) -> Self {
        let parameters = parameters.iter().map(|(_, _, tensor)| Tensor::zeros(tensor.shape())).collect();
        Self { parameters, leaves: Vec::new() }
    }

    /// The gradients of all parameters, in the order in which the parameters were added.
    pub fn iter(&self) -> impl Iterator<Item = &Tensor> {
        self.parameters.iter()
    }

    /// Sets all gradients to zero and keeps their memory.
    pub fn clear(&mut self) {
        self.parameters.iter_mut().for_each(|tensor| tensor.values_mut().fill(0.0));
        self.leaves.clear();
    }

    /// The gradient of a parameter; zero where the loss does not depend on it.
    ///
    /// # Panics
    /// If `id` is not of the parameters these gradients were made for.
    #[must_use]
    pub fn parameter(&self, id: ParameterId) -> &Tensor {
        &self.parameters[id.0]
    }

    /// The gradient of a leaf; `None` where the loss does not depend on it.
    #[must_use]
    pub fn leaf(&self, var: Var) -> Option<&Tensor> {
        self.leaves.iter().find(|(leaf, _)| *leaf == var).map(|(_, grad)| grad)
    }

    /// Adds the parameter gradients of all of `others`, in their order, on all threads.
    pub(crate) fn add_all(&mut self, others: &[Self]) {
        const CHUNK: usize = 1 << 13;
        let sums = self.parameters.par_iter_mut().enumerate();
        sums.flat_map(|(at, sum)| sum.values_mut().par_chunks_mut(CHUNK).enumerate().map(move |part| (at, part)))
            .for_each(|(at, (chunk, sum))| {
                for other in others {
                    add_to(sum, &other.parameters[at].values()[chunk * CHUNK..][..sum.len()]);
                }
            });
    }

    /// The number of values of all parameters.
    pub(crate) fn n_values(&self) -> usize {
        self.parameters.iter().map(|tensor| tensor.values().len()).sum()
    }

    /// Adds the values from `start` on, of all parameters in order, to `sums`.
    pub(crate) fn add_values_to(&self, start: usize, sums: &mut [f32]) {
        let (mut first, end) = (0, start + sums.len());
        for values in self.parameters.iter().map(Tensor::values) {
            let (from, to) = (start.max(first), end.min(first + values.len()));
            if from < to {
                add_to(&mut sums[from - start..to - start], &values[from - first..to - first]);
            }
            first += values.len();
        }
    }

    /// Replaces the values of all parameters, in order.
    pub(crate) fn set_values(&mut self, values: &[f32]) {
        let mut rest = values;
        for tensor in &mut self.parameters {
            let (own, others) = rest.split_at(tensor.values().len());
            tensor.values_mut().copy_from_slice(own);
            rest = others;
        }
    }

    /// Whether no parameter gradient is NaN or infinite.
    #[must_use]
    pub fn is_finite(&self) -> bool {
        self.parameters.iter().all(Tensor::is_finite)
    }

    pub(super) fn leaf_mut(&mut self, var: Var, shape: Shape) -> &mut Tensor {
        let known = self.leaves.iter().position(|(leaf, _)| *leaf == var);
        let index = known.unwrap_or_else(|| {
            self.leaves.push((var, Tensor::zeros(shape)));
            self.leaves.len() - 1
        });
        &mut self.leaves[index].1
    }
}
