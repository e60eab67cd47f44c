//! Products with a weight: the linear layer x·Wᵀ + b, with an activation in the same pass, and the plain x·W.

use super::activation::times_slope;
use crate::gemm::{Into, View, Weight, product};
use crate::scratch::{self, Scratch};
use crate::tape::{At, Sink};
use crate::vector::add_to;
use crate::{Activation, Result, Shape, Tape, Tensor, Threads, Var};

impl Tape<'_> {
    /// `activation(x · weightᵀ + bias)`, `[M, N]`.
    ///
    /// `x` is `[M, K]`, `weight` `[N, K]` as PyTorch keeps it, `bias` `[N]`.
    pub fn linear(&mut self, x: Var, weight: Var, bias: Option<Var>, activation: Option<Activation>) -> Result<Var> {
        let (x_shape, w_shape) = (self.shape(x), self.shape(weight));
        let sizes = Sizes { m: x_shape.rows(), k: x_shape.cols(), n: w_shape.rows() };
        if w_shape.cols() != sizes.k {
            return Err(self.misfit("linear", "the weight", weight, format_args!("[N, {}]", sizes.k)));
        }
        if let Some(bias) = bias.filter(|&bias| self.shape(bias) != Shape::Vector(sizes.n)) {
            return Err(self.misfit("linear", "the bias", bias, Shape::Vector(sizes.n)));
        }
        if let Some(record) = self.record() {
            return record.linear([x.0, weight.0], bias.map(|bias| bias.0), activation).map(Var);
        }
        let bias_values = bias.map(|bias| self.value(bias).values());
        let mut values = sizes.forward(self.value(x).values(), self.weight(weight), bias_values, self.threads());

        let operands: Vec<Var> = [x, weight].into_iter().chain(bias).collect();
        let wanted = operands.iter().any(|&var| self.wants_gradient(var));
        let slopes = activation.map(|function| function.apply_to(&mut values, sizes.n, wanted, self.threads()));

        let backward = move |mut grad: Scratch, at: &At<'_>, sink: &mut Sink<'_>| {
            if let Some(slopes) = &slopes {
                times_slope(&mut grad, slopes, sizes.n, at.threads);
            }
            sink.add(x, |dx| sizes.add_to_dx(&grad, at.weight(weight), dx, at.threads));
            sink.add(weight, |dw| sizes.add_to_dw(&grad, at.value(x).values(), dw, at.threads));
            if let Some(bias) = bias {
                let row = |row: usize| &grad[row * sizes.n..(row + 1) * sizes.n];
                sink.add(bias, |db| at.threads.sum_rows(sizes.m, db, |i, sums| add_to(sums, row(i))));
            }
        };
        Ok(self.push(&operands, Tensor::from_parts(Shape::Matrix(sizes.m, sizes.n), values), backward))
    }

    /// `x · weight`, `[M, N]`, of `x` `[M, K]` and `weight` `[K, N]`.
    pub fn matmul(&mut self, x: Var, weight: Var) -> Result<Var> {
        let (x_shape, w_shape) = (self.shape(x), self.shape(weight));
        let (m, k, n) = (x_shape.rows(), x_shape.cols(), w_shape.cols());
        if w_shape != Shape::Matrix(k, n) {
            return Err(self.misfit("matmul", "the weight", weight, format_args!("[{k}, N]")));
        }
        if let Some(record) = self.record() {
            return record.matmul(x.0, weight.0).map(Var);
        }
        // The way back of a linear layer with that weight is this way forth.
        let turned = Sizes { m, k: n, n: k };
        let mut values = scratch::take_zeros(m * n);
        turned.add_to_dx(self.value(x).values(), self.weight(weight), &mut values, self.threads());
        let backward = move |grad: Scratch, at: &At<'_>, sink: &mut Sink<'_>| {
            if sink.wants(x) {
                sink.give(x, turned.forward(&grad, at.weight(weight), None, at.threads));
            }
            sink.add(weight, |dw| turned.add_to_dw(at.value(x).values(), &grad, dw, at.threads));
        };
        Ok(self.push(&[x, weight], Tensor::from_parts(Shape::Matrix(m, n), values), backward))
    }
}

/// `x` is `[m, k]`, the weight `[n, k]`, the result `[m, n]`.
#[derive(Clone, Copy)]
struct Sizes {
    m: usize,
    k: usize,
    n: usize,
}

