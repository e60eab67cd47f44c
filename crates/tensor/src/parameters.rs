//! Weights under stable dotted names.

use std::collections::BTreeMap;

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
        &mut self.tensors[id.0]
    }

    /// Every value in the order in which they were added, to be changed.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Tensor> {
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
}
