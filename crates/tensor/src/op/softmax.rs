//! Softmax over the values of a row.

use crate::math::{dot, exp, largest, sum};
use crate::scratch::{self, Scratch};
use crate::tape::{At, Sink};
use crate::vector::vectorised;
use crate::{Tape, Tensor, Var};

vectorised! {
    /// e^x of each value over their sum, taken from the largest so that nothing overflows, for rows of `cols` values.
    pub(crate) fn softmax_rows(rows: &mut [f32], cols: usize) {
        for row in rows.chunks_exact_mut(cols.max(1)) {
            let top = largest(row);
            for x in row.iter_mut() {
                *x = exp(*x - top);
            }
            let inv_total = 1.0 / sum(row);
            for x in row.iter_mut() {
                *x *= inv_total;
            }
        }
    }

    /// Turns the gradients of a softmax into those of what went in: y·(dy − Σ dy·y).
    pub(crate) fn softmax_rows_backward(grads: &mut [f32], outputs: &[f32], cols: usize) {
        let cols = cols.max(1);
        for (grad, output) in grads.chunks_exact_mut(cols).zip(outputs.chunks_exact(cols)) {
            let along = dot(grad, output);
            for (grad, y) in grad.iter_mut().zip(output) {
                *grad = y * (*grad - along);
            }
        }
    }
}

impl Tape<'_> {
    /// The softmax of each row of `x`.
    pub fn softmax(&mut self, x: Var) -> Var {
        let shape = self.shape(x);
        let cols = shape.cols();
        if let Some(record) = self.record() {
            return Var(record.softmax(x.0));
        }
        let mut values = scratch::copy_of(self.value(x).values());
        self.threads().rows(&mut values, cols, |_, rows| softmax_rows(rows, cols));
        let backward = move |mut grad: Scratch, at: &At<'_>, sink: &mut Sink<'_>| {
            let output = at.output().values();
            at.threads.rows(&mut grad, cols, |first, rows| softmax_rows_backward(rows, &output[first * cols..], cols));
            sink.give(x, grad);
        };
        self.push(&[x], Tensor::from_parts(shape, values), backward)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::{Case, check_gradients, matrix};

    #[test]
    fn gradients_match_differences() {
        check_gradients(&[matrix(1, 70, 9)], |tape, x| Ok(tape.softmax(x[0])));
    }

    #[test]
    fn values_and_gradients_are_those_of_pytorch() {
        Case::load("softmax").check(&["x"], |tape, x| Ok(tape.softmax(x[0])));
    }

    #[test]
    fn large_values_do_not_overflow() {
        let mut row = [1e30, 0.0, 1e30];
        softmax_rows(&mut row, 3);
        assert!((row[0] - 0.5).abs() < 1e-6 && row[1] < 1e-30);
    }
}
