//! Sums and means over the rows of each sequence.

use std::sync::Arc;

use crate::scratch::{self, Scratch};
use crate::tape::{At, Sink};
use crate::vector::{add_scaled, add_to};
use crate::{Error, Ragged, Result, Shape, Tape, Tensor, Var};

impl Tape<'_> {
    /// The mean row of each sequence of `x` `[T, D]`, `[sequences, D]`; zeros for an empty one.
    pub fn segment_mean(&mut self, x: Var, batch: &Ragged) -> Result<Var> {
        let cols = self.checked_segments("segment mean", x, batch)?;
        if let Some(record) = self.record() {
            return record.segments(x.0, None, true, batch).map(Var);
        }
        let mut values = scratch::take_zeros(batch.len() * cols);
        let x_values = self.value(x).values();
        self.threads().rows(&mut values, cols, |first, means| {
            for (i, mean) in means.chunks_exact_mut(cols).enumerate() {
                let range = batch.range(first + i);
                for row in range.clone() {
                    add_to(mean, &x_values[row * cols..(row + 1) * cols]);
                }
                let share = 1.0 / range.len().max(1) as f32;
                for mean in mean.iter_mut() {
                    *mean *= share;
                }
            }
        });
        let shape = Shape::Matrix(batch.len(), cols);
        let batch = batch.clone();
        let backward = move |grad: Scratch, at: &At<'_>, sink: &mut Sink<'_>| {
            sink.add(x, |sum| {
                at.threads.segments(sum, cols, &batch, |segment, rows| {
                    let share = 1.0 / batch.range(segment).len() as f32;
                    let grad = &grad[segment * cols..(segment + 1) * cols];
                    rows.chunks_exact_mut(cols).for_each(|row| add_scaled(row, grad, share));
                });
            });
        };
        Ok(self.push(&[x], Tensor::from_parts(shape, values), backward))
    }

    /// The sum of the rows of each sequence of `x` `[T, D]`, each times its weight of `[T, 1]` if there are some,
    /// `[sequences, D]`; zeros for an empty one. The weights get no gradient.
    pub fn segment_sum(&mut self, x: Var, weights: Option<&Arc<Tensor>>, batch: &Ragged) -> Result<Var> {
        let cols = self.checked_segments("segment sum", x, batch)?;
        if let Some(weights) = weights.filter(|weights| weights.shape() != Shape::Matrix(batch.total(), 1)) {
            let needed = Shape::Matrix(batch.total(), 1).to_string();
            return Err(Error::Shape {
                operation: "segment sum",
                what: "the list of weights",
                got: weights.shape(),
                needed,
            });
        }
        if let Some(record) = self.record() {
            return record.segments(x.0, weights, false, batch).map(Var);
        }
        let mut values = scratch::take_zeros(batch.len() * cols);
        let x_values = self.value(x).values();
        let weights = weights.cloned();
        let weight = |row: usize| weights.as_ref().map_or(1.0, |weights| weights.values()[row]);
        self.threads().rows(&mut values, cols, |first, sums| {
            for (i, sum) in sums.chunks_exact_mut(cols).enumerate() {
                for row in batch.range(first + i) {
                    add_scaled(sum, &x_values[row * cols..(row + 1) * cols], weight(row));
                }
            }
        });
        let shape = Shape::Matrix(batch.len(), cols);
        let batch = batch.clone();
        let backward = move |grad: Scratch, at: &At<'_>, sink: &mut Sink<'_>| {
            let weight = |row: usize| weights.as_ref().map_or(1.0, |weights| weights.values()[row]);
            sink.add(x, |sum| {
                at.threads.segments(sum, cols, &batch, |segment, rows| {
                    let grad = &grad[segment * cols..(segment + 1) * cols];
                    for (row, sum) in batch.range(segment).zip(rows.chunks_exact_mut(cols)) {
                        add_scaled(sum, grad, weight(row));
                    }
                });
            });
        };
        Ok(self.push(&[x], Tensor::from_parts(shape, values), backward))
    }

    fn checked_segments(&self, operation: &'static str, x: Var, batch: &Ragged) -> Result<usize> {
        let cols = self.shape(x).cols();
        if self.shape(x) == Shape::Matrix(batch.total(), cols) {
            return Ok(cols);
        }
        Err(self.misfit(operation, "x", x, format_args!("[{}, D]", batch.total())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Parameters;
    use crate::testkit::{Case, check_gradients, matrix};

    #[test]
    fn gradients_match_differences() {
        for lengths in [&[2, 0, 3, 1][..], &[0], &[], &[6], &[1; 70]] {
            let batch = Ragged::from_lengths(lengths.iter().copied());
            let weights = Arc::new(matrix(2, batch.total(), 1));
            let inputs = [matrix(1, batch.total(), 3)];
            check_gradients(&inputs, |tape, x| tape.segment_mean(x[0], &batch));
            check_gradients(&inputs, |tape, x| tape.segment_sum(x[0], None, &batch));
            check_gradients(&inputs, |tape, x| tape.segment_sum(x[0], Some(&weights), &batch));
            check_gradients(&[matrix(1, batch.total(), 0)], |tape, x| tape.segment_sum(x[0], None, &batch));
        }
    }

    #[test]
    fn values_and_gradients_are_those_of_pytorch() {
        let batch = Ragged::from_lengths([2, 1, 3]);
        Case::load("segment_mean").check(&["x"], |tape, x| tape.segment_mean(x[0], &batch));
        let batch = Ragged::from_lengths([2, 0, 1, 3]);
        let weights = Arc::new(Tensor::matrix(6, 1, vec![0.5, -1.0, 2.0, 0.25, 0.0, 3.0]).unwrap());
        Case::load("segment_sum").check(&["x"], |tape, x| tape.segment_sum(x[0], Some(&weights), &batch));
    }

    #[test]
    fn an_empty_sequence_has_sum_and_mean_zero() {
        let parameters = Parameters::default();
        let mut tape = Tape::new(&parameters);
        let x = tape.input(Tensor::matrix(2, 1, vec![1.0, 3.0]).unwrap());
        let batch = Ragged::from_lengths([0, 2]);
        let mean = tape.segment_mean(x, &batch).unwrap();
        assert_eq!(tape.value(mean).values(), [0.0, 2.0]);
        let sum = tape.segment_sum(x, None, &batch).unwrap();
        assert_eq!(tape.value(sum).values(), [0.0, 4.0]);
        let weights = Arc::new(matrix(1, 3, 1));
        let error = tape.segment_sum(x, Some(&weights), &batch).unwrap_err();
        assert_eq!(error.to_string(), "segment sum: the list of weights has shape [3, 1], but [2, 1] is needed");
    }
}
