//! Named parameters of a model.

use std::collections::BTreeMap;

use crate::gemm::{Packs, Weight};
use crate::{Error, Result, Tensor};

/// The index of a parameter in its [`Parameters`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ParameterId(pub(crate) usize);

/// All parameters of a model, in the order in which they were added.
///
/// A checkpoint stores them by name (`"blocks.0.attention.in.weight"`), so that it outlives changes of the code.
///
/// ```
/// use hopedgn_tensor::{Parameters, Shape, Tensor};
///
/// let mut parameters = Parameters::default();
/// let weight = parameters.add("head.weight", Tensor::zeros(Shape::Matrix(1, 8)))?;
/// parameters.add("head.bias", Tensor::zeros(Shape::Vector(1)))?;
/// assert_eq!(parameters.id("head.weight"), Some(weight));
/// assert_eq!((parameters.len(), parameters.n_values()), (2, 9));
/// assert!(parameters.add("head.bias", Tensor::vector(vec![])).is_err());
/// # Ok::<(), hopedgn_tensor::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parameters {
    names: Vec<String>,
    tensors: Vec<Tensor>,
    /// The packed forms of each tensor.
    packs: Vec<Packs>,
    by_name: BTreeMap<String, usize>,
}

impl Parameters {
    /// Adds `tensor` under `name`.
    ///
    /// # Errors
    /// If there is a parameter of that name.
    pub fn add(&mut self, name: impl Into<String>, tensor: Tensor) -> Result<ParameterId> {
        let name = name.into();
        if self.by_name.contains_key(&name) {
            return Err(Error::DuplicateName { name });
        }
        let id = self.tensors.len();
        self.by_name.insert(name.clone(), id);
        self.names.push(name);
        self.tensors.push(tensor);
        self.packs.push(Packs::default());
        Ok(ParameterId(id))
    }

    /// The number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// The total number of values.
    #[must_use]
    pub fn n_values(&self) -> usize {
        self.tensors.iter().map(|tensor| tensor.shape().len()).sum()
    }

    /// The parameter called `name`.
    #[must_use]
    pub fn id(&self, name: &str) -> Option<ParameterId> {
        self.by_name.get(name).copied().map(ParameterId)
    }

    /// The name of a parameter.
    ///
    /// # Panics
    /// If `id` is of other parameters and out of range, as in [`get`](Self::get) and [`get_mut`](Self::get_mut).
    #[must_use]
    pub fn name(&self, id: ParameterId) -> &str {
        &self.names[id.0]
    }

    /// The value of a parameter.
    #[must_use]
    pub fn get(&self, id: ParameterId) -> &Tensor {
        &self.tensors[id.0]
    }

    /// The value of a parameter, mutably.
    pub fn get_mut(&mut self, id: ParameterId) -> &mut Tensor {
        self.packs[id.0].clear();
        &mut self.tensors[id.0]
    }

    /// A parameter as the right operand of a GEMM.
    pub(crate) fn weight(&self, id: ParameterId) -> Weight<'_> {
        Weight::new(self.get(id), Some(&self.packs[id.0]))
    }

    /// All values in the order in which they were added, mutably.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Tensor> {
        self.packs.iter_mut().for_each(Packs::clear);
        self.tensors.iter_mut()
    }

    /// All parameters in the order in which they were added.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (ParameterId, &str, &Tensor)> {
        let named = self.names.iter().zip(&self.tensors).enumerate();
        named.map(|(id, (name, tensor))| (ParameterId(id), name.as_str(), tensor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::{View, WriteMode};
    use crate::testkit::matrix;
    use crate::{Adam, AdamConfig, Gradients, Tape};

    #[test]
    fn duplicate_names_are_refused_and_names_are_found() {
        let mut parameters = Parameters::default();
        let id = parameters.add("a.weight", Tensor::vector(vec![1.0, 2.0])).unwrap();
        assert_eq!(parameters.id("a.weight"), Some(id));
        assert_eq!((parameters.name(id), parameters.n_values()), ("a.weight", 2));
        assert_eq!(parameters.id("a.bias"), None);
        let error = parameters.add("a.weight", Tensor::vector(vec![])).unwrap_err();
        assert!(error.to_string().starts_with("there is already a parameter `a.weight`"));
    }

    #[test]
    fn a_changed_weight_is_packed_again() {
        let (m, k, n) = (40, 200, 100);
        let mut parameters = Parameters::default();
        let id = parameters.add("a.weight", matrix(1, n, k)).unwrap();
        let mut adam = Adam::new(AdamConfig::default(), &parameters);
        let x = matrix(2, m, k);
        // The first use packs, the second reads that.
        let check = |parameters: &Parameters| {
            let mut plain = vec![0.0; m * n];
            let x = View::new(x.values(), m, k);
            Weight::new(parameters.get(id), None).forward(x, WriteMode::Overwrite, &mut plain);
            for _ in 0..2 {
                let mut packed = vec![0.0; m * n];
                parameters.weight(id).forward(x, WriteMode::Overwrite, &mut packed);
                assert_eq!(packed, plain);
                assert_eq!(parameters.packs[id.0].are_filled(), crate::vector::has_avx2());
            }
        };
        check(&parameters);
        parameters.get_mut(id).values_mut()[7] += 1.0;
        assert!(!parameters.packs[id.0].are_filled());
        check(&parameters);
        let mut gradients = Gradients::zeros(&parameters);
        let mut tape = Tape::new(&parameters);
        let weight = tape.parameter(id);
        tape.backward_from(weight, matrix(3, n, k), &mut gradients).unwrap();
        adam.step(&mut parameters, &gradients);
        assert!(!parameters.packs[id.0].are_filled());
        check(&parameters);
        let copy = parameters.clone();
        assert!(!copy.packs[id.0].are_filled() && copy == parameters);
        check(&copy);
    }
}
