//! Softmax over the values of a row.

use crate::math::{dot, exp, sum};
use crate::tape::{At, Sink};
use crate::{Tape, Tensor, Var};

/// e^x of each value over their sum, taken from the largest so that nothing overflows.
pub(crate) fn softmax_row(row: &mut [f32]) {
    let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for x in row.iter_mut() {
        *x = exp(*x - top);
    }
    let inv_total = 1.0 / sum(row);
    for x in row.iter_mut() {
        *x *= inv_total;
    }
}

/// Turns the gradient of a softmax into that of what went in: y·(dy − Σ dy·y).
pub(crate) fn softmax_row_backward(grad: &mut [f32], output: &[f32]) {
    let along = dot(grad, output);
    for (grad, y) in grad.iter_mut().zip(output) {
        *grad = y * (*grad - along);
    }
}

impl Tape<'_> {
    /// The softmax of each row of `x`.
    pub fn softmax(&mut self, x: Var) -> Var {
        let shape = self.shape(x);
        let cols = shape.cols();
        let mut values = self.value(x).values().to_vec();
        self.threads().rows(&mut values, cols, |_, rows| rows.chunks_exact_mut(cols).for_each(softmax_row));
        let backward = move |mut grad: Vec<f32>, at: &At<'_>, sink: &mut Sink<'_>| {
            let output = at.output().values();
            at.threads.rows(&mut grad, cols, |first, rows| {
                let outputs = output[first * cols..].chunks_exact(cols);
                rows.chunks_exact_mut(cols).zip(outputs).for_each(|(grad, y)| softmax_row_backward(grad, y));
            });
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
        softmax_row(&mut row);
        assert!((row[0] - 0.5).abs() < 1e-6 && row[1] < 1e-30);
    }
}
