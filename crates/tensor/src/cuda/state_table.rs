//! A bank's rows on the card.

use std::sync::Arc;

use super::context::{Context, args};
use super::linear::size;
use super::memory::Buffer;
use super::rows::pick;
use super::tape::Record;
use crate::{Indices, Result, Shape};

impl Context {
    /// Memory for `count` zeros, whatever thread asks.
    pub(crate) fn zeros(self: &Arc<Self>, count: usize) -> Result<Arc<Buffer>> {
        self.enter()?;
        let buffer = self.floats(count)?;
        self.fill_zero(buffer.ptr(), 4 * count)?;
        Ok(buffer)
    }

    /// Waits, and reads the first values.
    pub(crate) fn read(&self, buffer: &Buffer, count: usize) -> Result<Vec<f32>> {
        self.enter()?;
        let mut values = vec![0.0; count];
        self.download(buffer.ptr(), &mut values)?;
        Ok(values)
    }

    /// Overwrites the first values.
    pub(crate) fn write(self: &Arc<Self>, buffer: &Buffer, values: &[f32]) -> Result<()> {
        self.enter()?;
        let uploaded = self.upload(values)?;
        self.copy(uploaded.ptr(), buffer.ptr(), size_of_val(values))
    }

    /// Zeros in the place of the first values.
    pub(crate) fn clear(&self, buffer: &Buffer, count: usize) -> Result<()> {
        self.enter()?;
        self.fill_zero(buffer.ptr(), 4 * count)
    }
}

impl Record<'_> {
    /// Copies of `rows`, as a constant; they have been checked.
    pub(crate) fn recall(&mut self, from: &Buffer, rows: &Indices, shape: Shape) -> Result<usize> {
        self.check()?;
        let out = self.cuda.floats(shape.len())?;
        let indices = self.indices(rows)?.numbers;
        pick(&self.cuda, from.ptr(), &indices, rows.len(), shape.cols(), out.ptr())?;
        Ok(self.push(&[], shape, out, |_, _| Ok(())))
    }

    /// Writes the rows of `values` to `rows`, which are all different.
    pub(crate) fn keep(&mut self, to: &Buffer, rows: &Indices, values: usize) -> Result<()> {
        self.check()?;
        let (n, cols) = (self.shape(values).len(), self.shape(values).cols());
        let indices = self.indices(rows)?.numbers;
        self.cuda.each("spread", n, args![self.ptr(values), indices.ptr(), to.ptr(), size(cols), n as u64])
    }
}
