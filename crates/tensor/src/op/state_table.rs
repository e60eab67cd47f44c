//! State tables: rows that tapes read and write without gradients, such as the node memory of TGN.

mod cpu;
mod cuda;
#[cfg(test)]
mod tests;

use std::sync::{Arc, PoisonError, RwLock};

use crate::cuda::{Buffer, Context};
use crate::tape::dispatch;
use crate::{Device, Error, Indices, Result, Shape, Tape, Var};

/// A table of rows on a device that tapes read and write, all zero at first.
///
/// A tape's writes are complete, or on a GPU submitted, when the call returns: later reads of any tape see them. Rows that
/// were read before keep their values.
///
/// ```
/// use hopedgn_tensor::{Device, Indices, Parameters, StateTable, Tape, Tensor};
///
/// let memory = StateTable::zeros(&Device::cpu(), 4, 2)?; // `[4, 2]`
/// let parameters = Parameters::default();
/// let mut tape = Tape::new(&parameters);
/// let values = tape.input(Tensor::matrix(1, 2, vec![0.5, 1.5])?);
/// tape.write_state(&memory, &Indices::from([3]), values)?;
/// let rows = tape.read_state(&memory, &Indices::from([3, 0]))?; // `[2, 2]`
/// assert_eq!(tape.read(rows)?, [0.5, 1.5, 0.0, 0.0]);
/// # Ok::<(), hopedgn_tensor::Error>(())
/// ```
#[derive(Debug)]
pub struct StateTable {
    rows: usize,
    cols: usize,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Cpu(RwLock<Vec<f32>>),
    Cuda(Arc<Context>, Arc<Buffer>),
}

impl StateTable {
    /// A table of zeros on `device`, `[rows, cols]`.
    pub fn zeros(device: &Device, rows: usize, cols: usize) -> Result<Self> {
        let values = match device.context() {
            None => Values::Cpu(RwLock::new(vec![0.0; rows * cols])),
            Some(cuda) => Values::Cuda(Arc::clone(cuda), cuda.alloc_zeros(rows * cols)?),
        };
        Ok(Self { rows, cols, values })
    }

    /// A copy with more rows, which are zero.
    ///
    /// ```
    /// use hopedgn_tensor::{Device, StateTable};
    ///
    /// let memory = StateTable::zeros(&Device::cpu(), 1, 2)?;
    /// memory.replace(&[0.5, 1.5])?;
    /// assert_eq!(memory.grown(2)?.values()?, [0.5, 1.5, 0.0, 0.0]);
    /// # Ok::<(), hopedgn_tensor::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are fewer rows than before.
    pub fn grown(&self, rows: usize) -> Result<Self> {
        let mut all = self.values()?;
        all.resize(rows * self.cols, 0.0);
        let values = match &self.values {
            Values::Cpu(_) => Values::Cpu(RwLock::new(vec![0.0; rows * self.cols])),
            Values::Cuda(cuda, _) => Values::Cuda(Arc::clone(cuda), cuda.alloc_zeros(rows * self.cols)?),
        };
        let grown = Self { rows, cols: self.cols, values };
        grown.replace(&all)?;
        Ok(grown)
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// A copy of all values, row-major. Waits for a GPU to write them.
    pub fn values(&self) -> Result<Vec<f32>> {
        match &self.values {
            Values::Cpu(values) => Ok(values.read().unwrap_or_else(PoisonError::into_inner).clone()),
            Values::Cuda(cuda, buffer) => cuda.read_buffer(buffer, self.rows * self.cols),
        }
    }

    /// Overwrites all values, row-major.
    ///
    /// # Errors
    /// If there are too few or too many values.
    pub fn replace(&self, values: &[f32]) -> Result<()> {
        if values.len() != self.rows * self.cols {
            return Err(Error::Count { shape: Shape::Matrix(self.rows, self.cols), count: values.len() });
        }
        match &self.values {
            Values::Cpu(own) => {
                own.write().unwrap_or_else(PoisonError::into_inner).copy_from_slice(values);
                Ok(())
            }
            Values::Cuda(cuda, buffer) => cuda.write_buffer(buffer, values),
        }
    }

    /// Sets all values to zero.
    pub fn clear(&self) -> Result<()> {
        match &self.values {
            Values::Cpu(values) => {
                values.write().unwrap_or_else(PoisonError::into_inner).fill(0.0);
                Ok(())
            }
            Values::Cuda(cuda, buffer) => cuda.zero_buffer(buffer, self.rows * self.cols),
        }
    }
}

impl Tape<'_> {
    /// A copy of `rows` of `table` as they are now, `[rows, D]`. It requires no gradient.
    pub fn read_state(&mut self, table: &StateTable, rows: &Indices) -> Result<Var> {
        rows.check("read state", table.rows)?;
        dispatch!(self.read_state(table, rows))
    }

    /// Overwrites `rows` of `table`, all different, with the rows of `values` `[rows, D]`. No gradient flows through the
    /// table.
    pub fn write_state(&mut self, table: &StateTable, rows: &Indices, values: Var) -> Result<()> {
        rows.check("write state", table.rows)?;
        check_distinct("write state", rows)?;
        let shape = Shape::Matrix(rows.len(), table.cols);
        if self.shape(values) != shape {
            return Err(self.shape_error("write state", "the matrix of new rows", values, shape));
        }
        dispatch!(self.write_state(table, rows, values))
    }
}

fn check_distinct(operation: &'static str, rows: &Indices) -> Result<()> {
    // The usual case, without a sort.
    if rows.is_increasing() {
        return Ok(());
    }
    let mut sorted = rows.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => Err(Error::DuplicateIndex { operation, index: pair[0] }),
    }
}
