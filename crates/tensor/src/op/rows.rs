//! Rows picked, put down, repeated and cut anew: gather, scatter, repeat, reshape.

use crate::scratch::{self, Scratch};
use crate::tape::{At, Sink};
use crate::vector::add_to;
use crate::{Indices, Result, Shape, Tape, Tensor, Threads, Var};

impl Tape<'_> {
    /// Row `indices[i]` of `x` `[M, D]` as row `i`, `[indices, D]`.
    pub fn gather(&mut self, x: Var, indices: impl Into<Indices>) -> Result<Var> {
        let indices = indices.into();
        let Shape::Matrix(rows, cols) = self.shape(x) else { return Err(self.misfit("gather", "x", x, "[M, D]")) };
        indices.check("gather", rows)?;
        if let Some(record) = self.record() {
            return record.gather(x.0, indices).map(Var);
        }
        let mut values = scratch::take_zeros(indices.len() * cols);
        pick(self.value(x).values(), &indices, cols, &mut values, self.threads());
        let shape = Shape::Matrix(indices.len(), cols);
        let backward = move |grad: Scratch, at: &At<'_>, sink: &mut Sink<'_>| {
            sink.add(x, |sum| put(&grad, &indices, cols, sum, at.threads));
        };
        Ok(self.push(&[x], Tensor::from_parts(shape, values), backward))
    }

    /// Row `i` of `x` `[indices, D]` added to row `indices[i]` of zeros, `[n_rows, D]`.
    pub fn scatter(&mut self, x: Var, indices: impl Into<Indices>, n_rows: usize) -> Result<Var> {
        let indices = indices.into();
        let cols = self.shape(x).cols();
        if self.shape(x) != Shape::Matrix(indices.len(), cols) {
            return Err(self.misfit("scatter", "x", x, format_args!("[{}, D]", indices.len())));
        }
        indices.check("scatter", n_rows)?;
        if let Some(record) = self.record() {
            return record.scatter(x.0, indices, n_rows).map(Var);
        }
        let mut values = scratch::take_zeros(n_rows * cols);
        put(self.value(x).values(), &indices, cols, &mut values, self.threads());
        let backward = move |grad: Scratch, at: &At<'_>, sink: &mut Sink<'_>| {
            sink.add(x, |sum| pick(&grad, &indices, cols, sum, at.threads));
        };
        Ok(self.push(&[x], Tensor::from_parts(Shape::Matrix(n_rows, cols), values), backward))
    }

    /// The values of `x`, row after row, as `[rows, cols]`. The gradient is handed on without copying.
    pub fn reshape(&mut self, x: Var, rows: usize, cols: usize) -> Result<Var> {
        let shape = Shape::Matrix(rows, cols);
        if self.shape(x).len() != shape.len() {
            return Err(self.misfit("reshape", "x", x, format_args!("{} values for {shape}", shape.len())));
        }
        if let Some(record) = self.record() {
            return record.reshape(x.0, shape).map(Var);
        }
        let values = scratch::copy_of(self.value(x).values());
        let backward = move |grad: Scratch, _: &At<'_>, sink: &mut Sink<'_>| sink.give(x, grad);
        Ok(self.push(&[x], Tensor::from_parts(shape, values), backward))
    }

    /// The one row `x` `[D]`, `n_rows` times, `[n_rows, D]`.
    pub fn repeat_row(&mut self, x: Var, n_rows: usize) -> Result<Var> {
        if self.shape(x).rows() != 1 {
            return Err(self.misfit("repeat", "x", x, "[D]"));
        }
        let cols = self.shape(x).cols();
        if let Some(record) = self.record() {
            return record.repeat_row(x.0, n_rows).map(Var);
        }
        let values = self.value(x).values().repeat(n_rows);
        let backward = move |grad: Scratch, at: &At<'_>, sink: &mut Sink<'_>| {
            let row = |row: usize| &grad[row * cols..(row + 1) * cols];
            sink.add(x, |sum| at.threads.sum_rows(n_rows, sum, |i, sums| add_to(sums, row(i))));
        };
        Ok(self.push(&[x], Tensor::from_parts(Shape::Matrix(n_rows, cols), values), backward))
    }
}

/// `to[i] += from[indices[i]]`, row by row.
pub(super) fn pick(from: &[f32], indices: &[u32], cols: usize, to: &mut [f32], threads: Threads) {
    threads.rows(to, cols, |first, rows| {
        for (row, &index) in rows.chunks_exact_mut(cols).zip(&indices[first..]) {
            add_to(row, &from[index as usize * cols..][..cols]);
        }
    });
}

/// `to[indices[i]] += from[i]`, row by row. Rows that share an index are added in their order.
fn put(from: &[f32], indices: &[u32], cols: usize, to: &mut [f32], threads: Threads) {
    // Whoever has some of the targets looks through all indices for them.
    threads.pieces(to, cols, |first, rows| {
        for (i, &index) in indices.iter().enumerate() {
            let at = (index as usize).checked_sub(first).map(|row| row * cols);
            if let Some(row) = at.and_then(|at| rows.get_mut(at..at + cols)) {
                add_to(row, &from[i * cols..(i + 1) * cols]);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Parameters;
    use crate::testkit::{Case, check_gradients, matrix, vector};

    const INDICES: [u32; 6] = [2, 0, 2, 3, 2, 0];

    #[test]
    fn gradients_match_differences() {
        check_gradients(&[matrix(1, 5, 3)], |tape, x| tape.gather(x[0], INDICES));
        check_gradients(&[matrix(1, 6, 3)], |tape, x| tape.scatter(x[0], INDICES, 5));
        check_gradients(&[matrix(1, 6, 4)], |tape, x| tape.reshape(x[0], 3, 8));
        // More rows than are summed together.
        check_gradients(&[vector(1, 3)], |tape, x| tape.repeat_row(x[0], 70));
        check_gradients(&[vector(1, 3)], |tape, x| tape.repeat_row(x[0], 0));
    }

    #[test]
    fn values_stay_in_their_order_when_rows_are_cut_anew() {
        let parameters = Parameters::default();
        let mut tape = Tape::new(&parameters);
        let x = tape.input(Tensor::matrix(2, 3, vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0]).unwrap());
        let y = tape.reshape(x, 3, 2).unwrap();
        assert_eq!(tape.value(y).row(1), [2.0, 3.0]);
        let error = tape.reshape(x, 2, 2).unwrap_err();
        assert_eq!(error.to_string(), "reshape: x has shape [2, 3], but 4 values for [2, 2] is needed");
        let error = tape.repeat_row(x, 2).unwrap_err();
        assert_eq!(error.to_string(), "repeat: x has shape [2, 3], but [D] is needed");
    }

    #[test]
    fn values_and_gradients_are_those_of_pytorch() {
        Case::load("gather").check(&["x"], |tape, x| tape.gather(x[0], INDICES));
        Case::load("scatter").check(&["x"], |tape, x| tape.scatter(x[0], INDICES, 5));
        Case::load("reshape").check(&["x"], |tape, x| tape.reshape(x[0], 3, 8));
        Case::load("repeat_row").check(&["x"], |tape, x| tape.repeat_row(x[0], 5));
    }

    #[test]
    fn an_index_past_the_end_is_refused() {
        let parameters = Parameters::default();
        let mut tape = Tape::new(&parameters);
        let x = tape.input(matrix(1, 3, 2));
        let error = tape.gather(x, [0, 3]).unwrap_err();
        assert_eq!(error.to_string(), "gather: index 3 at position 1 is past the last of 3 rows");
        assert!(tape.scatter(x, [0, 1, 2], 2).is_err());
    }
}
