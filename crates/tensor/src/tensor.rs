//! Dense `f32` arrays of one or two axes, row-major.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::cuda::{Copies, Staged};
use crate::scratch::{self, Scratch};
use crate::{Error, Result};

/// The sizes of a tensor's axes.
///
/// One and two axes are all the models need: a batch of sequences is packed as rows with offsets ([`Ragged`]), never
/// padded to a third axis.
///
/// [`Ragged`]: crate::Ragged
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One axis. Where rows are asked for, it counts as one row.
    Vector(usize),
    /// Rows and columns.
    Matrix(usize, usize),
}

impl Shape {
    /// The number of rows; 1 for a vector.
    #[must_use]
    pub fn rows(self) -> usize {
        match self {
            Self::Vector(_) => 1,
            Self::Matrix(rows, _) => rows,
        }
    }

    /// The number of columns; a vector's length.
    #[must_use]
    pub fn cols(self) -> usize {
        match self {
            Self::Vector(cols) | Self::Matrix(_, cols) => cols,
        }
    }

    /// The number of values.
    #[must_use]
    pub fn len(self) -> usize {
        self.rows() * self.cols()
    }

    /// Whether there are no values.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The sizes as a list, as files store them.
    #[must_use]
    pub fn sizes(self) -> Vec<usize> {
        match self {
            Self::Vector(cols) => vec![cols],
            Self::Matrix(rows, cols) => vec![rows, cols],
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vector(cols) => write!(f, "[{cols}]"),
            Self::Matrix(rows, cols) => write!(f, "[{rows}, {cols}]"),
        }
    }
}

/// A dense array of `f32`.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    shape: Shape,
    values: Scratch,
    placed: Placed,
}

/// A copy of the values on a card; equal tensors are equal with and without.
#[derive(Debug, Clone, Default)]
struct Placed {
    copies: OnceLock<Arc<Copies>>,
    /// On the way there.
    staged: OnceLock<Arc<Staged>>,
}

impl PartialEq for Placed {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Tensor {
    /// A tensor of `values`, row after row.
    pub fn new(shape: Shape, values: Vec<f32>) -> Result<Self> {
        if shape.len() != values.len() {
            return Err(Error::Count { shape, count: values.len() });
        }
        Ok(Self::from_parts(shape, values))
    }

    /// A matrix of `values`, row after row.
    pub fn matrix(rows: usize, cols: usize, values: Vec<f32>) -> Result<Self> {
        Self::new(Shape::Matrix(rows, cols), values)
    }

    /// A vector of `values`.
    #[must_use]
    pub fn vector(values: Vec<f32>) -> Self {
        Self::from_parts(Shape::Vector(values.len()), values)
    }

    /// A tensor of zeros.
    #[must_use]
    pub fn zeros(shape: Shape) -> Self {
        Self::full(shape, 0.0)
    }

    /// A tensor whose values are all `value`.
    #[must_use]
    pub fn full(shape: Shape, value: f32) -> Self {
        Self::from_parts(shape, scratch::take_full(shape.len(), value))
    }

    /// For kernels that have just made `values` of the right length.
    pub(crate) fn from_parts(shape: Shape, values: impl Into<Scratch>) -> Self {
        let values = values.into();
        debug_assert_eq!(shape.len(), values.len());
        Self { shape, values, placed: Placed::default() }
    }

    /// The sizes of the axes.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The number of rows; 1 for a vector.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.shape.rows()
    }

    /// The number of columns; a vector's length.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.shape.cols()
    }

    /// The values, row after row.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The values, row after row, to be changed.
    pub fn values_mut(&mut self) -> &mut [f32] {
        self.placed = Placed::default();
        &mut self.values
    }

    /// Row `row`.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[f32] {
        let cols = self.cols();
        &self.values[row * cols..(row + 1) * cols]
    }

    /// Whether no value is NaN or infinite.
    #[must_use]
    pub fn is_finite(&self) -> bool {
        self.values.iter().all(|value| value.is_finite())
    }

    pub(crate) fn placed(&self) -> Option<&Copies> {
        self.placed.copies.get().map(Arc::as_ref)
    }

    /// Where it is on a card from now on; one that is there already stays.
    pub(crate) fn set_placed(&self, copies: Copies) {
        let _ = self.placed.copies.set(Arc::new(copies));
    }

    pub(crate) fn staged(&self) -> Option<&Staged> {
        self.placed.staged.get().map(Arc::as_ref)
    }

    pub(crate) fn set_staged(&self, staged: Staged) {
        let _ = self.placed.staged.set(Arc::new(staged));
    }

    pub(crate) fn into_values(self) -> Scratch {
        self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_holds_exactly_its_shape() {
        let error = Tensor::matrix(2, 3, vec![0.0; 5]).unwrap_err();
        assert_eq!(error.to_string(), "a tensor of shape [2, 3] holds 6 values, but 5 were given");
    }

    #[test]
    fn a_vector_counts_as_one_row() {
        let vector = Tensor::vector(vec![1.0, 2.0, 3.0]);
        assert_eq!((vector.rows(), vector.cols()), (1, 3));
        assert_eq!(vector.shape().sizes(), [3]);
        assert_eq!(vector.row(0), [1.0, 2.0, 3.0]);
    }
}