impl Sizes {
    fn forward(self, x: &[f32], weight: Weight<'_>, bias: Option<&[f32]>, threads: Threads) -> Scratch {
        let Self { m, k, n } = self;
        let mut out = scratch::take(m * n);
        threads.rows(&mut out, n, |first, rows| {
            let x = View::new(&x[first * k..], rows.len() / n, k);
            weight.forward(x, Into::Replace, rows);
            if let Some(bias) = bias {
                rows.chunks_exact_mut(n).for_each(|row| add_to(row, bias));
            }
        });
        out
    }

    /// dx += dy · W.
    fn add_to_dx(self, dy: &[f32], weight: Weight<'_>, dx: &mut [f32], threads: Threads) {
        let Self { k, n, .. } = self;
        threads.rows(dx, k, |first, rows| {
            let dy = View::new(&dy[first * n..], rows.len() / k, n);
            weight.back(dy, Into::Add, rows);
        });
    }

    /// dW += dyᵀ · x. The rows of dW are handed out, each a sum over all rows of x in one order.
    fn add_to_dw(self, dy: &[f32], x: &[f32], dw: &mut [f32], threads: Threads) {
        let Self { m, k, n } = self;
        if m == 0 {
            return;
        }
        threads.rows(dw, k, |first, rows| {
            let dy = View::within(&dy[first..], m, rows.len() / k, n).t();
            product(dy, View::new(x, m, k), 1.0, Into::Add, rows, k);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Parameters;
    use crate::testkit::{Case, check_gradients, matrix, vector};

    #[test]
    fn gradients_match_differences() {
        for activation in [None, Some(Activation::Gelu)] {
            let inputs = [matrix(1, 5, 4), matrix(2, 3, 4), vector(3, 3)];
            check_gradients(&inputs, |tape, x| tape.linear(x[0], x[1], Some(x[2]), activation));
        }
        // More rows and more outputs than a chunk.
        check_gradients(&[matrix(1, 70, 2), matrix(2, 66, 2)], |tape, x| tape.linear(x[0], x[1], None, None));
    }

    #[test]
    fn values_and_gradients_are_those_of_pytorch() {
        let names = ["x", "weight", "bias"];
        Case::load("linear").check(&names, |tape, x| tape.linear(x[0], x[1], Some(x[2]), None));
        Case::load("linear_gelu").check(&names, |tape, x| tape.linear(x[0], x[1], Some(x[2]), Some(Activation::Gelu)));
        Case::load("linear_plain").check(&names[..2], |tape, x| tape.linear(x[0], x[1], None, None));
    }

    #[test]
    fn products_with_a_weight_as_it_is() {
        check_gradients(&[matrix(1, 5, 4), matrix(2, 4, 3)], |tape, x| tape.matmul(x[0], x[1]));
        check_gradients(&[matrix(1, 70, 2), matrix(2, 2, 66)], |tape, x| tape.matmul(x[0], x[1]));
        for (m, k, n) in [(0, 4, 3), (1, 1, 1), (3, 0, 2), (2, 3, 0)] {
            check_gradients(&[matrix(1, m, k), matrix(2, k, n)], |tape, x| tape.matmul(x[0], x[1]));
        }
        // Both factors of one variable.
        check_gradients(&[matrix(1, 4, 4)], |tape, x| tape.matmul(x[0], x[0]));
        Case::load("matmul").check(&["x", "weight"], |tape, x| tape.matmul(x[0], x[1]));
        let parameters = Parameters::default();
        let mut tape = Tape::new(&parameters);
        let (x, weight) = (tape.input(matrix(1, 5, 4)), tape.input(matrix(2, 3, 4)));
        let error = tape.matmul(x, weight).unwrap_err();
        assert_eq!(error.to_string(), "matmul: the weight has shape [3, 4], but [4, N] is needed");
    }

    #[test]
    fn no_rows_give_no_rows() {
        check_gradients(&[matrix(1, 0, 4), matrix(2, 3, 4)], |tape, x| tape.linear(x[0], x[1], None, None));
    }

    #[test]
    fn operands_that_do_not_fit_are_named() {
        let parameters = Parameters::default();
        let mut tape = Tape::new(&parameters);
        let (x, weight) = (tape.input(matrix(1, 5, 4)), tape.input(matrix(2, 3, 6)));
        let error = tape.linear(x, weight, None, None).unwrap_err();
        assert_eq!(error.to_string(), "linear: the weight has shape [3, 6], but [N, 4] is needed");
        let weight = tape.input(matrix(2, 3, 4));
        let bias = tape.input(vector(1, 4));
        let error = tape.linear(x, weight, Some(bias), None).unwrap_err();
        assert_eq!(error.to_string(), "linear: the bias has shape [4], but [3] is needed");
    }
}
