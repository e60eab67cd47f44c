//! Weights under stable dotted names.

use std::collections::BTreeMap;

use crate::gemm::{Packs, Weight};
use crate::{Error, Result, Tensor};

/// A parameter of one [`Parameters`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ParameterId(pub(crate) usize);

/// All weights of a model, in the order in which they were added.
///
/// Names (`"blocks.0.attention.in.weight"`) are what a checkpoint knows them by, so that it outlives a change of the
/// code around them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parameters {
    names: Vec<String>,
    tensors: Vec<Tensor>,
    /// Of each tensor.
    packs: Vec<Packs>,
    by_name: BTreeMap<String, usize>,
}

impl Parameters {
    /// Adds `tensor` as `name`.
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

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// The number of values of all tensors together.
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
    /// If `id` comes from other parameters and is too large for these; so do [`get`](Self::get) and
    /// [`get_mut`](Self::get_mut).
    #[must_use]
    pub fn name(&self, id: ParameterId) -> &str {
        &self.names[id.0]
    }

    /// The value of a parameter.
    #[must_use]
    pub fn get(&self, id: ParameterId) -> &Tensor {
        &self.tensors[id.0]
    }

    /// The value of a parameter, to be changed.
    pub fn get_mut(&mut self, id: ParameterId) -> &mut Tensor {
        self.packs[id.0].forget();
        &mut self.tensors[id.0]
    }

    /// A parameter as the right factor of products.
    pub(crate) fn weight(&self, id: ParameterId) -> Weight<'_> {
        Weight::new(self.get(id), Some(&self.packs[id.0]))
    }

    /// Every value in the order in which they were added, to be changed.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Tensor> {
        self.packs.iter_mut().for_each(Packs::forget);
        self.tensors.iter_mut()
    }

    /// Every parameter in the order in which they were added.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (ParameterId, &str, &Tensor)> {
        let named = self.names.iter().zip(&self.tensors).enumerate();
        named.map(|(id, (name, tensor))| (ParameterId(id), name.as_str(), tensor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::{Into, View};
    use crate::testkit::matrix;
    use crate::{Adam, AdamConfig, Gradients, Tape};

    #[test]
    fn names_are_unique_and_found_again() {
        let mut parameters = Parameters::default();
        let id = parameters.add("a.weight", Tensor::vector(vec![1.0, 2.0])).unwrap();
        assert_eq!(parameters.id("a.weight"), Some(id));
        assert_eq!((parameters.name(id), parameters.n_values()), ("a.weight", 2));
        assert_eq!(parameters.id("a.bias"), None);
        let error = parameters.add("a.weight", Tensor::vector(vec![])).unwrap_err();
        assert!(error.to_string().starts_with("there is already a parameter `a.weight`"));
    }

    #[test]
    fn a_weight_that_changes_is_packed_anew() {
        let (m, k, n) = (40, 200, 100);
        let mut parameters = Parameters::default();
        let id = parameters.add("a.weight", matrix(1, n, k)).unwrap();
        let mut adam = Adam::new(AdamConfig::default(), &parameters);
        let x = matrix(2, m, k);
        // The first time packs, the second reads that.
        let check = |parameters: &Parameters| {
            let mut plain = vec![0.0; m * n];
            let x = View::new(x.values(), m, k);
            Weight::new(parameters.get(id), None).forward(x, Into::Replace, &mut plain);
            for _ in 0..2 {
                let mut packed = vec![0.0; m * n];
                parameters.weight(id).forward(x, Into::Replace, &mut packed);
                assert_eq!(packed, plain);
                assert_eq!(parameters.packs[id.0].are_made(), crate::vector::is_wide());
            }
        };
        check(&parameters);
        parameters.get_mut(id).values_mut()[7] += 1.0;
        assert!(!parameters.packs[id.0].are_made());
        check(&parameters);
        let mut gradients = Gradients::zeros(&parameters);
        let mut tape = Tape::new(&parameters);
        let weight = tape.parameter(id);
        tape.backward_from(weight, matrix(3, n, k), &mut gradients).unwrap();
        adam.step(&mut parameters, &gradients);
        assert!(!parameters.packs[id.0].are_made());
        check(&parameters);
        let copy = parameters.clone();
        assert!(!copy.packs[id.0].are_made() && copy == parameters);
        check(&copy);
    }
}
