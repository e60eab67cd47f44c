//! A table of rows beside the weights that no gradient reaches: the memory of models that have one.

use std::sync::{Arc, PoisonError, RwLock};

use crate::cuda::{Buffer, Context};
use crate::scratch;
use crate::{Device, Error, Indices, Result, Shape, Tape, Tensor, Var};

/// Rows on a device that tapes read and write, all zero at first.
///
/// A tape's writes are done, or on a card asked for, when the call returns: what is read later sees them, whichever tape
/// reads it. What a tape has read stays as it was.
#[derive(Debug)]
pub struct StateTable {
    rows: usize,
    cols: usize,
    home: Home,
}

#[derive(Debug)]
enum Home {
    Cpu(RwLock<Vec<f32>>),
    Cuda(Arc<Context>, Arc<Buffer>),
}

impl StateTable {
    /// A table of zeros on `device`.
    pub fn zeros(device: &Device, rows: usize, cols: usize) -> Result<Self> {
        let home = match device.context() {
            None => Home::Cpu(RwLock::new(vec![0.0; rows * cols])),
            Some(cuda) => Home::Cuda(Arc::clone(cuda), cuda.zeros(rows * cols)?),
        };
        Ok(Self { rows, cols, home })
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

    /// A copy of all values, row after row; waits for a card to have written them.
    pub fn values(&self) -> Result<Vec<f32>> {
        match &self.home {
            Home::Cpu(values) => Ok(values.read().unwrap_or_else(PoisonError::into_inner).clone()),
            Home::Cuda(cuda, buffer) => cuda.read(buffer, self.rows * self.cols),
        }
    }

    /// Overwrites all values, row after row.
    pub fn replace(&self, values: &[f32]) -> Result<()> {
        if values.len() != self.rows * self.cols {
            return Err(Error::Count { shape: Shape::Matrix(self.rows, self.cols), count: values.len() });
        }
        match &self.home {
            Home::Cpu(own) => {
                own.write().unwrap_or_else(PoisonError::into_inner).copy_from_slice(values);
                Ok(())
            }
            Home::Cuda(cuda, buffer) => cuda.write(buffer, values),
        }
    }

    /// Back to zero.
    pub fn clear(&self) -> Result<()> {
        match &self.home {
            Home::Cpu(values) => {
                values.write().unwrap_or_else(PoisonError::into_inner).fill(0.0);
                Ok(())
            }
            Home::Cuda(cuda, buffer) => cuda.clear(buffer, self.rows * self.cols),
        }
    }
}

impl Tape<'_> {
    /// Copies of `rows` of the bank as they are now, `[rows, D]`, which get no gradient.
    pub fn recall(&mut self, bank: &StateTable, rows: &Indices) -> Result<Var> {
        rows.check("recall", bank.rows)?;
        let shape = Shape::Matrix(rows.len(), bank.cols);
        match (self.record(), &bank.home) {
            (None, Home::Cpu(from)) => {
                let mut values = scratch::take(shape.len());
                let from = from.read().unwrap_or_else(PoisonError::into_inner);
                let cols = bank.cols;
                self.threads().rows(&mut values, cols, |first, to| {
                    for (to, &row) in to.chunks_exact_mut(cols).zip(&rows[first..]) {
                        to.copy_from_slice(&from[row as usize * cols..][..cols]);
                    }
                });
                Ok(self.push(&[], Tensor::from_parts(shape, values), |_, _, _| {}))
            }
            (Some(record), Home::Cuda(_, from)) => record.recall(from, rows, shape).map(Var),
            _ => Err(Error::Elsewhere { operation: "recall" }),
        }
    }

    /// Overwrites `rows` of the bank, all different, with the rows of `values` `[rows, D]`, through which no gradient comes
    /// back.
    pub fn keep(&mut self, bank: &StateTable, rows: &Indices, values: Var) -> Result<()> {
        rows.check("keep", bank.rows)?;
        check_distinct("keep", rows)?;
        let shape = Shape::Matrix(rows.len(), bank.cols);
        if self.shape(values) != shape {
            return Err(self.misfit("keep", "what is kept", values, shape));
        }
        match (self.record(), &bank.home) {
            (None, Home::Cpu(to)) => {
                let cols = bank.cols;
                let mut to = to.write().unwrap_or_else(PoisonError::into_inner);
                for (from, &row) in self.value(values).values().chunks_exact(cols.max(1)).zip(rows.iter()) {
                    to[row as usize * cols..][..cols].copy_from_slice(from);
                }
                Ok(())
            }
            (Some(record), Home::Cuda(_, to)) => record.keep(to, rows, values.0),
            _ => Err(Error::Elsewhere { operation: "keep" }),
        }
    }
}

