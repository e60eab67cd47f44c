//! Dense row-major `f32` tensors of one or two axes.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::cuda::{DeviceCopy, Staged};
use crate::scratch::{self, Scratch};
use crate::{Error, Result};

/// The shape of a tensor: one or two axes.
///
/// There is no third axis: a batch of sequences is packed as rows with offsets ([`Ragged`]), not padded.
///
/// [`Ragged`]: crate::Ragged
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One axis. It counts as one row.
    Vector(usize),
    /// Rows and columns, `[rows, cols]`.
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

    /// The number of columns; the length of a vector.
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

    /// The sizes of the axes, as files store them.
    #[must_use]
    pub fn dims(self) -> Vec<usize> {
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

/// A dense row-major `f32` tensor of one or two axes, in host memory.
///
/// ```
/// use hopedgn_tensor::{Shape, Tensor};
///
/// let x = Tensor::matrix(2, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// assert_eq!(x.shape(), Shape::Matrix(2, 3));
/// assert_eq!(x.row(1), [4.0, 5.0, 6.0]);
/// assert!(Tensor::matrix(2, 3, vec![0.0; 5]).is_err());
/// # Ok::<(), hopedgn_tensor::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    shape: Shape,
    values: Scratch,
    on_gpu: OnGpu,
}

/// Copies of the values for a GPU. They do not count when tensors are compared.
#[derive(Debug, Clone, Default)]
struct OnGpu {
    copy: OnceLock<Arc<DeviceCopy>>,
    /// In pinned memory.
    staged: OnceLock<Arc<Staged>>,
}

impl PartialEq for OnGpu {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Tensor {
    /// A tensor of `values`, row-major.
    ///
    /// # Errors
    /// If the number of values is not that of the shape.
    pub fn new(shape: Shape, values: Vec<f32>) -> Result<Self> {
        if shape.len() != values.len() {
            return Err(Error::Count { shape, count: values.len() });
        }
        Ok(Self::from_parts(shape, values))
    }

    /// A matrix of `values`, row-major.
    ///
    /// # Errors
    /// If the number of values is not `rows · cols`.
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

    /// A tensor filled with `value`.
    #[must_use]
    pub fn full(shape: Shape, value: f32) -> Self {
        Self::from_parts(shape, scratch::take_full(shape.len(), value))
    }

    /// A tensor of `values` whose length is known to be right.
    pub(crate) fn from_parts(shape: Shape, values: impl Into<Scratch>) -> Self {
        let values = values.into();
        debug_assert_eq!(shape.len(), values.len());
        Self { shape, values, on_gpu: OnGpu::default() }
    }

    /// The shape.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The number of rows; 1 for a vector.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.shape.rows()
    }

    /// The number of columns; the length of a vector.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.shape.cols()
    }

    /// The values, row-major.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The values, row-major, mutably.
    pub fn values_mut(&mut self) -> &mut [f32] {
        self.on_gpu = OnGpu::default();
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

    pub(crate) fn device_copy(&self) -> Option<&DeviceCopy> {
        self.on_gpu.copy.get().map(Arc::as_ref)
    }

    /// Remembers a copy on a GPU; an earlier one stays.
    pub(crate) fn set_device_copy(&self, copy: DeviceCopy) {
        let _ = self.on_gpu.copy.set(Arc::new(copy));
    }

    pub(crate) fn staged(&self) -> Option<&Staged> {
        self.on_gpu.staged.get().map(Arc::as_ref)
    }

    pub(crate) fn set_staged(&self, staged: Staged) {
        let _ = self.on_gpu.staged.set(Arc::new(staged));
    }

    pub(crate) fn into_values(self) -> Scratch {
        self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_number_of_values_is_refused() {
        let error = Tensor::matrix(2, 3, vec![0.0; 5]).unwrap_err();
        assert_eq!(error.to_string(), "a tensor of shape [2, 3] holds 6 values, but 5 were given");
    }

    #[test]
    fn a_vector_has_one_row() {
        let vector = Tensor::vector(vec![1.0, 2.0, 3.0]);
        assert_eq!((vector.rows(), vector.cols()), (1, 3));
        assert_eq!(vector.shape().dims(), [3]);
        assert_eq!(vector.row(0), [1.0, 2.0, 3.0]);
    }
}