/// Rows in rising order are the rule, and quick to check.
fn check_distinct(operation: &'static str, rows: &Indices) -> Result<()> {
    if rows.is_rising() {
        return Ok(());
    }
    let mut sorted = rows.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => Err(Error::Repeated { operation, index: pair[0] }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::matrix;
    use crate::{Gradients, Parameters};

    fn rows(rows: &[u32]) -> Indices {
        rows.to_vec().into()
    }

    #[test]
    fn what_is_kept_is_recalled_and_what_was_recalled_stays() {
        let bank = StateTable::zeros(&Device::cpu(), 4, 2).unwrap();
        assert_eq!((bank.rows(), bank.cols()), (4, 2));
        let parameters = Parameters::default();
        let mut tape = Tape::new(&parameters);
        let before = tape.recall(&bank, &rows(&[3, 1, 3])).unwrap();
        let x = tape.input(Tensor::matrix(2, 2, vec![1.0, 2.0, 3.0, 4.0]).unwrap());
        tape.keep(&bank, &rows(&[3, 0]), x).unwrap();
        let after = tape.recall(&bank, &rows(&[3, 1, 3])).unwrap();
        assert_eq!(tape.value(before).values(), [0.0; 6]);
        assert_eq!(tape.value(after).values(), [1.0, 2.0, 0.0, 0.0, 1.0, 2.0]);
        assert_eq!(bank.values().unwrap(), [3.0, 4.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0]);
        let none = tape.recall(&bank, &rows(&[])).unwrap();
        tape.keep(&bank, &rows(&[]), none).unwrap();
        bank.replace(&[5.0; 8]).unwrap();
        assert_eq!(bank.values().unwrap(), [5.0; 8]);
        bank.clear().unwrap();
        assert_eq!(bank.values().unwrap(), [0.0; 8]);
    }

    #[test]
    fn no_gradient_goes_through() {
        let bank = StateTable::zeros(&Device::cpu(), 3, 2).unwrap();
        let parameters = Parameters::default();
        let mut tape = Tape::new(&parameters);
        let x = tape.watched(matrix(1, 2, 2));
        tape.keep(&bank, &rows(&[0, 2]), x).unwrap();
        let again = tape.recall(&bank, &rows(&[0, 2])).unwrap();
        assert!(!tape.wants_gradient(again));
        let product = tape.mul(x, again).unwrap();
        let mut gradients = Gradients::zeros(&parameters);
        tape.backward_from(product, Tensor::full(Shape::Matrix(2, 2), 1.0), &mut gradients).unwrap();
        assert_eq!(gradients.of(x).unwrap(), &matrix(1, 2, 2));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let bank = StateTable::zeros(&Device::cpu(), 3, 2).unwrap();
        let parameters = Parameters::default();
        let mut tape = Tape::new(&parameters);
        let x = tape.input(matrix(1, 3, 2));
        let error = tape.recall(&bank, &rows(&[0, 3])).unwrap_err();
        assert_eq!(error.to_string(), "recall: index 3 at position 1 is past the last of 3 rows");
        let error = tape.keep(&bank, &rows(&[2, 0, 2]), x).unwrap_err();
        assert_eq!(error.to_string(), "keep: row 2 is named more than once");
        tape.keep(&bank, &rows(&[2, 0, 1]), x).unwrap();
        let error = tape.keep(&bank, &rows(&[2, 0]), x).unwrap_err();
        assert_eq!(error.to_string(), "keep: what is kept has shape [3, 2], but [2, 2] is needed");
        let error = bank.replace(&[0.0; 5]).unwrap_err();
        assert_eq!(error.to_string(), "a tensor of shape [3, 2] holds 6 values, but 5 were given");
    }
}
